/* SPDX-License-Identifier: BSD-2-Clause */
/* qp.c - scenarios of rdma_create_qp(), and of what the steps of a connection do to a QP. */
#include <rdma/rdma_verbs.h>

#include "scene.h"

static struct ibv_qp_init_attr usual(void)
{
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
}

static const char *yes(const void *pointer)
{
	return pointer ? "yes" : "no";
}

static void show_resources(struct rdma_cm_id *id)
{
	say("pd %s, send_cq %s channel %s, recv_cq %s channel %s, srq %s", yes(id->pd),
	    yes(id->send_cq), yes(id->send_cq_channel), yes(id->recv_cq), yes(id->recv_cq_channel),
	    yes(id->srq));
	if (id->qp)
		say("QP type %d, its pd %s, its CQs %s, its srq %s, context %s",
		    (int)id->qp->qp_type, id->qp->pd == id->pd ? "the id's" : "another",
		    id->qp->send_cq == id->send_cq && id->qp->recv_cq == id->recv_cq ? "the id's"
										     : "others",
		    yes(id->qp->srq), id->qp->qp_context == id ? "the id" : "another");
}

/* --- What rdma_create_qp() takes. --- */

static void qp_usual(void)
{
	struct ibv_qp_init_attr attr = usual();

	open_scene(RDMA_PS_TCP);
	client_finds();
	show_resources(client);
	TRY(rdma_create_qp(client, NULL, &attr));
	show_resources(client);
	say("capacities %s", attr.cap.max_send_wr >= 4 && attr.cap.max_recv_wr >= 4 &&
					     attr.cap.max_send_sge && attr.cap.max_recv_sge
				     ? "suffice" : "do not");
	show_qp(client);
	say("a second one");
	attr = usual();
	TRY(rdma_create_qp(client, NULL, &attr));
	rdma_destroy_qp(client);
	show_resources(client);
	show_qp(client);
	attr = usual();
	TRY(rdma_create_qp(client, NULL, &attr));
	show_resources(client);
}

static void qp_too_early(void)
{
	struct ibv_qp_init_attr attr = usual();

	open_scene(RDMA_PS_TCP);
	TRY_CRASH(rdma_create_qp(client, NULL, &attr));
}

static void qp_on_bound(void)
{
	struct ibv_qp_init_attr attr = usual();

	open_scene(RDMA_PS_TCP);
	MUST(rdma_bind_addr(server, at(SERVER4, 0)));
	TRY(rdma_create_qp(server, NULL, &attr));
	show_qp(server);
	TRY(rdma_listen(server, 0));
	show_qp(server);
}

/* Everything the program's own; the id has it, but does not destroy it. */
static void qp_own_resources(void)
{
	struct ibv_qp_init_attr attr = usual();
	struct ibv_cq *send, *receive;
	struct ibv_pd *pd;

	open_scene(RDMA_PS_TCP);
	client_finds();
	pd = ibv_alloc_pd(client->verbs);
	send = ibv_create_cq(client->verbs, 4, NULL, NULL, 0);
	receive = ibv_create_cq(client->verbs, 4, NULL, NULL, 0);
	attr.send_cq = send;
	attr.recv_cq = receive;
	TRY(rdma_create_qp(client, pd, &attr));
	say("QP's pd %s, CQs %s and %s", client->qp->pd == pd ? "given" : "another",
	    client->qp->send_cq == send ? "given" : "another",
	    client->qp->recv_cq == receive ? "given" : "another");
	show_resources(client);
	say("id's pd %s, send_cq %s", client->pd == pd ? "given" : "another",
	    client->send_cq == send ? "given" : "another");
	rdma_destroy_qp(client);
	show_resources(client);
	TRY(ibv_destroy_cq(send));
	TRY(ibv_destroy_cq(receive));
	TRY(ibv_dealloc_pd(pd));
}

static void qp_one_cq(void)
{
	struct ibv_qp_init_attr attr = usual();
	struct ibv_cq *receive;

	open_scene(RDMA_PS_TCP);
	client_finds();
	receive = ibv_create_cq(client->verbs, 4, NULL, NULL, 0);
	attr.recv_cq = receive;
	TRY(rdma_create_qp(client, NULL, &attr));
	show_resources(client);
	rdma_destroy_qp(client);
	TRY(ibv_destroy_cq(receive));
}

/* Of the same device, opened a second time. */
static void qp_foreign_pd(void)
{
	struct ibv_qp_init_attr attr = usual();
	struct ibv_context *other;
	struct ibv_pd *pd;

	open_scene(RDMA_PS_TCP);
	client_finds();
	other = ibv_open_device(client->verbs->device);
	if (!other)
		end_failed("ibv_open_device");
	pd = ibv_alloc_pd(other);
	TRY(rdma_create_qp(client, pd, &attr));
	show_qp(client);
	TRY(ibv_dealloc_pd(pd));
	TRY(ibv_close_device(other));
}

static void qp_srq(void)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = usual();
	struct rdma_conn_param with = param();
	struct ibv_srq *srq;

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	srq = ibv_create_srq(client->pd, &srq_attr);
	if (!srq)
		end_failed("ibv_create_srq");
	attr.srq = srq;
	TRY(rdma_create_qp(client, NULL, &attr));
	show_resources(client);
	TRY(rdma_connect(client, &with));
	next(server_events);
	TRY(rdma_reject(child, NULL, 0));
	next(client_events);
	rdma_destroy_qp(client);
	TRY(ibv_destroy_srq(srq));
}

static void qp_of_id(void)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = usual();

	open_scene(RDMA_PS_TCP);
	client_finds();
	TRY(rdma_create_srq(client, NULL, &srq_attr));
	show_resources(client);
	TRY(rdma_create_qp(client, NULL, &attr));
	show_resources(client);
	rdma_destroy_qp(client);
	rdma_destroy_srq(client);
	show_resources(client);
}

static void qp_other_type(void)
{
	struct ibv_qp_init_attr attr = usual();

	open_scene(RDMA_PS_TCP);
	client_finds();
	attr.qp_type = IBV_QPT_UD;
	TRY(rdma_create_qp(client, NULL, &attr));
	attr = usual();
	attr.qp_type = IBV_QPT_UC;
	TRY(rdma_create_qp(client, NULL, &attr));
	show_qp(client);
}

static void qp_datagram(void)
{
	struct ibv_qp_init_attr attr = usual();
	struct rdma_cm_id *id;

	open_channels();
	id = make_id("udp", client_events, RDMA_PS_UDP);
	MUST(rdma_bind_addr(id, at(CLIENT4, 0)));
	TRY(rdma_create_qp(id, NULL, &attr));
	attr = usual();
	attr.qp_type = IBV_QPT_UD;
	TRY(rdma_create_qp(id, NULL, &attr));
	show_qp_attr(id);
}

/* Far more than any device has. */
static void qp_too_big(void)
{
	struct ibv_qp_init_attr attr = usual();

	open_scene(RDMA_PS_TCP);
	client_finds();
	attr.cap.max_send_wr = 100000000;
	say("%s", rdma_create_qp(client, NULL, &attr) ? "refused" : "taken");
	show_resources(client);
	attr = usual();
	attr.cap.max_send_sge = 10000;
	say("%s", rdma_create_qp(client, NULL, &attr) ? "refused" : "taken");
	attr = usual();
	TRY(rdma_create_qp(client, NULL, &attr));
}

static void qp_ex(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	open_scene(RDMA_PS_TCP);
	client_finds();
	TRY(rdma_create_qp_ex(client, &attr));
	show_resources(client);
	rdma_destroy_qp(client);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr.pd = client->pd;
	attr.send_cq = attr.recv_cq = NULL;
	TRY(rdma_create_qp_ex(client, &attr));
	show_resources(client);
}

/* --- A connection's steps. --- */

static void qp_steps(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_finds();
	make_qp(client);
	show_qp(client);
	MUST(rdma_resolve_route(client, 2000));
	expect(client_events, ROUTE_RESOLVED);
	TRY(rdma_connect(client, &with));
	expect(server_events, CONNECT_REQUEST);
	show_qp(client);
	make_qp(child);
	show_qp(child);
	TRY(rdma_accept(child, &with));
	show_qp_attr(child);
	next(client_events);
	show_qp_attr(client);
	next(server_events);
	TRY(rdma_disconnect(client));
	show_qp(client);
	next(server_events);
	show_qp(child);
	TRY(rdma_disconnect(child));
	show_qp(child);
	next(client_events);
	show_qp(client);
}

/* What each side asks for, and what both QPs are then. */
static void connect_with(struct rdma_conn_param asked, struct rdma_conn_param answered)
{
	open_scene(RDMA_PS_TCP);
	request(&asked);
	make_qp(child);
	show_qp(child);
	TRY(rdma_accept(child, &answered));
	show_qp_attr(child);
	next(client_events);
	show_qp_attr(client);
	next(server_events);
}

static void qp_retries(void)
{
	connect_with((struct rdma_conn_param){ .responder_resources = 1, .initiator_depth = 1,
					       .retry_count = 3, .rnr_retry_count = 2 },
		     (struct rdma_conn_param){ .responder_resources = 1, .initiator_depth = 1,
					       .retry_count = 5, .rnr_retry_count = 4 });
}

static void qp_retries_zero(void)
{
	connect_with((struct rdma_conn_param){ .responder_resources = 1, .initiator_depth = 1 },
		     (struct rdma_conn_param){ .responder_resources = 1, .initiator_depth = 1 });
}

static void qp_retries_too_many(void)
{
	connect_with((struct rdma_conn_param){ .responder_resources = 1, .initiator_depth = 1,
					       .retry_count = 8, .rnr_retry_count = 255 },
		     (struct rdma_conn_param){ .responder_resources = 1, .initiator_depth = 1,
					       .retry_count = 255, .rnr_retry_count = 8 });
}

static void qp_depths_unlike(void)
{
	connect_with((struct rdma_conn_param){ .responder_resources = 2, .initiator_depth = 6,
					       .retry_count = 7, .rnr_retry_count = 7 },
		     (struct rdma_conn_param){ .responder_resources = 4, .initiator_depth = 1,
					       .retry_count = 7, .rnr_retry_count = 7 });
}

static void qp_no_reads(void)
{
	connect_with((struct rdma_conn_param){ .initiator_depth = 4, .retry_count = 7 },
		     (struct rdma_conn_param){ .responder_resources = 4, .retry_count = 7 });
}

static void qp_ack_timeout(void)
{
	uint8_t timeout = 14;

	open_scene(RDMA_PS_TCP);
	TRY(rdma_set_option(client, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	established();
	show_route(client);
	show_qp_attr(client);
	show_qp_attr(child);
}

/* The new one takes the place of the one the request spoke of. */
static void qp_made_again(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	rdma_destroy_qp(client);
	make_qp(client);
	TRY(rdma_connect(client, &with));
	next(server_events);
	make_qp(child);
	rdma_destroy_qp(child);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	next(client_events);
	next(server_events);
	show_qp(client);
	show_qp(child);
}

static void show_new_qp(void)
{
	make_qp(client);
	show_qp_attr(client);
	quiet();
	DESTROY(client);
	loud();
}

/* What it has before anybody has said so. */
static void qp_unconnected(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	client_finds();
	show_new_qp();
	client = make_id("client", client_events, RDMA_PS_TCP);
	client_resolves();
	make_qp(client);
	rdma_connect(client, &with);
	if (client->verbs->device->transport_type == IBV_TRANSPORT_IB)
		next(client_events);
	show_qp_attr(client);
}

static int move_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	return errno ? -1 : 0;
}

/* Moves that need no attributes, of a QP that is connected, and of one that has failed. */
static void qp_moves(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	TRY(move_to(client->qp, IBV_QPS_RTS));
	show_qp(client);
	if (client->verbs->device->transport_type != IBV_TRANSPORT_IB) {
		TRY(move_to(client->qp, IBV_QPS_INIT));
		TRY(move_to(client->qp, IBV_QPS_RTR));
		TRY(move_to(client->qp, IBV_QPS_RESET));
		show_qp(client);
	}
	rest(server_events);
	TRY(move_to(client->qp, IBV_QPS_ERR));
	pass_ms(100);
	show_qp(client);
	TRY(move_to(client->qp, IBV_QPS_RTS));
	TRY(move_to(client->qp, IBV_QPS_SQD));
	TRY(move_to(client->qp, IBV_QPS_RESET));
	pass_ms(100);
	show_qp(client);
	rest(client_events);
	rest(server_events);
}

/* The client's, while its request waits; and after the answer. */
static void qp_error_connecting(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	request(NULL);
	TRY(move_to(client->qp, IBV_QPS_ERR));
	rest(client_events);
	show_qp(client);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	rest(client_events);
	rest(server_events);
	show_qp(client);
}

static void qp_destroyed_connecting(void)
{
	open_scene(RDMA_PS_TCP);
	request(NULL);
	rdma_destroy_qp(client);
	rest(client_events);
	TRY(rdma_reject(child, NULL, 0));
	rest(client_events);
	rest(server_events);
}

static void qp_no_type(void)
{
	static const int types[] = { 0, 1, 5, 99 };
	struct ibv_qp_init_attr attr;
	size_t i;

	open_scene(RDMA_PS_TCP);
	client_finds();
	for (i = 0; i < ARRAY_LEN(types); i++) {
		attr = (struct ibv_qp_init_attr){
			.cap = { 1, 1, 1, 1, 0 },
			.qp_type = (enum ibv_qp_type)types[i],
		};
		say("type %d", types[i]);
		TRY(rdma_create_qp(client, NULL, &attr));
	}
}

const struct scenario qp_scenarios[] = {
	{ "qp", qp_usual, "the usual way, a second one, again", 0 },
	{ "qp-too-early", qp_too_early, "no device yet", 0 },
	{ "qp-on-bound", qp_on_bound, "on a bound id that listens then", 0 },
	{ "qp-own-resources", qp_own_resources, "the program's PD and CQs", 0 },
	{ "qp-one-cq", qp_one_cq, "one CQ given", 0 },
	{ "qp-foreign-pd", qp_foreign_pd, "PD of another context", 0 },
	{ "qp-srq", qp_srq, "an SRQ, and the request's srq", 0 },
	{ "qp-srq-of-id", qp_of_id, "rdma_create_srq() before", 0 },
	{ "qp-other-type", qp_other_type, "UD and UC on RDMA_PS_TCP", 0 },
	{ "qp-datagram", qp_datagram, "RC and UD on RDMA_PS_UDP", 0 },
	{ "qp-too-big", qp_too_big, "more than the device has", 0 },
	{ "qp-ex", qp_ex, "rdma_create_qp_ex() without and with PD", 0 },
	{ "qp-steps", qp_steps, "a QP through a connection", 0 },
	{ "qp-retries", qp_retries, "whose retries count where", 0 },
	{ "qp-retries-zero", qp_retries_zero, "no retries", 0 },
	{ "qp-retries-too-many", qp_retries_too_many, "retries 8 and 255", 0 },
	{ "qp-depths", qp_depths_unlike, "depths that do not fit each other", 0 },
	{ "qp-no-reads", qp_no_reads, "RDMA reads in one direction only", 0 },
	{ "qp-ack-timeout", qp_ack_timeout, "ACK_TIMEOUT set by the client", 0 },
	{ "qp-unconnected", qp_unconnected, "attributes before a connection", 0 },
	{ "qp-moves", qp_moves, "moved by the program", 0 },
	{ "qp-error-connecting", qp_error_connecting, "moved to ERR while the request waits", 0 },
	{ "qp-destroyed-connecting", qp_destroyed_connecting, "destroyed while the request waits", 0 },
	{ "qp-no-type", qp_no_type, "types that there are not", 0 },
	{ "qp-made-again", qp_made_again, "destroyed and made again before connecting", 0 },
	{ NULL, NULL, NULL, 0 },
};
