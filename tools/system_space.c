/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_space.c - what of the machine members see: process ids that begin at 1 in each run,
 * addresses that are not random, one processor.  Namespaces need root or user namespaces;
 * without them ids differ from run to run.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "system.h"

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return len == (ssize_t)strlen(text);
}

/* The user keeps its number. */
static bool enter_user_namespace(void)
{
	char *user = tool_printf("%u %u 1", (unsigned int)geteuid(), (unsigned int)geteuid());
	char *group = tool_printf("%u %u 1", (unsigned int)getegid(), (unsigned int)getegid());
	bool entered = !unshare(CLONE_NEWUSER) && write_file("/proc/self/uid_map", user) &&
		       write_file("/proc/self/setgroups", "deny") &&
		       write_file("/proc/self/gid_map", group);

	free(user);
	free(group);
	return entered;
}

static bool enter_namespaces(void)
{
	if (!unshare(CLONE_NEWPID))
		return true;
	return errno == EPERM && enter_user_namespace() && !unshare(CLONE_NEWPID);
}

/* In place of the shared memory of the host: so paths are the same in each run, too. */
static void see_folder(struct system *system)
{
	char *shm = tool_printf("%s/shm", system->folder);

	if (mount(shm, "/dev/shm", NULL, MS_BIND, NULL)) {
		system->seen = shm;
		return;
	}
	system->seen = "/dev/shm";
	free(shm);
}

pid_t system_enter(struct system *system)
{
	bool entered = enter_namespaces();
	pid_t outer = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It may have ended before. */
	if (!entered && getppid() != outer)
		_exit(EXIT_FAILURE);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (!entered) {
		tool_error("run: process ids and paths are not the same in each run: the system "
			   "allows no namespaces");
		system->seen = tool_printf("%s/shm", system->folder);
		return 0;
	}
	/* Not in the process that removes the folder, which must see it. */
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		tool_error("run: /proc of the system cannot be mounted: %m");
	see_folder(system);
	return 0;
}

void system_settle(void)
{
	int cpu = sched_getcpu(), persona = personality(0xffffffff);
	cpu_set_t one;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (persona >= 0)
		personality((unsigned long)persona | ADDR_NO_RANDOMIZE);
	if (cpu < 0)
		return;
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}
