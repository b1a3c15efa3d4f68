/* SPDX-License-Identifier: BSD-2-Clause */
/* scene_show.c - owns how things look in the trace: QPs, addresses, routes, bytes. */
#include "scene_internal.h"

const char *bytes_text(const void *data, size_t len)
{
	static _Thread_local char text[4][1100];
	static _Thread_local unsigned int turn;
	char *buffer = text[turn++ % ARRAY_LEN(text)];
	const uint8_t *bytes = data;
	size_t i, run, used = 0;

	buffer[0] = '\0';
	for (i = 0; i < len && used < sizeof(text[0]) - 16; i += run) {
		for (run = 1; i + run < len && bytes[i + run] == bytes[i]; run++)
			;
		if (run < 4)
			run = 1;
		used += (size_t)snprintf(buffer + used, sizeof(text[0]) - used, "%02x", bytes[i]);
		if (run > 1)
			used += (size_t)snprintf(buffer + used, sizeof(text[0]) - used, "*%zu%s", run,
						 i + run < len ? " " : "");
	}
	return buffer;
}

static const char *qp_state_text(enum ibv_qp_state state)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	return (size_t)state < ARRAY_LEN(names) ? names[state] : "in an unknown state";
}

static bool query(struct rdma_cm_id *id, struct ibv_qp_attr *ret_attr)
{
	struct ibv_qp_init_attr init;
	int error;

	memset(ret_attr, 0, sizeof(*ret_attr));
	if (!id->qp) {
		say("%s no QP", id_name(id));
		return false;
	}
	error = ibv_query_qp(id->qp, ret_attr, IBV_QP_STATE | IBV_QP_QKEY, &init);
	if (error)
		say("%s ibv_query_qp = %s", id_name(id), errno_text(error));
	return !error;
}

void show_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr;

	if (query(id, &attr))
		say("%s QP %s", id_name(id), qp_state_text(attr.qp_state));
}

/* rxe and siw round depths up like this, other devices do not. */
static unsigned int power_of_two(unsigned int depth)
{
	unsigned int power = 1;

	while (power < depth)
		power *= 2;
	return depth ? power : 0;
}

void show_qp_attr(struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr;
	char depths[64];

	if (!query(id, &attr))
		return;
	if (id->qp->qp_type == IBV_QPT_UD) {
		say("%s QP %s, qkey 0x%x", id_name(id), qp_state_text(attr.qp_state), attr.qkey);
		return;
	}
	/* Local write is a device's own business. */
	snprintf(depths, sizeof(depths), "rd %u dest rd %u access 0x%x",
		 power_of_two(attr.max_rd_atomic), power_of_two(attr.max_dest_rd_atomic),
		 (unsigned int)attr.qp_access_flags & ~(unsigned int)IBV_ACCESS_LOCAL_WRITE);
	if (id->verbs->device->transport_type != IBV_TRANSPORT_IB) {
		say("%s QP %s, %s", id_name(id), qp_state_text(attr.qp_state), depths);
		return;
	}
	say("%s QP %s, timeout %u retry %u rnr %u mtu %u min rnr %u %s", id_name(id),
	    qp_state_text(attr.qp_state), attr.timeout, attr.retry_cnt, attr.rnr_retry,
	    attr.path_mtu, attr.min_rnr_timer, depths);
	say("%s QP ah global %u dgid %s hop %u tc %u sl %u", id_name(id), attr.ah_attr.is_global,
	    gid_text(&attr.ah_attr.grh.dgid), attr.ah_attr.grh.hop_limit,
	    attr.ah_attr.grh.traffic_class, attr.ah_attr.sl);
}

void show_addresses(struct rdma_cm_id *id)
{
	const struct rdma_addr *addr = &id->route.addr;
	bool from = addr->src_addr.sa_family, to = addr->dst_addr.sa_family;

	say("%s from %s to %s, device %s, port %s", id_name(id),
	    from ? address_text(&addr->src_addr) : "none", to ? address_text(&addr->dst_addr) : "none",
	    id->verbs ? "yes" : "no", id->port_num ? "yes" : "no");
}

void show_route(struct rdma_cm_id *id)
{
	const struct ibv_sa_path_rec *path = id->route.path_rec;
	int i;

	say("%s route: sgid %s dgid %s pkey 0x%x, %d path%s", id_name(id),
	    gid_text(&id->route.addr.addr.ibaddr.sgid), gid_text(&id->route.addr.addr.ibaddr.dgid),
	    be16toh(id->route.addr.addr.ibaddr.pkey), id->route.num_paths,
	    id->route.num_paths == 1 ? "" : "s");
	for (i = 0; path && i < id->route.num_paths; i++, path++)
		say("  sgid %s dgid %s hop %u tc %u sl %u pkey 0x%x mtu %u rate %u life %u numb %u",
		    gid_text(&path->sgid), gid_text(&path->dgid), path->hop_limit,
		    path->traffic_class, path->sl, be16toh(path->pkey), path->mtu, path->rate,
		    path->packet_life_time, path->numb_path);
}
