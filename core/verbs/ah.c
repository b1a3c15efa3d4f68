/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs/ah.c - address handles made from a received datagram's completion.
 * libibverbs reads the device's sysfs folder for this, so simulated devices
 * need it done here.
 */
#include "config.h"

#include "table.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

/* RoCE v2 over IPv4 puts the IP header into the last 20 bytes of the GRH's place. */
struct ipv4_in_grh {
	uint8_t unused[20];
	uint8_t version_ihl, tos;
	uint16_t length, id, fragment;
	uint8_t ttl, protocol;
	uint16_t checksum;
	uint8_t saddr[4], daddr[4];
};

static bool is_ipv4(const struct ibv_grh *grh)
{
	const struct ipv4_in_grh *ip = (const struct ipv4_in_grh *)grh;

	/* A GRH starts with IP version 6; then there is no IPv4 header. */
	return (ntohl(grh->version_tclass_flow) >> 28) != 6 && ip->version_ihl == 0x45;
}

static void mapped_gid(const uint8_t addr[4], union ibv_gid *ret_gid)
{
	memset(ret_gid, 0, sizeof(*ret_gid));
	ret_gid->raw[10] = ret_gid->raw[11] = 0xff;
	memcpy(&ret_gid->raw[12], addr, 4);
}

static int gid_index(struct ibv_context *context, uint8_t port, const union ibv_gid *gid,
		     enum ibv_gid_type type, bool any_type)
{
	const struct polycm_verbs *table = shim_table(context->device);
	struct ibv_gid_entry entry;

	for (uint32_t i = 0;; i++) {
		memset(&entry, 0, sizeof(entry));
		int r = table->query_gid_ex(context, port, i, &entry, 0);

		if (r == ENODATA)
			continue;	/* an empty entry */
		if (r)
			return -1;
		if (!memcmp(&entry.gid, gid, sizeof(*gid)) &&
		    (any_type || entry.gid_type == (uint32_t)type))
			return (int)i;
	}
}

static int init_ah(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
		   struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	union ibv_gid local, remote;
	int index;

	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->sl = wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = port;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;

	attr->is_global = 1;
	if (is_ipv4(grh)) {
		const struct ipv4_in_grh *ip = (const struct ipv4_in_grh *)grh;

		mapped_gid(ip->saddr, &remote);
		mapped_gid(ip->daddr, &local);
		attr->grh.traffic_class = ip->tos;
		attr->grh.hop_limit = 0xff;
		index = gid_index(context, port, &local, IBV_GID_TYPE_ROCE_V2, false);
	} else {
		uint32_t vtf = ntohl(grh->version_tclass_flow);

		remote = grh->sgid;
		local = grh->dgid;
		attr->grh.traffic_class = (uint8_t)(vtf >> 20);
		attr->grh.flow_label = vtf & 0xfffff;
		attr->grh.hop_limit = grh->hop_limit;
		index = gid_index(context, port, &local, IBV_GID_TYPE_IB, true);
	}
	if (index < 0) {
		errno = EINVAL;
		return -1;
	}
	attr->grh.dgid = remote;
	attr->grh.sgid_index = (uint8_t)index;
	return 0;
}

SHIM_CALL(int, ibv_init_ah_from_wc, 1.1, -1, context->device,
	  (struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
	   struct ibv_ah_attr *attr),
	  (context, port, wc, grh, attr), init_ah(context, port, wc, grh, attr))

static struct ibv_ah *create_ah(const struct polycm_verbs *table, struct ibv_pd *pd,
				struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
	struct ibv_ah_attr attr;

	return init_ah(pd->context, port, wc, grh, &attr) ? NULL : table->create_ah(pd, &attr);
}

SHIM_CALL(struct ibv_ah *, ibv_create_ah_from_wc, 1.1, NULL, pd->context->device,
	  (struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port),
	  (pd, wc, grh, port), create_ah(table, pd, wc, grh, port))
