/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_stand_in.c - descriptors, ids and the queues of events; commands are
 * taken apart in kernel_stand_in_command.c.
 */
#include "kernel_stand_in_internal.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "kernel_stand_in_command.h"

#define MAX_FILES 128

struct stand_in stand_in;
struct si_id si_ids[SI_MAX_IDS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct si_file files[MAX_FILES];
static uint32_t newest;
static unsigned int generation;

void si_violation(const char *format, ...)
{
	va_list args;

	if (stand_in.violation[0])
		return;
	va_start(args, format);
	vsnprintf(stand_in.violation, sizeof(stand_in.violation), format, args);
	va_end(args);
}

/* ------------------------------------------------------------------------
 * Events.  A file's descriptor counts 0 or 1: whether it has any.
 */

static void set_readable(struct si_file *file, bool readable)
{
	uint64_t count = 1;
	ssize_t r;

	if (!file->open)
		return;
	r = readable ? write(file->fd, &count, sizeof(count))
		     : read(file->fd, &count, sizeof(count));
	if (r != (ssize_t)sizeof(count))
		si_violation("somebody else reads the descriptor");
}

struct si_event *si_event_new(struct si_id *id, enum rdma_cm_event_type type, int status)
{
	struct si_event *event = calloc(1, sizeof(*event));

	if (!event)
		abort();
	event->id = id;
	event->resp.uid = id->uid;
	event->resp.id = id->id;
	event->resp.event = type;
	event->resp.status = (uint32_t)status;
	return event;
}

static void append(struct si_file *file, struct si_event *event)
{
	struct si_event **end = &file->events;

	if (!file->events)
		set_readable(file, true);
	while (*end)
		end = &(*end)->next;
	event->next = NULL;
	*end = event;
}

static void unlink_event(struct si_file *file, struct si_event **link)
{
	*link = (*link)->next;
	if (!file->events)
		set_readable(file, false);
}

void si_event_queue(struct si_event *event)
{
	if (event->id->file->open)
		append(event->id->file, event);
	else
		free(event);
}

void si_tell(struct si_id *id, enum rdma_cm_event_type type, int status)
{
	if (id->uid && !id->removed)
		si_event_queue(si_event_new(id, type, status));
}

/* Those of an id (or of a group of it) that nobody has fetched. */
static void drop_events(struct si_id *id, const struct si_group *group)
{
	struct si_event **link = &id->file->events, *event;

	while ((event = *link)) {
		if (event->id != id || (group && event->group != group)) {
			link = &event->next;
			continue;
		}
		unlink_event(id->file, link);
		if (event->child)
			si_id_free(event->child);
		free(event);
		/* Others may have come by what the end of the child did. */
		link = &id->file->events;
	}
}

void si_group_drop_events(struct si_id *id, const struct si_group *group)
{
	drop_events(id, group);
}

void si_move_events(struct si_id *id, struct si_file *to)
{
	struct si_event **link = &id->file->events, *event;
	struct si_file *from = id->file;

	while ((event = *link)) {
		if (event->id != id) {
			link = &event->next;
			continue;
		}
		unlink_event(from, link);
		append(to, event);
	}
	id->file = to;
}

/* Called with the lock held, waits without it. */
int si_next_event(struct si_file *file, struct si_event **ret_event)
{
	struct pollfd pfd = { .fd = file->fd, .events = POLLIN };
	int flags, r;

	while (!file->events) {
		flags = fcntl(file->fd, F_GETFL);
		if (flags == -1 || !file->open)
			return -EBADF;
		if (flags & O_NONBLOCK)
			return -EAGAIN;
		pthread_mutex_unlock(&lock);
		r = poll(&pfd, 1, -1) < 0 ? -errno : 0;
		pthread_mutex_lock(&lock);
		if (r)
			return r;
	}
	*ret_event = file->events;
	unlink_event(file, &file->events);
	return 0;
}

/* ------------------------------------------------------------------------
 * Ids.
 */

struct si_id *si_id_alloc(struct si_file *file, uint64_t uid, uint16_t ps, uint8_t qp_type)
{
	struct si_id *id = si_ids;

	while (id < si_ids + SI_MAX_IDS && id->used)
		id++;
	if (id == si_ids + SI_MAX_IDS)
		return NULL;
	memset(id, 0, sizeof(*id));
	id->used = true;
	id->id = (uint32_t)(id - si_ids) + SI_MAX_IDS * ++generation;
	id->uid = uid;
	id->file = file;
	id->ps = ps;
	id->qp_type = qp_type;
	newest = id->id;
	stand_in.ids++;
	return id;
}

/* The request of an id that ended before anybody fetched it. */
static void forget_child(struct si_file *file, const struct si_id *child)
{
	for (struct si_event *event = file->events; event; event = event->next)
		if (event->child == child)
			event->child = NULL;
}

void si_id_free(struct si_id *id)
{
	id->state = STAND_IN_DESTROYING;
	si_cm_destroy(id);
	drop_events(id, NULL);
	si_groups_free(id);
	for (size_t i = 0; i < SI_MAX_IDS; i++)
		if (si_ids[i].used && si_ids[i].peer == id)
			si_ids[i].peer = NULL;
	for (size_t i = 0; i < MAX_FILES && id->child; i++)
		forget_child(&files[i], id);
	id->used = false;
	stand_in.ids--;
}

struct si_id *si_id_of(uint32_t number)
{
	struct si_id *id = &si_ids[number % SI_MAX_IDS];

	return id->used && id->id == number ? id : NULL;
}

/* ------------------------------------------------------------------------
 * The host.
 */

static struct si_file *file_of(int fd)
{
	for (size_t i = 0; i < MAX_FILES; i++)
		if (files[i].open && files[i].fd == fd)
			return &files[i];
	return NULL;
}

struct si_file *si_file_of(uint32_t fd)
{
	return file_of((int)fd);
}

int stand_in_move(int fd)
{
	struct si_file *file;
	int moved = -1;

	pthread_mutex_lock(&lock);
	file = file_of(fd);
	if (file) {
		moved = fcntl(fd, F_DUPFD_CLOEXEC, fd + 1);
		file->fd = moved;
		close(fd);
	}
	pthread_mutex_unlock(&lock);
	return moved;
}

static int host_abi_version(void)
{
	return stand_in.abi_version;
}

static int host_open(void)
{
	struct si_file *file = NULL;
	int r = stand_in.open_error;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < MAX_FILES && !file; i++)
		if (!files[i].open)
			file = &files[i];
	if (!r && !file)
		r = -EMFILE;
	if (!r) {
		file->fd = eventfd(0, EFD_CLOEXEC);
		file->open = file->fd >= 0;
		file->events = NULL;
		r = file->open ? file->fd : -errno;
		stand_in.files++;
		stand_in.opens++;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

/* The kernel ends every id that is left. */
static void host_close(int fd)
{
	struct si_file *file;

	pthread_mutex_lock(&lock);
	file = file_of(fd);
	if (!file) {
		si_violation("closes descriptor %d, which is not open", fd);
	} else {
		for (size_t i = 0; i < SI_MAX_IDS; i++)
			if (si_ids[i].used && si_ids[i].file == file)
				si_id_free(&si_ids[i]);
		file->open = false;
		stand_in.files--;
		close(fd);
	}
	pthread_mutex_unlock(&lock);
}

static ssize_t give(int fd, const void *command, size_t len)
{
	struct si_file *file;
	ssize_t r = -EBADF;

	pthread_mutex_lock(&lock);
	file = file_of(fd);
	if (file)
		r = si_command(file, command, len);
	else
		si_violation("a command on descriptor %d, which is not open", fd);
	pthread_mutex_unlock(&lock);
	return r;
}

/* GET_EVENT waits, no other command does. */
static void check_way(const void *command, size_t len, bool waits)
{
	struct rdma_ucm_cmd_hdr hdr;

	if (len < sizeof(hdr))
		return;
	memcpy(&hdr, command, sizeof(hdr));
	if ((hdr.cmd == RDMA_USER_CM_CMD_GET_EVENT) == waits)
		return;
	pthread_mutex_lock(&lock);
	si_violation("%s given as a command that %s", stand_in_command_name(hdr.cmd),
		     waits ? "waits" : "does not wait");
	pthread_mutex_unlock(&lock);
}

static ssize_t host_command(int fd, const void *command, size_t len)
{
	ssize_t r;
	int old;

	check_way(command, len, false);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	r = give(fd, command, len);
	pthread_setcancelstate(old, NULL);
	return r;
}

static ssize_t host_wait(int fd, const void *command, size_t len)
{
	check_way(command, len, true);
	/* As write() is. */
	pthread_testcancel();
	return give(fd, command, len);
}

static int host_devices(struct kernel_host_device **ret_devices, size_t *ret_num)
{
	struct kernel_host_device *devices;
	size_t num = 0;

	if (stand_in.devices_error)
		return stand_in.devices_error;
	devices = calloc(sizeof(si_devices) / sizeof(si_devices[0]) + 1, sizeof(*devices));
	if (!devices)
		return -ENOMEM;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < sizeof(si_devices) / sizeof(si_devices[0]); i++)
		if (si_devices[i].present)
			devices[num++] = si_devices[i].host;
	pthread_mutex_unlock(&lock);
	*ret_devices = devices;
	*ret_num = num;
	return 0;
}

const struct kernel_host stand_in_host = {
	.abi_version = host_abi_version,
	.open = host_open,
	.command = host_command,
	.wait = host_wait,
	.close = host_close,
	.devices = host_devices,
};

/* ------------------------------------------------------------------------
 * For tests.
 */

static struct si_id *must_be_id(uint32_t number)
{
	struct si_id *id = si_id_of(number);

	if (!id) {
		fprintf(stderr, "the stand-in has no id %u\n", number);
		abort();
	}
	return id;
}

void stand_in_plug(const char *name, bool present)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < sizeof(si_devices) / sizeof(si_devices[0]); i++) {
		if (strcmp(si_devices[i].host.name, name))
			continue;
		si_devices[i].present = present;
		/* A device that comes again is another one. */
		if (present)
			si_device_renew(&si_devices[i]);
		if (present && si_devices[i].host.index >= 0)
			si_devices[i].host.index += SI_DEVICES;
		for (size_t j = 0; j < SI_MAX_IDS && !present; j++) {
			struct si_id *id = &si_ids[j];

			if (!id->used || id->device != &si_devices[i] || id->removed)
				continue;
			si_tell(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
			id->state = STAND_IN_DEVICE_REMOVAL;
			id->removed = true;
		}
	}
	pthread_mutex_unlock(&lock);
}

/* Same source port and, unless it listens, same destination. */
static bool is_that(const struct si_id *id, const struct rdma_cm_id *pub)
{
	const struct rdma_addr *addr = &pub->route.addr;

	if (!id->used || id->ps != pub->ps || !id->src.ss_family ||
	    si_addr_port(&id->src) != si_addr_port(&addr->src_storage))
		return false;
	if (!addr->dst_storage.ss_family)
		return !id->dst.ss_family;
	return id->dst.ss_family && si_addr_port(&id->dst) == si_addr_port(&addr->dst_storage) &&
	       si_addr_same(&id->dst, &addr->dst_storage);
}

uint32_t stand_in_find(const struct rdma_cm_id *pub)
{
	uint32_t found = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < SI_MAX_IDS && !found; i++)
		if (is_that(&si_ids[i], pub))
			found = si_ids[i].id;
	pthread_mutex_unlock(&lock);
	return found;
}

uint32_t stand_in_newest(void)
{
	uint32_t id;

	pthread_mutex_lock(&lock);
	id = newest;
	pthread_mutex_unlock(&lock);
	return id;
}

enum stand_in_state stand_in_state(uint32_t id)
{
	enum stand_in_state state;

	pthread_mutex_lock(&lock);
	state = must_be_id(id)->state;
	pthread_mutex_unlock(&lock);
	return state;
}

uint64_t stand_in_uid(uint32_t id)
{
	uint64_t uid;

	pthread_mutex_lock(&lock);
	uid = must_be_id(id)->uid;
	pthread_mutex_unlock(&lock);
	return uid;
}

uint64_t stand_in_group_uid(uint32_t id)
{
	uint64_t uid;

	pthread_mutex_lock(&lock);
	uid = must_be_id(id)->groups->uid;
	pthread_mutex_unlock(&lock);
	return uid;
}

void stand_in_post(uint32_t id, enum rdma_cm_event_type type, int status)
{
	pthread_mutex_lock(&lock);
	si_event_queue(si_event_new(must_be_id(id), type, status));
	pthread_mutex_unlock(&lock);
}

void stand_in_post_raw(uint32_t id, const struct rdma_ucm_event_resp *resp)
{
	struct si_event *event;
	struct si_group *group;

	pthread_mutex_lock(&lock);
	event = si_event_new(must_be_id(id), 0, 0);
	event->resp = *resp;
	for (group = event->id->groups; group; group = group->next)
		if (group->uid == resp->uid)
			event->group = group;
	si_event_queue(event);
	pthread_mutex_unlock(&lock);
}

void stand_in_time_passes(void)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < SI_MAX_IDS; i++) {
		if (!si_ids[i].used || si_ids[i].cm != CM_TIMEWAIT)
			continue;
		si_ids[i].cm = CM_IDLE;
		if (si_ids[i].state == STAND_IN_DISCONNECT)
			si_tell(&si_ids[i], RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	}
	pthread_mutex_unlock(&lock);
}

/* As a test begins: everything plugged in, no orders, counts at zero. */
void stand_in_reset(void)
{
	struct stand_in fresh = {
		.abi_version = RDMA_USER_CM_ABI_VERSION,
		.known_commands = STAND_IN_COMMANDS,
	};

	pthread_mutex_lock(&lock);
	fresh.files = stand_in.files;
	fresh.ids = stand_in.ids;
	fresh.groups = stand_in.groups;
	stand_in = fresh;
	si_devices_reset();
	pthread_mutex_unlock(&lock);
}
