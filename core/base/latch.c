/* SPDX-License-Identifier: BSD-2-Clause */
/* base/latch.c - waiting for a latch: a futex.  errno is the caller's afterwards. */
#include "config.h"
#include "latch.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whoever has waited does not know whether others do, and says that they do. */
void polycm_latch_wait(struct polycm_latch *latch)
{
	int saved_errno = errno;

	while (__atomic_exchange_n(&latch->word, POLYCM_LATCH_WANTED, __ATOMIC_ACQUIRE) !=
	       POLYCM_LATCH_FREE)
		(void)syscall(SYS_futex, &latch->word, FUTEX_WAIT_PRIVATE, POLYCM_LATCH_WANTED,
			      NULL, NULL, 0);
	errno = saved_errno;
}

/* The memory may be somebody else's by now; who sleeps there looks again. */
void polycm_latch_wake(struct polycm_latch *latch)
{
	int saved_errno = errno;

	(void)syscall(SYS_futex, &latch->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = saved_errno;
}
