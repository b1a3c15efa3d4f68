/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs/table.c - the tables of verbs of simulated devices, without empty slots, and the
 * mark by which these devices are recognised.  Neither changes between polycm_shim_adopt()
 * and polycm_shim_release().
 */
#include "config.h"

#include "table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/why.h"
#include "core/base/abi.h"
#include "rows.h"
#include "shim.h"

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
	POLYCM_ABI_STRUCT("its table of verbs", struct polycm_verbs, unimport_dm);

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
	struct polycm_verbs *table;
	int r;

	r = check(theirs, minor, why, why_size);
	if (r)
		return r;
	table = malloc(sizeof(*table));
	if (!table)
		return -ENOMEM;
	polycm_abi_copy(table, sizeof(*table), theirs);
	fill_stubs(table);

	device->core = table;
	device->device._ops._dummy1 = polycm_shim_mark;
	return 0;
}

void polycm_shim_release(struct polycm_verbs_device *device)
{
	device->device._ops._dummy1 = NULL;
	free(device->core);
	device->core = NULL;
}
