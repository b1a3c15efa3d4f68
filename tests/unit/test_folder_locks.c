/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The locks of the shared fabric, of its folder and of its tables: who waits for
 * them, for how long, and what is told then.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "providers/soft/fabric/fabric.h"
#include "providers/soft/shm/folder.h"
#include "folder_world.h"
#include "shm_child.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

/* Its holder may be frozen: nobody waits for ever, and who it is is told. */
static void a_lock_that_stays_held_is_told(void **state)
{
	char pid[16];
	int fd;

	(void)state;
	sim_folder_patience = 0;
	folder_make("polycm", 0700);
	snprintf(pid, sizeof(pid), "%d\n", 4711);
	folder_write("polycm/default-roce.lock", 0, pid, strlen(pid));
	fd = open(sim_fake_path("polycm/default-roce.lock"), O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	folder_refused(-EBUSY, "default-roce.lock: process 4711 holds it and stands still");
	close(fd);
	assert_int_equal(folder_join(), 0);
}

static int lock_fd;
static unsigned int looks;

/* A second passes with each look at the clock, and every three of them another process gets the lock. */
static uint64_t clock_of_a_crowd(clockid_t clock)
{
	char pid[16];

	(void)clock;
	if (lock_fd >= 0 && looks % 3 == 0) {
		snprintf(pid, sizeof(pid), "%u\n", 4711 + looks);
		assert_int_equal(pwrite(lock_fd, pid, strlen(pid), 0), strlen(pid));
	}
	if (++looks == 20) {
		close(lock_fd);
		lock_fd = -1;
	}
	return looks * SIM_MS(1000);
}

/* None of many that join at a time has it for long. */
static void a_lock_that_goes_from_hand_to_hand_is_waited_for(void **state)
{
	const struct polycm_clock_services *services = sim_time;
	struct polycm_clock_services crowded = *services;
	int r;

	(void)state;
	sim_folder_patience = SIM_MS(5000);
	folder_make("polycm", 0700);
	folder_write("polycm/default-roce.lock", 0, "4710\n", 5);
	lock_fd = open(sim_fake_path("polycm/default-roce.lock"), O_RDWR | O_CLOEXEC);
	assert_true(lock_fd >= 0);
	assert_int_equal(flock(lock_fd, LOCK_EX), 0);
	looks = 0;
	crowded.real_ns = clock_of_a_crowd;
	sim_time = &crowded;
	r = folder_join();
	sim_time = services;
	assert_int_equal(r, 0);
}

static void tables_that_stay_locked_are_told(void **state)
{
	char line[64];
	struct shm_child child;

	(void)state;
	sim_folder_patience = 0;
	shm_child_start(&child, "lock");
	snprintf(line, sizeof(line), "process %d holds the lock of its tables", (int)child.pid);
	folder_refused(-EBUSY, line);
	assert_true(WIFSIGNALED(shm_child_kill(&child)));
	assert_int_equal(folder_join(), 0);
}

static pid_t holder;

/* The time of day is set anew, back to 1970, and who waits lets the holder end. */
static uint64_t clock_that_steps(clockid_t clock)
{
	struct timespec now;

	if (clock == CLOCK_REALTIME)
		return 0;
	kill(holder, SIGKILL);
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void the_time_of_day_does_not_end_a_wait_for_the_tables(void **state)
{
	const struct polycm_clock_services *services = sim_time;
	struct polycm_clock_services stepping = *services;
	struct shm_child child;
	int r;

	(void)state;
	sim_folder_patience = SIM_MS(60000);
	shm_child_start(&child, "lock");
	holder = child.pid;
	stepping.real_ns = clock_that_steps;
	sim_time = &stepping;
	r = folder_join();
	sim_time = services;
	assert_true(WIFSIGNALED(shm_child_kill(&child)));
	assert_int_equal(r, 0);
}

int main(int argc, char **argv)
{
#define FOLDER_TEST(test) cmocka_unit_test_setup_teardown(test, folder_start, folder_stop)
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(a_lock_that_stays_held_is_told),
		FOLDER_TEST(a_lock_that_goes_from_hand_to_hand_is_waited_for),
		FOLDER_TEST(tables_that_stay_locked_are_told),
		FOLDER_TEST(the_time_of_day_does_not_end_a_wait_for_the_tables),
	};
	int child = shm_child_main(argc, argv);

	if (child >= 0)
		return child;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
