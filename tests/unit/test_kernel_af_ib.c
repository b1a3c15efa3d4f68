/* SPDX-License-Identifier: BSD-2-Clause */
/* AF_IB addresses over the kernel client: they pass through, with the commands that take them. */
#include "kernel_stand_in_scene.h"

#define CMD(name) RDMA_USER_CM_CMD_##name

static const struct sockaddr_ib *ib_of(const struct sockaddr *addr)
{
	return (const struct sockaddr_ib *)(const void *)addr;
}

static void binds_find_their_port(void **state)
{
	static const struct { const char *device; uint8_t port; uint16_t pkey; } cases[] = {
		{ "hca0", 1, 0xffff }, { "hca0", 2, 0x8001 }, { "hca1", 2, 0xffff },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sockaddr *addr = addr_ib(cases[i].device, cases[i].port, RDMA_PS_TCP, PORT);
		struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);
		const struct rdma_addr *got = &id->route.addr;

		assert_int_equal(rdma_bind_addr(id, addr), 0);
		assert_string_equal(ibv_get_device_name(id->verbs->device), cases[i].device);
		assert_int_equal(id->port_num, cases[i].port);
		assert_int_equal(ntohs(got->addr.ibaddr.pkey), cases[i].pkey);
		assert_memory_equal(&got->addr.ibaddr.sgid, &ib_of(addr)->sib_addr, 16);
		assert_int_equal(got->src_addr.sa_family, AF_IB);
		assert_memory_equal(&ib_of(&got->src_addr)->sib_addr, &ib_of(addr)->sib_addr, 16);
		assert_int_equal(rdma_get_src_port(id), htons(PORT));
		assert_int_equal(rdma_listen(id, 1), 0);
		scene_destroy(id);
	}
	assert_int_equal(stand_in.calls[CMD(BIND_IP)], 0);
	assert_int_equal(stand_in.calls[CMD(BIND)], ARRAY_SIZE(cases));
	assert_int_equal(stand_in.calls[CMD(QUERY_ROUTE)], 0);
}

static void binds_fail(void **state)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);
	struct sockaddr *wrong = addr_ib("hca0", 1, RDMA_PS_TCP, PORT);

	(void)state;
	((struct sockaddr_ib *)(void *)wrong)->sib_addr.sib_raw[3] = 0x77;
	assert_errno(rdma_bind_addr(id, wrong), ENODEV);
	assert_errno(rdma_bind_addr(id, addr_ib("hca0", 1, RDMA_PS_UDP, PORT)), EPROTONOSUPPORT);
	assert_errno(rdma_bind_addr(id, addr_ib("hca0", 1, 0x7777, PORT)), EPROTONOSUPPORT);
	stand_in.fault[CMD(BIND)].error = EINVAL;
	assert_errno(rdma_bind_addr(id, addr_ib("hca0", 1, RDMA_PS_TCP, PORT)), EINVAL);
	stand_in.fault[CMD(QUERY)].error = EIO;
	assert_errno(rdma_bind_addr(id, addr_ib("hca0", 1, RDMA_PS_TCP, PORT)), EIO);
	assert_int_equal(rdma_bind_addr(id, addr_ib("hca0", 1, RDMA_PS_TCP, PORT)), 0);
	scene_destroy(id);
}

static struct rdma_cm_id *resolve(enum rdma_port_space ps)
{
	struct rdma_cm_id *id = scene_id(ps);
	struct sockaddr *dst = addr_ib("hca0", 2, ps, PORT);
	const struct rdma_addr *got = &id->route.addr;

	assert_int_equal(rdma_resolve_addr(id, NULL, dst, 1000), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_string_equal(ibv_get_device_name(id->verbs->device), "hca0");
	assert_int_equal(id->port_num, 2);
	assert_int_equal(ntohs(got->addr.ibaddr.pkey), 0x8001);
	assert_memory_equal(&got->addr.ibaddr.dgid, &ib_of(dst)->sib_addr, 16);
	assert_memory_equal(&got->addr.ibaddr.sgid, &ib_of(&got->src_addr)->sib_addr, 16);
	assert_int_equal(id->route.num_paths, 0);

	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return id;
}

static void check_path(const struct rdma_cm_id *id)
{
	const struct ibv_sa_path_rec *path = id->route.path_rec;

	assert_int_equal(id->route.num_paths, 1);
	assert_memory_equal(&path->sgid, &id->route.addr.addr.ibaddr.sgid, 16);
	assert_memory_equal(&path->dgid, &id->route.addr.addr.ibaddr.dgid, 16);
	assert_int_equal(ntohs(path->slid), 0x12);
	assert_int_equal(ntohs(path->dlid), 0x12);
	assert_int_equal(ntohs(path->pkey), 0x8001);
	assert_int_equal(path->mtu, IBV_MTU_2048);
	assert_int_equal(path->rate, 7);
	assert_int_equal(path->packet_life_time, 18);
	assert_int_equal(path->reversible, 1);
	assert_int_equal(path->numb_path, 1);
}

/* No header of the CM in front of the data: 36 bytes more. */
static void connections_live(void **state)
{
	uint8_t data[255] = "ninety-two bytes";
	struct rdma_conn_param param = { .private_data = data, .private_data_len = 93 };
	struct rdma_cm_id *listener = scene_id(RDMA_PS_TCP), *id, *child;
	struct rdma_cm_event *event;

	(void)state;
	assert_int_equal(rdma_bind_addr(listener, addr_ib(NULL, 0, RDMA_PS_TCP, PORT)), 0);
	assert_int_equal(rdma_listen(listener, 1), 0);
	assert_null(listener->verbs);
	id = resolve(RDMA_PS_TCP);
	check_path(id);
	create_qp(id);
	assert_errno(rdma_connect(id, &param), EINVAL);
	param.private_data_len = 92;
	assert_int_equal(rdma_connect(id, &param), 0);
	event = next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	child = event->id;
	assert_int_equal(event->param.conn.private_data_len, 92);
	assert_memory_equal(event->param.conn.private_data, data, 92);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_string_equal(ibv_get_device_name(child->verbs->device), "hca0");
	assert_int_equal(child->route.addr.src_addr.sa_family, AF_IB);
	assert_int_equal(child->route.addr.dst_addr.sa_family, AF_IB);
	check_path(child);

	create_qp(child);
	param.private_data_len = 196;
	assert_int_equal(rdma_accept(child, &param), 0);
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(stand_in_rtr.ah_attr.dlid, 0x12);
	scene_destroy(child);
	expect_event(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	scene_destroy(id);
	scene_destroy(listener);
	assert_int_equal(stand_in.calls[CMD(RESOLVE_IP)], 0);
	assert_int_equal(stand_in.calls[CMD(RESOLVE_ADDR)], 1);
	assert_int_equal(stand_in.calls[CMD(QUERY_ROUTE)], 0);
}

static void lookups_have_more_room(void **state)
{
	static const uint8_t data[255];
	struct rdma_conn_param param = { .private_data = data, .private_data_len = 217 };
	struct rdma_cm_id *listener = scene_id(RDMA_PS_UDP), *id, *child;
	struct rdma_cm_event *event;

	(void)state;
	assert_int_equal(rdma_bind_addr(listener, addr_ib("hca0", 2, RDMA_PS_UDP, PORT)), 0);
	assert_int_equal(rdma_listen(listener, 1), 0);
	id = resolve(RDMA_PS_UDP);
	assert_errno(rdma_connect(id, &param), EINVAL);
	param.private_data_len = 216;
	assert_int_equal(rdma_connect(id, &param), 0);
	event = next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	child = event->id;
	assert_int_equal(event->param.ud.private_data_len, 216);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	param.qp_num = 3;
	param.private_data_len = 136;
	assert_int_equal(rdma_accept(child, &param), 0);
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	scene_destroy(child);
	scene_destroy(id);
	scene_destroy(listener);
}

static void addresses_nobody_has(void **state)
{
	struct sockaddr *dst = addr_ib("hca0", 1, RDMA_PS_TCP, PORT);
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);

	(void)state;
	((struct sockaddr_ib *)(void *)dst)->sib_pkey = htons(0x9999);
	assert_errno(rdma_resolve_addr(id, NULL, dst, 10), ENODEV);
	/* The family is fixed by what it was bound to. */
	assert_errno(rdma_resolve_addr(id, NULL, addr4("10.0.1.1", PORT), 10), EINVAL);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr_ib("hca0", 1, RDMA_PS_TCP, PORT), 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	scene_destroy(id);
}

/* A bind that is refused leaves the id, and what comes to it, as it was. */
static void listeners_stay_what_they_are(void **state)
{
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0");
	struct rdma_cm_id *id = scene_routed(RDMA_PS_TCP, "10.0.1.1"), *child;

	(void)state;
	assert_errno(rdma_bind_addr(listener, addr_ib("hca0", 1, RDMA_PS_TCP, PORT)), EINVAL);
	assert_int_equal(rdma_connect(id, &(struct rdma_conn_param){ .qp_num = 1 }), 0);
	child = scene_request(listener);
	assert_int_equal(child->route.num_paths, 1);
	assert_int_equal(stand_in.calls[CMD(QUERY)], 0);
	scene_destroy(child);
	expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
	scene_destroy(id);
	scene_destroy(listener);
}

/* Before 3.10 the kernel knew none of these commands. */
static void old_kernels_do_not_know_them(void **state)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);

	(void)state;
	stand_in.known_commands = CMD(QUERY);
	assert_errno(rdma_bind_addr(id, addr_ib("hca0", 1, RDMA_PS_TCP, PORT)), EINVAL);
	assert_errno(rdma_resolve_addr(id, NULL, addr_ib("hca0", 1, RDMA_PS_TCP, PORT), 10), EINVAL);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.1.1", PORT), 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	scene_destroy(id);
}

static void groups_are_joined(void **state)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_UDP);
	struct sockaddr *group = addr_ib("hca0", 1, RDMA_PS_UDP, 0);

	(void)state;
	assert_int_equal(rdma_bind_addr(id, addr_ib("hca0", 1, RDMA_PS_UDP, PORT)), 0);
	((struct sockaddr_ib *)(void *)group)->sib_addr.sib_raw[0] = 0xff;
	assert_int_equal(rdma_join_multicast(id, group, NULL), 0);
	assert_int_equal(stand_in.calls[CMD(JOIN_MCAST)], 1);
	expect_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(rdma_leave_multicast(id, group), 0);
	scene_destroy(id);
}

static int start(void **state)
{
	(void)state;
	return scene_start(SCENE_ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KERNEL_TEST(binds_find_their_port),
		KERNEL_TEST(binds_fail),
		KERNEL_TEST(connections_live),
		KERNEL_TEST(lookups_have_more_room),
		KERNEL_TEST(addresses_nobody_has),
		KERNEL_TEST(listeners_stay_what_they_are),
		KERNEL_TEST(old_kernels_do_not_know_them),
		KERNEL_TEST(groups_are_joined),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
