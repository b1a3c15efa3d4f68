/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_turns.c - the launcher's part of a system: it gives the first turn, reaps members that
 * end, takes the turn from those that died with it, and says who waits for what when nobody can
 * go on.
 */
#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
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
#define PATIENCE 10		/* s without a call: the member computes, or waits for who is outside */

#define GRACE (10ull * TURN_SECOND)	/* for daemons, between SIGTERM and SIGKILL */

static volatile sig_atomic_t stopped;	/* a signal for the launcher */

struct run {
	struct system *system;
	uint64_t progress;	/* turns and calls, when they grew last */
	struct timespec since;
	bool is_reported;
	bool is_broken;		/* a member has written where it must not */
};

/* ------------------------------------------------------------------------
 * Ends.
 */

bool system_has_ended(pid_t pid, bool wait)
{
	siginfo_t info = { .si_pid = 0 };
	struct pollfd end = { .events = POLLIN };
	int result;

	/* Ends of others interrupt it. */
	do
		result = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | (wait ? 0 : WNOHANG));
	while (result && errno == EINTR && !stopped);
	if (!result)
		return info.si_pid == pid;
	/* Another member's child. */
	end.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (end.fd < 0)
		return errno == ESRCH;
	do
		result = poll(&end, 1, wait ? -1 : 0);
	while (result < 0 && errno == EINTR && !stopped);
	close(end.fd);
	return result == 1;
}

static void report_end(struct system *system, uint32_t member, int status)
{
	/* The number of one that has ended may be another's by now. */
	for (size_t i = 0; i < system->num; i++)
		if (system->programs[i].member == member && !system->programs[i].has_ended)
			system_ended(system, &system->programs[i], status);
}

/* It has ended; the launcher has the turn. */
static void bury(struct system *system, uint32_t number)
{
	struct turn_segment *segment = system->segment;
	struct turn_member *member = &segment->members[number];
	int status;

	if (member->life == TURN_OUTSIDE)
		system_end_outside(segment);
	turn_order_remove_member(segment, number);
	member->life = TURN_ENDED;
	if (waitpid(member->pid, &status, WNOHANG) == member->pid)
		report_end(system, number, status);
	segment->changes++;
	if (member->parent != TURN_NOBODY)
		turn_order_interrupt(segment, member->parent);
	/* Locks in memory that it shared may have gone with it. */
	turn_order_interrupt_words(segment);
}

/* Whom the turn's owner has killed, or who gave the turn up by ending: at once with that. */
static void bury_awaited(struct system *system)
{
	struct turn_segment *segment = system->segment;
	uint64_t members = segment->victims;

	if (segment->ended)
		members |= UINT64_C(1) << (segment->ended - 1);
	segment->victims = 0;
	segment->ended = 0;
	for (uint32_t i = 0; i < segment->num_members; i++) {
		if (!(members >> i & 1))
			continue;
		system_has_ended(segment->members[i].pid, true);
		bury(system, i);
	}
}

/* Those that were killed. */
static bool bury_dead(struct system *system)
{
	bool found = false;

	for (uint32_t i = 0; i < system->segment->num_members; i++) {
		const struct turn_member *member = &system->segment->members[i];

		if (turn_is_alive(member) && member->pid && system_has_ended(member->pid, false)) {
			bury(system, i);
			found = true;
		}
	}
	return found;
}

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

/* What --kill asked for. */
static void kill_node(struct system *system)
{
	system->segment->stopped = false;
	for (size_t i = 0; i < system->num; i++) {
		const struct system_program *program = &system->programs[i];

		if (program->has_ended || !system_is_named(program, system->killed))
			continue;
		kill(program->pid, SIGKILL);
		system_has_ended(program->pid, true);
		bury(system, program->member);
	}
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

static void look_at_progress(struct run *run)
{
	const struct turn_segment *segment = run->system->segment;
	const uint32_t owner = segment->owner;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (segment->calls + segment->turns != run->progress) {
		run->progress = segment->calls + segment->turns;
		run->since = now;
		run->is_reported = false;
	}
	if (run->is_reported || now.tv_sec - run->since.tv_sec < PATIENCE || owner >= TURN_MAX_THREADS)
		return;
	run->is_reported = true;
	system_tell_busy(run->system, owner, PATIENCE);
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
		if (owner < TURN_MAX_THREADS && segment->threads[owner].member == i &&
		    segment->owner == owner)
			return true;
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

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

/*
 * Members write the segment, and a program that is wrong may write anywhere: its numbers are places
 * of the launcher's memory, and processes that it ends.
 */
static bool is_sound(const struct turn_segment *segment)
{
	const uint32_t num_members = segment->num_members, num_threads = segment->num_threads;

	if (num_members > TURN_MAX_MEMBERS || num_threads > TURN_MAX_THREADS ||
	    (segment->owner != TURN_NOBODY && segment->owner >= num_threads) ||
	    segment->becoming > num_members || segment->becoming_thread >= TURN_MAX_THREADS ||
	    segment->ended > num_members ||
	    (num_members < 64 && segment->victims >> num_members) ||
	    segment->num_preempted > TURN_MAX_PREEMPTIONS)
		return false;
	for (uint32_t i = 0; i < num_members; i++)
		if (segment->members[i].life > TURN_ENDED ||
		    segment->members[i].pid < 0 || segment->members[i].pid == 1 ||
		    (segment->members[i].parent != TURN_NOBODY &&
		     segment->members[i].parent >= num_members))
			return false;
	for (uint32_t i = 0; i < num_threads; i++)
		if (segment->threads[i].state != TURN_FREE &&
		    segment->threads[i].member >= num_members)
			return false;
	return true;
}

static void check_segment(struct run *run)
{
	struct turn_segment *segment = run->system->segment;

	if (is_sound(segment))
		return;
	tool_error("error: a program has written into the memory by which polycm runs it");
	run->is_broken = true;
	/* Nothing of it is used any more. */
	segment->num_members = segment->num_threads = segment->num_preempted = 0;
	segment->owner = TURN_NOBODY;
	segment->becoming = segment->ended = 0;
	segment->victims = 0;
	segment->leaves_traces = true;
}

/* Or until a signal wants the end. */
static void await_turn(struct run *run)
{
	struct turn_segment *segment = run->system->segment;
	const struct timespec look = { .tv_nsec = LOOK_NS };

	while (!atomic_exchange(&segment->launcher_go, 0)) {
		syscall(SYS_futex, &segment->launcher_go, FUTEX_WAIT, 0, &look, NULL, 0);
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

/* To be freed. */
static char *wait_of(const struct turn_thread *thread)
{
	const unsigned long long first = thread->arguments[0];

	switch (thread->call) {
	case SYS_futex:
		return tool_printf("a lock, a condition or a thread, at 0x%llx", first);
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return tool_strdup("one of several descriptors");
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
		return tool_printf("data on descriptor %llu", first);
	case SYS_accept:
	case SYS_accept4:
		return tool_printf("a connection on descriptor %llu", first);
	case SYS_wait4:
	case SYS_waitid:
		return tool_strdup("a child");
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
		return tool_strdup("a time that is beyond the limit");
	case SYS_rt_sigsuspend:
	case SYS_rt_sigtimedwait:
	case SYS_pause:
		return tool_strdup("a signal");
	case SYS_sched_yield:
	case SYS_clock_gettime:
		return tool_strdup("what it polls for");
	}
	return tool_printf("the system call %u", thread->call);
}

/* Of polycm itself: they wait for what the others cause. */
static bool is_own(const struct system *system, const struct turn_thread *thread)
{
	char *path = tool_printf("/proc/%d/task/%d/comm", system->segment->members[thread->member].pid,
				 thread->tid), name[16] = "";
	FILE *file = fopen(path, "re");
	bool own = file && fgets(name, sizeof(name), file) && !strncmp(name, "polycm-", 7);

	if (file)
		fclose(file);
	free(path);
	return own;
}

/* Somebody would go on, but later than anybody may. */
static bool reached_limit(const struct turn_segment *segment)
{
	for (uint32_t i = 0; i < segment->num_threads; i++)
		if (segment->threads[i].state != TURN_GONE && segment->threads[i].state != TURN_FREE &&
		    segment->threads[i].deadline != TURN_NEVER)
			return true;
	return false;
}

/* The words are those of a wait without end in one process, which polycm explore knows. */
static void report_waits(const struct system *system)
{
	const struct turn_segment *segment = system->segment;

	tool_error("run: %s, at %.6f s", reached_limit(segment) ?
		   "the limit of virtual time (--until) is reached" : "nobody can go on",
		   (double)(segment->now - TURN_BEGIN) / 1e9);
	system_report_unserved(system);
	for (uint32_t i = 0; i < segment->num_threads; i++) {
		const struct turn_thread *thread = &segment->threads[i];
		const struct system_program *program = system_program_of(system, thread->member);
		char *what;

		/* One that has not begun waits for none of its own doing. */
		if (program && program->is_pending)
			continue;
		if (thread->state == TURN_GONE || thread->state == TURN_FREE || !program ||
		    is_own(system, thread))
			continue;
		what = wait_of(thread);
		tool_error("error: %s: %s, thread %d, waits for what can never happen: %s",
			   system_name(program), program->command[0], thread->tid, what);
		free(what);
	}
}

static void kill_children(void)
{
	FILE *file = fopen("/proc/thread-self/children", "re");
	int pid;

	while (file && fscanf(file, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	if (file)
		fclose(file);
}

static void kill_all(struct system *system)
{
	if (system_again_is_possible()) {
		system_again_end_all();
		return;
	}
	/* In a namespace of their own all that there are, known or not. */
	if (getpid() == 1)
		kill(-1, SIGKILL);
	for (uint32_t i = 0; getpid() != 1 && i < TURN_MAX_MEMBERS; i++)
		if (turn_is_alive(&system->segment->members[i]) &&
		    system->segment->members[i].pid > 1)
			kill(system->segment->members[i].pid, SIGKILL);
	/* And what members outside have left behind, which comes to who reaps for all. */
	do
		kill_children();
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
}

/* For whoever compares two runs. */
static void print_summary(const struct system *system)
{
	const struct turn_segment *segment = system->segment;
	const char *level = system_value(system, RUN_LOG);

	if (level && strcmp(level, "error") != 0 && strcmp(level, "warn") != 0)
		tool_error("run: virtual time %.6f s, %llu turns, %llu calls, order %016llx",
			   (double)(segment->now - TURN_BEGIN) / 1e9,
			   (unsigned long long)segment->turns, (unsigned long long)segment->calls,
			   (unsigned long long)segment->hash);
}

int system_run(struct system *system)
{
	struct turn_segment *segment = system->segment;
	struct run run = { .system = system };
	int status = 0;
	bool is_reported = false;
	uint32_t next;

	clock_gettime(CLOCK_MONOTONIC, &run.since);
	while (any_alive(system)) {
		if (system_is_over(system) && !is_reported) {
			end_daemons(system);
			is_reported = true;
		}
		next = system_next(system);
		if (segment->stopped) {
			kill_node(system);
			continue;
		}
		if (next == TURN_NOBODY && segment->outside && !stopped &&
		    system_await_outside(system)) {
			bury_dead(system);
			system_output_copy(system);
			continue;
		}
		if (next == TURN_NOBODY && !stopped && !bury_dead(system)) {
			if (system_is_over(system)) {
				report_daemons(system);
			} else {
				report_waits(system);
				status = STATUS_STUCK;
			}
			break;
		}
		if (next != TURN_NOBODY) {
			give(segment, next);
			await_turn(&run);
			while (segment->becoming && !stopped && !system_let_out(system)) {
				give(segment, segment->owner);
				await_turn(&run);
			}
		}
		if (stopped || run.is_broken) {
			status = stopped ? 128 + stopped : EXIT_FAILURE;
			break;
		}
		if (segment->stopped)
			kill_node(system);
		bury_awaited(system);
		bury_dead(system);
	}
	kill_all(system);
	system_output_end(system);
	print_summary(system);
	status = status ? status : system_status(system);
	return system_preempt_record(system) ? STATUS_CUT : status;
}
