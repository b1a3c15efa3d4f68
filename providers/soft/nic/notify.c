/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/notify.c - descriptors that are readable while a queue of events is not
 * empty: an eventfd for programs that poll, a futex for those that wait in a
 * get call.  Under the engine's lock but for nic_notify_get().
 *
 * The descriptor stays a blocking one so that O_NONBLOCK, when the program
 * sets it, can be seen; its counter is 1 exactly while `signalled' is set, so
 * reading it never blocks.  Waiting uses a futex and not poll() because a
 * signal with SA_RESTART must not end it, as it does not end the read() that
 * programs know from real devices.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "providers/soft/engine/turns.h"
#include "context.h"
#include "refuse.h"

int nic_notify_open(struct nic_notify *notify, int *ret_fd)
{
	int err;

	notify->signalled = false;
	atomic_init(&notify->sequence, 0);
	atomic_init(&notify->waiters, 0);
	notify->program_fd = ret_fd;
	notify->fd = eventfd(0, EFD_CLOEXEC);
	if (notify->fd < 0)
		return errno;
	*ret_fd = fcntl(notify->fd, F_DUPFD_CLOEXEC, 0);
	if (*ret_fd >= 0)
		return 0;
	err = errno;
	close(notify->fd);
	return err;
}

void nic_notify_close(struct nic_notify *notify)
{
	close(*notify->program_fd);
	close(notify->fd);
}

/* The number that the kernel gave to what the descriptor is of; 0: it is no eventfd.  Lock held. */
static unsigned int eventfd_id(int fd)
{
	char path[64], text[512], *at;
	unsigned int id = 0;
	ssize_t len;
	int info;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return 0;
	len = syscall(SYS_read, info, text, sizeof(text) - 1);
	syscall(SYS_close, info);
	text[len > 0 ? len : 0] = '\0';
	at = strstr(text, "eventfd-id:");
	/* Numbers begin with 0. */
	return at && sscanf(at, "eventfd-id: %u", &id) == 1 ? id + 1 : 0;
}

bool nic_notify_same(int fd, int other)
{
	unsigned int id = eventfd_id(fd);

	return id && id == eventfd_id(other);
}

void nic_notify_set(struct nic_notify *notify, bool readable)
{
	uint64_t count = 1;

	if (notify->signalled == readable)
		return;
	notify->signalled = readable;
	/* System calls by number are no cancellation points: the lock is held. */
	if (!readable) {
		syscall(SYS_read, notify->fd, &count, sizeof(count));
		return;
	}
	syscall(SYS_write, notify->fd, &count, sizeof(count));
	atomic_fetch_add(&notify->sequence, 1);
	sim_wake();	/* virtual time has no timer for it, and must not go on before it is seen */
	if (atomic_load(&notify->waiters))
		syscall(SYS_futex, &notify->sequence, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Programs cancel threads that wait here, so it must be a cancellation point like read(). */
static int wait_for_change(struct nic_notify *notify, enum turn_purpose purpose,
			   unsigned int sequence)
{
	int type, err = 0;

	atomic_fetch_add(&notify->waiters, 1);
	sim_waits_for(purpose);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	if (syscall(SYS_futex, &notify->sequence, FUTEX_WAIT_PRIVATE, sequence, NULL, NULL, 0) < 0)
		err = errno;
	pthread_setcanceltype(type, NULL);
	sim_waits_for(TURN_FOR_ANY);
	atomic_fetch_sub(&notify->waiters, 1);
	return err == EINTR ? EINTR : 0;
}

/* No event was queued at that sequence.  0: check again; else an errno. */
static int await_event(struct nic_notify *notify, enum turn_purpose purpose, unsigned int sequence,
		       unsigned int *rounds)
{
	bool nonblocking;
	int r;

	pthread_testcancel();
	if (!*rounds && !sim_is_virtual()) {
		(*rounds)++;
		sim_progress();
		return 0;
	}
	nonblocking = fcntl(notify->fd, F_GETFL) & O_NONBLOCK;
	if ((*rounds)++ == 0 && nonblocking) {
		sim_spin();
		return 0;
	}
	if (nonblocking)
		return EAGAIN;
	r = sim_idle(NULL);
	if (r < 0)
		return -r;
	return r > 0 ? 0 : wait_for_change(notify, purpose, sequence);
}

/* --- The log line about a wait that nothing can end. --- */

static const char *armed_text(const struct sim_cq *cq)
{
	switch (atomic_load(&cq->armed)) {
	case CQ_ARMED:
		return "armed";
	case CQ_ARMED_SOLICITED:
		return "armed for solicited events";
	default:
		return "not armed by ibv_req_notify_cq";
	}
}

static void describe_cqs(const struct sim_context *context, const struct sim_channel *channel,
			 char *text, size_t size)
{
	const struct sim_cq *cq;
	size_t len = 0;

	snprintf(text, size, "no CQ is on it");
	nic_list_each(cq, &context->objects[NIC_CQ], node) {
		unsigned int entries = atomic_load(&cq->head) - atomic_load(&cq->tail);

		if (cq->pub.cq.channel != &channel->pub || len >= size)
			continue;
		len += (size_t)snprintf(text + len, size - len,
					"%sCQ of %u queues, %s, %u completions in it",
					len ? ", " : "", cq->users, armed_text(cq), entries);
	}
}

static bool owns(const struct sim_context *context, int fd, char *text, size_t size)
{
	const char *device = context->verbs.context.device->name;
	const struct sim_channel *channel;
	size_t len;

	if (*context->notify.program_fd == fd) {
		snprintf(text, size, "asynchronous events of %s on descriptor %d", device, fd);
		return true;
	}
	nic_list_each(channel, &context->objects[NIC_CHANNEL], node) {
		if (*channel->notify.program_fd != fd)
			continue;
		len = (size_t)snprintf(text, size, "completion channel of %s on descriptor %d: ",
				       device, fd);
		if (len < size)
			describe_cqs(context, channel, text + len, size - len);
		return true;
	}
	return false;
}

bool sim_nic_owns_fd(int fd, char *text, size_t size)
{
	const struct sim_context *context;

	nic_list_each(context, &nic_contexts, node)
		if (!context->closed && owns(context, fd, text, size))
			return true;
	return false;
}

static void log_deadlock(const char *call, int fd)
{
	char text[256];
	bool found;

	sim_lock();
	found = sim_nic_owns_fd(fd, text, sizeof(text));
	sim_unlock();
	nic_log(POLYCM_LOG_ERROR, "%s waits for what can never happen: %s", call,
		found ? text : "its object is gone");
}

int nic_notify_get(struct nic_notify *notify, const char *call, enum turn_purpose purpose,
		   bool (*take)(struct nic_notify *notify, void *ret_event), void *ret_event)
{
	unsigned int sequence, rounds = 0;
	bool taken;
	int err;

	do {
		sim_lock();
		taken = take(notify, ret_event);
		sequence = atomic_load(&notify->sequence);
		sim_unlock();
		if (taken)
			return 0;
		err = await_event(notify, purpose, sequence, &rounds);
	} while (!err);
	if (err == EDEADLK)
		log_deadlock(call, *notify->program_fd);
	errno = err;
	return -1;
}
