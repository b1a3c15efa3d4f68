/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs/table.c - the list of simulated devices, their tables of verbs without empty
 * slots, and the mark by which they are recognised.
 *
 * The lock protects only the list; a device's mark and table do not change between
 * polycm_shim_adopt() and polycm_shim_release().
 */
#include "config.h"

#include "table.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/why.h"
#include "core/base/abi.h"
#include "rows.h"
#include "shim.h"

static pthread_mutex_t shim_lock = PTHREAD_MUTEX_INITIALIZER;
static struct polycm_verbs_device **list;
static size_t list_len;

struct ibv_context *polycm_shim_mark(struct ibv_device *device, int cmd_fd)
{
	(void)device;
	(void)cmd_fd;
	return NULL;
}

void shim_refuse(const char *call)
{
	if (!polycm_in_verb)
		polycm_log(POLYCM_LOG_WARN, "%s refused: simulated devices have no such call: %s", call,
			   strerror(EOPNOTSUPP));
	errno = EOPNOTSUPP;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define STUB(slot, result, failure, parameters)                                                    \
	static result stub_##slot parameters                                                       \
	{                                                                                          \
		shim_refuse("ibv_" #slot);                                                         \
		return failure;                                                                    \
	}
#define PLAIN_STUB(slot, version, result, failure, context, parameters, arguments)                 \
	STUB(slot, result, failure, parameters)
SHIM_PLAIN_ROWS(PLAIN_STUB)
SHIM_SLOT_ROWS(STUB)

static void stub_ack_async_event(struct ibv_async_event *event)
{
}

static void stub_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
}

#pragma GCC diagnostic pop

#define FILL(slot, ...)                                                                            \
	if (!table->slot)                                                                          \
		table->slot = stub_##slot;

static void fill_stubs(struct polycm_verbs *table)
{
	SHIM_PLAIN_ROWS(FILL)
	SHIM_SLOT_ROWS(FILL)
	FILL(ack_async_event)
	FILL(ack_cq_events)
}

static const struct polycm_abi_struct verbs_struct =
	POLYCM_ABI_STRUCT("its table of verbs", struct polycm_verbs, query_ece);

static int check(const struct polycm_verbs *theirs, uint32_t minor, char *why, size_t why_size)
{
	if (theirs && polycm_abi_check(&verbs_struct, theirs->size, minor, why, why_size))
		return -EINVAL;
	if (theirs && theirs->open_device && theirs->close_device)
		return 0;
	(void)snprintf(why, why_size, theirs ? "open_device or close_device is missing"
					     : "it has no table of verbs");
	return -EINVAL;
}

int polycm_shim_adopt(struct polycm_verbs_device *device, uint32_t minor, char *why, size_t why_size)
{
	const struct polycm_verbs *theirs = device->verbs;
	struct polycm_verbs_device **longer;
	struct polycm_verbs *table;
	size_t size;
	int r;

	r = check(theirs, minor, why, why_size);
	if (r)
		return r;
	table = calloc(1, sizeof(*table));
	if (!table)
		return -ENOMEM;
	size = theirs->size < sizeof(*table) ? theirs->size : sizeof(*table);
	memcpy(table, theirs, size);
	fill_stubs(table);

	pthread_mutex_lock(&shim_lock);
	longer = realloc(list, (list_len + 1) * sizeof(*list));
	if (!longer) {
		r = -ENOMEM;
		goto err_unlock;
	}
	list = longer;
	list[list_len++] = device;
	device->core = table;
	device->device._ops._dummy1 = polycm_shim_mark;
	pthread_mutex_unlock(&shim_lock);
	return 0;

err_unlock:
	pthread_mutex_unlock(&shim_lock);
	free(table);
	return r;
}

void polycm_shim_hide(struct polycm_verbs_device *device)
{
	pthread_mutex_lock(&shim_lock);
	for (size_t i = 0; i < list_len; i++) {
		if (list[i] != device)
			continue;
		memmove(&list[i], &list[i + 1], (list_len - i - 1) * sizeof(*list));
		list_len--;
		break;
	}
	pthread_mutex_unlock(&shim_lock);
}

void polycm_shim_release(struct polycm_verbs_device *device)
{
	polycm_shim_hide(device);
	device->device._ops._dummy1 = NULL;
	free(device->core);
	device->core = NULL;
}

bool polycm_shim_owns(const struct ibv_device *device)
{
	return shim_table(device) != NULL;
}

struct polycm_verbs_device *polycm_shim_find(const char *name)
{
	struct polycm_verbs_device *found = NULL;

	pthread_mutex_lock(&shim_lock);
	for (size_t i = 0; i < list_len && !found; i++)
		if (!strcmp(list[i]->device.ibdev_path, name) ||
		    !strcmp(list[i]->device.dev_name, name))
			found = list[i];
	pthread_mutex_unlock(&shim_lock);
	return found;
}

int polycm_shim_list(struct polycm_verbs_device ***ret_devices, size_t *ret_num)
{
	struct polycm_verbs_device **copy;
	size_t num;

	pthread_mutex_lock(&shim_lock);
	num = list_len;
	copy = calloc(num + 1, sizeof(struct polycm_verbs_device *));
	if (copy && num)
		memcpy(copy, list, num * sizeof(struct polycm_verbs_device *));
	pthread_mutex_unlock(&shim_lock);
	if (!copy)
		return -ENOMEM;
	*ret_devices = copy;
	*ret_num = num;
	return 0;
}
