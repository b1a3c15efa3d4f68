/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/io.c - see io.h.
 *
 * While the program polls, it fetches what comes in, and the thread only checks at intervals
 * whether it still does: else both would wake up for each packet.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "providers/soft/engine/engine.h"
#include "io.h"

#define EVENTS 64
#define CHECK_EVERY 1		/* ms, while the program polls */

/* The thread's; it frees it when it ends, which may be after the next start. */
struct io {
	int epoll, wake;		/* wake: to stop */
	bool stop;
	pthread_t thread;
};

static struct io *io;			/* NULL: not started */
static struct {
	struct epoll_event events[EVENTS];
	int num;		/* of those that are being handled; a source may leave meanwhile */
} batch;

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
}

bool ofi_io_poll(void)
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

		if (source)
			source->ready(source, batch.events[i].events);
	}
	batch.num = 0;
	return true;
}

/* Until a source is ready, or the thread is to stop.  Without the lock. */
static void sleep_for(const struct io *own)
{
	struct epoll_event unused;
	bool polls = sim_program_polls();

	if (polls)
		(void)usleep(CHECK_EVERY * 1000);
	else
		(void)epoll_wait(own->epoll, &unused, 1, -1);
}

static void *io_thread(void *arg)
{
	struct io *own = arg;
	bool stop = false;

	while (!stop) {
		sleep_for(own);
		sim_lock();
		stop = own->stop;
		if (!stop)
			(void)ofi_io_poll();
		sim_unlock();
	}
	close(own->wake);
	close(own->epoll);
	free(own);
	return NULL;
}

static int start_thread(struct io *new)
{
	sigset_t all, old;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&new->thread, NULL, io_thread, new);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error)
		return sim_refuse(-error, "the thread for the network cannot be started: raise the "
					  "limit on threads or memory");
	pthread_setname_np(new->thread, "polycm-ofi");
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
	uint64_t one = 1;

	if (!io)
		return;
	io->stop = true;
	(void)!write(io->wake, &one, sizeof(one));
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
}
