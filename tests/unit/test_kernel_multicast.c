/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups over the kernel client: joined, left, and gone with their id. */
#include "kernel_stand_in_scene.h"

static struct rdma_cm_id *bound_id(const char *addr)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_UDP);

	assert_int_equal(rdma_bind_addr(id, addr4(addr, PORT)), 0);
	return id;
}

static void groups_are_joined_and_left(void **state)
{
	static const struct { const char *addr; uint8_t mgid[16]; bool lid; } cases[] = {
		{ "10.0.1.1", { 0xff, 0x12, 0x40, 0x01, [12] = 0x0f, 1, 2, 3 }, true },
		{ "20.0.0.1", { [10] = 0xff, 0xff, 239, 1, 2, 3 }, false },
	};
	static int context;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *id = bound_id(cases[i].addr);
		struct sockaddr *group = addr4("239.1.2.3", 0);
		const struct rdma_ud_param *ud;
		struct rdma_cm_event *event;

		create_qp(id);
		assert_int_equal(rdma_join_multicast(id, group, &context), 0);
		assert_int_equal(fake_verbs.attached, 0);
		event = next_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
		ud = &event->param.ud;
		assert_ptr_equal(event->id, id);
		assert_ptr_equal(ud->private_data, &context);
		assert_int_equal(ud->private_data_len, 0);
		assert_int_equal(ud->qp_num, 0xffffff);
		assert_int_equal(ud->qkey, 0x01234567);
		assert_int_equal(ud->ah_attr.is_global, 1);
		assert_int_equal(ud->ah_attr.port_num, 1);
		assert_memory_equal(&ud->ah_attr.grh.dgid, cases[i].mgid, 16);
		assert_int_equal(ud->ah_attr.dlid >= 0xc000, cases[i].lid);
		assert_int_equal(rdma_ack_cm_event(event), 0);
		assert_int_equal(fake_verbs.attached, 1);
		assert_int_equal(stand_in.groups, 1);

		assert_int_equal(rdma_leave_multicast(id, group), 0);
		assert_int_equal(fake_verbs.attached, 0);
		assert_int_equal(stand_in.groups, 0);
		assert_errno(rdma_leave_multicast(id, group), EADDRNOTAVAIL);
		scene_destroy(id);
	}
	assert_int_equal(stand_in.calls[RDMA_USER_CM_CMD_LEAVE_MCAST], ARRAY_SIZE(cases));
}

/* IPv6 groups, and flags that the older command cannot say. */
static void joins_take_the_command_that_can_say_it(void **state)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		.addr = addr4("239.1.2.4", 0),
	};
	struct rdma_cm_id *id = bound_id("10.0.1.1");

	(void)state;
	create_qp(id);
	assert_int_equal(rdma_join_multicast_ex(id, &attr, NULL), 0);
	assert_int_equal(stand_in.calls[RDMA_USER_CM_CMD_JOIN_MCAST], 1);
	expect_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(fake_verbs.attached, 0);
	assert_int_equal(rdma_join_multicast(id, addr6("10.0.0.9", 0), NULL), 0);
	expect_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(fake_verbs.attached, 1);
	assert_int_equal(stand_in.groups, 2);
	/* With the id. */
	scene_destroy(id);
	assert_int_equal(stand_in.groups, 0);
}

static void unread_joins_are_dropped_with_the_group(void **state)
{
	struct rdma_cm_id *id = bound_id("10.0.1.1");
	struct sockaddr *first = addr4("239.1.2.3", 0), *second = addr4("239.1.2.4", 0);
	static int contexts[2];
	struct rdma_cm_event *event;

	(void)state;
	assert_int_equal(rdma_join_multicast(id, first, &contexts[0]), 0);
	assert_int_equal(rdma_join_multicast(id, second, &contexts[1]), 0);
	assert_int_equal(rdma_leave_multicast(id, first), 0);
	event = next_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_ptr_equal(event->param.ud.private_data, &contexts[1]);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	expect_no_event(channel);
	assert_int_equal(rdma_join_multicast(id, first, &contexts[0]), 0);
	scene_destroy(id);
	expect_no_event(channel);
}

static void joins_fail(void **state)
{
	struct rdma_cm_id *id = bound_id("10.0.1.1"), *rc = scene_id(RDMA_PS_TCP);
	struct rdma_cm_id *iwarp = bound_id("30.0.0.1"), *nowhere = scene_id(RDMA_PS_UDP);
	struct sockaddr *group = addr4("239.1.2.3", 0);

	(void)state;
	assert_int_equal(rdma_bind_addr(rc, addr4("10.0.1.1", PORT)), 0);
	assert_errno(rdma_join_multicast(rc, group, NULL), EINVAL);
	assert_errno(rdma_join_multicast(iwarp, group, NULL), ENOSYS);
	assert_errno(rdma_join_multicast(nowhere, group, NULL), EINVAL);
	stand_in.fault[RDMA_USER_CM_CMD_JOIN_IP_MCAST].error = EADDRNOTAVAIL;
	stand_in.fault[RDMA_USER_CM_CMD_JOIN_MCAST].error = EADDRNOTAVAIL;
	assert_errno(rdma_join_multicast(id, group, NULL), EADDRNOTAVAIL);
	expect_no_event(channel);
	assert_errno(rdma_leave_multicast(id, group), EADDRNOTAVAIL);
	assert_int_equal(stand_in.groups, 0);
	scene_destroy(nowhere);
	scene_destroy(iwarp);
	scene_destroy(rc);
	scene_destroy(id);
}

/* Answers of the kernel that lack something: nothing stays joined. */
static void joins_are_answered_badly(void **state)
{
	struct rdma_cm_id *id = bound_id("10.0.1.1");
	struct sockaddr *group = addr4("239.1.2.3", 0);

	(void)state;
	for (int i = 0; i < 2; i++) {
		const unsigned int commands[] = {
			RDMA_USER_CM_CMD_JOIN_IP_MCAST, RDMA_USER_CM_CMD_JOIN_MCAST,
		};

		for (size_t j = 0; j < ARRAY_SIZE(commands); j++) {
			stand_in.fault[commands[j]].short_result = true;
			stand_in.fault[commands[j]].mute = i;
		}
		assert_errno(rdma_join_multicast(id, group, NULL), ENODATA);
		/* Left again, if its number is known; else it goes with the id. */
		assert_int_equal(stand_in.groups, i);
		for (size_t j = 0; j < ARRAY_SIZE(commands); j++)
			stand_in.fault[commands[j]] = (struct stand_in_fault){ 0 };
		expect_no_event(channel);
	}
	/* The id is as it was. */
	assert_int_equal(rdma_join_multicast(id, group, NULL), 0);
	expect_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	scene_destroy(id);
}

static void groups_can_be_lost(void **state)
{
	struct rdma_cm_id *id = bound_id("10.0.1.1");
	struct sockaddr *group = addr4("239.1.2.3", 0);
	struct rdma_ucm_event_resp resp = {
		.event = RDMA_CM_EVENT_MULTICAST_ERROR, .status = (uint32_t)-ENETRESET,
	};
	static int context;
	struct rdma_cm_event *event;

	(void)state;
	assert_int_equal(rdma_join_multicast(id, group, &context), 0);
	expect_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	resp.uid = stand_in_group_uid(stand_in_find(id));
	stand_in_post_raw(stand_in_find(id), &resp);
	event = next_event(channel, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET);
	assert_ptr_equal(event->param.ud.private_data, &context);
	assert_int_equal(rdma_ack_cm_event(event), 0);
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
		KERNEL_TEST(groups_are_joined_and_left),
		KERNEL_TEST(joins_take_the_command_that_can_say_it),
		KERNEL_TEST(unread_joins_are_dropped_with_the_group),
		KERNEL_TEST(joins_fail),
		KERNEL_TEST(joins_are_answered_badly),
		KERNEL_TEST(groups_can_be_lost),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
