/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel/channel.c - a channel is an open file of the RDMA CM's; reading it
 * is the command GET_EVENT, which waits as the descriptor says.
 */
#include "config.h"
#include "internal.h"

#include <pthread.h>

#define MIN_ABI	3
#define NO_EVENT UINT32_MAX

struct reading {
	struct kernel_channel *chan;
	struct rdma_ucm_event_resp event;
};

/* Logged once, with advice; every caller gets the error. */
static void log_open_error(int error)
{
	static atomic_flag logged = ATOMIC_FLAG_INIT;
	const char *advice;

	switch (error) {
	case -ENOENT:
	case -ENODEV:
	case -ENXIO:
		advice = "load the module rdma_ucm";
		break;
	case -EACCES:
	case -EPERM:
		advice = "the user may not open it; programs without privileges need mode 0666";
		break;
	case -EMFILE:
	case -ENFILE:
		return;	/* the program's own limit, perhaps for a moment */
	default:
		advice = "is this kernel's RDMA CM working?";
		break;
	}
	if (!atomic_flag_test_and_set(&logged))
		polycm_log(POLYCM_LOG_ERROR, "/dev/infiniband/rdma_cm cannot be opened: %s: %s",
			   strerror(-error), advice);
}

/* If the version cannot be read, opening the device shows whether it is there. */
static int check_abi(void)
{
	static atomic_flag logged = ATOMIC_FLAG_INIT;
	static atomic_bool good;	/* asked once */
	int version;

	if (atomic_load(&good))
		return 0;
	version = polycm_kernel_host->abi_version();
	if (version < 0 || (version >= MIN_ABI && version <= RDMA_USER_CM_ABI_VERSION)) {
		atomic_store(&good, true);
		return 0;
	}
	if (!atomic_flag_test_and_set(&logged))
		polycm_log(POLYCM_LOG_ERROR, "the kernel's RDMA CM has version %d of its interface; "
			   "versions %d to %d are supported", version, MIN_ABI,
			   RDMA_USER_CM_ABI_VERSION);
	return -EPERM;
}

int kernel_op_channel_open(void *ctx, void *chan, int *ret_fd)
{
	struct kernel_channel *self = chan;
	int r;

	(void)ctx;
	r = check_abi();
	if (r)
		return r;
	r = polycm_kernel_host->open();
	if (r < 0) {
		log_open_error(r);
		return r;
	}
	self->own_fd = r;
	self->fd_at = &self->own_fd;
	*ret_fd = r;
	return 0;
}

void polycm_kernel_channel_follow(void *chan, const int *fd)
{
	struct kernel_channel *self = chan;

	self->fd_at = fd;
}

void kernel_op_channel_close(void *chan)
{
	struct kernel_channel *self = chan;

	polycm_kernel_host->close(kernel_fd(self));
}

/* Also when the thread is cancelled in the command: the kernel counts the event as delivered. */
static void finish(void *arg)
{
	struct reading *reading = arg;

	if (reading->event.event != NO_EVENT)
		kernel_event_deliver(reading->chan, &reading->event);
	kernel_readers_leave(reading->chan);
}

int kernel_op_channel_read(void *chan)
{
	struct reading reading;
	KERNEL_MESSAGE(rdma_ucm_get_event) message = {
		.body.response = kernel_pointer(&reading.event),
	};
	int r;

	polycm_clear(&reading, sizeof(reading));
	reading.chan = chan;
	reading.event.event = NO_EVENT;

	kernel_readers_enter(reading.chan);
	pthread_cleanup_push(finish, &reading);
	r = kernel_command_by(polycm_kernel_host->wait, kernel_fd(reading.chan),
			      RDMA_USER_CM_CMD_GET_EVENT, &message, sizeof(message),
			      sizeof(reading.event));
	pthread_cleanup_pop(1);
	return r;
}
