/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/wait.c - taking the next event off a channel, and waiting for it.
 *
 * A thread that has to wait lets virtual time move first.  Then, where every
 * event is posted, it sleeps on the channel's counter of posts, which, like
 * the kernel's wait, a signal interrupts unless its handler restarts calls;
 * where a provider's events must be fetched, it polls the channel's fd.  Both
 * are cancellation points, as the call is in librdmacm.
 *
 * On a channel whose descriptor is the kernel's the thread waits in the kernel.
 */
#include "config.h"
#include "id_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utlist.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/plugin/op.h"
#include "ret.h"
#include "core/base/interposer.h"
#include "core/base/turns.h"

/*
 * Nothing can ever happen again: say who waits, since it is the program that is wrong.  All of
 * them: the first to fail may end the program, and need not be the one to blame.
 */
static void deadlock(struct polycm_channel *chan)
{
	char text[512];
	bool logged;

	polycm_latch_take(&chan->channel_lock);
	polycm_channel_describe_ids_locked(chan, text, sizeof(text));
	logged = polycm_channel_stuck_logged_locked(chan);
	polycm_latch_give(&chan->channel_lock);

	if (logged)
		return;
	polycm_log(POLYCM_LOG_ERROR, POLYCM_STUCK, text);
	polycm_channels_tell_stuck(chan);
}

static void wake_up(void *arg)
{
	struct polycm_channel *chan = arg;

	polycm_waits_for(TURN_FOR_ANY);
	polycm_latch_take(&chan->channel_lock);
	chan->sleepers--;
	polycm_latch_give(&chan->channel_lock);
}

/* syscall() is none of the C library's cancellation points, so it is made one here. */
static int futex_wait(const uint32_t *word, uint32_t seen)
{
	int old, err = 0;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	if (syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0) < 0)
		err = errno == EINTR ? -EINTR : 0;
	pthread_setcanceltype(old, NULL);
	return err;
}

static int sleep_on_posts(struct polycm_channel *chan, uint32_t seen)
{
	int err;

	polycm_latch_take(&chan->channel_lock);
	chan->sleepers++;
	polycm_latch_give(&chan->channel_lock);

	polycm_waits_for(TURN_FOR_CM_EVENT);
	pthread_cleanup_push(wake_up, chan);
	err = futex_wait(&chan->posts, seen);
	pthread_cleanup_pop(1);
	return err;
}

static int poll_fds(struct polycm_channel *chan)
{
	struct pollfd pfd = { .fd = chan->pub.fd, .events = POLLIN };

	return poll(&pfd, 1, -1) < 0 ? -errno : 0;
}

/*
 * Let virtual time move.  An event that this brings is taken at once, so that,
 * where no other thread could look, the descriptor need not tell of it.
 */
static int let_time_move_alone(struct polycm_channel *chan)
{
	int idle;

	chan->taken_at_once = true;
	idle = polycm_clock_idle();
	chan->taken_at_once = false;
	if (idle <= 0) {
		polycm_latch_take(&chan->channel_lock);
		polycm_channel_show(chan);
		polycm_latch_give(&chan->channel_lock);
	}
	return idle;
}

/* Something may have happened: 0.  `seen' is the count of posts at which the queue was empty. */
static int wait_once(struct polycm_channel *chan, uint32_t seen, bool pulls)
{
	int idle = polycm_clock_idle();

	if (idle > 0)
		return 0;
	/* Another thread may have posted while this one asked; what is fetched may still come. */
	if (idle < 0 && !pulls)
		return __atomic_load_n(&chan->posts, __ATOMIC_RELAXED) == seen ? idle : 0;
	return pulls ? poll_fds(chan) : sleep_on_posts(chan, seen);
}

/* Virtual time goes on without this thread; -EDEADLK: the others wait, too, and for nothing. */
static int pass_time(void)
{
	int idle = 1;

	while (polycm_clock_virtual() && (idle > 0 || idle == -EINTR)) {
		pthread_testcancel();
		idle = polycm_clock_idle();
	}
	if (idle != -EDEADLK)
		return 0;
	polycm_log(POLYCM_LOG_ERROR, POLYCM_STUCK, "another thread destroyed its channel");
	return polycm_fail(idle, "another thread destroyed the channel");
}

int polycm_channel_sleep_on(void)
{
	static const uint32_t never;
	int err = pass_time();

	if (err)
		return err;
	while (!futex_wait(&never, never))
		;
	return -EBADF;
}

/*
 * On a native channel an event goes from the kernel to the thread that fetched it, and
 * through no queue: other threads that wait there sleep in the kernel, and nothing could
 * wake them for an event in a queue.
 *
 * Per thread, because the provider stands between fetch() and polycm_wait_hand_over().
 * channel_read() does not return the event: the provider must keep the event's id alive
 * until the event is posted, and must undo the request whose event is refused.
 */
static POLYCM_THREAD_LOCAL struct {
	struct polycm_channel *from;	/* in a provider, to fetch from it; else NULL */
	bool wanted;			/* nothing has come yet */
	struct polycm_ev *ev;		/* charged */
} fetched;

struct polycm_channel *polycm_wait_channel(void)
{
	return fetched.from;
}

bool polycm_wait_hand_over(struct polycm_ev *ev)
{
	if (!fetched.wanted)
		return false;
	fetched.wanted = false;
	fetched.ev = ev;
	polycm_ev_charge(ev);
	return true;
}

static struct polycm_ev *take_fetched(void)
{
	struct polycm_ev *ev = fetched.ev;

	fetched.ev = NULL;
	return ev;
}

/* The program will not get it: it is cancelled, or its channel is gone. */
static void drop_fetched(void)
{
	struct polycm_ev *ev = take_fetched();

	fetched.from = NULL;
	fetched.wanted = false;
	if (!ev)
		return;
	if (ev->child)
		polycm_id_end_child(ev->child);
	polycm_ev_ack(ev);
}

static void cancelled(void *chan)
{
	drop_fetched();
	(void)polycm_channel_leave(chan);
}

static int fetch(struct polycm_channel *chan)
{
	const struct polycm_channel_slot *slot = &chan->slots[0];
	int err;

	fetched.from = chan;
	fetched.wanted = true;
	err = POLYCM_OP(slot->module, channel_read, slot->area);
	fetched.from = NULL;
	fetched.wanted = false;
	return err;
}

/* Counted in, so that the channel stays as it is if another thread destroys it meanwhile. */
static int wait_counted(struct polycm_channel *chan, uint32_t seen, bool pulls)
{
	int err;

	if (!polycm_channel_enter(chan))
		return polycm_channel_sleep_on();

	pthread_cleanup_push(cancelled, chan);
	err = chan->native ? fetch(chan) : wait_once(chan, seen, pulls);
	if (err == -EDEADLK)
		deadlock(chan);
	pthread_cleanup_pop(0);

	/* An event on its way may have woken it before the channel went. */
	if (!polycm_channel_leave(chan))
		return err;
	drop_fetched();
	if (err == -EDEADLK)
		return polycm_fail(err, "another thread destroyed the channel");
	return err ? -EBADF : polycm_channel_sleep_on();
}

/* Let the providers post what lies on their descriptors; what one of them complains of, or 0. */
static int pull(struct polycm_channel *chan)
{
	struct epoll_event ready[8];
	int num, old, err, failed = 0;

	/* Not a place to be cancelled in: the lock would stay. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_mutex_lock(&chan->pull_lock);
	num = polycm_real_epoll_wait(chan->pub.fd, ready,
					(int)(sizeof(ready) / sizeof(ready[0])), 0);
	for (int i = 0; i < num; i++) {
		struct polycm_channel_slot *slot = ready[i].data.ptr;

		err = slot ? POLYCM_OP(slot->module, channel_read, slot->area) : 0;
		if (err && err != -EAGAIN && err != -EINTR)
			failed = err;
	}
	pthread_mutex_unlock(&chan->pull_lock);
	pthread_setcancelstate(old, NULL);
	return failed;
}

static int pull_counted(struct polycm_channel *chan, int *ret_failed)
{
	if (!polycm_channel_enter(chan))
		return polycm_channel_sleep_on();
	*ret_failed = pull(chan);
	return polycm_channel_leave(chan) ? polycm_channel_sleep_on() : 0;
}

/* Takes an event if there is one; else tells how to wait. */
static int take(struct polycm_channel *chan, struct polycm_ev **ret_ev, uint32_t *ret_seen,
		bool *ret_pulls)
{
	struct polycm_ev *ev;
	int err = -EAGAIN;

	polycm_latch_take(&chan->channel_lock);
	ev = polycm_channel_pop(chan, NULL);
	if (ev) {
		polycm_ev_charge(ev);
		*ret_ev = ev;
		err = 0;
	}
	*ret_seen = __atomic_load_n(&chan->posts, __ATOMIC_RELAXED);
	*ret_pulls = chan->num_pull > 0;
	polycm_latch_give(&chan->channel_lock);
	return err;
}

/*
 * A descriptor that was closed under us is not.  That one was not is remembered
 * where only this thread can have changed it since, and was not seen to.
 */
static bool is_nonblocking(struct polycm_channel *chan)
{
	unsigned int changes = 0;
	int flags;

	if (polycm_alone() && !polycm_channel_has_children(chan))
		changes = polycm_flag_changes();
	if (changes && changes == chan->blocks_at)
		return false;
	flags = fcntl(chan->pub.fd, F_GETFL);
	if (flags != -1 && flags & O_NONBLOCK)
		return true;
	if (changes)
		chan->blocks_at = changes;
	return false;
}

int polycm_channel_next(struct polycm_channel *chan, struct polycm_ev **ret_ev)
{
	bool pulls = false;
	uint32_t seen = 0;
	int err, failed = 0, moved;

	if (polycm_channel_inherited(chan))
		return polycm_fail(-EACCES, "the channel is of the process that this one was forked "
				   "from");
	do {
		if (chan->native && !__atomic_load_n(&chan->posts, __ATOMIC_ACQUIRE))
			err = -EAGAIN;	/* nothing was ever queued */
		else
			err = take(chan, ret_ev, &seen, &pulls);
		if (err == -EAGAIN && pulls) {
			err = pull_counted(chan, &failed);
			if (!err)
				err = take(chan, ret_ev, &seen, &pulls);
		}
		/* Its descriptor stays readable, so a wait would not be one. */
		if (err == -EAGAIN && failed)
			return failed;
		if (err == -EAGAIN && !chan->native && is_nonblocking(chan)) {
			polycm_clock_spin();
			return err;
		}
		if (err != -EAGAIN)
			return err;
		/* While time moves for the only thread nobody cancels it or destroys the channel. */
		if (!chan->native && polycm_alone() && !polycm_time_is_real()) {
			moved = let_time_move_alone(chan);
			if (moved == -EINTR)
				return moved;
			*ret_ev = NULL;
			err = 0;
			if (moved > 0)
				continue;
		}
		err = wait_counted(chan, seen, pulls);
		*ret_ev = take_fetched();
	} while (!err && !*ret_ev);
	/* A provider may have an event and a complaint. */
	return *ret_ev ? 0 : err;
}
