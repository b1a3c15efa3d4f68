/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api/ibv_devices.c - the exported ibv_* calls that list devices.
 *
 * The array is always libpolycm's, also with libibverbs' devices in it.  Two words behind
 * the terminating NULL keep libibverbs' own list (perhaps shared with providers) until
 * ibv_free_device_list().  The array begins where its memory does, since some programs
 * pass it to free(), which libibverbs' lists allow.
 */
#include "config.h"

#include "core/base/libibverbs.h"
#include "core/verbs/shim.h"
#include "core/verbs/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/device/device.h"
#include "core/base/export.h"
#include "core/plugin/options.h"
#include "core/plugin/registry.h"

/* In front of libibverbs' list: what else is behind a NULL is a program's doing. */
static struct ibv_device list_mark;

static struct polycm_real_list *kept_real(struct ibv_device **devices)
{
	while (*devices)
		devices++;
	return devices[1] == &list_mark ? (struct polycm_real_list *)(void *)devices[2] : NULL;
}

/*
 * A program whose providers all simulate does not see hardware, so that it cannot use a
 * real device by accident.
 */
static bool only_simulated(size_t num_simulated)
{
	struct polycm_device **devices;
	struct polycm_module *const *modules;
	size_t num_modules, num, simulating = 0;

	if (!num_simulated || polycm_devices(&devices, &num))
		return false;
	num_modules = polycm_registry_selected(&modules);
	for (size_t m = 0; m < num_modules; m++) {
		bool simulates = false;

		for (size_t i = 0; i < num; i++)
			simulates |= devices[i]->module == modules[m] && devices[i]->vdev;
		simulating += simulates;
	}
	polycm_devices_free(devices, num);
	return simulating == num_modules;
}

POLYCM_EXPORT struct ibv_device **ibv_get_device_list(int *ret_num)
{
	struct polycm_verbs_device **simulated;
	struct polycm_real_list *real = NULL;
	unsigned int looks = polycm_real_looks();
	struct ibv_device **list;
	size_t num_simulated, n = 0;
	int num_real = 0, r;

	(void)polycm_registry_get_devices();
	r = polycm_shim_list(&simulated, &num_simulated);
	if (r) {
		errno = -r;
		return NULL;
	}
	if (!only_simulated(num_simulated)) {
		real = polycm_real_list_after(looks);
		if (!real && !num_simulated)
			goto err_free_simulated;	/* errno is libibverbs' */
		num_real = real ? real->num : 0;
	}

	list = calloc(num_simulated + (size_t)num_real + 3, sizeof(*list));
	if (!list) {
		errno = ENOMEM;
		goto err_put_real;
	}
	for (size_t i = 0; i < num_simulated; i++)
		list[n++] = &simulated[i]->device;
	for (int i = 0; i < num_real; i++)
		list[n++] = real->devices[i];
	list[n + 1] = &list_mark;
	list[n + 2] = (struct ibv_device *)(void *)real;
	free(simulated);
	if (ret_num)
		*ret_num = (int)n;
	return list;

err_put_real:
	if (real)
		polycm_real_list_put(real);
err_free_simulated:
	free(simulated);
	if (ret_num)
		*ret_num = 0;
	return NULL;
}

POLYCM_EXPORT void ibv_free_device_list(struct ibv_device **devices)
{
	struct polycm_real_list *real;

	if (!devices)
		return;
	real = kept_real(devices);
	if (real)
		polycm_real_list_put(real);
	free(devices);
}
