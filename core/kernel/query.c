/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel/query.c - where the kernel says that an id is.
 *
 * For an id with IP addresses, QUERY_ROUTE returns everything: device, port, addresses,
 * GIDs and paths.  AF_IB addresses do not fit into its answer: they take two QUERY
 * commands, for addresses and for paths.
 */
#include "config.h"
#include "internal.h"

#include <endian.h>
#include <infiniband/sa.h>
#include <stdlib.h>

#include "core/base/addr.h"

/* Paths that were found are exact, and one each, whatever was asked of the SA. */
#define SELECTOR_EXACT	2
#define ONE_PATH	1
#define VALUE_MASK	0x3f
/* Programs find a path's flags under "preference"; these are what the kernel gives each path. */
#define PATH_FLAGS	(IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL)

/* An address as the kernel wrote it; left alone where it wrote none. */
static void copy_addr(struct sockaddr_storage *to, const void *from, size_t size)
{
	size_t len = size >= sizeof(sa_family_t) ? polycm_addr_len(from) : 0;

	if (len <= size)
		memcpy(to, from, len);
}

static void copy_path(struct ibv_sa_path_rec *to, const struct ib_user_path_rec *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(&to->dgid, from->dgid, sizeof(to->dgid));
	memcpy(&to->sgid, from->sgid, sizeof(to->sgid));
	to->dlid = from->dlid;
	to->slid = from->slid;
	to->raw_traffic = (int)from->raw_traffic;
	to->flow_label = from->flow_label;
	to->hop_limit = from->hop_limit;
	to->traffic_class = from->traffic_class;
	to->reversible = (int)from->reversible;
	to->numb_path = ONE_PATH;
	to->pkey = from->pkey;
	to->sl = from->sl;
	to->mtu_selector = SELECTOR_EXACT;
	to->mtu = (uint8_t)from->mtu;
	to->rate_selector = SELECTOR_EXACT;
	to->rate = from->rate;
	to->packet_life_time_selector = SELECTOR_EXACT;
	to->packet_life_time = from->packet_life_time;
	to->preference = PATH_FLAGS;
}

static void set_place(struct polycm_route_info *info, struct kernel_place *place, uint8_t port_num,
		      __be64 node_guid, uint32_t index)
{
	info->port_num = port_num;
	*place = (struct kernel_place){ node_guid || port_num, node_guid, index, port_num };
}

/* QUERY_ROUTE fills in GIDs and P_Key of the first path also where there is none. */
static int ask_route(int fd, uint32_t number, struct polycm_route_info *info,
		     struct kernel_place *place)
{
	struct rdma_ucm_query_route_resp resp;
	KERNEL_MESSAGE(rdma_ucm_query) message = {
		.body = { .response = kernel_pointer(&resp), .id = number },
	};
	int r;

	polycm_clear(&resp, sizeof(resp));
	resp.ibdev_index = KERNEL_NO_NUMBER;
	r = KERNEL_COMMAND(fd, QUERY_ROUTE, message, sizeof(resp));
	if (r)
		return r;

	copy_addr(&info->src, &resp.src_addr, sizeof(resp.src_addr));
	copy_addr(&info->dst, &resp.dst_addr, sizeof(resp.dst_addr));
	memcpy(&info->sgid, resp.ib_route[0].sgid, sizeof(info->sgid));
	memcpy(&info->dgid, resp.ib_route[0].dgid, sizeof(info->dgid));
	info->pkey = resp.ib_route[0].pkey;
	info->num_paths = resp.num_paths < 2 ? resp.num_paths : 2;
	for (uint32_t i = 0; i < info->num_paths; i++)
		copy_path(&info->path[i], &resp.ib_route[i]);
	set_place(info, place, resp.port_num, (__be64)resp.node_guid, resp.ibdev_index);
	return 0;
}

static int query(int fd, uint32_t number, uint32_t option, void *resp, size_t size)
{
	KERNEL_MESSAGE(rdma_ucm_query) message = {
		.body = { .response = kernel_pointer(resp), .id = number, .option = option },
	};

	return KERNEL_COMMAND(fd, QUERY, message, size);
}

static void copy_gid(union ibv_gid *to, const struct sockaddr_storage *addr)
{
	union kernel_addr copy;

	memcpy(&copy, addr, sizeof(copy));
	if (copy.sa.sa_family == AF_IB)
		memcpy(to, &copy.ib.sib_addr, sizeof(*to));
}

static int ask_addr(int fd, uint32_t number, struct polycm_route_info *info,
		    struct kernel_place *place)
{
	struct rdma_ucm_query_addr_resp resp;
	int r;

	polycm_clear(&resp, sizeof(resp));
	resp.ibdev_index = KERNEL_NO_NUMBER;
	r = query(fd, number, RDMA_USER_CM_QUERY_ADDR, &resp, sizeof(resp));
	if (r)
		return r;

	copy_addr(&info->src, &resp.src_addr, resp.src_size);
	copy_addr(&info->dst, &resp.dst_addr, resp.dst_size);
	copy_gid(&info->sgid, &info->src);
	copy_gid(&info->dgid, &info->dst);
	info->pkey = resp.pkey;
	set_place(info, place, resp.port_num, (__be64)resp.node_guid, resp.ibdev_index);
	return 0;
}

/* A path as it stands in a MAD. */
static void unpack_path(struct ibv_sa_path_rec *to, const struct ibv_path_data *data)
{
	const struct ibv_path_record *from = &data->path;
	uint32_t flow_label = be32toh(from->flowlabel_hoplimit);

	memset(to, 0, sizeof(*to));
	to->dgid = from->dgid;
	to->sgid = from->sgid;
	to->dlid = from->dlid;
	to->slid = from->slid;
	to->flow_label = htobe32(flow_label >> 8 & 0xfffff);
	to->hop_limit = (uint8_t)flow_label;
	to->traffic_class = from->tclass;
	to->reversible = from->reversible_numpath >> 7;
	to->numb_path = ONE_PATH;
	to->pkey = from->pkey;
	to->sl = (uint8_t)(be16toh(from->qosclass_sl) & 0xf);
	to->mtu_selector = SELECTOR_EXACT;
	to->mtu = from->mtu & VALUE_MASK;
	to->rate_selector = SELECTOR_EXACT;
	to->rate = from->rate & VALUE_MASK;
	to->packet_life_time_selector = SELECTOR_EXACT;
	to->packet_life_time = from->packetlifetime & VALUE_MASK;
	to->preference = (uint8_t)data->flags;
}

static int ask_paths(int fd, uint32_t number, struct polycm_route_info *info)
{
	struct {
		uint32_t num_paths;	/* struct rdma_ucm_query_path_resp */
		uint32_t reserved;
		struct ibv_path_data path[POLYCM_MAX_PATHS];
	} resp;
	int r;

	polycm_clear(&resp, sizeof(resp));
	r = query(fd, number, RDMA_USER_CM_QUERY_PATH, &resp, sizeof(resp));
	if (r)
		return r;
	info->num_paths = resp.num_paths < POLYCM_MAX_PATHS ? resp.num_paths : POLYCM_MAX_PATHS;
	for (uint32_t i = 0; i < info->num_paths; i++)
		unpack_path(&info->path[i], &resp.path[i]);
	return 0;
}

/*
 * As librdmacm, show programs less than the kernel reports: no P_Key on Ethernet, and no GIDs in
 * an active id on iWARP, except for the source's if it was bound to a device's address before.
 */
static void leave_out(const struct kernel_id *id, const struct polycm_transport *rules,
		      struct polycm_route_info *info)
{
	union kernel_addr src;

	memcpy(&src, &info->src, sizeof(src));
	if (rules->link_layer != IBV_LINK_LAYER_INFINIBAND && !kernel_is_loopback(&src))
		info->pkey = 0;
	if (rules->transport_type != IBV_TRANSPORT_IWARP || !id->resolves)
		return;
	memset(&info->dgid, 0, sizeof(info->dgid));
	if (!id->placed)
		memset(&info->sgid, 0, sizeof(info->sgid));
}

static int ask(const struct kernel_id *id, int fd, struct polycm_route_info *ret_info,
	       char where[static KERNEL_WHERE_TEXT])
{
	struct kernel_place place = { .on_device = false };
	const struct polycm_transport *rules;
	int r;

	where[0] = '\0';
	polycm_clear(ret_info, offsetof(struct polycm_route_info, path));
	ret_info->size = sizeof(*ret_info);
	if (id->ib) {
		r = ask_addr(fd, id->number, ret_info, &place);
		if (!r && atomic_load(&id->routed))
			r = ask_paths(fd, id->number, ret_info);
	} else {
		r = ask_route(fd, id->number, ret_info, &place);
	}
	if (r || !place.on_device)
		return r;
	r = kernel_devices_find(&place, &ret_info->device, &rules, where);
	if (!r)
		leave_out(id, rules, ret_info);
	return r;
}

int kernel_ask_ahead(struct kernel_id *id, int fd, struct kernel_seen *ret_seen,
		     char where[static KERNEL_WHERE_TEXT])
{
	struct polycm_route_info *info = malloc(sizeof(*info));
	struct polycm_route_info here, *asked = info ? info : &here;
	int r;

	r = ask(id, fd, asked, where);
	ret_seen->src = asked->src;
	ret_seen->on_device = asked->device;
	if (r) {
		free(info);
		info = NULL;
	}
	free(atomic_exchange(&id->answer, info));
	return r;
}

void kernel_answer_drop(struct kernel_id *id)
{
	if (atomic_load(&id->answer))
		free(atomic_exchange(&id->answer, NULL));
}

/* Up to the last path that there is. */
static size_t used(const struct polycm_route_info *info)
{
	return offsetof(struct polycm_route_info, path) + info->num_paths * sizeof(info->path[0]);
}

static void copy_info(struct polycm_route_info *to, const struct polycm_route_info *from)
{
	size_t len = used(from);
	uint32_t size = to->size;

	memcpy(to, from, size < len ? size : len);
	to->size = size;
}

static int query_now(struct kernel_id *id, struct polycm_route_info *ret_info)
{
	bool whole = ret_info->size == sizeof(*ret_info);
	struct polycm_route_info info;
	char where[KERNEL_WHERE_TEXT];
	int r;

	where[0] = '\0';
	r = kernel_id_ready(id);
	if (!r)
		r = ask(id, kernel_fd(id->chan), whole ? ret_info : &info, where);
	if (r)
		return where[0] ? polycm_fail(r, "on %s", where) : r;
	if (!whole)
		copy_info(ret_info, &info);
	return 0;
}

int kernel_op_query(void *priv, struct polycm_route_info *ret_info)
{
	struct kernel_id *id = priv;
	struct polycm_route_info *kept = atomic_exchange(&id->answer, NULL);

	if (!kept)
		return query_now(id, ret_info);
	copy_info(ret_info, kept);
	free(kept);
	return 0;
}
