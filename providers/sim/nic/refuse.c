/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/refuse.c - calls of the program's that fail: one line at `warn', with the reason. */
#include "config.h"

#include <stdio.h>

#include "nic_internal.h"

int nic_refuse(const struct sim_device *device, const char *call, int err, const char *format, ...)
{
	char why[160];
	va_list args;

	if (!sim_core->log_enabled(POLYCM_LOG_WARN))
		return err;
	va_start(args, format);
	(void)vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	nic_log(POLYCM_LOG_WARN, "%s: %s refused: %s: %s", device->vdev.device.name, call, why,
		strerror(err));
	return err;
}

int nic_no_memory(const struct sim_device *device, const char *call)
{
	return nic_refuse(device, call, ENOMEM, "no memory");
}
