/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch/pcap/pcap_data.c - packets of queue pairs, and where the data of their messages is.
 *
 * The data of our own messages is in the program's memory.  That of another
 * process is in the packet, or in its memory if that can be read.  A packet of
 * the wire may begin in one fragment of the simulator and end in the next, so
 * the end of a fragment is kept until its message is complete: one for each QP
 * and direction, since their fragments alternate.
 */
#include "config.h"

#include "providers/soft/link/shm/shm.h"
#include "providers/soft/nic/mr.h"
#include "providers/soft/nic/objects.h"
#include "providers/soft/nic/rc_internal.h"
#include "providers/soft/nic/sq.h"
#include "pcap_internal.h"

struct tail {
	struct sim_pcap_kept kept;	/* by the sender's port and QP, and whether it answers */
	uint32_t psn;			/* of the message */
	uint32_t end;			/* offset behind it */
	uint32_t len;
	uint8_t bytes[SIM_PCAP_MAX_FRAME];
};

static uint8_t buffer[SIM_PCAP_MAX_FRAME];

/* Read the sender's memory, whose places the packet lists. */
static bool read_parts(const struct sim_packet *packet, const struct rc_header *h, uint32_t from,
		       uint32_t len)
{
	const uint8_t *list = packet->data + sizeof(*h);
	struct iovec parts[NIC_MAX_SGE], to = { .iov_base = buffer, .iov_len = len };
	uint64_t skip = from, left = len;
	unsigned int num = 0;

	if (h->parts > NIC_MAX_SGE || packet->len != sizeof(*h) + h->parts * sizeof(struct rc_part))
		return false;
	for (unsigned int i = 0; i < h->parts && left; i++) {
		struct rc_part part;
		uint64_t n;

		memcpy(&part, list + i * sizeof(part), sizeof(part));
		if (part.len <= skip) {
			skip -= part.len;
			continue;
		}
		n = part.len - skip < left ? part.len - skip : left;
		parts[num++] = (struct iovec){ (void *)(uintptr_t)(part.addr + skip), n };
		skip = 0;
		left -= n;
	}
	return !left && !sim_link_pull(packet->from_slot, parts, num, &to, 1, len);
}

static uint64_t key_of(const struct sim_packet *packet, const struct rc_header *h)
{
	return (uint64_t)packet->from->fabric_index << 32 | (uint64_t)h->src_qpn << 1 |
	       (h->op >= RC_ACK);
}

void sim_pcap_keep_foreign(const struct sim_packet *packet)
{
	const uint8_t *bytes = packet->data + sizeof(struct rc_header);
	struct rc_header h;
	struct tail *tail;
	uint32_t here;

	if (packet->len <= sizeof(h))
		return;
	memcpy(&h, packet->data, sizeof(h));
	here = (uint32_t)(packet->len - sizeof(h));
	if (h.flags & RC_F_REF || (!h.offset && here == h.length))
		return;
	tail = sim_pcap_find(SIM_PCAP_TAILS, key_of(packet, &h));
	if (h.offset + here == h.length) {
		if (tail)
			sim_pcap_drop(SIM_PCAP_TAILS, tail);
		return;
	}
	if (!tail)
		tail = sim_pcap_keep(SIM_PCAP_TAILS, key_of(packet, &h), sizeof(*tail));
	if (!tail)
		return;
	tail->psn = h.psn;
	tail->end = h.offset + here;
	tail->len = here < sizeof(tail->bytes) ? here : sizeof(tail->bytes);
	memcpy(tail->bytes, bytes + (here - tail->len), tail->len);
}

/* The bytes from `from' on, which end where the previous fragment ended. */
static bool take_tail(const struct sim_packet *packet, const struct rc_header *h, uint32_t from,
		      uint32_t len)
{
	const struct tail *tail = sim_pcap_find(SIM_PCAP_TAILS, key_of(packet, h));
	uint32_t back = h->offset - from;

	if (!tail || tail->psn != h->psn || tail->end != h->offset || tail->len < back)
		return false;
	memcpy(buffer, tail->bytes + (tail->len - back), len);
	return true;
}

bool sim_pcap_foreign_data(const struct sim_packet *packet, uint32_t from, uint32_t len,
			   struct iovec *ret_data)
{
	const uint8_t *bytes = packet->data + sizeof(struct rc_header);
	uint32_t here = (uint32_t)(packet->len - sizeof(struct rc_header)), before = 0;
	struct rc_header h;

	memcpy(&h, packet->data, sizeof(h));
	*ret_data = (struct iovec){ .iov_base = buffer, .iov_len = len };
	if (len > sizeof(buffer))
		return false;
	if (h.flags & RC_F_REF)
		return read_parts(packet, &h, from, len);
	if (from < h.offset) {
		before = h.offset - from < len ? h.offset - from : len;
		if (!take_tail(packet, &h, from, before))
			return false;
		from += before;
	}
	if (from - h.offset > here || len - before > here - (from - h.offset))
		return false;
	memcpy(buffer + before, bytes + (from - h.offset), len - before);
	return true;
}

static bool reply_data(const struct sim_pcap_rc *rc, uint32_t offset, uint32_t len,
		       struct iovec *ret_data)
{
	const struct sim_pcap_read *read = &rc->reads[rc->h.psn % SIM_PCAP_READS];
	const char *why;

	if (read->psn != rc->h.psn)
		return false;
	ret_data->iov_base = nic_remote_resolve(rc->qp, read->rkey, read->addr + offset, len,
						IBV_ACCESS_REMOTE_READ, &why);
	ret_data->iov_len = len;
	return ret_data->iov_base != NULL;
}

static bool message_data(const struct sim_pcap_rc *rc, uint32_t offset, uint32_t len,
			 struct iovec iov[NIC_MAX_SGE], unsigned int *ret_parts)
{
	struct nic_swqe *wqe;
	uint32_t index;

	*ret_parts = 1;
	if (rc->foreign)
		return sim_pcap_foreign_data(rc->packet, offset, len, iov);
	if (rc->h.op == RC_READ_DATA)
		return reply_data(rc, offset, len, iov);
	wqe = rc_open_request(rc->qp, rc->h.psn, &index);
	if (!wqe)	/* the first time: it counts as sent only afterwards */
		wqe = nic_sq_at(rc->qp, rc->qp->sq_next);
	return !nic_swqe_resolve(rc->qp, wqe, offset, len, iov, ret_parts);
}

void sim_pcap_rc_write(const struct sim_pcap_rc *rc, uint32_t each, sim_pcap_put_t put,
		       const void *arg)
{
	uint32_t length = rc->h.length;
	struct iovec iov[NIC_MAX_SGE];

	for (uint32_t i = rc->h.offset / each; !i || (uint64_t)i * each < length; i++) {
		uint32_t from = i * each, len = length - from < each ? length - from : each;
		unsigned int parts = 0;

		if (from + len > rc->end || (len && !message_data(rc, from, len, iov, &parts)))
			break;
		put(arg, i, iov, parts, len);
	}
}

bool sim_pcap_rc_parse(const struct sim_packet *packet, struct sim_pcap_rc *ret_rc)
{
	struct rc_header h;

	if (packet->len < sizeof(h))
		return false;
	memcpy(&h, packet->data, sizeof(h));
	*ret_rc = (struct sim_pcap_rc){
		.packet = packet,
		.h = h,
		.foreign = packet->from_slot != sim_self_slot(),
		.end = h.flags & (RC_F_LOCAL | RC_F_REF) ? h.length :
		       h.offset + (uint32_t)(packet->len - sizeof(h)),
	};
	ret_rc->qp = ret_rc->foreign ? sim_qp_find(packet->to->device, h.dst_qpn) :
				       sim_qp_find(packet->from->device, h.src_qpn);
	return true;
}

uint64_t sim_pcap_address(uint32_t rkey, uint64_t addr)
{
	return sim_is_virtual() ? nic_mr_offset(rkey, addr) : addr;
}
