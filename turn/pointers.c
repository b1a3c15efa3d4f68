/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/pointers.c - see pointers.h.  The kernel is asked by a copy of one byte of each page, and
 * what it said is kept until the process maps, unmaps or protects something, or a file may have
 * become shorter.
 */
#include "config.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>

#include "hand.h"
#include "pointers.h"
#include "raw.h"

#define PAGE UINT64_C(4096)
#define MOST_KEPT 64u

/* By the page's number; 0: none. */
static struct page {
	uint64_t number;
	bool is_writable;
} kept[MOST_KEPT];

void turn_pointers_forget(void)
{
	memset(kept, 0, sizeof(kept));
}

void turn_pointers_shrunk(void)
{
	turn_segment->shrunk++;
}

/* Of a file that is mapped here, too, another member may have taken away, or who has no turns. */
static void forget_shrunk(void)
{
	static uint64_t seen;

	if (seen == turn_segment->shrunk && !turn_segment->outside)
		return;
	seen = turn_segment->shrunk;
	turn_pointers_forget();
}

/* Onto itself, to see whether it can be written: nobody else runs meanwhile. */
static bool ask(uint64_t at, bool writes)
{
	char byte;
	const struct iovec there = { (void *)at, 1 }, here = { &byte, 1 };
	const long pid = TURN_RAW(SYS_getpid);

	/* Where the system does not let it be asked, whoever reads it finds out. */
	return TURN_RAW(SYS_process_vm_readv, pid, writes ? &there : &here, 1, &there, 1, 0) != -EFAULT;
}

static bool is_there(uint64_t at, size_t len, bool writes)
{
	const uint64_t last = (at + len - 1) / PAGE;

	if (!len)
		return true;
	if (at + len < at)
		return false;
	forget_shrunk();
	for (uint64_t number = at / PAGE; number <= last; number++) {
		struct page *page = &kept[number % MOST_KEPT];

		if (page->number == number && (page->is_writable || !writes) && number)
			continue;
		if (!ask(number == at / PAGE ? at : number * PAGE, writes))
			return false;
		*page = (struct page){ number, writes };
	}
	return true;
}

bool turn_can_read(const void *at, size_t len)
{
	return is_there((uint64_t)at, len, false);
}

bool turn_can_write(void *at, size_t len)
{
	return is_there((uint64_t)at, len, true);
}

bool turn_can_read_string(const char *text)
{
	for (;;) {
		const size_t left = PAGE - (uint64_t)text % PAGE;

		if (!turn_can_read(text, 1))
			return false;
		if (memchr(text, '\0', left))
			return true;
		text += left;
	}
}

long turn_give(void *to, const void *from, size_t len)
{
	if (!to)
		return 0;
	if (!turn_can_write(to, len))
		return -EFAULT;
	memcpy(to, from, len);
	return 0;
}

long turn_pointers_check_time(const void *at)
{
	const struct timespec *time = at;

	if (!time)
		return 0;
	if (!turn_can_read(time, sizeof(*time)))
		return -EFAULT;
	return time->tv_sec < 0 || time->tv_nsec < 0 || time->tv_nsec >= 1000000000 ? -EINVAL : 0;
}

/* What calls of one kind are given, by the kernel's sizes. */
enum how { NOTHING, MEMORY, MEMORY_OR_NULL, TIME, TIME_OR_NULL };

#define A_TIME(number) { (number), TIME, 0 }
#define A_TIME_OR_NULL(number) { (number), TIME_OR_NULL, 0 }
#define A_MASK(number) { (number), MEMORY_OR_NULL, TURN_SIGSET_SIZE }
#define TIMES 32	/* a time and an interval */

static const struct given {
	struct { unsigned char argument, how, size; } pointers[2];
} all[] = {
	[SYS_nanosleep] = { { A_TIME(0) } },
	[SYS_clock_nanosleep] = { { A_TIME(2) } },
	[SYS_ppoll] = { { A_TIME_OR_NULL(2), A_MASK(3) } },
	[SYS_select] = { { { 4, MEMORY_OR_NULL, sizeof(struct timeval) } } },
	[SYS_pselect6] = { { A_TIME_OR_NULL(4), { 5, MEMORY_OR_NULL, 16 } } },
	[SYS_epoll_pwait] = { { A_MASK(4) } },
	[SYS_epoll_pwait2] = { { A_TIME_OR_NULL(3), A_MASK(4) } },
	[SYS_rt_sigprocmask] = { { A_MASK(1) } },
	[SYS_rt_sigsuspend] = { { { 0, MEMORY, TURN_SIGSET_SIZE } } },
	[SYS_rt_sigtimedwait] = { { A_TIME_OR_NULL(2) } },
	[SYS_rt_sigaction] = { { { 1, MEMORY_OR_NULL, sizeof(struct turn_sigaction) } } },
	[SYS_mq_timedsend] = { { A_TIME_OR_NULL(4) } },
	[SYS_mq_timedreceive] = { { A_TIME_OR_NULL(4) } },
	[SYS_semtimedop] = { { A_TIME_OR_NULL(3) } },
	[SYS_recvmmsg] = { { A_TIME_OR_NULL(4) } },
	[SYS_setitimer] = { { { 1, MEMORY_OR_NULL, TIMES } } },
	[SYS_timer_create] = { { { 1, MEMORY_OR_NULL, sizeof(struct sigevent) } } },
	[SYS_timer_settime] = { { { 2, MEMORY, TIMES } } },
	[SYS_timerfd_settime] = { { { 2, MEMORY, TIMES } } },
	[SYS_sendmsg] = { { { 1, MEMORY, sizeof(struct msghdr) } } },
	[SYS_recvmsg] = { { { 1, MEMORY, sizeof(struct msghdr) } } },
};

static long check(const void *at, unsigned int how, size_t size)
{
	switch (how) {
	case NOTHING:
		return 0;
	case TIME:
		return at ? turn_pointers_check_time(at) : -EFAULT;
	case TIME_OR_NULL:
		return turn_pointers_check_time(at);
	case MEMORY_OR_NULL:
		if (!at)
			return 0;
		break;
	}
	return turn_can_read(at, size) ? 0 : -EFAULT;
}

long turn_pointers_check(const struct turn_call *call)
{
	const size_t number = (size_t)call->number;
	long err = 0;

	if (number >= sizeof(all) / sizeof(all[0]))
		return 0;
	for (unsigned int i = 0; i < 2 && all[number].pointers[i].how && !err; i++)
		err = check((const void *)call->arguments[all[number].pointers[i].argument],
			    all[number].pointers[i].how, all[number].pointers[i].size);
	return err;
}
