/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api/ibv_devices.c - the exported ibv_* calls that list devices or find one: by its name, by a
 * descriptor.
 *
 * The array is always libpolycm's, also with libibverbs' devices in it.  Two words behind
 * the terminating NULL keep libibverbs' own list (perhaps shared with providers) until
 * ibv_free_device_list().  The array begins where its memory does, since some programs
 * pass it to free(), which libibverbs' lists allow.
 */
#include "config.h"


#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/export.h"
#include "core/base/libibverbs.h"
#include "core/base/log.h"
#include "core/device/device.h"
#include "core/plugin/options.h"
#include "core/plugin/registry.h"
#include "core/verbs/table.h"

/* In front of libibverbs' list: what else is behind a NULL is a program's doing. */
static struct ibv_device list_mark;

static struct polycm_real_list *kept_real(struct ibv_device **devices)
{
	while (*devices)
		devices++;
	return devices[1] == &list_mark ? (struct polycm_real_list *)(void *)devices[2] : NULL;
}

POLYCM_EXPORT struct ibv_device **ibv_get_device_list(int *ret_num)
{
	struct polycm_real_list *real = NULL;
	unsigned int looks = polycm_real_looks();
	struct ibv_device **list = NULL;
	struct polycm_device **devices;
	size_t num, num_simulated = 0, n = 0;
	int num_real = 0, r;

	(void)polycm_registry_get_devices();
	r = polycm_devices(&devices, &num);
	if (r) {
		errno = -r;
		return NULL;
	}
	for (size_t i = 0; i < num; i++)
		num_simulated += devices[i]->vdev != NULL;
	if (!polycm_devices_only_simulated(devices, num)) {
		real = polycm_real_list_after(looks);
		if (!real && !num_simulated)
			goto out;	/* errno is libibverbs' */
		num_real = real ? real->num : 0;
	}

	list = calloc(num_simulated + (size_t)num_real + 3, sizeof(*list));
	if (!list) {
		errno = ENOMEM;
		goto err_put_real;
	}
	for (size_t i = 0; i < num; i++)
		if (devices[i]->vdev)
			list[n++] = &devices[i]->vdev->device;
	for (int i = 0; i < num_real; i++)
		list[n++] = real->devices[i];
	list[n + 1] = &list_mark;
	list[n + 2] = (struct ibv_device *)(void *)real;
	goto out;

err_put_real:
	if (real)
		polycm_real_list_put(real);
out:
	polycm_devices_free(devices, num);
	if (ret_num)
		*ret_num = (int)n;
	return list;
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

/* Exported by libibverbs without a public declaration. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

POLYCM_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	struct polycm_verbs_device *device = polycm_device_simulated(dir);

	/* Folders cannot be read; providers list them for sysfs. */
	if (device && (!*file || file[strlen(file) - 1] == '/'))
		return -1;
	if (device)
		return shim_table(&device->device)->read_sysfs_file(&device->device, file, buf,
								    size);

	REAL_VERB(int, "ibv_read_sysfs_file", "IBVERBS_1.0",
		  (const char *, const char *, char *, size_t));
	return real ? real(dir, file, buf, size) : -1;
}

/* *ret_asked: there are simulated devices.  NULL: errno is set. */
static struct ibv_context *import_simulated(int cmd_fd, bool *ret_asked)
{
	struct ibv_context *context = NULL;
	struct polycm_device **devices;
	size_t num;
	int r;

	*ret_asked = false;
	(void)polycm_registry_get_devices();
	r = polycm_devices(&devices, &num);
	if (r) {
		errno = -r;
		return NULL;
	}
	errno = ENODEV;
	for (size_t i = 0; i < num && !context; i++) {
		struct ibv_device *device = devices[i]->vdev ? &devices[i]->vdev->device : NULL;

		/* Of several devices the one that knows the descriptor says what is wrong. */
		if (!device || (errno != ENODEV && errno != EOPNOTSUPP))
			continue;
		*ret_asked = true;
		context = shim_table(device)->import_device(device, cmd_fd);
	}
	r = errno;
	polycm_devices_free(devices, num);
	errno = r;
	return context;
}

/*
 * libibverbs would list devices by our ibv_get_device_list() and read its own data behind each,
 * so it is asked only if there are no simulated ones.
 */
POLYCM_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	bool asked;
	struct ibv_context *context = import_simulated(cmd_fd, &asked);

	if (context || (asked && errno != ENODEV && errno != EOPNOTSUPP))
		return context;
	if (asked) {
		polycm_log(POLYCM_LOG_WARN, "ibv_import_device refused: descriptor %d is not the cmd_fd "
			   "of a context of this process; those of other processes cannot be "
			   "imported: %s", cmd_fd, strerror(EINVAL));
		errno = EINVAL;
		return NULL;
	}

	REAL_VERB(struct ibv_context *, "ibv_import_device", "IBVERBS_1.10", (int));
	return real ? real(cmd_fd) : NULL;
}
