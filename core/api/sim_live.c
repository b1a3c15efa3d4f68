/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api/sim_live.c - the functions of <polycm/sim.h> about objects that the program has not
 * destroyed, the library's (cm/left.c) and the provider's, and the calls that fail or
 * destroy them because of it.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/device/device.h"
#include "core/base/export.h"
#include "core/base/log.h"
#include "core/cm/left.h"
#include "sim_api.h"

#define MAX_LOGGED 20

/* ------------------------------------------------------------------------
 * All of it.
 */

/* Called by the provider under its locks. */
static void add_object(void *arg, const char *kind, const void *handle, const char *text)
{
	struct polycm_left left = { .kind = kind, .handle = handle };

	(void)snprintf(left.text, sizeof(left.text), "%s", text);
	polycm_left_add(arg, &left);
}

/* 0 or -ENOMEM; free list->items in any case. */
static int collect(struct polycm_left_list *list)
{
	const struct polycm_sim_ops *table = polycm_sim_table();
	size_t first, kept;

	polycm_left_collect(polycm_sim_owner(), list);
	first = kept = list->num;
	if (table->left)
		table->left(add_object, list);
	/* The library's own contexts, PDs and XRC domains stay with the device. */
	for (size_t i = first; i < list->num; i++)
		if (!polycm_device_of_verbs(list->items[i].handle))
			list->items[kept++] = list->items[i];
	list->num = kept;
	return list->failed ? -ENOMEM : 0;
}

static const char *file_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/* "CONNECT_REQUEST from ..., created by rdma_get_cm_event in serve+0x44 (server)" */
static void put_text(const struct polycm_left *left, char *text, size_t size)
{
	const char *at = left->made_at;
	size_t len = (size_t)snprintf(text, size, "%s", left->text);
	Dl_info info;

	if (!left->made_by || len >= size)
		return;
	len += (size_t)snprintf(text + len, size - len, ", created by %s", left->made_by);
	if (!at || len >= size || !dladdr(at, &info) || !info.dli_fname)
		return;
	if (info.dli_sname)
		(void)snprintf(text + len, size - len, " in %s+0x%zx (%s)", info.dli_sname,
			       (size_t)(at - (const char *)info.dli_saddr),
			       file_name(info.dli_fname));
	else
		(void)snprintf(text + len, size - len, " in %s+0x%zx", file_name(info.dli_fname),
			       (size_t)(at - (const char *)info.dli_fbase));
}

/* How each kind is ended. */
static const char *missing(const char *kind)
{
	if (!strcmp(kind, "event"))
		return "never acknowledged";
	return strcmp(kind, "context") && strcmp(kind, "XRC domain") ? "never destroyed" :
								       "never closed";
}

static bool keeps_fabric(const struct polycm_left *left)
{
	return strcmp(left->kind, "event channel") && strcmp(left->kind, "event");
}

/* A line for each. */
static void log_left(const char *call)
{
	struct polycm_left_list list = { .num = 0 };
	unsigned int logged = 0, more = 0;
	char text[400];

	(void)collect(&list);
	for (size_t i = 0; i < list.num; i++) {
		const struct polycm_left *left = &list.items[i];

		if (!keeps_fabric(left))
			continue;
		if (logged == MAX_LOGGED) {
			more++;
			continue;
		}
		put_text(left, text, sizeof(text));
		polycm_log(POLYCM_LOG_ERROR, "%s: left: %s%s%s, %s", call, left->kind,
			   *text ? ", " : "", text, missing(left->kind));
		logged++;
	}
	if (more)
		polycm_log(POLYCM_LOG_ERROR, "%s: left: %u more; polycm_sim_live_walk() shows all",
			   call, more);
	free(list.items);
}

/* ------------------------------------------------------------------------
 * Calls that fail while something is left.
 */

static unsigned int less(unsigned int all, unsigned int own)
{
	return all > own ? all - own : 0;
}

/* What the provider counts, without what the library keeps of each device. */
static int count(struct polycm_sim_counts *ret_counts)
{
	unsigned int contexts, pds, xrcds;
	int r;

	*ret_counts = (struct polycm_sim_counts){ .size = sizeof(*ret_counts) };
	r = POLYCM_SIM_FORWARD(live, ret_counts);
	if (r)
		return r;
	polycm_device_own_verbs(polycm_sim_owner(), &contexts, &pds, &xrcds);
	ret_counts->contexts = less(ret_counts->contexts, contexts);
	ret_counts->pds = less(ret_counts->pds, pds);
	ret_counts->xrcds = less(ret_counts->xrcds, xrcds);
	return 0;
}

/* "the fabric is in use: 2 rdma_cm_ids, 1 CQ"; false: nothing keeps it. */
static bool in_use(const struct polycm_sim_counts *c, char *ret_text, size_t size)
{
	const struct {
		const char *name;
		unsigned int count;
	} left[] = {
		{ "rdma_cm_id", c->ids }, { "QP", c->qps }, { "CQ", c->cqs }, { "SRQ", c->srqs },
		{ "MR", c->mrs }, { "MW", c->mws }, { "AH", c->ahs }, { "PD", c->pds },
		{ "TD", c->tds }, { "DM", c->dms }, { "XRC domain", c->xrcds },
		{ "completion channel", c->comp_channels }, { "context", c->contexts },
	};
	size_t start = (size_t)snprintf(ret_text, size, "the fabric is in use: "), len = start;

	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]) && len < size; i++)
		if (left[i].count)
			len += (size_t)snprintf(ret_text + len, size - len, "%s%u %s%s",
						len > start ? ", " : "", left[i].count, left[i].name,
						left[i].count > 1 ? "s" : "");
	return len > start;
}

/* Ids that the provider no longer knows count, too. */
static int check_unused(const char *call)
{
	struct polycm_left_counts left;
	struct polycm_sim_counts counts;
	char why[256];

	if (count(&counts))
		return 0;
	polycm_left_count(polycm_sim_owner(), &left);
	if (counts.ids || left.orphans)
		counts.ids = left.ids > counts.ids ? left.ids : counts.ids;
	return in_use(&counts, why, sizeof(why)) ? polycm_sim_refuse(call, -EBUSY, why) : 0;
}

static int list_if_busy(const char *call, int r)
{
	int err = errno;

	if (r && err == EBUSY)
		log_left(call);
	errno = err;
	return r;
}

/*
 * Where -lrdmacm stands before -lpolycm, the program calls librdmacm, which knows
 * no simulated device.  A library of another name in front of us may be a wrapper.
 */
static int check_linked(const char *call)
{
	static const char theirs[] = "librdmacm.so";
	void *symbol = dlsym(RTLD_DEFAULT, "rdma_create_id");
	Dl_info found, ours;
	char why[400];

	if (!symbol || !dladdr(symbol, &found) || !dladdr(theirs, &ours) ||
	    found.dli_fbase == ours.dli_fbase || !found.dli_fname ||
	    strncmp(file_name(found.dli_fname), theirs, strlen(theirs)) != 0)
		return 0;
	(void)snprintf(why, sizeof(why), "the program's rdma_* calls are those of %s: link it with "
		       "-lpolycm before -lrdmacm", found.dli_fname);
	return polycm_sim_refuse(call, -ENODEV, why);
}

/* For a new fabric. */
static int check_ready(const char *call)
{
	int r = polycm_sim_table() ? check_linked(call) : 0;

	return !r && polycm_sim_table() ? check_unused(call) : r;
}

POLYCM_EXPORT int polycm_sim_create(uint64_t seed)
{
	int r = check_ready("polycm_sim_create");

	return list_if_busy("polycm_sim_create", r ? r : POLYCM_SIM_FORWARD(create, seed));
}

POLYCM_EXPORT int polycm_sim_load(const char *path)
{
	int r = check_ready("polycm_sim_load");

	return list_if_busy("polycm_sim_load", r ? r : POLYCM_SIM_FORWARD(load, path));
}

POLYCM_EXPORT int polycm_sim_destroy(void)
{
	int r = polycm_sim_table() ? check_unused("polycm_sim_destroy") : 0;

	return list_if_busy("polycm_sim_destroy", r ? r : POLYCM_SIM_FORWARD(destroy));
}

POLYCM_EXPORT int polycm_sim_reset(void)
{
	const struct polycm_sim_ops *table = polycm_sim_table();

	if (table && table->reset)
		polycm_left_end(polycm_sim_owner());
	return POLYCM_SIM_FORWARD(reset);
}

/* ------------------------------------------------------------------------
 * Seeing what is left.
 */

POLYCM_EXPORT int polycm_sim_live(struct polycm_sim_counts *counts)
{
	struct polycm_left_counts left;
	struct polycm_sim_counts all;
	int r;

	r = count(&all);
	if (r)
		return r;
	if (!counts || counts->size < sizeof(counts->size))
		return polycm_sim_refuse("polycm_sim_live", -EINVAL,
					 "the size of the counts is not set");
	polycm_left_count(polycm_sim_owner(), &left);
	all.ids = left.ids;
	all.channels = left.channels;
	all.events = left.events;
	all.size = counts->size;
	memcpy(counts, &all, counts->size < sizeof(all) ? counts->size : sizeof(all));
	return 0;
}

POLYCM_EXPORT int polycm_sim_live_walk(int (*fn)(void *arg, const struct polycm_sim_object *object),
				       void *arg)
{
	struct polycm_left_list list = { .num = 0 };
	char text[400];
	int r = 0;

	if (!polycm_sim_table())
		return polycm_sim_finish(-ENODEV);
	if (!fn)
		return polycm_sim_refuse("polycm_sim_live_walk", -EINVAL,
					 "fn: NULL is no argument");
	r = collect(&list);
	if (r) {
		free(list.items);
		return polycm_sim_finish(r);
	}
	for (size_t i = 0; i < list.num && !r; i++) {
		const struct polycm_sim_object object = {
			.size = sizeof(object),
			.kind = list.items[i].kind,
			.handle = list.items[i].handle,
			.text = text,
		};

		put_text(&list.items[i], text, sizeof(text));
		r = fn(arg, &object);
	}
	free(list.items);
	return r;
}
