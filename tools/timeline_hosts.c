/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline_hosts.c - polycm timeline: traces of several hosts (provider ofi): which nodes are the
 * same host, and what it is called.
 *
 * A line of kind host says which node the trace's own host is.  Its other nodes are other hosts,
 * each named after an address for which somebody looked.  Whose that is, a line of kind clock
 * says, or the trace of the host that has the address.  Without a line of kind host, all nodes are
 * of one simulated network: for us that is one host.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "polycm.h"
#include "timeline.h"

#define ID_SHOWN 8		/* characters of a host's number */

/* What a trace calls a host that is not its own. */
struct node {
	size_t file;
	char *name;
	int host;
};

struct address {
	char *text;
	int host;
};

struct names {
	struct timeline *timeline;
	struct node *nodes;
	struct address *addresses;
	size_t num_nodes, num_addresses;
};

/* ------------------------------------------------------------------------
 * Hosts.
 */

static int add_host(struct timeline *timeline, const char *id, const char *name)
{
	timeline->hosts = tool_realloc(timeline->hosts, timeline->num_hosts + 1,
				       sizeof(*timeline->hosts));
	timeline->hosts[timeline->num_hosts] = (struct host){
		.id = tool_strdup(id),
		.name = tool_strdup(name),
	};
	return (int)timeline->num_hosts++;
}

static int host_of_id(struct timeline *timeline, const char *id, const char *name)
{
	for (size_t i = 0; i < timeline->num_hosts; i++)
		if (!strcmp(timeline->hosts[i].id, id))
			return (int)i;
	return add_host(timeline, id, name);
}

static int host_of_address(const struct names *names, const char *text)
{
	for (size_t i = 0; i < names->num_addresses; i++)
		if (!strcmp(names->addresses[i].text, text))
			return names->addresses[i].host;
	return -1;
}

static void add_address(struct names *names, const char *text, int host)
{
	if (host_of_address(names, text) >= 0)
		return;
	names->addresses = tool_realloc(names->addresses, names->num_addresses + 1,
					sizeof(*names->addresses));
	names->addresses[names->num_addresses++] = (struct address){ tool_strdup(text), host };
}

static const char *own_node(const struct timeline *timeline, size_t file)
{
	const char *node = timeline->files[file].node;

	return node ? node : "";
}

/* -1: not known yet. */
static int host_of_node(const struct names *names, size_t file, const char *name)
{
	const struct file *of = &names->timeline->files[file];

	if (!of->node || !strcmp(of->node, name))
		return of->host;
	for (size_t i = 0; i < names->num_nodes; i++)
		if (names->nodes[i].file == file && !strcmp(names->nodes[i].name, name))
			return names->nodes[i].host;
	return -1;
}

static void add_node(struct names *names, size_t file, const char *name, int host)
{
	names->nodes = tool_realloc(names->nodes, names->num_nodes + 1, sizeof(*names->nodes));
	names->nodes[names->num_nodes++] = (struct node){ file, tool_strdup(name), host };
}

/* ------------------------------------------------------------------------
 * What the lines say.
 */

/* Whose trace it is. */
static void find_owners(struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->num_items; i++) {
		const struct item *item = &timeline->items[i];
		struct file *file = &timeline->files[item->file];

		if (item->kind != ITEM_HOST || file->node)
			continue;
		file->node = tool_strdup(item_text(item, "node"));
		file->host = host_of_id(timeline, item->text, file->node);
	}
	for (size_t i = 0; i < timeline->num_files; i++) {
		if (!timeline->files[i].node)
			timeline->files[i].host = host_of_id(timeline, "", "");
		timeline->hosts[timeline->files[i].host].traced = true;
	}
}

static void learn_own_address(struct names *names, const struct item *item)
{
	const char *node = item_text(item, "node");

	if (item->kind == ITEM_ADDRESS && !strcmp(node, own_node(names->timeline, item->file)))
		add_address(names, item->text, names->timeline->files[item->file].host);
}

static void learn_id(struct names *names, const struct item *item)
{
	const char *node = item_text(item, "node");

	if (item->kind == ITEM_CLOCK && host_of_node(names, item->file, node) < 0)
		add_node(names, item->file, node, host_of_id(names->timeline, item->text, node));
}

/* An address of a host whose number is known, in a trace that need not know it. */
static void learn_address(struct names *names, const struct item *item)
{
	int host = host_of_node(names, item->file, item_text(item, "node"));

	if (item->kind == ITEM_ADDRESS && host >= 0)
		add_address(names, item->text, host);
}

static void match_address(struct names *names, const struct item *item)
{
	const char *node = item_text(item, "node");
	int host;

	if (item->kind != ITEM_ADDRESS || host_of_node(names, item->file, node) >= 0)
		return;
	host = host_of_address(names, item->text);
	if (host >= 0)
		add_node(names, item->file, node, host);
}

/* Nobody knows it by another name. */
static int find_host(struct names *names, size_t file, const char *node)
{
	int host = host_of_node(names, file, node);

	if (host >= 0)
		return host;
	host = host_of_address(names, node);
	if (host < 0) {
		host = add_host(names->timeline, node, node);
		add_address(names, node, host);
	}
	add_node(names, file, node, host);
	return host;
}

static void find_ends(struct names *names, struct item *item)
{
	const char *here = item_text(item, !item_is_packet(item) ? "node" :
				     item->kind == ITEM_SEND ? "from" : "to");
	const char *there = item_text(item, item->kind == ITEM_SEND ? "to" : "from");

	item->writer = item->host = names->timeline->files[item->file].host;
	item->far = -1;
	if (*here)
		item->host = find_host(names, item->file, here);
	if (item_is_packet(item) && *there)
		item->far = find_host(names, item->file, there);
}

static void for_each(struct names *names, void (*learn)(struct names *, const struct item *))
{
	for (size_t i = 0; i < names->timeline->num_items; i++)
		learn(names, &names->timeline->items[i]);
}

/* ------------------------------------------------------------------------
 * Names.
 */

/* One by which others know it. */
static const char *address_of(const struct names *names, int host)
{
	for (size_t i = 0; i < names->num_nodes; i++)
		if (names->nodes[i].host == host)
			return names->nodes[i].name;
	for (size_t i = 0; i < names->num_addresses; i++)
		if (names->addresses[i].host == host)
			return names->addresses[i].text;
	return "?";
}

/* Containers and network namespaces often have the same name. */
static void tell_apart(struct names *names)
{
	struct timeline *timeline = names->timeline;
	bool *shared = tool_realloc(NULL, timeline->num_hosts, sizeof(*shared));

	for (size_t i = 0; i < timeline->num_hosts; i++) {
		shared[i] = false;
		for (size_t j = 0; j < timeline->num_hosts; j++)
			shared[i] |= i != j && !strcmp(timeline->hosts[i].name, timeline->hosts[j].name);
	}
	for (size_t i = 0; i < timeline->num_hosts; i++) {
		struct host *host = &timeline->hosts[i];
		char *name = host->name;

		if (!shared[i])
			continue;
		host->name = tool_printf("%s (%s)", name, address_of(names, (int)i));
		free(name);
	}
	free(shared);
}

static void rename_node(const struct names *names, struct item *item, const char *member)
{
	const char *node = item_text(item, member), *name;
	int host;

	if (!*node || !names->timeline->files[item->file].node)
		return;
	host = host_of_node(names, item->file, node);
	if (host < 0)
		return;
	name = names->timeline->hosts[host].name;
	if (strcmp(name, node))
		(void)json_object_set_new(item->json, member, json_string(name));
	if (item->kind == ITEM_WORLD && !strcmp(member, "node"))
		item->text = item_text(item, member);
}

void timeline_hosts(struct timeline *timeline)
{
	struct names names = { .timeline = timeline };

	find_owners(timeline);
	for_each(&names, learn_own_address);
	for_each(&names, learn_id);
	for_each(&names, learn_address);
	for_each(&names, match_address);
	for (size_t i = 0; i < timeline->num_items; i++)
		find_ends(&names, &timeline->items[i]);
	tell_apart(&names);
	for (size_t i = 0; i < timeline->num_items; i++) {
		rename_node(&names, &timeline->items[i], "node");
		rename_node(&names, &timeline->items[i], "from");
		rename_node(&names, &timeline->items[i], "to");
	}
	for (size_t i = 0; i < names.num_nodes; i++)
		free(names.nodes[i].name);
	for (size_t i = 0; i < names.num_addresses; i++)
		free(names.addresses[i].text);
	free(names.nodes);
	free(names.addresses);
}

/* ------------------------------------------------------------------------
 * Numbers.
 */

/* On which host a number of a line has its meaning. */
static int host_of_number(const struct item *item, const char *name)
{
	int sender = item->kind == ITEM_SEND ? item->host : item->far;
	int receiver = item->kind == ITEM_SEND ? item->far : item->host;

	if (!item_is_packet(item) || !strcmp(name, "id"))
		return item->host;
	if (!strcmp(name, "remote") || !strcmp(name, "dst_qpn"))
		return receiver;
	if (!strcmp(name, "qpn") && !strcmp(item->text, "DREQ"))
		return receiver;
	return sender;
}

long long timeline_key(int host, long long number)
{
	return number <= 0 || host < 0 || number >> TIMELINE_HOST_SHIFT ?
	       number : number | (long long)host << TIMELINE_HOST_SHIFT;
}

long long item_key(const struct item *item, const char *name)
{
	return timeline_key(host_of_number(item, name), item_number(item, name));
}
