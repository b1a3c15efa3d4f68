/* SPDX-License-Identifier: BSD-2-Clause */
/* test_profile.c - reading what `ibv_devinfo -v` prints, and files that are something else. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "providers/soft/fabric/profile.h"
#include "tests/cmocka_all.h"

#define DEVICE                                                                                     \
	"hca_id:\tcard_0\n\tfw_ver:\t16.23.1020\n"                 \
	"\tvendor_id:\t0x02c9\n\tboard_id:\tMT_0000000008\n\tphys_port_cnt:\t1\n"
#define LIMITS                                                                                     \
	"\tmax_mr_size:\t0xffffffffffffffff\n\tmax_qp:\t131072\n\tmax_qp_wr:\t8192\n\tmax_sge:\t30\n" \
	"\tmax_cq:\t1000\n\tmax_cqe:\t4095\n\tmax_mr:\t2000\n\tmax_pd:\t3000\n"                   \
	"\tatomic_cap:\tATOMIC_HCA (1)\n\thca_core_clock:\t156250kHZ\n"
#define PORT                                                                                       \
	"\t\tport:\t1\n\t\t\tstate:\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t4096 (5)\n"                  \
	"\t\t\tactive_mtu:\t1024 (3)\n\t\t\tlink_layer:\tEthernet\n\t\t\tactive_speed:\t25.0 Gbps (32)\n"

static char path[] = "/tmp/polycm-profile.XXXXXX";
static struct sim_profile profile;
static char why[160];

static int read_text(const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	assert_int_equal(fclose(file), 0);
	return sim_profile_read(path, &profile, why, sizeof(why));
}

static void test_all_kinds_of_lines(void **state)
{
	(void)state;
	assert_int_equal(read_text("# where from\nsome words\n" DEVICE LIMITS
				   "\tmax_sge:\t1\n" PORT
				   "hca_id:\tnext_0\n\tmax_sge:\t1\n"), 0);
	assert_string_equal(profile.name, "card_0");
	assert_string_equal(profile.attr.fw_ver, "16.23.1020");
	assert_string_equal(profile.board_id, "MT_0000000008");
	assert_int_equal(profile.attr.vendor_id, 0x2c9);
	assert_int_equal(profile.attr.max_mr_size, UINT64_MAX);
	assert_int_equal(profile.attr.max_sge, 30);
	assert_int_equal(profile.attr.atomic_cap, IBV_ATOMIC_HCA);
	assert_int_equal(profile.core_clock_khz, 156250);
	assert_int_equal(profile.num_ports, 1);
	assert_int_equal(profile.ports[0].max_mtu, IBV_MTU_4096);
	assert_int_equal(profile.ports[0].active_mtu, IBV_MTU_1024);
	assert_int_equal(profile.ports[0].active_speed, 32);
	assert_string_equal(sim_profile_transport(&profile), "roce");
}

static void test_transports(void **state)
{
	(void)state;
	assert_int_equal(read_text(DEVICE "\ttransport:\tiWARP (1)\n" LIMITS PORT), 0);
	assert_string_equal(sim_profile_transport(&profile), "iwarp");
	assert_int_equal(read_text(DEVICE LIMITS PORT "\t\t\tlink_layer:\tInfiniBand\n"), 0);
	assert_string_equal(sim_profile_transport(&profile), "ib");
}

/* A device that was written down from the sources of its driver. */
static void test_what_is_missing(void **state)
{
	struct ibv_device_attr attr = { .max_mw = 7, .max_sge = 8 };
	char missing[1024];

	(void)state;
	assert_int_equal(read_text(DEVICE LIMITS PORT), 0);
	sim_profile_apply(&profile, &attr);
	assert_int_equal(attr.max_sge, 30);
	assert_int_equal(attr.max_mw, 7);
	sim_profile_missing(&profile, missing, sizeof(missing));
	assert_non_null(strstr(missing, "max_qp_rd_atom, "));
	assert_non_null(strstr(missing, "max_srq_wr, "));
	assert_non_null(strstr(missing, ", active_width"));
	assert_null(strstr(missing, "max_qp_wr"));
	sim_profile_missing(&profile, missing, 12);
	assert_int_equal(strlen(missing), 11);

	assert_int_equal(read_text(DEVICE LIMITS "\tmax_srq:\t0\n" PORT), 0);
	sim_profile_missing(&profile, missing, sizeof(missing));
	assert_null(strstr(missing, "max_srq_wr"));
}

static void test_other_files(void **state)
{
	static const struct {
		const char *text, *why;
	} files[] = {
		{ "", "no line begins with hca_id:" },
		{ "\xff\xfe: \x01\x02\n", "no line begins with hca_id:" },
		{ DEVICE PORT, "the ports or the limits are missing" },
		{ DEVICE "\tmax_sge:\t0\n" PORT, "max_sge is 0" },
		{ DEVICE LIMITS, "the ports or the limits are missing" },
		{ DEVICE LIMITS PORT "\t\tport:\t2\n", "2 ports, phys_port_cnt is 1" },
		{ DEVICE LIMITS "\t\tport:\t2\n", "line 16: port \"2\" in place of 1" },
		{ DEVICE LIMITS PORT "\t\tport:\t2\n\t\tport:\t3\n", "has 2 at most" },
		{ DEVICE "\tmax_sge:\tmany\n", "line 6: max_sge: \"many\" is not what" },
		{ DEVICE "\tmax_sge:\t-1\n", "max_sge: \"-1\" is not what" },
		{ DEVICE "\tmax_sge:\t4294967295\n", "max_sge: 4294967295 is too large" },
		{ DEVICE "\tmax_sge:\t99999999999999999999\n", "is not what" },
		{ "\tvendor_id:\t0x100000000\n", "too large" },
		{ DEVICE LIMITS PORT "\t\t\tgid_tbl_len:\t65536\n", "gid_tbl_len: 65536 is too large" },
		{ DEVICE LIMITS PORT "\t\t\tpkey_tbl_len:\t65536\n", "too large" },
		{ DEVICE LIMITS PORT "\t\t\tport_cap_flags2:\t0x10000\n", "too large" },
		{ DEVICE LIMITS PORT "\t\t\tactive_width:\t4X (256)\n", "too large" },
		{ DEVICE LIMITS PORT "\t\t\tactive_speed:\tfast (65536)\n", "too large" },
		{ DEVICE LIMITS PORT "\t\t\tmax_vl_num:\tmany (256)\n", "too large" },
		{ DEVICE LIMITS PORT "\t\t\tsubnet_timeout:\t256\n", "too large" },
		{ DEVICE LIMITS PORT "\t\t\tinit_type_reply:\t256\n", "too large" },
		{ DEVICE "\tnum_comp_vectors:\t2147483648\n", "too large" },
		{ DEVICE "\tatomic_cap:\tATOMIC_HCA\n", "atomic_cap: \"ATOMIC_HCA\" is not what" },
		{ DEVICE "\ttransport:\tunspecified (4)\n" LIMITS PORT, "neither InfiniBand nor" },
		{ DEVICE LIMITS PORT "\t\t\tmax_mtu:\t4096 (200)\n", "max_mtu or active_mtu" },
		{ DEVICE LIMITS PORT "\t\t\tactive_mtu:\tinvalid MTU (0)\n", "max_mtu or active_mtu" },
		{ DEVICE LIMITS PORT "\t\t\tlink_layer:\tUnknown\n", "link_layer: \"Unknown\"" },
		{ "hca_id:\n", "hca_id is empty or longer than 63 bytes" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		assert_int_equal(read_text(files[i].text), -EINVAL);
		if (!strstr(why, files[i].why))
			fail_msg("file %zu: \"%s\" is not in \"%s\"", i, files[i].why, why);
		/* What is wrong with the whole file is not wrong in its last line. */
		if (!strncmp(files[i].why, "no line", 7) || !strncmp(files[i].why, "max_sge is 0", 12))
			assert_ptr_equal(strstr(why, files[i].why), why);
	}
	assert_int_equal(sim_profile_read("/nowhere", &profile, why, sizeof(why)), -ENOENT);
	assert_string_equal(why, "");
	assert_int_equal(sim_profile_read("/proc/self/fd", &profile, why, sizeof(why)), -ENOENT);
	assert_string_equal(why, "the folder has no file ibv_devinfo");
}

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_kinds_of_lines),
		cmocka_unit_test(test_transports),
		cmocka_unit_test(test_what_is_missing),
		cmocka_unit_test(test_other_files),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
