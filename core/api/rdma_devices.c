/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api/rdma_devices.c - the devices as programs ask for them, and what people are
 * told when there are none.
 */
#include "config.h"
#include "core/cm/id_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "core/base/export.h"
#include "core/base/log.h"
#include "core/plugin/options.h"

static void hint(void)
{
	const char *setting = polycm_setting("POLYCM_PROVIDER");

	/* Such a process ignores whatever could be advised. */
	if (polycm_privileged()) {
		polycm_log(POLYCM_LOG_ERROR, "no RDMA device; the process has raised privileges "
			   "(set-user-ID, capabilities), so its environment cannot ask for a "
			   "simulated one");
		return;
	}
	/* Why one that was asked for did not start was told. */
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
	/* Where there were devices, one that is needed is asked for then. */
	int err = polycm_device_count() ? polycm_registry_get() : polycm_registry_get_devices();

	if (!err && !polycm_device_count())
		err = -ENODEV;
	if (err)
		polycm_no_device_hint();
	return err;
}

POLYCM_EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct polycm_device **devices;
	struct ibv_context **list;
	size_t num, opened = 0;
	int r;

	if (num_devices)
		*num_devices = 0;
	r = polycm_registry_get_devices();
	if (!r)
		r = polycm_devices(&devices, &num);
	if (r) {
		errno = -r;
		return NULL;
	}
	if (!num) {
		polycm_devices_free(devices, num);
		polycm_no_device_hint();
		errno = ENODEV;
		return NULL;
	}

	list = calloc(num + 1, sizeof(struct ibv_context *));
	for (size_t i = 0; i < num && list; i++)
		if (!devices[i]->whole && !polycm_device_open(devices[i]))
			list[opened++] = devices[i]->verbs;
	polycm_devices_free(devices, num);
	if (!list) {
		errno = ENOMEM;
		return NULL;
	}
	if (num_devices)
		*num_devices = (int)opened;
	return list;
}

POLYCM_EXPORT void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
