/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/self.c - see self.h. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "providers/soft/fabric/gids.h"
#include "load.h"
#include "self.h"

struct ofi_self ofi_self;

/* ------------------------------------------------------------------------
 * Settings.
 */

static int bad_setting(const char *name, const char *value, const char *why)
{
	sim_core->log(POLYCM_LOG_ERROR, NULL, "%s=%s: %s", name, value, why);
	return -EINVAL;
}

/* 1 to 65535, or 0: it is none. */
static uint16_t port_of_text(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	return *text >= '0' && *text <= '9' && !*end && value <= UINT16_MAX ? (uint16_t)value : 0;
}

static int read_transport(void)
{
	const char *name = sim_core->setting("POLYCM_OFI_TRANSPORT");

	if (!name || !*name)
		name = "roce";
	ofi_self.transport = sim_core->transport(name);
	if (!ofi_self.transport || strlen(ofi_self.transport->name) >= OFI_NAME) {
		(void)bad_setting("POLYCM_OFI_TRANSPORT", name,
				  "no installed provider has the rules of that transport");
		return -ENODEV;
	}
	if (ofi_self.transport->protocol == POLYCM_PROTO_OTHER) {
		(void)bad_setting("POLYCM_OFI_TRANSPORT", name,
				  "its protocol is its provider's own, and cannot be played");
		return -ENODEV;
	}
	return 0;
}

#define NOT_A_PORT "not a TCP port, which is a number from 1 to 65535"

static int read_gate(void)
{
	const char *text = sim_core->setting("POLYCM_OFI_PORT");

	ofi_self.gate = text && *text ? port_of_text(text) : OFI_DEFAULT_PORT;
	return ofi_self.gate ? 0 : bad_setting("POLYCM_OFI_PORT", text, NOT_A_PORT);
}

/* "10.0.0.7", "[fd00::7]:4795", "hostc:4796": the addresses of it. */
static int add_host(char *text)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	char *name = text, *port = NULL, *end;
	struct addrinfo *list;
	uint16_t number = ofi_self.gate;
	int r;

	if (*text == '[') {
		name = text + 1;
		end = strchr(text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return bad_setting("POLYCM_OFI_HOSTS", text, "not [ADDRESS] or [ADDRESS]:PORT");
		*end = '\0';
		port = end[1] ? end + 2 : NULL;
	} else if ((end = strchr(text, ':')) && !strchr(end + 1, ':')) {
		*end = '\0';
		port = end + 1;
	}
	if (port && !(number = port_of_text(port)))
		return bad_setting("POLYCM_OFI_HOSTS", port, NOT_A_PORT);
	if (!*name)
		return bad_setting("POLYCM_OFI_HOSTS", text, "no host before the port");
	r = getaddrinfo(name, NULL, &hints, &list);
	if (r)
		return bad_setting("POLYCM_OFI_HOSTS", name, gai_strerror(r));
	for (const struct addrinfo *i = list; i; i = i->ai_next) {
		union sim_sockaddr *addr = &ofi_self.hosts[ofi_self.num_hosts].addr;

		if (ofi_self.num_hosts == OFI_MAX_HOSTS) {
			r = bad_setting("POLYCM_OFI_HOSTS", name,
					"the hosts up to it have 1024 addresses: no more are kept");
			break;
		}
		*addr = sim_addr_copy(i->ai_addr);
		if (addr->sa.sa_family != AF_INET && addr->sa.sa_family != AF_INET6)
			continue;
		sim_addr_set_port(addr, number);
		ofi_self.num_hosts++;
	}
	freeaddrinfo(list);
	return r;
}

static int read_hosts(void)
{
	const char *setting = sim_core->setting("POLYCM_OFI_HOSTS");
	char *copy, *at, *name;
	int r = 0;

	if (!setting || !*setting)
		return 0;
	copy = strdup(setting);
	ofi_self.hosts = calloc(OFI_MAX_HOSTS, sizeof(*ofi_self.hosts));
	if (!copy || !ofi_self.hosts)
		r = -ENOMEM;
	for (name = r ? NULL : strtok_r(copy, ", ", &at); name && !r; name = strtok_r(NULL, ", ", &at))
		r = add_host(name);
	free(copy);
	return r;
}

static int read_networks(void)
{
	static const char setting[] = "POLYCM_OFI_ADDRESSES";
	const char *text = sim_core->setting(setting);
	char *copy = text && *text ? strdup(text) : NULL, *at, *name;
	struct ofi_network *network;
	int r = copy || !text || !*text ? 0 : -ENOMEM;

	ofi_self.num_networks = 0;
	name = copy ? strtok_r(copy, ", ", &at) : NULL;
	for (; name && !r; name = strtok_r(NULL, ", ", &at)) {
		network = &ofi_self.networks[ofi_self.num_networks];
		if (ofi_self.num_networks == OFI_MAX_NETWORKS)
			r = bad_setting(setting, name, "more than 32 addresses");
		else if (sim_addr_parse(name, &network->addr, &network->prefix_len))
			r = bad_setting(setting, name, "not an address, as 10.0.0.7, nor a network, as "
						       "10.0.0.0/24");
		else
			ofi_self.num_networks++;
	}
	free(copy);
	return r;
}

bool ofi_self_may_use(const struct sockaddr *addr)
{
	union sim_sockaddr given = sim_addr_copy(addr);
	const uint8_t *end = given.in6.sin6_addr.s6_addr + 12;

	if (sim_addr_is_mapped(addr))
		given.in = (struct sockaddr_in){
			.sin_family = AF_INET,
			.sin_addr.s_addr = htonl((uint32_t)end[0] << 24 | (uint32_t)end[1] << 16 |
						 (uint32_t)end[2] << 8 | end[3]),
		};
	for (unsigned int i = 0; i < ofi_self.num_networks; i++)
		if (given.sa.sa_family == ofi_self.networks[i].addr.sa.sa_family &&
		    sim_addr_in_prefix(&given.sa, &ofi_self.networks[i].addr.sa,
				       ofi_self.networks[i].prefix_len))
			return true;
	return !ofi_self.num_networks;
}

/* A secret that others can read is none. */
static int check_key_file(const char *path, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || !st.st_size || st.st_size > OFI_KEY_MAX)
		return bad_setting("POLYCM_OFI_KEY", path, "no file of 1 to 4096 bytes");
	if (st.st_uid != geteuid() || st.st_mode & (S_IRWXG | S_IRWXO)) {
		(void)bad_setting("POLYCM_OFI_KEY", path,
				  "only its owner may be allowed to read it: chmod 600");
		return -EACCES;
	}
	return 0;
}

static int read_key(void)
{
	const char *path = sim_core->setting("POLYCM_OFI_KEY");
	ssize_t len;
	int fd, r;

	if (!path || !*path)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		r = -errno;
		(void)bad_setting("POLYCM_OFI_KEY", path, strerror(-r));
		return r;
	}
	r = check_key_file(path, fd);
	if (!r && !(ofi_self.key = malloc(OFI_KEY_MAX)))
		r = -ENOMEM;
	if (!r) {
		len = read(fd, ofi_self.key, OFI_KEY_MAX);
		if (len <= 0)
			r = bad_setting("POLYCM_OFI_KEY", path, "it cannot be read");
		else
			ofi_self.key_len = (size_t)len;
	}
	close(fd);
	return r;
}

/* ------------------------------------------------------------------------
 * Who we are.
 */

static void add_file(struct sha256 *hash, const char *path)
{
	char bytes[256];
	ssize_t len;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	len = read(fd, bytes, sizeof(bytes));
	if (len > 0)
		sha256_add(hash, bytes, (size_t)len);
	close(fd);
}

/* The network namespace: two of them are two hosts. */
static uint64_t network(void)
{
	struct stat st;

	return stat("/proc/self/ns/net", &st) ? 0 : st.st_ino;
}

/* The same in all processes of this user, this transport and this gate on this host. */
static void set_host(void)
{
	const uint64_t numbers[] = { geteuid(), network(), ofi_self.gate };
	uint8_t digest[SHA256_SIZE];
	struct sha256 hash;

	sha256_start(&hash);
	add_file(&hash, "/proc/sys/kernel/random/boot_id");
	add_file(&hash, "/etc/machine-id");
	sha256_add(&hash, numbers, sizeof(numbers));
	sha256_add(&hash, ofi_self.transport->name, strlen(ofi_self.transport->name));
	sha256_finish(&hash, digest);
	memcpy(ofi_self.host, digest, OFI_HOST_ID);
}

static void set_name(void)
{
	struct utsname names;

	snprintf(ofi_self.name, sizeof(ofi_self.name), "%.31s", uname(&names) ? "host" : names.nodename);
	for (char *c = ofi_self.name; *c; c++)
		if (*c <= ' ' || *c > '~')
			*c = '_';
}

/* Hosts with other rules would not understand each other's limits and times. */
static void set_rules(void)
{
	const struct polycm_transport *t = ofi_self.transport;
	const uint32_t numbers[] = {
		t->protocol, t->services, t->flags, t->link_layer, t->cm_header_len,
		t->max_retry_count, t->max_rnr_retry_count, t->reject_domain,
		(uint32_t)t->consumer_reject_status, (uint32_t)t->refused_status,
		t->cm_response_timeout, t->max_cm_retries, t->mra_service_timeout,
		t->mpa_reply_timeout_ms, t->mpa_request_timeout_ms, t->mpa_revision,
	};
	uint8_t digest[SHA256_SIZE];
	struct sha256 hash;

	sha256_start(&hash);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sha256_add(&hash, &(uint32_t){ htole32(numbers[i]) }, sizeof(uint32_t));
	for (int kind = 0; kind < POLYCM_KINDS; kind++) {
		for (int msg = 0; msg < POLYCM_MSGS; msg++) {
			const uint16_t row[] = {
				htole16(t->limit[kind][msg]), htole16(t->reported[kind][msg]),
				htole16(t->capacity[kind][msg]),
			};

			sha256_add(&hash, row, sizeof(row));
		}
	}
	sha256_finish(&hash, digest);
	memcpy(&ofi_self.rules, digest, sizeof(ofi_self.rules));
	ofi_self.rules = le64toh(ofi_self.rules);
}

void ofi_self_renew(void)
{
	if (getrandom(&ofi_self.token, sizeof(ofi_self.token), 0) != sizeof(ofi_self.token))
		ofi_self.token = (uint64_t)getpid() << 32 ^ sim_now();
}

int ofi_self_read(void)
{
	int r;

	r = read_transport();
	if (!r)
		r = read_gate();
	if (!r)
		r = read_hosts();
	if (!r)
		r = read_networks();
	if (!r)
		r = read_key();
	if (r < 0)
		return r;
	set_host();
	set_name();
	set_rules();
	ofi_self_renew();
	return 0;
}

void ofi_self_drop(void)
{
	if (ofi_self.key)
		explicit_bzero(ofi_self.key, OFI_KEY_MAX);
	free(ofi_self.key);
	free(ofi_self.hosts);
	ofi_self = (struct ofi_self){ 0 };
}

void ofi_self_fabric(char *ret_name, size_t size)
{
	snprintf(ret_name, size, "ofi-%.30s-%u-%llu", ofi_self.transport->name, ofi_self.gate,
		 (unsigned long long)network());
}

/* ------------------------------------------------------------------------
 * What others are told of us.
 */

static const struct sim_address *first_ipv4(const struct sim_node *node)
{
	for (unsigned int i = 0; i < node->num_addresses; i++)
		if (node->addresses[i].addr.sa.sa_family == AF_INET &&
		    !sim_addr_is_loopback(&node->addresses[i].addr.sa))
			return &node->addresses[i];
	return NULL;
}

void ofi_number_port(struct sim_port *port, const uint8_t mac[6], const uint8_t guid[8],
		     uint16_t lid)
{
	uint32_t number = port->mac_number;

	sim_gids_renew_mac(port, mac);
	port->mac_number = number;
	memcpy(&port->device->vdev.node_guid, guid, 8);
	if (sim_wire_of(port->device->rules) != SIM_WIRE_IB)
		return;
	memcpy(port->gids[0].gid.raw + 8, guid, 8);
	port->lid = lid;
}

/* Without an IPv4 address: of the host's id. */
void ofi_self_number(struct sim_device *device)
{
	const struct sim_address *address = first_ipv4(device->node);
	uint8_t mac[6], guid[8];
	uint16_t lid;

	memcpy(mac, ofi_self.host, sizeof(mac));
	mac[0] = 0x02;
	lid = (uint16_t)(1 + (mac[4] << 8 | mac[5]) % 0xbfff);
	if (address) {
		ofi_mac_of_ipv4(address->addr.in.sin_addr.s_addr, mac);
		lid = ofi_lid_of_ipv4(address->addr.in.sin_addr.s_addr);
	}
	sim_eui64_of_mac(mac, guid);
	ofi_number_port(&device->ports[0], mac, guid, lid);
}

void ofi_self_ports(struct ofi_ports *ret_ports)
{
	const struct sim_port *port = &ofi_self.device->ports[0];
	const struct sim_node *node = ofi_self.device->node;

	memset(ret_ports, 0, sizeof(*ret_ports));
	ret_ports->num_ports = 1;
	ret_ports->ports[0] = (struct ofi_port){
		.lid = port->lid,
		.mtu = (uint16_t)port->netdev_mtu,
		.active_mtu = (uint8_t)port->active_mtu,
		.up = port->state == IBV_PORT_ACTIVE,
	};
	memcpy(ret_ports->ports[0].mac, port->mac, sizeof(port->mac));
	memcpy(ret_ports->ports[0].guid, &ofi_self.device->vdev.node_guid, 8);
	for (unsigned int i = 0; i < node->num_addresses && ret_ports->num_addresses < OFI_MAX_ADDRESSES;
	     i++) {
		const struct sim_address *address = &node->addresses[i];

		if (sim_addr_is_loopback(&address->addr.sa) || sim_addr_is_link_local(&address->addr.sa))
			continue;
		ret_ports->addresses[ret_ports->num_addresses++] = (struct ofi_address){
			.addr = address->addr,
			.prefix_len = address->prefix_len,
		};
	}
}

void ofi_self_hello(struct ofi_hello *ret_hello, const struct ofi_want *want)
{
	memset(ret_hello, 0, sizeof(*ret_hello));
	memcpy(ret_hello->host, ofi_self.host, OFI_HOST_ID);
	ret_hello->slot = (uint16_t)sim_self_slot();
	ret_hello->generation = atomic_load(&sim_segment_self()->generation);
	ret_hello->has_key = ofi_self.key;
	strcpy(ret_hello->name, ofi_self.name);
	strcpy(ret_hello->transport, ofi_self.transport->name);
	ret_hello->rules = ofi_self.rules;
	ret_hello->token = ofi_self.token;
	if (getrandom(ret_hello->nonce, OFI_NONCE, 0) != OFI_NONCE)
		memcpy(ret_hello->nonce, &ofi_self.token, sizeof(ofi_self.token));
	if (want)
		ret_hello->want = *want;
	ofi_self_ports(&ret_hello->ports);
	ofi_load_offer(ret_hello);
}

uint16_t ofi_self_gate_of(const struct sockaddr *addr)
{
	for (unsigned int i = 0; i < ofi_self.num_hosts; i++)
		if (sim_addr_equal(&ofi_self.hosts[i].addr.sa, addr))
			return sim_addr_port(&ofi_self.hosts[i].addr.sa);
	return ofi_self.gate;
}
