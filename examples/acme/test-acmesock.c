/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-acmesock.c - a test of a provider through rdma_* calls: both ends in one
 * thread, one event channel for each.  It knows two statuses of REJECTED and
 * that 250 bytes of private data are too many, and nothing else of acmesock.
 * So it runs on the simulator, too:
 *
 *	polycm run --provider acmesock ./test-acmesock
 *	polycm run --provider sim ./test-acmesock
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

/* What the rules of the provider say, see `polycm info'. */
#define CONSUMER_REJECT	28
#define NOBODY_LISTENS	8
#define TOO_LONG	250

#define CHECK(condition)								\
	do {										\
		errno = 0;								\
		if (!(condition)) {							\
			fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__,		\
				#condition, strerror(errno));				\
			exit(1);							\
		}									\
	} while (0)

struct end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;		/* of the connection */
	struct ibv_mr *mr;
	char buffer[64];
};

static struct end client, server;
static struct rdma_cm_id *listener;

/* The next event is of this type; its status and private data. */
static int expect(struct end *end, enum rdma_cm_event_type type, const char *data)
{
	struct rdma_cm_event *event;
	int status;

	CHECK(!rdma_get_cm_event(end->channel, &event));
	if (event->event != type)
		fprintf(stderr, "%s instead of %s\n", rdma_event_str(event->event),
			rdma_event_str(type));
	CHECK(event->event == type);
	if (data)
		CHECK(event->param.conn.private_data_len >= strlen(data) &&
		      !memcmp(event->param.conn.private_data, data, strlen(data)));
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		end->id = event->id;
	status = event->status;
	CHECK(!rdma_ack_cm_event(event));
	return status;
}

static void expect_rejected(const char *data, int wanted)
{
	int status = expect(&client, RDMA_CM_EVENT_REJECTED, data);

	if (status != wanted)
		fprintf(stderr, "status %d instead of %d\n", status, wanted);
	CHECK(status == wanted);
}

static void add_qp(struct end *end)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	CHECK(!rdma_create_qp(end->id, NULL, &attr));
	CHECK((end->mr = rdma_reg_msgs(end->id, end->buffer, sizeof(end->buffer))));
	CHECK(!rdma_post_recv(end->id, NULL, end->buffer, sizeof(end->buffer), end->mr));
}

static void destroy(struct end *end)
{
	if (end->id->qp) {
		rdma_destroy_qp(end->id);
		CHECK(!rdma_dereg_mr(end->mr));
	}
	CHECK(!rdma_destroy_id(end->id));
}

static void resolve(uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(!rdma_create_id(client.channel, &client.id, NULL, RDMA_PS_TCP));
	CHECK(!rdma_resolve_addr(client.id, NULL, (struct sockaddr *)&to, 1000));
	CHECK(!expect(&client, RDMA_CM_EVENT_ADDR_RESOLVED, NULL));
	CHECK(!rdma_resolve_route(client.id, 1000));
	CHECK(!expect(&client, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL));
}

static int call_with(int (*call)(struct rdma_cm_id *, struct rdma_conn_param *), struct end *end,
		     const char *data)
{
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = (uint8_t)strlen(data),
		.rnr_retry_count = 7,
	};

	return call(end->id, &param);
}

static void connect_both(uint16_t port)
{
	resolve(port);
	add_qp(&client);
	CHECK(!call_with(rdma_connect, &client, "hello"));
	CHECK(!expect(&server, RDMA_CM_EVENT_CONNECT_REQUEST, "hello"));
	add_qp(&server);
	CHECK(!call_with(rdma_accept, &server, "welcome"));
	CHECK(!expect(&client, RDMA_CM_EVENT_ESTABLISHED, "welcome"));
	CHECK(!expect(&server, RDMA_CM_EVENT_ESTABLISHED, NULL));
}

static void disconnect_both(void)
{
	CHECK(!rdma_disconnect(client.id));
	CHECK(!expect(&server, RDMA_CM_EVENT_DISCONNECTED, NULL));
	CHECK(!rdma_disconnect(server.id));
	CHECK(!expect(&client, RDMA_CM_EVENT_DISCONNECTED, NULL));
}

static void connects_sends_and_disconnects(uint16_t port)
{
	struct ibv_wc wc;

	connect_both(port);
	strcpy(client.buffer + 32, "ping");
	CHECK(!rdma_post_send(client.id, NULL, client.buffer + 32, 5, client.mr, 0));
	CHECK(rdma_get_recv_comp(server.id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(wc.byte_len == 5 && !strcmp(server.buffer, "ping"));
	CHECK(rdma_get_send_comp(client.id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);

	disconnect_both();
	/* The receive that was posted and never used. */
	CHECK(rdma_get_recv_comp(client.id, &wc) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR);
	destroy(&client);
	destroy(&server);
}

static void a_message_that_nobody_receives_is_lost(uint16_t port)
{
	struct ibv_wc wc;

	connect_both(port);
	for (int i = 0; i < 2; i++)
		CHECK(!rdma_post_send(client.id, NULL, client.buffer + 32, 5, client.mr, 0));
	CHECK(rdma_get_recv_comp(server.id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(rdma_get_send_comp(client.id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	disconnect_both();
	CHECK(rdma_get_send_comp(client.id, &wc) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR);
	CHECK(!ibv_poll_cq(server.id->recv_cq, 1, &wc));
	destroy(&client);
	destroy(&server);
}

static void a_reject_has_reason_and_data(uint16_t port)
{
	resolve(port);
	add_qp(&client);
	CHECK(!call_with(rdma_connect, &client, "hello"));
	CHECK(!expect(&server, RDMA_CM_EVENT_CONNECT_REQUEST, "hello"));
	CHECK(!rdma_reject(server.id, "busy", 4));
	expect_rejected("busy", CONSUMER_REJECT);
	destroy(&client);
	CHECK(!rdma_destroy_id(server.id));
}

static void an_id_that_ends_rejects(uint16_t port)
{
	resolve(port);
	add_qp(&client);
	CHECK(!call_with(rdma_connect, &client, "hello"));
	CHECK(!expect(&server, RDMA_CM_EVENT_CONNECT_REQUEST, "hello"));
	CHECK(!rdma_destroy_id(server.id));
	expect_rejected(NULL, CONSUMER_REJECT);
	destroy(&client);
}

static void nobody_listens(uint16_t port)
{
	resolve(port);
	add_qp(&client);
	CHECK(!call_with(rdma_connect, &client, ""));
	expect_rejected(NULL, NOBODY_LISTENS);
	destroy(&client);
}

static void calls_in_the_wrong_state_are_refused(uint16_t port)
{
	resolve(port);
	add_qp(&client);
	CHECK(rdma_resolve_route(client.id, 1000) && errno == EINVAL);
	CHECK(rdma_disconnect(client.id) && errno == EINVAL);
	CHECK(rdma_reject(client.id, NULL, 0) && errno == EINVAL);
	CHECK(rdma_listen(client.id, 1) && errno == EINVAL);
	destroy(&client);
}

/* A connect that failed changes nothing; an accept that failed rejects the peer. */
static void data_that_is_too_long_is_refused(uint16_t port)
{
	char data[TOO_LONG + 1];

	memset(data, 'x', TOO_LONG);
	data[TOO_LONG] = '\0';
	resolve(port);
	add_qp(&client);
	CHECK(call_with(rdma_connect, &client, data) && errno == EINVAL);
	CHECK(!call_with(rdma_connect, &client, "hello"));
	CHECK(!expect(&server, RDMA_CM_EVENT_CONNECT_REQUEST, "hello"));
	add_qp(&server);
	CHECK(call_with(rdma_accept, &server, data) && errno == EINVAL);
	expect_rejected(NULL, CONSUMER_REJECT);
	destroy(&client);
	destroy(&server);
}

int main(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	uint16_t port;

	CHECK((client.channel = rdma_create_event_channel()));
	CHECK((server.channel = rdma_create_event_channel()));
	CHECK(!rdma_create_id(server.channel, &listener, NULL, RDMA_PS_TCP));
	CHECK(!rdma_bind_addr(listener, (struct sockaddr *)&any));
	CHECK(!rdma_listen(listener, 4));
	port = ntohs(rdma_get_src_port(listener));

	connects_sends_and_disconnects(port);
	connects_sends_and_disconnects(port);
	a_message_that_nobody_receives_is_lost(port);
	a_reject_has_reason_and_data(port);
	an_id_that_ends_rejects(port);
	nobody_listens((uint16_t)(port - 1));
	calls_in_the_wrong_state_are_refused(port);
	data_that_is_too_long_is_refused(port);

	CHECK(!rdma_destroy_id(listener));
	rdma_destroy_event_channel(client.channel);
	rdma_destroy_event_channel(server.channel);
	puts("passed");
	return 0;
}
