/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listening over the kernel client: one kernel id serves the devices of all
 * providers, and each request goes to the provider of the device that it came
 * in on.
 */
#include "kernel_stand_in_scene.h"

#define CMD(name) RDMA_USER_CM_CMD_##name

static const struct { const char *addr, *device, *provider; } ends[] = {
	{ "10.0.1.1", "hca0", "ib" },
	{ "10.1.2.1", "hca1", "ib" },
	{ "20.0.0.1", "rocee0", "roce" },
	{ "30.0.0.1", "iw0", "iwarp" },
};

static void check_end(const struct rdma_cm_id *id, size_t i)
{
	const struct polycm_id *core = (const struct polycm_id *)(const void *)id;

	assert_string_equal(ibv_get_device_name(id->verbs->device), ends[i].device);
	assert_string_equal(core->module->name, ends[i].provider);
}

static void one_id_serves_all_devices(void **state)
{
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0");
	struct stranger strangers[ARRAY_SIZE(ends)];

	(void)state;
	assert_int_equal(stand_in.ids, 1);
	assert_int_equal(stand_in.calls[CMD(LISTEN)], 1);
	assert_int_equal(stand_in.calls[CMD(BIND_IP)], 1);
	assert_null(listener->verbs);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		stranger_connect(&strangers[i], ends[i].addr);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct rdma_cm_id *child = scene_request(listener);

		check_end(child, i);
		assert_int_equal(rdma_accept(child, &(struct rdma_conn_param){ .qp_num = 1 }), 0);
		if (i == 3)
			expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		stranger_hears(&strangers[i], i == 3 ? RDMA_CM_EVENT_ESTABLISHED
						     : RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		scene_destroy(child);
		stranger_end(&strangers[i]);
	}
	scene_destroy(listener);
	assert_int_equal(stand_in.ids, 0);
}

static void a_listener_on_an_address_is_on_its_device(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, ends[i].addr), *child;
		struct stranger stranger;

		check_end(listener, i);
		stranger_connect(&stranger, ends[i].addr);
		child = scene_request(listener);
		check_end(child, i);
		scene_destroy(child);
		stranger_end(&stranger);
		/* Same port, other address: nobody there. */
		if (i != 3) {
			stranger_connect(&stranger, "10.0.2.1");
			stranger_hears(&stranger, RDMA_CM_EVENT_REJECTED, 28);
			stranger_end(&stranger);
		}
		expect_no_event(channel);
		scene_destroy(listener);
	}
}

static void ids_that_are_not_bound_listen_on_any_port(void **state)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);

	(void)state;
	assert_int_equal(rdma_listen(id, 0), 0);
	assert_int_equal(stand_in.ids, 1);
	assert_int_not_equal(rdma_get_src_port(id), 0);
	assert_int_equal(id->route.addr.src_addr.sa_family, AF_INET);
	assert_int_equal(stand_in_state(stand_in_find(id)), STAND_IN_LISTEN);
	assert_errno(rdma_listen(id, 0), EINVAL);
	assert_errno(rdma_resolve_addr(id, NULL, addr4("10.0.1.1", PORT), 10), EINVAL);
	assert_errno(rdma_bind_addr(id, addr4("10.0.1.1", PORT)), EINVAL);
	scene_destroy(id);
}

static void ports_are_the_kernels(void **state)
{
	static const struct { const char *first, *second; uint16_t port; int error; } cases[] = {
		{ "10.0.1.1", "10.0.1.1", PORT, EADDRINUSE },
		{ "10.0.1.1", "10.0.2.1", PORT, 0 },
		{ "10.0.1.1", "20.0.0.1", PORT, 0 },
		{ "0.0.0.0", "10.0.1.1", PORT, EADDRNOTAVAIL },
		{ "10.0.1.1", "0.0.0.0", PORT, EADDRNOTAVAIL },
		{ "10.0.1.1", "127.0.0.1", PORT, EADDRNOTAVAIL },
		{ "10.0.1.1", "0.0.0.0", 80, EACCES },
		{ "10.0.1.1", "10.0.1.2", PORT, EADDRNOTAVAIL },
		{ "10.0.1.1", "40.0.0.1", PORT, ENODEV },
		{ "10.0.1.1", "10.0.1.1", 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *first = scene_listener(RDMA_PS_TCP, cases[i].first);
		struct rdma_cm_id *second = scene_id(RDMA_PS_TCP);
		struct sockaddr *addr = addr4(cases[i].second, cases[i].port);

		print_message("case %zu\n", i);
		if (cases[i].error)
			assert_errno(rdma_bind_addr(second, addr), cases[i].error);
		else
			assert_int_equal(rdma_bind_addr(second, addr), 0);
		/* A port is not kept by what failed. */
		if (cases[i].error)
			assert_int_equal(rdma_bind_addr(second, addr4("10.0.2.1", PORT + 1)), 0);
		assert_int_not_equal(rdma_get_src_port(second), 0);
		scene_destroy(second);
		scene_destroy(first);
	}
}

static void families_share_a_port_where_they_are_told_to(void **state)
{
	struct rdma_cm_id *six = scene_id(RDMA_PS_TCP), *four = scene_id(RDMA_PS_TCP), *child;
	struct stranger stranger;
	int one = 1;

	(void)state;
	/* Both by default. */
	assert_int_equal(rdma_bind_addr(six, addr6("0.0.0.0", PORT)), 0);
	assert_int_equal(rdma_listen(six, 1), 0);
	stranger_connect(&stranger, "10.0.1.1");
	child = scene_request(six);
	assert_int_equal(child->route.addr.src_addr.sa_family, AF_INET);
	scene_destroy(child);
	stranger_end(&stranger);
	scene_destroy(six);

	six = scene_id(RDMA_PS_TCP);
	assert_int_equal(rdma_set_option(six, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one,
					 sizeof(one)), 0);
	assert_int_equal(rdma_bind_addr(six, addr6("0.0.0.0", PORT)), 0);
	assert_int_equal(rdma_listen(six, 1), 0);
	assert_int_equal(rdma_bind_addr(four, addr4("0.0.0.0", PORT)), 0);
	assert_int_equal(rdma_listen(four, 1), 0);
	stranger_connect(&stranger, "10.0.1.1");
	child = scene_request(four);
	scene_destroy(child);
	stranger_end(&stranger);
	scene_destroy(six);
	scene_destroy(four);
}

static void loopback_goes_over_the_first_device(void **state)
{
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0");
	struct rdma_cm_id *id = scene_routed(RDMA_PS_TCP, "127.0.0.1"), *child;

	(void)state;
	assert_string_equal(ibv_get_device_name(id->verbs->device), "hca0");
	assert_int_equal(rdma_connect(id, &(struct rdma_conn_param){ .qp_num = 1 }), 0);
	child = scene_request(listener);
	assert_string_equal(ibv_get_device_name(child->verbs->device), "hca0");
	scene_destroy(child);
	expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
	scene_destroy(id);
	scene_destroy(listener);
}

/* A synchronous listener hands out ids with channels of their own. */
static void synchronous_listeners_wait(void **state)
{
	struct rdma_cm_id *listener, *child = NULL;
	struct stranger stranger;

	(void)state;
	assert_int_equal(rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(listener, addr4("0.0.0.0", PORT)), 0);
	assert_int_equal(rdma_listen(listener, 1), 0);
	stranger_connect(&stranger, "10.1.1.1");
	assert_int_equal(rdma_get_request(listener, &child), 0);
	assert_ptr_not_equal(child->channel, listener->channel);
	assert_int_equal(stand_in.calls[CMD(MIGRATE_ID)], 1);
	assert_int_equal(child->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_string_equal(ibv_get_device_name(child->verbs->device), "hca1");
	assert_int_equal(rdma_reject(child, NULL, 0), 0);
	stranger_hears(&stranger, RDMA_CM_EVENT_REJECTED, 28);
	scene_destroy(child);
	scene_destroy(listener);
	stranger_end(&stranger);
}

static int start(void **state)
{
	(void)state;
	return scene_start(SCENE_ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KERNEL_TEST(one_id_serves_all_devices),
		KERNEL_TEST(a_listener_on_an_address_is_on_its_device),
		KERNEL_TEST(ids_that_are_not_bound_listen_on_any_port),
		KERNEL_TEST(ports_are_the_kernels),
		KERNEL_TEST(families_share_a_port_where_they_are_told_to),
		KERNEL_TEST(loopback_goes_over_the_first_device),
		KERNEL_TEST(synchronous_listeners_wait),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
