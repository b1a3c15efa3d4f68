/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device/device.c - the device list.  `devices_lock' guards it and the reference counts; it is
 * a leaf.
 */
#include "config.h"

#include "device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "core/base/alone.h"
#include "core/base/log.h"
#include "core/base/abi.h"
#include "core/plugin/op.h"
#include "core/plugin/registry.h"
#include "core/verbs/shim.h"

static const struct polycm_abi_struct info_struct =
	POLYCM_ABI_STRUCT("its description", struct polycm_device_info, cookie);

#define WHY_SIZE 200

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct polycm_device *first;
static size_t num_present;		/* not lost; atomic */

/* ------------------------------------------------------------------------
 * Devices come and go.
 */

/* With the lock held: it cannot be opened or used for new ids. */
static bool is_lost(const struct polycm_device *device)
{
	return device->removed || device->gone;
}

/* Before the first of both marks is set. */
static void lose(const struct polycm_device *device)
{
	if (!is_lost(device))
		__atomic_sub_fetch(&num_present, 1, __ATOMIC_RELAXED);
}

static struct polycm_device *find_by_name(const char *name)
{
	struct polycm_device *device;

	LL_FOREACH(first, device)
		if (!is_lost(device) && !strcmp(device->name, name))
			break;
	return device;
}

static int append(struct polycm_device *device)
{
	int r = 0;

	pthread_mutex_lock(&devices_lock);
	if (!device->whole && find_by_name(device->name)) {
		r = -EEXIST;
	} else {
		LL_APPEND(first, device);
		__atomic_add_fetch(&num_present, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&devices_lock);
	return r;
}

static bool name_taken(const char *name)
{
	bool taken;

	pthread_mutex_lock(&devices_lock);
	taken = find_by_name(name) != NULL;
	pthread_mutex_unlock(&devices_lock);
	return taken;
}

static void refused(const struct polycm_module *module, const char *why)
{
	polycm_log(POLYCM_LOG_ERROR, "provider %s: a device was refused: %s", module->name, why);
}

static int check_info(const struct polycm_module *module, const struct polycm_device_info *info,
		      bool is_part, const struct polycm_transport **ret_transport)
{
	char wrong_size[WHY_SIZE];
	const char *why = NULL;

	if (!module || !module->selected)
		return -EPERM;
	if (!info)
		why = "it has no description";
	else if (polycm_abi_check(&info_struct, info->size, module->desc.abi_minor, wrong_size,
				  sizeof(wrong_size)))
		why = wrong_size;
	else if (!info->name || !*info->name || strchr(info->name, '/') ||
		 strnlen(info->name, sizeof(((struct polycm_device *)NULL)->name)) ==
			 sizeof(((struct polycm_device *)NULL)->name))
		why = "its name is not valid";
	else if (!info->transport)
		why = "it has no transport";
	if (why) {
		refused(module, why);
		return -EINVAL;
	}
	if (!is_part && name_taken(info->name))
		return -EEXIST;
	*ret_transport = polycm_registry_transport(info->transport);
	if (!*ret_transport) {
		polycm_log(POLYCM_LOG_ERROR, "provider %s: device %s was refused: no provider has the "
			   "rules of transport %s", module->name, info->name, info->transport);
		return -EINVAL;
	}
	return 0;
}

int polycm_device_add_ports(struct polycm_module *module, const struct polycm_device_info *info,
			    uint8_t first_port, struct polycm_device *whole,
			    struct polycm_device **ret_device)
{
	const struct polycm_transport *transport;
	struct polycm_device *device;
	char why[WHY_SIZE] = "";
	int r;

	r = check_info(module, info, whole != NULL, &transport);
	if (r)
		return r;
	device = calloc(1, sizeof(*device));
	if (!device)
		return -ENOMEM;
	if (whole && !polycm_device_get(whole)) {
		free(device);
		return -ENODEV;
	}
	device->whole = whole;
	device->first_port = first_port;
	device->module = module;
	device->transport = transport;
	memcpy(device->name, info->name, strlen(info->name) + 1);
	device->node_guid = info->node_guid;
	device->vdev = whole ? NULL : info->verbs;
	device->cookie = info->cookie;

	if (device->vdev) {
		r = polycm_shim_adopt(device->vdev, module->desc.abi_minor, why, sizeof(why));
		if (why[0])
			refused(module, why);
		if (r)
			goto err_free;
	}
	r = append(device);
	if (r)
		goto err_release;
	polycm_log(POLYCM_LOG_INFO, "%s %s: new device, transport %s", module->name, device->name,
		   transport->name);
	if (ret_device)
		*ret_device = device;
	return 0;

err_release:
	if (device->vdev)
		polycm_shim_release(device->vdev);
err_free:
	if (whole)
		polycm_device_put(whole);
	free(device);
	return r;
}

int polycm_device_add(struct polycm_module *module, const struct polycm_device_info *info,
		      struct polycm_device **ret_device)
{
	return polycm_device_add_ports(module, info, 1, NULL, ret_device);
}

/*
 * Nobody refers to it any more.  libibverbs' contexts stay open, since programs
 * may have objects on them; a simulated device goes back to its provider.
 */
static void end(struct polycm_device *device)
{
	if (device->vdev) {
		if (device->xrcd)
			ibv_close_xrcd(device->xrcd);
		if (device->pd)
			ibv_dealloc_pd(device->pd);
		if (device->verbs)
			ibv_close_device(device->verbs);
		polycm_shim_release(device->vdev);
	}
	if (device->whole)
		polycm_device_put(device->whole);
	free(device);
}

/* With the lock held: take it off the list if it is over with. */
static bool unlink_if_unused(struct polycm_device *device)
{
	if (!device->removed || device->refs)
		return false;
	LL_DELETE(first, device);
	return true;
}

/* With the lock held; the pointer may be stale. */
static bool is_listed(const struct polycm_device *device)
{
	const struct polycm_device *other;

	LL_FOREACH(first, other)
		if (other == device)
			break;
	return other;
}

bool polycm_device_get(struct polycm_device *device)
{
	bool found, locked;

	locked = polycm_lock(&devices_lock);
	found = is_listed(device) && !is_lost(device);
	if (found)
		device->refs++;
	polycm_unlock(&devices_lock, locked);
	return found;
}

void polycm_device_put(struct polycm_device *device)
{
	bool over, locked;

	locked = polycm_lock(&devices_lock);
	device->refs--;
	over = unlink_if_unused(device);
	polycm_unlock(&devices_lock, locked);
	if (over)
		end(device);
}

/* What a plugin calls for a device that is not there. */
#define MISUSED(operation) polycm_misuse_at(__builtin_return_address(0), operation, \
					    "no device that is there: it was removed before")

void polycm_device_gone(struct polycm_device *device)
{
	bool found;

	pthread_mutex_lock(&devices_lock);
	found = is_listed(device) && !device->removed;
	if (found) {
		lose(device);
		device->gone = true;
	}
	pthread_mutex_unlock(&devices_lock);
	if (!found) {
		MISUSED("device_gone");
		return;
	}
	polycm_log(POLYCM_LOG_INFO, "%s %s: device unplugged", device->module->name, device->name);
}

static void nobody_to_tell(struct polycm_device *device)
{
	(void)device;
}

void (*polycm_device_removed)(struct polycm_device *device) = nobody_to_tell;

void polycm_device_remove(struct polycm_device *device)
{
	bool told;

	pthread_mutex_lock(&devices_lock);
	if (!is_listed(device) || device->removed) {
		pthread_mutex_unlock(&devices_lock);
		MISUSED("device_remove");
		return;
	}
	told = device->gone;
	lose(device);
	device->removed = true;
	device->refs++;
	pthread_mutex_unlock(&devices_lock);

	polycm_log(POLYCM_LOG_INFO, "%s %s: device removed", device->module->name, device->name);
	if (!told)
		polycm_device_removed(device);
	polycm_device_put(device);
}

/*
 * The program closes the context that ids have, as if it had opened it itself.  All that is made
 * of the context ends with it.  The next id opens another.
 */
static void forget_context(struct ibv_context *verbs)
{
	struct polycm_device *device;
	char name[sizeof(device->name)] = "";

	pthread_mutex_lock(&devices_lock);
	LL_FOREACH(first, device) {
		if (__atomic_load_n(&device->verbs, __ATOMIC_RELAXED) != verbs)
			continue;
		if (!device->whole)
			memcpy(name, device->name, sizeof(name));
		__atomic_store_n(&device->xrcd, NULL, __ATOMIC_RELEASE);
		__atomic_store_n(&device->pd, NULL, __ATOMIC_RELEASE);
		__atomic_store_n(&device->verbs, NULL, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&devices_lock);
	if (name[0])
		polycm_log(POLYCM_LOG_WARN, "%s: the program closed the verbs context of the RDMA CM: "
			   "rdma_get_devices() and ids only lend it", name);
}

__attribute__((constructor)) static void hear_of_closing(void)
{
	polycm_shim_closing = forget_context;
}

void *polycm_device_cookie(const struct polycm_device *device)
{
	return device->cookie;
}

/* ------------------------------------------------------------------------
 * Looking at the list.
 */

bool polycm_device_lost(const struct polycm_device *device)
{
	bool lost;

	pthread_mutex_lock(&devices_lock);
	lost = is_lost(device);
	pthread_mutex_unlock(&devices_lock);
	return lost;
}

size_t polycm_device_count(void)
{
	return __atomic_load_n(&num_present, __ATOMIC_RELAXED);
}

void polycm_device_own_verbs(const struct polycm_module *module, unsigned int *ret_contexts,
			     unsigned int *ret_pds, unsigned int *ret_xrcds)
{
	unsigned int contexts = 0, pds = 0, xrcds = 0;

	pthread_mutex_lock(&devices_lock);
	for (struct polycm_device *device = first; device; device = device->next) {
		if (device->module != module)
			continue;
		contexts += __atomic_load_n(&device->verbs, __ATOMIC_RELAXED) != NULL;
		pds += __atomic_load_n(&device->pd, __ATOMIC_RELAXED) != NULL;
		xrcds += __atomic_load_n(&device->xrcd, __ATOMIC_RELAXED) != NULL;
	}
	pthread_mutex_unlock(&devices_lock);
	*ret_contexts = contexts;
	*ret_pds = pds;
	*ret_xrcds = xrcds;
}

struct polycm_device *polycm_device_of_verbs(const void *handle)
{
	struct polycm_device *device;

	if (!handle)
		return NULL;
	pthread_mutex_lock(&devices_lock);
	LL_FOREACH(first, device)
		if (__atomic_load_n(&device->verbs, __ATOMIC_RELAXED) == handle ||
		    __atomic_load_n(&device->pd, __ATOMIC_RELAXED) == handle ||
		    __atomic_load_n(&device->xrcd, __ATOMIC_RELAXED) == handle)
			break;
	pthread_mutex_unlock(&devices_lock);
	return device;
}

struct polycm_verbs_device *polycm_device_simulated(const char *name)
{
	struct polycm_verbs_device *found = NULL;
	const struct polycm_device *device;

	pthread_mutex_lock(&devices_lock);
	for (device = first; device && !found; device = device->next)
		if (device->vdev && !is_lost(device) &&
		    (!strcmp(device->vdev->device.ibdev_path, name) ||
		     !strcmp(device->vdev->device.dev_name, name)))
			found = device->vdev;
	pthread_mutex_unlock(&devices_lock);
	return found;
}

int polycm_devices(struct polycm_device ***ret_devices, size_t *ret_num)
{
	struct polycm_device **devices, *device;
	size_t num = 0;

	pthread_mutex_lock(&devices_lock);
	LL_COUNT(first, device, num);
	devices = calloc(num + 1, sizeof(struct polycm_device *));
	num = 0;
	for (device = first; device && devices; device = device->next) {
		if (is_lost(device))
			continue;
		device->refs++;
		devices[num++] = device;
	}
	pthread_mutex_unlock(&devices_lock);
	if (!devices)
		return -ENOMEM;
	*ret_devices = devices;
	*ret_num = num;
	return 0;
}

void polycm_devices_free(struct polycm_device **devices, size_t num)
{
	for (size_t i = 0; i < num; i++)
		polycm_device_put(devices[i]);
	free(devices);
}

bool polycm_devices_only_simulated(struct polycm_device *const *devices, size_t num)
{
	struct polycm_module *const *modules;
	size_t num_modules = polycm_registry_active(&modules), simulating = 0;

	for (size_t m = 0; m < num_modules; m++) {
		bool simulates = false;

		for (size_t i = 0; i < num; i++)
			simulates |= devices[i]->module == modules[m] && devices[i]->vdev;
		simulating += simulates;
	}
	return simulating && simulating == num_modules;
}
