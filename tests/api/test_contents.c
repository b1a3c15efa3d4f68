/* SPDX-License-Identifier: BSD-2-Clause */
/* test_contents.c - what every event carries: ids, status, parameters. */
#include <errno.h>
#include <string.h>

#include "steps.h"

/* What the RDMA CM gives datagram queue pairs. */
#define UDP_QKEY 0x01234567u

static void check_port(const struct sockaddr *addr, const char *text, uint16_t port)
{
	struct sockaddr_storage want = step_addr(text, port);

	assert_memory_equal(addr, &want, sizeof(struct sockaddr_in));
}

static void check_ids(const struct rdma_cm_event *event, const struct rdma_cm_id *id,
		      const struct rdma_cm_id *listener)
{
	assert_ptr_equal(event->id, id);
	assert_ptr_equal(event->listen_id, listener);
}

static void check_no_param(const struct rdma_cm_event *event)
{
	static const struct rdma_ud_param nothing;

	assert_memory_equal(&event->param.ud, &nothing, sizeof(nothing));
}

/* The next event, which has no parameters. */
static void take_bare(struct rdma_event_channel *channel, enum rdma_cm_event_type type, int status,
		      const struct rdma_cm_id *id)
{
	struct rdma_cm_event *event = pair_expect(channel, type, status);

	check_ids(event, id, NULL);
	check_no_param(event);
	rdma_ack_cm_event(event);
}

static void resolving(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		assert_null(pair.client->verbs);
		assert_int_equal(rdma_resolve_addr(pair.client, NULL,
						   step_sa(SERVER_ADDRESS, SERVER_PORT), 2000), 0);
		/* The device shows with the event. */
		assert_int_equal(polycm_sim_advance(1000000), 0);
		assert_null(pair.client->verbs);
		take_bare(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0, pair.client);
		assert_non_null(pair.client->verbs);
		assert_non_null(pair.client->pd);
		assert_int_equal(pair.client->port_num, 1);
		check_port(rdma_get_peer_addr(pair.client), SERVER_ADDRESS, SERVER_PORT);
		check_port(rdma_get_local_addr(pair.client), CLIENT_ADDRESS,
			   ntohs(rdma_get_src_port(pair.client)));
		assert_int_not_equal(rdma_get_src_port(pair.client), 0);
		assert_int_equal(rdma_get_dst_port(pair.client), htons(SERVER_PORT));
		assert_int_equal(pair.client->route.num_paths, 0);

		assert_int_equal(rdma_resolve_route(pair.client, 2000), 0);
		take_bare(pair.client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, pair.client);
		if (t != IWARP) {
			assert_int_equal(pair.client->route.num_paths, 1);
			assert_non_null(pair.client->route.path_rec);
			assert_memory_equal(&pair.client->route.path_rec->dgid,
					    &pair.client->route.addr.addr.ibaddr.dgid, 16);
			assert_int_equal(pair.client->route.path_rec->packet_life_time,
					 t == ROCE ? 16 : 18);
			assert_int_equal(pair.client->route.path_rec->pkey, 0xffff);
		}
		pair_close(&pair);
	}
}

static void failing_to_resolve(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa("10.0.0.99", 1), 50),
				 0);
		take_bare(pair.client_channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, pair.client);
		pair_close(&pair);
	}
}

/* The new id is the listener's child in everything that it does not have from the request. */
static void check_new_id(struct pair *pair, const struct rdma_cm_event *event)
{
	struct rdma_cm_id *id = event->id;

	check_ids(event, id, pair->listener);
	assert_ptr_not_equal(id, pair->listener);
	assert_ptr_equal(id->context, pair->listener->context);
	assert_ptr_equal(id->channel, pair->server_channel);
	assert_int_equal(id->ps, pair->ps);
	assert_int_equal(id->qp_type, pair->ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC);
	assert_ptr_equal(id->verbs, pair->listener->verbs);
	assert_non_null(id->verbs);
	assert_int_equal(id->port_num, 1);
	assert_null(id->qp);
	assert_null(id->event);
	check_port(rdma_get_local_addr(id), SERVER_ADDRESS, SERVER_PORT);
	check_port(rdma_get_peer_addr(id), CLIENT_ADDRESS, ntohs(rdma_get_src_port(pair->client)));
}

static void a_connection(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param("hi", 3);
		struct rdma_cm_event *event;
		struct pair pair;

		print_message("%s\n", transport_name[t]);
		pair_open(&pair, t, RDMA_PS_TCP);
		pair.listener->context = &pair;
		pair_resolve(&pair);
		pair_client_qp(&pair);
		event = pair_request(&pair, &param);
		check_new_id(&pair, event);
		assert_int_equal(event->param.conn.responder_resources, 3);
		assert_int_equal(event->param.conn.initiator_depth, 4);
		assert_int_equal(event->param.conn.retry_count, t == IWARP ? 0 : 5);
		assert_int_equal(event->param.conn.rnr_retry_count, t == IWARP ? 0 : 6);
		assert_int_equal(event->param.conn.flow_control, 0);
		assert_int_equal(event->param.conn.srq, 0);
		assert_int_equal(event->param.conn.qp_num, t == IWARP ? 0 : pair.client->qp->qp_num);
		rdma_ack_cm_event(event);

		pair_server_qp(&pair);
		param.rnr_retry_count = 2;
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		check_ids(event, pair.client, NULL);
		/* The reply has no retry count; iWARP's depths come reversed. */
		assert_int_equal(event->param.conn.retry_count, 0);
		assert_int_equal(event->param.conn.rnr_retry_count, t == IWARP ? 0 : 2);
		assert_int_equal(event->param.conn.initiator_depth, t == IWARP ? 3 : 4);
		assert_int_equal(event->param.conn.responder_resources, t == IWARP ? 4 : 3);
		assert_int_equal(event->param.conn.qp_num, t == IWARP ? 0 : pair.server->qp->qp_num);
		assert_memory_equal(event->param.conn.private_data, "hi", 3);
		rdma_ack_cm_event(event);

		event = pair_expect(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		check_ids(event, pair.server, NULL);
		if (t != IWARP)
			check_no_param(event);
		assert_null(event->param.conn.private_data);
		assert_int_equal(event->param.conn.private_data_len, 0);
		rdma_ack_cm_event(event);
		pair_close(&pair);
	}
}

static void iwarps_passive_side_learns_its_depths(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct rdma_cm_event *event;
	struct pair pair;

	(void)state;
	/* The client offers IRD 4 and ORD 3. */
	step_request(&pair, IWARP, RDMA_PS_TCP, true);
	param.responder_resources = 5;
	param.initiator_depth = 2;
	assert_int_equal(rdma_accept(pair.server, &param), 0);
	event = pair_expect(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(event->param.conn.initiator_depth, 5);
	assert_int_equal(event->param.conn.responder_resources, 2);
	rdma_ack_cm_event(event);
	pair_close(&pair);
}

static void disconnecting(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_connect(&pair);
		assert_int_equal(rdma_disconnect(pair.client), 0);
		take_bare(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0, pair.server);
		assert_int_equal(rdma_disconnect(pair.server), 0);
		take_bare(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED, 0, pair.client);
		if (t != IWARP) {
			take_bare(pair.server_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, pair.server);
			take_bare(pair.client_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, pair.client);
		}
		pair_close(&pair);
	}
}

static void a_response_without_a_qp(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param("yes", 4);
		struct rdma_cm_event *event;
		struct pair pair;

		step_request(&pair, t, RDMA_PS_TCP, false);
		param.flow_control = 1;
		param.srq = 1;
		param.qp_num = 0xff001234;
		param.responder_resources = 7;
		param.initiator_depth = 8;
		param.rnr_retry_count = 1;
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		check_ids(event, pair.client, NULL);
		assert_int_equal(event->param.conn.responder_resources, 8);
		assert_int_equal(event->param.conn.initiator_depth, 7);
		assert_int_equal(event->param.conn.flow_control, 1);
		assert_int_equal(event->param.conn.retry_count, 0);
		assert_int_equal(event->param.conn.rnr_retry_count, 1);
		assert_int_equal(event->param.conn.srq, 1);
		assert_int_equal(event->param.conn.qp_num, 0x1234);
		assert_int_equal(event->param.conn.private_data_len, 196);
		assert_memory_equal(event->param.conn.private_data, "yes", 4);
		rdma_ack_cm_event(event);
		pair_close(&pair);
	}
}

static void a_rejection_has_private_data_only(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_cm_event *event;
		struct pair pair;

		step_request(&pair, t, RDMA_PS_TCP, false);
		assert_int_equal(rdma_reject(pair.server, "no", 3), 0);
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_REJECTED,
				    t == IWARP ? -ECONNRESET : 28);
		check_ids(event, pair.client, NULL);
		assert_memory_equal(event->param.conn.private_data, "no", 3);
		assert_int_equal(event->param.conn.private_data_len, t == IWARP ? 3 : 148);
		if (t != IWARP) {
			assert_int_equal(event->param.conn.responder_resources, 0);
			assert_int_equal(event->param.conn.initiator_depth, 0);
		}
		assert_int_equal(event->param.conn.retry_count, 0);
		assert_int_equal(event->param.conn.rnr_retry_count, 0);
		assert_int_equal(event->param.conn.qp_num, 0);
		rdma_ack_cm_event(event);
		pair_close(&pair);
	}
}

static void check_all_zero(const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++)
		assert_int_equal(bytes[i], 0);
}

static void datagrams(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param("who", 4);
		struct rdma_cm_event *event;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_UDP);
		pair.listener->context = &pair;
		pair_resolve(&pair);
		pair_client_qp(&pair);
		event = pair_request(&pair, &param);
		check_new_id(&pair, event);
		assert_int_equal(event->param.ud.private_data_len, 180);
		assert_memory_equal(event->param.ud.private_data, "who", 4);
		check_all_zero(&event->param.ud.ah_attr, sizeof(event->param.ud.ah_attr));
		assert_int_equal(event->param.ud.qp_num, 0);
		assert_int_equal(event->param.ud.qkey, 0);
		/* The request says nothing of a path. */
		assert_int_equal(pair.server->route.num_paths, 0);
		rdma_ack_cm_event(event);

		pair_server_qp(&pair);
		param = pair_param("me", 3);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		check_ids(event, pair.client, NULL);
		assert_int_equal(event->param.ud.private_data_len, 136);
		assert_memory_equal(event->param.ud.private_data, "me", 3);
		assert_int_equal(event->param.ud.qp_num, pair.server->qp->qp_num);
		assert_int_equal(event->param.ud.qkey, UDP_QKEY);
		assert_int_equal(event->param.ud.ah_attr.port_num, 1);
		if (t == ROCE) {
			assert_int_equal(event->param.ud.ah_attr.is_global, 1);
			assert_memory_equal(&event->param.ud.ah_attr.grh.dgid,
					    &pair.client->route.addr.addr.ibaddr.dgid, 16);
		} else {
			assert_int_not_equal(event->param.ud.ah_attr.dlid, 0);
		}
		rdma_ack_cm_event(event);
		/* The server of a datagram service is told nothing more. */
		assert_int_equal(polycm_sim_advance(1000000), 0);
		pair_none(pair.server_channel);
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resolving),
		cmocka_unit_test(failing_to_resolve),
		cmocka_unit_test(a_connection),
		cmocka_unit_test(iwarps_passive_side_learns_its_depths),
		cmocka_unit_test(disconnecting),
		cmocka_unit_test(a_response_without_a_qp),
		cmocka_unit_test(a_rejection_has_private_data_only),
		cmocka_unit_test(datagrams),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
