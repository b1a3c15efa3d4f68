/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_again.c - the same programs again and again, for polycm explore, each time with another
 * seed.  Each program is loaded once (turn/again.c) and forks a process for each run: exec and
 * dynamic linking take longer than most runs.  Process ids, which the kernel is told where to go on
 * with, and all else that members see are those of a run of its own.
 */
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"
#include "system.h"

#define BIND_VARIABLE "LD_BIND_NOW"
#define LAST_PID "/proc/sys/kernel/ns_last_pid"
#define OWN_PID "1"
#define LOADED_PID "30000"	/* behind it the programs that are loaded, out of the way of members */
#define LOOK_NS 50000000	/* real time between two looks whether one has died */

static int asker = -1;		/* socket to polycm explore */
static int last_pid = -1;
static bool is_usable, binds_now;
static pid_t loaded[TURN_MAX_MEMBERS];

/* What differs from run to run, and what only a program that is loaded has. */
static const char *variable_of(size_t i)
{
	static const size_t options[] = { RUN_SEED, RUN_SCENARIO };
	static const char *const others[] = { RUN_EXPLORE_VARIABLE, BIND_VARIABLE, NULL };
	const size_t num = sizeof(options) / sizeof(options[0]);

	return i < num ? run_options[options[i]].variable : others[i - num];
}

void system_again_begin(void)
{
	const char *number = getenv(SYSTEM_AGAIN_VARIABLE);

	if (!number)
		return;
	asker = atoi(number);
	fcntl(asker, F_SETFD, FD_CLOEXEC);
	unsetenv(SYSTEM_AGAIN_VARIABLE);
}

/* The next process gets the number behind it. */
static bool set_last_pid(const char *number)
{
	return pwrite(last_pid, number, strlen(number), 0) == (ssize_t)strlen(number);
}

/* Only where nothing of one run is left for the next: in namespaces of its own. */
static bool find_out(void)
{
	char self[8] = "";
	int *tid;

	if (asker < 0 || getpid() != 1 || readlink("/proc/self", self, sizeof(self) - 1) < 0 ||
	    strcmp(self, OWN_PID) != 0 || prctl(PR_GET_TID_ADDRESS, &tid))
		return false;
	last_pid = open(LAST_PID, O_WRONLY | O_CLOEXEC);
	return last_pid >= 0 && set_last_pid(LOADED_PID);
}

void system_again_find_out(const struct system *system)
{
	is_usable = find_out() && system_folder_keep(system);
}

bool system_again_is_possible(void)
{
	return is_usable;
}

/* ------------------------------------------------------------------------
 * Programs that are loaded.
 */

void system_again_set_environment(void)
{
	if (!is_usable)
		return;
	for (size_t i = 0; variable_of(i); i++)
		setenv(variable_of(i), "", 0);
	/* All functions are looked up once, not in each run. */
	if (binds_now)
		setenv(BIND_VARIABLE, "1", 1);
}

static int write_environment(struct turn_segment *segment)
{
	size_t at = 0;

	for (size_t i = 0; variable_of(i); i++) {
		const char *value = getenv(variable_of(i));

		at += (size_t)snprintf(segment->environment + at, TURN_MAX_ENVIRONMENT - at, "%s%s%s",
				       variable_of(i), value ? "=" : "", value ? value : "") + 1;
		if (at >= TURN_MAX_ENVIRONMENT)
			return -E2BIG;
	}
	segment->environment[at] = '\0';
	return 0;
}

/* Until it waits for the launcher; false: it has ended, or all is to end. */
static bool await(struct turn_program *program, pid_t pid)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };
	uint32_t load;

	while ((load = atomic_load(&program->load)) != TURN_LOADED) {
		siginfo_t info = { .si_pid = 0 };

		if (system_is_stopped() ||
		    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | WNOHANG) || info.si_pid)
			return false;
		syscall(SYS_futex, &program->load, FUTEX_WAIT, load, &look, NULL, 0);
	}
	return true;
}

static pid_t load(struct system *system, size_t i)
{
	struct turn_program *program = &system->segment->programs[i];
	pid_t pid;

	if (!set_last_pid(LOADED_PID))
		return -1;
	atomic_store(&program->load, TURN_LOADS);
	pid = fork();
	if (!pid)
		system_become(system, &system->programs[i], (uint32_t)i);
	if (pid > 0 && await(program, pid))
		loaded[i] = pid;
	return pid;
}

/* One that ends before it is loaded is taken for the member, whose end is told. */
static pid_t load_somehow(struct system *system, size_t i)
{
	pid_t pid;

	binds_now = true;
	pid = load(system, i);
	binds_now = false;
	if (pid < 0 || loaded[i])
		return pid;
	/* All end with the launcher. */
	if (system_is_stopped())
		return pid;
	/* It lacks a function that it may never call. */
	waitpid(pid, NULL, 0);
	if (system_output_empty(system))
		pid = load(system, i);
	return pid;
}

int system_again_load(struct system *system)
{
	if (write_environment(system->segment)) {
		tool_error("run: the environment is too long: %s", strerror(E2BIG));
		return EXIT_FAILURE;
	}
	for (size_t i = 0; i < system->num; i++)
		if (!loaded[i])
			system->programs[i].pid = load_somehow(system, i);
	if (set_last_pid(OWN_PID))
		return 0;
	tool_error("run: " LAST_PID ": %m");
	return EXIT_FAILURE;
}

pid_t system_again_start(struct system *system, size_t i)
{
	struct turn_program *program = &system->segment->programs[i];

	if (!loaded[i])
		return system->programs[i].pid;
	atomic_store(&program->load, TURN_FORKS);
	syscall(SYS_futex, &program->load, FUTEX_WAKE, 1, NULL, NULL, 0);
	if (!await(program, loaded[i]))
		return loaded[i];
	if (program->pid < 0)
		errno = -program->pid;
	return program->pid < 0 ? -1 : program->pid;
}

/* ------------------------------------------------------------------------
 * Between two runs.
 */

static bool is_loaded(pid_t pid)
{
	for (size_t i = 0; i < TURN_MAX_MEMBERS; i++)
		if (loaded[i] == pid)
			return true;
	return false;
}

static bool end_some(void)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	bool found = false;

	while (processes && (entry = readdir(processes))) {
		pid_t pid = isdigit((unsigned char)*entry->d_name) ? atoi(entry->d_name) : 1;

		if (pid <= 1 || is_loaded(pid))
			continue;
		found = true;
		kill(pid, SIGKILL);
		/* Of others' children: they are the launcher's when those have ended. */
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (processes)
		closedir(processes);
	return found;
}

void system_again_end_all(void)
{
	while (end_some())
		;
	/* Killed by a member, which could not know it. */
	for (size_t i = 0; i < TURN_MAX_MEMBERS; i++)
		if (loaded[i] && waitpid(loaded[i], NULL, WNOHANG) != 0)
			loaded[i] = 0;
}

/* Variables as the segment has them. */
static void set_variables(char *request, size_t len)
{
	const char *end = request + len;
	char *value;

	for (char *line = request; line < end; line = value + strlen(value) + 1) {
		value = line + strcspn(line, "=");
		if (!*value) {
			unsetenv(line);
			continue;
		}
		*value++ = '\0';
		setenv(line, value, 1);
	}
}

/* The file for the output comes along with the variables. */
static bool take_request(void)
{
	static char request[SYSTEM_AGAIN_REQUEST + 1];
	union { struct cmsghdr header; char bytes[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	struct iovec part = { .iov_base = request, .iov_len = SYSTEM_AGAIN_REQUEST };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	ssize_t len;
	bool taken;
	int fd;

	while ((len = recvmsg(asker, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR &&
	       !system_is_stopped())
		;
	if (len <= 0 || !CMSG_FIRSTHDR(&message))
		return false;
	memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	taken = dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0;
	close(fd);
	request[len] = '\0';
	set_variables(request, (size_t)len);
	return taken;
}

bool system_again(struct system *system, int status)
{
	if (!is_usable || system_is_stopped() || system->segment->leaves_traces ||
	    !system_folder_is_whole(system) || system_overlay_is_changed())
		return false;
	if (system->segment->uses_tcp && !(system->has_network && system_tcp_forget()))
		return false;
	return send(asker, &status, sizeof(status), MSG_NOSIGNAL) == sizeof(status) &&
	       take_request() && system_folder_empty(system) && system_output_empty(system);
}
