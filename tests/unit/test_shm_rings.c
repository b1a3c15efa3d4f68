/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared fabric with real processes on it: reading their memory, rings that make no
 * sense, and rings that cannot be made or mapped for a while.
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "providers/soft/fabric/fabric.h"
#include "providers/soft/link/shm/pull.h"
#include "providers/soft/link/shm/shm.h"
#include "providers/soft/shm/doorbell.h"
#include "providers/soft/shm/segment.h"
#include "shm_seen.h"

/* ------------------------------------------------------------------------
 * Reading another process's memory.
 */

static void memory_is_read_where_the_system_allows(void **state)
{
	static uint8_t got[SHM_CHILD_PATTERN];
	struct iovec remote[200], local[3];
	struct shm_child child;
	size_t part = SHM_CHILD_PATTERN / 200;

	(void)state;
	shm_child_start(&child, "echo");
	sim_lock();
	assert_false(sim_link_pullable(child.slot));
	assert_int_equal(send_bytes(child.slot, "abc", 3), 0);
	assert_int_equal(wait_for(1), 0);
	for (unsigned int i = 0; i < 200; i++)
		remote[i] = (struct iovec){
			.iov_base = (void *)(uintptr_t)(child.address + i * part),
			.iov_len = part,
		};
	local[0] = (struct iovec){ .iov_base = got, .iov_len = 1 };
	local[1] = (struct iovec){ .iov_base = got + 1, .iov_len = 0 };
	local[2] = (struct iovec){ .iov_base = got + 1, .iov_len = sizeof(got) - 1 };
	if (sim_link_pull(child.slot, remote, 200, local, 3, sizeof(got)) != -EPERM) {
		assert_true(sim_link_pullable(child.slot));
		for (uint32_t i = 0; i < SHM_CHILD_PATTERN; i++)
			assert_int_equal(got[i], i % 251);
		assert_int_equal(sim_link_pull(child.slot, remote, 200, local, 2, sizeof(got)),
				 -EINVAL);
		remote[150].iov_base = (void *)8;
		assert_int_equal(sim_link_pull(child.slot, remote, 200, local, 3, sizeof(got)),
				 -EFAULT);
	}
	sim_unlock();
	assert_int_equal(shm_child_end(&child), 0);
	sim_lock();
	assert_int_not_equal(sim_link_pull(child.slot, remote, 1, local, 3, 10), 0);
	assert_int_equal(sim_link_pull(SIM_MAX_SLOTS, remote, 1, local, 3, 10), -ESRCH);
	sim_unlock();
}

/* As if the process had died and another one had its id now. */
static void memory_of_another_process_is_not_taken_for_its(void **state)
{
	uint64_t word = 0x1234;
	struct sim_pull pull = {
		.allowed = true,
		.pid = getpid(),
		.probe_address = (uintptr_t)&word,
		.probe_value = word,
	};

	(void)state;
	if (sim_pull(&pull, NULL, 0, NULL, 0, 0) == -EPERM)
		skip();
	assert_int_equal(sim_pull(&pull, NULL, 0, NULL, 0, 0), 0);
	pull.probe_value++;
	assert_int_equal(sim_pull(&pull, NULL, 0, NULL, 0, 0), -ESRCH);
	pull.probe_address = 8;
	assert_int_equal(sim_pull(&pull, NULL, 0, NULL, 0, 0), -EFAULT);
	pull.allowed = false;
	assert_int_equal(sim_pull(&pull, NULL, 0, NULL, 0, 0), -EPERM);
}

static void memory_is_not_read_where_the_setting_forbids(void **state)
{
	struct iovec remote, local;
	struct shm_child child;
	char byte;

	(void)state;
	sim_fake_set("POLYCM_SIM_PULL", "off");
	shm_child_start(&child, "echo");
	sim_lock();
	assert_int_equal(send_bytes(child.slot, "abc", 3), 0);
	assert_int_equal(wait_for(1), 0);
	remote = (struct iovec){ .iov_base = (void *)(uintptr_t)child.address, .iov_len = 1 };
	local = (struct iovec){ .iov_base = &byte, .iov_len = 1 };
	assert_int_equal(sim_link_pull(child.slot, &remote, 1, &local, 1, 1), -EPERM);
	sim_unlock();
	assert_int_equal(shm_child_end(&child), 0);
}

/* ------------------------------------------------------------------------
 * Peers that misbehave.
 */

static void check_bad_ring(const char *mode, unsigned int good_packets, const char *why)
{
	struct shm_child child, good;

	sim_lock();
	sim_engine_need_thread();
	sim_unlock();
	shm_child_start(&child, mode);
	shm_child_start(&good, "echo");
	sim_lock();
	assert_int_equal(send_bytes(good.slot, "abc", 3), 0);
	assert_int_equal(wait_for(good_packets + 1), 0);
	sim_unlock();
	assert_int_equal(shm_child_end(&good), 0);
	assert_int_equal(shm_child_end(&child), 0);
	sim_lock();
	assert_int_equal(seen.count, good_packets + 1);
	assert_int_equal(sim_fake_log_count(POLYCM_LOG_WARN), 1);
	assert_non_null(strstr(sim_fake_log(POLYCM_LOG_WARN), why));
	sim_unlock();
}

static void a_ring_with_nonsense_in_it_is_dropped(void **state)
{
	(void)state;
	check_bad_ring("broken", 1, "nonsense");
}

static void a_ring_of_another_size_is_none(void **state)
{
	(void)state;
	check_bad_ring("size", 0, "is no ring");
}

static void a_ring_without_its_mark_is_none(void **state)
{
	(void)state;
	check_bad_ring("magic", 0, "is no ring");
}

/* ------------------------------------------------------------------------
 * Descriptors and address space that are short for a while.
 */

static const int shortages[] = { RLIMIT_NOFILE, RLIMIT_AS };

/* Nothing more of it, until told. */
static struct rlimit shorten(int resource)
{
	struct rlimit before, none;

	assert_int_equal(getrlimit((__rlimit_resource_t)resource, &before), 0);
	none = before;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit((__rlimit_resource_t)resource, &none), 0);
	return before;
}

static void widen(int resource, const struct rlimit *before)
{
	assert_int_equal(setrlimit((__rlimit_resource_t)resource, before), 0);
}

/* What came meanwhile is read once that passes. */
static void a_ring_that_cannot_be_mapped_is_read_later(void **state)
{
	struct shm_child child;
	struct rlimit before;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(shortages); i++) {
		unsigned int lines = sim_fake_log_count(POLYCM_LOG_ERROR);

		shm_child_start(&child, "echo");
		sim_lock();
		assert_int_equal(send_bytes(child.slot, "x", 1), 0);
		before = shorten(shortages[i]);
		while (!sim_shm_pending())
			;
		sim_shm_receive();
		sim_segment_notify(sim_self_slot(), child.slot);
		sim_shm_receive();
		widen(shortages[i], &before);
		assert_int_equal(seen.count, 0);
		assert_int_equal(sim_fake_log_count(POLYCM_LOG_ERROR), lines + 1);
		assert_non_null(strstr(sim_fake_log(POLYCM_LOG_ERROR), "what goes through it waits"));
		assert_int_equal(wait_for(1), 0);
		sim_unlock();
		assert_int_equal(shm_child_end(&child), 0);
		seen.count = 0;
	}
}

/* Packets wait, in order, for the ring that cannot be made now. */
static void a_ring_that_cannot_be_made_is_made_later(void **state)
{
	struct shm_child child;
	struct rlimit before;
	int r = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(shortages); i++) {
		unsigned int lines = sim_fake_log_count(POLYCM_LOG_ERROR);

		shm_child_start(&child, "echo");
		sim_lock();
		before = shorten(shortages[i]);
		for (uint32_t number = 0; number < 3; number++)
			r |= send_bytes(child.slot, &number, sizeof(number));
		widen(shortages[i], &before);
		assert_int_equal(r, 0);
		assert_int_equal(sim_fake_log_count(POLYCM_LOG_ERROR), lines + 1);
		assert_int_equal(wait_for(3), 0);
		assert_true(seen.in_order);
		sim_unlock();
		assert_int_equal(shm_child_end(&child), 0);
		seen.count = 0;
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		JOINED(memory_is_read_where_the_system_allows),
		cmocka_unit_test(memory_of_another_process_is_not_taken_for_its),
		JOINED(memory_is_not_read_where_the_setting_forbids),
		JOINED(a_ring_with_nonsense_in_it_is_dropped),
		JOINED(a_ring_that_cannot_be_mapped_is_read_later),
		JOINED(a_ring_that_cannot_be_made_is_made_later),
		JOINED(a_ring_of_another_size_is_none),
		JOINED(a_ring_without_its_mark_is_none),
	};
	int child = shm_child_main(argc, argv);

	if (child >= 0)
		return child;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
