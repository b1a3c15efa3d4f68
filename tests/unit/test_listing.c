/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often libibverbs is asked for its devices: once for each time that a
 * program wants to know, however many want to know with it; and what is
 * plugged meanwhile is seen then.
 */
#include "config.h"

#include "tests/cmocka_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "core/device/device.h"
#include "core/kernel/host.h"
#include "providers/ib/rules.h"
#include "core/plugin/registry.h"
#include "core/base/libibverbs.h"

#define MAX_DEVICES 4

static struct ibv_device host[MAX_DEVICES] = {
	{ .name = "hca0" }, { .name = "hca1" }, { .name = "hca2" }, { .name = "hca3" },
};
static int plugged = 1, error;
static unsigned int listings, lists_out;

static struct ibv_device **list_host(int *ret_num)
{
	struct ibv_device **list = calloc(MAX_DEVICES + 1, sizeof(*list));

	listings++;
	if (error || !list) {
		free(list);
		errno = error;
		return NULL;
	}
	for (int i = 0; i < plugged; i++)
		list[i] = &host[i];
	*ret_num = plugged;
	lists_out++;
	return list;
}

static void free_list(struct ibv_device **list)
{
	lists_out--;
	free(list);
}

static const struct polycm_real_source source = { .list = list_host, .free = free_list };

/* As the kernel client's own, without a look into the devices. */
static int host_devices(struct kernel_host_device **ret_devices, size_t *ret_num)
{
	struct polycm_real_list *list = polycm_real_list();

	if (!list)
		return -errno;
	*ret_devices = calloc(MAX_DEVICES, sizeof(**ret_devices));
	*ret_num = (size_t)list->num;
	for (int i = 0; i < list->num && *ret_devices; i++) {
		strcpy((*ret_devices)[i].name, list->devices[i]->name);
		(*ret_devices)[i].node_guid = (__be64)i + 1;
		(*ret_devices)[i].index = i;
	}
	polycm_real_list_put(list);
	return *ret_devices ? 0 : -ENOMEM;
}

static const struct polycm_kernel *kernel;

static bool claims_all(const struct polycm_kernel_device *device)
{
	(void)device;
	return true;
}

static int init(struct polycm_module *module, void **ret_ctx)
{
	const struct polycm_kernel_setup setup = { .size = sizeof(setup), .claims = claims_all };

	return kernel->init(module, &setup, ret_ctx);
}

static const struct polycm_ops ops = { .size = sizeof(ops), .init = init };

static int start(void **state)
{
	static struct kernel_host stand_in;
	static const struct polycm_provider acme = {
		.size = sizeof(acme),
		.abi_minor = POLYCM_ABI_MINOR,
		.name = "acme",
		.version = "1",
		.description = "a test's",
		.transport = &ib_transport,
		.ops = &ops,
		.flags = POLYCM_PROVIDER_KERNEL,
	};

	(void)state;
	stand_in = *polycm_kernel_host;
	stand_in.devices = host_devices;
	polycm_kernel_host = &stand_in;
	polycm_real_source = &source;
	kernel = polycm_core_table.extension(POLYCM_KERNEL, POLYCM_KERNEL_VERSION);
	return kernel ? polycm_registry_add_static(&acme) : -1;
}

static int reset(void **state)
{
	(void)state;
	listings = 0;
	error = 0;
	return 0;
}

/* Nothing but the newest list is kept. */
static int check(void **state)
{
	(void)state;
	return lists_out != 1;
}

static void expect_devices(int num)
{
	struct ibv_device **list;
	int told = -1;

	list = ibv_get_device_list(&told);
	assert_non_null(list);
	assert_int_equal(told, num);
	for (int i = 0; i < num; i++)
		assert_ptr_equal(list[i], &host[i]);
	assert_null(list[num]);
	assert_int_equal(polycm_device_count(), num);
	ibv_free_device_list(list);
}

static void starting_looks_once(void **state)
{
	(void)state;
	expect_devices(1);
	assert_int_equal(listings, 1);
}

static void what_was_plugged_is_seen(void **state)
{
	(void)state;
	plugged = 2;
	expect_devices(2);
	assert_int_equal(listings, 1);
	plugged = 3;
	expect_devices(3);
	plugged = 2;
	expect_devices(2);
	assert_int_equal(listings, 3);
}

static void lists_outlive_newer_ones(void **state)
{
	struct ibv_device **old = ibv_get_device_list(NULL), **new;

	(void)state;
	plugged = 4;
	new = ibv_get_device_list(NULL);
	assert_int_equal(lists_out, 2);
	assert_null(old[2]);
	assert_ptr_equal(new[3], &host[3]);
	ibv_free_device_list(old);
	assert_int_equal(lists_out, 1);
	ibv_free_device_list(new);
	assert_int_equal(lists_out, 1);
}

static void without_an_answer_there_is_no_list(void **state)
{
	int num = -1;

	(void)state;
	error = EMFILE;
	assert_null(ibv_get_device_list(&num));
	assert_int_equal(errno, EMFILE);
	assert_int_equal(num, 0);
	error = 0;
	expect_devices(4);
}

static void channels_need_no_look(void **state)
{
	(void)state;
	assert_int_equal(polycm_registry_get(), 0);
	assert_int_equal(polycm_device_count(), 4);
	/* There is no RDMA CM behind it, which is found without one. */
	assert_null(rdma_create_event_channel());
	assert_int_equal(listings, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define LISTING_TEST(function) cmocka_unit_test_setup_teardown(function, reset, check)
		LISTING_TEST(starting_looks_once),
		LISTING_TEST(what_was_plugged_is_seen),
		LISTING_TEST(lists_outlive_newer_ones),
		LISTING_TEST(without_an_answer_there_is_no_list),
		LISTING_TEST(channels_need_no_look),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
