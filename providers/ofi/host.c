/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/host.c - see host.h. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/soft/cm/cma.h"
#include "providers/soft/fabric/gids.h"
#include "addresses.h"
#include "group.h"
#include "host.h"
#include "knock.h"
#include "owners.h"
#include "peer.h"
#include "route.h"
#include "self.h"

static struct sim_remote_host *hosts;
static unsigned int num_hosts;
static bool full_logged;

struct sim_remote_host *ofi_host_first(void)
{
	return hosts;
}

struct sim_remote_host *ofi_host_by_id(const uint8_t id[OFI_HOST_ID])
{
	struct sim_remote_host *host = hosts;

	while (host && (!host->identified || memcmp(host->id, id, OFI_HOST_ID)))
		host = host->next;
	return host;
}

struct ofi_peer *ofi_host_any(const struct sim_remote_host *host)
{
	struct ofi_peer *peer = host->peers;

	while (peer && !peer->session)
		peer = peer->next;
	return peer;
}

/* ------------------------------------------------------------------------
 * Making one.
 */

static void text_of(const struct sockaddr *addr, char text[INET6_ADDRSTRLEN])
{
	const union sim_sockaddr copy = sim_addr_copy(addr);
	const void *bytes = &copy.in6.sin6_addr;

	if (copy.sa.sa_family == AF_INET)
		bytes = &copy.in.sin_addr;
	if (!inet_ntop(copy.sa.sa_family, bytes, text, INET6_ADDRSTRLEN))
		strcpy(text, "?");
}

static bool lid_is_taken(const struct sim_port *port, uint16_t lid)
{
	if (ofi_self.device->ports[0].lid == lid)
		return true;
	for (const struct sim_remote_host *host = hosts; host; host = host->next)
		if (host->port && host->port != port && host->port->lid == lid)
			return true;
	return false;
}

/*
 * A host's own LID, or another one if that is already in use here.  No other host needs to know:
 * in what the CM sends, LIDs are those of the receiver's view.
 */
static uint16_t free_lid(const struct sim_port *port, uint16_t lid)
{
	if (!lid || !lid_is_taken(port, lid))
		return lid;
	if (port->lid && !lid_is_taken(port, port->lid))
		return port->lid;
	/* From the end: addresses begin at the other one. */
	for (lid = OFI_MAX_LID; lid_is_taken(port, lid); lid--)
		;
	return lid;
}

/* Until it says what its numbers are, they are as those of a host with this address. */
static void number_by_address(struct sim_port *port, const union sim_sockaddr *addr)
{
	uint8_t mac[6], guid[8];

	port->lid = 0;
	if (addr->sa.sa_family != AF_INET)
		return;
	ofi_mac_of_ipv4(addr->in.sin_addr.s_addr, mac);
	sim_eui64_of_mac(mac, guid);
	ofi_number_port(port, mac, guid,
			free_lid(port, ofi_lid_of_ipv4(addr->in.sin_addr.s_addr)));
}

static int add_node(struct sim_remote_host *host, const union sim_sockaddr *addr)
{
	char text[INET6_ADDRSTRLEN], name[sizeof(host->node->name)], device_name[IBV_SYSFS_NAME_MAX];
	struct sim_device *device;
	size_t len;
	int r;

	text_of(&addr->sa, text);
	/* The end of a long address is what tells it from others. */
	len = strlen(text);
	strcpy(name, text + (len < sizeof(name) ? 0 : len - sizeof(name) + 1));
	snprintf(device_name, sizeof(device_name), "ofi0@%s", text);
	r = sim_node_add(name, &host->node);
	if (r < 0)
		return r;
	r = sim_device_add(host->node, device_name, ofi_self.transport, &device);
	if (!r) {
		host->node->remote = host;
		host->port = &device->ports[0];
		host->port->state = IBV_PORT_DOWN;
		number_by_address(host->port, addr);
		r = sim_port_add_address(host->port, "ofi", host->port->fabric_index + 2, addr,
					 addr->sa.sa_family == AF_INET ? 32 : 128);
	}
	if (r < 0)
		sim_node_drop_newest();
	return r;
}

struct sim_remote_host *ofi_host_of_address(const struct sockaddr *addr)
{
	union sim_sockaddr copy = sim_addr_copy(addr);
	struct sim_remote_host *host;
	struct sim_node *node = sim_node_of_address(addr);

	if (node)
		return node->remote;
	if (num_hosts >= OFI_MAX_NODES) {
		if (!full_logged)
			sim_core->log(POLYCM_LOG_ERROR, NULL, "more than %u addresses of other hosts "
				      "were looked for: no more are", OFI_MAX_NODES);
		full_logged = true;
		return NULL;
	}
	host = calloc(1, sizeof(*host));
	if (!host)
		return NULL;
	sim_addr_set_port(&copy, 0);
	if (add_node(host, &copy) < 0) {
		free(host);
		return NULL;
	}
	host->gate = copy;
	sim_addr_set_port(&host->gate, ofi_self_gate_of(addr));
	host->next = hosts;
	hosts = host;
	num_hosts++;
	return host;
}

/* ------------------------------------------------------------------------
 * What it says of itself.
 */

/* An address of it that is another node's so far: somebody looked for it there. */
static void take_address(struct sim_remote_host *host, const struct ofi_address *address)
{
	struct sim_node *node = sim_node_of_address(&address->addr.sa);
	struct sim_port *port = host->port;

	if (node == host->node || (node && !node->remote))
		return;		/* ours: two hosts have it, as private networks may */
	if (node && node->remote->identified)
		return;
	if (node)
		sim_node_remove_address(node, sim_node_address(node, &address->addr.sa));
	(void)sim_port_add_address(port, "ofi", port->fabric_index + 2, &address->addr,
				   address->prefix_len);
}

void ofi_host_take_ports(struct sim_remote_host *host, const struct ofi_ports *ports)
{
	const struct ofi_port *port = &ports->ports[0];

	if (!ports->num_ports)
		return;
	host->port->netdev_mtu = port->mtu;
	host->port->active_mtu = (enum ibv_mtu)port->active_mtu;
	for (unsigned int i = 0; i < ports->num_addresses; i++)
		take_address(host, &ports->addresses[i]);
}

void ofi_host_take_gate(struct sim_remote_host *host, struct sim_remote_host *other)
{
	union sim_sockaddr addr = other->gate;
	struct sim_address *address;

	sim_addr_set_port(&addr, 0);
	address = sim_node_address(other->node, &addr.sa);
	if (address)
		sim_node_remove_address(other->node, address);
	if (!sim_node_of_address(&addr.sa))
		(void)sim_port_add_address(host->port, "ofi", host->port->fabric_index + 2, &addr,
					   addr.sa.sa_family == AF_INET ? 32 : 128);
	sim_cma_ask_again();
}

/* Another machine has the address now, or a new container: the processes of the old one have ended. */
static void lose_identity(struct sim_remote_host *host)
{
	while (host->peers)
		ofi_peer_bury(host->peers);
	host->identified = false;
}

void ofi_host_take(struct sim_remote_host *host, const struct ofi_hello *hello)
{
	const struct ofi_port *port = &hello->ports.ports[0];
	uint16_t lid;

	if (host->identified && memcmp(host->id, hello->host, OFI_HOST_ID) && !ofi_host_any(host))
		lose_identity(host);
	memcpy(host->id, hello->host, OFI_HOST_ID);
	if (!host->identified && hello->ports.num_ports) {
		lid = free_lid(host->port, port->lid);
		if (lid != port->lid)
			sim_core->log(POLYCM_LOG_INFO, NULL, "host %s: its LID %u is in use, here it is "
				      "%u: a program finds it by GID or IP address, not by LID",
				      host->node->name, port->lid, lid);
		ofi_number_port(host->port, port->mac, port->guid, lid);
	}
	host->identified = true;
	ofi_host_take_ports(host, &hello->ports);
}

void ofi_host_set_state(struct sim_remote_host *host, enum ofi_host_state state)
{
	if (host->state == state)
		return;
	host->state = state;
	host->port->state = state == OFI_HOST_UP || state == OFI_HOST_BARE ? IBV_PORT_ACTIVE
									     : IBV_PORT_DOWN;
	sim_fabric_addresses++;
	sim_cma_ask_again();
}

/* ------------------------------------------------------------------------
 * For the rooms below.
 */

static void ask(struct sim_node *node)
{
	const struct ofi_want any = { .kind = OFI_WANT_ANY };

	ofi_knock(node->remote, NULL, &any);
}

static struct sim_port *port_of_address(const struct sockaddr *addr)
{
	struct sim_remote_host *host;

	if ((sim_addr_family(addr) != AF_INET && sim_addr_family(addr) != AF_INET6) ||
	    sim_addr_is_zero(addr) || sim_addr_is_loopback(addr) || sim_addr_is_multicast(addr) ||
	    sim_addr_is_link_local(addr) || sim_addr_is_mapped(addr))
		return NULL;
	host = ofi_host_of_address(addr);
	return host ? host->port : NULL;
}

static struct sim_port *port_of_gid(const union ibv_gid *gid)
{
	union sim_sockaddr addr;

	return ofi_address_of_gid(gid, &addr) ? port_of_address(&addr.sa) : NULL;
}

static struct sim_port *port_of_lid(uint16_t lid)
{
	const struct sim_node *node = ofi_self.device->node;
	union sim_sockaddr addr;

	for (unsigned int i = 0; i < node->num_addresses; i++)
		if (!sim_addr_is_loopback(&node->addresses[i].addr.sa) &&
		    ofi_address_of_lid(lid, &node->addresses[i], &addr))
			return port_of_address(&addr.sa);
	return NULL;
}

static int status(const struct sim_node *node)
{
	return node->remote->state == OFI_HOST_REFUSED ? -ENODEV : 0;
}

static const struct sim_remote_ops ops = {
	.slot_of_conn = ofi_slot_of_conn,
	.slot_of_qpn = ofi_slot_of_qpn,
	.slot_of_service = ofi_slot_of_service,
	.port_of_address = port_of_address,
	.port_of_gid = port_of_gid,
	.port_of_lid = port_of_lid,
	.ask = ask,
	.status = status,
	.stands_still = ofi_peer_stands_still,
	.send_to_group = ofi_group_send,
	.joined = ofi_group_joined,
	.max_packet = ofi_peer_max_packet,
	.source_for = ofi_source_for,
	.trace_begins = ofi_clock_trace_begins,
};

void ofi_hosts_start(void)
{
	sim_remote = &ops;
}

static void forget(struct sim_remote_host *host)
{
	if (host->knock)
		ofi_knock_stop(host->knock);
	ofi_queue_clear(&host->waiting);
	ofi_route_drop(host);
}

void ofi_hosts_forget(void)
{
	for (struct sim_remote_host *host = hosts; host; host = host->next) {
		forget(host);
		host->state = OFI_HOST_NEW;
		host->port->state = IBV_PORT_DOWN;
	}
}

void ofi_hosts_stop(void)
{
	struct sim_remote_host *host;

	sim_remote = NULL;
	while ((host = hosts)) {
		hosts = host->next;
		forget(host);
		host->node->remote = NULL;
		free(host);
	}
	num_hosts = 0;
	full_logged = false;
}
