/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device/start.c - the providers are started and have a device, or a log line says why
 * there is none.
 */
#include "config.h"

#include "device.h"

#include <errno.h>

#include "core/base/log.h"
#include "core/plugin/options.h"
#include "core/plugin/registry.h"

static void hint(void)
{
	const char *setting = polycm_setting("POLYCM_PROVIDER");

	/* Such a process ignores the settings that could help. */
	if (polycm_privileged()) {
		polycm_log(POLYCM_LOG_ERROR, "no RDMA device; the process has raised privileges "
			   "(set-user-ID, capabilities), so its environment cannot ask for a "
			   "simulated one");
		return;
	}
	/* The log has the reason why the provider did not start. */
	if (polycm_setting_given("POLYCM_PROVIDER") && polycm_registry_any_failed())
		return;
	if (polycm_setting_given("POLYCM_PROVIDER"))
		polycm_log(POLYCM_LOG_ERROR, "no RDMA device: the providers that POLYCM_PROVIDER=%s "
			   "selects have none", setting);
	else
		polycm_log(POLYCM_LOG_ERROR, "no RDMA device; to simulate one, set POLYCM_PROVIDER=sim "
			   "or start the program with: polycm run --provider sim PROGRAM");
}

void polycm_no_device_hint(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (!polycm_registry_get())
		pthread_once(&once, hint);
}

int polycm_start(void)
{
	/* With devices, providers are asked for new ones only when one is missing. */
	int err = polycm_device_count() ? polycm_registry_get() : polycm_registry_get_devices();

	if (!err && !polycm_device_count())
		err = -ENODEV;
	if (err)
		polycm_no_device_hint();
	return err;
}
