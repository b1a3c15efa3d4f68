/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A kernel that talks nonsense: events for nobody, numbers that do not exist,
 * answers that contradict each other.  What cannot be understood is dropped;
 * ids that are not meant go on as before.
 */
#include "kernel_stand_in_scene.h"

#define CMD(name) RDMA_USER_CM_CMD_##name

/* The event of interest after what was dropped. */
static void goes_on(struct rdma_cm_id *id)
{
	assert_int_equal(rdma_resolve_route(id, 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	expect_no_event(channel);
}

/* The program gets it, so that it is acked. */
static void an_event_may_come_with_a_short_result(void **state)
{
	struct rdma_cm_id *id = scene_resolved(RDMA_PS_TCP, "10.0.1.1");

	(void)state;
	stand_in_post(stand_in_find(id), RDMA_CM_EVENT_ADDR_CHANGE, 0);
	stand_in.fault[CMD(GET_EVENT)].short_result = true;
	expect_event(channel, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	goes_on(id);
	scene_destroy(id);
}

static void events_for_nobody_are_dropped(void **state)
{
	struct rdma_cm_id *id = scene_resolved(RDMA_PS_TCP, "10.0.1.1"), *gone;
	const uint32_t number = stand_in_find(id);
	uint64_t uids[] = {
		0, 1, 63, 64, 65, UINT32_MAX, UINT64_MAX, UINT64_C(1) << 63, 0, 0, 0, 0,
	};

	(void)state;
	gone = scene_id(RDMA_PS_TCP);
	uids[8] = stand_in_uid(stand_in_newest());
	scene_destroy(gone);
	/* Where one was, there is another now. */
	gone = scene_id(RDMA_PS_TCP);
	uids[9] = stand_in_uid(number) + 1;
	uids[10] = stand_in_uid(number) + (UINT64_C(1) << 32);
	uids[11] = (uint64_t)(uintptr_t)id;
	for (size_t i = 0; i < ARRAY_SIZE(uids); i++)
		for (uint32_t type = 0; type <= RDMA_CM_EVENT_TIMEWAIT_EXIT; type++) {
			const struct rdma_ucm_event_resp resp = {
				.uid = uids[i], .id = 0xfffffff0, .event = type,
			};

			if (uids[i] == stand_in_uid(number) ||
			    uids[i] == stand_in_uid(stand_in_newest()))
				continue;
			stand_in_post_raw(number, &resp);
		}
	goes_on(id);
	scene_destroy(gone);
	scene_destroy(id);
}

static void unknown_events_are_dropped(void **state)
{
	static const uint32_t types[] = {
		RDMA_CM_EVENT_TIMEWAIT_EXIT + 1, 17, 18, 19, 255, 256, 0x7fffffff, 0x80000000,
		UINT32_MAX,
	};
	struct rdma_cm_id *id = scene_resolved(RDMA_PS_TCP, "10.0.1.1");
	const uint32_t number = stand_in_find(id);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		const struct rdma_ucm_event_resp resp = {
			.uid = stand_in_uid(number), .id = number, .event = types[i],
		};

		stand_in_post_raw(number, &resp);
	}
	goes_on(id);
	scene_destroy(id);
}

/* A name that is an id's comes with a group's event, and the other way round. */
static void names_are_of_one_kind(void **state)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_UDP);
	struct rdma_ucm_event_resp resp = { 0 };
	uint32_t number;

	(void)state;
	assert_int_equal(rdma_bind_addr(id, addr4("10.0.1.1", PORT)), 0);
	assert_int_equal(rdma_join_multicast(id, addr4("239.1.2.3", 0), NULL), 0);
	expect_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	number = stand_in_find(id);
	for (uint32_t type = 0; type <= RDMA_CM_EVENT_TIMEWAIT_EXIT; type++) {
		bool of_group = type == RDMA_CM_EVENT_MULTICAST_JOIN ||
				type == RDMA_CM_EVENT_MULTICAST_ERROR;

		resp.event = type;
		resp.uid = of_group ? stand_in_uid(number) : stand_in_group_uid(number);
		resp.id = 0xfffffff0;
		stand_in_post_raw(number, &resp);
	}
	expect_no_event(channel);
	assert_int_equal(rdma_leave_multicast(id, addr4("239.1.2.3", 0)), 0);
	scene_destroy(id);
}

/* More data than any message holds, and an event of each kind where it has no place. */
static void lengths_are_the_bytes_that_there_are(void **state)
{
	struct rdma_cm_id *ids[2] = { scene_routed(RDMA_PS_TCP, "10.0.1.7"),
				      scene_routed(RDMA_PS_UDP, "10.0.1.7") };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		const uint32_t number = stand_in_find(ids[i]);
		struct rdma_ucm_event_resp resp = {
			.uid = stand_in_uid(number), .id = number,
			.event = RDMA_CM_EVENT_ESTABLISHED,
		};
		struct rdma_cm_event *event;
		const uint8_t *data;

		if (i) {
			memset(resp.param.ud.private_data, 0x5a, RDMA_MAX_PRIVATE_DATA);
			resp.param.ud.private_data_len = 255;
		} else {
			memset(resp.param.conn.private_data, 0x5a, RDMA_MAX_PRIVATE_DATA);
			resp.param.conn.private_data_len = 255;
		}
		stand_in_post_raw(number, &resp);
		event = next_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		data = i ? event->param.ud.private_data : event->param.conn.private_data;
		assert_int_equal(i ? event->param.ud.private_data_len
				   : event->param.conn.private_data_len, 255);
		assert_int_equal(data[0], 0x5a);
		assert_int_equal(data[254], 0x5a);
		assert_int_equal(rdma_ack_cm_event(event), 0);
		scene_destroy(ids[i]);
	}
}

static void statuses_are_told_as_they_are(void **state)
{
	static const int statuses[] = { 1, 28, 65535, -1, -ETIMEDOUT, -4096, INT32_MAX, INT32_MIN };
	struct rdma_cm_id *id = scene_routed(RDMA_PS_TCP, "10.0.1.7");
	struct capture capture;

	(void)state;
	/* The words for them go to the log. */
	capture_begin(&capture);
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		stand_in_post(stand_in_find(id), RDMA_CM_EVENT_REJECTED, statuses[i]);
		expect_event(channel, RDMA_CM_EVENT_REJECTED, statuses[i]);
	}
	(void)capture_end(&capture);
	scene_destroy(id);
}

/* Requests for ids that do not listen, and with ids that do not exist. */
static void requests_that_cannot_be(void **state)
{
	struct rdma_cm_id *id = scene_resolved(RDMA_PS_TCP, "10.0.1.1");
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0");
	struct rdma_cm_id *targets[] = { id, listener };
	const uint32_t numbers[] = { 0, 0x7fffffff, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
		for (size_t j = 0; j < ARRAY_SIZE(numbers); j++) {
			const uint32_t number = stand_in_find(targets[i]);
			const struct rdma_ucm_event_resp resp = {
				.uid = stand_in_uid(number), .id = numbers[j],
				.event = RDMA_CM_EVENT_CONNECT_REQUEST,
			};

			stand_in_post_raw(number, &resp);
			expect_no_event(channel);
		}
	goes_on(id);
	assert_int_equal(rdma_connect(id, &(struct rdma_conn_param){ .qp_num = 1 }), 0);
	scene_destroy(scene_request(listener));
	expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
	scene_destroy(id);
	scene_destroy(listener);
}

/* ------------------------------------------------------------------------
 * Answers.
 */

static struct rdma_ucm_query_route_resp forged;
static bool forge;

static void forge_route(unsigned int command, void *response, size_t len)
{
	if (forge && command == CMD(QUERY_ROUTE))
		memcpy(response, &forged, len < sizeof(forged) ? len : sizeof(forged));
}

#define GUID(n) htobe64(UINT64_C(0x0002c90300000000) + (n))

static void answers_about_addresses_are_checked(void **state)
{
	static const struct {
		struct rdma_ucm_query_route_resp resp;
		uint16_t family;
		bool garbage, resolved;
	} cases[] = {
		/* All is well. */
		{ { .ibdev_index = 1, .port_num = 1 }, AF_INET, false, true },
		/* Families there are not, or whose addresses do not fit. */
		{ { .ibdev_index = 1, .port_num = 1 }, 0, false, true },
		{ { .ibdev_index = 1, .port_num = 1 }, 0xffff, false, true },
		{ { .ibdev_index = 1, .port_num = 1 }, AF_IB, false, true },
		{ { .ibdev_index = 1, .port_num = 1 }, AF_UNIX, false, true },
		/* More paths than the answer has room for. */
		{ { .ibdev_index = 1, .port_num = 1, .num_paths = 3 }, AF_INET, false, true },
		{ { .ibdev_index = 1, .port_num = 1, .num_paths = UINT32_MAX }, AF_INET, true, true },
		/* Devices there are not. */
		{ { .ibdev_index = 77, .port_num = 1 }, AF_INET, false, false },
		{ { .ibdev_index = 0x80000001, .port_num = 1 }, AF_INET, false, false },
		{ { .port_num = 0 }, AF_INET, false, false },
	};

	(void)state;
	stand_in.edit = forge_route;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);
		struct rdma_cm_event *event;

		print_message("case %zu\n", i);
		forged = cases[i].resp;
		if (cases[i].garbage)
			memset(&forged, 0xff, offsetof(struct rdma_ucm_query_route_resp, src_addr));
		forged.node_guid = cases[i].resp.port_num ? GUID(1) : 0;
		forged.src_addr.sin6_family = cases[i].family;
		forged.dst_addr.sin6_family = cases[i].family;
		forge = true;
		assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.1.1", PORT), 10), 0);
		assert_int_equal(rdma_get_cm_event(channel, &event), 0);
		assert_int_equal(event->event, cases[i].resolved ? RDMA_CM_EVENT_ADDR_RESOLVED
								  : RDMA_CM_EVENT_ADDR_ERROR);
		assert_int_equal(rdma_ack_cm_event(event), 0);
		if (cases[i].resolved) {
			assert_int_equal(rdma_resolve_route(id, 10), 0);
			expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
			assert_true(id->route.num_paths >= 0 && id->route.num_paths <= 2);
		}
		forge = false;
		scene_destroy(id);
	}
	stand_in.edit = NULL;
}

/* Whatever an answer to a query says, in every byte. */
static unsigned int fill;

static void fill_answer(unsigned int command, void *response, size_t len)
{
	if (command == CMD(QUERY_ROUTE) || command == CMD(QUERY) || command == CMD(INIT_QP_ATTR))
		memset(response, (int)fill, len);
}

static void answers_of_noise_do_no_harm(void **state)
{
	static const unsigned int fills[] = { 0, 1, 2, 0x0a, 0x1b, 0x7f, 0x80, 0xff };

	(void)state;
	stand_in.edit = fill_answer;
	for (size_t i = 0; i < ARRAY_SIZE(fills) * 2; i++) {
		struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);
		struct sockaddr *dst = i % 2 ? addr_ib("hca1", 1, RDMA_PS_TCP, PORT)
					     : addr4("10.0.1.1", PORT);
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
		int mask;

		fill = fills[i / 2];
		print_message("0x%x\n", fill);
		if (!rdma_resolve_addr(id, NULL, dst, 10)) {
			assert_int_equal(scene_drain(), 1);
			(void)rdma_resolve_route(id, 10);
			scene_drain();
			(void)rdma_init_qp_attr(id, &attr, &mask);
		}
		scene_destroy(id);
	}
	stand_in.edit = NULL;
}

/* How many events there were: what the kernel says of it cannot make a call wait forever. */
static uint32_t reported;

static void forge_count(unsigned int command, void *response, size_t len)
{
	if (command == CMD(DESTROY_ID) || command == CMD(LEAVE_MCAST) || command == CMD(MIGRATE_ID))
		memcpy(response, &reported, len < sizeof(reported) ? len : sizeof(reported));
}

static void counts_of_events_are_not_believed(void **state)
{
	static const uint32_t counts[] = { 0, 1, 1000, 0x7fffffff, 0x80000000, UINT32_MAX };

	(void)state;
	stand_in.edit = forge_count;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		struct rdma_event_channel *other = rdma_create_event_channel();
		struct rdma_cm_id *id = scene_id(RDMA_PS_UDP);

		reported = counts[i];
		assert_int_equal(rdma_bind_addr(id, addr4("10.0.1.1", PORT)), 0);
		assert_int_equal(rdma_join_multicast(id, addr4("239.1.2.3", 0), NULL), 0);
		expect_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
		assert_int_equal(rdma_leave_multicast(id, addr4("239.1.2.3", 0)), 0);
		assert_int_equal(rdma_migrate_id(id, other), 0);
		scene_destroy(id);
		rdma_destroy_event_channel(other);
	}
	stand_in.edit = NULL;
}

static int start(void **state)
{
	(void)state;
	return scene_start(SCENE_ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KERNEL_TEST(an_event_may_come_with_a_short_result),
		KERNEL_TEST(events_for_nobody_are_dropped),
		KERNEL_TEST(unknown_events_are_dropped),
		KERNEL_TEST(names_are_of_one_kind),
		KERNEL_TEST(lengths_are_the_bytes_that_there_are),
		KERNEL_TEST(statuses_are_told_as_they_are),
		KERNEL_TEST(requests_that_cannot_be),
		KERNEL_TEST(answers_about_addresses_are_checked),
		KERNEL_TEST(answers_of_noise_do_no_harm),
		KERNEL_TEST(counts_of_events_are_not_believed),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
