/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/limits.c - the limits that a device shows and enforces: those of current adapters of
 * its transport, or those of the profile that it plays.
 *
 * Where a limit of struct ibv_device_attr is enforced; without one, who asks gets EOPNOTSUPP:
 *
 *	max_qp, max_cq, max_mr, max_mw, max_pd, max_ah, max_srq		nic_add()
 *	max_mr_size						ibv_reg_mr(), ibv_rereg_mr()
 *	max_qp_wr, max_sge					ibv_create_qp()
 *	max_sge_rd						posting an RDMA read
 *	max_cqe							ibv_create_cq(), ibv_resize_cq()
 *	max_srq_wr, max_srq_sge					ibv_create_srq(), ibv_modify_srq()
 *	max_qp_rd_atom, max_qp_init_rd_atom			ibv_modify_qp(), streams
 *	max_mcast_grp, max_mcast_qp_attach, max_total_mcast_qp_attach	ibv_attach_mcast()
 *	atomic_cap		posting an atomic, and the responder; ibv_create_qp_ex()
 *	device_cap_flags: MEM_WINDOW, MEM_WINDOW_TYPE_2B	ibv_alloc_mw()
 *		MEM_MGT_EXTENSIONS	posting SEND_WITH_INV and LOCAL_INV; ibv_create_qp_ex()
 *		XRC		ibv_open_xrcd(), ibv_create_srq_ex(), ibv_create_qp_ex()
 *		SRQ_RESIZE	ibv_modify_srq()
 *
 * and of struct ibv_port_attr:
 *
 *	max_mtu							ibv_modify_qp()
 *	active_mtu						sending a datagram
 *	max_msg_sz						sending any other message
 *	gid_tbl_len		ibv_query_gid(), ibv_create_ah(), ibv_modify_qp()
 *	pkey_tbl_len		ibv_query_pkey(), ibv_get_pkey_index(), ibv_modify_qp()
 *
 * max_res_rd_atom is max_qp times max_qp_rd_atom on adapters, so the other two reach it first.
 * page_size_cap, max_pkeys, max_fmr and max_map_per_fmr bind the kernel only: no call of a
 * program depends on them.  What the simulator does not have is 0: EE contexts, raw QPs, and
 * all capabilities of ibv_query_device_ex() but the clock.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "providers/soft/fabric/profile.h"
#include "device.h"
#include "objects.h"

#define COMP_VECTORS 4
#define MAX_DM_SIZE (256u << 10)
#define MAX_DEPTH 255u		/* rdma_conn_param has a byte for it */

/* What the simulator does, of what a device says that it can do. */
#define CAP_FLAGS                                                                                  \
	(IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_MEM_WINDOW |        \
	 IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS |                           \
	 IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_PORT_ACTIVE_EVENT |                             \
	 IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_XRC)

static void init_by_rules(struct ibv_device_attr *attr, const struct sim_device *device)
{
	const struct polycm_transport *rules = device->rules;
	bool iwarp = nic_is_iwarp(device);
	bool atomic = rules->services & POLYCM_SVC_ATOMIC;
	bool srq = rules->services & POLYCM_SVC_SRQ;
	bool multicast = rules->services & POLYCM_SVC_MULTICAST;

	*attr = (struct ibv_device_attr) {
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffffffffffff000,
		.vendor_id = NIC_SOFTWARE_VENDOR,
		.vendor_part_id = iwarp ? 3 : rules->link_layer == IBV_LINK_LAYER_INFINIBAND ? 1 : 2,
		.hw_ver = 1,
		.max_qp = 262144,
		.max_qp_wr = 32768,
		.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID |
				    IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
				    IBV_DEVICE_MEM_MGT_EXTENSIONS,
		.max_sge = NIC_MAX_SGE,
		.max_sge_rd = iwarp ? 1 : NIC_MAX_SGE,
		.max_cq = 1 << 24,
		.max_cqe = (1 << 22) - 1,
		.max_mr = (1 << 20) - 1,
		.max_mw = 1 << 20,
		.max_pd = 1 << 23,
		.max_qp_rd_atom = rules->max_responder_resources,
		.max_res_rd_atom = 262144 * rules->max_responder_resources,
		.max_qp_init_rd_atom = rules->max_initiator_depth,
		.atomic_cap = atomic ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE,
		.max_ah = iwarp ? 0 : 1 << 24,
		.max_srq = srq ? 1 << 23 : 0,
		.max_srq_wr = srq ? 32767 : 0,
		.max_srq_sge = srq ? 31 : 0,
		.max_mcast_grp = multicast ? 8192 : 0,
		.max_mcast_qp_attach = multicast ? 56 : 0,
		.max_total_mcast_qp_attach = multicast ? 8192 * 56 : 0,
		.max_pkeys = iwarp ? 0 : 1,
		.local_ca_ack_delay = rules->local_ca_ack_delay,
	};
	if (rules->services & POLYCM_SVC_RNR)
		attr->device_cap_flags |= IBV_DEVICE_RC_RNR_NAK_GEN;
	if (rules->services & POLYCM_SVC_XRC)
		attr->device_cap_flags |= IBV_DEVICE_XRC;
	if (!iwarp)
		attr->device_cap_flags |= IBV_DEVICE_PORT_ACTIVE_EVENT |
					  IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_SRQ_RESIZE;
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "1.0.0");
}

static void at_most(const struct sim_device *device, const char *name, int *limit, unsigned int max)
{
	if (*limit >= 0 && (unsigned int)*limit <= max)
		return;
	sim_core->log(POLYCM_LOG_INFO, NULL, "%s: %s of the profile is %d, the simulator has %u",
		      device->vdev.device.name, name, *limit, max);
	*limit = (int)max;
}

static void init_by_profile(struct ibv_device_attr *attr, const struct sim_device *device)
{
	init_by_rules(attr, device);
	sim_profile_apply(device->profile, attr);
	attr->device_cap_flags &= CAP_FLAGS;
	attr->max_ee = attr->max_rdd = attr->max_ee_rd_atom = attr->max_ee_init_rd_atom = 0;
	attr->max_raw_ipv6_qp = attr->max_raw_ethy_qp = 0;
	if (nic_is_iwarp(device))
		attr->max_pkeys = 0;
#define AT_MOST(member, max) at_most(device, #member, &attr->member, max)
	AT_MOST(max_sge, NIC_MAX_SGE);
	AT_MOST(max_sge_rd, NIC_MAX_SGE);
	AT_MOST(max_srq_sge, NIC_MAX_SGE);
	AT_MOST(max_qp_rd_atom, MAX_DEPTH);
	AT_MOST(max_qp_init_rd_atom, MAX_DEPTH);
#undef AT_MOST
}

/* What attr leaves of the services that the transport has. */
static uint32_t services_of(const struct sim_device *device)
{
	const struct ibv_device_attr *attr = &device->attr;
	const unsigned int windows = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	uint32_t services = device->rules->services;

	if (attr->atomic_cap == IBV_ATOMIC_NONE)
		services &= ~POLYCM_SVC_ATOMIC;
	if (!attr->max_srq)
		services &= ~POLYCM_SVC_SRQ;
	if (!attr->max_srq || !(attr->device_cap_flags & IBV_DEVICE_XRC))
		services &= ~POLYCM_SVC_XRC;
	if (!attr->max_mcast_grp || !attr->max_mcast_qp_attach || !attr->max_total_mcast_qp_attach)
		services &= ~POLYCM_SVC_MULTICAST;
	if (attr->device_cap_flags & windows)
		services |= NIC_SVC_WINDOWS;
	if (attr->device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS)
		services |= NIC_SVC_INVALIDATE;
	/* As Linux's RoCE in software.  A profile does not say whether the adapter can do it. */
	if (!device->profile && services & POLYCM_SVC_ATOMIC)
		services |= NIC_SVC_PLACEMENT | NIC_SVC_ODP;
	return services;
}

int nic_comp_vectors(const struct sim_device *device)
{
	return device->profile && device->profile->num_comp_vectors ?
		       (int)device->profile->num_comp_vectors : COMP_VECTORS;
}

/* Without a profile, a clock that counts nanoseconds. */
static uint64_t clock_khz(const struct sim_device *device)
{
	return device->profile ? device->profile->core_clock_khz : 1000000;
}

static uint64_t clock_mask(const struct sim_device *device)
{
	return device->profile ? device->profile->timestamp_mask : UINT64_MAX;
}

/*
 * The doorbell that arms a CQ carries the consumer's index.  For that reason mlx4's and mlx5's
 * drivers never report missed events (IB_CQ_REPORT_MISSED_EVENTS), as those of rxe and siw do.
 */
bool nic_tells_of_earlier(const struct sim_device *device)
{
	return device->attr.vendor_id == NIC_MELLANOX;
}

bool nic_has_clock(const struct sim_device *device)
{
	return clock_khz(device) && clock_mask(device);
}

uint64_t nic_clock_at(const struct sim_device *device, uint64_t ns)
{
	uint64_t khz = clock_khz(device);

	return (ns / 1000000 * khz + ns % 1000000 * khz / 1000000) & clock_mask(device);
}

void nic_init_clock(const struct sim_device *device, struct ibv_device_attr_ex *attr)
{
	attr->completion_timestamp_mask = clock_mask(device);
	attr->hca_core_clock = clock_khz(device);
}

size_t nic_max_dm_size(const struct sim_device *device)
{
	return nic_is_iwarp(device) ? 0 : MAX_DM_SIZE;
}

void nic_init_limits(struct sim_device *device)
{
	struct ibv_device_attr *attr = &device->attr;

	if (device->profile)
		init_by_profile(attr, device);
	else
		init_by_rules(attr, device);
	attr->node_guid = attr->sys_image_guid = device->vdev.node_guid;
	attr->phys_port_cnt = (uint8_t)device->num_ports;
	device->services = services_of(device);
}
