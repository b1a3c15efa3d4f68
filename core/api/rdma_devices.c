/* SPDX-License-Identifier: BSD-2-Clause */
/* api/rdma_devices.c - the devices as programs ask for them. */
#include "config.h"

#include <rdma/rdma_cma.h>

#include <errno.h>
#include <stdlib.h>

#include "core/base/export.h"
#include "core/device/device.h"
#include "core/plugin/registry.h"

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
