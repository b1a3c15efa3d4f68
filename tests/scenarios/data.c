/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * data.c - scenarios of messages: at each step of a connection, without a buffer that waits for
 * them, refused by the peer, and what is left of them when the connection ends.
 */
#include "scene_data.h"

/* Receives 11, 12, ... */
static void post_recvs(struct rdma_cm_id *id, unsigned int num)
{
	unsigned int i;

	for (i = 0; i < num; i++)
		MUST(post_recv(id, 11 + i, 1024));
}

static void established_with(struct rdma_conn_param asked, struct rdma_conn_param answered)
{
	open_scene(RDMA_PS_TCP);
	request(&asked);
	make_qp(child);
	MUST(rdma_accept(child, &answered));
	quiet();
	expect(client_events, ESTABLISHED);
	expect(server_events, ESTABLISHED);
	loud();
}

static void established_usual(void)
{
	established_with(param(), param());
}

static struct rdma_conn_param rnr(uint8_t count)
{
	struct rdma_conn_param with = param();

	with.rnr_retry_count = count;
	return with;
}

/* Over iWARP a message that the peer refuses is sent well, and the stream ends after that. */
static void both_ended(void)
{
	stream_ended(client);
	stream_ended(child);
}

/* --- While a connection comes about. --- */

static void data_send(void)
{
	static const uint32_t lens[] = {1, 64, 1024, 1025, 4096, 0};
	unsigned int i;

	established_usual();
	for (i = 0; i < ARRAY_LEN(lens); i++) {
		say("-- %u bytes", lens[i]);
		TRY(post_recv(child, 10 + i, 8192));
		TRY(post_send(client, i, lens[i]));
		sent(client, 1);
		received(child, 1);
		say("%s",
		    memcmp(memory(child) + MEMORY / 2, counting, lens[i] < 200 ? lens[i] : 200)
			    ? "other bytes"
			    : "the same bytes");
	}
	completions_rest(client);
	completions_rest(child);
}

static void data_both_ways(void)
{
	established_usual();
	post_recvs(client, 2);
	post_recvs(child, 2);
	TRY(post_send(child, 1, 10));
	TRY(post_send(client, 2, 20));
	TRY(post_send(child, 3, 30));
	TRY(post_send(client, 4, 40));
	sent(client, 2);
	sent(child, 2);
	received(client, 2);
	received(child, 2);
	show_qp_all(client);
	show_qp_all(child);
	show_qp_pair(client, child);
}

/* Before the client has looked: its QP is in INIT. */
static void data_before_response(void)
{
	open_scene(RDMA_PS_TCP);
	request(NULL);
	make_qp(child);
	post_recvs(client, 1);
	post_recvs(child, 1);
	MUST(rdma_accept(child, NULL));
	/* siw takes a message that overtakes its work queue for a part of the answer, and fails. */
	if (client->verbs->device->transport_type == IBV_TRANSPORT_IWARP)
		arrived(client_events);
	TRY(post_send(child, 2, 10));
	show_qp_all(child);
	next(client_events);
	sent(child, 1);
	received(client, 1);
	TRY(post_send(client, 4, 10));
	sent(client, 1);
	received(child, 1);
	next(server_events);
	show_qp_pair(client, child);
}

/* --- Nobody waits for the message. --- */

/* One more than there are receives, posted after a while. */
static void data_recv_late(void)
{
	established_usual();
	post_recvs(child, 1);
	TRY(post_send(client, 1, 10));
	TRY(post_send(client, 2, 20));
	received(child, 1);
	if (client->verbs->device->transport_type == IBV_TRANSPORT_IB) {
		pass_ms(200);
		TRY(post_recv(child, 20, 64));
		sent(client, 2);
		received(child, 1);
	} else {
		sent(client, 2);
	}
	rest(client_events);
	rest(server_events);
	show_qp(client);
	show_qp(child);
}

static void without_recv(uint8_t count, unsigned int ms)
{
	uint64_t start;

	established_with(rnr(7), rnr(count));
	post_recvs(client, 2);
	start = now_ms();
	TRY(post_send(client, 1, 10));
	sent(client, 1);
	if (client->verbs->device->transport_type == IBV_TRANSPORT_IB)
		show_lapse("ended", start, ms);
	received(client, 2);
	both_ended();
	show_qp(client);
	show_qp(child);
	completions_rest(client);
	completions_rest(child);
	rest(client_events);
	rest(server_events);
	TRY(rdma_disconnect(client));
	rest(server_events);
	TRY(rdma_disconnect(child));
	rest(client_events);
	completions_rest(child);
}

static void data_rnr_1(void)
{
	without_recv(1, 656);
}

/* The request's count is of the server's sends. */
static void data_rnr_server(void)
{
	established_with(rnr(0), rnr(7));
	TRY(post_send(child, 1, 10));
	sent(child, 1);
	both_ended();
	show_qp(child);
	show_qp(client);
	rest(client_events);
	rest(server_events);
}

/* --- Refused by the peer. --- */

static void data_bad_key(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

	established_usual();
	post_recvs(client, 1);
	post_recvs(child, 1);
	sge = (struct ibv_sge){(uintptr_t)memory(client), 8, memory_mr(client)->lkey};
	wr.wr.rdma.remote_addr = (uintptr_t)memory(child);
	wr.wr.rdma.rkey = memory_mr(child)->rkey ^ 0x5a5a00;
	TRY(post_wr(client, &wr));
	sent(client, 1);
	both_ended();
	completions_rest(client);
	completions_rest(child);
	show_qp(client);
	show_qp(child);
	rest(client_events);
	rest(server_events);
}

static void data_write_beyond(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

	established_usual();
	post_recvs(client, 1);
	post_recvs(child, 1);
	sge = (struct ibv_sge){(uintptr_t)memory(client), 8, memory_mr(client)->lkey};
	wr.wr.rdma.remote_addr = (uintptr_t)memory(child) + MEMORY - 7;
	wr.wr.rdma.rkey = memory_mr(child)->rkey;
	TRY(post_wr(client, &wr));
	sent(client, 1);
	both_ended();
	completions_rest(client);
	completions_rest(child);
	show_qp(client);
	show_qp(child);
	rest(client_events);
	rest(server_events);
}

/* --- What works. --- */

static void data_kinds(void)
{
	established_usual();
	TRY(post_op(client, 1, IBV_WR_RDMA_WRITE, 100, child));
	sent(client, 1);
	say("%s",
	    memcmp(memory(child) + MEMORY / 2, counting, 100) ? "other bytes" : "the same bytes");
	TRY(post_op(client, 2, IBV_WR_RDMA_READ, 100, child));
	sent(client, 1);
	TRY(post_op(client, 3, IBV_WR_RDMA_WRITE, 0, child));
	sent(client, 1);
	TRY(post_op(client, 4, IBV_WR_RDMA_READ, 0, child));
	sent(client, 1);
	completions_rest(client);
	completions_rest(child);
}

static void data_immediate(void)
{
	established_usual();
	post_recvs(child, 3);
	if (!TRY(post_op(client, 1, IBV_WR_SEND_WITH_IMM, 10, NULL))) {
		sent(client, 1);
		received(child, 1);
	}
	if (!TRY(post_op(client, 2, IBV_WR_RDMA_WRITE_WITH_IMM, 10, child))) {
		sent(client, 1);
		received(child, 1);
	}
	completions_rest(client);
	completions_rest(child);
	show_qp(client);
}

/* --- The end. --- */

static void flush_after(void (*end)(void))
{
	established_usual();
	post_recvs(client, 3);
	post_recvs(child, 2);
	TRY(post_send(client, 1, 8));
	sent(client, 1);
	received(child, 1);
	end();
}

static void by_client(void)
{
	TRY(rdma_disconnect(client));
	received(client, 3);
	if (client->verbs->device->transport_type != IBV_TRANSPORT_IB)
		TRY(post_send(client, 2, 8));
	completions_rest(client);
	arrived(server_events);
	stream_ended(child);
	say("the server has not looked");
	completions_rest(child);
	next(server_events);
	show_qp(child);
	completions_rest(child);
	TRY(rdma_disconnect(child));
	completions_rest(child);
	rest(client_events);
	rest(server_events);
	show_qp_all(client);
	show_qp_all(child);
}

static void data_flush(void)
{
	flush_after(by_client);
}

static void by_destroying(void)
{
	DESTROY(client);
	client = NULL;
	next(server_events);
	show_qp(child);
	completions_rest(child);
	TRY(rdma_disconnect(child));
	completions_rest(child);
	rest(server_events);
}

static void data_flush_destroyed(void)
{
	flush_after(by_destroying);
}

static void by_qp(void)
{
	rdma_destroy_qp(client);
	pass_ms(100);
	stream_ended(child);
	show_qp(child);
	completions_rest(child);
	rest(server_events);
	rest(client_events);
	TRY(rdma_disconnect(client));
	rest(server_events);
	completions_rest(child);
	TRY(rdma_disconnect(child));
	completions_rest(child);
	rest(client_events);
}

static void data_flush_qp_destroyed(void)
{
	flush_after(by_qp);
}

/* --- Receives that are shared. --- */

/* Two connections, one SRQ. */
static void data_srq(void)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct rdma_conn_param with = param();
	struct ibv_recv_wr wr, *bad;
	struct ibv_sge sge;
	struct ibv_srq *srq;
	unsigned int i;

	open_scene(RDMA_PS_TCP);
	request(NULL);
	srq = ibv_create_srq(child->pd, &srq_attr);
	if (!srq)
		end_failed("ibv_create_srq");
	attr.srq = srq;
	TRY(rdma_create_qp(child, NULL, &attr));
	TRY(rdma_accept(child, &with));
	next(client_events);
	next(server_events);
	show_qp_all(child);
	for (i = 0; i < 3; i++) {
		sge = (struct ibv_sge){(uintptr_t)memory(child), 64, memory_mr(child)->lkey};
		wr = (struct ibv_recv_wr){.wr_id = 30 + i, .sg_list = &sge, .num_sge = 1};
		TRY(ibv_post_srq_recv(srq, &wr, &bad));
	}
	MUST(post_send(client, 1, 8));
	sent(client, 1);
	received(child, 1);
	TRY(rdma_disconnect(client));
	next(server_events);
	TRY(rdma_disconnect(child));
	completions_rest(child);
	rdma_destroy_qp(child);
	TRY(ibv_destroy_srq(srq));
}

const struct scenario data_scenarios[] = {
	{"data-send", data_send, "messages of several lengths", 0},
	{"data-both-ways", data_both_ways, "messages both ways, and all that the QPs are", 0},
	{"data-before-response", data_before_response, "the client has not looked for the answer",
	 0},
	{"data-recv-late", data_recv_late, "the receive is posted late", 0},
	{"data-rnr-1", data_rnr_1, "no receive, rnr_retry_count 1", 0},
	{"data-rnr-server", data_rnr_server, "the server's message finds no receive", 0},
	{"data-bad-key", data_bad_key, "RDMA write with a key that is none", 0},
	{"data-write-beyond", data_write_beyond, "RDMA write beyond the memory", 0},
	{"data-kinds", data_kinds, "RDMA write and read", 0},
	{"data-immediate", data_immediate, "immediate data", 0},
	{"data-flush", data_flush, "what is flushed when the client disconnects", 0},
	{"data-flush-destroyed", data_flush_destroyed,
	 "what is flushed when the client destroys its id", 0},
	{"data-flush-qp-destroyed", data_flush_qp_destroyed,
	 "what is flushed when the client destroys its QP", 0},
	{"data-srq", data_srq, "messages into an SRQ", 0},
	{NULL, NULL, NULL, 0},
};
