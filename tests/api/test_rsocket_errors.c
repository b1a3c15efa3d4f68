/* SPDX-License-Identifier: BSD-2-Clause */
/* test_rsocket_errors.c - connections of rsockets that fail, and peers that are none. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>

#include "rsockets.h"

#define S_NS UINT64_C(1000000000)
#define MEMORY_AT 0x4000u

static int error_of(int fd)
{
	socklen_t len = sizeof(int);
	int error = -1;

	assert_int_equal(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	return error;
}

/* --- nobody there --- */

static void nobody_listens(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rsockets r;

		rsockets_open(&r, t);
		assert_int_equal(rclose(r.listener), 0);
		r.listener = -1;
		assert_errno(rsockets_connect_client(&r), EINPROGRESS);
		assert_errno(rsockets_connect_client(&r), EINPROGRESS);
		assert_int_equal(rsockets_poll(r.client, POLLIN | POLLOUT, 10000),
				 POLLIN | POLLOUT | POLLERR);
		assert_int_equal(error_of(r.client), ECONNREFUSED);
		assert_int_equal(error_of(r.client), 0);
		assert_errno(rsockets_connect_client(&r), ENOTCONN);
		assert_errno(rsend(r.client, "x", 1, 0), ECONNREFUSED);
		assert_int_equal(rclose(r.client), 0);
		r.client = rsocket(AF_INET, SOCK_STREAM, 0);
		assert_errno(rsockets_connect_client(&r), ECONNREFUSED);
		assert_int_equal(error_of(r.client), 0);
		rsockets_close(&r);
	}
}

/* 1 s, 2 s, ..., 64 s: as long as TCP tries. */
static void nobody_answers(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct sockaddr_in to = pair_address("10.0.0.99", 1);
		struct rsockets r;
		uint64_t before;

		rsockets_open(&r, t);
		assert_int_equal(rfcntl(r.client, F_SETFL, 0), 0);
		before = pair_now();
		assert_errno(rconnect(r.client, (struct sockaddr *)&to, sizeof(to)), ETIMEDOUT);
		assert_int_equal((pair_now() - before) / S_NS, 127);
		rsockets_close(&r);
	}
}

static void no_path_is_found(void **state)
{
	struct rsockets r;
	uint64_t before;

	(void)state;
	rsockets_open(&r, IB);
	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_ANSWER_NEVER,
							       .message = "path"), NULL), 0);
	assert_int_equal(rfcntl(r.client, F_SETFL, 0), 0);
	before = pair_now();
	assert_errno(rsockets_connect_client(&r), ETIMEDOUT);
	assert_true(pair_now() - before >= 100 * S_NS);
	rsockets_close(&r);
}

/* What a call of the set-up fails with is what rconnect() or the poll after it says. */
static void set_up_fails(void **state)
{
	static const char *const calls[] = {
		"resolve_addr", "resolve_route", "create_qp", "create_cq", "reg_mr", "connect",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		struct polycm_sim_fault_rule *rule;
		struct rsockets r;

		print_message("%s\n", calls[i]);
		rsockets_open(&r, ROCE);
		rule = POLYCM_SIM_FAULT(.action = POLYCM_SIM_FAIL, .message = calls[i],
					.from = r.client_node, .error = ENOBUFS);
		assert_int_equal(polycm_sim_fault_add(rule, NULL), 0);
		assert_int_equal(rfcntl(r.client, F_SETFL, 0), 0);
		assert_errno(rsockets_connect_client(&r), ENOBUFS);
		rsockets_close(&r);
	}
}

/* The listener rejects what it cannot accept, and goes on. */
static void accepting_fails(void **state)
{
	static const char *const calls[] = { "create_qp", "create_cq", "reg_mr", "accept" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		struct polycm_sim_fault_rule *rule;
		struct polycm_sim_fault *fault;
		struct rsockets r;
		struct pollfd fds[2];

		print_message("%s\n", calls[i]);
		rsockets_open(&r, ROCE);
		rule = POLYCM_SIM_FAULT(.action = POLYCM_SIM_FAIL, .message = calls[i],
					.from = r.server_node);
		assert_int_equal(polycm_sim_fault_add(rule, &fault), 0);
		assert_errno(rsockets_connect_client(&r), EINPROGRESS);
		fds[0] = (struct pollfd){ .fd = r.client, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = r.listener, .events = POLLIN };
		assert_int_equal(rpoll(fds, 2, 10000), 1);
		assert_int_equal(fds[0].revents, POLLIN | POLLERR);
		assert_int_equal(error_of(r.client), ECONNREFUSED);
		assert_int_equal(polycm_sim_fault_remove(fault), 0);
		assert_int_equal(rclose(r.client), 0);
		r.client = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		rsockets_connect_opened(&r);
		rsockets_carry(&r, true, 100, 10);
		rsockets_close(&r);
	}
}

/* --- a peer that dies --- */

static void crash_server(struct rsockets *r)
{
	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_CRASH,
							       .on = r->server_node), NULL), 0);
}

static void sending_to_a_dead_peer(void **state)
{
	struct rsockets r;
	char buf[4];

	(void)state;
	rsockets_connect(&r, ROCE);
	crash_server(&r);
	assert_int_equal(polycm_sim_advance(S_NS), 0);
	assert_int_equal(rsend(r.client, "x", 1, 0), 1);
	assert_int_equal(rsockets_poll(r.client, POLLIN, 100000), POLLIN | POLLERR);
	assert_int_equal(error_of(r.client), ETIMEDOUT);
	/* As after an orderly end: only a send and SO_ERROR tell the reason. */
	assert_int_equal(rrecv(r.client, buf, sizeof(buf), 0), 0);
	assert_errno(rsend(r.client, "x", 1, 0), ETIMEDOUT);
	rsockets_close(&r);
}

/* Who only waits finds out by keepalive, and else not at all. */
static void waiting_for_a_dead_peer(void **state)
{
	(void)state;
	for (int on = 0; on < 2; on++) {
		struct rsockets r;
		int seconds = 60;
		uint64_t before;

		rsockets_connect(&r, ROCE);
		assert_int_equal(rsetsockopt(r.client, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)), 0);
		assert_int_equal(rsetsockopt(r.client, IPPROTO_TCP, TCP_KEEPIDLE, &seconds,
					     sizeof(seconds)), 0);
		assert_int_equal(rsockets_poll(r.client, POLLIN, 200000), 0);
		crash_server(&r);
		assert_int_equal(polycm_sim_advance(1), 0);
		before = pair_now();
		assert_int_equal(rsockets_poll(r.client, POLLIN, 200000), on ? POLLIN | POLLERR : 0);
		assert_true(!on || pair_now() - before < 70 * S_NS);
		rsockets_close(&r);
	}
}

/* Ends without a word of rsockets: its host says it for it. */
static void a_device_goes(void **state)
{
	struct rsockets r;
	char buf[4];

	(void)state;
	rsockets_connect(&r, ROCE);
	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_REMOVE_DEVICE,
							       .on = r.client_node), NULL), 0);
	assert_int_equal(rsockets_poll(r.client, POLLIN, 10000), POLLIN | POLLERR);
	assert_int_equal(rrecv(r.client, buf, sizeof(buf), 0), 0);
	rsockets_close(&r);
}

/* --- peers that are no rsockets: what they say is written down here, byte by byte --- */

struct range {
	__be64 addr;
	__be32 key, length;
};

struct hello {
	uint8_t version, flags;
	__be16 credits;
	uint8_t reserved[3], iomaps;
	struct range table, buffer;
};

struct raw {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	_Alignas(4096) uint8_t memory[2048];	/* a table, and a buffer behind it */
};

static struct hello good_hello(void)
{
	return (struct hello){
		.version = 1,
		.credits = htobe16(16),
		.table = { .addr = htobe64(4096), .key = htobe32(1), .length = htobe32(2) },
		.buffer = { .addr = htobe64(8192), .key = htobe32(1), .length = htobe32(1000) },
	};
}

static void raw_open(struct raw *raw)
{
	memset(raw, 0, sizeof(*raw));
	raw->channel = rdma_create_event_channel();
	assert_non_null(raw->channel);
	assert_int_equal(fcntl(raw->channel->fd, F_SETFL, O_NONBLOCK), 0);
}

static void raw_close(struct raw *raw)
{
	if (raw->id && raw->id->qp)
		rdma_destroy_qp(raw->id);
	if (raw->mr)
		assert_int_equal(ibv_dereg_mr(raw->mr), 0);
	if (raw->id)
		assert_int_equal(rdma_destroy_id(raw->id), 0);
	if (raw->listener)
		assert_int_equal(rdma_destroy_id(raw->listener), 0);
	if (raw->cq)
		assert_int_equal(ibv_destroy_cq(raw->cq), 0);
	rdma_destroy_event_channel(raw->channel);
}

/* The next event, while the rsocket goes on. */
static enum rdma_cm_event_type raw_next(struct raw *raw, int fd)
{
	struct pollfd fds[2] = { { .fd = fd }, { .fd = raw->channel->fd, .events = POLLIN } };
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;

	do {
		assert_true(rpoll(fds, 2, 100000) > 0);
	} while (!fds[1].revents);
	assert_int_equal(rdma_get_cm_event(raw->channel, &event), 0);
	type = event->event;
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		raw->id = event->id;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	return type;
}

static void raw_qp(struct raw *raw)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	raw->cq = ibv_create_cq(raw->id->verbs, 16, NULL, NULL, 0);
	assert_non_null(raw->cq);
	attr.send_cq = attr.recv_cq = raw->cq;
	assert_int_equal(rdma_create_qp(raw->id, NULL, &attr), 0);
	raw->mr = ibv_reg_mr_iova(raw->id->pd, raw->memory, sizeof(raw->memory), MEMORY_AT,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(raw->mr);
	for (int i = 0; i < 4; i++) {
		struct ibv_recv_wr wr = { .num_sge = 0 }, *bad;

		assert_int_equal(ibv_post_recv(raw->id->qp, &wr, &bad), 0);
	}
}

/* With memory that is there. */
static void fill_hello(const struct raw *raw, struct hello *hello)
{
	hello->table.addr = htobe64(MEMORY_AT);
	hello->buffer.addr = htobe64(MEMORY_AT + 1024);
	hello->table.key = hello->buffer.key = htobe32(raw->mr->rkey);
}

/* A client that connects to a raw listener. */
static void raw_listen(struct rsockets *r, struct raw *raw)
{
	struct sockaddr_in at = pair_address(SERVER_ADDRESS, 4711);

	rsockets_open(r, ROCE);
	raw_open(raw);
	assert_int_equal(polycm_sim_node_use(r->server_node), 0);
	assert_int_equal(rdma_create_id(raw->channel, &raw->listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(raw->listener, (struct sockaddr *)&at), 0);
	assert_int_equal(rdma_listen(raw->listener, 1), 0);
	assert_int_equal(polycm_sim_node_use(r->client_node), 0);
	assert_errno(rconnect(r->client, (struct sockaddr *)&at, sizeof(at)), EINPROGRESS);
	assert_int_equal(raw_next(raw, r->client), RDMA_CM_EVENT_CONNECT_REQUEST);
	raw_qp(raw);
}

static void raw_accept(struct raw *raw, const void *data, size_t len)
{
	struct rdma_conn_param param = { .private_data = data, .private_data_len = (uint8_t)len };

	assert_int_equal(rdma_accept(raw->id, &param), 0);
}

static void answers_of_others(void **state)
{
	struct hello newer = good_hello(), tableless = good_hello();
	const struct {
		const void *data;
		size_t len;
	} answers[] = { { NULL, 0 }, { "hello", 5 }, { &newer, sizeof(newer) },
			{ &tableless, sizeof(tableless) } };

	(void)state;
	newer.version = 2;
	tableless.table.length = 0;
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		struct rsockets r;
		struct raw raw;

		raw_listen(&r, &raw);
		raw_accept(&raw, answers[i].data, answers[i].len);
		assert_int_equal(rsockets_poll(r.client, POLLOUT, 10000), POLLOUT | POLLERR);
		assert_int_equal(error_of(r.client), EPROTO);
		raw_close(&raw);
		rsockets_close(&r);
	}
}

static const struct {
	uint32_t message;
	int error;			/* 0: the connection stays */
} messages[] = {
	{ 1u << 28, EPROTO },		/* so much data */
	{ 131073, EPROTO },		/* one byte more than both halves have */
	{ 1u << 29, 0 },		/* not in use */
	{ 5u << 29, 0 },
	{ 6u << 29 | 0xffff, 0 },	/* an entry for riowrite() that is not there */
	{ 7u << 29 | 77, 0 },		/* unknown control */
	{ 4u << 29 | 0xffff, 0 },	/* many credits */
};

static void lies(void **state)
{
	struct hello hello = good_hello();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
		struct ibv_send_wr *bad, wr = {
			.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
			.imm_data = htobe32(messages[i].message),
		};
		struct rsockets r;
		struct raw raw;

		raw_listen(&r, &raw);
		fill_hello(&raw, &hello);
		raw_accept(&raw, &hello, sizeof(hello));
		assert_int_equal(rsockets_poll(r.client, POLLOUT, 10000), POLLOUT);
		assert_int_equal(raw_next(&raw, r.client), RDMA_CM_EVENT_ESTABLISHED);
		assert_int_equal(ibv_post_send(raw.id->qp, &wr, &bad), 0);
		assert_int_equal(rsockets_poll(r.client, POLLIN, 100),
				 messages[i].error ? POLLIN | POLLERR : 0);
		assert_int_equal(error_of(r.client), messages[i].error);
		raw_close(&raw);
		rsockets_close(&r);
	}
}

/* The buffers that such a peer names are none: its device refuses the write. */
static void a_buffer_that_is_none(void **state)
{
	struct hello hello = good_hello();
	struct rsockets r;
	struct raw raw;

	(void)state;
	raw_listen(&r, &raw);
	raw_accept(&raw, &hello, sizeof(hello));
	assert_int_equal(rsockets_poll(r.client, POLLOUT, 10000), POLLOUT);
	assert_int_equal(rsend(r.client, "x", 1, 0), 1);
	assert_int_equal(rsockets_poll(r.client, POLLIN, 1000), POLLIN | POLLERR);
	assert_true(error_of(r.client) != 0);
	raw_close(&raw);
	rsockets_close(&r);
}

static void requests_of_others(void **state)
{
	struct sockaddr_in to = pair_address(SERVER_ADDRESS, SERVER_PORT);
	struct rdma_conn_param param = { .private_data = "hello", .private_data_len = 5 };
	struct rsockets r;
	struct raw raw;

	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		rsockets_open(&r, t);
		raw_open(&raw);
		assert_int_equal(rdma_create_id(raw.channel, &raw.id, NULL, RDMA_PS_TCP), 0);
		assert_int_equal(rdma_resolve_addr(raw.id, NULL, (struct sockaddr *)&to, 1000), 0);
		assert_int_equal(raw_next(&raw, r.listener), RDMA_CM_EVENT_ADDR_RESOLVED);
		assert_int_equal(rdma_resolve_route(raw.id, 1000), 0);
		assert_int_equal(raw_next(&raw, r.listener), RDMA_CM_EVENT_ROUTE_RESOLVED);
		raw_qp(&raw);
		assert_int_equal(rdma_connect(raw.id, &param), 0);
		assert_int_equal(raw_next(&raw, r.listener), RDMA_CM_EVENT_REJECTED);
		rsockets_connect_opened(&r);
		raw_close(&raw);
		rsockets_close(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(nobody_answers),
		cmocka_unit_test(no_path_is_found),
		cmocka_unit_test(set_up_fails),
		cmocka_unit_test(accepting_fails),
		cmocka_unit_test(sending_to_a_dead_peer),
		cmocka_unit_test(waiting_for_a_dead_peer),
		cmocka_unit_test(a_device_goes),
		cmocka_unit_test(answers_of_others),
		cmocka_unit_test(lies),
		cmocka_unit_test(a_buffer_that_is_none),
		cmocka_unit_test(requests_of_others),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
