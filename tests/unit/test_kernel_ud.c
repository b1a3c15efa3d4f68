/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagram ids over the kernel client: service lookups, their answers, and the QP. */
#include "kernel_stand_in_scene.h"

static const uint8_t data[255] = "datagram";

static void lookups_are_answered(void **state)
{
	static const struct { const char *dst; uint16_t lid; } cases[] = {
		{ "10.0.1.1", 0x11 }, { "20.0.0.1", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_conn_param param = { .private_data = data, .private_data_len = 180 };
		struct rdma_cm_id *listener = scene_listener(RDMA_PS_UDP, "0.0.0.0");
		struct rdma_cm_id *id = scene_routed(RDMA_PS_UDP, cases[i].dst), *child;
		struct rdma_cm_event *event;

		fake_verbs.moves[0] = '\0';
		create_qp(id);
		assert_string_equal(fake_verbs.moves, "INIT RTR RTS");
		assert_int_equal(rdma_connect(id, &param), 0);
		event = next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
		child = event->id;
		assert_int_equal(event->param.ud.private_data_len, 180);
		assert_memory_equal(event->param.ud.private_data, data, 180);
		assert_int_equal(event->param.ud.qp_num, 0);
		assert_int_equal(rdma_ack_cm_event(event), 0);
		assert_int_equal(child->qp_type, IBV_QPT_UD);
		create_qp(child);

		param.private_data_len = 136;
		assert_int_equal(rdma_accept(child, &param), 0);
		event = next_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_ptr_equal(event->id, id);
		assert_int_equal(event->param.ud.qp_num, child->qp->qp_num);
		assert_int_equal(event->param.ud.qkey, 0x01234567);
		assert_int_equal(event->param.ud.ah_attr.dlid, cases[i].lid);
		assert_int_equal(event->param.ud.ah_attr.port_num, 1);
		assert_int_equal(event->param.ud.private_data_len, 136);
		assert_memory_equal(event->param.ud.private_data, data, 136);
		assert_int_equal(rdma_ack_cm_event(event), 0);
		expect_no_event(channel);

		/* There is no connection to end. */
		assert_int_equal(rdma_disconnect(id), 0);
		expect_no_event(channel);
		scene_destroy(id);
		scene_destroy(child);
		scene_destroy(listener);
	}
}

static void lookups_are_refused(void **state)
{
	struct rdma_conn_param param = { .private_data = data, .private_data_len = 181 };
	struct rdma_cm_id *id = scene_routed(RDMA_PS_UDP, "10.0.1.1"), *listener, *child;
	struct rdma_cm_event *event;

	(void)state;
	assert_errno(rdma_connect(id, &param), EINVAL);
	assert_int_equal(rdma_connect(id, NULL), 0);
	expect_event(channel, RDMA_CM_EVENT_UNREACHABLE, 1);
	scene_destroy(id);

	listener = scene_listener(RDMA_PS_UDP, "10.0.1.1");
	id = scene_routed(RDMA_PS_UDP, "10.0.1.1");
	assert_int_equal(rdma_connect(id, NULL), 0);
	child = scene_request(listener);
	assert_errno(rdma_reject(child, data, 137), EINVAL);
	assert_int_equal(rdma_reject(child, data, 136), 0);
	event = next_event(channel, RDMA_CM_EVENT_UNREACHABLE, 2);
	assert_int_equal(event->param.ud.private_data_len, 136);
	assert_memory_equal(event->param.ud.private_data, data, 136);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	scene_destroy(child);
	scene_destroy(id);
	scene_destroy(listener);
}

static void too_much_accept_data_refuses_the_peer(void **state)
{
	struct rdma_conn_param param = {
		.qp_num = 9, .private_data = data, .private_data_len = 137,
	};
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_UDP, "10.0.1.1");
	struct rdma_cm_id *id = scene_routed(RDMA_PS_UDP, "10.0.1.1"), *child;

	(void)state;
	assert_int_equal(rdma_connect(id, NULL), 0);
	child = scene_request(listener);
	assert_errno(rdma_accept(child, &param), EINVAL);
	assert_int_equal(stand_in.calls[RDMA_USER_CM_CMD_ACCEPT], 1);
	expect_event(channel, RDMA_CM_EVENT_UNREACHABLE, 2);
	scene_destroy(child);
	scene_destroy(id);
	scene_destroy(listener);
}

/* Port spaces and what decides the kind of an id. */
static void port_spaces_reach_the_kernel(void **state)
{
	static const struct {
		enum rdma_port_space ps;
		const char *addr;
		int error;
		enum ibv_qp_type qp_type;
	} cases[] = {
		{ RDMA_PS_TCP, "10.0.1.1", 0, IBV_QPT_RC },
		{ RDMA_PS_IB, "10.0.1.1", 0, IBV_QPT_RC },
		{ RDMA_PS_UDP, "10.0.1.1", 0, IBV_QPT_UD },
		{ RDMA_PS_IPOIB, "10.0.1.1", 0, IBV_QPT_UD },
		{ RDMA_PS_IPOIB, "20.0.0.1", EINVAL, IBV_QPT_UD },
		{ RDMA_PS_UDP, "20.0.0.1", 0, IBV_QPT_UD },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *id = scene_id(cases[i].ps);

		print_message("case %zu\n", i);
		assert_int_equal(id->qp_type, cases[i].qp_type);
		if (cases[i].error)
			assert_errno(rdma_bind_addr(id, addr4(cases[i].addr, PORT)),
				     cases[i].error);
		else
			assert_int_equal(rdma_bind_addr(id, addr4(cases[i].addr, PORT)), 0);
		if (!cases[i].error)
			assert_int_not_equal(stand_in_find(id), 0);
		scene_destroy(id);
	}
}

/* The kernel's word on the Q_Key comes as an error of the address. */
static void wrong_qkeys_are_address_errors(void **state)
{
	struct rdma_cm_id *id = scene_routed(RDMA_PS_UDP, "10.0.1.7");

	(void)state;
	assert_int_equal(rdma_connect(id, NULL), 0);
	stand_in_post(stand_in_find(id), RDMA_CM_EVENT_ADDR_ERROR, -EINVAL);
	expect_event(channel, RDMA_CM_EVENT_ADDR_ERROR, -EINVAL);
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
		KERNEL_TEST(lookups_are_answered),
		KERNEL_TEST(lookups_are_refused),
		KERNEL_TEST(too_much_accept_data_refuses_the_peer),
		KERNEL_TEST(port_spaces_reach_the_kernel),
		KERNEL_TEST(wrong_qkeys_are_address_errors),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
