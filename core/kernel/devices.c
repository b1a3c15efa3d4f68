/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel/devices.c - the RDMA devices of the host, and which provider over the
 * kernel has which.
 *
 * These providers share one list.  It also has devices that no provider claims, for log
 * lines about addresses on them.  If the ports of a card have different link layers, the
 * ports of each link layer are a part of the card, which is claimed separately.
 *
 * `kernel_devices_lock' protects the list and the contexts.  It is held while a device is added to the
 * core, but not while the host is queried or a device is removed.  `listing_lock' is taken
 * before it: only one thread at a time updates the list.
 */
#include "config.h"
#include "internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "core/base/alone.h"
#include "core/device/device.h"
#include "core/plugin/options.h"

/* The ports of one link layer. */
struct part {
	uint8_t first_port;
	uint8_t link_layer;			/* as the host reports it */
	const struct kernel_context *owner;	/* NULL: no provider claims it */
	struct polycm_device *core;		/* the owner's; one for all parts that it has */
	bool refused;				/* the core did not take it */
};

struct device {
	struct device *next;
	struct kernel_host_device host;
	struct part parts[2];
	unsigned int num_parts;
	bool seen;
};

static pthread_mutex_t listing_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t kernel_devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct device *devices;
static struct kernel_context *contexts;

void kernel_context_add(struct kernel_context *context)
{
	pthread_mutex_lock(&kernel_devices_lock);
	LL_APPEND(contexts, context);
	pthread_mutex_unlock(&kernel_devices_lock);
}

/*
 * The process ends.  The core keeps the devices that it was given.  The context is not
 * freed: other threads may still be using it.
 */
void kernel_context_remove(void *ctx)
{
	struct kernel_context *context = ctx;
	struct device *device;

	pthread_mutex_lock(&kernel_devices_lock);
	if (contexts)
		LL_DELETE(contexts, context);
	LL_FOREACH(devices, device)
		for (unsigned int i = 0; i < device->num_parts; i++)
			if (device->parts[i].owner == context)
				device->parts[i].owner = NULL;
	pthread_mutex_unlock(&kernel_devices_lock);
}

/* Drivers that do not report one are for InfiniBand. */
static uint8_t layer_of(uint8_t reported)
{
	return reported == IBV_LINK_LAYER_UNSPECIFIED ? IBV_LINK_LAYER_INFINIBAND : reported;
}

static unsigned int part_of_port(const struct device *device, uint8_t port_num)
{
	unsigned int port = port_num && port_num <= KERNEL_PORTS ? port_num - 1u : 0, i;

	for (i = device->num_parts; i-- > 1;)
		if (layer_of(device->parts[i].link_layer) ==
		    layer_of(device->host.link_layer[port]))
			return i;
	return 0;
}

static void find_parts(struct device *device)
{
	const uint8_t *layers = device->host.link_layer;

	device->parts[0] = (struct part){ .first_port = 1, .link_layer = layers[0] };
	device->num_parts = 1;
	for (uint8_t i = 1; i < KERNEL_PORTS && device->num_parts == 1; i++)
		if (layer_of(layers[i]) != layer_of(layers[0]))
			device->parts[device->num_parts++] =
				(struct part){ .first_port = i + 1, .link_layer = layers[i] };
}

static bool claims(const struct kernel_context *context, const struct kernel_host_device *host,
		   const struct part *part)
{
	const struct polycm_transport *rules = context->transport;
	const struct polycm_kernel_device device = {
		.size = sizeof(device),
		.name = host->name,
		.node_guid = host->node_guid,
		.index = host->index,
		.node_type = host->node_type,
		.transport_type = host->transport_type,
		.link_layer = part->link_layer,
	};

	if (context->claims)
		return context->claims(&device);
	return host->node_type == rules->node_type &&
	       host->transport_type == rules->transport_type &&
	       (layer_of(part->link_layer) == rules->link_layer ||
		rules->transport_type == IBV_TRANSPORT_IWARP);
}

/* The first provider that claims the part: of those with a claims() function, or of the others. */
static const struct kernel_context *claimer(const struct kernel_host_device *host,
					    const struct part *part, bool by_itself)
{
	const struct kernel_context *context;

	LL_FOREACH(contexts, context)
		if (by_itself == (context->claims != NULL) && claims(context, host, part))
			break;
	return context;
}

/* Give a part that has no owner to a provider. */
static void assign(struct device *device, struct part *part)
{
	struct part *other = &device->parts[part == device->parts];
	struct polycm_device_info info = {
		.size = sizeof(info),
		.name = device->host.name,
		.node_guid = device->host.node_guid,
		.verbs = device->host.verbs,
	};
	const struct kernel_context *context;

	if (part->owner || part->refused)
		return;
	context = claimer(&device->host, part, true);
	if (!context)
		context = claimer(&device->host, part, false);
	if (!context)
		return;
	info.transport = context->transport->name;
	if (other->core && other->owner == context) {
		part->core = other->core;
	} else if (polycm_device_add_ports(context->module, &info, part->first_port, other->core,
					   &part->core)) {
		polycm_log(POLYCM_LOG_WARN, "%s: device %s cannot be used",
			   context->transport->name, device->host.name);
		part->refused = true;
		return;
	}
	part->owner = context;
}

static bool is_same(const struct kernel_host_device *a, const struct kernel_host_device *b)
{
	return !strcmp(a->name, b->name) && a->node_guid == b->node_guid && a->index == b->index &&
	       a->node_type == b->node_type && a->transport_type == b->transport_type &&
	       !memcmp(a->link_layer, b->link_layer, sizeof(a->link_layer));
}

static int add(const struct kernel_host_device *host)
{
	struct device *device = calloc(1, sizeof(*device));

	if (!device)
		return -ENOMEM;
	device->host = *host;
	device->host.name[sizeof(device->host.name) - 1] = '\0';
	device->seen = true;
	find_parts(device);
	LL_APPEND(devices, device);
	return 0;
}

/* Under the lock: mark what the host has, add what is new. */
static int update(const struct kernel_host_device *list, size_t num)
{
	struct device *device;
	int r = 0;

	LL_FOREACH(devices, device)
		device->seen = false;
	for (size_t i = 0; i < num; i++) {
		LL_FOREACH(devices, device)
			if (is_same(&device->host, &list[i]))
				break;
		if (device) {
			device->seen = true;
			device->parts[0].refused = device->parts[1].refused = false;
		} else if (add(&list[i]))
			r = -ENOMEM;
	}
	return r;
}

/* Under the lock: take out devices that the host no longer has. */
static struct device *take_unseen(void)
{
	struct device *gone = NULL, *device, *next;

	LL_FOREACH_SAFE(devices, device, next) {
		if (device->seen)
			continue;
		LL_DELETE(devices, device);
		LL_PREPEND(gone, device);
	}
	return gone;
}

static void end(struct device *gone)
{
	struct device *device, *next;

	LL_FOREACH_SAFE(gone, device, next) {
		if (device->parts[0].core)
			polycm_core_table.device_remove(device->parts[0].core);
		if (device->parts[1].core && device->parts[1].core != device->parts[0].core)
			polycm_core_table.device_remove(device->parts[1].core);
		free(device);
	}
}

/*
 * Query the host.  Removed devices leave the core before new ones enter it, since a
 * device that was plugged in again has the same name.
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
	pthread_mutex_lock(&kernel_devices_lock);
	r = update(list, num);
	gone = take_unseen();
	pthread_mutex_unlock(&kernel_devices_lock);
	free(list);
	end(gone);

	pthread_mutex_lock(&kernel_devices_lock);
	for (struct device *device = devices; device; device = device->next)
		for (unsigned int i = 0; i < device->num_parts; i++)
			assign(device, &device->parts[i]);
	pthread_mutex_unlock(&kernel_devices_lock);
	return r;
}

/* With cancellation off: libibverbs reads files, and the locks would stay locked. */
static int list_devices(void)
{
	int r, old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_mutex_lock(&listing_lock);
	r = list_devices_locked();
	pthread_mutex_unlock(&listing_lock);
	pthread_setcancelstate(old, NULL);
	return r;
}

int kernel_devices_enumerate(void *ctx)
{
	struct kernel_context *context = ctx;
	struct kernel_context *other;
	bool listed;

	/* The core asks each provider in turn; one query of the host serves all of them. */
	pthread_mutex_lock(&kernel_devices_lock);
	for (other = contexts; other && other != context; other = other->next)
		;
	if (!other) {
		/* The provider's init() returned another context than it got here. */
		pthread_mutex_unlock(&kernel_devices_lock);
		return -EINVAL;
	}
	listed = context->listed;
	for (other = contexts; other; other = other->next)
		other->listed = listed ? other->listed : true;
	context->listed = false;
	pthread_mutex_unlock(&kernel_devices_lock);
	return listed ? 0 : list_devices();
}

/* Under the lock. */
static const struct device *lookup(const struct kernel_place *place)
{
	const struct device *device;

	if (place->index != KERNEL_NO_NUMBER)
		LL_FOREACH(devices, device)
			if (device->host.index >= 0 &&
			    (uint32_t)device->host.index == place->index)
				return device;
	LL_FOREACH(devices, device)
		if ((place->index == KERNEL_NO_NUMBER || device->host.index < 0) &&
		    device->host.node_guid == place->node_guid)
			return device;
	return NULL;
}

static const char *kind_of(const struct kernel_host_device *host, uint8_t link_layer)
{
	if (host->transport_type == IBV_TRANSPORT_IWARP)
		return "an iWARP device";
	if (host->transport_type != IBV_TRANSPORT_IB)
		return "a device of another kind";
	return link_layer == IBV_LINK_LAYER_ETHERNET ? "a RoCE device" : "an InfiniBand device";
}

/* Why the device cannot be used. */
static void describe_unclaimed(const struct device *device, const struct kernel_place *place,
			       char where[static KERNEL_WHERE_TEXT])
{
	const char *setting = polycm_setting("POLYCM_PROVIDER"), *kind;
	char name[KERNEL_DEVICE_NAME + sizeof("/255")];

	if (!device) {
		(void)snprintf(where, KERNEL_WHERE_TEXT, "a device that libibverbs does not list");
		return;
	}
	kind = kind_of(&device->host, device->parts[part_of_port(device, place->port_num)].link_layer);
	if (device->num_parts > 1)
		(void)snprintf(name, sizeof(name), "%s/%u", device->host.name, place->port_num);
	else
		(void)snprintf(name, sizeof(name), "%s", device->host.name);
	if (polycm_setting_given("POLYCM_PROVIDER"))
		(void)snprintf(where, KERNEL_WHERE_TEXT, "%s, %s, and POLYCM_PROVIDER=%s has no "
			       "provider for it", name, kind, setting);
	else
		(void)snprintf(where, KERNEL_WHERE_TEXT, "%s, %s that no provider is for", name, kind);
}

/* -ENOENT: not listed, perhaps plugged in since; -ENODEV: listed, but no provider claims it. */
static int find_once(const struct kernel_place *place, struct polycm_device **ret_device,
		     const struct polycm_transport **ret_rules, char where[static KERNEL_WHERE_TEXT])
{
	const struct device *device;
	const struct part *part;
	int r = -ENOENT;
	bool locked;

	locked = polycm_lock(&kernel_devices_lock);
	device = lookup(place);
	part = device ? &device->parts[part_of_port(device, place->port_num)] : NULL;
	if (part && part->owner) {
		*ret_device = part->core;
		*ret_rules = part->owner->transport;
		where[0] = '\0';
		r = 0;
	} else {
		describe_unclaimed(device, place, where);
		if (device)
			r = -ENODEV;
	}
	polycm_unlock(&kernel_devices_lock, locked);
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
			bool (*fn)(const char *name, uint8_t link_layer, void *arg), void *arg)
{
	bool found = false;

	pthread_mutex_lock(&kernel_devices_lock);
	for (struct device *device = devices; device && !found; device = device->next) {
		bool mixed = device->num_parts > 1;

		for (unsigned int i = 0; i < device->num_parts && !found; i++)
			found = device->parts[i].owner == context &&
				(!fn || fn(device->host.name, mixed ? device->parts[i].link_layer
								    : IBV_LINK_LAYER_UNSPECIFIED,
					   arg));
	}
	pthread_mutex_unlock(&kernel_devices_lock);
	return found;
}
