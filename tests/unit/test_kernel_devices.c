/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices over the kernel client: which provider has which, devices that come,
 * go and do not open, and what the ids on them hear of it.
 */
#include "kernel_stand_in_scene.h"

static int num_devices(void)
{
	int num = -1;

	rdma_free_devices(rdma_get_devices(&num));
	return num;
}

static const struct polycm_id *core_of(const struct rdma_cm_id *id)
{
	return (const struct polycm_id *)(const void *)id;
}

static void devices_are_claimed_by_kind(void **state)
{
	static const struct { const char *device, *addr, *provider; } cases[] = {
		{ "hca0", "10.0.1.1", "ib" },
		{ "hca1", "10.1.1.1", "ib" },
		{ "rocee0", "20.0.0.1", "roce" },
		{ "iw0", "30.0.0.1", "iwarp" },
	};
	struct ibv_context **list = rdma_get_devices(NULL);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);

		assert_string_equal(ibv_get_device_name(list[i]->device), cases[i].device);
		assert_int_equal(rdma_bind_addr(id, addr4(cases[i].addr, PORT)), 0);
		assert_ptr_equal(id->verbs, list[i]);
		assert_string_equal(core_of(id)->module->name, cases[i].provider);
		assert_string_equal(core_of(id)->device->transport->name, cases[i].provider);
		scene_destroy(id);
	}
	assert_null(list[ARRAY_SIZE(cases)]);
	rdma_free_devices(list);
}

static void devices_come_and_go(void **state)
{
	struct rdma_cm_id *id;

	(void)state;
	for (int look = 0; look < 2; look++) {
		assert_int_equal(num_devices(), 4);
		stand_in_plug("hca1", false);
		/* Also where nobody asked meanwhile. */
		if (look)
			assert_int_equal(num_devices(), 3);
		id = scene_id(RDMA_PS_TCP);
		assert_errno(rdma_bind_addr(id, addr4("10.1.1.1", PORT)), ENODEV);
		stand_in_plug("hca1", true);
		assert_int_equal(rdma_bind_addr(id, addr4("10.1.1.1", PORT)), 0);
		assert_string_equal(ibv_get_device_name(id->verbs->device), "hca1");
		scene_destroy(id);
		assert_int_equal(num_devices(), 4);
		scene_destroy(scene_routed(RDMA_PS_TCP, "10.1.2.1"));
	}
}

/* All that were accepted or made by the program are told, once. */
static void ids_hear_that_their_device_goes(void **state)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *heard[3], *waiting, *bound, *elsewhere;
	struct scene_pair pair;
	uint8_t tos = 1;

	(void)state;
	scene_connect(&pair, "10.1.1.1");
	bound = scene_id(RDMA_PS_TCP);
	assert_int_equal(rdma_bind_addr(bound, addr4("10.1.1.1", 7000)), 0);
	elsewhere = scene_routed(RDMA_PS_TCP, "10.0.1.1");
	stand_in_plug("hca1", false);
	for (size_t i = 0; i < ARRAY_SIZE(heard); i++) {
		event = next_event(channel, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
		heard[i] = event->id;
		assert_int_equal(rdma_ack_cm_event(event), 0);
		assert_true(heard[i] == pair.active || heard[i] == pair.passive ||
			    heard[i] == bound);
		for (size_t j = 0; j < i; j++)
			assert_ptr_not_equal(heard[i], heard[j]);
	}
	expect_no_event(channel);
	assert_int_equal(num_devices(), 3);
	expect_no_event(channel);

	/* The kernel has torn them down. */
	assert_errno(rdma_disconnect(pair.active), ENXIO);
	assert_errno(rdma_set_option(bound, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1), ENXIO);
	scene_destroy(bound);
	/* The listener serves the devices that are left, and the one that comes. */
	assert_int_equal(rdma_connect(elsewhere, &(struct rdma_conn_param){ .qp_num = 1 }), 0);
	waiting = scene_request(pair.listener);
	scene_destroy(waiting);
	expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
	scene_destroy(elsewhere);
	scene_destroy(pair.active);
	scene_destroy(pair.passive);
	stand_in_plug("hca1", true);
	pair.active = scene_routed(RDMA_PS_TCP, "10.1.1.1");
	assert_int_equal(rdma_connect(pair.active, &(struct rdma_conn_param){ .qp_num = 1 }), 0);
	scene_destroy(scene_request(pair.listener));
	expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
	scene_destroy(pair.active);
	scene_destroy(pair.listener);
}

/* Not accepted: the program hears nothing, as in the kernel. */
static void requests_do_not_hear_of_it(void **state)
{
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0");
	struct rdma_cm_id *id = scene_routed(RDMA_PS_TCP, "10.1.1.1"), *child;

	(void)state;
	assert_int_equal(rdma_connect(id, &(struct rdma_conn_param){ .qp_num = 1 }), 0);
	child = scene_request(listener);
	stand_in_plug("hca1", false);
	expect_event(channel, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	expect_no_event(channel);
	assert_int_equal(num_devices(), 3);
	expect_no_event(channel);
	assert_errno(rdma_accept(child, &(struct rdma_conn_param){ .qp_num = 1 }), ENXIO);
	scene_destroy(child);
	scene_destroy(id);
	scene_destroy(listener);
}

/* One that does not open is no hindrance to the others. */
static void broken_devices_are_left_out(void **state)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP), *listener, *child;
	struct stranger stranger;

	(void)state;
	stand_in_plug("hca1", false);
	assert_int_equal(num_devices(), 3);
	stand_in_plug("hca1", true);
	stand_in_break("hca1", true);
	assert_int_equal(num_devices(), 3);
	assert_errno(rdma_bind_addr(id, addr4("10.1.1.1", PORT)), ENODEV);
	scene_destroy(id);
	id = scene_id(RDMA_PS_TCP);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.1.1.1", PORT), 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_ERROR, -1);
	scene_destroy(id);

	listener = scene_listener(RDMA_PS_TCP, "0.0.0.0");
	stranger_connect(&stranger, "10.1.1.1");
	expect_no_event(channel);
	stranger_hears(&stranger, RDMA_CM_EVENT_REJECTED, 28);
	stranger_end(&stranger);
	stranger_connect(&stranger, "10.0.1.1");
	child = scene_request(listener);
	assert_string_equal(ibv_get_device_name(child->verbs->device), "hca0");
	scene_destroy(child);
	stranger_end(&stranger);
	scene_destroy(listener);

	stand_in_break("hca1", false);
	assert_int_equal(num_devices(), 4);
	scene_destroy(scene_routed(RDMA_PS_TCP, "10.1.1.1"));
}

/* Kernels before 5.7 name devices by their GUID alone. */
static void older_kernels_name_devices_by_guid(void **state)
{
	static const char *const addrs[] = { "10.0.1.1", "10.1.1.1", "20.0.0.1", "30.0.0.1" };
	static const char *const names[] = { "hca0", "hca1", "rocee0", "iw0" };

	(void)state;
	stand_in_set_indices(false);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < ARRAY_SIZE(addrs); i++) {
			struct rdma_cm_id *id = scene_routed(RDMA_PS_TCP, addrs[i]);

			assert_string_equal(ibv_get_device_name(id->verbs->device), names[i]);
			scene_destroy(id);
		}
		/* libibverbs does not know them either. */
		assert_int_equal(num_devices(), 4);
	}
	stand_in_set_indices(true);
	assert_int_equal(num_devices(), 4);
}

static void address_changes_are_told(void **state)
{
	struct rdma_cm_id *id = scene_routed(RDMA_PS_TCP, "20.0.0.1");

	(void)state;
	stand_in_post(stand_in_find(id), RDMA_CM_EVENT_ADDR_CHANGE, 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	scene_destroy(id);
}

/* Each port with the provider of its link layer; to the program it is one device. */
static void ports_of_a_card_go_to_a_provider_each(void **state)
{
	static const struct { const char *addr, *provider; uint8_t port, link_layer; } cases[] = {
		{ "10.2.1.1", "ib", 1, IBV_LINK_LAYER_UNSPECIFIED },
		{ "20.1.0.1", "roce", 2, IBV_LINK_LAYER_ETHERNET },
	};
	struct rdma_cm_id *ids[ARRAY_SIZE(cases)];
	struct scene_pair pair;

	(void)state;
	stand_in_plug("vpi0", true);
	assert_int_equal(num_devices(), 5);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct polycm_id *core;

		scene_connect(&pair, cases[i].addr);
		core = core_of(pair.passive);
		assert_string_equal(core->module->name, cases[i].provider);
		assert_string_equal(core->device->transport->name, cases[i].provider);
		scene_disconnect(&pair);
		scene_end(&pair);

		ids[i] = scene_id(RDMA_PS_TCP);
		assert_int_equal(rdma_bind_addr(ids[i], addr4(cases[i].addr, 7000)), 0);
		core = core_of(ids[i]);
		assert_string_equal(ibv_get_device_name(ids[i]->verbs->device), "vpi0");
		assert_int_equal(ids[i]->port_num, cases[i].port);
		assert_string_equal(core->module->name, cases[i].provider);
		assert_string_equal(core->device->transport->name, cases[i].provider);
		assert_int_equal(core->device->link_layer, cases[i].link_layer);
	}
	assert_ptr_equal(ids[0]->verbs, ids[1]->verbs);
	assert_ptr_equal(ids[0]->pd, ids[1]->pd);

	/* It goes as one, too, and can come again. */
	stand_in_plug("vpi0", false);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		expect_event(channel, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	expect_no_event(channel);
	assert_int_equal(num_devices(), 4);
	stand_in_plug("vpi0", true);
	assert_int_equal(num_devices(), 5);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scene_destroy(ids[i]);
		scene_destroy(scene_routed(RDMA_PS_TCP, cases[i].addr));
	}
}

static int start(void **state)
{
	(void)state;
	return scene_start(SCENE_ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KERNEL_TEST(devices_are_claimed_by_kind),
		KERNEL_TEST(devices_come_and_go),
		KERNEL_TEST(ids_hear_that_their_device_goes),
		KERNEL_TEST(requests_do_not_hear_of_it),
		KERNEL_TEST(broken_devices_are_left_out),
		KERNEL_TEST(older_kernels_name_devices_by_guid),
		KERNEL_TEST(address_changes_are_told),
		KERNEL_TEST(ports_of_a_card_go_to_a_provider_each),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
