/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/ports.c - binding port numbers for ids.
 *
 * Bindings stand in a table that other processes may share; which id one of
 * ours belongs to stands in memory of our own, by number of the entry.
 * Engine lock held, and the segment's inside it.
 */
#include "config.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "providers/soft/shm/segment.h"
#include "providers/soft/wire/address.h"
#include "ports.h"
#include "ports_area.h"

#define FIRST_FREE_PORT 1024u		/* below are the system's */
#define LOCAL_LOW 32768u		/* Linux's own default */
#define LOCAL_HIGH 60999u

struct sim_ports_table {
	uint32_t node;			/* its number */
	struct sim_ports_area *area;
	bool shared;
	struct sim_id **owners;		/* by entry; NULL: not ours */
	uint32_t num_owners;
	uint16_t last_used;		/* of the local range */
	uint32_t low, high;		/* local range */
};

/* ip_local_port_range; a run under the virtual clock does not depend on the host. */
static void read_local_range(struct sim_ports_table *table)
{
	unsigned int low, high;
	FILE *file;

	table->low = LOCAL_LOW;
	table->high = LOCAL_HIGH;
	if (sim_is_virtual())
		return;
	file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	if (!file)
		return;
	if (fscanf(file, "%u %u", &low, &high) == 2 && low && low <= high && high <= UINT16_MAX) {
		table->low = low;
		table->high = high;
	}
	fclose(file);
}

/*
 * Private tables that are empty and wait for the next node, since to map one takes longer than
 * many a test; a table of many ports gives its memory back to the system.
 */
#define MAX_SPARE 4u
#define MAX_SPARE_USED 256u

static struct sim_ports_area *spare[MAX_SPARE];
static unsigned int num_spare;

static struct sim_ports_area *open_area(void)
{
	void *memory;

	if (num_spare)
		return spare[--num_spare];
	memory = mmap(NULL, sizeof(struct sim_ports_area), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

static void close_area(struct sim_ports_area *area)
{
	if (num_spare == MAX_SPARE || area->used > MAX_SPARE_USED) {
		munmap(area, sizeof(*area));
		return;
	}
	sim_ports_area_clear(area);
	spare[num_spare++] = area;
}

int sim_ports_open(uint32_t node, struct sim_ports_table **ret_table)
{
	struct sim_ports_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	table->node = node;
	table->shared = sim_segment_joined();
	table->area = table->shared ? sim_segment_area(SIM_AREA_PORTS) : open_area();
	if (!table->area) {
		free(table);
		return -ENOMEM;
	}
	read_local_range(table);
	*ret_table = table;
	return 0;
}

void sim_ports_close(struct sim_ports_table *table)
{
	if (!table)
		return;
	if (!table->shared)
		close_area(table->area);
	free(table->owners);
	free(table);
}

static bool may_bind_low_ports(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		return false;
	return data[0].effective & 1u << CAP_NET_BIND_SERVICE;
}

/* Room for the owner of one more entry, whichever number it gets. */
static int reserve(struct sim_ports_table *table)
{
	struct sim_ports_area *area = table->area;
	uint32_t wanted = area->used + 1;
	struct sim_id **grown;
	int r;

	if (!area->free && area->used < SIM_PORT_ENTRIES) {
		r = sim_segment_reserve(&area->entries[area->used], sizeof(area->entries[0]));
		if (r < 0)
			return r;
	}
	if (wanted <= table->num_owners)
		return 0;
	wanted += wanted / 2 + 64;
	grown = reallocarray(table->owners, wanted, sizeof(struct sim_id *));
	if (!grown)
		return -ENOMEM;
	for (uint32_t i = table->num_owners; i < wanted; i++)
		grown[i] = NULL;
	table->owners = grown;
	table->num_owners = wanted;
	return 0;
}

/* Enter it; bindings of processes that are gone are no hindrance. */
static int add(struct sim_ports_table *table, const struct sim_port_binding *binding,
	       struct sim_id *id)
{
	unsigned int tries = SIM_MAX_SLOTS;
	uint32_t entry;
	int r;

	r = reserve(table);
	if (r < 0)
		return r;
	do
		r = sim_ports_area_add(table->area, binding, &entry);
	while ((r == -EADDRINUSE || r == -EADDRNOTAVAIL) && tries-- &&
	       sim_segment_reclaim(table->area->entries[entry].binding.slot));
	if (!r)
		table->owners[entry] = id;
	return r;
}

/*
 * By chance, as the kernel does it: else each program would draw the same
 * ports, and take at once what the one before has freed.  The seed decides
 * where time is virtual.
 */
static uint32_t draw_below(uint32_t count)
{
	uint32_t value;

	if (sim_is_virtual() || getrandom(&value, sizeof(value), GRND_NONBLOCK) != sizeof(value))
		return sim_random_below(count);
	return (uint32_t)((uint64_t)value * count >> 32);
}

/* A port of the local range that nobody has bound to any address. */
static int add_any(struct sim_ports_table *table, struct sim_port_binding *binding,
		   struct sim_id *id)
{
	uint32_t count = table->high - table->low + 1;
	uint32_t start = draw_below(count);
	int r;

	for (uint32_t i = 0; i < count; i++) {
		binding->port = (uint16_t)(table->low + (start + i) % count);
		if (binding->port == table->last_used ||
		    sim_ports_area_taken(table->area, binding->space, binding->port))
			continue;
		r = add(table, binding, id);
		if (!r)
			table->last_used = binding->port;
		return r;
	}
	return -EADDRNOTAVAIL;
}

/* Where a node has several devices: on which is this address? */
static uint32_t device_of(struct sim_node *node, const struct sockaddr *addr)
{
	const struct sim_address *address;
	const struct sim_port *port;
	union sim_sockaddr copy;
	union ibv_gid gid;

	if (!node->devices || !node->devices->next)
		return 0;
	if (addr->sa_family == AF_IB) {
		copy = sim_addr_copy(addr);
		memcpy(&gid, &copy.ib.sib_addr, sizeof(gid));
		port = sim_port_of_gid(&gid);
	} else {
		address = sim_node_address(node, addr);
		port = address ? address->port : NULL;
	}
	return port ? port->fabric_index + 1 : 0;
}

int sim_bind_port(struct sim_node *node, enum rdma_port_space ps, union sim_sockaddr *addr,
		  unsigned int flags, struct sim_id *id)
{
	struct sim_ports_table *table = node->port_table;
	struct sim_port_binding binding = sim_port_binding(sim_port_space(table->node, ps), &addr->sa,
							   flags, sim_self_slot());
	int r;

	if (!binding.family)
		return -EINVAL;
	binding.device = device_of(node, &addr->sa);
	if (binding.port && binding.port < FIRST_FREE_PORT && !may_bind_low_ports())
		return -EACCES;

	sim_segment_lock();
	if (binding.port) {
		r = add(table, &binding, id);
	} else {
		r = add_any(table, &binding, id);
		if (r == -EADDRNOTAVAIL && sim_segment_reclaim_all())
			r = add_any(table, &binding, id);
	}
	sim_segment_unlock();
	if (r < 0)
		return r;
	sim_addr_set_port(addr, binding.port);
	return 0;
}

unsigned int sim_ports_bound(const struct sim_node *node)
{
	const struct sim_ports_table *table = node->port_table;
	unsigned int num = 0;

	for (uint32_t entry = 0; entry < table->num_owners; entry++)
		num += table->owners[entry] != NULL;
	return num;
}

/* The entry of an id of ours, or SIM_PORT_ENTRIES. */
static uint32_t find_own(const struct sim_ports_table *table, enum rdma_port_space ps,
			 const union sim_sockaddr *addr, const struct sim_id *id)
{
	uint32_t entry = SIM_PORT_ENTRIES, space = sim_port_space(table->node, ps);
	uint16_t port = sim_addr_port(&addr->sa);

	while ((entry = sim_ports_area_next(table->area, space, port, entry)) <
	       SIM_PORT_ENTRIES)
		if (entry < table->num_owners && table->owners[entry] == id)
			break;
	return entry;
}

void sim_unbind_port(struct sim_node *node, enum rdma_port_space ps,
		     const union sim_sockaddr *addr, struct sim_id *id)
{
	struct sim_ports_table *table = node->port_table;
	uint32_t entry;

	sim_segment_lock();
	entry = find_own(table, ps, addr, id);
	if (entry < SIM_PORT_ENTRIES) {
		table->owners[entry] = NULL;
		sim_ports_area_remove(table->area, entry);
	}
	sim_segment_unlock();
}

void sim_rebind_port(struct sim_node *node, enum rdma_port_space ps,
		     const union sim_sockaddr *addr, struct sim_id *id)
{
	struct sim_ports_table *table = node->port_table;
	struct sim_port_binding *binding;
	uint32_t entry;

	sim_segment_lock();
	entry = find_own(table, ps, addr, id);
	if (entry < SIM_PORT_ENTRIES) {
		binding = &table->area->entries[entry].binding;
		*binding = sim_port_binding(binding->space, &addr->sa,
					    binding->flags & ~SIM_PORT_ANY, binding->slot);
		binding->device = device_of(node, &addr->sa);
	}
	sim_segment_unlock();
}

int sim_bind_listen(struct sim_node *node, enum rdma_port_space ps,
		    const union sim_sockaddr *addr, struct sim_id *id, unsigned int how)
{
	struct sim_ports_table *table = node->port_table;
	unsigned int tries = SIM_MAX_SLOTS;
	uint32_t entry, other;
	int r = how ? sim_engine_need_thread() : 0;

	if (r < 0)
		return r;
	sim_segment_lock();
	entry = find_own(table, ps, addr, id);
	if (entry == SIM_PORT_ENTRIES) {
		r = -EINVAL;
	} else if (!how) {
		table->area->entries[entry].binding.flags &=
			(uint8_t)~(SIM_PORT_LISTENING | SIM_PORT_SOCKET);
	} else {
		do
			r = sim_ports_area_listen(table->area, entry, how & SIM_LISTEN_SOCKET,
						  &other);
		while (r < 0 && tries-- &&
		       sim_segment_reclaim(table->area->entries[other].binding.slot));
	}
	sim_segment_unlock();
	return r;
}

bool sim_socket_taken(struct sim_node *node, const union sim_sockaddr *addr)
{
	struct sim_ports_table *table = node->port_table;
	struct sim_port_binding binding = sim_port_binding(sim_port_space(table->node, RDMA_PS_TCP),
							   &addr->sa, 0, 0);
	unsigned int tries = SIM_MAX_SLOTS;
	uint32_t other;
	int r;

	sim_segment_lock();
	do
		r = sim_ports_area_check_socket(table->area, &binding, &other);
	while (r < 0 && tries-- && sim_segment_reclaim(table->area->entries[other].binding.slot));
	sim_segment_unlock();
	return r < 0;
}

struct sim_id *sim_port_twin(struct sim_node *node, enum rdma_port_space ps,
			     const union sim_sockaddr *addr)
{
	static const enum rdma_port_space spaces[] = { RDMA_PS_TCP, RDMA_PS_IB };
	struct sim_ports_table *table = node->port_table;
	struct sim_port_binding own = sim_port_binding(0, &addr->sa, 0, 0);
	struct sim_id *twin = NULL;

	sim_segment_lock();
	for (size_t i = 0; !twin && i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		uint32_t space = sim_port_space(table->node, spaces[i]), entry = SIM_PORT_ENTRIES;

		while (spaces[i] != ps && !twin &&
		       (entry = sim_ports_area_next(table->area, space, own.port, entry)) <
			       SIM_PORT_ENTRIES)
			if (entry < table->num_owners &&
			    !memcmp(table->area->entries[entry].binding.addr, own.addr,
				    sizeof(own.addr)))
				twin = table->owners[entry];
	}
	sim_segment_unlock();
	return twin;
}

/*
 * The listening entry, or without ret_service the socket, that suits dst best: its process,
 * and its id if that is ours.
 */
static bool find_best(const struct sim_ports_table *table, const struct sim_port_binding *dst,
		      unsigned int *ret_slot, struct sim_id **ret_id, bool *ret_service)
{
	unsigned int slot = SIM_MAX_SLOTS, tries = SIM_MAX_SLOTS;
	uint32_t entry;

	sim_segment_lock();
	do {
		entry = ret_service ? sim_ports_area_listener(table->area, dst, ret_service) :
				      sim_ports_area_socket(table->area, dst);
		if (entry < SIM_PORT_ENTRIES)
			slot = table->area->entries[entry].binding.slot;
	} while (entry < SIM_PORT_ENTRIES && tries-- && sim_segment_reclaim(slot));
	sim_segment_unlock();
	*ret_id = slot == sim_self_slot() && entry < table->num_owners ? table->owners[entry] : NULL;
	if (entry == SIM_PORT_ENTRIES)
		return false;
	*ret_slot = slot;
	return true;
}

bool sim_find_listener(struct sim_node *node, enum rdma_port_space ps, const struct sockaddr *addr,
		       unsigned int *ret_slot, struct sim_id **ret_id, bool *ret_service)
{
	const struct sim_ports_table *table = node->port_table;
	struct sim_port_binding dst = sim_port_binding(sim_port_space(table->node, ps), addr, 0, 0);

	dst.device = device_of(node, addr);
	return find_best(table, &dst, ret_slot, ret_id, ret_service);
}

bool sim_find_socket(struct sim_node *node, const struct sockaddr *addr, unsigned int *ret_slot,
		     struct sim_id **ret_id)
{
	const struct sim_ports_table *table = node->port_table;
	uint32_t space = sim_port_space(table->node, RDMA_PS_TCP);
	struct sim_port_binding dst = sim_port_binding(space, addr, 0, 0);

	return find_best(table, &dst, ret_slot, ret_id, NULL);
}

bool sim_port_taken(struct sim_node *node, enum rdma_port_space ps, uint16_t port)
{
	struct sim_ports_table *table = node->port_table;
	bool taken;

	sim_segment_lock();
	taken = sim_ports_area_taken(table->area, sim_port_space(table->node, ps), port);
	sim_segment_unlock();
	return taken;
}
