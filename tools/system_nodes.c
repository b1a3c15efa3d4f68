/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_nodes.c - the nodes of a system as hosts: their addresses, which the scenario has, and the
 * names by which programs find them.
 */
#include "config.h"

#include <arpa/inet.h>
#include <libconfig.h>
#include <stdlib.h>
#include <string.h>

#include "system.h"

/* "10.0.0.1/24"; the simulator has refused what is no address. */
static void add(struct system *system, const char *node, const char *interface, const char *text)
{
	struct system_address address = { .node = tool_strdup(node),
					  .interface = tool_strdup(interface) };
	char *host = tool_strdup(text), *slash = strchr(host, '/');

	if (slash)
		*slash = '\0';
	if (inet_pton(AF_INET, host, address.bytes + 12) == 1)
		address.bytes[10] = address.bytes[11] = 0xff;
	else if (inet_pton(AF_INET6, host, address.bytes) == 1)
		address.is_ipv6 = true;
	else
		goto out;
	address.prefix_len = slash ? (unsigned int)atoi(slash + 1) : address.is_ipv6 ? 128 : 32;
	system->addresses = tool_realloc(system->addresses, system->num_addresses + 1,
					 sizeof(address));
	system->addresses[system->num_addresses++] = address;
out:
	free(host);
}

/* One, or a list of them. */
static void add_all(struct system *system, const char *node, const char *interface,
		    const config_setting_t *addresses)
{
	const char *text;

	if (!addresses)
		return;
	if (!config_setting_is_aggregate(addresses)) {
		text = config_setting_get_string(addresses);
		if (text)
			add(system, node, interface, text);
		return;
	}
	for (int i = 0; i < config_setting_length(addresses); i++) {
		text = config_setting_get_string_elem(addresses, i);
		if (text)
			add(system, node, interface, text);
	}
}

static unsigned int length_of(const config_setting_t *list)
{
	return list ? (unsigned int)config_setting_length(list) : 0;
}

/* num_devices: of the nodes before; interfaces are named as the simulator names them. */
static unsigned int add_node(struct system *system, const config_setting_t *node,
			     unsigned int num_devices)
{
	const config_setting_t *devices = config_setting_get_member(node, "devices");
	const config_setting_t *interfaces = config_setting_get_member(node, "interfaces");
	const char *name, *interface;

	if (!config_setting_lookup_string(node, "name", &name))
		return num_devices;
	for (unsigned int i = 0; i < length_of(devices); i++) {
		char *made = tool_printf("eth%u", num_devices++);

		add_all(system, name, made, config_setting_get_member(
				config_setting_get_elem(devices, i), "addresses"));
		free(made);
	}
	for (unsigned int i = 0; i < length_of(interfaces); i++) {
		const config_setting_t *one = config_setting_get_elem(interfaces, i);

		if (config_setting_lookup_string(one, "name", &interface))
			add_all(system, name, interface, config_setting_get_member(one, "address"));
	}
	return num_devices;
}

void system_read_nodes(struct system *system, const char *scenario)
{
	const config_setting_t *nodes;
	unsigned int num_devices = 0;
	config_t config;

	config_init(&config);
	if (config_read_file(&config, scenario) == CONFIG_TRUE) {
		nodes = config_lookup(&config, "nodes");
		for (unsigned int i = 0; i < length_of(nodes); i++)
			num_devices = add_node(system, config_setting_get_elem(nodes, i),
					       num_devices);
	}
	config_destroy(&config);
}

char *system_nodes_without(const char *scenario, const char *node)
{
	const config_setting_t *nodes;
	char *all = tool_strdup("");
	bool has = false;
	const char *name;
	config_t config;

	config_init(&config);
	if (config_read_file(&config, scenario) == CONFIG_TRUE) {
		nodes = config_lookup(&config, "nodes");
		for (unsigned int i = 0; i < length_of(nodes); i++) {
			if (!config_setting_lookup_string(config_setting_get_elem(nodes, i), "name",
							  &name))
				continue;
			tool_append(&all, "%s%s", *all ? ", " : "", name);
			has = has || !strcmp(name, node);
		}
	}
	config_destroy(&config);
	if (!has)
		return all;
	free(all);
	return NULL;
}

void system_show_hosts(const struct system *system)
{
	struct turn_segment *segment = system->segment;

	for (size_t i = 0; i < system->num_addresses && i < TURN_MAX_NODE_ADDRESSES; i++)
		memcpy(segment->addresses[segment->num_addresses++], system->addresses[i].bytes, 16);
	for (size_t program = 0; program < system->num; program++) {
		struct turn_host *host = &system->segment->hosts[program];

		for (size_t i = 0; i < system->num_addresses; i++) {
			const struct system_address *address = &system->addresses[i];

			if (!strcmp(address->node, system->programs[program].node) &&
			    host->num < TURN_MAX_ADDRESSES)
				memcpy(host->addresses[host->num++], address->bytes, 16);
		}
	}
}

const void *system_address_bytes(const struct system_address *address)
{
	return address->is_ipv6 ? address->bytes : address->bytes + 12;
}

/* To be freed. */
static char *text_of(const struct system_address *address)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(address->is_ipv6 ? AF_INET6 : AF_INET, system_address_bytes(address), text,
		  sizeof(text));
	return tool_strdup(text);
}

void system_tell_nodes(const struct system *system)
{
	const char *node = NULL;
	char *all = NULL;

	for (size_t i = 0; i < system->num_addresses; i++) {
		const struct system_address *address = &system->addresses[i];
		const bool is_same = node && !strcmp(node, address->node);
		char *text = text_of(address);

		if (is_same)
			tool_append(&all, ", %s", text);
		else
			tool_append(&all, "%s%s (%s", node ? "), " : "", address->node, text);
		node = address->node;
		free(text);
	}
	if (all)
		tool_error("run: nodes: %s)", all);
	free(all);
}

void system_tell_own_nodes(const struct system *system)
{
	const struct system_address *addresses = system->addresses;
	const size_t num = system->num_addresses;

	if (system->has_own_nodes && num && strcmp(addresses[0].node, addresses[num - 1].node) != 0)
		system_tell_nodes(system);
}

int system_write_hosts(const struct system *system, const char *path)
{
	FILE *file = fopen(path, "we");

	if (!file)
		return -1;
	fputs("127.0.0.1\tlocalhost\n::1\tlocalhost\n", file);
	for (size_t i = 0; i < system->num_addresses; i++) {
		char *text = text_of(&system->addresses[i]);

		fprintf(file, "%s\t%s\n", text, system->addresses[i].node);
		free(text);
	}
	return fclose(file) ? -1 : 0;
}
