/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device list: devices come, are opened, looked at and go, with a provider
 * and its verbs in memory.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

#include "tests/cmocka_all.h"
#include "capture.h"

#include "core/device/device.h"
#include "core/base/log.h"
#include "core/plugin/options.h"
#include "core/plugin/registry.h"
#include "core/verbs/shim.h"
#include "core/verbs/table.h"
#include "idle_ops.h"

/* Exported by libibverbs without a public declaration, and by us. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/* ------------------------------------------------------------------------
 * Verbs and provider.
 */

static struct {
	int opened, closed, pds, query_result;
	int rd_atom, init_rd_atom;
	bool no_open, no_port, no_device;
	struct ibv_context context[2];
} fake;

static struct ibv_context *fake_open(struct ibv_device *device)
{
	struct ibv_context *context = &fake.context[fake.context[0].device != NULL];

	if (fake.no_open) {
		errno = EMFILE;
		return NULL;
	}
	fake.opened++;
	context->device = fake.no_device ? NULL : device;
	return context;
}

static int fake_close(struct ibv_context *context)
{
	context->device = NULL;
	fake.closed++;
	return 0;
}

static int fake_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	attr->max_qp_rd_atom = fake.rd_atom;
	attr->max_qp_init_rd_atom = fake.init_rd_atom;
	return fake.query_result;
}

static int fake_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	(void)context;
	assert_int_equal(port, 1);
	attr->link_layer = IBV_LINK_LAYER_INFINIBAND;
	return fake.no_port ? EINVAL : 0;
}

static struct ibv_pd *fake_alloc_pd(struct ibv_context *context)
{
	static struct ibv_pd pd;

	if (fake.pds) {
		errno = ENOMEM;
		return NULL;
	}
	fake.pds++;
	pd.context = context;
	return &pd;
}

static int fake_dealloc_pd(struct ibv_pd *pd)
{
	(void)pd;
	fake.pds--;
	return 0;
}

static const struct polycm_verbs fake_verbs = {
	.size = sizeof(fake_verbs),
	.open_device = fake_open,
	.close_device = fake_close,
	.query_device = fake_query_device,
	.query_port = fake_query_port,
	.alloc_pd = fake_alloc_pd,
	.dealloc_pd = fake_dealloc_pd,
};

static struct polycm_verbs_device vdevs[2] = {
	{ .device = { .name = "fake0", .dev_name = "node0", .ibdev_path = "/nowhere/fake0" },
	  .verbs = &fake_verbs },
	{ .device = { .name = "fake1", .dev_name = "node1", .ibdev_path = "/nowhere/fake1" },
	  .verbs = &fake_verbs },
};

static struct polycm_module *module;
static int enumerated;

static int init(struct polycm_module *self, void **ret_ctx)
{
	module = self;
	*ret_ctx = NULL;
	return 0;
}

static int enumerate(void *ctx)
{
	(void)ctx;
	enumerated++;
	return 0;
}

static const struct polycm_ops ops = {
	.size = sizeof(ops),
	.init = init,
	.enumerate = enumerate,
	.match = match,
	.open = open_id,
	.close = end,
	.stop = end,
	.free = end,
};

static const struct polycm_transport transport = {
	.size = sizeof(transport),
	.shape = POLYCM_RULES_SHAPE,
	.name = "wire",
	.link_layer = IBV_LINK_LAYER_ETHERNET,
};

static const struct polycm_provider provider = {
	.size = sizeof(provider),
	.name = "fake",
	.transport = &transport,
	.ops = &ops,
	.id_size = 16,
};

static struct polycm_device_info info_of(int number)
{
	return (struct polycm_device_info){
		.size = sizeof(struct polycm_device_info),
		.name = vdevs[number].device.name,
		.transport = "wire",
		.node_guid = 0x0102,
		.verbs = &vdevs[number],
		.cookie = &vdevs[number],
	};
}

static struct polycm_device *add(int number)
{
	struct polycm_device_info info = info_of(number);
	struct polycm_device *device = NULL;

	assert_int_equal(polycm_device_add(module, &info, &device), 0);
	return device;
}

static int reset(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	fake.rd_atom = 16;
	fake.init_rd_atom = 300;
	return polycm_registry_get();
}

static int nothing_left(void **state)
{
	(void)state;
	return polycm_device_count() || fake.opened != fake.closed || fake.pds;
}

/* ------------------------------------------------------------------------
 * Tests.
 */

static void devices_are_listed_until_removed(void **state)
{
	struct polycm_device *first = add(0), *second = add(1), **list;
	size_t num;

	(void)state;
	assert_int_equal(polycm_device_count(), 2);
	assert_int_equal(polycm_devices(&list, &num), 0);
	assert_int_equal(num, 2);
	assert_ptr_equal(list[0], first);
	assert_ptr_equal(list[1], second);
	assert_ptr_equal(polycm_device_cookie(first), &vdevs[0]);
	assert_ptr_equal(first->module, module);
	assert_string_equal(first->transport->name, "wire");
	assert_string_equal(first->name, "fake0");
	assert_int_equal(first->node_guid, 0x0102);

	/* Referenced, it stays, but is no longer shown; its name is free again. */
	polycm_device_remove(first);
	assert_int_equal(polycm_device_count(), 1);
	assert_string_equal(list[0]->name, "fake0");
	assert_true(list[0]->removed);
	polycm_device_remove(first);
	polycm_devices_free(list, num);
	first = add(0);
	assert_int_equal(polycm_device_count(), 2);
	polycm_device_remove(second);
	polycm_device_remove(first);
}

static void simulated_devices_are_found_by_node_and_folder(void **state)
{
	struct polycm_device *first = add(0), *second = add(1);
	char text[8];

	(void)state;
	assert_ptr_equal(polycm_device_simulated("node1"), &vdevs[1]);
	assert_ptr_equal(polycm_device_simulated("/nowhere/fake0"), &vdevs[0]);
	assert_null(polycm_device_simulated("fake0"));
	errno = 0;
	assert_int_equal(ibv_read_sysfs_file("/nowhere/fake0", "fw_ver", text, sizeof(text)), -1);
	assert_int_equal(errno, EOPNOTSUPP);

	polycm_device_gone(second);
	assert_null(polycm_device_simulated("node1"));
	polycm_device_remove(second);
	polycm_device_remove(first);
	assert_null(polycm_device_simulated("node0"));
}

/* No list shows it and nothing opens it, but what has it open keeps it. */
static void an_unplugged_device_is_kept_for_its_users(void **state)
{
	struct polycm_device *device = add(0), *closed = add(1), **list;
	struct ibv_device **shown;
	struct ibv_context *verbs;
	size_t num;
	int shown_num;

	(void)state;
	assert_int_equal(polycm_device_open(device), 0);
	verbs = device->verbs;
	assert_true(polycm_device_get(device));
	polycm_device_gone(device);
	polycm_device_gone(closed);
	assert_int_equal(polycm_device_count(), 0);
	assert_int_equal(polycm_devices(&list, &num), 0);
	assert_int_equal(num, 0);
	polycm_devices_free(list, num);
	shown = ibv_get_device_list(&shown_num);
	assert_int_equal(shown_num, 0);
	ibv_free_device_list(shown);
	assert_false(polycm_device_get(device));
	assert_int_equal(polycm_device_open(closed), -ENODEV);

	/* Still ours to call, and open. */
	assert_ptr_equal(polycm_device_of_verbs(verbs), device);
	assert_non_null(shim_table(&vdevs[0].device));
	assert_int_equal(polycm_device_open(device), 0);
	assert_int_equal(fake.closed, 0);
	polycm_device_put(device);
	assert_int_equal(fake.closed, 0);
	polycm_device_remove(device);
	polycm_device_remove(closed);
	assert_int_equal(fake.closed, 1);
	assert_null(shim_table(&vdevs[0].device));
}

static void wrong_descriptions_are_refused(void **state)
{
	static const struct {
		const char *name, *transport;
		uint32_t size;
		int result;
		const char *said;
	} tests[] = {
		{ "fake0", "wire", sizeof(struct polycm_device_info), -EEXIST, "" },
		{ "a", "wire", sizeof(struct polycm_device_info) - 8, -EINVAL,
		  "polycm: error: provider fake: a device was refused: its description has 40 bytes, "
		  "version 1.0 has 48\n" },
		{ NULL, "wire", sizeof(struct polycm_device_info), -EINVAL,
		  "polycm: error: provider fake: a device was refused: its name is not valid\n" },
		{ "", "wire", sizeof(struct polycm_device_info), -EINVAL,
		  "polycm: error: provider fake: a device was refused: its name is not valid\n" },
		{ "a/b", "wire", sizeof(struct polycm_device_info), -EINVAL,
		  "polycm: error: provider fake: a device was refused: its name is not valid\n" },
		{ "0123456789012345678901234567890123456789012345678901234567890123", "wire",
		  sizeof(struct polycm_device_info), -EINVAL,
		  "polycm: error: provider fake: a device was refused: its name is not valid\n" },
		{ "a", NULL, sizeof(struct polycm_device_info), -EINVAL,
		  "polycm: error: provider fake: a device was refused: it has no transport\n" },
		{ "a", "ether", sizeof(struct polycm_device_info), -EINVAL,
		  "polycm: error: provider fake: device a was refused: no provider has the rules of "
		  "transport ether\n" },
	};
	struct polycm_device *device = add(0), *none = NULL;
	struct polycm_module stranger = { .selected = false };
	static struct capture capture;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		struct polycm_device_info info = info_of(1);

		print_message("case %zu\n", i);
		info.size = tests[i].size;
		info.name = tests[i].name;
		info.transport = tests[i].transport;
		capture_begin(&capture);
		assert_int_equal(polycm_device_add(module, &info, &none), tests[i].result);
		assert_string_equal(capture_end(&capture), tests[i].said);
		assert_null(none);
	}
	capture_begin(&capture);
	assert_int_equal(polycm_device_add(module, NULL, &none), -EINVAL);
	capture_end(&capture);
	assert_int_equal(polycm_device_add(&stranger, &(struct polycm_device_info){ 0 }, &none),
			 -EPERM);
	assert_int_equal(polycm_device_count(), 1);
	polycm_device_remove(device);
}

static void incomplete_verbs_are_refused(void **state)
{
	static const struct polycm_verbs no_close = {
		.size = sizeof(no_close),
		.open_device = fake_open,
	};
	struct polycm_verbs_device vdev = { .verbs = &no_close };
	struct polycm_device_info info = info_of(0);

	(void)state;
	info.verbs = &vdev;
	assert_int_equal(polycm_device_add(module, &info, NULL), -EINVAL);
	assert_int_equal(polycm_device_count(), 0);
}

static void limits_come_from_the_device(void **state)
{
	struct polycm_device *device = add(0);

	(void)state;
	assert_null(polycm_device_of_verbs(NULL));
	assert_int_equal(polycm_device_open(device), 0);
	assert_int_equal(polycm_device_open(device), 0);
	assert_int_equal(fake.opened, 1);
	assert_int_equal(device->max_responder_resources, 16);
	assert_int_equal(device->max_initiator_depth, 255);
	assert_int_equal(device->link_layer, IBV_LINK_LAYER_INFINIBAND);
	assert_ptr_equal(polycm_device_of_verbs(device->verbs), device);
	assert_null(polycm_device_of_verbs(&fake.context[1]));
	polycm_device_remove(device);
	assert_int_equal(fake.closed, 1);
}

static void the_rules_stand_in_for_a_mute_port(void **state)
{
	struct polycm_device *device = add(0);

	(void)state;
	fake.no_port = true;
	fake.rd_atom = -1;
	assert_int_equal(polycm_device_open(device), 0);
	assert_int_equal(device->link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(device->max_responder_resources, 0);
	polycm_device_remove(device);
}

static void a_context_has_its_device(void **state)
{
	struct polycm_device *device = add(0);
	static struct capture capture;

	(void)state;
	capture_begin(&capture);
	fake.no_device = true;
	assert_int_equal(polycm_device_open(device), -EINVAL);
	fake.no_device = false;
	assert_non_null(strstr(capture_end(&capture), "polycm: error: fake0: open_device() of its "
			       "provider did not set device"));
	assert_int_equal(fake.closed, 1);
	polycm_device_remove(device);
}

static void failures_to_open_are_told(void **state)
{
	struct polycm_device *device = add(0);
	static struct capture capture;

	(void)state;
	capture_begin(&capture);
	fake.no_open = true;
	assert_int_equal(polycm_device_open(device), -EMFILE);
	fake.no_open = false;
	fake.query_result = EIO;
	assert_int_equal(polycm_device_open(device), -EIO);
	assert_int_equal(fake.closed, 1);
	assert_string_equal(capture_end(&capture),
			    "polycm: warn: fake fake0: the device cannot be opened: Too many open "
			    "files\n"
			    "polycm: warn: fake fake0: the device cannot be opened: Input/output "
			    "error\n");
	/* Not for ever. */
	fake.query_result = 0;
	assert_int_equal(polycm_device_open(device), 0);
	polycm_device_remove(device);
}

static void a_device_that_libibverbs_does_not_have(void **state)
{
	struct polycm_device_info info = info_of(0);
	struct polycm_device *device;
	static struct capture capture;

	(void)state;
	info.verbs = NULL;
	info.name = "no such device";
	assert_int_equal(polycm_device_add(module, &info, &device), 0);
	capture_begin(&capture);
	assert_int_not_equal(polycm_device_open(device), 0);
	assert_int_equal(count_lines(capture_end(&capture)), 1);
	polycm_device_remove(device);
}

static void a_removed_device_is_not_opened(void **state)
{
	struct polycm_device *device = add(0);
	static struct capture capture;

	(void)state;
	polycm_device_get(device);
	polycm_device_remove(device);
	capture_begin(&capture);
	assert_int_equal(polycm_device_open(device), -ENODEV);
	capture_end(&capture);
	polycm_device_put(device);
	assert_int_equal(fake.opened, 0);
}

static void the_pd_is_shared(void **state)
{
	struct polycm_device *device = add(0), *other = add(1);
	struct ibv_pd *one = NULL, *two = NULL;

	(void)state;
	assert_int_equal(polycm_device_open(device), 0);
	assert_int_equal(polycm_device_pd(device, &one), 0);
	assert_int_equal(polycm_device_pd(device, &two), 0);
	assert_ptr_equal(one, two);
	assert_ptr_equal(one->context, device->verbs);
	assert_int_equal(fake.pds, 1);
	assert_int_equal(polycm_device_open(other), 0);
	assert_int_equal(polycm_device_pd(other, &two), -ENOMEM);
	assert_ptr_equal(two, one);
	polycm_device_remove(device);
	assert_int_equal(fake.pds, 0);
	polycm_device_remove(other);
}

static void *open_it(void *device)
{
	return (void *)(intptr_t)polycm_device_open(device);
}

static void threads_open_it_once(void **state)
{
	struct polycm_device *device = add(0);
	pthread_t threads[8];
	void *result;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, open_it, device), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		pthread_join(threads[i], &result);
		assert_null(result);
	}
	assert_int_equal(fake.opened, 1);
	polycm_device_remove(device);
}

static void programs_get_opened_devices(void **state)
{
	struct polycm_device *first = add(0), *second = add(1);
	struct ibv_context **list;
	int num = -1, before = enumerated;

	(void)state;
	list = rdma_get_devices(&num);
	assert_non_null(list);
	assert_int_equal(num, 2);
	assert_ptr_equal(list[0], first->verbs);
	assert_ptr_equal(list[1], second->verbs);
	assert_null(list[2]);
	assert_int_equal(enumerated, before + 1);
	rdma_free_devices(list);
	list = rdma_get_devices(NULL);
	assert_ptr_equal(list[0], first->verbs);
	rdma_free_devices(list);
	rdma_free_devices(NULL);
	polycm_device_remove(first);
	polycm_device_remove(second);
}

static void one_bad_device_does_not_hide_the_others(void **state)
{
	struct polycm_device *first = add(0), *second = add(1);
	static struct capture capture;
	struct ibv_context **list;
	int num = -1;

	(void)state;
	assert_int_equal(polycm_device_open(second), 0);
	fake.no_open = true;
	capture_begin(&capture);
	list = rdma_get_devices(&num);
	capture_end(&capture);
	assert_non_null(list);
	assert_int_equal(num, 1);
	assert_ptr_equal(list[0], second->verbs);
	assert_null(list[1]);
	rdma_free_devices(list);
	polycm_device_remove(first);
	polycm_device_remove(second);
}

/* In a child, where the setting is read for the first time. */
static void check_hint(const char *setting, const char *want)
{
	static struct capture capture;
	int status;
	pid_t child;

	child = fork();
	assert_true(child >= 0);
	if (!child) {
		int num = -1, errors = 0;

		if (setting)
			setenv("POLYCM_PROVIDER", setting, 1);
		capture_begin(&capture);
		errno = 0;
		errors += rdma_get_devices(&num) || errno != ENODEV || num;
		errors += rdma_get_devices(NULL) != NULL;
		polycm_no_device_hint();
		errors += strcmp(capture_end(&capture), want) != 0;
		_exit(errors);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void people_are_told_how_to_simulate(void **state)
{
	(void)state;
	check_hint(NULL, "polycm: error: no RDMA device; to simulate one, set POLYCM_PROVIDER=sim or "
			 "start the program with: polycm run --provider sim PROGRAM\n");
	check_hint("fake", "polycm: error: no RDMA device: the providers that POLYCM_PROVIDER=fake "
			   "selects have none\n");
}

static int setup(void **state)
{
	(void)state;
	clearenv();
	setenv("POLYCM_LOG", "warn", 1);
	return polycm_registry_add_static(&provider);
}

#define DEVICE_TEST(name) cmocka_unit_test_setup_teardown(name, reset, nothing_left)

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* Before the registry is started in this process. */
		cmocka_unit_test(people_are_told_how_to_simulate),
		DEVICE_TEST(devices_are_listed_until_removed),
		DEVICE_TEST(simulated_devices_are_found_by_node_and_folder),
		DEVICE_TEST(an_unplugged_device_is_kept_for_its_users),
		DEVICE_TEST(wrong_descriptions_are_refused),
		DEVICE_TEST(incomplete_verbs_are_refused),
		DEVICE_TEST(limits_come_from_the_device),
		DEVICE_TEST(the_rules_stand_in_for_a_mute_port),
		DEVICE_TEST(a_context_has_its_device),
		DEVICE_TEST(failures_to_open_are_told),
		DEVICE_TEST(a_device_that_libibverbs_does_not_have),
		DEVICE_TEST(a_removed_device_is_not_opened),
		DEVICE_TEST(the_pd_is_shared),
		DEVICE_TEST(threads_open_it_once),
		DEVICE_TEST(programs_get_opened_devices),
		DEVICE_TEST(one_bad_device_does_not_hide_the_others),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
