/* SPDX-License-Identifier: BSD-2-Clause */
/* test_sysfs.c - /sys for the devices of providers: one that lists its files, and one that cannot. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/cmocka_all.h"

#include "core/base/interposer.h"
#include "core/device/device.h"
#include "core/plugin/registry.h"
#include "core/sysfs/sysfs.h"
#include "idle_ops.h"

#define CARD0 "devices/pciffff:00/ffff:00:00.0"
#define CARD33 "devices/pciffff:01/ffff:01:01.0"

/* ------------------------------------------------------------------------
 * Providers' files.
 */

static const struct {
	const char *name, *text;	/* NULL: it is not in use */
} files[] = {
	{ "", "node_guid\nports/\ndevice/\n" },
	{ "node_guid", "0001:0002:0003:0004" },
	{ "ports/", "1/\n" },
	{ "ports/1/", "state\ngid\n" },
	{ "ports/1/state", "4: ACTIVE" },
	{ "ports/1/gid", NULL },
	{ "ports/2/state", "never listed" },
	{ "device/", "vendor\nuevent\nnet/\n" },
	{ "device/net/", "wire0/\n" },
	{ "device/net/wire0/", "mtu\n" },
	{ "device/vendor", "0x1234" },
	{ "device/uevent", "DRIVER=fake" },
};

static int put(const char *text, char *buf, size_t size)
{
	return text ? snprintf(buf, size, "%s", text) : -1;
}

static int read_listed(struct ibv_device *device, const char *file, char *buf, size_t size)
{
	(void)device;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (!strcmp(files[i].name, file))
			return put(files[i].text, buf, size);
	return -1;
}

static int read_plain(struct ibv_device *device, const char *file, char *buf, size_t size)
{
	return put(!strcmp(file, "fw_ver") ? device->name : NULL, buf, size);
}

static struct ibv_context *no_open(struct ibv_device *device)
{
	(void)device;
	return NULL;
}

static int no_close(struct ibv_context *context)
{
	(void)context;
	return 0;
}

static const struct polycm_verbs verbs_listed = {
	.size = sizeof(verbs_listed),
	.open_device = no_open,
	.close_device = no_close,
	.read_sysfs_file = read_listed,
};

static const struct polycm_verbs verbs_plain = {
	.size = sizeof(verbs_plain),
	.open_device = no_open,
	.close_device = no_close,
	.read_sysfs_file = read_plain,
};

static struct polycm_verbs_device vdevs[] = {
	{ .device = { .name = "listed", .dev_name = "uverbs0" }, .verbs = &verbs_listed },
	{ .device = { .name = "plain", .dev_name = "uverbs33" }, .verbs = &verbs_plain },
};

static struct polycm_module *module;
static bool was_looked_at;

static int init(struct polycm_module *self, void **ret_ctx)
{
	module = self;
	*ret_ctx = NULL;
	was_looked_at = polycm_registry_only_looked_at();
	return 0;
}

static int enumerate(void *ctx)
{
	(void)ctx;
	for (size_t i = 0; i < 2; i++) {
		const struct polycm_device_info info = {
			.size = sizeof(info),
			.name = vdevs[i].device.name,
			.transport = "wire",
			.verbs = &vdevs[i],
			.cookie = &vdevs[i],
		};

		if (!vdevs[i].core)
			assert_int_equal(polycm_device_add(module, &info, NULL), 0);
	}
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

/* ------------------------------------------------------------------------
 * Tests.
 */

static void looking_starts_providers_to_be_looked_at(void **state)
{
	(void)state;
	assert_int_equal(polycm_registry_add_static(&provider), 0);
	polycm_own_looks++;
	assert_false(polycm_sysfs_begin());
	polycm_own_looks--;
	assert_null(module);
	assert_true(polycm_sysfs_begin());
	assert_non_null(module);
	assert_true(was_looked_at);
	assert_true(polycm_registry_only_looked_at());
	assert_int_equal(polycm_registry_get(), 0);
	assert_false(polycm_registry_only_looked_at());
	assert_true(polycm_sysfs_begin());
	assert_false(polycm_registry_only_looked_at());
}

static void paths_lead_to_texts(void **state)
{
	static const struct {
		const char *path;
		int kind;
		const char *text;
	} rows[] = {
		{ "class", -EXDEV, "" },
		{ "class/net", -EXDEV, "" },
		{ "class/net/wire0", -EXDEV, "" },
		{ "class/net/wire0/device", POLYCM_SYSFS_LINK, "../../../" CARD0 },
		{ "class/net/wire0/device/net", -EXDEV, "" },
		{ "class/net/wire/device", -EXDEV, "" },
		{ "class/infiniband_other", -EXDEV, "" },
		{ "devices", -EXDEV, "" },
		{ "devices/pci0000:00", -EXDEV, "" },
		{ "class/infiniband", POLYCM_SYSFS_FOLDER, "listed@\nplain@\n" },
		{ "class/infiniband/listed", POLYCM_SYSFS_LINK, "../../" CARD0 "/infiniband/listed" },
		{ "class/infiniband/other", -ENOENT, "" },
		{ "class/infiniband_verbs", POLYCM_SYSFS_FOLDER, "abi_version\nuverbs0@\nuverbs33@\n" },
		{ "class/infiniband_verbs/abi_version", POLYCM_SYSFS_FILE, "6\n" },
		{ "class/infiniband_verbs/uverbs33", POLYCM_SYSFS_LINK,
		  "../../" CARD33 "/infiniband_verbs/uverbs33" },
		{ "class/infiniband_mad", POLYCM_SYSFS_FOLDER, "abi_version\n" },
		{ "devices/pciffff:00", POLYCM_SYSFS_FOLDER, "ffff:00:00.0/\n" },
		{ "devices/pciffff:02", -ENOENT, "" },
		{ "devices/pciffff:00/ffff:00:07.0", -ENOENT, "" },
		{ CARD0, POLYCM_SYSFS_FOLDER,
		  "infiniband/\ninfiniband_verbs/\nsubsystem@\nvendor\nuevent\nnet/\n" },
		{ CARD0 "/vendor", POLYCM_SYSFS_FILE, "0x1234\n" },
		{ CARD0 "/uevent", POLYCM_SYSFS_FILE, "DRIVER=fake\nPCI_SLOT_NAME=ffff:00:00.0\n" },
		{ CARD0 "/device", -ENOENT, "" },
		{ CARD0 "/infiniband", POLYCM_SYSFS_FOLDER, "listed/\n" },
		{ CARD0 "/infiniband/other", -ENOENT, "" },
		{ CARD0 "/infiniband/listed", POLYCM_SYSFS_FOLDER,
		  "device@\nsubsystem@\nuevent\nnode_guid\nports/\n" },
		{ CARD0 "/infiniband/listed/device", POLYCM_SYSFS_LINK, "../../../ffff:00:00.0" },
		{ CARD0 "/infiniband/listed/uevent", POLYCM_SYSFS_FILE, "NAME=listed\n" },
		{ CARD0 "/infiniband/listed/node_guid", POLYCM_SYSFS_FILE, "0001:0002:0003:0004\n" },
		{ CARD0 "/infiniband/listed/ports/1", POLYCM_SYSFS_FOLDER, "state\ngid\n" },
		{ CARD0 "/infiniband/listed/ports/1/state", POLYCM_SYSFS_FILE, "4: ACTIVE\n" },
		{ CARD0 "/infiniband/listed/ports/1/gid", -EINVAL, "" },
		{ CARD0 "/infiniband/listed/ports/1/stat", -ENOENT, "" },
		{ CARD0 "/infiniband/listed/ports/2/state", -ENOENT, "" },
		{ CARD0 "/infiniband_verbs/uverbs0/ibdev", POLYCM_SYSFS_FILE, "listed\n" },
		{ CARD0 "/infiniband_verbs/uverbs0/dev", POLYCM_SYSFS_FILE, "231:192\n" },
		{ CARD33 "/infiniband_verbs/uverbs33/dev", POLYCM_SYSFS_FILE, "231:225\n" },
		{ CARD33, POLYCM_SYSFS_FOLDER, "infiniband/\ninfiniband_verbs/\nsubsystem@\n" },
		{ CARD33 "/infiniband/plain", POLYCM_SYSFS_FOLDER,
		  "device@\nsubsystem@\nuevent\nfw_ver\n" },
		{ CARD33 "/infiniband/plain/fw_ver", POLYCM_SYSFS_FILE, "plain\n" },
		{ CARD33 "/infiniband/plain/ports", -ENOENT, "" },
	};
	char text[512], small[8];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("%s\n", rows[i].path);
		assert_int_equal(polycm_sysfs_read(rows[i].path, text, sizeof(text)), rows[i].kind);
		assert_string_equal(rows[i].kind > 0 ? text : "", rows[i].text);
	}
	assert_int_equal(polycm_sysfs_read("class/infiniband", small, sizeof(small)), -ENOSPC);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(looking_starts_providers_to_be_looked_at),
		cmocka_unit_test(paths_lead_to_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
