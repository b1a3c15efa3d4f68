/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rsocket/dgram_peer.c - those with whom a datagram rsocket talks, and how it learns to
 * reach their queue pairs: a message over UDP brings the number, resolving the
 * address the path.
 */
#include "config.h"
#include "dgram.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/addr.h"
#include "core/base/log.h"
#include "core/base/rsockets.h"
#include "core/base/why.h"

#define RESOLVE_MS	2000
#define MOST_OWN	256u		/* messages of UDP that wait for the program */
#define MOST_AT_ONCE	64
#define MOST_PEERS	65536u

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct sockaddr_storage));
}

/* Without what does not matter to where it goes, so that equal ones are equal in all bytes. */
static int normalize(const struct sockaddr *addr, socklen_t len, struct sockaddr_storage *ret)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

	memset(ret, 0, sizeof(*ret));
	if (len >= sizeof(*in) && addr->sa_family == AF_INET) {
		struct sockaddr_in *to = (struct sockaddr_in *)ret;

		to->sin_family = AF_INET;
		to->sin_port = in->sin_port;
		to->sin_addr = in->sin_addr;
		return 0;
	}
	if (len >= sizeof(*in6) && addr->sa_family == AF_INET6) {
		struct sockaddr_in6 *to = (struct sockaddr_in6 *)ret;

		to->sin6_family = AF_INET6;
		to->sin6_port = in6->sin6_port;
		to->sin6_addr = in6->sin6_addr;
		to->sin6_scope_id = in6->sin6_scope_id;
		return 0;
	}
	return polycm_fail(-EINVAL, "no address of %u bytes", len);
}

static bool is_loopback(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET)
		return ((const struct sockaddr_in *)addr)->sin_addr.s_addr == htobe32(INADDR_LOOPBACK);
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

/* The UDP socket's address, with a port in any case: answers are to come there. */
static int own_address(struct dgram *d, struct sockaddr_storage *ret)
{
	struct sockaddr_storage any = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(*ret);

	memset(ret, 0, sizeof(*ret));
	if (getsockname(d->udp, (struct sockaddr *)ret, &len))
		return -errno;
	if (polycm_addr_port((struct sockaddr *)ret))
		return 0;
	any.ss_family = ret->ss_family;
	if (bind(d->udp, (struct sockaddr *)&any, len))
		return -errno;
	len = sizeof(*ret);
	return getsockname(d->udp, (struct sockaddr *)ret, &len) ? -errno : 0;
}

/* From where the host sends to that address: the kernel's routes decide. */
static int source_for(struct dgram *d, const struct sockaddr_storage *to, struct sockaddr_storage *ret)
{
	socklen_t len = sizeof(*ret);
	uint16_t port;
	int probe, err;

	err = own_address(d, ret);
	if (err || (!polycm_addr_wildcard((struct sockaddr *)ret) && !is_loopback(ret)))
		return err;
	port = polycm_addr_port((struct sockaddr *)ret);
	probe = polycm_udp_socket(to->ss_family, 0);
	if (probe < 0)
		return -errno;
	memset(ret, 0, sizeof(*ret));
	if (connect(probe, (const struct sockaddr *)to,
		    (socklen_t)polycm_addr_len((const struct sockaddr *)to)) ||
	    getsockname(probe, (struct sockaddr *)ret, &len))
		err = -errno;
	close(probe);
	polycm_addr_set_port((struct sockaddr *)ret, port);
	return err;
}

int dgram_get_peer(struct dgram *d, const struct sockaddr *addr, socklen_t len,
		   struct dgram_peer **ret_peer)
{
	struct sockaddr_storage key, source;
	struct dgram_peer *peer, **found;
	struct dgram_qp *qp;
	int err;

	err = normalize(addr, len, &key);
	if (err)
		return err;
	found = tfind(&key, &d->peers, compare);
	if (found) {
		*ret_peer = *found;
		return 0;
	}
	err = source_for(d, &key, &source);
	if (!err)
		err = dgram_get_qp(d, &source, &qp);
	if (err)
		return err;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return -ENOMEM;
	peer->addr = key;
	peer->qp = qp;
	if (!tsearch(peer, &d->peers, compare)) {
		free(peer);
		return -ENOMEM;
	}
	d->num_peers++;
	*ret_peer = peer;
	return 0;
}

/* Of those who only send here there may be many, and their addresses are what they say. */
static bool may_hear(struct dgram *d, const struct sockaddr_storage *from, socklen_t len)
{
	struct sockaddr_storage key;

	if (d->num_peers < MOST_PEERS)
		return true;
	return !normalize((const struct sockaddr *)from, len, &key) && tfind(&key, &d->peers, compare);
}

static void free_peer(void *arg)
{
	struct dgram_peer *peer = arg;

	if (peer->resolving)
		rdma_destroy_id(peer->resolving);
	if (peer->ah)
		ibv_destroy_ah(peer->ah);
	free(peer);
}

void dgram_free_peers(struct dgram *d)
{
	tdestroy(d->peers, free_peer);
	d->peers = NULL;
}

/* --- the path --- */

static void resolved(struct dgram_peer *peer)
{
	rdma_destroy_id(peer->resolving);
	peer->resolving = NULL;
}

void dgram_resolve(struct dgram *d, struct dgram_peer *peer, uint32_t qpn)
{
	struct sockaddr_storage from = peer->qp->addr;

	peer->next_qpn = qpn;
	if (peer->resolving)
		return;
	polycm_addr_set_port((struct sockaddr *)&from, 0);
	if (rdma_create_id(d->channel, &peer->resolving, peer, RDMA_PS_UDP)) {
		peer->resolving = NULL;
		return;
	}
	if (rdma_resolve_addr(peer->resolving, (struct sockaddr *)&from,
			      (struct sockaddr *)&peer->addr, RESOLVE_MS))
		resolved(peer);
}

/* The index of the path's GID; of several of RoCE the routable one. */
static int gid_index(const struct rdma_cm_id *id, const union ibv_gid *gid)
{
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	int index = 0;

	if (ibv_query_port(id->verbs, id->port_num, &port))
		return 0;
	for (int i = 0; i < port.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(id->verbs, id->port_num, (uint32_t)i, &entry, 0) ||
		    memcmp(&entry.gid, gid, sizeof(*gid)))
			continue;
		index = i;
		if (entry.gid_type != IBV_GID_TYPE_ROCE_V1)
			break;
	}
	return index;
}

static void make_ah(struct dgram_peer *peer)
{
	const struct rdma_cm_id *id = peer->resolving;
	const struct ibv_sa_path_rec *path = id->route.path_rec;
	struct ibv_port_attr port;
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;

	if (!id->route.num_paths || !path || ibv_query_port(id->verbs, id->port_num, &port))
		return;
	memset(&attr, 0, sizeof(attr));
	attr.dlid = be16toh(path->dlid);
	attr.sl = path->sl;
	attr.src_path_bits = (uint8_t)(be16toh(path->slid) & ((1u << port.lmc) - 1));
	attr.static_rate = path->rate;
	attr.port_num = id->port_num;
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET || path->hop_limit > 1) {
		attr.is_global = 1;
		attr.grh.dgid = path->dgid;
		attr.grh.flow_label = be32toh(path->flow_label);
		attr.grh.sgid_index = (uint8_t)gid_index(id, &path->sgid);
		attr.grh.hop_limit = path->hop_limit;
		attr.grh.traffic_class = path->traffic_class;
	}
	ah = ibv_create_ah(peer->qp->id->pd, &attr);
	if (!ah)
		return;
	if (peer->ah)
		ibv_destroy_ah(peer->ah);
	peer->ah = ah;
	peer->qpn = peer->next_qpn;
}

static void take_event(struct dgram_peer *peer, enum rdma_cm_event_type type)
{
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(peer->resolving, RESOLVE_MS))
			resolved(peer);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		make_ah(peer);
		resolved(peer);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		resolved(peer);
		break;
	default:
		break;
	}
}

void dgram_follow_events(struct dgram *d)
{
	struct rdma_cm_event *event;
	int saved = errno;

	while (!rdma_get_cm_event(d->channel, &event)) {
		struct dgram_peer *peer = event->id->context;
		enum rdma_cm_event_type type = event->event;

		rdma_ack_cm_event(event);
		if (peer)
			take_event(peer, type);
	}
	errno = saved;
}

/* --- UDP --- */

ssize_t dgram_send_udp(struct dgram *d, const struct dgram_peer *peer, uint8_t op,
		       const struct msghdr *msg)
{
	const struct rsocket_dgram_header *own = &peer->qp->header;
	struct rsocket_udp_header header = {
		.tag = htobe32(RSOCKET_UDP_TAG),
		.version = own->version,
		.op = op,
		.length = (uint8_t)RSOCKET_UDP_LENGTH(own->version),
		.qpn = htobe32(peer->qp->id->qp->qp_num & 0xffffff),
	};
	uint8_t packet[RSOCKET_DGRAM_MAX];
	size_t len = msg ? (size_t)rsocket_msg_len(msg) : 0;

	if (own->version == 4)
		header.ipv4 = own->ipv4;
	else
		memcpy(header.ipv6, own->ipv6.addr, sizeof(header.ipv6));
	memcpy(packet, &header, header.length);
	if (msg)
		rsocket_gather(msg, 0, packet + header.length, len);
	if (sendto(d->udp, packet, header.length + len, 0, (const struct sockaddr *)&peer->addr,
		   (socklen_t)polycm_addr_len((const struct sockaddr *)&peer->addr)) < 0)
		return -errno;
	return (ssize_t)len;
}

static void queue_copy(struct dgram *d, const struct sockaddr_storage *from, const uint8_t *data,
		       size_t len)
{
	struct dgram_message *message;

	if (d->num_own >= MOST_OWN)
		return;
	message = calloc(1, sizeof(*message) + len);
	if (!message)
		return;
	message->from = *from;
	message->len = (uint32_t)len;
	message->data = (uint8_t *)(message + 1);
	memcpy(message->data, data, len);
	d->num_own++;
	dgram_queue(d, message);
}

static void take_packet(struct dgram *d, const struct sockaddr_storage *from, const uint8_t *packet,
			size_t len)
{
	struct rsocket_udp_header header;
	struct dgram_peer *peer;
	socklen_t addr_len;
	uint32_t qpn;

	memset(&header, 0, sizeof(header));
	memcpy(&header, packet, RSOCKET_UDP_LENGTH(4));
	if (header.tag != htobe32(RSOCKET_UDP_TAG) ||
	    header.version != (from->ss_family == AF_INET ? 4 : 6) ||
	    header.length != RSOCKET_UDP_LENGTH(header.version) || len < header.length)
		return;
	if (header.op == RSOCKET_DATA)
		queue_copy(d, from, packet + header.length, len - header.length);
	addr_len = (socklen_t)polycm_addr_len((const struct sockaddr *)from);
	if (!may_hear(d, from, addr_len) ||
	    dgram_get_peer(d, (const struct sockaddr *)from, addr_len, &peer))
		return;
	if (header.op == RSOCKET_DATA)
		(void)dgram_send_udp(d, peer, RSOCKET_CONTROL, NULL);
	qpn = be32toh(header.qpn) & 0xffffff;
	if (!peer->ah || peer->qpn != qpn)
		dgram_resolve(d, peer, qpn);
}

void dgram_take_udp(struct dgram *d)
{
	uint8_t packet[RSOCKET_DGRAM_MAX];
	struct sockaddr_storage from;

	for (int i = 0; i < MOST_AT_ONCE; i++) {
		socklen_t len = sizeof(from);
		ssize_t num = recvfrom(d->udp, packet, sizeof(packet), 0, (struct sockaddr *)&from,
				       &len);

		if (num < 0)
			return;
		if (num >= (ssize_t)RSOCKET_UDP_LENGTH(4))
			take_packet(d, &from, packet, (size_t)num);
	}
}
