/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/points.c - see points.h. */
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "carried.h"
#include "clock.h"
#include "hand.h"
#include "points.h"
#include "preempt.h"
#include "raw.h"

#define EXPORT __attribute__((visibility("default")))

/* A thread that takes so many locks in a row, and calls nobody, waits for another one. */
#define IDLE_LOCKS 4096u

#define NULL_DEVICE makedev(1, 3)	/* /dev/null */

static bool has_begun;		/* main() */

static void hold(void)
{
	struct turn_thread *self = turn_self();
	uint64_t ns = turn_preempt_take(turn_segment, self);

	if (!ns)
		return;
	self->held = true;
	turn_clock_sleep_until(turn_clock_after_ns(ns));
	self->held = false;
}

/* ------------------------------------------------------------------------
 * System calls.
 */

static const unsigned char kinds[] = {
	[SYS_clock_gettime] = COUNTED, [SYS_gettimeofday] = COUNTED, [SYS_time] = COUNTED,
	[SYS_times] = COUNTED, [SYS_getrusage] = COUNTED, [SYS_sched_yield] = COUNTED,
	[SYS_getrandom] = COUNTED,
	[SYS_read] = UNLESS_FILE, [SYS_readv] = UNLESS_FILE,
	[SYS_write] = UNLESS_FILE, [SYS_writev] = UNLESS_FILE, [SYS_close] = UNLESS_FILE,
	[SYS_recvfrom] = POINT, [SYS_recvmsg] = POINT, [SYS_recvmmsg] = POINT,
	[SYS_sendto] = POINT, [SYS_sendmsg] = POINT, [SYS_sendmmsg] = POINT,
	[SYS_socket] = POINT, [SYS_bind] = POINT, [SYS_listen] = POINT,
	[SYS_accept] = POINT, [SYS_accept4] = POINT, [SYS_connect] = POINT,
	[SYS_shutdown] = POINT, [SYS_futex] = POINT,
	[SYS_poll] = POINT, [SYS_ppoll] = POINT, [SYS_select] = POINT, [SYS_pselect6] = POINT,
	[SYS_epoll_wait] = POINT, [SYS_epoll_pwait] = POINT, [SYS_epoll_pwait2] = POINT,
	[SYS_epoll_ctl] = POINT,
	[SYS_sendfile] = POINT, [SYS_splice] = POINT, [SYS_tee] = POINT,
	[SYS_msgsnd] = POINT, [SYS_msgrcv] = POINT,
	[SYS_semop] = POINT, [SYS_semtimedop] = POINT,
	[SYS_mq_timedsend] = POINT, [SYS_mq_timedreceive] = POINT,
	[SYS_rt_sigqueueinfo] = POINT, [SYS_pidfd_send_signal] = POINT,
	[SYS_kill] = POINT, [SYS_tkill] = POINT, [SYS_tgkill] = POINT,
	[SYS_wait4] = POINT, [SYS_waitid] = POINT,
	[SYS_clone] = POINT, [SYS_clone3] = POINT, [SYS_fork] = POINT, [SYS_vfork] = POINT,
	[SYS_execve] = POINT, [SYS_execveat] = POINT, [SYS_exit] = POINT, [SYS_exit_group] = POINT,
	[SYS_nanosleep] = POINT, [SYS_clock_nanosleep] = POINT,
	[SYS_rename] = POINT, [SYS_renameat] = POINT, [SYS_renameat2] = POINT,
	[SYS_unlink] = POINT, [SYS_unlinkat] = POINT,
};

static bool is_file(int fd)
{
	struct stat st;

	return !TURN_RAW(SYS_fstat, fd, &st) &&
	       (S_ISREG(st.st_mode) || (S_ISCHR(st.st_mode) && st.st_rdev == NULL_DEVICE));
}

enum turn_points_kind turn_points_kind_of(const struct turn_call *call)
{
	const size_t number = (size_t)call->number;
	enum turn_points_kind kind = number < sizeof(kinds) ? kinds[number] : QUIET;

	if (kind != UNLESS_FILE)
		return kind;
	return is_file((int)call->arguments[0]) ? QUIET : POINT;
}

void turn_points_pass(void)
{
	struct turn_thread *self = turn_self();

	if (has_begun && turn_preempt_call(turn_segment, self, self->call))
		hold();
}

/* ------------------------------------------------------------------------
 * Locks.
 */

long turn_points_lock(void)
{
	struct turn_thread *self = turn_self();

	if (self->point.lock % IDLE_LOCKS == 0)
		turn_clock_yield_locks(self->point.lock / IDLE_LOCKS);
	hold();
	return 0;
}

/* Inlined, so that a lock costs no more than two counters. */
static inline void pass(void)
{
	struct turn_thread *self;
	bool is_held;

	if (!has_begun || turn_slot() == TURN_NOBODY)
		return;
	self = turn_self();
	is_held = turn_preempt_lock(turn_segment, self, TURN_CALL_POINT);
	if (self->point.lock % IDLE_LOCKS == 0 || is_held)
		syscall(TURN_CALL_POINT);
}

/* What the C library or a sanitizer's runtime has behind a function of ours. */
#define NEXT(name)                                                                                 \
	({                                                                                         \
		static typeof(name) *next;                                                         \
												   \
		if (__builtin_expect(!next, 0))                                                    \
			next = (typeof(name) *)dlsym(RTLD_NEXT, #name);                            \
		next;                                                                              \
	})

/* In parentheses: builds that check the order of locks have macros of these names. */
EXPORT int (pthread_mutex_lock)(pthread_mutex_t *mutex)
{
	pass();
	return NEXT(pthread_mutex_lock)(mutex);
}

EXPORT int (pthread_mutex_trylock)(pthread_mutex_t *mutex)
{
	pass();
	return NEXT(pthread_mutex_trylock)(mutex);
}

EXPORT int (pthread_rwlock_rdlock)(pthread_rwlock_t *lock)
{
	pass();
	return NEXT(pthread_rwlock_rdlock)(lock);
}

EXPORT int (pthread_rwlock_wrlock)(pthread_rwlock_t *lock)
{
	pass();
	return NEXT(pthread_rwlock_wrlock)(lock);
}

EXPORT int (sem_wait)(sem_t *semaphore)
{
	pass();
	return NEXT(sem_wait)(semaphore);
}

/* The C library's would spin without a call, while its owner waits for the turn. */
EXPORT int (pthread_spin_lock)(pthread_spinlock_t *lock)
{
	pass();
	while (pthread_spin_trylock(lock))
		syscall(SYS_sched_yield);
	return 0;
}

/* ------------------------------------------------------------------------
 * The begin of main().  Before it a program loads what it needs, which nobody sees.
 */

typedef int main_fn(int argc, char **argv, char **environment);

static main_fn *program;

static int begin(int argc, char **argv, char **environment)
{
	/* That the network is slow is not chosen here. */
	has_begun = !turn_carried_is_carrier();
	return program(argc, argv, environment);
}

int __libc_start_main(main_fn *main, int argc, char **argv, void (*init)(void), void (*fini)(void),
		      void (*loader_fini)(void), void *stack_end);

EXPORT int __libc_start_main(main_fn *main, int argc, char **argv, void (*init)(void),
			     void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
	program = main;
	return NEXT(__libc_start_main)(begin, argc, argv, init, fini, loader_fini, stack_end);
}
