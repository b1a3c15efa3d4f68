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
#include <sys/stat.h>
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

/* PATH of the system's /sys is where its network is seen. */
static void show_interfaces(const char *own, const char *path)
{
	char *from = tool_printf("%s/%s", own, path), *to = tool_printf("/sys/%s", path);

	mount(from, to, NULL, MS_BIND, NULL);
	free(from);
	free(to);
}

/* The interfaces in /sys, of which the rest stays the machine's.  Not everybody may do that. */
static void show_network(const struct system *system)
{
	char *own = tool_printf("%s/shm/sys", system->folder);

	if (!mkdir(own, 0700)) {
		if (!mount("sysfs", own, "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL)) {
			show_interfaces(own, "class/net");
			show_interfaces(own, "devices/virtual/net");
			umount2(own, MNT_DETACH);
		}
		rmdir(own);
	}
	free(own);
}

static void show_names(struct system *system)
{
	char *hosts = tool_printf("%s/shm/hosts", system->folder);

	if (system_write_hosts(system, hosts) || mount(hosts, "/etc/hosts", NULL, MS_BIND, NULL))
		tool_error("run: programs do not find nodes by name: /etc/hosts: %m");
	system->has_hosts = true;
	free(hosts);
}

static void enter_network(struct system *system)
{
	int err = system_net_enter(system);

	if (err) {
		errno = -err;
		tool_error("run: ports are not the same in each run, and nodes have no addresses "
			   "for TCP: no network of its own: %m");
		return;
	}
	system->has_network = true;
	show_network(system);
	show_names(system);
}

/* One for all: a turn that goes to another processor takes several times as long. */
static void take_processor(void)
{
	const struct sched_param param = { .sched_priority = 0 };
	int cpu = sched_getcpu();
	cpu_set_t one;

	/* Who hands over the turn goes to sleep before the other runs, not after it was interrupted. */
	if (sched_getscheduler(0) == SCHED_OTHER)
		sched_setscheduler(0, SCHED_BATCH, &param);
	if (cpu < 0)
		return;
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* Members inherit it.  Some sandboxes refuse it. */
static void fix_addresses(void)
{
	int persona = personality(0xffffffff);

	if (persona < 0 || personality((unsigned long)persona | ADDR_NO_RANDOMIZE) < 0)
		tool_error("run: addresses of memory are not the same in each run: personality(): %m");
}

/* The user's would be changed. */
static void refuse_own_files(const struct system *system)
{
	if (!system_overlay_is_wanted(system))
		return;
	tool_error("run: --own-files needs namespaces, which the system does not allow");
	_exit(EXIT_FAILURE);
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
	take_processor();
	fix_addresses();
	if (!entered) {
		refuse_own_files(system);
		tool_error("run: process ids, paths and ports are not the same in each run, and "
			   "nodes have no addresses for TCP: the system allows no namespaces");
		system->seen = tool_printf("%s/shm", system->folder);
		return 0;
	}
	/* Not in the process that removes the folder, which must see it.  Members see it as /dev/shm. */
	system->seen = tool_printf("%s/shm", system->folder);
	/* Numbers of System V objects would tell how many others made. */
	unshare(CLONE_NEWIPC);
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
		refuse_own_files(system);
		tool_error("run: paths are not the same in each run: no mounts of its own: %m");
		return 0;
	}
	/* From here on mounts are seen by the launcher and the members only. */
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		tool_error("run: /proc of the system cannot be mounted: %m");
	else
		system_show_counter(system);
	enter_network(system);
	if (system_overlay_is_wanted(system) && !system_overlay_enter(system))
		_exit(EXIT_FAILURE);
	if (!mount(system->seen, "/dev/shm", NULL, MS_BIND, NULL))
		system->seen = "/dev/shm";
	return 0;
}

void system_settle(const struct system *system, const struct system_program *program)
{
	const char *host = programs_is_on_all(program->node) ? "localhost" : program->node;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (system->has_hosts && (unshare(CLONE_NEWUTS) ||
				  sethostname(host, strlen(host))))
		tool_error("run: %s has not its node's name as its host's: %m", program->node);
}
