/* SPDX-License-Identifier: BSD-2-Clause */
/* tests/api/pair.c - see pair.h. */
#include "pair.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

const char *const transport_name[NUM_TRANSPORTS] = { "roce", "ib", "iwarp" };
const char *pair_kind[NUM_TRANSPORTS] = { "roce", "ib", "iwarp" };

const uint8_t pair_data[256] = {
#define D8(n) (n) + 1, (n) + 2, (n) + 3, (n) + 4, (n) + 5, (n) + 6, (n) + 7, (uint8_t)((n) + 8)
#define D64(n) D8(n), D8((n) + 8), D8((n) + 16), D8((n) + 24), D8((n) + 32), D8((n) + 40), \
	       D8((n) + 48), D8((n) + 56)
	D64(0), D64(64), D64(128), D64(192),
};

/* Descriptors open before the test; what the library keeps open for good is counted once. */
static unsigned int descriptors_before;

static unsigned int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int num = 0;

	assert_non_null(dir);
	while (readdir(dir))
		num++;
	closedir(dir);
	return num;
}

int pair_group_setup(void **state)
{
	(void)state;
	return setenv("POLYCM_PROVIDER", "sim", 1) || setenv("POLYCM_LOG", "error", 0);
}

struct sockaddr_in pair_address(const char *text, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	assert_int_equal(inet_pton(AF_INET, text, &in.sin_addr), 1);
	return in;
}

void pair_open_nodes(enum transport transport, struct polycm_sim_node **ret_server,
		     struct polycm_sim_node **ret_client)
{
	const char *kind = pair_kind[transport];

	assert_int_equal(polycm_sim_create(42), 0);
	assert_int_equal(polycm_sim_node_add("server", kind, SERVER_ADDRESS "/24", ret_server), 0);
	assert_int_equal(polycm_sim_node_add("client", kind, CLIENT_ADDRESS "/24", ret_client), 0);
	assert_int_equal(polycm_sim_node_use(*ret_client), 0);
}

void pair_close_nodes(void)
{
	struct polycm_sim_counts counts = { .size = sizeof(counts) };

	assert_int_equal(polycm_sim_live(&counts), 0);
	assert_int_equal(counts.ids, 0);
	assert_int_equal(counts.ports, 0);
	assert_int_equal(counts.contexts, 0);
	assert_int_equal(counts.pds, 0);
	assert_int_equal(counts.mrs, 0);
	assert_int_equal(counts.mws, 0);
	assert_int_equal(counts.comp_channels, 0);
	assert_int_equal(counts.cqs, 0);
	assert_int_equal(counts.srqs, 0);
	assert_int_equal(counts.qps, 0);
	assert_int_equal(counts.ahs, 0);
	assert_int_equal(counts.tds, 0);
	assert_int_equal(counts.dms, 0);
	assert_int_equal(counts.xrcds, 0);
	assert_int_equal(polycm_sim_destroy(), 0);
}

void pair_open(struct pair *pair, enum transport transport, enum rdma_port_space ps)
{
	struct sockaddr_in at = pair_address(SERVER_ADDRESS, SERVER_PORT);

	memset(pair, 0, sizeof(*pair));
	pair->transport = transport;
	pair->ps = ps;
	if (!descriptors_before) {	/* what the simulator opens once */
		assert_int_equal(polycm_sim_create(42), 0);
		assert_int_equal(polycm_sim_destroy(), 0);
	}
	descriptors_before = open_descriptors();
	pair_open_nodes(transport, &pair->server_node, &pair->client_node);
	pair->server_channel = rdma_create_event_channel();
	assert_non_null(pair->server_channel);
	pair->client_channel = rdma_create_event_channel();
	assert_non_null(pair->client_channel);
	assert_int_equal(rdma_create_id(pair->server_channel, &pair->listener, NULL, ps), 0);
	assert_int_equal(rdma_bind_addr(pair->listener, (struct sockaddr *)&at), 0);
	assert_int_equal(rdma_listen(pair->listener, 8), 0);
	assert_int_equal(rdma_create_id(pair->client_channel, &pair->client, NULL, ps), 0);
}

static void close_id(struct rdma_cm_id **id)
{
	if (!*id)
		return;
	if ((*id)->qp)
		rdma_destroy_qp(*id);
	assert_int_equal(rdma_destroy_id(*id), 0);
	*id = NULL;
}

void pair_close(struct pair *pair)
{
	close_id(&pair->client);
	close_id(&pair->server);
	close_id(&pair->listener);
	if (pair->client_cq)
		assert_int_equal(ibv_destroy_cq(pair->client_cq), 0);
	if (pair->server_cq)
		assert_int_equal(ibv_destroy_cq(pair->server_cq), 0);
	rdma_destroy_event_channel(pair->client_channel);
	rdma_destroy_event_channel(pair->server_channel);
	pair_close_nodes();
	assert_int_equal(open_descriptors(), descriptors_before);
}

void pair_resolve(struct pair *pair)
{
	struct sockaddr_in to = pair_address(SERVER_ADDRESS, SERVER_PORT);

	assert_int_equal(rdma_resolve_addr(pair->client, NULL, (struct sockaddr *)&to, 2000), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(pair->client, 2000), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

static void make_qp(struct pair *pair, struct rdma_cm_id *id, struct ibv_cq **cq)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = pair->ps == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	*cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	assert_non_null(*cq);
	attr.send_cq = attr.recv_cq = *cq;
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
}

void pair_client_qp(struct pair *pair)
{
	make_qp(pair, pair->client, &pair->client_cq);
}

void pair_open_resolved(struct pair *pair, enum transport transport)
{
	pair_open(pair, transport, RDMA_PS_TCP);
	pair_resolve(pair);
	pair_client_qp(pair);
}

void pair_server_qp(struct pair *pair)
{
	make_qp(pair, pair->server, &pair->server_cq);
}

struct rdma_conn_param pair_param(const void *data, size_t len)
{
	return (struct rdma_conn_param) {
		.private_data = data,
		.private_data_len = (uint8_t)len,
		.responder_resources = 4,
		.initiator_depth = 3,
		.retry_count = 5,
		.rnr_retry_count = 6,
		.qp_num = 0x1234,
	};
}

struct rdma_cm_event *pair_request(struct pair *pair, struct rdma_conn_param *param)
{
	struct rdma_cm_event *event;

	assert_int_equal(rdma_connect(pair->client, param), 0);
	event = pair_expect(pair->server_channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_ptr_equal(event->listen_id, pair->listener);
	pair->server = event->id;
	return event;
}

void pair_connect(struct pair *pair)
{
	struct rdma_conn_param param = pair_param(NULL, 0);

	pair_resolve(pair);
	pair_client_qp(pair);
	rdma_ack_cm_event(pair_request(pair, &param));
	pair_server_qp(pair);
	assert_int_equal(rdma_accept(pair->server, &param), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pair_take(pair->server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
}

struct rdma_cm_event *pair_expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
				  int status)
{
	struct rdma_cm_event *event = NULL;

	if (rdma_get_cm_event(channel, &event))
		fail_msg("rdma_get_cm_event: %s while waiting for %s", strerror(errno),
			 rdma_event_str(type));
	if (event->event != type || event->status != status)
		fail_msg("%s with status %d instead of %s with %d", rdma_event_str(event->event),
			 event->status, rdma_event_str(type), status);
	return event;
}

void pair_take(struct rdma_event_channel *channel, enum rdma_cm_event_type type, int status)
{
	rdma_ack_cm_event(pair_expect(channel, type, status));
}

void pair_none(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event = NULL;
	int flags = fcntl(channel->fd, F_GETFL);

	assert_int_equal(fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
	if (!rdma_get_cm_event(channel, &event))
		fail_msg("%s with status %d instead of nothing", rdma_event_str(event->event),
			 event->status);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(fcntl(channel->fd, F_SETFL, flags), 0);
}

uint64_t pair_now(void)
{
	uint64_t now;

	assert_int_equal(polycm_sim_now(&now), 0);
	return now;
}
