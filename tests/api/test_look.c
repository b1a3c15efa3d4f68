/* SPDX-License-Identifier: BSD-2-Clause */
/* test_look.c - a program that only reads sysfs at first: what it may change, and when it begins. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "tests/cmocka_all.h"

#define DEVICE "/sys/class/infiniband/sim0"

static char trace[] = "/tmp/polycm-look-XXXXXX";

static uint64_t ns_of(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
}

static uint64_t system_ns(void)
{
	struct timespec time;

	assert_int_equal(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time), 0);
	return ns_of(&time);
}

/* Virtual time begins at the next full millisecond, and then stands still. */
static bool time_is_real(void)
{
	uint64_t before = system_ns(), after;
	struct timespec time;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &time), 0);
	after = system_ns();
	return before <= ns_of(&time) && ns_of(&time) <= after;
}

/* What the trace begins with. */
static char trace_first(void)
{
	int fd = open(trace, O_RDONLY);
	char first;

	assert_true(fd >= 0);
	assert_int_equal(read(fd, &first, 1), 1);
	close(fd);
	return first;
}

static void looking_changes_nothing(void **state)
{
	struct ibv_device **list;
	char state_text[16] = "";
	int fd, num;

	(void)state;
	assert_int_equal(access(DEVICE, F_OK), 0);
	fd = open(DEVICE "/ports/1/state", O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, state_text, sizeof(state_text) - 1), 10);
	assert_string_equal(state_text, "4: ACTIVE\n");
	close(fd);
	assert_int_equal(trace_first(), 'k');
	assert_true(time_is_real());

	list = ibv_get_device_list(&num);
	assert_non_null(list);
	assert_int_equal(num, 1);
	assert_int_equal(trace_first(), '{');
	ibv_free_device_list(list);
	assert_int_equal(access(DEVICE, F_OK), 0);
}

static int setup(void **state)
{
	int fd = mkstemp(trace);

	(void)state;
	if (fd < 0 || write(fd, "kept\n", 5) != 5)
		return -1;
	close(fd);
	setenv("POLYCM_PROVIDER", "sim", 1);
	setenv("POLYCM_SIM_CLOCK", "virtual", 1);
	setenv("POLYCM_SIM_TRACE", trace, 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(trace);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(looking_changes_nothing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
