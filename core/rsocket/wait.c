/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rsocket/wait.c - threads that wait for an rsocket.
 *
 * The first to wake up must not read what woke it while others sleep: the set
 * would not be readable any more before they have looked, and they would sleep on
 * though the rsocket is in another state.  So the last one reads it, and those
 * that come in between do not fall asleep.
 */
#include "config.h"
#include "rsocket.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/alone.h"
#include "core/base/clock.h"
#include "core/base/interposer.h"
#include "thread_local.h"

#define NS_PER_MS UINT64_C(1000000)
#define COLLECT_EVERY 64u

/* As the program has it. */
static POLYCM_THREAD_LOCAL int cancel_state;

void rsocket_forbid_cancel(void)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
}

void rsocket_allow_cancel(void)
{
	pthread_setcancelstate(cancel_state, NULL);
}

struct rsocket_patience rsocket_patience(uint64_t timeout_ns)
{
	struct rsocket_patience patience = RSOCKET_FOR_EVER;

	if (timeout_ns)
		patience.until_ns = polycm_now_ns() + timeout_ns;
	return patience;
}

bool rsocket_may_spin(struct rsocket_patience *patience, uint64_t polling_ns)
{
	uint64_t now;

	if (!polycm_time_is_real() || !polling_ns)
		return false;
	/* Where a clock is installed, asking it takes locks that its threads want. */
	now = polycm_real_ns(CLOCK_MONOTONIC);
	if (!patience->began_ns)
		patience->began_ns = now;
	return now - patience->began_ns < polling_ns;
}

int rsocket_poll_timeout(uint64_t until_ns)
{
	uint64_t now, ms;

	if (until_ns == UINT64_MAX)
		return -1;
	now = polycm_now_ns();
	ms = until_ns > now ? (until_ns - now + NS_PER_MS - 1) / NS_PER_MS : 0;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

/*
 * What other threads wake a sleeper up with.  It is in the set before anybody sleeps: a wait
 * in virtual time looks only once whether something from outside may end it.
 */
static void prepare_rousing(struct rsocket *rs)
{
	if (rs->wake_fd >= 0 || polycm_alone())
		return;
	rs->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (rs->wake_fd < 0 || !rsocket_watch(rs, rs->wake_fd))
		return;
	close(rs->wake_fd);
	rs->wake_fd = -1;
}

int rsocket_fall_asleep(struct rsocket *rs)
{
	if (rs->draining) {
		rsocket_unlock(rs);
		sched_yield();
		rsocket_lock(rs);
		return 0;
	}
	if (rs->ops->arm(rs))
		return 0;
	prepare_rousing(rs);
	rs->sleepers++;
	return 1;
}

void rsocket_wake_up(struct rsocket *rs, bool readable)
{
	if (--rs->sleepers) {
		rs->draining |= readable;
		return;
	}
	if (readable || rs->draining) {
		if (rs->wake_fd >= 0)
			(void)eventfd_read(rs->wake_fd, &(eventfd_t){ 0 });
		rs->ops->collect(rs);
	}
	rs->draining = false;
}

/* Where there was no descriptor for it, they are woken up by what comes next. */
void rsocket_rouse(struct rsocket *rs)
{
	if (rs->sleepers && rs->wake_fd >= 0)
		(void)eventfd_write(rs->wake_fd, 1);
}

bool rsocket_should_collect(struct rsocket *rs)
{
	return !rs->sleepers && ++rs->fruitless % COLLECT_EVERY == 0;
}

static void cancelled(void *arg)
{
	struct rsocket *rs = arg;

	rsocket_lock(rs);
	rsocket_wake_up(rs, true);
	rsocket_unlock(rs);
	rsocket_put(rs);
}

static int sleep_on(struct rsocket *rs, int timeout)
{
	struct pollfd pfd = { .fd = rs->fd, .events = POLLIN };
	int num, err;

	rsocket_unlock(rs);
	pthread_cleanup_push(cancelled, rs);
	rsocket_allow_cancel();
	num = poll(&pfd, 1, timeout);
	err = num < 0 ? -errno : 0;
	rsocket_forbid_cancel();
	pthread_cleanup_pop(0);
	rsocket_lock(rs);
	rsocket_wake_up(rs, num > 0);
	return err;
}

int rsocket_wait(struct rsocket *rs, struct rsocket_patience *patience)
{
	uint64_t due = rs->ops->due_ns(rs);
	int timeout;

	if (rs->closed)
		return -EBADF;
	if (rsocket_may_spin(patience, rs->polling_ns)) {
		/* Another thread may want it meanwhile. */
		rsocket_unlock(rs);
		rsocket_lock(rs);
		return 0;
	}
	timeout = rsocket_poll_timeout(patience->until_ns);
	if (!timeout)
		return -EAGAIN;
	if (due < patience->until_ns)
		timeout = rsocket_poll_timeout(due);
	if (!timeout || !rsocket_fall_asleep(rs))
		return 0;
	return sleep_on(rs, timeout);
}
