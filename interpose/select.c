/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/select.c - select() and pselect().
 *
 * The kernel writes over the sets that it is given, so it is given copies.  It
 * reads no more of them than its own table of descriptors is long: programs
 * pass larger numbers than their sets are long, and longer sets than fd_set.
 */
#undef _FORTIFY_SOURCE	/* its inline functions have the names of ours */
#include "config.h"

#include "host.h"
#include "libc.h"
#include "wait.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/export.h"

#define NUM_SETS 3
#define WORD_BITS (8u * sizeof(unsigned long))
#define SMALL (FD_SETSIZE / WORD_BITS)	/* words */

struct select_wait {
	struct polycm_wait wait;
	int num;			/* descriptors are less */
	size_t words;			/* of each set */
	unsigned long *given[NUM_SETS];	/* the program's, or NULL */
	unsigned long *copies;		/* what the kernel gets and writes */
};

static fd_set *copy_of(struct select_wait *self, unsigned int i)
{
	return self->given[i] ? (fd_set *)(void *)(self->copies + i * self->words) : NULL;
}

static int ask(struct polycm_wait *wait, const struct timespec *limit, const sigset_t *mask)
{
	struct select_wait *self = (struct select_wait *)wait;
	int n;

	for (unsigned int i = 0; i < NUM_SETS; i++)
		if (self->given[i])
			memcpy(copy_of(self, i), self->given[i], self->words * sizeof(long));
	n = polycm_libc()->pselect(self->num, copy_of(self, 0), copy_of(self, 1), copy_of(self, 2),
				   limit, mask);
	return n < 0 ? -errno : n;
}

static void waited(struct polycm_wait *wait, struct polycm_waited *all)
{
	struct select_wait *self = (struct select_wait *)wait;

	for (size_t fd = 0; fd < (size_t)self->num; fd++) {
		unsigned long word = 0;

		for (unsigned int i = 0; i < NUM_SETS; i++)
			if (self->given[i])
				word |= self->given[i][fd / WORD_BITS];
		if (word >> fd % WORD_BITS & 1)
			polycm_waited_add(all, (int)fd);
	}
}

/* The call succeeded: what is ready, or nothing. */
static void give(struct select_wait *self, bool ready)
{
	for (unsigned int i = 0; i < NUM_SETS; i++) {
		if (!self->given[i])
			continue;
		if (ready)
			memcpy(self->given[i], copy_of(self, i), self->words * sizeof(long));
		else
			memset(self->given[i], 0, self->words * sizeof(long));
	}
}

/* How long the kernel's table is; 0: it does not say. */
static int table_size(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char *line = NULL;
	size_t room = 0;
	int size = 0;

	if (!status)
		return 0;
	while (!size && getline(&line, &room, status) > 0)
		(void)sscanf(line, "FDSize: %d", &size);
	free(line);
	fclose(status);
	return size;
}

static int clamp(int nfds)
{
	int cancel_state, size;

	if (nfds <= (int)FD_SETSIZE)
		return nfds;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	size = table_size();
	pthread_setcancelstate(cancel_state, NULL);
	return size < nfds ? size : nfds;
}

static int wait_and_give(struct select_wait *self)
{
	int r = polycm_wait(&self->wait);

	if (r >= 0)
		give(self, r > 0);
	return r;
}

static int wait_with_long_sets(struct select_wait *self)
{
	int r;

	self->copies = malloc(NUM_SETS * self->words * sizeof(long));
	if (!self->copies)
		return -ENOMEM;
	pthread_cleanup_push(free, self->copies);
	r = wait_and_give(self);
	pthread_cleanup_pop(1);
	return r;
}

static int virtual_select(const char *call, int num, fd_set *readable, fd_set *writable,
			  fd_set *other, uint64_t timeout_ns, const sigset_t *mask,
			  uint64_t *ret_left_ns)
{
	unsigned long small[NUM_SETS * SMALL];
	struct select_wait self = {
		.wait = {
			.call = call,
			.timeout_ns = timeout_ns,
			.mask = mask,
			.ask = ask,
			.waited = waited,
		},
		.num = clamp(num),
		.given = { (void *)readable, (void *)writable, (void *)other },
		.copies = small,
	};
	int r;

	if (num && !self.num)
		return -ENODEV;
	self.words = ((size_t)self.num + WORD_BITS - 1) / WORD_BITS;
	r = self.words > SMALL ? wait_with_long_sets(&self) : wait_and_give(&self);
	*ret_left_ns = self.wait.left_ns;
	return r;
}

static bool valid_timeval(const struct timeval *time)
{
	return time->tv_sec >= 0 && time->tv_usec >= 0;
}

static uint64_t timeval_ns(const struct timeval *time)
{
	const struct timespec seconds = { .tv_sec = time->tv_sec };
	uint64_t ns = polycm_wait_ns(&seconds), more = (uint64_t)time->tv_usec * 1000u;

	return ns < POLYCM_FOREVER - more ? ns + more : POLYCM_FOREVER;
}

/* As on Linux, the time that is left is written into the time-out. */
POLYCM_EXPORT int select(int nfds, fd_set *readable, fd_set *writable, fd_set *other,
			 struct timeval *timeout)
{
	uint64_t timeout_ns = timeout ? timeval_ns(timeout) : POLYCM_FOREVER, left_ns;
	int r = -ENODEV;

	if (!time_is_real() && nfds >= 0 && (!timeout || valid_timeval(timeout)))
		r = virtual_select("select", nfds, readable, writable, other, timeout_ns, NULL,
				   &left_ns);
	if (r == -ENODEV)
		return polycm_libc()->select(nfds, readable, writable, other, timeout);
	if (timeout_ns != POLYCM_FOREVER) {
		timeout->tv_sec = (time_t)(left_ns / POLYCM_NS_PER_S);
		timeout->tv_usec = (suseconds_t)(left_ns % POLYCM_NS_PER_S / 1000u);
	}
	return polycm_wait_return(r);
}

POLYCM_EXPORT int pselect(int nfds, fd_set *readable, fd_set *writable, fd_set *other,
			  const struct timespec *timeout, const sigset_t *mask)
{
	uint64_t left_ns;
	int r = nfds < 0 || polycm_wait_is_real(timeout) ? -ENODEV :
		virtual_select("pselect", nfds, readable, writable, other,
			       polycm_wait_timeout(timeout), mask, &left_ns);

	if (r == -ENODEV)
		return polycm_libc()->pselect(nfds, readable, writable, other, timeout, mask);
	return polycm_wait_return(r);
}
