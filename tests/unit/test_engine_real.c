/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine under the real clock: timers, pollers, the NIC thread.  Real time is waited
 * for, but nothing is asserted about how long that took.
 */
#include "config.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine_probe.h"

#define NO_HANG (sim_now() + SIM_MS(20000))

/* Wait until `probe' has fired, so much later. */
static int fire_in(uint64_t ns)
{
	int r;

	sim_lock();
	sim_timer_arm(&probe.timer, sim_now() + ns);
	r = sim_wait(is_true, &num_fired, NO_HANG);
	sim_unlock();
	return r;
}

static void what_is_due_happens_before_the_lock_is_released(void **state)
{
	(void)state;
	init_probes(probes, 3);
	probes[1].arms = &probes[2];
	sim_lock();
	sim_timer_arm(&probes[0].timer, sim_now());
	sim_timer_arm(&probes[1].timer, 1);
	assert_int_equal(num_fired, 0);
	sim_unlock();
	assert_string_equal(fired, "abc");
}

static void the_nic_thread_fires_what_is_due_later(void **state)
{
	uint64_t deadline;
	int r;

	(void)state;
	init_probes(probes, 2);
	sim_lock();
	deadline = sim_now() + SIM_MS(3);
	sim_timer_arm(&probes[0].timer, sim_now() + SIM_MS(60000));
	sim_timer_arm(&probes[1].timer, deadline);
	r = sim_wait(is_true, &num_fired, NO_HANG);
	sim_unlock();
	assert_int_equal(r, 0);
	assert_string_equal(fired, "b");
	assert_true(probes[1].at >= deadline);
}

static void an_earlier_timer_wakes_the_nic_thread(void **state)
{
	int r;

	(void)state;
	init_probes(probes, 2);
	arm(&probes[0], sim_now() + SIM_MS(60000));
	for (unsigned int i = 0; i < 50; i++) {
		num_fired = 0;
		sim_lock();
		sim_timer_arm(&probes[1].timer, sim_now() + SIM_US(100));
		r = sim_wait(is_true, &num_fired, NO_HANG);
		sim_unlock();
		assert_int_equal(r, 0);
		assert_string_equal(fired, "b");
	}
}

static void waiting_in_real_time_ends_at_the_deadline(void **state)
{
	unsigned int never = 0;
	uint64_t deadline;
	int r;

	(void)state;
	sim_lock();
	deadline = sim_now() + SIM_MS(2);
	r = sim_wait(is_true, &never, deadline);
	assert_true(sim_now() >= deadline);
	sim_unlock();
	assert_int_equal(r, -ETIMEDOUT);
}

static void a_poller_fires_timers_too(void **state)
{
	uint64_t end = NO_HANG;
	bool done = false;

	(void)state;
	init_probes(&probe, 1);
	arm(&probe, sim_now() + SIM_US(300));
	while (!done) {
		sim_progress();
		assert_true(sim_now() < end);
		sim_lock();
		done = num_fired;
		sim_unlock();
	}
	assert_int_equal(sim_idle(NULL), 0);
}

static unsigned int catches_up;

/* What came while nobody looked is the answer that the timer waits for. */
static void answer(void)
{
	catches_up++;
	sim_timer_disarm(&probe.timer);
	sim_wake();
}

static void what_came_while_the_process_was_stopped_comes_before_time_outs(void **state)
{
	uint64_t due;
	int r;

	(void)state;
	init_probes(&probe, 1);
	sim_engine_hooks.catch_up = answer;
	catches_up = 0;
	sim_lock();
	due = sim_now() + SIM_MS(1);
	sim_timer_arm(&probe.timer, due);
	/* Nobody gets the lock meanwhile. */
	while (sim_now() < due + SIM_MS(30))
		;
	r = sim_wait(is_true, &catches_up, NO_HANG);
	sim_unlock();
	assert_int_equal(r, 0);
	assert_int_equal(num_fired, 0);
	sim_engine_hooks.catch_up = NULL;
}

int __real_sched_yield(void);
int __wrap_sched_yield(void);

static atomic_uint yields;

int __wrap_sched_yield(void)
{
	atomic_fetch_add(&yields, 1);
	return __real_sched_yield();
}

static void *poll_once(void *unused)
{
	sim_progress();
	return unused;
}

/* It may be preempted, on the processor that the poller uses up. */
static void a_poller_yields_to_the_holder_of_the_lock(void **state)
{
	pthread_t poller;

	(void)state;
	init_probes(&probe, 1);
	atomic_store(&yields, 0);
	sim_lock();
	sim_timer_arm(&probe.timer, sim_now());	/* is due: there is something to do */
	for (unsigned int i = 0; i < 16; i++) {
		assert_int_equal(pthread_create(&poller, NULL, poll_once, NULL), 0);
		assert_int_equal(pthread_join(poller, NULL), 0);
	}
	assert_int_not_equal(atomic_load(&yields), 0);
	sim_unlock();
	assert_string_equal(fired, "a");
}

/* The value of a line of /proc/self/task/TID/status, or false. */
static bool read_status(const char *tid, const char *key, char *value, size_t size)
{
	char path[300], line[256];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
	file = fopen(path, "r");
	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, strlen(key)))
			continue;
		snprintf(value, size, "%.*s", (int)strcspn(line + strlen(key), "\n"),
			 line + strlen(key));
		found = true;
	}
	fclose(file);
	return found;
}

static void the_nic_thread_has_a_name_and_takes_no_signals_of_others(void **state)
{
	unsigned long long blocked = 0;
	struct dirent *entry;
	char text[64];
	DIR *dir;

	(void)state;
	init_probes(&probe, 1);
	/* Once it has fired a timer it has started for sure. */
	assert_int_equal(fire_in(SIM_US(100)), 0);
	dir = opendir("/proc/self/task");
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (!read_status(entry->d_name, "Name:\t", text, sizeof(text)) ||
		    strcmp(text, "polycm-nic") != 0)
			continue;
		assert_true(read_status(entry->d_name, "SigBlk:\t", text, sizeof(text)));
		blocked = strtoull(text, NULL, 16);
	}
	closedir(dir);
	for (int sig = 1; sig < 32; sig++) {
		switch (sig) {
		case SIGBUS:
		case SIGFPE:
		case SIGILL:
		case SIGSEGV:
		case SIGSYS:
		case SIGTRAP:
			/* It would cause these itself, and the program's handler has to learn of it. */
			assert_false(blocked >> (sig - 1) & 1);
			break;
		case SIGKILL:
		case SIGSTOP:
			break;
		default:
			assert_true(blocked >> (sig - 1) & 1);
		}
	}
}

/* As the kernel tells; what it has no slices for it leaves 0 or at its own. */
static uint64_t slice_of(long tid)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} how = { .size = sizeof(how) };

	return syscall(SYS_sched_getattr, tid, &how, sizeof(how), 0) ? 0 : how.runtime;
}

/* A program that spins has a longer one, so the NIC thread gets its turn when it is woken. */
static void the_nic_thread_asks_for_short_slices(void **state)
{
	uint64_t ours = slice_of(gettid());
	struct dirent *entry;
	char text[64];
	DIR *dir;

	(void)state;
	if (!ours)
		skip();			/* before Linux 6.12 */
	init_probes(&probe, 1);
	assert_int_equal(fire_in(SIM_US(100)), 0);
	dir = opendir("/proc/self/task");
	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (read_status(entry->d_name, "Name:\t", text, sizeof(text)) &&
		    !strcmp(text, "polycm-nic"))
			assert_in_range(slice_of(atol(entry->d_name)), 1, ours - 1);
	closedir(dir);
}

static void a_child_of_fork_has_an_engine_too(void **state)
{
	int status;
	pid_t child;

	(void)state;
	if (SIM_FAKE_TSAN)
		skip();			/* it allows no threads after fork() */
	init_probes(&probe, 1);
	arm(&probe, sim_now() + SIM_MS(60000));	/* so that the thread runs */
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		_exit(fire_in(SIM_US(200)) ? 1 : 42);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
	assert_int_equal(num_fired, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		REAL(what_is_due_happens_before_the_lock_is_released),
		REAL(the_nic_thread_fires_what_is_due_later),
		REAL(an_earlier_timer_wakes_the_nic_thread),
		REAL(waiting_in_real_time_ends_at_the_deadline),
		REAL(a_poller_fires_timers_too),
		REAL(what_came_while_the_process_was_stopped_comes_before_time_outs),
		REAL(a_poller_yields_to_the_holder_of_the_lock),
		REAL(the_nic_thread_has_a_name_and_takes_no_signals_of_others),
		REAL(the_nic_thread_asks_for_short_slices),
		REAL(a_child_of_fork_has_an_engine_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
