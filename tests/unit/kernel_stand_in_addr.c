/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_stand_in_addr.c - addresses of the stand-in's ids: bind with ports,
 * resolution of addresses and routes, options.
 */
#include "kernel_stand_in_internal.h"

#include <endian.h>

#define FIRST_PORT	40000
#define LAST_PORT	60000
#define NO_ARP		99

static uint16_t next_port = FIRST_PORT;

static struct sockaddr_ib *ib_of(struct sockaddr_storage *addr)
{
	return (struct sockaddr_ib *)(void *)addr;
}

static const struct sockaddr_ib *const_ib_of(const struct sockaddr_storage *addr)
{
	return (const struct sockaddr_ib *)(const void *)addr;
}

size_t si_addr_size(const void *addr)
{
	sa_family_t family;

	memcpy(&family, addr, sizeof(family));
	switch (family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	default:
		return 0;
	}
}

bool si_addr_ip(const struct sockaddr_storage *addr, uint32_t *ret_ip)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)addr;
	uint32_t ip;

	if (addr->ss_family == AF_INET) {
		*ret_ip = ntohl(((const struct sockaddr_in *)(const void *)addr)->sin_addr.s_addr);
		return true;
	}
	if (addr->ss_family != AF_INET6)
		return false;
	memcpy(&ip, in6->sin6_addr.s6_addr + 12, sizeof(ip));
	*ret_ip = IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) ? SI_LOOPBACK : ntohl(ip);
	return true;
}

void si_addr_set_ip(struct sockaddr_storage *addr, uint32_t ip)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)addr;
	uint32_t be = htonl(ip);

	if (addr->ss_family == AF_INET) {
		((struct sockaddr_in *)(void *)addr)->sin_addr.s_addr = be;
	} else if (ip == SI_LOOPBACK) {
		in6->sin6_addr = in6addr_loopback;
	} else {
		in6->sin6_addr = in6addr_any;
		in6->sin6_addr.s6_addr[0] = ip ? 0xfd : 0;
		memcpy(in6->sin6_addr.s6_addr + 12, &be, sizeof(be));
	}
}

uint16_t si_addr_port(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_IB)
		return (uint16_t)be64toh(const_ib_of(addr)->sib_sid);
	/* The same place in both families. */
	return ntohs(((const struct sockaddr_in *)(const void *)addr)->sin_port);
}

void si_addr_set_port(struct sockaddr_storage *addr, uint16_t port)
{
	struct sockaddr_ib *ib = ib_of(addr);

	if (addr->ss_family == AF_IB)
		ib->sib_sid = htobe64((be64toh(ib->sib_sid) & ~UINT64_C(0xffff)) | port);
	else
		((struct sockaddr_in *)(void *)addr)->sin_port = htons(port);
}

/* The wildcard, or the loopback address, which binds to no device either. */
bool si_addr_any(const struct sockaddr_storage *addr)
{
	static const struct ib_addr zero;
	uint32_t ip;

	if (addr->ss_family == AF_IB)
		return !memcmp(&const_ib_of(addr)->sib_addr, &zero, sizeof(zero));
	return si_addr_ip(addr, &ip) && (!(ip >> 24) || ip >> 24 == 127);
}

bool si_addr_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	uint32_t ip_a, ip_b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_IB)
		return !memcmp(&const_ib_of(a)->sib_addr, &const_ib_of(b)->sib_addr,
			       sizeof(struct ib_addr));
	return si_addr_ip(a, &ip_a) && si_addr_ip(b, &ip_b) && ip_a == ip_b;
}

/* ------------------------------------------------------------------------
 * Ports.
 */

static int conflict(const struct si_id *id, const struct sockaddr_storage *addr)
{
	for (size_t i = 0; i < SI_MAX_IDS; i++) {
		const struct si_id *other = &si_ids[i];

		if (!other->used || other == id || other->child || other->ps != id->ps ||
		    !other->src.ss_family || si_addr_port(&other->src) != si_addr_port(addr))
			continue;
		if (id->reuse && other->reuse)
			continue;
		if (id->afonly && other->afonly && other->src.ss_family != addr->ss_family)
			continue;
		if (si_addr_any(addr) || si_addr_any(&other->src))
			return -EADDRNOTAVAIL;
		if (si_addr_same(addr, &other->src))
			return -EADDRINUSE;
	}
	return 0;
}

static int take_port(const struct si_id *id, struct sockaddr_storage *addr)
{
	if (si_addr_port(addr))
		return si_addr_port(addr) < 1024 ? -EACCES : conflict(id, addr);
	/* Never the one given last. */
	for (unsigned int tries = FIRST_PORT; tries < LAST_PORT; tries++) {
		si_addr_set_port(addr, next_port);
		next_port = next_port == LAST_PORT ? FIRST_PORT : (uint16_t)(next_port + 1);
		if (!conflict(id, addr))
			return 0;
	}
	return -EADDRNOTAVAIL;
}

/* The service id names port space and port. */
static int check_sid(const struct si_id *id, struct sockaddr_storage *addr)
{
	struct sockaddr_ib *ib = ib_of(addr);
	uint64_t sid = be64toh(ib->sib_sid), ps = sid >> 16;

	if (ps != RDMA_PS_IB && ps != RDMA_PS_TCP && ps != RDMA_PS_UDP)
		return -EPROTONOSUPPORT;
	if (id->ps != RDMA_PS_IB && ps != id->ps)
		return -EPROTONOSUPPORT;
	ib->sib_sid_mask = htobe64(UINT64_MAX);
	return 0;
}

void si_place(struct si_id *id, struct si_device *device, uint8_t port)
{
	id->device = device;
	id->port_num = port;
	id->slid = device->port[port - 1].lid;
	si_port_gid(device, port, &id->sgid);
}

static int bind_to(struct si_id *id, struct sockaddr_storage *addr)
{
	struct si_device *device = NULL;
	uint8_t port = 0;
	int r;

	if (!si_addr_any(addr)) {
		if (addr->ss_family != AF_IB && !si_is_host(addr))
			return -EADDRNOTAVAIL;
		if (!si_find_port(addr, &device, &port))
			return -ENODEV;
		if (id->ps == RDMA_PS_IPOIB && device->port[port - 1].kind != STAND_IN_IB)
			return -EINVAL;
	}
	r = addr->ss_family == AF_IB ? check_sid(id, addr) : 0;
	if (!r)
		r = take_port(id, addr);
	if (r)
		return r;
	id->src = *addr;
	if (device)
		si_place(id, device, port);
	id->state = STAND_IN_ADDR_BOUND;
	return 0;
}

int si_bind(struct si_id *id, const void *addr)
{
	struct sockaddr_storage copy = { 0 };

	if (id->state != STAND_IN_IDLE)
		return -EINVAL;
	memcpy(&copy, addr, si_addr_size(addr));
	if (copy.ss_family == AF_INET)
		id->afonly = true;
	return bind_to(id, &copy);
}

/* ------------------------------------------------------------------------
 * Resolving.
 */

void si_find_remote(struct si_id *id)
{
	struct si_device *device;
	uint32_t ip, be;
	uint8_t port;

	memset(&id->dgid, 0, sizeof(id->dgid));
	id->dlid = 0;
	if (si_addr_any(&id->dst)) {
		id->dgid = id->sgid;
		id->dlid = id->slid;
	} else if (si_find_port(&id->dst, &device, &port)) {
		si_port_gid(device, port, &id->dgid);
		id->dlid = device->port[port - 1].lid;
	} else if (si_addr_ip(&id->dst, &ip)) {
		be = htonl(ip);
		memcpy(id->dgid.raw + 12, &be, sizeof(be));
		if (si_kind(id) == STAND_IN_IB) {
			id->dgid.raw[0] = 0xfe;
			id->dgid.raw[1] = 0x80;
			id->dlid = (uint16_t)(0x100 + (ip & 0xff));
		} else {
			id->dgid.raw[10] = id->dgid.raw[11] = 0xff;
		}
	} else {
		memcpy(&id->dgid, &ib_of(&id->dst)->sib_addr, sizeof(id->dgid));
		id->dlid = 0x1ff;
	}
}

static int resolved(struct si_id *id, struct si_device *device, uint8_t port)
{
	if (!id->device)
		si_place(id, device, port);
	si_find_remote(id);
	id->state = STAND_IN_ADDR_RESOLVED;
	si_tell(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	return 0;
}

static int unresolved(struct si_id *id, int status)
{
	id->state = STAND_IN_ADDR_BOUND;
	memset(&id->dst, 0, sizeof(id->dst));
	si_tell(id, RDMA_CM_EVENT_ADDR_ERROR, status);
	return 0;
}

/* The first device there is. */
static int resolve_loopback(struct si_id *id)
{
	for (size_t i = 0; i < SI_DEVICES; i++) {
		if (!si_devices[i].present)
			continue;
		si_addr_set_ip(&id->src, SI_LOOPBACK);
		return resolved(id, &si_devices[i], 1);
	}
	return -ENODEV;
}

static int resolve_ib(struct si_id *id)
{
	const uint16_t pkey = ntohs(ib_of(&id->dst)->sib_pkey) | 0x8000;

	if (id->device)
		return resolved(id, NULL, 0);
	for (size_t i = 0; i < SI_DEVICES; i++)
		for (uint8_t port = 1; port <= 2; port++) {
			struct si_device *device = &si_devices[i];
			union ibv_gid gid;

			if (!device->present || device->port[port - 1].kind != STAND_IN_IB ||
			    device->port[port - 1].pkey != pkey)
				continue;
			si_port_gid(device, port, &gid);
			memcpy(&ib_of(&id->src)->sib_addr, &gid, sizeof(gid));
			ib_of(&id->src)->sib_pkey = htons(pkey);
			return resolved(id, device, port);
		}
	return -ENODEV;
}

static int resolve_ip(struct si_id *id)
{
	struct sockaddr_storage src = id->dst;
	struct si_device *device;
	uint32_t ip = 0;
	uint8_t port;

	si_addr_ip(&id->dst, &ip);
	if (si_addr_any(&id->dst))
		return resolve_loopback(id);
	si_addr_set_ip(&src, (ip & 0xffffff00) | 1);
	if (!si_is_host(&src))
		return -ENETUNREACH;
	if ((ip & 0xff) == NO_ARP)
		return unresolved(id, -ETIMEDOUT);
	if (!si_find_port(&src, &device, &port))
		return unresolved(id, -ENODEV);
	if (id->ps == RDMA_PS_IPOIB && device->port[port - 1].kind != STAND_IN_IB)
		return unresolved(id, -EINVAL);
	if (si_addr_any(&id->src))
		si_addr_set_ip(&id->src, (ip & 0xffffff00) | 1);
	return resolved(id, device, port);
}

/* The source of an id that is not bound yet. */
static int prepare(struct si_id *id, const void *src, const struct sockaddr_storage *dst)
{
	struct sockaddr_storage addr = { .ss_family = dst->ss_family };

	if (id->state == STAND_IN_ADDR_BOUND)
		return 0;
	if (id->state != STAND_IN_IDLE)
		return -EINVAL;
	if (src)
		memcpy(&addr, src, si_addr_size(src));
	else if (dst->ss_family == AF_IB)
		ib_of(&addr)->sib_sid = htobe64((uint64_t)id->ps << 16);
	return si_bind(id, &addr);
}

int si_resolve_addr(struct si_id *id, const void *src, const void *dst, uint32_t timeout_ms)
{
	struct sockaddr_storage to = { 0 };
	int r;

	(void)timeout_ms;
	memcpy(&to, dst, si_addr_size(dst));
	r = prepare(id, src, &to);
	if (r)
		return r;
	if (id->src.ss_family != to.ss_family)
		return -EINVAL;
	id->dst = to;
	id->state = STAND_IN_ADDR_QUERY;
	r = to.ss_family == AF_IB ? resolve_ib(id) : resolve_ip(id);
	if (r) {
		id->state = STAND_IN_ADDR_BOUND;
		memset(&id->dst, 0, sizeof(id->dst));
	}
	return r;
}

static void route_resolved(struct si_id *id)
{
	id->num_paths = si_kind(id) != STAND_IN_IWARP;
	id->state = STAND_IN_ROUTE_RESOLVED;
	si_tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

int si_resolve_route(struct si_id *id, uint32_t timeout_ms)
{
	if (id->state != STAND_IN_ADDR_RESOLVED || !timeout_ms)
		return -EINVAL;
	if (si_kind(id) == STAND_IN_ROCE && si_addr_any(&id->dst))
		return -ENODEV;
	if (si_kind(id) == STAND_IN_IB && stand_in.sa_silent)
		si_tell(id, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT);
	else
		route_resolved(id);
	return 0;
}

/* ------------------------------------------------------------------------
 * Options.
 */

static int set_path(struct si_id *id, const struct ib_path_rec_data *path, size_t len)
{
	const uint32_t needed = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;

	if (!len || len % sizeof(*path))
		return -EINVAL;
	for (; len && (path->flags & needed) != needed; len -= sizeof(*path))
		path++;
	if (!len || id->state != STAND_IN_ADDR_RESOLVED || !id->device)
		return -EINVAL;
	route_resolved(id);
	return 0;
}

static int set_id_option(struct si_id *id, uint32_t name, const void *value, size_t len)
{
	int number = 0;

	if (name > RDMA_OPTION_ID_ACK_TIMEOUT)
		return -ENOSYS;
	if (len != (name == RDMA_OPTION_ID_REUSEADDR || name == RDMA_OPTION_ID_AFONLY ? 4 : 1))
		return -EINVAL;
	memcpy(&number, value, len);
	switch (name) {
	case RDMA_OPTION_ID_REUSEADDR:
		if (number ? id->state == STAND_IN_LISTEN : id->state != STAND_IN_IDLE)
			return -EINVAL;
		id->reuse = number;
		return 0;
	case RDMA_OPTION_ID_AFONLY:
		if (id->state != STAND_IN_IDLE && id->state != STAND_IN_ADDR_BOUND)
			return -EINVAL;
		id->afonly = number;
		return 0;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (id->qp_type != IBV_QPT_RC)
			return -EINVAL;
		id->ack_timeout = (uint8_t)number;
		id->has_ack_timeout = true;
		return 0;
	default:
		return 0;
	}
}

int si_set_option(struct si_id *id, const struct rdma_ucm_set_option *cmd)
{
	const void *value = (const void *)(uintptr_t)cmd->optval;

	if (!value)
		return -EFAULT;
	if (cmd->level == RDMA_OPTION_ID)
		return set_id_option(id, cmd->optname, value, cmd->optlen);
	if (cmd->level == RDMA_OPTION_IB && cmd->optname == RDMA_OPTION_IB_PATH)
		return set_path(id, value, cmd->optlen);
	return -ENOSYS;
}
