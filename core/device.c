/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device.c - the device list.
 *
 * `lock' guards the list, the reference counts and who is busy opening; it is
 * a leaf.  Verbs calls, which may end in a provider, are made without it: a
 * thread marks the device busy instead, and others wait.  verbs and pd are
 * written once and read without the lock by those who opened the device.
 */
#include "config.h"

#include "device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alone.h"
#include "export.h"
#include "id.h"
#include "log.h"
#include "options.h"
#include "registry.h"
#include "verbs/real.h"
#include "verbs/shim.h"

#define MIN_INFO (offsetof(struct polycm_device_info, cookie) + sizeof(void *))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_busy = PTHREAD_COND_INITIALIZER;
static struct polycm_device *first;
static size_t num_present;		/* not lost; atomic */

/* ------------------------------------------------------------------------
 * Devices come and go.
 */

/* With the lock held: nobody new may come to it. */
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

	for (device = first; device; device = device->next)
		if (!is_lost(device) && !strcmp(device->name, name))
			break;
	return device;
}

static int append(struct polycm_device *device)
{
	struct polycm_device **end;
	int r = 0;

	pthread_mutex_lock(&lock);
	if (!device->whole && find_by_name(device->name)) {
		r = -EEXIST;
	} else {
		for (end = &first; *end; end = &(*end)->next)
			;
		*end = device;
		__atomic_add_fetch(&num_present, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
	return r;
}

static bool name_taken(const char *name)
{
	bool taken;

	pthread_mutex_lock(&lock);
	taken = find_by_name(name) != NULL;
	pthread_mutex_unlock(&lock);
	return taken;
}

static int check_info(const struct polycm_module *module, const struct polycm_device_info *info,
		      bool is_part, const struct polycm_transport **ret_transport)
{
	const char *why = NULL;

	if (!module || !module->selected)
		return -EPERM;
	if (!info || info->size < MIN_INFO)
		why = "its description is too short";
	else if (!info->name || !*info->name || strchr(info->name, '/') ||
		 strnlen(info->name, sizeof(((struct polycm_device *)NULL)->name)) ==
			 sizeof(((struct polycm_device *)NULL)->name))
		why = "its name is not valid";
	else if (!info->transport)
		why = "it has no transport";
	if (why) {
		polycm_log(POLYCM_LOG_WARN, "provider %s: a device was refused: %s", module->name,
			   why);
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
		r = polycm_shim_adopt(device->vdev);
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
	struct polycm_device **link;

	if (!device->removed || device->refs)
		return false;
	for (link = &first; *link != device; link = &(*link)->next)
		;
	*link = device->next;
	return true;
}

bool polycm_device_get(struct polycm_device *device)
{
	struct polycm_device *other;
	bool found, locked;

	locked = polycm_lock(&lock);
	for (other = first; other && other != device; other = other->next)
		;
	found = other && !is_lost(other);
	if (found)
		device->refs++;
	polycm_unlock(&lock, locked);
	return found;
}

void polycm_device_put(struct polycm_device *device)
{
	bool over, locked;

	locked = polycm_lock(&lock);
	device->refs--;
	over = unlink_if_unused(device);
	polycm_unlock(&lock, locked);
	if (over)
		end(device);
}

void polycm_device_gone(struct polycm_device *device)
{
	pthread_mutex_lock(&lock);
	lose(device);
	device->gone = true;
	pthread_mutex_unlock(&lock);
	polycm_log(POLYCM_LOG_INFO, "%s %s: device unplugged", device->module->name, device->name);
	if (device->vdev)
		polycm_shim_hide(device->vdev);
}

void polycm_device_remove(struct polycm_device *device)
{
	bool told;

	pthread_mutex_lock(&lock);
	if (device->removed) {
		pthread_mutex_unlock(&lock);
		return;
	}
	told = device->gone;
	lose(device);
	device->removed = true;
	device->refs++;
	pthread_mutex_unlock(&lock);

	polycm_log(POLYCM_LOG_INFO, "%s %s: device removed", device->module->name, device->name);
	if (!told)
		polycm_ids_device_removed(device);
	polycm_device_put(device);
}

void *polycm_device_cookie(const struct polycm_device *device)
{
	return device->cookie;
}

/* ------------------------------------------------------------------------
 * Looking at the list.
 */

size_t polycm_device_count(void)
{
	return __atomic_load_n(&num_present, __ATOMIC_RELAXED);
}

void polycm_device_own_verbs(const struct polycm_module *module, unsigned int *ret_contexts,
			     unsigned int *ret_pds)
{
	unsigned int contexts = 0, pds = 0;

	pthread_mutex_lock(&lock);
	for (struct polycm_device *device = first; device; device = device->next) {
		if (device->module != module)
			continue;
		contexts += device->verbs != NULL;
		pds += device->pd != NULL;
	}
	pthread_mutex_unlock(&lock);
	*ret_contexts = contexts;
	*ret_pds = pds;
}

struct polycm_device *polycm_device_of_context(const struct ibv_context *verbs)
{
	struct polycm_device *device;

	if (!verbs)
		return NULL;
	pthread_mutex_lock(&lock);
	for (device = first; device; device = device->next)
		if (device->verbs == verbs)
			break;
	pthread_mutex_unlock(&lock);
	return device;
}

int polycm_devices(struct polycm_device ***ret_devices, size_t *ret_num)
{
	struct polycm_device **devices, *device;
	size_t num = 0;

	pthread_mutex_lock(&lock);
	for (device = first; device; device = device->next)
		num++;
	devices = calloc(num + 1, sizeof(struct polycm_device *));
	num = 0;
	for (device = first; device && devices; device = device->next) {
		if (is_lost(device))
			continue;
		device->refs++;
		devices[num++] = device;
	}
	pthread_mutex_unlock(&lock);
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

/* ------------------------------------------------------------------------
 * Opening.
 */

/* Says whether the device was removed. */
static bool set_busy(struct polycm_device *device)
{
	bool removed;

	pthread_mutex_lock(&lock);
	while (device->busy)
		pthread_cond_wait(&not_busy, &lock);
	device->busy = true;
	removed = is_lost(device);
	pthread_mutex_unlock(&lock);
	return removed;
}

static void clear_busy(struct polycm_device *device)
{
	pthread_mutex_lock(&lock);
	device->busy = false;
	pthread_cond_broadcast(&not_busy);
	pthread_mutex_unlock(&lock);
}

/* 0 is no errno: what failed without one is a device that is gone. */
static int verbs_error(void)
{
	return errno ? -errno : -ENODEV;
}

static int open_context(const struct polycm_device *device, struct ibv_context **ret_verbs)
{
	struct ibv_context *verbs = NULL;
	struct ibv_device **list;
	bool found = false;
	int num, r = 0;

	errno = 0;
	if (device->vdev) {
		*ret_verbs = ibv_open_device(&device->vdev->device);
		return *ret_verbs ? 0 : verbs_error();
	}
	*ret_verbs = polycm_real_open_kept(device->name);
	if (*ret_verbs)
		return 0;
	errno = 0;
	list = polycm_real_devices(&num);
	if (!list)
		return verbs_error();
	for (struct ibv_device **entry = list; *entry && !found; entry++) {
		found = !strcmp(ibv_get_device_name(*entry), device->name);
		if (!found)
			continue;
		errno = 0;
		verbs = ibv_open_device(*entry);
		if (!verbs)
			r = verbs_error();
	}
	polycm_real_devices_free(list);
	if (!found)
		return -ENODEV;
	*ret_verbs = verbs;
	return r;
}

static uint8_t lowered(int value)
{
	return value < 0 ? 0 : value > UINT8_MAX ? UINT8_MAX : (uint8_t)value;
}

/* Its ports are known, so it can be used. */
static void opened(struct polycm_device *device, struct ibv_context *verbs)
{
	struct ibv_port_attr port;

	memset(&port, 0, sizeof(port));
	if (ibv_query_port(verbs, device->first_port, &port))
		port.link_layer = device->transport->link_layer;
	device->link_layer = port.link_layer;

	pthread_mutex_lock(&lock);
	__atomic_store_n(&device->verbs, verbs, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}

/* A program may use objects of one port's ids with another's: they have one context. */
static int open_whole(struct polycm_device *part)
{
	struct polycm_device *whole = part->whole;
	int r = polycm_device_open(whole);

	if (r)
		return r;
	part->max_responder_resources = whole->max_responder_resources;
	part->max_initiator_depth = whole->max_initiator_depth;
	opened(part, whole->verbs);
	return 0;
}

static int open_and_query(struct polycm_device *device)
{
	struct ibv_device_attr attr;
	struct ibv_context *verbs = NULL;
	int r;

	if (device->whole)
		return open_whole(device);
	r = open_context(device, &verbs);
	if (r)
		return r;
	memset(&attr, 0, sizeof(attr));
	r = ibv_query_device(verbs, &attr);
	if (r) {
		r = r > 0 ? -r : verbs_error();
		ibv_close_device(verbs);
		return r;
	}
	device->max_responder_resources = lowered(attr.max_qp_rd_atom);
	device->max_initiator_depth = lowered(attr.max_qp_init_rd_atom);
	opened(device, verbs);
	return 0;
}

int polycm_device_open(struct polycm_device *device)
{
	bool removed;
	int r = 0;

	if (__atomic_load_n(&device->verbs, __ATOMIC_ACQUIRE))
		return 0;
	removed = set_busy(device);
	if (!device->verbs)
		r = removed ? -ENODEV : open_and_query(device);
	clear_busy(device);
	if (r)
		polycm_log(POLYCM_LOG_WARN, "%s %s: the device cannot be opened: %s",
			   device->module->name, device->name, strerror(-r));
	return r;
}

int polycm_device_pd(struct polycm_device *device, struct ibv_pd **ret_pd)
{
	struct ibv_pd *pd;
	int r = 0;

	if (__builtin_expect(device->whole != NULL, 0))
		device = device->whole;
	pd = __atomic_load_n(&device->pd, __ATOMIC_ACQUIRE);

	if (pd) {
		*ret_pd = pd;
		return 0;
	}
	set_busy(device);
	if (!device->pd) {
		errno = 0;
		pd = ibv_alloc_pd(device->verbs);
		if (!pd)
			r = verbs_error();
		pthread_mutex_lock(&lock);
		__atomic_store_n(&device->pd, pd, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&lock);
	}
	if (!r)
		*ret_pd = device->pd;
	clear_busy(device);
	return r;
}

/* ------------------------------------------------------------------------
 * For programs.
 */

static void hint(void)
{
	const char *setting = polycm_setting("POLYCM_PROVIDER");

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

POLYCM_EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct polycm_device **devices;
	struct ibv_context **list;
	size_t num, opened = 0;
	int r;

	if (num_devices)
		*num_devices = 0;
	r = polycm_registry_get();
	if (!r) {
		polycm_registry_enumerate();
		r = polycm_devices(&devices, &num);
	}
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
