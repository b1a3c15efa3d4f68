/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/ports_area.c - the table of bound port numbers.
 *
 * A removed entry is marked free before it is unlinked, a new one is complete
 * before its family is set: so the entries alone, without the links, say at
 * any time what is bound.
 */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "providers/soft/wire/address.h"
#include "ports_area.h"

struct sim_port_binding sim_port_binding(uint32_t space, const struct sockaddr *addr,
					 unsigned int flags, unsigned int slot)
{
	struct sim_port_binding binding = {
		.space = space,
		.slot = (uint16_t)slot,
		.flags = (uint8_t)flags,
		.family = AF_INET,
		.port = sim_addr_port(addr),
	};
	union sim_sockaddr copy;
	in_addr_t ipv4;

	if (sim_addr_is_zero(addr) || sim_addr_is_loopback(addr))
		binding.flags |= SIM_PORT_ANY;
	if (sim_addr_family(addr) == AF_INET) {
		ipv4 = sim_addr_ipv4(addr);
		memcpy(binding.addr, &ipv4, sizeof(ipv4));
		return binding;
	}
	copy = sim_addr_copy(addr);
	binding.family = (uint8_t)copy.sa.sa_family;
	sim_addr_bytes(&copy, binding.addr);
	if (sim_addr_is_link_local(addr))
		binding.scope = copy.in6.sin6_scope_id;
	return binding;
}

/* One for all port spaces of a node: a socket knows nothing of them. */
static uint32_t bucket_of(uint32_t space, uint16_t port)
{
	return (port + (space >> 16) * 2654435761u) % SIM_PORT_BUCKETS;
}

void sim_ports_area_clear(struct sim_ports_area *area)
{
	for (uint32_t i = 0; i < area->used; i++) {
		const struct sim_port_binding *binding = &area->entries[i].binding;

		area->buckets[bucket_of(binding->space, binding->port)] = 0;
	}
	memset(area->entries, 0, area->used * sizeof(area->entries[0]));
	area->used = area->free = 0;
}

/* The next entry of that port on the node, in whatever port space. */
static uint32_t next_of_port(const struct sim_ports_area *area, uint32_t space, uint16_t port,
			     uint32_t after)
{
	uint32_t number = after < SIM_PORT_ENTRIES ? area->entries[after].next
						   : area->buckets[bucket_of(space, port)];

	for (; number && number <= SIM_PORT_ENTRIES; number = area->entries[number - 1].next) {
		const struct sim_port_binding *binding = &area->entries[number - 1].binding;

		if (binding->family && binding->space >> 16 == space >> 16 && binding->port == port)
			return number - 1;
	}
	return SIM_PORT_ENTRIES;
}

uint32_t sim_ports_area_next(const struct sim_ports_area *area, uint32_t space, uint16_t port,
			     uint32_t after)
{
	do
		after = next_of_port(area, space, port, after);
	while (after < SIM_PORT_ENTRIES && area->entries[after].binding.space != space);
	return after;
}

static bool same_address(const struct sim_port_binding *a, const struct sim_port_binding *b)
{
	return a->family == b->family && !memcmp(a->addr, b->addr, sizeof(a->addr)) &&
	       (!a->scope || !b->scope || a->scope == b->scope);
}

static int conflict(const struct sim_port_binding *a, const struct sim_port_binding *b, bool reuse)
{
	if (reuse && (a->flags & b->flags & SIM_BIND_REUSE))
		return 0;
	if ((a->flags & b->flags & SIM_BIND_AFONLY) && a->family != b->family)
		return 0;
	if ((a->flags | b->flags) & SIM_PORT_ANY)
		return -EADDRNOTAVAIL;
	return same_address(a, b) ? -EADDRINUSE : 0;
}

/* The first entry that is in the way of a binding, other than itself. */
static int check(const struct sim_ports_area *area, const struct sim_port_binding *binding,
		 bool reuse, uint32_t *ret_entry)
{
	uint32_t entry = SIM_PORT_ENTRIES;
	int r;

	while ((entry = sim_ports_area_next(area, binding->space, binding->port, entry)) <
	       SIM_PORT_ENTRIES) {
		if (&area->entries[entry].binding == binding)
			continue;
		r = conflict(binding, &area->entries[entry].binding, reuse);
		if (r < 0) {
			*ret_entry = entry;
			return r;
		}
	}
	return 0;
}

bool sim_ports_area_taken(const struct sim_ports_area *area, uint32_t space, uint16_t port)
{
	return sim_ports_area_next(area, space, port, SIM_PORT_ENTRIES) < SIM_PORT_ENTRIES;
}

static void link_entry(struct sim_ports_area *area, uint32_t number)
{
	struct sim_port_entry *entry = &area->entries[number];
	uint32_t *bucket = &area->buckets[bucket_of(entry->binding.space, entry->binding.port)];

	entry->next = *bucket;
	*bucket = number + 1;
}

int sim_ports_area_add(struct sim_ports_area *area, const struct sim_port_binding *binding,
		       uint32_t *ret_entry)
{
	struct sim_port_entry *entry;
	uint32_t number;
	int r;

	r = check(area, binding, true, ret_entry);
	if (r < 0)
		return r;
	if (area->free && area->free <= SIM_PORT_ENTRIES) {
		number = area->free - 1;
		area->free = area->entries[number].next;
	} else if (area->used < SIM_PORT_ENTRIES) {
		number = area->used++;
	} else {
		return -ENOMEM;
	}

	entry = &area->entries[number];
	entry->binding = *binding;
	entry->binding.family = 0;
	atomic_signal_fence(memory_order_seq_cst);
	entry->binding.family = binding->family;
	link_entry(area, number);
	*ret_entry = number;
	return 0;
}

void sim_ports_area_remove(struct sim_ports_area *area, uint32_t number)
{
	struct sim_port_entry *entry = &area->entries[number];
	uint32_t *link = &area->buckets[bucket_of(entry->binding.space, entry->binding.port)];

	entry->binding.family = 0;
	atomic_signal_fence(memory_order_seq_cst);
	while (*link && *link <= SIM_PORT_ENTRIES && *link != number + 1)
		link = &area->entries[*link - 1].next;
	if (*link == number + 1)
		*link = entry->next;
	entry->next = area->free;
	area->free = number + 1;
}

static bool is_wildcard(const struct sim_port_binding *binding)
{
	static const uint8_t zero[sizeof(binding->addr)];

	return !memcmp(binding->addr, zero, sizeof(zero));
}

/* Linux, inet_rcv_saddr_equal(): an IPv6 wildcard is also for IPv4, unless that was ruled out. */
static bool sockets_overlap(const struct sim_port_binding *a, const struct sim_port_binding *b)
{
	const struct sim_port_binding *ipv6 = a->family == AF_INET6 ? a : b;

	if (a->family == b->family)
		return same_address(a, b) || is_wildcard(a) || is_wildcard(b);
	return is_wildcard(ipv6) && !(ipv6->flags & SIM_BIND_AFONLY);
}

/* A wildcard listens on devices that came later, too. */
static bool is_socket(const struct sim_port_binding *binding)
{
	return binding->flags & SIM_PORT_LISTENING &&
	       (binding->flags & SIM_PORT_SOCKET ||
		(is_wildcard(binding) && binding->family != AF_IB));
}

static uint32_t next_socket(const struct sim_ports_area *area,
			    const struct sim_port_binding *binding, uint32_t after)
{
	do
		after = next_of_port(area, binding->space, binding->port, after);
	while (after < SIM_PORT_ENTRIES && !is_socket(&area->entries[after].binding));
	return after;
}

int sim_ports_area_check_socket(const struct sim_ports_area *area,
				const struct sim_port_binding *binding, uint32_t *ret_entry)
{
	uint32_t entry = SIM_PORT_ENTRIES;

	while ((entry = next_socket(area, binding, entry)) < SIM_PORT_ENTRIES) {
		const struct sim_port_binding *other = &area->entries[entry].binding;

		if (other == binding || !sockets_overlap(binding, other))
			continue;
		*ret_entry = entry;
		return -EADDRINUSE;
	}
	return 0;
}

uint32_t sim_ports_area_socket(const struct sim_ports_area *area,
			       const struct sim_port_binding *dst)
{
	uint32_t entry = SIM_PORT_ENTRIES, best = SIM_PORT_ENTRIES;

	while ((entry = next_socket(area, dst, entry)) < SIM_PORT_ENTRIES) {
		const struct sim_port_binding *binding = &area->entries[entry].binding;

		if (same_address(binding, dst))
			return entry;
		if (sockets_overlap(binding, dst))
			best = entry;
	}
	return best;
}

int sim_ports_area_listen(struct sim_ports_area *area, uint32_t number, bool socket,
			  uint32_t *ret_entry)
{
	struct sim_port_binding *binding = &area->entries[number].binding;
	int r;

	if (binding->flags & SIM_BIND_REUSE) {
		r = check(area, binding, false, ret_entry);
		if (r < 0)
			return r;
		binding->flags &= (uint8_t)~SIM_BIND_REUSE;
	}
	if (socket) {
		r = sim_ports_area_check_socket(area, binding, ret_entry);
		if (r < 0)
			return r;
		binding->flags |= SIM_PORT_SOCKET;
	}
	binding->flags |= SIM_PORT_LISTENING;
	return 0;
}

uint32_t sim_ports_area_listener(const struct sim_ports_area *area,
				 const struct sim_port_binding *dst, bool *ret_service)
{
	uint32_t entry = SIM_PORT_ENTRIES, best = SIM_PORT_ENTRIES;

	*ret_service = false;
	while ((entry = sim_ports_area_next(area, dst->space, dst->port, entry)) < SIM_PORT_ENTRIES) {
		const struct sim_port_binding *binding = &area->entries[entry].binding;

		if (!(binding->flags & SIM_PORT_LISTENING))
			continue;
		/* A service exists on the devices that its listeners are for. */
		if (!binding->device || !dst->device || binding->device == dst->device)
			*ret_service = true;
		if (same_address(binding, dst))
			return entry;
		if ((binding->flags & SIM_PORT_ANY) &&
		    (binding->family == dst->family || !(binding->flags & SIM_BIND_AFONLY)))
			best = entry;
	}
	return best;
}

void sim_ports_area_drop_slot(void *table, unsigned int slot)
{
	struct sim_ports_area *area = table;
	uint32_t used = area->used < SIM_PORT_ENTRIES ? area->used : SIM_PORT_ENTRIES;

	for (uint32_t number = 0; number < used; number++)
		if (area->entries[number].binding.family &&
		    area->entries[number].binding.slot == slot)
			sim_ports_area_remove(area, number);
}

void sim_ports_area_repair(void *table)
{
	struct sim_ports_area *area = table;

	memset(area->buckets, 0, sizeof(area->buckets));
	area->free = 0;
	if (area->used > SIM_PORT_ENTRIES)
		area->used = SIM_PORT_ENTRIES;
	for (uint32_t number = area->used; number-- > 0;) {
		struct sim_port_entry *entry = &area->entries[number];

		if (entry->binding.family) {
			link_entry(area, number);
		} else {
			entry->next = area->free;
			area->free = number + 1;
		}
	}
}
