/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explore_run.c - programs that polycm explore starts: each in a process group
 * of its own, with a time limit, and with nothing left of it when it has ended.
 * The launcher of several programs may stay, and make one run after the other.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "explore.h"
#include "system.h"

#define MOST_TIMEOUTS 10u	/* of real time, if the system got little of the processor's */
#define TRACE_VARIABLE "POLYCM_SIM_TRACE"

/* A program that runs. */
struct place {
	struct place *next;
	struct explore_run *run;
	pid_t pid;
	unsigned int number;		/* of all that are there it alone has it */
	int launcher;			/* socket to one that may stay; -1: to none */
	bool stays;
	uint64_t deadline;
	unsigned int more;		/* how often it got more time */
	bool late;
	char does[300];			/* when it was */
};

static struct place *places, *idle;	/* idle: launchers */
static unsigned int num_running;
static sigset_t awaited, before;
static bool interrupted;
static bool any_killed;		/* it could not remove what it made */

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
	sigaddset(&awaited, SIGIO);	/* a launcher tells */
	sigaddset(&awaited, SIGINT);
	sigaddset(&awaited, SIGTERM);
	if (!tool_outlives_terminal())
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

/* What differs from run to run; NULL: that variable is not set. */
static void set_variables(const struct explore *explore, const struct explore_run *run,
			  void (*set)(const char *name, const char *value, void *arg), void *arg)
{
	char *seed = tool_printf("%llu", (unsigned long long)run->seed);

	set("POLYCM_SIM_SEED", seed, arg);
	set("POLYCM_SIM_SCENARIO", run->scenario, arg);
	set("POLYCM_SIM_EXPLORE", run->decide ? run->record : NULL, arg);
	free(seed);
	if (!explore->is_system)
		return;
	/* What the launcher is to write down, and whether the seed holds threads up. */
	set(SYSTEM_RECORD_VARIABLE, run->record, arg);
	set(SYSTEM_POINTS_VARIABLE, run->decide ? explore->points : NULL, arg);
}

static void set_or_unset(const char *name, const char *value, void *arg)
{
	(void)arg;
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

struct request {
	char *text;
	size_t len;
};

static void add_to_request(const char *name, const char *value, void *arg)
{
	struct request *request = arg;
	char *line = value ? tool_printf("%s=%s", name, value) : tool_strdup(name);
	size_t len = strlen(line) + 1;

	request->text = tool_realloc(request->text, request->len + len, 1);
	memcpy(request->text + request->len, line, len);
	request->len += len;
	free(line);
}

/* ------------------------------------------------------------------------
 * Its start.
 */

bool explore_has_input(const struct explore *explore)
{
	struct stat st;

	return explore->is_system && !fstat(STDIN_FILENO, &st) && S_ISREG(st.st_mode);
}

/* Each run reads it from the same place on. */
static int open_input(const struct explore *explore)
{
	int fd = explore_has_input(explore) ? open("/proc/self/fd/0", O_RDONLY) : -1;

	if (fd < 0)
		return open("/dev/null", O_RDONLY);
	lseek(fd, lseek(STDIN_FILENO, 0, SEEK_CUR), SEEK_SET);
	return fd;
}

/* In the child; the exit status says what failed.  socket: of a launcher that stays, or -1. */
static _Noreturn void become(const struct explore *explore, const struct place *place, int socket)
{
	int in = open_input(explore);
	int out = open(place->run->output, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	setpgid(0, 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
		_exit(STATUS_CANNOT_EXECUTE);
	close(in);
	close(out);
	set_variables(explore, place->run, set_or_unset, NULL);
	if (explore->is_system && explore->has_own_files)
		setenv(SYSTEM_FILES_VARIABLE, explore->work, 1);
	if (place->run->trace)
		setenv(TRACE_VARIABLE, place->run->trace, 1);
	setenv("POLYCM_SIM_CLOCK", "virtual", 1);
	setenv("POLYCM_LOG", "warn", 0);	/* why it failed is in what is kept of it */
	if (socket >= 0)
		explore_launcher_become(socket, place->number);
	execvp(explore->command[0], explore->command);
	_exit(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXECUTE);
}

/* The first that no other place has. */
static unsigned int free_number(void)
{
	unsigned int number = 0;
	bool is_free;

	do {
		is_free = true;
		for (struct place *place = places; place; place = place->next)
			is_free = is_free && place->number != number;
		for (struct place *place = idle; place; place = place->next)
			is_free = is_free && place->number != number;
		number += !is_free;
	} while (!is_free);
	return number;
}

/* What is of the whole run, its launcher puts together at its end. */
static bool may_stay(const struct explore *explore, const struct explore_run *run)
{
	return explore->is_system && !run->trace && !getenv(TRACE_VARIABLE) &&
	       !getenv("POLYCM_SIM_PCAP");
}

static void start_process(const struct explore *explore, struct place *place)
{
	int sockets[2] = { -1, -1 };

	if (may_stay(explore, place->run))
		explore_launcher_sockets(sockets);
	place->launcher = sockets[0];
	place->number = free_number();
	fflush(NULL);
	place->pid = fork();
	if (!place->pid)
		become(explore, place, sockets[1]);
	if (place->pid < 0)
		place->run->result = (struct explore_result){ .end = NOT_STARTED, .number = errno };
	else
		setpgid(place->pid, place->pid);
	if (sockets[1] >= 0)
		close(sockets[1]);
}

static void end(struct place *place)
{
	if (place->launcher >= 0)
		close(place->launcher);
	if (place->pid > 0) {
		kill(-place->pid, SIGKILL);
		waitpid(place->pid, NULL, 0);
		any_killed = true;
	}
	free(place);
}

/* The place of a launcher that stayed, and has begun with the run; NULL: there is none. */
static struct place *ask(const struct explore *explore, const struct explore_run *run)
{
	struct request request = { .len = 0 };
	struct place *place;

	if (!idle || !may_stay(explore, run))
		return NULL;
	set_variables(explore, run, add_to_request, &request);
	while ((place = idle)) {
		idle = place->next;
		if (!explore_launcher_ask(place->launcher, request.text, request.len, run->output))
			break;
		end(place);
	}
	free(request.text);
	return place;
}

void explore_start(const struct explore *explore, struct explore_run *run)
{
	struct place *place;

	if (truncate(run->record, 0) < 0 && errno != ENOENT)
		unlink(run->record);
	place = ask(explore, run);
	if (place) {
		place->run = run;
	} else {
		place = tool_realloc(NULL, 1, sizeof(*place));
		*place = (struct place){ .run = run };
		start_process(explore, place);
	}
	place->deadline = explore_now() + explore->timeout_ns;
	place->more = 0;
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

/* A launcher that stays has made its run. */
static bool tells_end(struct place *place)
{
	int status;

	place->stays = place->launcher >= 0 && !place->late &&
		       explore_launcher_told(place->launcher, &status);
	if (place->stays)
		place->run->result = (struct explore_result){
			.end = status ? ENDED_BADLY : ENDED_WELL, .number = status,
		};
	return place->stays;
}

/* Its children end with it.  Before it is reaped, its group's number cannot be reused. */
static bool has_ended(struct place *place)
{
	siginfo_t info = { 0 };

	if (place->pid < 0)
		return true;
	if (tells_end(place))
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
		if (place->stays) {
			place->next = idle;
			idle = place;
			return run;
		}
		place->pid = -1;	/* reaped */
		end(place);
		return run;
	}
	return NULL;
}

/*
 * A system hands its turn on hundreds of times, and where others want the processor each time may
 * take as long as they are let run: such a system is slow, and not without end.
 */
static bool deserves_more(const struct explore *explore, struct place *place)
{
	const uint64_t used = explore_describe_group(place->pid, explore->is_system, place->does,
						     sizeof(place->does));

	if (!explore->is_system || used >= explore->timeout_ns / 2 ||
	    explore_is_blocked(place->does) || place->more == MOST_TIMEOUTS - 1)
		return false;
	place->more++;
	place->deadline += explore->timeout_ns;
	return true;
}

static void end_late(struct place *place)
{
	place->late = true;
	kill(-place->pid, SIGKILL);
	any_killed = true;
}

/* Ends those whose time is over; the earliest deadline of the others. */
static uint64_t enforce_time(const struct explore *explore)
{
	uint64_t next = UINT64_MAX, time = explore_now();

	for (struct place *place = places; place; place = place->next) {
		if (place->late)
			continue;
		if (place->deadline <= time && !deserves_more(explore, place))
			end_late(place);
		else if (place->deadline < next)
			next = place->deadline;
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
		interrupted = signal > 0 && signal != SIGCHLD && signal != SIGIO;
	}
	return NULL;
}

struct explore_run *explore_stop(void)
{
	struct place *place = places;
	struct explore_run *run;

	if (!place)
		return NULL;
	places = place->next;
	num_running--;
	run = place->run;
	end(place);
	return run;
}

void explore_runs_end(void)
{
	struct place *place;

	while ((place = idle)) {
		idle = place->next;
		/* It ends by itself, and leaves nothing behind. */
		close(place->launcher);
		place->launcher = -1;
		waitpid(place->pid, NULL, 0);
		place->pid = -1;
		end(place);
	}
	if (any_killed)
		system_folder_sweep();
}

bool explore_run(const struct explore *explore, struct explore_run *run)
{
	explore_start(explore, run);
	if (explore_wait(explore))
		return true;
	explore_stop();
	return false;
}
