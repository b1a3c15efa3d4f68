/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel/devices.c - the RDMA devices of the host, and which provider over the
 * kernel has which.
 *
 * One list for all these providers, those devices included that none of them
 * claims, so that it can be said what an address is on.  `lock' guards it and
 * the contexts; it is held while the core takes a device, never while the host
 * is asked or the core gives one up.  `listing' is outside of it: one thread at
 * a time brings the list up to what the host says.
 */
#include "config.h"
#include "internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../options.h"

struct device {
	struct device *next;
	struct kernel_host_device host;
	const struct kernel_context *owner;	/* NULL: no provider claims it */
	struct polycm_device *core;		/* the owner's */
	bool refused;				/* the core did not take it */
	bool seen;
};

static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct device *devices;
static struct kernel_context *contexts;

void kernel_context_add(struct kernel_context *context)
{
	struct kernel_context **end;

	pthread_mutex_lock(&lock);
	for (end = &contexts; *end; end = &(*end)->next)
		;
	*end = context;
	pthread_mutex_unlock(&lock);
}

/* The process ends: the core keeps what devices it was given. */
void kernel_context_remove(struct kernel_context *context)
{
	struct kernel_context **link;
	struct device *device;

	pthread_mutex_lock(&lock);
	for (link = &contexts; *link && *link != context; link = &(*link)->next)
		;
	if (*link)
		*link = context->next;
	for (device = devices; device; device = device->next)
		if (device->owner == context)
			device->owner = NULL;
	pthread_mutex_unlock(&lock);
}

static bool claims(const struct kernel_context *context, const struct kernel_host_device *host)
{
	const struct polycm_transport *rules = context->transport;
	const struct polycm_kernel_device device = {
		.size = sizeof(device),
		.name = host->name,
		.node_guid = host->node_guid,
		.index = host->index,
		.node_type = host->node_type,
		.transport_type = host->transport_type,
		.link_layer = host->link_layer,
	};
	uint8_t link_layer = host->link_layer;

	if (context->claims)
		return context->claims(&device);
	/* What does not say is as old as InfiniBand. */
	if (link_layer == IBV_LINK_LAYER_UNSPECIFIED)
		link_layer = IBV_LINK_LAYER_INFINIBAND;
	return host->node_type == rules->node_type &&
	       host->transport_type == rules->transport_type &&
	       (link_layer == rules->link_layer || rules->transport_type == IBV_TRANSPORT_IWARP);
}

/* The first provider that claims the device, of those that say for themselves or of the others. */
static const struct kernel_context *claimer(const struct kernel_host_device *host, bool by_itself)
{
	const struct kernel_context *context;

	for (context = contexts; context; context = context->next)
		if (by_itself == (context->claims != NULL) && claims(context, host))
			break;
	return context;
}

/* Give a device that has no owner to a provider. */
static void assign(struct device *device)
{
	struct polycm_device_info info = {
		.size = sizeof(info),
		.name = device->host.name,
		.node_guid = device->host.node_guid,
		.verbs = device->host.verbs,
	};
	const struct kernel_context *context;

	if (device->owner || device->refused)
		return;
	context = claimer(&device->host, true);
	if (!context)
		context = claimer(&device->host, false);
	if (!context)
		return;
	info.transport = context->transport->name;
	if (polycm_core_table.device_add(context->module, &info, &device->core)) {
		polycm_log(POLYCM_LOG_WARN, "%s: device %s cannot be used",
			   context->transport->name, device->host.name);
		device->refused = true;
		return;
	}
	device->owner = context;
}

static bool is_same(const struct kernel_host_device *a, const struct kernel_host_device *b)
{
	return !strcmp(a->name, b->name) && a->node_guid == b->node_guid && a->index == b->index &&
	       a->node_type == b->node_type && a->transport_type == b->transport_type &&
	       a->link_layer == b->link_layer;
}

static int add(const struct kernel_host_device *host)
{
	struct device *device = calloc(1, sizeof(*device)), **end;

	if (!device)
		return -ENOMEM;
	device->host = *host;
	device->host.name[sizeof(device->host.name) - 1] = '\0';
	device->seen = true;
	for (end = &devices; *end; end = &(*end)->next)
		;
	*end = device;
	return 0;
}

/* Under the lock: mark what the host has, add what is new. */
static int update(const struct kernel_host_device *list, size_t num)
{
	struct device *device;
	int r = 0;

	for (device = devices; device; device = device->next)
		device->seen = false;
	for (size_t i = 0; i < num; i++) {
		for (device = devices; device; device = device->next)
			if (is_same(&device->host, &list[i]))
				break;
		if (device) {
			device->seen = true;
			device->refused = false;
		} else if (add(&list[i]))
			r = -ENOMEM;
	}
	return r;
}

/* Under the lock: take out what the host has no more. */
static struct device *take_unseen(void)
{
	struct device **link = &devices, *gone = NULL, *device;

	while ((device = *link)) {
		if (device->seen) {
			link = &device->next;
			continue;
		}
		*link = device->next;
		device->next = gone;
		gone = device;
	}
	return gone;
}

static void end(struct device *gone)
{
	struct device *device;

	while ((device = gone)) {
		gone = device->next;
		if (device->core)
			polycm_core_table.device_remove(device->core);
		free(device);
	}
}

/*
 * Ask the host.  What is gone is given up before what is new is added, since
 * a device that was plugged again has the same name.
 */
static int list_devices_locked(void)
{
	struct kernel_host_device *list;
	struct device *gone;
	size_t num;
	int r;

	r = polycm_kernel_host->devices(&list, &num);
	if (r)
		return r;
	pthread_mutex_lock(&lock);
	r = update(list, num);
	gone = take_unseen();
	pthread_mutex_unlock(&lock);
	free(list);
	end(gone);

	pthread_mutex_lock(&lock);
	for (struct device *device = devices; device; device = device->next)
		assign(device);
	pthread_mutex_unlock(&lock);
	return r;
}

static int list_devices(void)
{
	int r;

	pthread_mutex_lock(&listing);
	r = list_devices_locked();
	pthread_mutex_unlock(&listing);
	return r;
}

int kernel_devices_enumerate(struct kernel_context *context)
{
	struct kernel_context *other;
	bool listed;

	/* Each provider is asked in turn, and one look at the host serves all. */
	pthread_mutex_lock(&lock);
	for (other = contexts; other && other != context; other = other->next)
		;
	if (!other) {
		/* What a provider's init() returned, but not what it was given here. */
		pthread_mutex_unlock(&lock);
		return -EINVAL;
	}
	listed = context->listed;
	for (other = contexts; other; other = other->next)
		other->listed = listed ? other->listed : true;
	context->listed = false;
	pthread_mutex_unlock(&lock);
	return listed ? 0 : list_devices();
}

/* Under the lock. */
static const struct device *lookup(const struct kernel_place *place)
{
	const struct device *device;

	if (place->index != KERNEL_NO_NUMBER)
		for (device = devices; device; device = device->next)
			if (device->host.index >= 0 &&
			    (uint32_t)device->host.index == place->index)
				return device;
	for (device = devices; device; device = device->next)
		if ((place->index == KERNEL_NO_NUMBER || device->host.index < 0) &&
		    device->host.node_guid == place->node_guid)
			return device;
	return NULL;
}

static const char *kind_of(const struct kernel_host_device *host)
{
	if (host->transport_type == IBV_TRANSPORT_IWARP)
		return "an iWARP device";
	if (host->transport_type != IBV_TRANSPORT_IB)
		return "a device of another kind";
	return host->link_layer == IBV_LINK_LAYER_ETHERNET ? "a RoCE device"
							   : "an InfiniBand device";
}

/* Why the device is of no use. */
static void tell(const struct device *device, char where[static KERNEL_WHERE_TEXT])
{
	const char *setting = polycm_setting("POLYCM_PROVIDER");

	if (!device)
		(void)snprintf(where, KERNEL_WHERE_TEXT, "a device that libibverbs does not list");
	else if (polycm_setting_given("POLYCM_PROVIDER"))
		(void)snprintf(where, KERNEL_WHERE_TEXT, "%s, %s, and POLYCM_PROVIDER=%s has no "
			       "provider for it", device->host.name, kind_of(&device->host), setting);
	else
		(void)snprintf(where, KERNEL_WHERE_TEXT, "%s, %s that no provider is for",
			       device->host.name, kind_of(&device->host));
}

/* -ENOENT: not listed, so it may have been plugged since; -ENODEV: listed, and nobody's. */
static int find_once(const struct kernel_place *place, struct polycm_device **ret_device,
		     const struct polycm_transport **ret_rules, char where[static KERNEL_WHERE_TEXT])
{
	const struct device *device;
	int r = -ENOENT;

	pthread_mutex_lock(&lock);
	device = lookup(place);
	if (device && device->owner) {
		*ret_device = device->core;
		*ret_rules = device->owner->transport;
		where[0] = '\0';
		r = 0;
	} else {
		tell(device, where);
		if (device)
			r = -ENODEV;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

int kernel_devices_find(const struct kernel_place *place, struct polycm_device **ret_device,
			const struct polycm_transport **ret_rules, char where[static KERNEL_WHERE_TEXT])
{
	int r = find_once(place, ret_device, ret_rules, where);

	if (r == -ENOENT && !list_devices())
		r = find_once(place, ret_device, ret_rules, where);
	return r == -ENOENT ? -ENODEV : r;
}

bool kernel_devices_any(const struct kernel_context *context,
			bool (*fn)(const char *name, void *arg), void *arg)
{
	const struct device *device;

	pthread_mutex_lock(&lock);
	for (device = devices; device; device = device->next)
		if (device->owner == context && (!fn || fn(device->host.name, arg)))
			break;
	pthread_mutex_unlock(&lock);
	return device;
}
