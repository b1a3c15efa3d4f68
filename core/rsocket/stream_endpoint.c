/* SPDX-License-Identifier: BSD-2-Clause */
/* rsocket/stream_endpoint.c - a stream's queue pair and memory, and their description for the peer. */
#include "config.h"
#include "stream.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#include "core/base/why.h"
#include "core/verbs/table.h"

#define QUEUE_LEAST	16u
#define QUEUE_MOST	0xfffeu
#define MESSAGE_SIZE	sizeof(uint32_t)
#define FIRST_OFFSET	0x10000u
#define SIMULATED_POLLING 5u

static bool is_big_endian(void)
{
	return __BYTE_ORDER == __BIG_ENDIAN;
}

static uint16_t between(uint32_t value, uint32_t least, uint32_t most)
{
	return (uint16_t)(value < least ? least : value > most ? most : value);
}

static int limit_queues(struct stream *s)
{
	struct rsocket_sizes *sizes = &s->rs.sizes;
	struct ibv_device_attr attr;
	uint32_t most = QUEUE_MOST;

	if (ibv_query_device(s->id->verbs, &attr))
		return -errno;
	if (attr.max_qp_wr >= 0 && (uint32_t)attr.max_qp_wr < most)
		most = (uint32_t)attr.max_qp_wr;
	sizes->sends = between(sizes->sends, QUEUE_LEAST, most);
	sizes->receives = between(sizes->receives, QUEUE_LEAST,
				  most > QUEUE_LEAST + STREAM_SPARE_RECEIVES
					  ? most - STREAM_SPARE_RECEIVES : QUEUE_LEAST);
	s->by_offset = shim_table(s->id->verbs->device);
	/* A thread that sleeps is woken up by another, which takes longer than a card. */
	if (s->by_offset)
		s->rs.polling_ns *= SIMULATED_POLLING;
	s->messages = s->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	if (s->messages && sizes->inline_data < MESSAGE_SIZE)
		sizes->inline_data = MESSAGE_SIZE;
	return 0;
}

static unsigned int num_receives(const struct stream *s)
{
	return s->rs.sizes.receives + STREAM_SPARE_RECEIVES;
}

static int create_queues(struct stream *s)
{
	struct rsocket_sizes *sizes = &s->rs.sizes;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {
			.max_send_wr = sizes->sends,
			.max_recv_wr = num_receives(s),
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = sizes->inline_data,
		},
	};

	s->completions = ibv_create_comp_channel(s->id->verbs);
	if (!s->completions)
		return -errno;
	if (fcntl(s->completions->fd, F_SETFL, O_NONBLOCK))
		return -errno;
	s->cq = ibv_create_cq(s->id->verbs, (int)(sizes->sends + num_receives(s)), s,
			      s->completions, 0);
	if (!s->cq)
		return -errno;
	attr.send_cq = attr.recv_cq = s->cq;
	if (rdma_create_qp(s->id, NULL, &attr))
		return -errno;
	sizes->inline_data = (uint16_t)(attr.cap.max_inline_data < UINT16_MAX ?
					attr.cap.max_inline_data : UINT16_MAX);
	if (s->messages && sizes->inline_data < MESSAGE_SIZE)
		return polycm_fail(-EOPNOTSUPP, "the device sends nothing inline");
	return rsocket_watch(&s->rs, s->completions->fd);
}

/* Both begin at the same place of a page. */
static uint64_t offset_of(const void *memory)
{
	return FIRST_OFFSET + ((uintptr_t)memory & (uintptr_t)(sysconf(_SC_PAGESIZE) - 1));
}

/* Not all real devices of iWARP register memory at an address of the program's choice. */
struct ibv_mr *stream_register(const struct stream *s, void *memory, size_t len, unsigned int access)
{
	if (s->by_offset)
		return ibv_reg_mr_iova(s->id->pd, memory, len, offset_of(memory), access);
	return ibv_reg_mr(s->id->pd, memory, len, access);
}

uint64_t stream_address(const struct stream *s, const struct ibv_mr *mr, const void *at)
{
	if (!s->by_offset)
		return (uintptr_t)at;
	return offset_of(mr->addr) + ((uintptr_t)at - (uintptr_t)mr->addr);
}

static int make_memory(struct stream *s, size_t len, unsigned int access, void **ret_memory,
		       struct ibv_mr **ret_mr)
{
	*ret_memory = rsocket_pages(len);
	if (!*ret_memory)
		return -ENOMEM;
	if (access == IBV_ACCESS_LOCAL_WRITE)
		*ret_mr = ibv_reg_mr(s->id->pd, *ret_memory, len, access);
	else
		*ret_mr = stream_register(s, *ret_memory, len, access);
	return *ret_mr ? 0 : -errno;
}

static int create_buffers(struct stream *s)
{
	const struct rsocket_sizes *sizes = &s->rs.sizes;
	const unsigned int written = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	size_t controls = STREAM_CONTROLS * sizeof(struct rsocket_range);
	size_t messages = s->messages ? num_receives(s) * MESSAGE_SIZE : 0;
	void *memory;
	int err;

	s->half = sizes->receive_buffer / 2;
	err = make_memory(s, sizes->send_buffer + controls, IBV_ACCESS_LOCAL_WRITE, &memory,
			  &s->send_mr);
	s->send_buffer = memory;
	if (err)
		return err;
	err = make_memory(s, sizeof(*s->table) + sizes->iomaps * sizeof(s->table->iomaps[0]), written,
			  &memory, &s->table_mr);
	s->table = memory;
	if (err)
		return err;
	err = make_memory(s, 2 * (size_t)s->half + MESSAGE_SIZE + messages, written, &memory,
			  &s->receive_mr);
	s->receive_buffer = memory;
	return err;
}

/* The peer gets the first half with our hello. */
static void start_counting(struct stream *s)
{
	const struct rsocket_sizes *sizes = &s->rs.sizes;

	s->granted = s->half;
	s->freed = s->half;
	s->grant_at = s->half;
	s->send_free = sizes->send_buffer;
	s->sends_free = sizes->sends - STREAM_CONTROLS;
	s->controls_free = STREAM_CONTROLS;
	s->entry = s->peer_entry = 1;
}

int stream_endpoint_create(struct stream *s)
{
	int err;

	err = limit_queues(s);
	if (!err)
		err = create_queues(s);
	if (!err)
		err = create_buffers(s);
	if (err)
		return err;
	start_counting(s);
	for (unsigned int i = 0; !err && i < num_receives(s); i++)
		err = stream_post_receive(s, i);
	return err;
}

static void free_memory(void *memory, struct ibv_mr *mr)
{
	if (mr)
		ibv_dereg_mr(mr);
	free(memory);
}

void stream_endpoint_destroy(struct stream *s)
{
	if (s->id && s->id->qp)
		rdma_destroy_qp(s->id);
	if (s->cq) {
		ibv_ack_cq_events(s->cq, s->unacked);
		ibv_destroy_cq(s->cq);
	}
	if (s->completions)
		ibv_destroy_comp_channel(s->completions);
	free_memory(s->send_buffer, s->send_mr);
	free_memory(s->table, s->table_mr);
	free_memory(s->receive_buffer, s->receive_mr);
}

static struct rsocket_range to_wire(const struct stream *s, const struct ibv_mr *mr, uint32_t length)
{
	return (struct rsocket_range){
		.addr = htobe64(stream_address(s, mr, mr->addr)),
		.key = htobe32(mr->rkey),
		.length = htobe32(length),
	};
}

static struct rsocket_range from_wire(const struct rsocket_range *range)
{
	return (struct rsocket_range){
		.addr = be64toh(range->addr),
		.key = be32toh(range->key),
		.length = be32toh(range->length),
	};
}

void stream_hello(const struct stream *s, struct rsocket_hello *hello)
{
	*hello = (struct rsocket_hello){
		.version = RSOCKET_WIRE_VERSION,
		.flags = RSOCKET_HAS_IOMAPS | (is_big_endian() ? RSOCKET_BIG_ENDIAN : 0),
		.credits = htobe16(s->rs.sizes.receives),
		.num_iomaps = rsocket_scale_down(s->rs.sizes.iomaps),
		.table = to_wire(s, s->table_mr, RSOCKET_TABLE_BUFFERS),
		.buffer = to_wire(s, s->receive_mr, s->half),
	};
}

int stream_take_hello(struct stream *s, const struct rsocket_hello *hello)
{
	struct rsocket_range table = from_wire(&hello->table);

	if (hello->version != RSOCKET_WIRE_VERSION)
		return polycm_fail(-EPROTO, "the peer is no rsocket, or of version %u", hello->version);
	if (!table.length)
		return polycm_fail(-EPROTO, "the peer's table has no entries");
	s->swap = is_big_endian() != !!(hello->flags & RSOCKET_BIG_ENDIAN);
	s->peer_table = table;
	if (hello->flags & RSOCKET_HAS_IOMAPS)
		s->peer_iomaps = (struct rsocket_range){
			.addr = table.addr + table.length * sizeof(table),
			.key = table.key,
			.length = rsocket_scale_up(hello->num_iomaps),
		};
	s->target = from_wire(&hello->buffer);
	s->credits = be16toh(hello->credits);
	return 0;
}
