/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api/rdma_addrinfo.c - rdma_getaddrinfo(): the C library's getaddrinfo() in terms
 * of RDMA.  Only its first answer is used, and its EAI_* codes are handed on.
 */
#include "config.h"
#include "core/cm/id_internal.h"

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/addr.h"
#include "core/base/export.h"
#include "core/base/log.h"
#include "core/cm/ret.h"

#define DEFAULT_PKEY 0xffff

static int copy_addr(struct sockaddr **ret_addr, socklen_t *ret_len, const void *addr,
		     socklen_t len)
{
	struct sockaddr *copy = malloc(len);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, addr, len);
	free(*ret_addr);
	*ret_addr = copy;
	*ret_len = len;
	return 0;
}

static int socktype_of(int qp_type)
{
	switch (qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return SOCK_STREAM;
	case IBV_QPT_UD:
		return SOCK_DGRAM;
	default:
		return 0;
	}
}

static int protocol_of(int port_space, int socktype)
{
	switch (port_space) {
	case RDMA_PS_TCP:
		return IPPROTO_TCP;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return IPPROTO_UDP;
	case RDMA_PS_IB:
		return socktype == SOCK_DGRAM ? IPPROTO_UDP : socktype ? IPPROTO_TCP : 0;
	default:
		return 0;
	}
}

/* What the hints leave open follows from the kind of socket that was found. */
static void choose_types(struct rdma_addrinfo *rai, const struct addrinfo *ai)
{
	if (!rai->ai_qp_type)
		rai->ai_qp_type = ai->ai_socktype == SOCK_DGRAM ? IBV_QPT_UD : IBV_QPT_RC;
	if (!rai->ai_port_space)
		rai->ai_port_space = ai->ai_protocol == IPPROTO_UDP ? RDMA_PS_UDP : RDMA_PS_TCP;
}

static uint64_t service_prefix(int port_space)
{
	switch (port_space) {
	case RDMA_PS_UDP:
		return RDMA_IB_IP_PS_UDP;
	case RDMA_PS_IB:
		return RDMA_IB_PS_IB;
	default:
		return RDMA_IB_IP_PS_TCP;
	}
}

/* A GID is written as a numeric IPv6 address; the port becomes a service id. */
static void make_ib_addr(const struct addrinfo *ai, int port_space, struct sockaddr_ib *ret_addr)
{
	struct sockaddr_in6 in6;

	memcpy(&in6, ai->ai_addr, sizeof(in6));
	memset(ret_addr, 0, sizeof(*ret_addr));
	ret_addr->sib_family = AF_IB;
	ret_addr->sib_pkey = htobe16(DEFAULT_PKEY);
	ret_addr->sib_flowinfo = in6.sin6_flowinfo;
	memcpy(&ret_addr->sib_addr, &in6.sin6_addr, sizeof(in6.sin6_addr));
	ret_addr->sib_sid = htobe64(service_prefix(port_space) | be16toh(in6.sin6_port));
	ret_addr->sib_sid_mask = UINT64_MAX;
	ret_addr->sib_scope_id = in6.sin6_scope_id;
}

static bool wants_gid(const struct rdma_addrinfo *rai)
{
	const int flags = RAI_FAMILY | RAI_NUMERICHOST;

	return rai->ai_family == AF_IB && (rai->ai_flags & flags) == flags;
}

static int take_result(struct rdma_addrinfo *rai, const struct addrinfo *ai, bool gid)
{
	struct sockaddr_ib ib;
	const void *addr = ai->ai_addr;
	socklen_t len = ai->ai_addrlen;
	char *name = NULL;
	int err;

	choose_types(rai, ai);
	/* The other flags are about the look-up, which is done. */
	rai->ai_flags &= RAI_PASSIVE;
	rai->ai_family = ai->ai_family;
	if (gid) {
		make_ib_addr(ai, rai->ai_port_space, &ib);
		rai->ai_family = AF_IB;
		addr = &ib;
		len = sizeof(ib);
	}
	if (ai->ai_canonname) {
		name = strdup(ai->ai_canonname);
		if (!name)
			return -ENOMEM;
	}
	if (rai->ai_flags & RAI_PASSIVE) {
		rai->ai_src_canonname = name;
		err = copy_addr(&rai->ai_src_addr, &rai->ai_src_len, addr, len);
	} else {
		rai->ai_dst_canonname = name;
		err = copy_addr(&rai->ai_dst_addr, &rai->ai_dst_len, addr, len);
	}
	return err;
}

/* 0, -errno, or in *ret_eai what getaddrinfo() says. */
static int look_up(struct rdma_addrinfo *rai, const char *node, const char *service, bool hinted,
		   int *ret_eai)
{
	bool gid = wants_gid(rai);
	struct addrinfo hints = { 0 }, *ai;
	int err;

	if (rai->ai_flags & RAI_PASSIVE)
		hints.ai_flags |= AI_PASSIVE;
	if (rai->ai_flags & RAI_NUMERICHOST)
		hints.ai_flags |= AI_NUMERICHOST;
	/* Names and numbers have no family AF_IB: any answer will do. */
	hints.ai_family = gid ? AF_INET6 : rai->ai_family == AF_IB ? AF_UNSPEC : rai->ai_family;
	hints.ai_socktype = socktype_of(rai->ai_qp_type);
	hints.ai_protocol = protocol_of(rai->ai_port_space, hints.ai_socktype);

	*ret_eai = getaddrinfo(node, service, hinted ? &hints : NULL, &ai);
	if (*ret_eai)
		return 0;
	err = take_result(rai, ai, gid);
	freeaddrinfo(ai);
	return err;
}

static void take_hints(struct rdma_addrinfo *rai, const struct rdma_addrinfo *hints)
{
	if (!hints)
		return;
	rai->ai_flags = hints->ai_flags;
	rai->ai_family = hints->ai_family;
	rai->ai_qp_type = hints->ai_qp_type;
	rai->ai_port_space = hints->ai_port_space;
}

/* Addresses of the hints that the look-up did not replace. */
static int keep_hinted_addrs(struct rdma_addrinfo *rai, const struct rdma_addrinfo *hints)
{
	int err = 0;

	if (!hints)
		return 0;
	if (!rai->ai_src_addr && hints->ai_src_addr && hints->ai_src_len)
		err = copy_addr(&rai->ai_src_addr, &rai->ai_src_len, hints->ai_src_addr,
				hints->ai_src_len);
	if (!err && !rai->ai_dst_addr && hints->ai_dst_addr && hints->ai_dst_len &&
	    !(rai->ai_flags & RAI_PASSIVE))
		err = copy_addr(&rai->ai_dst_addr, &rai->ai_dst_len, hints->ai_dst_addr,
				hints->ai_dst_len);
	return err;
}

static int get_addrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
			struct rdma_addrinfo **ret_rai, int *ret_eai)
{
	struct rdma_addrinfo *rai;
	int err;

	if (!ret_rai || (!node && !service && !hints))
		return polycm_fail(-EINVAL, ret_rai ? "neither node nor service nor hints"
						    : "nowhere to put the result");
	err = polycm_start();
	if (err)
		return err;

	rai = calloc(1, sizeof(*rai));
	if (!rai)
		return -ENOMEM;
	take_hints(rai, hints);
	if (node || service)
		err = look_up(rai, node, service, hints, ret_eai);
	if (!err && !*ret_eai)
		err = keep_hinted_addrs(rai, hints);
	if (err || *ret_eai) {
		rdma_freeaddrinfo(rai);
		return err;
	}
	*ret_rai = rai;
	return 0;
}

/* errno is the C library's, of which EAI_SYSTEM says more. */
static void tell(const char *node, const char *service, int eai)
{
	const char *why = eai == EAI_SYSTEM ? strerror(errno) : gai_strerror(eai);

	polycm_log(POLYCM_LOG_WARN, "rdma_getaddrinfo: %s (node %s, service %s)", why,
		   node ? node : "NULL", service ? service : "NULL");
}

POLYCM_EXPORT int rdma_getaddrinfo(const char *node, const char *service,
				   const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	int err, eai = 0;

	polycm_why_clear();
	err = get_addrinfo(node, service, hints, res, &eai);
	if (!eai)
		return polycm_ret("rdma_getaddrinfo", NULL, err);
	tell(node, service, eai);
	return eai;
}

POLYCM_EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *next;

	for (; res; res = next) {
		next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
	}
}
