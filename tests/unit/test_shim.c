/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_shim.c - the ibv_* calls of simulated devices: tables of any size, the
 * answers of missing slots, old callers' smaller structs.
 */
#include "config.h"

#include "tests/cmocka_all.h"

#include <errno.h>
#include <string.h>

#include "core/verbs/shim.h"
#include "core/verbs/table.h"
#include "polycm/provider.h"

#undef ibv_query_port
#undef ibv_reg_mr

/* Exported by libibverbs without a public declaration, and by us. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
		       unsigned int *type);

static struct ibv_context *open_device(struct ibv_device *device)
{
	(void)device;
	errno = EBUSY;
	return NULL;
}

static int close_device(struct ibv_context *context)
{
	(void)context;
	return 77;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	(void)context;
	memset(attr, 0xff, sizeof(*attr));
	attr->lid = port;
	return 0;
}

static int query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
			struct ibv_gid_entry *entry, uint32_t flags)
{
	(void)context;
	(void)port;
	(void)flags;
	if (index > 1)
		return EINVAL;
	entry->gid_index = index;
	entry->gid_type = index ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
	return 0;
}

static const struct polycm_verbs whole = {
	.size = sizeof(whole),
	.open_device = open_device,
	.close_device = close_device,
	.query_port = query_port,
	.query_gid_ex = query_gid_ex,
};

static struct polycm_verbs_device device;
static struct ibv_context context = { .device = &device.device };
static struct ibv_pd pd = { .context = &context };
static struct ibv_cq cq = { .context = &context };
static struct ibv_qp qp = { .context = &context };

static int setup(void **state)
{
	(void)state;
	memset(&device, 0, sizeof(device));
	device.verbs = &whole;
	device.node_guid = 0x1234;
	strcpy(device.device.name, "fake0");
	strcpy(device.device.ibdev_path, "/nowhere/fake0");
	return polycm_shim_adopt(&device, POLYCM_ABI_MINOR, NULL, 0);
}

static int teardown(void **state)
{
	(void)state;
	polycm_shim_release(&device);
	return 0;
}

static void short_tables_are_refused(void **state)
{
	const struct {
		const char *why;
		struct polycm_verbs table;
	} cases[] = {
		{ "its table of verbs has 0 bytes", { .size = 0 } },
		{ "its table of verbs has 88 bytes, version 1.0 has ",
		  { .size = offsetof(struct polycm_verbs, query_port) + 40,
		    .open_device = open_device, .close_device = close_device } },
		{ "no more than", { .size = sizeof(struct polycm_verbs) + 8,
				    .open_device = open_device, .close_device = close_device } },
		{ "open_device or close_device is missing",
		  { .size = sizeof(struct polycm_verbs), .close_device = close_device } },
		{ "open_device or close_device is missing",
		  { .size = sizeof(struct polycm_verbs), .open_device = open_device } },
	};
	struct polycm_verbs_device none = { .verbs = NULL };
	char why[200];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct polycm_verbs_device other = { .verbs = &cases[i].table };

		assert_int_equal(polycm_shim_adopt(&other, POLYCM_ABI_MINOR, why, sizeof(why)),
				 -EINVAL);
		if (!strstr(why, cases[i].why))
			fail_msg("not \"%s\": %s", cases[i].why, why);
		assert_null(shim_table(&other.device));
	}
	assert_int_equal(polycm_shim_adopt(&none, POLYCM_ABI_MINOR, why, sizeof(why)), -EINVAL);
}

static void newer_slots_are_left_alone(void **state)
{
	struct {
		struct polycm_verbs table;
		void *newer;
	} longer = { whole, &longer };
	struct polycm_verbs_device other = { .verbs = &longer.table };
	struct ibv_context its = { .device = &other.device };

	(void)state;
	longer.table.size = sizeof(longer);
	assert_int_equal(polycm_shim_adopt(&other, POLYCM_ABI_MINOR + 1, NULL, 0), 0);
	assert_int_equal(ibv_close_device(&its), 77);
	polycm_shim_release(&other);
	assert_null(shim_table(&other.device));
}

static void missing_slots_fail_as_each_call_does(void **state)
{
	union ibv_gid gid;
	__be16 pkey;
	char byte;

	(void)state;
	errno = 0;
	assert_null(ibv_alloc_pd(&context));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(ibv_reg_mr(&pd, &byte, 1, 0));
	assert_null(ibv_create_cq(&context, 1, NULL, NULL, 0));
	assert_null(ibv_qp_to_qp_ex(&qp));
	assert_int_equal(ibv_dealloc_pd(&pd), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_cq(&cq), EOPNOTSUPP);
	assert_int_equal(ibv_modify_qp(&qp, NULL, 0), EOPNOTSUPP);
	errno = 0;
	assert_int_equal(ibv_query_gid(&context, 1, 0, &gid), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_query_pkey(&context, 1, 0, &pkey), -1);
	ibv_ack_cq_events(&cq, 1);
}

static void old_callers_get_their_smaller_struct(void **state)
{
	size_t old = offsetof(struct ibv_port_attr, port_cap_flags2);
	struct ibv_port_attr attr;
	const uint8_t *bytes = (const uint8_t *)&attr;

	(void)state;
	memset(&attr, 0x5a, sizeof(attr));
	assert_int_equal(ibv_query_port(&context, 9, (struct _compat_ibv_port_attr *)(void *)&attr), 0);
	assert_int_equal(attr.lid, 9);
	assert_int_equal(bytes[0], 0xff);
	for (size_t i = old; i < sizeof(attr); i++)
		assert_int_equal(bytes[i], 0x5a);
}

static void devices_are_told_apart(void **state)
{
	struct polycm_verbs_device stranger = { .device.name = "mlx5_0" };
	struct ibv_gid_entry entry;
	unsigned int type = 9;

	(void)state;
	assert_non_null(shim_table(&device.device));
	assert_null(shim_table(&stranger.device));
	assert_string_equal(ibv_get_device_name(&stranger.device), "mlx5_0");
	assert_int_equal(ibv_get_device_guid(&device.device), 0x1234);
	assert_int_equal(ibv_get_device_index(&device.device), -1);
	errno = 0;
	assert_null(ibv_open_device(&device.device));
	assert_int_equal(errno, EBUSY);

	assert_int_equal(ibv_query_gid_ex(&context, 1, 1, &entry, 0), 0);
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(ibv_query_gid_type(&context, 1, 1, &type), 0);
	assert_int_equal(type, 1);
	assert_int_equal(ibv_query_gid_type(&context, 1, 0, &type), 0);
	assert_int_equal(type, 0);
	assert_int_equal(ibv_query_gid_type(&context, 1, 2, &type), -1);
	assert_int_equal(errno, EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(short_tables_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(newer_slots_are_left_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(missing_slots_fail_as_each_call_does, setup, teardown),
		cmocka_unit_test_setup_teardown(old_callers_get_their_smaller_struct, setup, teardown),
		cmocka_unit_test_setup_teardown(devices_are_told_apart, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
