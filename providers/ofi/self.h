/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/self.h - what this process is to others: its host, its ports, its key, and what the
 * settings say of the network.
 *
 * Set when the fabric opens, and unchanged until it closes, but for the ports.  Engine lock held.
 */
#ifndef OFI_SELF_H
#define OFI_SELF_H

#include "providers/soft/fabric/fabric.h"
#include "hello.h"

#define OFI_DEFAULT_PORT 14791u
#define OFI_KEY_MAX 4096u
#define OFI_MAX_HOSTS 1024u
#define OFI_MAX_NETWORKS 32u

/* POLYCM_OFI_HOSTS: an address, with the port of the gate there. */
struct ofi_known_host {
	union sim_sockaddr addr;
};

struct ofi_self {
	uint8_t host[OFI_HOST_ID];
	char name[OFI_NAME];
	uint64_t token;			/* random: tells this process from others in its slot */
	uint64_t rules;			/* a digest */
	const struct polycm_transport *transport;
	struct sim_device *device;	/* the host's own */
	uint16_t gate;			/* TCP port, host byte order */
	uint8_t *key;			/* NULL: none */
	size_t key_len;
	struct ofi_known_host *hosts;
	unsigned int num_hosts;
	struct ofi_network {		/* POLYCM_OFI_ADDRESSES; none: all */
		union sim_sockaddr addr;
		uint8_t prefix_len;
	} networks[OFI_MAX_NETWORKS];
	unsigned int num_networks;
};
extern struct ofi_self ofi_self;

/*
 * Read the settings.  -EINVAL, -ENODEV, -EACCES: logged, with what to do.  ofi_self_drop()
 * also after an error.
 */
int ofi_self_read(void);
void ofi_self_drop(void);
/* Is it one of POLYCM_OFI_ADDRESSES?  IPv4 may be mapped into IPv6. */
bool ofi_self_may_use(const struct sockaddr *addr);
/* Another token: in the child of a fork(), too. */
void ofi_self_renew(void);

/* The name of the shared fabric: it is one for a transport, a gate and a network namespace. */
void ofi_self_fabric(char *ret_name, size_t size);
/* Give the device of this host a MAC, a GUID and on InfiniBand a LID that follow from its address. */
void ofi_self_number(struct sim_device *device);

/* Of a port that nobody has used yet.  Its default GID is made of the GUID, or of the MAC. */
void ofi_number_port(struct sim_port *port, const uint8_t mac[6], const uint8_t guid[8],
		     uint16_t lid);

/* Our ports and addresses as they are now. */
void ofi_self_ports(struct ofi_ports *ret_ports);
void ofi_self_hello(struct ofi_hello *ret_hello, const struct ofi_want *want);
/* Where the gate of a host is: its port of POLYCM_OFI_HOSTS, or ours. */
uint16_t ofi_self_gate_of(const struct sockaddr *addr);

/* --- The numbers of a host that has an IPv4 address (numbers.c). --- */

/* The MAC says the address, so that whoever knows only a GID or a LID finds the host. */
void ofi_mac_of_ipv4(in_addr_t addr, uint8_t ret_mac[6]);
/* The address that a GID stands for: one of RoCE v2, or one made of such a MAC.  False: none. */
bool ofi_address_of_gid(const union ibv_gid *gid, union sim_sockaddr *ret_addr);
/* The LID of an address, from 1 to 0xbfff, and the address of a LID in a network.  False: none. */
uint16_t ofi_lid_of_ipv4(in_addr_t addr);
bool ofi_address_of_lid(uint16_t lid, const struct sim_address *network, union sim_sockaddr *ret_addr);

#endif
