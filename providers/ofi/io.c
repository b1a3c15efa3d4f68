/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/io.c - see io.h.
 *
 * While the program polls steadily, it fetches what comes in, and the thread rests: else both would
 * wake up for each packet.  The thread checks at intervals whether the program still polls, and is
 * woken when that begins to wait.  Only while it does so may anything be put off.  A program that
 * polls, and in between waits for its memory to change, is found out by what it leaves lying.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "providers/soft/engine/engine.h"
#include "held_signals.h"
#include "io.h"

#define EVENTS 64
#define REST_MS 1		/* between two checks */
#define WINDOW SIM_US(100)	/* in which polls are counted */
#define POLLS_PER_WINDOW 32u	/* of a program that does nothing but poll and answer */
#define MISS_NS 30000		/* so long something lies there, and the program does not poll */
#define DISTRUST_MIN SIM_MS(10)	/* so long its polls do not count then */
#define DISTRUST_MAX SIM_MS(640)
#define POLLS_LATELY SIM_US(400)	/* so long after such a window another one is expected */
#define POLLS_PER_PUT_OFF 4u	/* so many polls after which an answer does not wait for company */
#define POLLS_PER_LOOK 16u	/* of the stream that was read last, for one at all that are ready */

/* The thread's; it frees it when it ends, which may be after the next start. */
struct io {
	int epoll, wake;		/* wake: to stop, or to end a rest */
	bool stop;
	pthread_t thread;
};

static struct io *io;			/* NULL: not started */
static struct {
	struct epoll_event events[EVENTS];
	int num;		/* of those that are being handled; a source may leave meanwhile */
} batch;
static struct ofi_source *latest;	/* that was ready; NULL: it left */
static unsigned int polls, polls_put_off;
bool (*ofi_io_put_off)(bool all);
static _Atomic uint64_t polled_at;	/* by the program, or 0 */
static atomic_bool resting;
static struct {
	uint64_t began;
	unsigned int polls;
} window;
static struct {
	uint64_t until, length;
} distrust;
static atomic_uint all_polls;
/* The thread will look, with the lock, as soon as the program does not poll steadily any more. */
static bool watched;

int ofi_io_add(struct ofi_source *source)
{
	struct epoll_event event = { .events = source->events, .data.ptr = source };

	return epoll_ctl(io->epoll, EPOLL_CTL_ADD, source->fd, &event) ? -errno : 0;
}

void ofi_io_change(struct ofi_source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	if (source->events == events)
		return;
	source->events = events;
	(void)epoll_ctl(io->epoll, EPOLL_CTL_MOD, source->fd, &event);
}

void ofi_io_remove(struct ofi_source *source)
{
	if (io)
		(void)epoll_ctl(io->epoll, EPOLL_CTL_DEL, source->fd, NULL);
	for (int i = 0; i < batch.num; i++)
		if (batch.events[i].data.ptr == source)
			batch.events[i].data.ptr = NULL;
	if (latest == source)
		latest = NULL;
}

/* All that is ready now.  False: nothing was. */
static bool handle_ready(void)
{
	int num;

	if (!io || batch.num)
		return false;
	num = epoll_wait(io->epoll, batch.events, EVENTS, 0);
	if (num <= 0)
		return false;
	batch.num = num;
	for (int i = 0; i < num; i++) {
		struct ofi_source *source = batch.events[i].data.ptr;

		if (!source)
			continue;
		if (batch.events[i].events == EPOLLIN)
			latest = source;
		source->ready(source, batch.events[i].events);
	}
	batch.num = 0;
	return true;
}

static void send_put_off(bool all)
{
	if (ofi_io_put_off && ofi_io_put_off(all))
		polls_put_off++;
	else
		polls_put_off = 0;
}

bool ofi_io_poll(void)
{
	bool found = handle_ready();

	send_put_off(true);
	return found;
}

static void wake_thread(void)
{
	uint64_t one = 1;

	(void)!write(io->wake, &one, sizeof(one));
}

static void note_poll(void)
{
	uint64_t now = sim_now(), passed = now - window.began;
	bool steady;

	atomic_fetch_add_explicit(&all_polls, 1, memory_order_relaxed);
	window.polls++;
	if (passed < WINDOW)
		return;
	steady = window.polls >= POLLS_PER_WINDOW && passed < 8 * WINDOW && now >= distrust.until;
	window.began = now;
	window.polls = 0;
	if (!steady || !io)
		return;
	atomic_store_explicit(&polled_at, now, memory_order_relaxed);
	if (watched)
		return;
	/* It sleeps until something comes, and would not look by itself. */
	watched = true;
	wake_thread();
}

/* Mostly something comes from where something came before, which costs one system call. */
void ofi_io_fetch(void)
{
	note_poll();
	if (latest && !batch.num && ++polls % POLLS_PER_LOOK)
		latest->ready(latest, EPOLLIN);
	else
		(void)handle_ready();
	send_put_off(!watched || polls_put_off >= POLLS_PER_PUT_OFF);
}

void ofi_io_idle(void)
{
	if (!io)
		return;
	send_put_off(true);
	if (!atomic_load_explicit(&polled_at, memory_order_relaxed))
		return;
	atomic_store(&polled_at, 0);
	if (atomic_load(&resting))
		wake_thread();
}

bool ofi_io_is_watched(void)
{
	return watched;
}

static bool is_fetched(void)
{
	uint64_t at = atomic_load(&polled_at);

	return at && (int64_t)(sim_now() - at) < (int64_t)POLLS_LATELY;
}

/*
 * Until a source is ready, or the thread is to check or to stop.  Without the lock.  Since it has
 * relied on the program, it does not sleep before it has looked.
 */
static void wait_or_rest(const struct io *own, bool relied)
{
	struct pollfd wake = { .fd = own->wake, .events = POLLIN };
	struct epoll_event unused;
	uint64_t count;

	atomic_store(&resting, true);
	if (is_fetched())
		(void)poll(&wake, 1, REST_MS);
	else if (!relied)
		(void)epoll_wait(own->epoll, &unused, 1, -1);
	atomic_store(&resting, false);
	(void)!read(own->wake, &count, sizeof(count));
}

/* Does something lie there that the program, which is relied on, does not fetch? */
static bool program_misses(const struct io *own)
{
	unsigned int before = atomic_load(&all_polls);
	const struct timespec pause = { .tv_nsec = MISS_NS };
	struct epoll_event unused;

	if (epoll_wait(own->epoll, &unused, 1, 0) <= 0)
		return false;
	(void)ppoll(NULL, 0, &pause, NULL);
	return atomic_load(&all_polls) == before && epoll_wait(own->epoll, &unused, 1, 0) > 0;
}

/* Its polls do not count for a while; longer, if that comes again soon. */
static void stop_trusting(void)
{
	uint64_t now = sim_now();
	bool again = now - distrust.until < 2 * distrust.length;

	if (!again)
		distrust.length = DISTRUST_MIN;
	else if (distrust.length < DISTRUST_MAX)
		distrust.length *= 2;
	distrust.until = now + distrust.length;
	atomic_store(&polled_at, 0);
}

static void *io_thread(void *arg)
{
	struct io *own = arg;
	bool stop = false, relied = false, misses;

	pthread_setname_np(pthread_self(), "polycm-ofi");
	while (!stop) {
		wait_or_rest(own, relied);
		misses = relied && is_fetched() && program_misses(own);
		if (!misses && is_fetched()) {
			relied = true;
			continue;
		}
		sim_lock();
		if (misses)
			stop_trusting();
		stop = own->stop;
		relied = false;
		if (!stop) {
			watched = false;
			(void)ofi_io_poll();
		}
		sim_unlock();
	}
	close(own->wake);
	close(own->epoll);
	free(own);
	return NULL;
}

static int start_thread(struct io *new)
{
	sigset_t old;
	int error;

	hold_signals(&old);
	error = pthread_create(&new->thread, NULL, io_thread, new);
	release_signals(&old);
	if (error)
		return sim_refuse(-error, "the thread for the network cannot be started: raise the "
					  "limit on threads or memory");
	pthread_detach(new->thread);
	return 0;
}

int ofi_io_start(void)
{
	struct epoll_event wake = { .events = EPOLLIN };
	struct io *new;
	int r;

	if (io)
		return 0;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	new->epoll = epoll_create1(EPOLL_CLOEXEC);
	new->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = new->epoll < 0 || new->wake < 0 ||
	    epoll_ctl(new->epoll, EPOLL_CTL_ADD, new->wake, &wake) ? -errno : start_thread(new);
	if (r < 0)
		goto err_close;
	io = new;
	return 0;

err_close:
	if (new->wake >= 0)
		close(new->wake);
	if (new->epoll >= 0)
		close(new->epoll);
	free(new);
	return r;
}

void ofi_io_stop(void)
{
	if (!io)
		return;
	io->stop = true;
	atomic_store(&polled_at, 0);
	watched = false;
	wake_thread();
	io = NULL;
	batch.num = 0;
}

void ofi_io_forget(void)
{
	if (!io)
		return;
	close(io->wake);
	close(io->epoll);
	free(io);
	io = NULL;
	batch.num = 0;
	latest = NULL;
	atomic_store(&polled_at, 0);
	watched = false;
}
