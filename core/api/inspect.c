/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api/inspect.c - for support: what the library and a provider know of an id or
 * a device, all of it as a dump, and a provider's private functions.
 *
 * What is known is collected under the locks of the id and the provider, and
 * shown when they are free again.
 */
#include "config.h"
#include "core/cm/id_internal.h"
#include "polycm/polycm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/addr.h"
#include "core/base/export.h"
#include "core/cm/left.h"
#include "core/cm/ret.h"
#include "core/plugin/op.h"

#define NO_FUNCTION "no function to call"

typedef int (*fact_t)(void *arg, const char *name, const char *value);

/* Facts that are being collected: names and values, each ended by a 0. */
struct facts {
	struct polycm_report report;	/* first */
	FILE *memory;
	char *text;
	size_t size;
	bool failed;			/* no memory for one */
};

/* With its 0.  A plugin's text may hold anything; names and values stay one line each. */
static int put_line(FILE *memory, const char *text)
{
	for (; *text; text++)
		fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, memory);
	fputc('\0', memory);
	return ferror(memory);
}

static __attribute__((format(printf, 3, 4)))
void put(const struct polycm_report *to, const char *name, const char *format, ...)
{
	struct facts *facts = (struct facts *)(uintptr_t)to;
	char *value = NULL;
	va_list args;

	if (!name || !format) {
		polycm_misuse_at(__builtin_return_address(0), "put", "it needs a name and a format");
		return;
	}
	va_start(args, format);
	if (vasprintf(&value, format, args) < 0)
		value = NULL;
	va_end(args);
	facts->failed |= !value || put_line(facts->memory, name) || put_line(facts->memory, value);
	free(value);
}

static int begin(struct facts *facts)
{
	*facts = (struct facts){ .report = { .size = sizeof(facts->report), .put = put } };
	facts->memory = open_memstream(&facts->text, &facts->size);
	return facts->memory ? 0 : -ENOMEM;
}

/* Show the facts to fn until it returns other than 0, and free them. */
static int finish(struct facts *facts, const char *call, fact_t fn, void *arg)
{
	const char *name, *value, *after;
	int result = 0;

	if (fclose(facts->memory) || facts->failed)
		result = polycm_ret(call, NULL, -ENOMEM);
	after = facts->text + facts->size;
	for (name = facts->text; !result && name < after; name = value + strlen(value) + 1) {
		value = name + strlen(name) + 1;
		result = fn(arg, name, value);
	}
	free(facts->text);
	return result;
}

/* ------------------------------------------------------------------------
 * Ids and devices.
 */

/* Under the id's lock. */
static void collect_id(struct polycm_id *id, const struct polycm_report *to)
{
	char addr[POLYCM_ADDR_TEXT];

	to->put(to, "provider", "%s", id->module ? id->module->name : "none yet");
	to->put(to, "device", "%s", id->device ? id->device->name : "none yet");
	to->put(to, "source", "%s", polycm_addr_text(&id->pub.route.addr.src_addr, addr));
	to->put(to, "destination", "%s", polycm_addr_text(&id->pub.route.addr.dst_addr, addr));
	if (id->pub.qp)
		to->put(to, "queue pair", "0x%06x", id->pub.qp->qp_num);
	if (id->backlog)
		to->put(to, "backlog", "%u", id->backlog);
	to->put(to, "events not acknowledged", "%u",
		__atomic_load_n(&id->unacked, __ATOMIC_RELAXED));
	if (id->module && id->chan)
		id->module->ops.inspect(id->priv, to);
}

POLYCM_EXPORT int polycm_id_walk(struct rdma_cm_id *pub, fact_t fn, void *arg)
{
	struct polycm_id *id = polycm_enter(pub);
	struct facts facts;
	int r;

	if (!id)
		return polycm_refused(__func__);
	r = fn ? begin(&facts) : polycm_fail(-EINVAL, NO_FUNCTION);
	if (!r)
		collect_id(id, &facts.report);
	polycm_leave(id);
	return r ? polycm_ret(__func__, NULL, r) : finish(&facts, __func__, fn, arg);
}

static __attribute__((format(printf, 3, 4)))
void put_nothing(const struct polycm_report *to, const char *name, const char *format, ...)
{
	(void)to;
	(void)name;
	(void)format;
}

/* Its health: 0, or a negative errno.  A provider that reports none is trusted. */
static int health(const struct polycm_device *device, const struct polycm_report *to)
{
	struct polycm_module *module = device->module;
	int r = POLYCM_OP(module, inspect_device, module->ctx, device->name, to);

	if (to->put != put_nothing)
		to->put(to, "health", "%s", !r ? "good" :
			r == -EOPNOTSUPP ? "not reported" : strerror(-r));
	return r == -EOPNOTSUPP ? 0 : r;
}

static void collect_device(const struct polycm_device *device, const struct polycm_report *to)
{
	to->put(to, "provider", "%s", device->module->name);
	to->put(to, "transport", "%s", device->transport->name);
	(void)health(device, to);
}

static int get_devices(struct polycm_device ***ret_devices, size_t *ret_num)
{
	int r = polycm_registry_get_devices();

	return r ? r : polycm_devices(ret_devices, ret_num);
}

static int show_device(const struct polycm_device *device, const char *call, fact_t fn, void *arg)
{
	struct facts facts;
	int r = begin(&facts);

	if (r)
		return polycm_ret(call, NULL, r);
	collect_device(device, &facts.report);
	return finish(&facts, call, fn, arg);
}

POLYCM_EXPORT int polycm_device_walk(const char *name, fact_t fn, void *arg)
{
	struct polycm_device **devices;
	size_t num, i;
	int r;

	polycm_why_clear();
	if (!name || !fn)
		r = polycm_fail(-EINVAL, fn ? "no name of a device" : NO_FUNCTION);
	else
		r = get_devices(&devices, &num);
	if (r)
		return polycm_ret(__func__, NULL, r);
	for (i = 0; i < num && strcmp(devices[i]->name, name) != 0; i++)
		;
	r = i < num ? show_device(devices[i], __func__, fn, arg) :
		      polycm_ret(__func__, NULL, polycm_fail(-ENODEV, "%s", name));
	polycm_devices_free(devices, num);
	return r;
}

POLYCM_EXPORT int polycm_devices_walk(int (*fn)(void *arg, const struct polycm_device_view *view),
				      void *arg)
{
	static const struct polycm_report nowhere = { .size = sizeof(nowhere), .put = put_nothing };
	struct polycm_device **devices;
	size_t num;
	int r;

	r = fn ? get_devices(&devices, &num) : -EINVAL;
	if (r) {
		errno = -r;
		return -1;
	}
	for (size_t i = 0; i < num && !r; i++) {
		struct polycm_device_view view = {
			.size = sizeof(view),
			.name = devices[i]->name,
			.provider = devices[i]->module->name,
			.transport = devices[i]->transport->name,
			.node_guid = devices[i]->node_guid,
			.simulated = devices[i]->vdev != NULL,
			.error = health(devices[i], &nowhere),
		};

		r = fn(arg, &view);
	}
	polycm_devices_free(devices, num);
	return r;
}

/* ------------------------------------------------------------------------
 * The dump.
 */

static int print_fact(void *arg, const char *name, const char *value)
{
	return fprintf(arg, "  %-24s %s\n", name, value) < 0;
}

/* Another thread may be in a call with it: that is not waited for. */
static int dump_id(FILE *to, const struct rdma_cm_id *pub)
{
	struct polycm_id *id = (struct polycm_id *)(uintptr_t)pub;
	struct facts facts;
	int r;

	if (!polycm_enter_unlocked(id))
		return 0;
	if (!polycm_latch_try(&id->id_lock)) {
		(void)polycm_leave_unlocked(id);
		return print_fact(to, "busy", "a call with it is under way");
	}
	r = begin(&facts);
	if (!r)
		collect_id(id, &facts.report);
	polycm_leave(id);
	return r ? r : finish(&facts, "polycm_dump", print_fact, to);
}

static void dump_objects(FILE *to)
{
	struct polycm_left_list list = { .num = 0 };

	polycm_left_collect(NULL, &list);
	for (size_t i = 0; i < list.num; i++) {
		fprintf(to, "%s %p: %s%s%s\n", list.items[i].kind, list.items[i].handle,
			list.items[i].text, list.items[i].made_by ? ", created by " : "",
			list.items[i].made_by ? list.items[i].made_by : "");
		if (!strcmp(list.items[i].kind, "rdma_cm_id"))
			(void)dump_id(to, list.items[i].handle);
	}
	if (list.failed)
		fputs("no memory for the rest\n", to);
	free(list.items);
}

static void dump_devices(FILE *to)
{
	struct polycm_device **devices;
	size_t num;

	/* Not those that providers would add if they were asked now. */
	if (polycm_devices(&devices, &num))
		return;
	for (size_t i = 0; i < num; i++) {
		fprintf(to, "device %s\n", devices[i]->name);
		(void)show_device(devices[i], "polycm_dump", print_fact, to);
	}
	polycm_devices_free(devices, num);
}

POLYCM_EXPORT int polycm_dump(FILE *to)
{
	polycm_why_clear();
	if (!to)
		return polycm_ret(__func__, NULL, polycm_fail(-EINVAL, "no file to write to"));
	fprintf(to, "polycm %s, process %ld\n", PACKAGE_VERSION, (long)getpid());
	dump_objects(to);
	dump_devices(to);
	return fflush(to) || ferror(to) ? polycm_ret(__func__, NULL, -EIO) : 0;
}

/* ------------------------------------------------------------------------
 * Private functions of providers.
 */

POLYCM_EXPORT const void *polycm_provider_extension(const char *provider, const char *name,
						    unsigned int version)
{
	struct polycm_module *const *modules;
	size_t num = polycm_registry_selected(&modules), i;
	const void *table = NULL;

	for (i = 0; provider && i < num && strcmp(modules[i]->name, provider) != 0; i++)
		;
	if (!provider || i == num) {
		errno = ENODEV;
		return NULL;
	}
	if (name && strchr(name, '.') && modules[i]->desc.extension)
		table = modules[i]->desc.extension(name, version);
	if (!table)
		errno = ENOENT;
	return table;
}
