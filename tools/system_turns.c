/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_turns.c - the launcher's part of a system: it gives the first turn, waits until it has the
 * turn again, and ends all.
 */
#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run.h"
#include "system.h"
#include "turn/order.h"

#define LOOK_NS 50000000	/* real time between two looks for what nobody tells */
#define ASK_NS 5000000		/* and whether the owner of the turn makes calls */
#define PATIENCE 10		/* s without a call: the member computes, or waits for who is outside */

#define GRACE (10ull * TURN_SECOND)	/* for daemons, between SIGTERM and SIGKILL */

static volatile sig_atomic_t stopped;	/* a signal for the launcher */

struct run {
	struct system *system;
	uint64_t progress;	/* progress_of(), when it grew last */
	uint64_t since;		/* real_ns() */
	uint64_t looked;	/* likewise */
	uint64_t pause;		/* the longest between two looks since then */
	struct system_busy busy;	/* of the owner of the turn, soon after it */
	struct system_asks asks;
	bool is_reported;
	bool is_broken;		/* a member has written where it must not */
};

/* ------------------------------------------------------------------------
 * Ends.
 */

/* With their children, as a terminal does it.  They see the signal when they have a turn. */
static void end_daemons(struct system *system)
{
	struct turn_segment *segment = system->segment;

	segment->until = segment->now + GRACE;
	for (size_t i = 0; i < system->num; i++)
		if (system->programs[i].is_daemon && !system->programs[i].has_ended)
			kill(-system->programs[i].pid, SIGTERM);
	for (uint32_t i = 0; i < segment->num_members; i++)
		turn_order_interrupt(segment, i);
}

static void report_daemons(const struct system *system)
{
	for (size_t i = 0; i < system->num; i++)
		if (system->programs[i].is_daemon && !system->programs[i].has_ended)
			tool_error("%s, a daemon, did not end within %llu s of SIGTERM: it is killed",
				   system_name(&system->programs[i]), GRACE / TURN_SECOND);
}

static bool any_alive(const struct system *system)
{
	for (uint32_t i = 0; i < system->segment->num_members; i++)
		if (turn_is_alive(&system->segment->members[i]))
			return true;
	return false;
}

/* ------------------------------------------------------------------------
 * Waiting for the turn.
 */

static uint64_t real_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * TURN_SECOND + (uint64_t)now.tv_nsec;
}

/* The number of turns does not count: threads that only take locks give them to each other. */
static uint64_t progress_of(const struct turn_segment *segment)
{
	return segment->calls + segment->now / (TURN_SECOND / 1000);
}

static void look_at_progress(struct run *run)
{
	const struct turn_segment *segment = run->system->segment;
	const uint32_t owner = segment->owner;
	const uint64_t now = real_ns();

	if (progress_of(segment) != run->progress) {
		run->progress = progress_of(segment);
		run->since = run->looked = now;
		run->pause = 0;
		run->busy.at = 0;
		run->is_reported = false;
	}
	if (now - run->looked > run->pause)
		run->pause = now - run->looked;
	run->looked = now;
	if (run->is_reported || owner >= TURN_MAX_THREADS)
		return;
	if (!run->busy.at)
		system_look_at_busy(run->system, owner, now, &run->busy);
	if (now - run->since < PATIENCE * TURN_SECOND)
		return;
	run->is_reported = true;
	system_tell_busy(run->system, owner, PATIENCE, &run->busy, now, run->pause);
}

/* Did the member die that has the turn?  Others that died are reported when they would have it. */
static bool look_at_deaths(struct run *run)
{
	struct turn_segment *segment = run->system->segment;
	const uint32_t owner = segment->owner;
	const struct turn_member *member;

	for (uint32_t i = 0; i < segment->num_members && i < TURN_MAX_MEMBERS; i++) {
		member = &segment->members[i];
		if (!turn_is_alive(member) || !member->pid || !system_has_ended(member->pid, false))
			continue;
		/* It gave the turn to the launcher before it ended: that is no surprise. */
		if (atomic_load(&segment->launcher_go))
			return false;
		if (owner < TURN_MAX_THREADS && segment->threads[owner].member == i &&
		    segment->owner == owner)
			return true;
		/* Whom the turn's owner kills is buried when it has given up the turn. */
		if (!(segment->victims >> i & 1))
			atomic_store(&segment->wanted, 1);
	}
	return false;
}

static void on_signal(int signal)
{
	if (signal != SIGCHLD)
		stopped = signal;
}

bool system_is_stopped(void)
{
	return stopped;
}

void system_catch_signals(void)
{
	static const int signals[] = { SIGCHLD, SIGTERM, SIGINT, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (signals[i] == SIGHUP && tool_outlives_terminal())
			continue;
		/* stdio loses what is not written when a call is interrupted. */
		action.sa_flags = signals[i] == SIGCHLD ? SA_RESTART : 0;
		sigaction(signals[i], &action, NULL);
	}
}

static void break_run(struct run *run)
{
	struct turn_segment *segment = run->system->segment;

	tool_error("error: a program has written into the memory by which polycm runs it");
	run->is_broken = true;
	/* Nothing of it is used any more. */
	segment->num_members = segment->num_threads = segment->num_preempted = 0;
	segment->owner = TURN_NOBODY;
	segment->becoming = segment->ended = 0;
	atomic_store(&segment->traced, TURN_NOT_TRACED);
	segment->victims = segment->stopping = segment->continuing = 0;
	segment->leaves_traces = true;
}

static void check_segment(struct run *run)
{
	if (!system_is_sound(run->system->segment))
		break_run(run);
}

/* Or until it is time for a look, or a signal is there. */
static void sleep_for_turn(struct run *run)
{
	struct turn_segment *segment = run->system->segment;
	const struct timespec pause = { .tv_nsec = ASK_NS };

	for (int i = 0; i < LOOK_NS / ASK_NS; i++) {
		if (!syscall(SYS_futex, &segment->launcher_go, FUTEX_WAIT, 0, &pause, NULL, 0) ||
		    errno != ETIMEDOUT)
			return;
		system_ask(run->system, &run->asks, real_ns());
	}
}

/* Or until a signal wants the end. */
static void await_turn(struct run *run)
{
	struct turn_segment *segment = run->system->segment;

	while (!atomic_exchange(&segment->launcher_go, 0)) {
		sleep_for_turn(run);
		system_output_copy(run->system);
		if (atomic_load(&segment->launcher_go))
			continue;
		if (system_output_is_closed() && !stopped)
			stopped = SIGPIPE;
		check_segment(run);
		if (stopped || run->is_broken || look_at_deaths(run))
			return;
		look_at_progress(run);
	}
	system_output_copy(run->system);
	check_segment(run);
}

static void give(struct turn_segment *segment, uint32_t next)
{
	atomic_store(&segment->threads[next].go, 1);
	syscall(SYS_futex, &segment->threads[next].go, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* ------------------------------------------------------------------------
 * The end of all.
 */

static void kill_children(void)
{
	FILE *file = fopen("/proc/thread-self/children", "re");
	int pid;

	while (file && fscanf(file, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	if (file)
		fclose(file);
}

static void kill_all(void)
{
	if (system_again_is_possible()) {
		system_again_end_all();
		return;
	}
	/* In a namespace of their own all that there are, known or not. */
	if (getpid() == 1)
		kill(-1, SIGKILL);
	/* Else children, and their children when those have ended: they come to who reaps for all. */
	do
		kill_children();
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
}

static bool is_verbose(const struct system *system)
{
	const char *level = system_value(system, RUN_LOG);

	return level && strcmp(level, "error") != 0 && strcmp(level, "warn") != 0;
}

/* For whoever compares two runs. */
static void print_summary(const struct system *system)
{
	const struct turn_segment *segment = system->segment;

	if (is_verbose(system))
		tool_error("run: virtual time %.6f s, %llu turns, %llu calls, order %016llx",
			   (double)(segment->now - TURN_BEGIN) / 1e9,
			   (unsigned long long)segment->turns, (unsigned long long)segment->calls,
			   (unsigned long long)segment->hash);
}

/* It may have been meant for another run. */
static void report_kill(const struct system *system)
{
	const unsigned long long at = system->kill_at, turns = system->segment->turns;

	if (!system->killed || system->has_killed)
		return;
	if (turns <= at)
		tool_error("run: --kill %s@%llu: there were only %llu turns, and nobody was killed",
			   system->killed, at, turns);
	else
		tool_error("run: --kill %s@%llu: it had ended before, and nobody was killed",
			   system->killed, at);
}

/* The status, or that of what could not be written to its end. */
static int end_output(const struct system *system, int status)
{
	if (!system_output_is_lost())
		return status;
	tool_error("cannot write the output: %m");
	/* Of a second run nothing is shown, so it would end otherwise. */
	if (system->course)
		system->course->is_whole = false;
	return status && status != 128 + SIGPIPE ? status : STATUS_CUT;
}

/* A member gave up the turn to call exec; true: the launcher has given it on. */
static bool let_exec(struct system *system)
{
	struct turn_segment *segment = system->segment;
	enum system_traced result = SYSTEM_NEEDS_TURN;

	if (atomic_load(&segment->traced) == TURN_ASKS)
		result = system_trace(system);
	else if (!segment->becoming || system_let_out(system))
		return false;
	if (result == SYSTEM_NEEDS_TURN)
		give(segment, segment->owner);
	return result != SYSTEM_HAS_ENDED;
}

int system_run(struct system *system)
{
	struct turn_segment *segment = system->segment;
	struct run run = { .system = system, .since = real_ns() };
	int status = 0;
	bool is_reported = false, is_cut = false;
	uint32_t next;

	if (is_verbose(system)) {
		system_tell_counter();
		system_tell_nodes(system);
	}
	while (any_alive(system)) {
		if (system_is_over(system) && !is_reported) {
			end_daemons(system);
			is_reported = true;
		}
		next = system_next(system);
		if (segment->stopped) {
			system_kill_node(system);
			continue;
		}
		if (next == TURN_NOBODY && segment->outside && !stopped &&
		    system_await_outside(system)) {
			system_bury_dead(system);
			system_output_copy(system);
			continue;
		}
		if (next == TURN_NOBODY && !stopped && !system_bury_dead(system) &&
		    !system_find_continued(system)) {
			if (system_is_over(system)) {
				report_daemons(system);
			} else {
				system_report_waits(system);
				status = STATUS_STUCK;
			}
			break;
		}
		if (next != TURN_NOBODY) {
			give(segment, next);
			await_turn(&run);
			while (!stopped && let_exec(system))
				await_turn(&run);
		}
		if (!stopped && !run.is_broken && !system_bury_awaited(system))
			break_run(&run);
		if (!stopped && !run.is_broken)
			system_await_stops(system);
		if (stopped || run.is_broken) {
			is_cut = true;
			status = stopped ? 128 + stopped : EXIT_FAILURE;
			break;
		}
		if (segment->stopped)
			system_kill_node(system);
		system_bury_dead(system);
	}
	kill_all();
	system_output_end(system);
	print_summary(system);
	report_kill(system);
	if (system->course)
		system->course->is_whole = !is_cut;
	status = end_output(system, status ? status : system_status(system));
	return system_preempt_record(system) ? STATUS_CUT : status;
}
