/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explore_run.c - programs that polycm explore starts: each in a process group
 * of its own, with a time limit, and with nothing left of it when it has ended.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "explore.h"
#include "system.h"

/* A program that runs. */
struct place {
	struct place *next;
	struct explore_run *run;
	pid_t pid;
	uint64_t deadline;
	bool late;
	char does[300];			/* when it was */
};

static struct place *places;
static unsigned int num_running;
static sigset_t awaited, before;
static bool interrupted;

uint64_t explore_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * EXPLORE_SECOND + (uint64_t)ts.tv_nsec;
}

void explore_runs_begin(void)
{
	sigemptyset(&awaited);
	sigaddset(&awaited, SIGCHLD);
	sigaddset(&awaited, SIGINT);
	sigaddset(&awaited, SIGTERM);
	sigaddset(&awaited, SIGHUP);
	sigprocmask(SIG_BLOCK, &awaited, &before);
}

bool explore_has_place(const struct explore *explore)
{
	return num_running < explore->jobs;
}

bool explore_interrupted(void)
{
	return interrupted;
}

/* ------------------------------------------------------------------------
 * The program.
 */

static void set_or_unset(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

/* What the launcher of several programs is to write down, and whether the seed holds threads up. */
static void set_preemption(const struct explore *explore, const struct explore_run *run)
{
	setenv(SYSTEM_RECORD_VARIABLE, run->record, 1);
	set_or_unset(SYSTEM_POINTS_VARIABLE, run->decide ? explore->points : NULL);
}

static void set_environment(const struct explore *explore, const struct explore_run *run)
{
	char *seed = tool_printf("%llu", (unsigned long long)run->seed);

	setenv("POLYCM_SIM_SEED", seed, 1);
	setenv("POLYCM_SIM_CLOCK", "virtual", 1);
	setenv("POLYCM_LOG", "warn", 0);	/* why it failed is in what is kept of it */
	set_or_unset("POLYCM_SIM_SCENARIO", run->scenario);
	if (run->trace)
		setenv("POLYCM_SIM_TRACE", run->trace, 1);
	set_or_unset("POLYCM_SIM_EXPLORE", run->decide ? run->record : NULL);
	if (explore->is_system)
		set_preemption(explore, run);
}

/* In the child; the exit status says what failed. */
static _Noreturn void become(const struct explore *explore, const struct explore_run *run)
{
	int in = open("/dev/null", O_RDONLY);
	int out = open(run->output, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	setpgid(0, 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
		_exit(STATUS_CANNOT_EXECUTE);
	close(in);
	close(out);
	set_environment(explore, run);
	execvp(explore->command[0], explore->command);
	_exit(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXECUTE);
}

void explore_start(const struct explore *explore, struct explore_run *run)
{
	struct place *place = tool_realloc(NULL, 1, sizeof(*place));

	unlink(run->record);
	fflush(NULL);
	*place = (struct place){ .run = run, .deadline = explore_now() + explore->timeout_ns };
	place->pid = fork();
	if (!place->pid)
		become(explore, run);
	if (place->pid < 0)
		run->result = (struct explore_result){ .end = NOT_STARTED, .number = errno };
	else
		setpgid(place->pid, place->pid);
	place->next = places;
	places = place;
	num_running++;
}

/* ------------------------------------------------------------------------
 * Its end.
 */

static struct explore_result result_of(const struct place *place, const siginfo_t *info)
{
	struct explore_result result = { .end = ENDED_BY_TIME };

	if (place->late) {
		memcpy(result.wait, place->does, sizeof(place->does));
	} else {
		result.end = info->si_code != CLD_EXITED ? ENDED_BY_SIGNAL :
			     info->si_status ? ENDED_BADLY : ENDED_WELL;
		result.number = info->si_status;
	}
	return result;
}

/* Its children end with it.  Before it is reaped, its group's number cannot be reused. */
static bool has_ended(struct place *place)
{
	siginfo_t info = { 0 };

	if (place->pid < 0)
		return true;
	if (waitid(P_PID, (id_t)place->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
		return false;
	kill(-place->pid, SIGKILL);
	waitpid(place->pid, NULL, 0);
	place->run->result = result_of(place, &info);
	return true;
}

static struct explore_run *take_ended(void)
{
	struct explore_run *run;
	struct place *place;

	for (struct place **at = &places; (place = *at); at = &place->next) {
		if (!has_ended(place))
			continue;
		run = place->run;
		*at = place->next;
		num_running--;
		free(place);
		return run;
	}
	return NULL;
}

/* Ends those whose time is over; the earliest deadline of the others. */
static uint64_t enforce_time(const struct explore *explore)
{
	uint64_t next = UINT64_MAX, time = explore_now();

	for (struct place *place = places; place; place = place->next) {
		if (place->late)
			continue;
		if (place->deadline <= time) {
			place->late = true;
			explore_describe_group(place->pid, explore->is_system, place->does,
					       sizeof(place->does));
			kill(-place->pid, SIGKILL);
		} else if (place->deadline < next) {
			next = place->deadline;
		}
	}
	return next;
}

struct explore_run *explore_wait(const struct explore *explore)
{
	struct explore_run *run;
	struct timespec left;
	uint64_t next, time;
	int signal;

	while (places && !interrupted) {
		run = take_ended();
		if (run) {
			explore_classify(explore, run);
			return run;
		}
		next = enforce_time(explore);
		time = explore_now();
		next = next == UINT64_MAX ? EXPLORE_SECOND : next > time ? next - time : 0;
		left.tv_sec = (time_t)(next / EXPLORE_SECOND);
		left.tv_nsec = (long)(next % EXPLORE_SECOND);
		signal = sigtimedwait(&awaited, NULL, &left);
		interrupted = signal > 0 && signal != SIGCHLD;
	}
	return NULL;
}

struct explore_run *explore_stop(void)
{
	struct place *place = places;
	struct explore_run *run;

	if (!place)
		return NULL;
	if (place->pid > 0) {
		kill(-place->pid, SIGKILL);
		waitpid(place->pid, NULL, 0);
	}
	places = place->next;
	num_running--;
	run = place->run;
	free(place);
	return run;
}

bool explore_run(const struct explore *explore, struct explore_run *run)
{
	explore_start(explore, run);
	if (explore_wait(explore))
		return true;
	explore_stop();
	return false;
}
