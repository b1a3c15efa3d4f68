/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_profile.c - bytes as the output of `ibv_devinfo -v': a device looks like it, or it is
 * refused with a reason.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "providers/soft/fabric/build.h"
#include "providers/soft/fabric/profile.h"
#include "providers/soft/host/host.h"
#include "tests/cmocka_all.h"
#include "tests/unit/sim_fake.h"

const char fuzz_name[] = "profile";

static int read_profile(const uint8_t *data, size_t size, struct sim_profile *profile)
{
	char path[40], why[160], missing[1024];
	int fd, r;

	fd = memfd_create("profile", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = sim_profile_read(path, profile, why, sizeof(why));
	close(fd);
	assert_true(r == 0 || r == -EINVAL);
	assert_int_equal(!*why, !r);
	assert_false(strchr(why, '\n'));
	if (!r)
		sim_profile_missing(profile, missing, sizeof(missing));
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sim_profile profile;
	struct sim_device *device;
	struct sim_node *node;
	const char *why;

	if (read_profile(data, size, &profile))
		return 0;
	sim_fake_init();
	assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, 1), 0);
	sim_lock();
	assert_int_equal(sim_fabric_begin(), 0);
	assert_int_equal(sim_build_node("a", &node, &why), 0);
	if (!sim_build_device(node, NULL, "10.0.0.1/24", &profile, NULL, &device, &why)) {
		assert_true(device->attr.max_qp > 0 && device->attr.max_sge > 0);
		assert_true(device->attr.max_cqe > 0 && device->attr.phys_port_cnt > 0);
		assert_int_equal(device->ports[0].num_gids > 0, true);
	}
	sim_fabric_close();
	sim_unlock();
	sim_engine_stop();
	return 0;
}

#define LIMITS                                                                                     \
	"\ttransport:\tInfiniBand (0)\n\tphys_port_cnt:\t1\n\tmax_mr_size:\t0x80000000\n"          \
	"\tmax_qp:\t8\n\tmax_qp_wr:\t16\n\tmax_sge:\t2\n\tatomic_cap:\tATOMIC_HCA (1)\n"
#define PORT                                                                                       \
	"\t\tport:\t1\n\t\t\tmax_mtu:\t4096 (5)\n\t\t\tactive_mtu:\t1024 (3)\n"                    \
	"\t\t\tlink_layer:\tEthernet\n\t\t\tGID[  0]:\tfe80::1, RoCE v2\n"

void fuzz_seeds(void (*put)(const char *name, const uint8_t *data, size_t size))
{
	static const struct {
		const char *name, *text;
	} seeds[] = {
		{ "whole", "hca_id:\tcard_0\n" LIMITS PORT },
		{ "two_devices", "hca_id:\ta\n" LIMITS PORT "hca_id:\tb\n" LIMITS PORT },
		{ "two_ports", "hca_id:\ta\n" LIMITS PORT "\t\tport:\t2\n" },
		{ "without_limits", "hca_id:\ta\n" PORT },
		{ "without_ports", "hca_id:\ta\n" LIMITS },
		{ "iwarp", "hca_id:\ta\n\ttransport:\tiWARP (1)\n" LIMITS PORT },
		{ "none", "hca_id:\ta\n\tmax_qp:\t0\n" LIMITS PORT },
		{ "large", "hca_id:\ta\n\tmax_qp:\t0xffffffff\n" PORT },
		{ "larger", "hca_id:\ta\n\tmax_mr_size:\t99999999999999999999\n" PORT },
		{ "negative", "hca_id:\ta\n\tmax_sge:\t-1\n" PORT },
		{ "no_code", "hca_id:\ta\n\ttransport:\t(\n" },
		{ "long_name", "hca_id:\t0123456789012345678901234567890123456789012345678901234567"
			       "89012345678901234567890\n" },
		{ "no_value", "hca_id:\n" },
		{ "comment", "# hca_id: a\n\n" },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(seeds); i++)
		put(seeds[i].name, (const uint8_t *)seeds[i].text, strlen(seeds[i].text));
}
