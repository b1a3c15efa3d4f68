/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Some devices belong to providers that were not selected: here there are
 * "vendor", which has hca1, and "roce"; nobody has hca0 and iw0.  An address on
 * those is no device for the program, and the id is of use afterwards.
 */
#include "kernel_stand_in_scene.h"

#include "core/base/log.h"

#define CMD(name) RDMA_USER_CM_CMD_##name

static const char *const unclaimed[][2] = {
	{ "30.0.0.1", "iw0, an iWARP device" },
	{ "10.0.1.1", "hca0, an InfiniBand device" },
};

static void providers_claim_by_what_they_like(void **state)
{
	struct ibv_context **list;
	struct rdma_cm_id *id;
	int num;

	(void)state;
	list = rdma_get_devices(&num);
	assert_int_equal(num, 2);
	assert_string_equal(ibv_get_device_name(list[0]->device), "hca1");
	assert_string_equal(ibv_get_device_name(list[1]->device), "rocee0");
	rdma_free_devices(list);
	id = scene_routed(RDMA_PS_TCP, "10.1.1.1");
	assert_string_equal(((struct polycm_id *)(void *)id)->module->name, "vendor");
	scene_destroy(id);
}

static void set_reuse(struct rdma_cm_id *id)
{
	int one = 1;

	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one,
					 sizeof(one)), 0);
}

static void binds_to_them_fail_and_can_be_made_elsewhere(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(unclaimed); i++) {
		struct rdma_cm_id *id = scene_id(RDMA_PS_TCP), *other = scene_id(RDMA_PS_TCP);
		struct capture capture;
		int old = polycm_log_level;
		const char *text;

		set_reuse(id);
		polycm_log_level = POLYCM_LOG_WARN;
		capture_begin(&capture);
		assert_errno(rdma_bind_addr(id, addr4(unclaimed[i][0], PORT)), ENODEV);
		text = capture_end(&capture);
		polycm_log_level = old;
		assert_non_null(strstr(text, unclaimed[i][0]));
		assert_non_null(strstr(text, unclaimed[i][1]));
		assert_int_equal(count_lines(text), 1);
		assert_null(id->verbs);

		/* As it was before: not bound, and with its options. */
		assert_int_equal(rdma_bind_addr(id, addr4("20.0.0.1", PORT)), 0);
		assert_string_equal(ibv_get_device_name(id->verbs->device), "rocee0");
		set_reuse(other);
		assert_int_equal(rdma_bind_addr(other, addr4("20.0.0.1", PORT)), 0);
		scene_destroy(id);
		scene_destroy(other);
		assert_int_equal(stand_in.ids, 0);
	}
}

/* A card of which one port is somebody's, and the other, the first, is not. */
static void a_port_may_be_nobodys(void **state)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);
	struct capture capture;
	int old = polycm_log_level;
	const char *text;

	(void)state;
	stand_in_plug("vpi0", true);
	polycm_log_level = POLYCM_LOG_WARN;
	capture_begin(&capture);
	assert_errno(rdma_bind_addr(id, addr4("10.2.1.1", PORT)), ENODEV);
	text = capture_end(&capture);
	polycm_log_level = old;
	assert_non_null(strstr(text, "vpi0/1, an InfiniBand device"));
	assert_int_equal(rdma_bind_addr(id, addr4("20.1.0.1", PORT)), 0);
	assert_string_equal(ibv_get_device_name(id->verbs->device), "vpi0");
	assert_string_equal(((struct polycm_id *)(void *)id)->module->name, "roce");
	assert_int_equal(((struct polycm_id *)(void *)id)->device->link_layer,
			 IBV_LINK_LAYER_ETHERNET);
	scene_destroy(id);
}

static void addresses_on_them_do_not_resolve(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(unclaimed); i++) {
		struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);
		struct capture capture;
		int old = polycm_log_level;
		const char *text;

		polycm_log_level = POLYCM_LOG_WARN;
		capture_begin(&capture);
		for (int again = 0; again < 2; again++) {
			assert_int_equal(rdma_resolve_addr(id, NULL, addr4(unclaimed[i][0], PORT),
							   10), 0);
			expect_event(channel, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
		}
		text = capture_end(&capture);
		polycm_log_level = old;
		assert_non_null(strstr(text, unclaimed[i][1]));
		assert_null(id->verbs);
		expect_no_event(channel);

		assert_int_equal(rdma_resolve_addr(id, NULL, addr4("20.0.0.7", PORT), 10), 0);
		expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_string_equal(ibv_get_device_name(id->verbs->device), "rocee0");
		assert_int_equal(rdma_resolve_route(id, 10), 0);
		expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		scene_destroy(id);
		assert_int_equal(stand_in.ids, 0);
	}
}

/* Bound to a port before: bound to it afterwards, with the options set before that. */
static void what_was_bound_stays_bound(void **state)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP), *other = scene_id(RDMA_PS_TCP), *chosen;
	__be16 port;

	(void)state;
	set_reuse(id);
	assert_int_equal(rdma_bind_addr(id, addr4("0.0.0.0", PORT)), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("30.0.0.1", PORT), 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("20.0.0.7", PORT), 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_get_src_port(id), htons(PORT));
	set_reuse(other);
	assert_int_equal(rdma_bind_addr(other, addr4("20.0.0.1", PORT)), 0);

	/* A port that the kernel chose, too. */
	chosen = scene_id(RDMA_PS_TCP);
	assert_int_equal(rdma_bind_addr(chosen, addr4("0.0.0.0", 0)), 0);
	port = rdma_get_src_port(chosen);
	assert_int_not_equal(port, 0);
	assert_int_equal(rdma_resolve_addr(chosen, NULL, addr4("30.0.0.1", PORT), 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	assert_int_equal(rdma_resolve_addr(chosen, NULL, addr4("20.0.0.7", PORT), 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_get_src_port(chosen), port);
	scene_destroy(chosen);
	scene_destroy(other);
	scene_destroy(id);
}

/* The new kernel id cannot be made at once: nothing is forgotten by that. */
static void what_fails_on_the_way_back_is_tried_again(void **state)
{
	static const unsigned int commands[] = { CMD(CREATE_ID), CMD(SET_OPTION), CMD(BIND_IP) };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		struct rdma_cm_id *id = scene_id(RDMA_PS_TCP), *other = scene_id(RDMA_PS_TCP);

		print_message("%s\n", stand_in_command_name(commands[i]));
		set_reuse(id);
		assert_int_equal(rdma_bind_addr(id, addr4("0.0.0.0", PORT)), 0);
		assert_int_equal(rdma_resolve_addr(id, NULL, addr4("30.0.0.1", PORT), 10), 0);
		expect_event(channel, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
		stand_in.fault[commands[i]].error = ENOMEM;
		assert_errno(rdma_resolve_addr(id, NULL, addr4("20.0.0.7", PORT), 10), ENOMEM);
		assert_int_equal(rdma_resolve_addr(id, NULL, addr4("20.0.0.7", PORT), 10), 0);
		expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_int_equal(rdma_get_src_port(id), htons(PORT));
		set_reuse(other);
		assert_int_equal(rdma_bind_addr(other, addr4("20.0.0.1", PORT)), 0);
		scene_destroy(other);
		scene_destroy(id);
		assert_int_equal(stand_in.ids, 0);
	}
}

static const struct kernel_host *host;
static unsigned int listings;

static int counted_devices(struct kernel_host_device **ret_devices, size_t *ret_num)
{
	listings++;
	return host->devices(ret_devices, ret_num);
}

/* And the host's devices are not listed for each: anybody can send them. */
static void requests_on_them_are_refused(void **state)
{
	static struct kernel_host counting;
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0"), *child;
	struct stranger stranger;

	(void)state;
	host = polycm_kernel_host;
	counting = *host;
	counting.devices = counted_devices;
	polycm_kernel_host = &counting;
	for (size_t i = 0; i < ARRAY_SIZE(unclaimed); i++) {
		struct capture capture;
		int old = polycm_log_level;
		const char *text;

		polycm_log_level = POLYCM_LOG_INFO;
		capture_begin(&capture);
		stranger_connect(&stranger, unclaimed[i][0]);
		expect_no_event(channel);
		text = capture_end(&capture);
		polycm_log_level = old;
		assert_non_null(strstr(text, unclaimed[i][1]));
		stranger_hears(&stranger, RDMA_CM_EVENT_REJECTED, i ? 28 : -ECONNREFUSED);
		stranger_end(&stranger);
		assert_int_equal(stand_in.ids, 1);
	}
	polycm_kernel_host = host;
	assert_int_equal(listings, 0);
	/* The others are served. */
	stranger_connect(&stranger, "20.0.0.1");
	child = scene_request(listener);
	assert_string_equal(ibv_get_device_name(child->verbs->device), "rocee0");
	scene_destroy(child);
	stranger_end(&stranger);
	scene_destroy(listener);
}

static int start(void **state)
{
	(void)state;
	return scene_start(SCENE_VENDOR | SCENE_ROCE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KERNEL_TEST(providers_claim_by_what_they_like),
		KERNEL_TEST(binds_to_them_fail_and_can_be_made_elsewhere),
		KERNEL_TEST(a_port_may_be_nobodys),
		KERNEL_TEST(addresses_on_them_do_not_resolve),
		KERNEL_TEST(what_was_bound_stays_bound),
		KERNEL_TEST(what_fails_on_the_way_back_is_tried_again),
		KERNEL_TEST(requests_on_them_are_refused),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
