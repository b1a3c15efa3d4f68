/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections over the kernel client, from the first address to the last
 * timewait: what the program sees of addresses, paths, data and QPs.
 */
#include "kernel_stand_in_scene.h"

static const struct {
	const char *addr, *device, *transport;
	uint8_t port;
	uint16_t lid, pkey;
	int paths, mtu, life;
	bool iwarp;
} ends[] = {
	{ "10.0.1.1", "hca0", "ib", 1, 0x11, 0xffff, 1, IBV_MTU_2048, 18, false },
	{ "10.0.2.1", "hca0", "ib", 2, 0x12, 0x8001, 1, IBV_MTU_2048, 18, false },
	{ "10.1.2.1", "hca1", "ib", 2, 0x22, 0xffff, 1, IBV_MTU_2048, 18, false },
	{ "20.0.0.1", "rocee0", "roce", 1, 0, 0xffff, 1, IBV_MTU_1024, 16, false },
	{ "30.0.0.1", "iw0", "iwarp", 1, 0, 0, 0, 0, 0, true },
};

static void check_place(const struct rdma_cm_id *id, size_t i)
{
	const struct rdma_addr *addr = &id->route.addr;
	const struct polycm_id *self = (const struct polycm_id *)(const void *)id;

	assert_non_null(id->verbs);
	assert_string_equal(ibv_get_device_name(id->verbs->device), ends[i].device);
	assert_string_equal(self->device->transport->name, ends[i].transport);
	assert_string_equal(self->module->name, ends[i].transport);
	assert_int_equal(id->port_num, ends[i].port);
	assert_non_null(id->pd);
	/* As librdmacm has it: a P_Key on InfiniBand alone, no GIDs on iWARP. */
	assert_int_equal(ntohs(addr->addr.ibaddr.pkey), ends[i].lid ? ends[i].pkey : 0);
	if (ends[i].paths)
		assert_memory_not_equal(&addr->addr.ibaddr.sgid, &(union ibv_gid){ 0 }, 16);
	assert_memory_equal(&addr->addr.ibaddr.sgid, &addr->addr.ibaddr.dgid, 16);
}

static void check_path(const struct rdma_cm_id *id, size_t i)
{
	const struct ibv_sa_path_rec *path = id->route.path_rec;

	assert_int_equal(id->route.num_paths, ends[i].paths);
	if (!ends[i].paths)
		return;
	assert_non_null(path);
	assert_int_equal(ntohs(path->slid), ends[i].lid);
	assert_int_equal(ntohs(path->dlid), ends[i].lid);
	assert_memory_equal(&path->sgid, &id->route.addr.addr.ibaddr.sgid, 16);
	assert_memory_equal(&path->dgid, &id->route.addr.addr.ibaddr.dgid, 16);
	assert_int_equal(ntohs(path->pkey), ends[i].pkey);
	assert_int_equal(path->mtu, ends[i].mtu);
	assert_int_equal(path->packet_life_time, ends[i].life);
	assert_int_equal(path->reversible, 1);
	assert_int_equal(path->rate, 7);
}

/* ------------------------------------------------------------------------
 * One life, on each kind of device.
 */

static struct rdma_cm_id *resolve(size_t i, bool v6)
{
	struct sockaddr *dst = v6 ? addr6(ends[i].addr, PORT) : addr4(ends[i].addr, PORT);
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);

	assert_int_equal(rdma_resolve_addr(id, NULL, dst, 1000), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	check_place(id, i);
	assert_int_equal(id->route.addr.src_addr.sa_family, dst->sa_family);
	assert_int_not_equal(rdma_get_src_port(id), 0);
	assert_int_equal(rdma_get_dst_port(id), htons(PORT));

	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	check_place(id, i);
	check_path(id, i);
	return id;
}

static void begin(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {
		.private_data = "hello", .private_data_len = 6, .responder_resources = 3,
		.initiator_depth = 5, .retry_count = 4, .rnr_retry_count = 6, .flow_control = 1,
	};

	create_qp(id);
	assert_string_equal(fake_verbs.moves, "INIT");
	assert_int_equal(rdma_connect(id, &param), 0);
	assert_string_equal(fake_verbs.moves, "INIT");
	assert_int_equal(stand_in.connect_len, 6);
}

static struct rdma_cm_id *take_request(struct rdma_cm_id *listener, struct rdma_cm_id *active,
				       size_t i)
{
	struct rdma_cm_event *event = next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	const struct rdma_conn_param *conn = &event->param.conn;
	struct rdma_cm_id *id = event->id;

	assert_ptr_equal(event->listen_id, listener);
	assert_ptr_not_equal(id, listener);
	assert_ptr_equal(id->context, listener->context);
	assert_ptr_equal(id->channel, channel);
	assert_int_equal(conn->private_data_len, ends[i].iwarp ? 6 : 56);
	assert_string_equal(conn->private_data, "hello");
	assert_int_equal(conn->responder_resources, 5);
	assert_int_equal(conn->initiator_depth, 3);
	assert_int_equal(conn->qp_num, ends[i].iwarp ? 0 : active->qp->qp_num);
	assert_int_equal(conn->retry_count, ends[i].iwarp ? 0 : 4);
	assert_int_equal(conn->rnr_retry_count, ends[i].iwarp ? 0 : 6);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	check_place(id, i);
	check_path(id, i);
	assert_int_equal(rdma_get_src_port(id), htons(PORT));
	assert_int_equal(rdma_get_dst_port(id), rdma_get_src_port(active));
	return id;
}

static void answer(struct rdma_cm_id *id, struct rdma_cm_id *active, size_t i)
{
	struct rdma_conn_param param = {
		.private_data = "welcome", .private_data_len = 8, .responder_resources = 2,
		.initiator_depth = 1, .rnr_retry_count = 7,
	};

	fake_verbs.moves[0] = '\0';
	create_qp(id);
	assert_int_equal(rdma_accept(id, &param), 0);
	assert_int_equal(stand_in.accept_len, 8);
	if (ends[i].iwarp) {
		assert_string_equal(fake_verbs.moves, "INIT");
		return;
	}
	assert_string_equal(fake_verbs.moves, "INIT RTR(2) RTS(1)");
	assert_int_equal(stand_in_rtr.dest_qp_num, active->qp->qp_num);
	assert_int_equal(stand_in_rtr.ah_attr.dlid, ends[i].lid);
	assert_int_equal(stand_in_rtr.ah_attr.port_num, ends[i].port);
	assert_int_equal(stand_in_rtr.path_mtu, ends[i].mtu);
	assert_int_equal(stand_in_rts.rnr_retry, 6);
	assert_int_equal(stand_in_rts.timeout, ends[i].life + 1);
}

static void complete(struct rdma_cm_id *active, struct rdma_cm_id *passive, size_t i)
{
	struct rdma_cm_event *event;

	fake_verbs.moves[0] = '\0';
	if (ends[i].iwarp)
		expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	event = next_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_ptr_equal(event->id, active);
	assert_int_equal(event->param.conn.private_data_len, ends[i].iwarp ? 8 : 196);
	assert_string_equal(event->param.conn.private_data, "welcome");
	assert_int_equal(event->param.conn.responder_resources, 1);
	assert_int_equal(event->param.conn.initiator_depth, 2);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	if (ends[i].iwarp) {
		assert_string_equal(fake_verbs.moves, "");
		return;
	}
	assert_string_equal(fake_verbs.moves, "RTR(1) RTS(2)");
	assert_int_equal(stand_in_rtr.dest_qp_num, passive->qp->qp_num);
	event = next_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_ptr_equal(event->id, passive);
	assert_int_equal(event->param.conn.private_data_len, 0);
	assert_null(event->param.conn.private_data);
	assert_int_equal(rdma_ack_cm_event(event), 0);
}

static void live(size_t i, bool v6)
{
	struct scene_pair pair = { .listener = scene_id(RDMA_PS_TCP) };
	struct sockaddr *any = v6 ? addr6("0.0.0.0", PORT) : addr4("0.0.0.0", PORT);

	print_message("%s %s\n", ends[i].device, v6 ? "IPv6" : "IPv4");
	assert_int_equal(rdma_bind_addr(pair.listener, any), 0);
	assert_int_equal(rdma_listen(pair.listener, 3), 0);
	assert_null(pair.listener->verbs);
	pair.active = resolve(i, v6);
	fake_verbs.moves[0] = '\0';
	begin(pair.active);
	pair.passive = take_request(pair.listener, pair.active, i);
	answer(pair.passive, pair.active, i);
	complete(pair.active, pair.passive, i);
	expect_no_event(channel);

	fake_verbs.moves[0] = '\0';
	scene_disconnect(&pair);
	assert_string_equal(fake_verbs.moves, ends[i].iwarp ? "SQD SQD" : "ERR ERR");
	scene_end(&pair);
	assert_int_equal(stand_in.ids, 0);
}

static void connections_live_on_every_device(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		for (int v6 = 0; v6 < 2; v6++)
			live(i, v6);
}

/* ------------------------------------------------------------------------
 * Private data.
 */

static void connect_data_has_its_limit(void **state)
{
	static const struct { const char *dst; uint8_t len; int error; } cases[] = {
		{ "10.0.1.1", 0, 0 }, { "10.0.1.1", 56, 0 }, { "10.0.1.1", 57, EINVAL },
		{ "10.0.1.1", 255, EINVAL }, { "20.0.0.1", 56, 0 }, { "20.0.0.1", 57, EINVAL },
		{ "30.0.0.1", 57, 0 }, { "30.0.0.1", 251, 0 },
	};
	static const uint8_t data[255];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_conn_param param = { .private_data = data,
						 .private_data_len = cases[i].len };
		struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0");
		struct rdma_cm_id *id = scene_routed(RDMA_PS_TCP, cases[i].dst), *child;

		print_message("case %zu\n", i);
		create_qp(id);
		if (cases[i].error) {
			assert_errno(rdma_connect(id, &param), cases[i].error);
			assert_int_equal(stand_in_state(stand_in_find(id)),
					 STAND_IN_ROUTE_RESOLVED);
			/* With less it can be done. */
			param.private_data_len = 56;
		}
		assert_int_equal(rdma_connect(id, &param), 0);
		child = scene_request(listener);
		scene_destroy(child);
		scene_drain();
		scene_destroy(id);
		scene_destroy(listener);
	}
}

/* The kernel rejects the peer for it; what it has room for it takes. */
static void too_much_accept_data_rejects_the_peer(void **state)
{
	static const uint8_t data[255];
	static const struct { const char *dst; uint8_t len; bool fits; } cases[] = {
		{ "10.0.1.1", 196, true }, { "10.0.1.1", 197, false }, { "10.0.1.1", 255, false },
		{ "20.0.0.1", 196, true }, { "20.0.0.1", 197, false }, { "20.0.0.1", 255, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_conn_param param = { .private_data = data,
						 .private_data_len = cases[i].len };
		struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0");
		struct rdma_cm_id *id = scene_routed(RDMA_PS_TCP, cases[i].dst), *child;

		print_message("%u bytes to %s\n", cases[i].len, cases[i].dst);
		create_qp(id);
		assert_int_equal(rdma_connect(id, NULL), 0);
		child = scene_request(listener);
		create_qp(child);
		if (cases[i].fits) {
			assert_int_equal(rdma_accept(child, &param), 0);
			expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
			expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		} else {
			assert_errno(rdma_accept(child, &param), EINVAL);
			expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
		}
		scene_destroy(child);
		scene_drain();
		scene_destroy(id);
		scene_destroy(listener);
	}
}

static void rejections_arrive_with_data_and_reason(void **state)
{
	static const struct {
		const char *dst;
		bool ece;
		uint8_t reason;
		int status;
		uint8_t len;
	} cases[] = {
		{ "10.0.1.1", false, 0, 28, 148 },
		{ "10.0.1.1", true, 35, 35, 148 },
		{ "20.0.0.1", false, 0, 28, 148 },
		{ "30.0.0.1", false, 0, -ECONNREFUSED, 3 },
	};
	static const char data[255] = "no";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0");
		struct rdma_cm_id *id = scene_routed(RDMA_PS_TCP, cases[i].dst), *child;
		int (*reject)(struct rdma_cm_id *id, const void *data, uint8_t len) =
			cases[i].ece ? rdma_reject_ece : rdma_reject;
		struct rdma_cm_event *event;

		print_message("case %zu\n", i);
		create_qp(id);
		assert_int_equal(rdma_connect(id, NULL), 0);
		child = scene_request(listener);
		if (cases[i].status > 0) {
			/* Too much: the kernel says so, and the request is there still. */
			assert_errno(reject(child, data, 149), EINVAL);
			expect_no_event(channel);
		}
		fake_verbs.moves[0] = '\0';
		assert_int_equal(reject(child, data, 3), 0);
		assert_int_equal(stand_in.reject_reason, cases[i].reason);
		assert_int_equal(stand_in.reject_len, 3);
		event = next_event(channel, RDMA_CM_EVENT_REJECTED, cases[i].status);
		assert_ptr_equal(event->id, id);
		assert_int_equal(event->param.conn.private_data_len, cases[i].len);
		assert_string_equal(event->param.conn.private_data, "no");
		assert_int_equal(rdma_ack_cm_event(event), 0);
		assert_string_equal(fake_verbs.moves, "ERR");
		assert_errno(rdma_connect(id, NULL), EINVAL);
		scene_destroy(child);
		scene_destroy(id);
		scene_destroy(listener);
	}
}

/* ------------------------------------------------------------------------
 * Ends other than the usual one.
 */

static void nobody_listens(void **state)
{
	struct rdma_cm_id *id = scene_routed(RDMA_PS_TCP, "10.0.1.1");
	struct rdma_cm_id *other = scene_routed(RDMA_PS_TCP, "30.0.0.1");

	(void)state;
	create_qp(id);
	assert_int_equal(rdma_connect(id, NULL), 0);
	expect_event(channel, RDMA_CM_EVENT_REJECTED, 8);
	/* A TCP connection that is refused is refused at once, and may be tried again. */
	create_qp(other);
	assert_errno(rdma_connect(other, NULL), ECONNREFUSED);
	assert_errno(rdma_connect(other, NULL), ECONNREFUSED);
	scene_destroy(id);
	scene_destroy(other);
}

static void the_peer_goes_away(void **state)
{
	struct scene_pair pair;

	(void)state;
	scene_connect(&pair, "10.0.1.1");
	scene_destroy(pair.passive);
	expect_event(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	scene_destroy(pair.active);

	pair.active = scene_routed(RDMA_PS_TCP, "10.0.1.1");
	create_qp(pair.active);
	assert_int_equal(rdma_connect(pair.active, NULL), 0);
	scene_destroy(scene_request(pair.listener));
	expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
	scene_destroy(pair.active);
	scene_destroy(pair.listener);
}

/* A request that nobody accepted hears of nothing; the accept then fails. */
static void the_peer_gives_up(void **state)
{
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0");
	struct rdma_cm_id *id = scene_routed(RDMA_PS_TCP, "10.0.1.1"), *child;

	(void)state;
	create_qp(id);
	assert_int_equal(rdma_connect(id, NULL), 0);
	child = scene_request(listener);
	scene_destroy(id);
	expect_no_event(channel);
	create_qp(child);
	assert_errno(rdma_accept(child, NULL), EINVAL);
	expect_no_event(channel);
	scene_destroy(child);
	scene_destroy(listener);
}

/* What lies unread in the kernel and in the core ends with the listener. */
static void a_listener_ends_with_its_requests(void **state)
{
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0"), *ids[3];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		ids[i] = scene_routed(RDMA_PS_TCP, "10.0.1.1");
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		struct rdma_conn_param param = { .qp_num = 5 };

		assert_int_equal(rdma_connect(ids[i], &param), 0);
	}
	assert_int_equal(stand_in.ids, 7);
	scene_destroy(listener);
	assert_int_equal(stand_in.ids, 3);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
		scene_destroy(ids[i]);
	}
}

static void backlogs_are_the_kernels(void **state)
{
	struct rdma_cm_id *listener = scene_id(RDMA_PS_TCP), *ids[3], *child;
	struct rdma_conn_param param = { .qp_num = 5 };

	(void)state;
	assert_int_equal(rdma_bind_addr(listener, addr4("0.0.0.0", PORT)), 0);
	assert_int_equal(rdma_listen(listener, 1), 0);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		ids[i] = scene_routed(RDMA_PS_TCP, "10.0.1.1");
	assert_int_equal(rdma_connect(ids[0], &param), 0);
	assert_int_equal(rdma_connect(ids[1], &param), 0);
	assert_int_equal(stand_in.dropped_requests, 1);
	child = scene_request(listener);
	/* Retrieved: there is room again, accepted or not. */
	assert_int_equal(rdma_connect(ids[2], &param), 0);
	assert_int_equal(stand_in.dropped_requests, 1);
	scene_destroy(child);
	scene_destroy(scene_request(listener));
	expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
	expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		scene_destroy(ids[i]);
	scene_destroy(listener);
}

static int start(void **state)
{
	(void)state;
	return scene_start(SCENE_ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KERNEL_TEST(connections_live_on_every_device),
		KERNEL_TEST(connect_data_has_its_limit),
		KERNEL_TEST(too_much_accept_data_rejects_the_peer),
		KERNEL_TEST(rejections_arrive_with_data_and_reason),
		KERNEL_TEST(nobody_listens),
		KERNEL_TEST(the_peer_goes_away),
		KERNEL_TEST(the_peer_gives_up),
		KERNEL_TEST(a_listener_ends_with_its_requests),
		KERNEL_TEST(backlogs_are_the_kernels),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
