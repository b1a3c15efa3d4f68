/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seeing SITUATION TRANSPORT TRACE PCAP: two nodes under the virtual clock in
 * a situation that is worth seeing, with a trace and a capture of it.  For
 * seeing.sh and identical.sh, and for whoever wants to look at one.
 */
#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/api/pair.h"

#define MEMORY 65536u

struct memory {
	uint8_t *bytes;
	struct ibv_mr *mr;
};

static void open_memory(struct memory *memory, struct rdma_cm_id *id, uint8_t seed)
{
	unsigned int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			      IBV_ACCESS_MW_BIND;

	memory->bytes = aligned_alloc(4096, MEMORY);
	assert_non_null(memory->bytes);
	for (size_t i = 0; i < MEMORY; i++)
		memory->bytes[i] = (uint8_t)(i * 31 + i / 251 + seed);
	memory->mr = ibv_reg_mr(id->pd, memory->bytes, MEMORY, access);
	assert_non_null(memory->mr);
}

static void close_memory(struct memory *memory)
{
	assert_int_equal(ibv_dereg_mr(memory->mr), 0);
	free(memory->bytes);
}

static void wait_for(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(cq, 1, &wc))
		assert_int_equal(polycm_sim_advance(1000), 0);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static void receive(struct rdma_cm_id *id, const struct memory *memory, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)memory->bytes, len, memory->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	assert_int_equal(ibv_post_recv(id->qp, &wr, &bad), 0);
}

static void post(struct pair *pair, enum ibv_wr_opcode opcode, const struct memory *from,
		 const struct memory *to, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)from->bytes, len, from->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma.remote_addr = (uintptr_t)to->bytes + 4096,
		.wr.rdma.rkey = to->mr->rkey,
	};

	assert_int_equal(ibv_post_send(pair->client->qp, &wr, &bad), 0);
	wait_for(pair->client_cq);
}

/* Short messages go in packets, long ones by a single copy. */
static void exchange(struct pair *pair)
{
	static const uint32_t lengths[] = { 13, 5000, 40000 };
	struct memory client, server;

	open_memory(&client, pair->client, 1);
	open_memory(&server, pair->server, 7);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		receive(pair->server, &server, lengths[i]);
		post(pair, IBV_WR_SEND, &client, &server, lengths[i]);
		wait_for(pair->server_cq);
		post(pair, IBV_WR_RDMA_WRITE, &client, &server, lengths[i]);
		post(pair, IBV_WR_RDMA_READ, &client, &server, lengths[i]);
	}
	close_memory(&client);
	close_memory(&server);
}

/* The server opens a window, and the client closes it with a message. */
static void invalidate(struct pair *pair, uint32_t len)
{
	struct memory client, server;
	struct ibv_mw *mw;
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
	};

	open_memory(&client, pair->client, 1);
	open_memory(&server, pair->server, 7);
	mw = ibv_alloc_mw(pair->server->pd, IBV_MW_TYPE_2);
	assert_non_null(mw);
	mw->rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = mw->rkey;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info) {
		.mr = server.mr, .addr = (uintptr_t)server.bytes, .length = MEMORY,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	assert_int_equal(ibv_post_send(pair->server->qp, &wr, &bad), 0);
	wait_for(pair->server_cq);
	receive(pair->server, &server, len);
	sge = (struct ibv_sge) { (uintptr_t)client.bytes, len, client.mr->lkey };
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_SEND_WITH_INV;
	wr.invalidate_rkey = mw->rkey;
	assert_int_equal(ibv_post_send(pair->client->qp, &wr, &bad), 0);
	wait_for(pair->client_cq);
	wait_for(pair->server_cq);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	close_memory(&client);
	close_memory(&server);
}

static void request(struct pair *pair)
{
	struct rdma_conn_param param = pair_param("hello, server", 13);

	pair_resolve(pair);
	pair_client_qp(pair);
	rdma_ack_cm_event(pair_request(pair, &param));
}

static void connect_both(struct pair *pair)
{
	struct rdma_conn_param param = pair_param("welcome, client", 15);

	request(pair);
	pair_server_qp(pair);
	assert_int_equal(rdma_accept(pair->server, &param), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pair_take(pair->server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static void end(struct pair *pair)
{
	assert_int_equal(rdma_disconnect(pair->client), 0);
	if (pair->transport != IWARP) {
		pair_take(pair->server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		assert_int_equal(rdma_disconnect(pair->server), 0);
		pair_take(pair->client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		pair_take(pair->server_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		pair_take(pair->client_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		return;
	}
	pair_take(pair->client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	pair_take(pair->server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
}

/* --- Situations. --- */

static void handshake(struct pair *pair)
{
	connect_both(pair);
	end(pair);
}

static void data(struct pair *pair)
{
	connect_both(pair);
	exchange(pair);
	invalidate(pair, 11);
	invalidate(pair, 6000);
	end(pair);
}

static void reject(struct pair *pair)
{
	request(pair);
	assert_int_equal(rdma_reject(pair->server, "not today", 9), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_REJECTED,
		  pair->transport == IWARP ? -ECONNRESET : 28);
}

/* Nobody listens any more: the CM itself answers. */
static void refuse(struct pair *pair)
{
	struct rdma_conn_param param = pair_param(NULL, 0);

	pair_resolve(pair);
	pair_client_qp(pair);
	assert_int_equal(rdma_destroy_id(pair->listener), 0);
	pair->listener = NULL;
	if (pair->transport == IWARP) {
		assert_int_equal(rdma_connect(pair->client, &param), -1);
		return;
	}
	assert_int_equal(rdma_connect(pair->client, &param), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_REJECTED, 8);
}

/* Two requests are lost, and the end of the connection, too. */
static void loss(struct pair *pair)
{
	struct polycm_sim_fault *fault;
	const char *first = pair->transport == IWARP ? "MPA_REP" : "REQ";

	if (pair->transport != IWARP)
		assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE,
				 .message = first, .nth = 1, .times = 2), &fault), 0);
	connect_both(pair);
	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE,
			 .message = "SEND", .nth = 1), &fault), 0);
	exchange(pair);
	end(pair);
}

static void sidr(struct pair *pair)
{
	struct rdma_conn_param param = pair_param("who is there?", 13);

	pair_resolve(pair);
	rdma_ack_cm_event(pair_request(pair, &param));
	pair_server_qp(pair);
	param = pair_param("it is me", 8);
	param.qp_num = pair->server->qp->qp_num;
	assert_int_equal(rdma_accept(pair->server, &param), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static const struct {
	const char *name;
	enum rdma_port_space ps;
	void (*run)(struct pair *pair);
} situations[] = {
	{ "handshake", RDMA_PS_TCP, handshake },
	{ "data", RDMA_PS_TCP, data },
	{ "reject", RDMA_PS_TCP, reject },
	{ "refuse", RDMA_PS_TCP, refuse },
	{ "loss", RDMA_PS_TCP, loss },
	{ "sidr", RDMA_PS_UDP, sidr },
};

static char **arguments;

static size_t named(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(situations); i++)
		if (!strcmp(situations[i].name, name))
			return i;
	fprintf(stderr, "seeing: there is no situation '%s'\n", name);
	exit(2);
}

static enum transport transport_named(const char *name)
{
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++)
		if (!strcmp(transport_name[t], name))
			return t;
	fprintf(stderr, "seeing: there is no transport '%s'\n", name);
	exit(2);
}

static void seen(void **state)
{
	size_t i = named(arguments[1]);
	struct pair pair;

	(void)state;
	pair_open(&pair, transport_named(arguments[2]), situations[i].ps);
	assert_int_equal(polycm_sim_trace(arguments[3]), 0);
	assert_int_equal(polycm_sim_pcap(arguments[4]), 0);
	situations[i].run(&pair);
	assert_int_equal(polycm_sim_pcap(NULL), 0);
	assert_int_equal(polycm_sim_trace(NULL), 0);
	pair_close(&pair);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(seen) };

	if (argc != 5) {
		fputs("usage: seeing SITUATION TRANSPORT TRACE PCAP\n", stderr);
		return 2;
	}
	arguments = argv;
	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
