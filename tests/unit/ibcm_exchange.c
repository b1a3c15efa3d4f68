/* SPDX-License-Identifier: BSD-2-Clause */
/* ibcm_exchange.c - see ibcm_exchange.h. */
#include "config.h"

#include "ibcm_exchange.h"

static struct exchanged *out;
static unsigned int num;

/* The n-th message of that kind, as it crossed the wire. */
static void keep(const char *name, enum cm_attr_id attr_id, unsigned int nth)
{
	const struct world_mad *mad = world_mad(attr_id, nth);

	assert_in_range(num, 0, EXCHANGE_MAX - 1);
	out[num++] = (struct exchanged){
		.name = name, .to_server = mad->to_server, .msg = mad->msg,
	};
}

/* A connection whose programs are slow to answer, ended by the client or the server. */
static void connection(bool by_client)
{
	struct pair pair;

	world_open_roce(NULL);
	pair = world_requested();
	world_run_ms(4609);
	assert_int_equal(world_accept(pair.server, 0x22), 0);
	world_run_ms(4097);
	world_expect(pair.client, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	assert_int_equal(world_call(pair.client, establish), 0);
	world_run(LATENCY);
	world_expect(pair.server, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(world_call(by_client ? pair.client : pair.server, disconnect), 0);
	world_run(LATENCY);
	assert_int_equal(world_call(by_client ? pair.server : pair.client, disconnect), 0);
	world_run(LATENCY);
	if (by_client) {
		keep("req", CM_REQ, 0);
		keep("mra_req", CM_MRA, 0);
		keep("rep", CM_REP, 0);
		keep("mra_rep", CM_MRA, 1);
		keep("rtu", CM_RTU, 0);
		keep("dreq_client", CM_DREQ, 0);
		keep("drep_server", CM_DREP, 0);
	} else {
		keep("dreq_server", CM_DREQ, 0);
		keep("drep_client", CM_DREP, 0);
	}
	world_end(&pair);
	world_run_ms(1);
	world_close(NULL);
}

static void rejections(void)
{
	struct pair pair;

	world_open_roce(NULL);
	pair = world_requested();
	assert_int_equal(world_call(pair.server, reject, "no", 2, 0), 0);
	world_run(LATENCY);
	keep("rej_req", CM_REJ, 0);
	world_end(&pair);
	world_run_ms(1);
	world_close(NULL);

	world_open_roce(NULL);
	pair = world_accepted();
	assert_int_equal(world_call(pair.client, reject, "no", 2, 0), 0);
	world_run(LATENCY);
	keep("rej_rep", CM_REJ, 0);
	world_end(&pair);
	world_run_ms(1);
	world_close(NULL);

	world_open_roce(NULL);
	pair = world_requested();
	world_destroy(pair.client);
	pair.client = NULL;
	world_run(LATENCY);
	keep("rej_timeout", CM_REJ, 0);
	world_end(&pair);
	world_run_ms(1);
	world_close(NULL);
}

static void datagrams(void)
{
	struct polycm_id *listener, *client, *server;

	world_open_roce(NULL);
	listener = world_listen(RDMA_PS_UDP);
	client = world_route(RDMA_PS_UDP, PORT);
	assert_int_equal(world_connect(client, 0x11), 0);
	world_run(LATENCY);
	server = world_child(listener);
	assert_int_equal(world_accept(server, 0x22), 0);
	world_run(LATENCY);
	keep("sidr_req", CM_SIDR_REQ, 0);
	keep("sidr_rep", CM_SIDR_REP, 0);
	world_destroy(client);
	world_destroy(server);
	world_destroy(listener);
	world_run_ms(1);
	world_close(NULL);
}

unsigned int record_exchange(struct exchanged messages[EXCHANGE_MAX])
{
	out = messages;
	num = 0;
	connection(true);
	connection(false);
	rejections();
	datagrams();
	return num;
}
