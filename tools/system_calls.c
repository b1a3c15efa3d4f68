/* SPDX-License-Identifier: BSD-2-Clause */
/* system_calls.c - system calls of x86-64 in words, as strace(1) has them. */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "system.h"

#define C(name, num) { #name, num }

/* By number; how many arguments each has. */
static const struct {
	const char *name;
	unsigned int num;
} calls[] = {
	C(read, 3), C(write, 3), C(open, 3), C(close, 1), C(stat, 2), C(fstat, 2), C(lstat, 2),
	C(poll, 3), C(lseek, 3), C(mmap, 6), C(mprotect, 3), C(munmap, 2), C(brk, 1),
	C(rt_sigaction, 4), C(rt_sigprocmask, 4), C(rt_sigreturn, 0), C(ioctl, 3), C(pread64, 4),
	C(pwrite64, 4), C(readv, 3), C(writev, 3), C(access, 2), C(pipe, 1), C(select, 5),
	C(sched_yield, 0), C(mremap, 5), C(msync, 3), C(mincore, 3), C(madvise, 3), C(shmget, 3),
	C(shmat, 3), C(shmctl, 3), C(dup, 1), C(dup2, 2), C(pause, 0), C(nanosleep, 2),
	C(getitimer, 2), C(alarm, 1), C(setitimer, 3), C(getpid, 0), C(sendfile, 4),
	C(socket, 3), C(connect, 3), C(accept, 3), C(sendto, 6), C(recvfrom, 6), C(sendmsg, 3),
	C(recvmsg, 3), C(shutdown, 2), C(bind, 3), C(listen, 2), C(getsockname, 3),
	C(getpeername, 3), C(socketpair, 4), C(setsockopt, 5), C(getsockopt, 5), C(clone, 5),
	C(fork, 0), C(vfork, 0), C(execve, 3), C(exit, 1), C(wait4, 4), C(kill, 2), C(uname, 1),
	C(semget, 3), C(semop, 3), C(semctl, 4), C(shmdt, 1), C(msgget, 2), C(msgsnd, 4),
	C(msgrcv, 5), C(msgctl, 3), C(fcntl, 3), C(flock, 2), C(fsync, 1), C(fdatasync, 1),
	C(truncate, 2), C(ftruncate, 2), C(getdents, 3), C(getcwd, 2), C(chdir, 1), C(fchdir, 1),
	C(rename, 2), C(mkdir, 2), C(rmdir, 1), C(creat, 2), C(link, 2), C(unlink, 1),
	C(symlink, 2), C(readlink, 3), C(chmod, 2), C(fchmod, 2), C(chown, 3), C(fchown, 3),
	C(lchown, 3), C(umask, 1), C(gettimeofday, 2), C(getrlimit, 2), C(getrusage, 2),
	C(sysinfo, 1), C(times, 1), C(ptrace, 4), C(getuid, 0), C(syslog, 3), C(getgid, 0),
	C(setuid, 1), C(setgid, 1), C(geteuid, 0), C(getegid, 0), C(setpgid, 2), C(getppid, 0),
	C(getpgrp, 0), C(setsid, 0), C(setreuid, 2), C(setregid, 2), C(getgroups, 2),
	C(setgroups, 2), C(setresuid, 3), C(getresuid, 3), C(setresgid, 3), C(getresgid, 3),
	C(getpgid, 1), C(setfsuid, 1), C(setfsgid, 1), C(getsid, 1), C(capget, 2), C(capset, 2),
	C(rt_sigpending, 2), C(rt_sigtimedwait, 4), C(rt_sigqueueinfo, 3), C(rt_sigsuspend, 2),
	C(sigaltstack, 2), C(utime, 2), C(mknod, 3), C(uselib, 1), C(personality, 1),
	C(ustat, 2), C(statfs, 2), C(fstatfs, 2), C(sysfs, 3), C(getpriority, 2),
	C(setpriority, 3), C(sched_setparam, 2), C(sched_getparam, 2), C(sched_setscheduler, 3),
	C(sched_getscheduler, 1), C(sched_get_priority_max, 1), C(sched_get_priority_min, 1),
	C(sched_rr_get_interval, 2), C(mlock, 2), C(munlock, 2), C(mlockall, 1),
	C(munlockall, 0), C(vhangup, 0), C(modify_ldt, 3), C(pivot_root, 2), C(_sysctl, 1),
	C(prctl, 5), C(arch_prctl, 2), C(adjtimex, 1), C(setrlimit, 2), C(chroot, 1), C(sync, 0),
	C(acct, 1), C(settimeofday, 2), C(mount, 5), C(umount2, 2), C(swapon, 2), C(swapoff, 1),
	C(reboot, 4), C(sethostname, 2), C(setdomainname, 2), C(iopl, 1), C(ioperm, 3),
	C(create_module, 0), C(init_module, 3), C(delete_module, 2), C(get_kernel_syms, 0),
	C(query_module, 0), C(quotactl, 4), C(nfsservctl, 0), C(getpmsg, 0), C(putpmsg, 0),
	C(afs_syscall, 0), C(tuxcall, 0), C(security, 0), C(gettid, 0), C(readahead, 3),
	C(setxattr, 5), C(lsetxattr, 5), C(fsetxattr, 5), C(getxattr, 4), C(lgetxattr, 4),
	C(fgetxattr, 4), C(listxattr, 3), C(llistxattr, 3), C(flistxattr, 3), C(removexattr, 2),
	C(lremovexattr, 2), C(fremovexattr, 2), C(tkill, 2), C(time, 1), C(futex, 6),
	C(sched_setaffinity, 3), C(sched_getaffinity, 3), C(set_thread_area, 0), C(io_setup, 2),
	C(io_destroy, 1), C(io_getevents, 5), C(io_submit, 3), C(io_cancel, 3),
	C(get_thread_area, 0), C(lookup_dcookie, 0), C(epoll_create, 1), C(epoll_ctl_old, 0),
	C(epoll_wait_old, 0), C(remap_file_pages, 5), C(getdents64, 3), C(set_tid_address, 1),
	C(restart_syscall, 0), C(semtimedop, 4), C(fadvise64, 4), C(timer_create, 3),
	C(timer_settime, 4), C(timer_gettime, 2), C(timer_getoverrun, 1), C(timer_delete, 1),
	C(clock_settime, 2), C(clock_gettime, 2), C(clock_getres, 2), C(clock_nanosleep, 4),
	C(exit_group, 1), C(epoll_wait, 4), C(epoll_ctl, 4), C(tgkill, 3), C(utimes, 2),
	C(vserver, 0), C(mbind, 6), C(set_mempolicy, 3), C(get_mempolicy, 5), C(mq_open, 4),
	C(mq_unlink, 1), C(mq_timedsend, 5), C(mq_timedreceive, 5), C(mq_notify, 2),
	C(mq_getsetattr, 3), C(kexec_load, 4), C(waitid, 5), C(add_key, 5), C(request_key, 4),
	C(keyctl, 5), C(ioprio_set, 3), C(ioprio_get, 2), C(inotify_init, 0),
	C(inotify_add_watch, 3), C(inotify_rm_watch, 2), C(migrate_pages, 4), C(openat, 4),
	C(mkdirat, 3), C(mknodat, 4), C(fchownat, 5), C(futimesat, 3), C(newfstatat, 4),
	C(unlinkat, 3), C(renameat, 4), C(linkat, 5), C(symlinkat, 3), C(readlinkat, 4),
	C(fchmodat, 3), C(faccessat, 3), C(pselect6, 6), C(ppoll, 5), C(unshare, 1),
	C(set_robust_list, 2), C(get_robust_list, 3), C(splice, 6), C(tee, 4),
	C(sync_file_range, 4), C(vmsplice, 4), C(move_pages, 6), C(utimensat, 4),
	C(epoll_pwait, 6), C(signalfd, 3), C(timerfd_create, 2), C(eventfd, 1), C(fallocate, 4),
	C(timerfd_settime, 4), C(timerfd_gettime, 2), C(accept4, 4), C(signalfd4, 4),
	C(eventfd2, 2), C(epoll_create1, 1), C(dup3, 3), C(pipe2, 2), C(inotify_init1, 1),
	C(preadv, 5), C(pwritev, 5), C(rt_tgsigqueueinfo, 4), C(perf_event_open, 5),
	C(recvmmsg, 5), C(fanotify_init, 2), C(fanotify_mark, 6), C(prlimit64, 4),
	C(name_to_handle_at, 5), C(open_by_handle_at, 3), C(clock_adjtime, 2), C(syncfs, 1),
	C(sendmmsg, 4), C(setns, 2), C(getcpu, 3), C(process_vm_readv, 6),
	C(process_vm_writev, 6), C(kcmp, 5), C(finit_module, 3), C(sched_setattr, 3),
	C(sched_getattr, 4), C(renameat2, 5), C(seccomp, 3), C(getrandom, 3), C(memfd_create, 2),
	C(kexec_file_load, 5), C(bpf, 3), C(execveat, 5), C(userfaultfd, 1), C(membarrier, 3),
	C(mlock2, 3), C(copy_file_range, 6), C(preadv2, 6), C(pwritev2, 6), C(pkey_mprotect, 4),
	C(pkey_alloc, 2), C(pkey_free, 1), C(statx, 5), C(io_pgetevents, 6), C(rseq, 4),
	[424] = C(pidfd_send_signal, 4), C(io_uring_setup, 2), C(io_uring_enter, 6),
	C(io_uring_register, 4), C(open_tree, 3), C(move_mount, 5), C(fsopen, 2), C(fsconfig, 5),
	C(fsmount, 3), C(fspick, 3), C(pidfd_open, 2), C(clone3, 2), C(close_range, 3),
	C(openat2, 4), C(pidfd_getfd, 3), C(faccessat2, 4), C(process_madvise, 5),
	C(epoll_pwait2, 6), C(mount_setattr, 5), C(quotactl_fd, 4),
	C(landlock_create_ruleset, 3), C(landlock_add_rule, 4), C(landlock_restrict_self, 2),
	C(memfd_secret, 1), C(process_mrelease, 2), C(futex_waitv, 5),
	C(set_mempolicy_home_node, 4), C(cachestat, 4), C(fchmodat2, 4), C(map_shadow_stack, 3),
	C(futex_wake, 4), C(futex_wait, 6), C(futex_requeue, 4), C(statmount, 4),
	C(listmount, 4), C(lsm_get_self_attr, 4), C(lsm_set_self_attr, 4),
	C(lsm_list_modules, 3), C(mseal, 3),
};

#undef C

/* A descriptor, a length and an error are easier to read in decimal, an address is not. */
static char *argument(uint64_t value)
{
	const int64_t number = value >> 32 ? (int64_t)value : (int32_t)value;

	if (number > -4096 && number < 65536)
		return tool_printf("%lld", (long long)number);
	return tool_printf("0x%llx", (unsigned long long)value);
}

/* Programs can write into a record, and may name files as they like. */
char *system_call_path(const struct turn_event *event)
{
	const size_t len = strnlen(event->path, sizeof(event->path));
	char *words = tool_printf("\"%s%.*s\"", len + 1 == sizeof(event->path) ? "..." : "", (int)len,
				  event->path);

	for (char *at = words; *at; at++)
		if (iscntrl((unsigned char)*at))
			*at = '?';
	return words;
}

const char *system_call_name(uint64_t number)
{
	if (number == TURN_CALL_COUNTER)
		return "rdtsc";
	return number < sizeof(calls) / sizeof(calls[0]) ? calls[number].name : NULL;
}

unsigned int system_call_arguments(uint64_t number)
{
	return number < sizeof(calls) / sizeof(calls[0]) ? calls[number].num : 0;
}

char *system_call_words(const struct turn_event *event)
{
	const uint64_t number = event->call;
	const char *name = system_call_name(number);
	const unsigned int num = system_call_arguments(number);
	char *words;

	if (number == TURN_CALL_SPIN)
		return tool_strdup("a loop that looks at memory");
	words = name ? tool_printf("%s(", name) :
		       tool_printf("system call %llu", (unsigned long long)number);
	for (unsigned int i = 0; i < num; i++) {
		char *one = i + 1 == event->has_path ? system_call_path(event) :
						       argument(event->arguments[i]);

		tool_append(&words, "%s%s", i ? ", " : "", one);
		free(one);
	}
	tool_append(&words, "%s", name ? ")" : "");
	return words;
}
