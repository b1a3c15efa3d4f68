/* SPDX-License-Identifier: BSD-2-Clause */
/* interposer_host.c - the core as libpolycm-interpose sees it. */
#include "config.h"

#include "core/base/clock.h"
#include "core/base/export.h"
#include "core/base/interposer.h"
#include "core/base/log.h"
#include "core/cm/id_internal.h"
#include "core/device/device.h"
#include "core/sysfs/sysfs.h"
#include "core/sysfs/sysfs_internal.h"

static int node_minor(const char *name)
{
	const struct polycm_verbs_device *device = polycm_device_simulated(name);

	return device ? POLYCM_NODE_MINOR + (int)sysfs_number(&device->device) : -1;
}

static const struct polycm_interposer_host host = {
	.size = sizeof(host),
	.clock_installed = &polycm_clock_installed,
	.clock_virtual = polycm_clock_virtual,
	.clock_wait = polycm_clock_wait,
	.clock_owns_fd = polycm_clock_owns_fd,
	.clock_spin = polycm_clock_spin,
	.clock_read = polycm_clock_read,
	.now_ns = polycm_now_ns,
	.timer_start = polycm_timer_start,
	.timer_restart = polycm_timer_restart,
	.timer_cancel = polycm_timer_cancel,
	.channel_describe_fd = polycm_channel_describe_fd,
	.node_minor = node_minor,
	.sysfs_begin = polycm_sysfs_begin,
	.sysfs_read = polycm_sysfs_read,
	.log = (polycm_log_id),
};

POLYCM_EXPORT const struct polycm_interposer_host *
polycm_interposer_attach(const struct polycm_interposer *interposer)
{
	if (interposer->size != sizeof(*interposer)) {
		polycm_log(POLYCM_LOG_ERROR, "libpolycm-interpose and libpolycm are of different "
			   "builds: install both from one");
		return NULL;
	}
	polycm_interposer_use(interposer);
	return &host;
}
