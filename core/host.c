/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * core/host.c - the core as providers see it.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/block.h"
#include "core/base/clock.h"
#include "core/device/device.h"
#include "core/cm/id.h"
#include "core/base/interposer.h"
#include "core/plugin/kernel_client.h"
#include "core/base/log.h"
#include "core/plugin/options.h"
#include "core/plugin/registry.h"
#include "core/cm/ret.h"

#define SMALL_BLOCK 1024u

static const struct polycm_clock_services clock_services = {
	.size = sizeof(clock_services),
	.install = polycm_clock_install,
	.show = polycm_clock_show,
	.real_ns = polycm_real_ns,
	.cond_wait = polycm_cond_wait,
	.time_moved = polycm_time_moved,
};

static const struct polycm_verbs_services verbs_services = {
	.size = sizeof(verbs_services),
	.why_shown = polycm_why_shown,
	.only_looked_at = polycm_registry_only_looked_at,
};

#ifdef LOCK_ORDER_CHECKED
static struct lock_order_held *(*const locks_held)(void) = lock_order_held;
#endif

static const void *host_extension(const char *name, unsigned int version)
{
	if (!name)
		return NULL;
	if (!strcmp(name, POLYCM_KERNEL) && version == POLYCM_KERNEL_VERSION)
		return &polycm_kernel_table;
	if (!strcmp(name, POLYCM_VERBS) && version == POLYCM_VERBS_VERSION)
		return &verbs_services;
	if (!strcmp(name, POLYCM_CLOCK) && version == POLYCM_CLOCK_VERSION)
		return &clock_services;
#ifdef LOCK_ORDER_CHECKED
	if (!strcmp(name, LOCK_ORDER_SHARED))
		return &locks_held;
#endif
	return NULL;
}

/* calloc() does without the small blocks that the C library keeps at hand for a thread. */
static void *host_alloc(size_t size)
{
	void *memory;

	if (size > SMALL_BLOCK)
		return calloc(1, size);
	memory = malloc(size);
	if (memory)
		polycm_clear(memory, size);
	return memory;
}

const struct polycm_core polycm_core_table = {
	.size = sizeof(polycm_core_table),
	.abi_minor = POLYCM_ABI_MINOR,
	.post_event = polycm_post_event,
	.child_create = polycm_child_create,
	.child_destroy = polycm_child_destroy,
	.device_add = polycm_device_add,
	.device_remove = polycm_device_remove,
	.device_gone = polycm_device_gone,
	.device_cookie = polycm_device_cookie,
	.transport = polycm_registry_transport,
	.setting = polycm_setting,
	.log_enabled = polycm_log_enabled,
	.log = polycm_log_id,
	.now_ns = polycm_now_ns,
	.timer_start = polycm_timer_start,
	.timer_cancel = polycm_timer_cancel,
	.alloc = host_alloc,
	.free = free,
	.why = polycm_why,
	.extension = host_extension,
	.sleep = polycm_sleep,
};
