/* SPDX-License-Identifier: BSD-2-Clause */
/* tests/api/steps.c - see steps.h. */
#include "steps.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

const char *const step_name[NUM_STEPS] = {
	[STEP_IDLE] = "idle",
	[STEP_BOUND] = "bound",
	[STEP_BOUND_ANY] = "bound to any",
	[STEP_ADDR_QUERY] = "address query",
	[STEP_ADDR_RESOLVED] = "address resolved",
	[STEP_ROUTE_QUERY] = "route query",
	[STEP_ROUTE_RESOLVED] = "route resolved",
	[STEP_CONNECTING] = "connecting",
	[STEP_RESPONSE] = "response received",
	[STEP_REJECTED] = "rejected",
	[STEP_ACTIVE] = "established, active",
	[STEP_LISTENING] = "listening",
	[STEP_REQUEST] = "request received",
	[STEP_ACCEPTED] = "accepted",
	[STEP_PASSIVE] = "established, passive",
	[STEP_DISCONNECTED] = "disconnected by the peer",
};

bool step_exists(enum transport transport, enum step step)
{
	return transport != IWARP || (step != STEP_RESPONSE && step != STEP_ACCEPTED);
}

struct sockaddr_storage step_addr(const char *text, uint16_t port)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_storage addr;

	memset(&addr, 0, sizeof(addr));
	if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
		memcpy(&addr, &in, sizeof(in));
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
		memcpy(&addr, &in6, sizeof(in6));
	}
	return addr;
}

struct sockaddr *step_sa(const char *text, uint16_t port)
{
	static struct sockaddr_storage addrs[4];
	static unsigned int next;
	struct sockaddr_storage *addr = &addrs[next++ % ARRAY_LEN(addrs)];

	*addr = step_addr(text, port);
	return (struct sockaddr *)addr;
}

enum ibv_qp_state step_qp_state(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_non_null(id->qp);
	assert_int_equal(ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

void step_exec_self(const char *argument)
{
	char path[PATH_MAX];
	/* Not executed as that: it is another program where an emulator runs this one. */
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (len <= 0)
		return;
	path[len] = '\0';
	execl(path, path, argument, (char *)NULL);
}

void step_request(struct pair *pair, enum transport transport, enum rdma_port_space ps, bool qps)
{
	struct rdma_conn_param param = pair_param(NULL, 0);

	pair_open(pair, transport, ps);
	pair_resolve(pair);
	if (qps || transport == IWARP)
		pair_client_qp(pair);
	rdma_ack_cm_event(pair_request(pair, &param));
	if (qps || transport == IWARP)
		pair_server_qp(pair);
}

static void before_connect(struct pair *pair, enum step step)
{
	struct sockaddr *server;

	if (step == STEP_BOUND)
		assert_int_equal(rdma_bind_addr(pair->client, step_sa(CLIENT_ADDRESS, 0)), 0);
	if (step == STEP_BOUND_ANY)
		assert_int_equal(rdma_bind_addr(pair->client, step_sa("0.0.0.0", 0)), 0);
	if (step < STEP_ADDR_QUERY)
		return;
	server = step_sa(SERVER_ADDRESS, SERVER_PORT);
	assert_int_equal(rdma_resolve_addr(pair->client, NULL, server, 2000), 0);
	if (step == STEP_ADDR_QUERY)
		return;
	pair_take(pair->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	if (step == STEP_ADDR_RESOLVED)
		return;
	assert_int_equal(rdma_resolve_route(pair->client, 2000), 0);
	if (step == STEP_ROUTE_QUERY)
		return;
	pair_take(pair->client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	if (pair->transport == IWARP)
		pair_client_qp(pair);
}

static struct rdma_cm_id *connecting(struct pair *pair, enum step step)
{
	struct rdma_conn_param param = pair_param(NULL, 0);

	before_connect(pair, STEP_ROUTE_RESOLVED);
	rdma_ack_cm_event(pair_request(pair, &param));
	if (step == STEP_CONNECTING)
		return pair->client;
	if (step == STEP_REQUEST) {
		if (pair->transport == IWARP)
			pair_server_qp(pair);
		return pair->server;
	}
	if (step == STEP_REJECTED) {
		assert_int_equal(rdma_reject(pair->server, NULL, 0), 0);
		pair_take(pair->client_channel, RDMA_CM_EVENT_REJECTED,
			  pair->transport == IWARP ? -ECONNRESET : 28);
		return pair->client;
	}
	assert_int_equal(rdma_accept(pair->server, &param), 0);
	if (step == STEP_ACCEPTED)
		return pair->server;
	pair_take(pair->client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	return pair->client;
}

struct rdma_cm_id *step_open(struct pair *pair, enum transport transport, enum step step)
{
	pair_open(pair, transport, RDMA_PS_TCP);
	switch (step) {
	case STEP_LISTENING:
		return pair->listener;
	case STEP_CONNECTING:
	case STEP_RESPONSE:
	case STEP_REJECTED:
	case STEP_REQUEST:
	case STEP_ACCEPTED:
		return connecting(pair, step);
	case STEP_ACTIVE:
		pair_connect(pair);
		return pair->client;
	case STEP_PASSIVE:
		pair_connect(pair);
		return pair->server;
	case STEP_DISCONNECTED:
		pair_connect(pair);
		assert_int_equal(rdma_disconnect(pair->client), 0);
		pair_take(pair->server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		return pair->server;
	default:
		before_connect(pair, step);
		return pair->client;
	}
}
