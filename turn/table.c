/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/table.c - see table.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "ask_time.h"
#include "carried.h"
#include "descriptors.h"
#include "exec.h"
#include "futex.h"
#include "hand.h"
#include "loopback.h"
#include "numbers.h"
#include "pointers.h"
#include "ports.h"
#include "random.h"
#include "signals.h"
#include "sleep.h"
#include "stops.h"
#include "table.h"
#include "tcp.h"
#include "tell.h"
#include "terminals.h"
#include "threads.h"
#include "timer_fds.h"
#include "timers.h"
#include "traces.h"
#include "words.h"

#define MOST_FDS 65536		/* of which more is known than their number */

typedef long call_fn(const struct turn_call *call);

/* Descriptors of others may be ready now, or locks free. */
static long change(const struct turn_call *call)
{
	long result = turn_through(call);

	turn_changed();
	return result;
}

static long watch(const struct turn_call *call)
{
	turn_segment->watches_files = true;
	return change(call);
}

static long close_one(const struct turn_call *call)
{
	turn_timer_fds_close((int)call->arguments[0]);
	return turn_close(call);
}

static long duplicate(const struct turn_call *call)
{
	const long fd = turn_through(call);

	turn_timer_fds_copied((int)call->arguments[0], (int)fd);
	return call->number == SYS_dup || call->number == SYS_fcntl ? fd : turn_after_close(fd);
}

static long close_several(const struct turn_call *call)
{
	for (long fd = call->arguments[0]; fd <= call->arguments[1] && fd < MOST_FDS; fd++)
		turn_timer_fds_close((int)fd);
	return turn_after_close(turn_through(call));
}

static long read_one(const struct turn_call *call)
{
	if (turn_random_is((int)call->arguments[0]))
		return turn_random_read(call);
	return call->number == SYS_pread64 ? turn_through(call) : turn_input(call);
}

static long set_cleared(const struct turn_call *call)
{
	turn_self()->cleared = (uint64_t)call->arguments[0];
	return turn_through(call);
}

static long refuse(const struct turn_call *call)
{
	(void)call;
	return -ENOSYS;
}

/* What is mapped at an address, or may be done there, is another after the call. */
static long map(const struct turn_call *call)
{
	const uint64_t at = (uint64_t)call->arguments[0], len = (uint64_t)call->arguments[1];

	/* Otherwise the kernel takes a place where nothing is. */
	if (call->number != SYS_mmap || call->arguments[3] & MAP_FIXED)
		turn_words_forget(at, len);
	turn_pointers_forget();
	return turn_through(call);
}

static long map_elsewhere(const struct turn_call *call)
{
	turn_words_forget(0, UINT64_MAX);
	turn_pointers_forget();
	return turn_through(call);
}

static long protect(const struct turn_call *call)
{
	turn_pointers_forget();
	return turn_through(call);
}

/* Pages of a file that is mapped may be no more, in any member. */
static long shrink(const struct turn_call *call)
{
	turn_pointers_shrunk();
	return change(call);
}

static long create(const struct turn_call *call)
{
	long fd = shrink(call);

	if (fd >= 0)
		turn_traces_opened((int)fd, (const char *)call->arguments[0], O_WRONLY);
	return fd;
}

static long may_signal(const struct turn_call *call)
{
	long result;

	turn_stops_note(call);
	result = change(call);
	if (call->number == SYS_ioctl)
		turn_terminals_control(call, result);
	return result;
}

static long control(const struct turn_call *call)
{
	turn_stops_note(call);
	switch (call->arguments[1]) {
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		return turn_lock(call);
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		return duplicate(call);
	}
	return turn_through(call);
}

static call_fn *const calls[] = {
	[SYS_futex] = turn_futex,
	[SYS_poll] = turn_poll, [SYS_ppoll] = turn_poll,
	[SYS_select] = turn_select,
	[SYS_pselect6] = turn_select,
	[SYS_epoll_wait] = turn_epoll, [SYS_epoll_pwait] = turn_epoll,
	[SYS_epoll_pwait2] = turn_epoll,

	[SYS_read] = read_one,
	[SYS_readv] = read_one, [SYS_pread64] = read_one,
	[SYS_preadv2] = turn_input,	/* at -1 it reads as readv() does */
	[SYS_recvfrom] = turn_input,
	[SYS_recvmsg] = turn_input,
	[SYS_accept] = turn_carried_accept, [SYS_accept4] = turn_carried_accept,
	[SYS_write] = turn_output, [SYS_writev] = turn_output, [SYS_pwritev2] = turn_output,
	[SYS_pwrite64] = turn_file, [SYS_pwritev] = turn_file,
	[SYS_sendto] = turn_output, [SYS_sendmsg] = turn_output,
	[SYS_recvmmsg] = turn_input, [SYS_sendmmsg] = turn_output,
	[SYS_splice] = turn_between, [SYS_tee] = turn_between,
	[SYS_sendfile] = turn_between,
	[SYS_vmsplice] = turn_between_memory,
	[SYS_io_submit] = turn_requests_submit,
	[SYS_io_getevents] = turn_requests_wait, [SYS_io_pgetevents] = turn_requests_wait,
	[SYS_setsockopt] = turn_set_option,
	[SYS_bind] = turn_bind,
	[SYS_connect] = turn_connect,
	[SYS_getsockopt] = turn_carried_get_option,
	[SYS_getpeername] = turn_carried_get_peer,

	[SYS_mq_timedsend] = turn_queue, [SYS_mq_timedreceive] = turn_queue,
	[SYS_msgsnd] = turn_ipc, [SYS_msgrcv] = turn_ipc,
	[SYS_semop] = turn_ipc, [SYS_semtimedop] = turn_ipc,
	[SYS_pidfd_send_signal] = turn_kill,

	/* What would wait in the kernel, and is not known here. */
	[SYS_io_uring_setup] = turn_tell_uring,
	[SYS_ptrace] = turn_tell_trace,
	[SYS_unshare] = turn_tell_unshare,
	[SYS_clock_settime] = turn_tell_clock, [SYS_settimeofday] = turn_tell_clock,
	[SYS_clock_adjtime] = turn_tell_clock, [SYS_adjtimex] = turn_tell_clock,
	[SYS_futex_waitv] = refuse,
	[SYS_userfaultfd] = refuse,

	[SYS_close] = close_one, [SYS_shutdown] = turn_shutdown,
	[SYS_close_range] = close_several,
	[SYS_listen] = turn_listen,
	[SYS_dup] = duplicate, [SYS_dup2] = duplicate, [SYS_dup3] = duplicate,

	[SYS_flock] = turn_lock,
	[SYS_fcntl] = control,
	[SYS_ioctl] = may_signal, [SYS_mq_notify] = may_signal,
	[SYS_inotify_init] = watch, [SYS_inotify_init1] = watch,
	[SYS_fanotify_init] = watch,
	[SYS_wait4] = turn_wait_child, [SYS_waitid] = turn_wait_child,

	[SYS_socket] = turn_traces_socket,
	[SYS_shmget] = turn_traces,
	[SYS_semget] = turn_traces,
	[SYS_msgget] = turn_traces,
	[SYS_mq_open] = turn_traces,
	[SYS_mount] = turn_traces,
	[SYS_umount2] = turn_traces,
	[SYS_pivot_root] = turn_traces,
	[SYS_open_tree] = turn_traces,
	[SYS_move_mount] = turn_traces,
	[SYS_fsopen] = turn_traces,
	[SYS_fsmount] = turn_traces,
	[SYS_fspick] = turn_traces,
	[SYS_mount_setattr] = turn_traces,
	[SYS_add_key] = turn_traces,
	[SYS_request_key] = turn_traces,
	[SYS_keyctl] = turn_traces,
	[SYS_sethostname] = turn_traces,
	[SYS_setdomainname] = turn_traces,

	[SYS_mmap] = map, [SYS_munmap] = map,
	[SYS_mremap] = map_elsewhere,
	[SYS_shmat] = map_elsewhere,
	[SYS_shmdt] = map_elsewhere,
	[SYS_madvise] = protect,
	[SYS_remap_file_pages] = protect,
	[SYS_truncate] = shrink, [SYS_ftruncate] = shrink,
	[SYS_fallocate] = shrink,
	[SYS_brk] = protect,
	[SYS_mprotect] = protect, [SYS_pkey_mprotect] = protect,

	[SYS_clock_gettime] = turn_ask_time,
	[SYS_gettimeofday] = turn_ask_time,
	[SYS_time] = turn_ask_time,
	[SYS_times] = turn_ask_time,
	[SYS_getrusage] = turn_ask_time,
	[SYS_sysinfo] = turn_ask_time,
	[SYS_nanosleep] = turn_sleep,
	[SYS_clock_nanosleep] = turn_sleep_on_clock,
	[SYS_sched_yield] = turn_yield,
	[SYS_getrandom] = turn_random_get,
	[SYS_open] = turn_random_open,
	[SYS_openat] = turn_random_open, [SYS_openat2] = turn_random_open_how,
	[SYS_creat] = create,

	[SYS_alarm] = turn_timers_interval,
	[SYS_setitimer] = turn_timers_interval,
	[SYS_getitimer] = turn_timers_interval,
	[SYS_timer_create] = turn_timers_posix,
	[SYS_timer_settime] = turn_timers_posix,
	[SYS_timer_gettime] = turn_timers_posix,
	[SYS_timer_getoverrun] = turn_timers_posix,
	[SYS_timer_delete] = turn_timers_posix,
	[SYS_timerfd_create] = turn_timer_fds_call,
	[SYS_timerfd_settime] = turn_timer_fds_call,
	[SYS_timerfd_gettime] = turn_timer_fds_call,

	[SYS_kill] = turn_kill,
	[SYS_tkill] = turn_kill,
	[SYS_tgkill] = turn_kill,
	[SYS_rt_sigqueueinfo] = turn_kill,
	[SYS_rt_tgsigqueueinfo] = turn_kill,
	[SYS_rt_sigaction] = turn_signal_action,
	[SYS_sigaltstack] = turn_signal_stack,
	[SYS_prctl] = turn_prctl,
	[SYS_seccomp] = turn_seccomp,
	[SYS_pause] = turn_signal_wait,
	[SYS_rt_sigsuspend] = turn_signal_wait,
	[SYS_rt_sigtimedwait] = turn_signal_take,

	[SYS_clone] = turn_clone,
	[SYS_clone3] = turn_clone,
	[SYS_fork] = turn_clone,
	[SYS_vfork] = turn_clone,
	[SYS_execve] = turn_exec,
	[SYS_execveat] = turn_exec,
	[SYS_set_tid_address] = set_cleared,
	[SYS_exit] = turn_exit, [SYS_exit_group] = turn_exit,
};

/*
 * What changes nothing that another thread could wait for.  Any other call may: it changes a file
 * that somebody watches, an option by which a socket is ready, or what is not known yet.
 */
static const bool is_quiet[] = {
	[SYS_stat] = true, [SYS_fstat] = true, [SYS_lstat] = true, [SYS_newfstatat] = true,
	[SYS_statx] = true, [SYS_statfs] = true, [SYS_fstatfs] = true,
	[SYS_access] = true, [SYS_faccessat] = true, [SYS_faccessat2] = true,
	[SYS_readlink] = true, [SYS_readlinkat] = true, [SYS_getdents64] = true,
	[SYS_getcwd] = true, [SYS_chdir] = true, [SYS_fchdir] = true, [SYS_umask] = true,
	[SYS_lseek] = true, [SYS_preadv] = true,
	[SYS_fadvise64] = true, [SYS_fsync] = true, [SYS_fdatasync] = true, [SYS_msync] = true,

	[SYS_socketpair] = true, [SYS_pipe] = true, [SYS_pipe2] = true,
	[SYS_memfd_create] = true, [SYS_epoll_create1] = true,
	[SYS_getsockname] = true,

	[SYS_mincore] = true,
	[SYS_mlock] = true, [SYS_mlock2] = true, [SYS_munlock] = true, [SYS_membarrier] = true,
	[SYS_get_mempolicy] = true, [SYS_mbind] = true, [SYS_set_mempolicy] = true,

	[SYS_rt_sigpending] = true, [SYS_set_robust_list] = true,
	[SYS_get_robust_list] = true, [SYS_rseq] = true, [SYS_arch_prctl] = true,
	[SYS_clock_getres] = true, [SYS_getcpu] = true,
	[SYS_sched_getaffinity] = true, [SYS_sched_setaffinity] = true,
	[SYS_sched_getparam] = true, [SYS_sched_getscheduler] = true, [SYS_getpriority] = true,

	[SYS_getpid] = true, [SYS_gettid] = true, [SYS_getppid] = true, [SYS_getpgrp] = true,
	[SYS_getpgid] = true, [SYS_getsid] = true, [SYS_getuid] = true, [SYS_geteuid] = true,
	[SYS_getgid] = true, [SYS_getegid] = true, [SYS_getresuid] = true, [SYS_getresgid] = true,
	[SYS_getgroups] = true, [SYS_uname] = true,
	[SYS_getrlimit] = true, [SYS_prlimit64] = true,
};

static long unknown(const struct turn_call *call)
{
	const size_t number = (size_t)call->number;

	if (number < sizeof(is_quiet) / sizeof(is_quiet[0]) && is_quiet[number])
		return turn_through(call);
	return change(call);
}

long turn_table_call(const struct turn_call *call)
{
	const size_t number = (size_t)call->number;

	if (number >= sizeof(calls) / sizeof(calls[0]) || !calls[number])
		return unknown(call);
	return calls[number](call);
}
