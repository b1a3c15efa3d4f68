/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scene.c - owns who plays: ids, channels and QPs, their names and their end.
 */
#include <dlfcn.h>

#include "scene_data.h"
#include "scene_internal.h"

struct rdma_event_channel *client_events, *server_events;
struct rdma_cm_id *client, *server, *child;

enum { MAX_KNOWN = 2200, NAME_LEN = 24 };

struct known {
	const void *thing;
	char name[NAME_LEN];
};

static struct known ids[MAX_KNOWN], channels[64], qps[64];
static uint32_t gone_qps[64];	/* numbers of destroyed ones, which events may still have */
static unsigned int num_gone;
static unsigned int num_ids, num_channels, num_qps, num_children;

/* --- Names. --- */

static struct known *find(struct known *table, unsigned int num, const void *thing)
{
	while (num--) {
		if (table[num].thing == thing)
			return &table[num];
	}
	return NULL;
}

static void learn(struct known *table, unsigned int *num, unsigned int room, const void *thing,
		  const char *name)
{
	struct known *known = find(table, *num, thing);

	if (!known) {
		if (*num == room)
			abort();
		known = &table[(*num)++];
	}
	known->thing = thing;
	snprintf(known->name, sizeof(known->name), "%s", name);
}

void name_channel(const char *name, struct rdma_event_channel *events)
{
	learn(channels, &num_channels, ARRAY_LEN(channels), events, name);
}

void name_id(const char *name, struct rdma_cm_id *id)
{
	learn(ids, &num_ids, ARRAY_LEN(ids), id, name);
}

void name_child(struct rdma_cm_id *id)
{
	char name[NAME_LEN] = "child";

	if (++num_children > 1)
		snprintf(name, sizeof(name), "child%u", num_children);
	name_id(name, id);
}

const char *id_name(const struct rdma_cm_id *id)
{
	const struct known *known = find(ids, num_ids, id);

	return !id ? "no id" : known ? known->name : "an unknown id";
}

bool knows_id(const struct rdma_cm_id *id)
{
	return find(ids, num_ids, id) != NULL;
}

const char *channel_name(const struct rdma_event_channel *events)
{
	const struct known *known = find(channels, num_channels, events);

	return known ? known->name : "an unknown channel";
}

static void forget(struct known *table, unsigned int *num, const void *thing)
{
	struct known *known = find(table, *num, thing);

	if (!known)
		return;
	memmove(known, known + 1, (size_t)(table + *num - known - 1) * sizeof(*known));
	(*num)--;
}

void forget_id(struct rdma_cm_id *id)
{
	forget(ids, &num_ids, id);
}

void forget_channel(struct rdma_event_channel *events)
{
	forget(channels, &num_channels, events);
}

void know_qp(struct ibv_qp *qp)
{
	learn(qps, &num_qps, ARRAY_LEN(qps), qp, "");
}

bool knows_qp(uint32_t qp_num)
{
	unsigned int i;

	for (i = 0; i < num_gone; i++) {
		if (gone_qps[i] == qp_num)
			return true;
	}
	for (i = 0; i < num_qps; i++) {
		if (((const struct ibv_qp *)qps[i].thing)->qp_num == qp_num)
			return true;
	}
	for (i = 0; i < num_ids; i++) {
		const struct rdma_cm_id *id = ids[i].thing;

		if (id->qp && id->qp->qp_num == qp_num)
			return true;
	}
	return false;
}

/* --- Making. --- */

struct rdma_event_channel *make_channel(const char *name)
{
	struct rdma_event_channel *events = rdma_create_event_channel();

	if (!events)
		end_failed("rdma_create_event_channel");
	name_channel(name, events);
	return events;
}

struct rdma_cm_id *make_id(const char *name, struct rdma_event_channel *events,
			   enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(events, &id, NULL, ps))
		end_failed("rdma_create_id");
	name_id(name, id);
	return id;
}

void at_server(bool there)
{
	void *function = dlsym(RTLD_DEFAULT, "two_hosts_at_server");
	void (*two_hosts_at)(bool there);

	if (!function)
		return;
	memcpy(&two_hosts_at, &function, sizeof(two_hosts_at));
	two_hosts_at(there);
}

struct rdma_event_channel *make_server_channel(const char *name)
{
	struct rdma_event_channel *events;

	at_server(true);
	events = make_channel(name);
	at_server(false);
	return events;
}

void open_channels(void)
{
	client_events = make_channel("client");
	server_events = make_server_channel("server");
}

void open_scene(enum rdma_port_space ps)
{
	open_channels();
	server = make_id("server", server_events, ps);
	client = make_id("client", client_events, ps);
}

/* --- The end. --- */

void destroy_shown(const char *name, struct rdma_cm_id *id)
{
	if (id->qp && num_gone < ARRAY_LEN(gone_qps))
		gone_qps[num_gone++] = id->qp->qp_num;
	if (id->qp)
		rdma_destroy_qp(id);
	forget_id(id);
	if (rdma_destroy_id(id))
		say("rdma_destroy_id(%s) = -1 %s", name, errno_text(errno));
	else
		say("rdma_destroy_id(%s) = 0", name);
	settle();
}

static void destroy_all(void)
{
	unsigned int i;

	/* External QPs first, they hold what the ids' devices have. */
	for (i = num_qps; i--;)
		ibv_destroy_qp((struct ibv_qp *)(uintptr_t)qps[i].thing);
	for (i = num_ids; i--;) {
		struct rdma_cm_id *id = (struct rdma_cm_id *)(uintptr_t)ids[i].thing;

		if (id->qp)
			rdma_destroy_qp(id);
		if (rdma_destroy_id(id))
			say("rdma_destroy_id(%s) = -1 %s", ids[i].name, errno_text(errno));
	}
	for (i = num_channels; i--;)
		rdma_destroy_event_channel((struct rdma_event_channel *)(uintptr_t)channels[i].thing);
}

void scene_forget_all(void)
{
	num_ids = num_channels = num_qps = 0;
}

void scene_begin(const struct scenario *scenario)
{
	trace_begin();
	time_begin(scenario);
	watchdog(scenario->flags & SLOW ? 1300 : 120);
}

void scene_end(void)
{
	peers_end();
	unacked_are_acked();
	data_end();
	destroy_all();
	fflush(NULL);
}
