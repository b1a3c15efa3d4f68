/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/device.c - the attributes of a simulated device: limits as current
 * adapters of its transport have them, ports, GID and P_Key tables.
 */
#include "config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <time.h>

#include "providers/soft/fabric/gids.h"
#include "device.h"
#include "refuse.h"
#include "verbs.h"

#define VENDOR_ID 0xffffffu	/* software devices have none of their own */

static void init_limits(struct ibv_device_attr *attr, const struct sim_device *device)
{
	const struct polycm_transport *rules = device->rules;
	bool iwarp = nic_is_iwarp(device);
	bool atomic = rules->services & POLYCM_SVC_ATOMIC;
	bool srq = rules->services & POLYCM_SVC_SRQ;
	bool multicast = rules->services & POLYCM_SVC_MULTICAST;

	*attr = (struct ibv_device_attr) {
		.node_guid = device->vdev.node_guid,
		.sys_image_guid = device->vdev.node_guid,
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffffffffffff000,
		.vendor_id = VENDOR_ID,
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
		.phys_port_cnt = (uint8_t)device->num_ports,
	};
	if (rules->services & POLYCM_SVC_RNR)
		attr->device_cap_flags |= IBV_DEVICE_RC_RNR_NAK_GEN;
	if (!iwarp)
		attr->device_cap_flags |= IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_UD_AV_PORT_ENFORCE;
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "1.0.0");
}

static enum ibv_mtu mtu_enum(uint32_t bytes)
{
	for (int mtu = IBV_MTU_4096; mtu > IBV_MTU_256; mtu--)
		if (bytes >= 128u << mtu)
			return (enum ibv_mtu)mtu;
	return IBV_MTU_256;
}

static void init_port(struct sim_port *port)
{
	const struct polycm_transport *rules = port->device->rules;
	uint32_t netdev_mtu = port->netdev_mtu ? port->netdev_mtu : 1500;

	port->max_mtu = IBV_MTU_4096;
	if (rules->flags & POLYCM_T_HAS_SA)
		port->active_mtu = IBV_MTU_4096;
	else
		port->active_mtu = mtu_enum(rules->path_mtu ? rules->path_mtu(netdev_mtu) : netdev_mtu);
}

static void init_device(struct sim_device *device)
{
	init_limits(&device->attr, device);
	for (unsigned int i = 0; i < device->num_ports; i++)
		init_port(&device->ports[i]);
}

const struct sim_device_model sim_nic_model = { .verbs = &sim_verbs, .init = init_device };

struct sim_port *nic_port(struct sim_device *device, uint32_t num)
{
	return num >= 1 && num <= device->num_ports ? &device->ports[num - 1] : NULL;
}

int sim_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	sim_lock();
	*attr = nic_device(context)->attr;
	sim_unlock();
	return 0;
}

int sim_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex full = { 0 };

	if (input && input->comp_mask)
		return nic_refuse(nic_device(context), "ibv_query_device_ex", EINVAL,
				  "comp_mask of the input is 0x%x, none is known", input->comp_mask);
	if (size < sizeof(full.orig_attr))
		return nic_refuse(nic_device(context), "ibv_query_device_ex", EINVAL,
				  "there is room for %zu bytes only", size);
	sim_lock();
	full.orig_attr = nic_device(context)->attr;
	sim_unlock();
	full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
	full.completion_timestamp_mask = UINT64_MAX;
	full.hca_core_clock = 1000000;	/* kHz: the engine counts nanoseconds */
	full.phys_port_cnt_ex = full.orig_attr.phys_port_cnt;
	memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

int sim_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	uint64_t now = sim_now();

	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return nic_refuse(nic_device(context), "ibv_query_rt_values_ex", EINVAL,
				  "comp_mask is 0x%x, only the raw clock is known", values->comp_mask);
	values->raw_clock.tv_sec = (time_t)(now / 1000000000u);
	values->raw_clock.tv_nsec = (long)(now % 1000000000u);
	return 0;
}

static int gid_table_len(const struct sim_port *port)
{
	unsigned int len = SIM_MAX_GIDS;

	if (nic_is_iwarp(port->device))
		len = 1;
	else if (port->device->rules->link_layer == IBV_LINK_LAYER_INFINIBAND)
		len = 8;
	return (int)(len > port->num_gids ? len : port->num_gids);
}

static int pkey_table_len(const struct sim_port *port)
{
	return nic_is_iwarp(port->device) ? 0 : 1;
}

void nic_port_attr(const struct sim_port *port, struct ibv_port_attr *attr)
{
	const struct polycm_transport *rules = port->device->rules;
	bool ib = rules->link_layer == IBV_LINK_LAYER_INFINIBAND;

	*attr = (struct ibv_port_attr) {
		.state = port->state,
		.max_mtu = port->max_mtu,
		.active_mtu = port->active_mtu,
		.gid_tbl_len = gid_table_len(port),
		.port_cap_flags = IBV_PORT_CM_SUP,
		.max_msg_sz = NIC_MAX_MESSAGE,
		.pkey_tbl_len = (uint16_t)pkey_table_len(port),
		.max_vl_num = 1,
		.active_width = 2,	/* 4X */
		.active_speed = 32,	/* 25 Gb/s a lane */
		.phys_state = port->state >= IBV_PORT_INIT ? 5 : 3,	/* link up, disabled */
		.link_layer = rules->link_layer,
	};
	if (ib) {
		attr->port_cap_flags |= IBV_PORT_NOTICE_SUP | IBV_PORT_TRAP_SUP | IBV_PORT_SL_MAP_SUP |
					IBV_PORT_SYS_IMAGE_GUID_SUP | IBV_PORT_EXTENDED_SPEEDS_SUP |
					IBV_PORT_CLIENT_REG_SUP;
		attr->lid = port->lid;
		attr->sm_lid = 1;
		attr->subnet_timeout = 18;
		attr->max_vl_num = 4;	/* code of VL0-VL7 */
	} else if (!nic_is_iwarp(port->device)) {
		attr->port_cap_flags |= IBV_PORT_IP_BASED_GIDS;
	}
}

static int no_port(struct ibv_context *context, const char *call, uint32_t num)
{
	const struct sim_device *device = nic_device(context);

	return nic_refuse(device, call, EINVAL, "port %u, the device has %u", num, device->num_ports);
}

/* Has the port that entry of a table?  0, or an errno with a log line. */
static int check_entry(struct ibv_context *context, const char *call, uint32_t num,
		       long long index, int (*table_len)(const struct sim_port *port))
{
	const struct sim_port *port = nic_port(nic_device(context), num);

	if (!port)
		return no_port(context, call, num);
	if (index < 0 || index >= table_len(port))
		return nic_refuse(nic_device(context), call, EINVAL, "index %lld, port %u has %d",
				  index, num, table_len(port));
	return 0;
}

int sim_query_port_ex(struct ibv_context *context, uint8_t num, struct ibv_port_attr *attr,
		      size_t size)
{
	const struct sim_port *port = nic_port(nic_device(context), num);
	struct ibv_port_attr full;

	if (!port)
		return no_port(context, "ibv_query_port", num);
	sim_lock();
	nic_port_attr(port, &full);
	sim_unlock();
	memset(attr, 0, size);
	memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

int sim_query_port(struct ibv_context *context, uint8_t num, struct ibv_port_attr *attr)
{
	return sim_query_port_ex(context, num, attr, sizeof(*attr));
}

int sim_query_gid(struct ibv_context *context, uint8_t num, int index, union ibv_gid *gid)
{
	int err = check_entry(context, "ibv_query_gid", num, index, gid_table_len);
	const struct sim_port *port = nic_port(nic_device(context), num);

	if (err) {
		errno = err;
		return -1;
	}
	memset(gid, 0, sizeof(*gid));
	sim_lock();
	if ((unsigned int)index < port->num_gids)
		*gid = port->gids[index].gid;
	sim_unlock();
	return 0;
}

static void fill_gid_entry(const struct sim_port *port, uint32_t index, struct ibv_gid_entry *entry)
{
	*entry = (struct ibv_gid_entry) {
		.gid = port->gids[index].gid,
		.gid_index = index,
		.port_num = port->num,
		.gid_type = port->gids[index].type,
		.ndev_ifindex = port->gids[index].ifindex,
	};
}

int sim_query_gid_ex(struct ibv_context *context, uint32_t num, uint32_t index,
		     struct ibv_gid_entry *entry, uint32_t flags)
{
	const struct sim_port *port = nic_port(nic_device(context), num);
	int err;

	if (flags)
		return nic_refuse(nic_device(context), "ibv_query_gid_ex", EOPNOTSUPP,
				  "flags 0x%x, none is known", flags);
	err = check_entry(context, "ibv_query_gid_ex", num, index, gid_table_len);
	if (err)
		return err;
	sim_lock();
	if (index < port->num_gids && sim_gid_is_set(&port->gids[index]))
		fill_gid_entry(port, index, entry);
	else
		err = ENODATA;
	sim_unlock();
	return err;
}

ssize_t sim_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			    size_t max_entries, uint32_t flags)
{
	const struct sim_device *device = nic_device(context);
	size_t count = 0;

	if (flags)
		return -nic_refuse(device, "ibv_query_gid_table", EOPNOTSUPP,
				   "flags 0x%x, none is known", flags);
	sim_lock();
	for (unsigned int i = 0; i < device->num_ports; i++) {
		const struct sim_port *port = &device->ports[i];

		for (uint32_t index = 0; index < port->num_gids; index++) {
			if (!sim_gid_is_set(&port->gids[index]))
				continue;
			if (count < max_entries)
				fill_gid_entry(port, index, &entries[count]);
			count++;
		}
	}
	sim_unlock();
	if (count > max_entries)
		return -nic_refuse(device, "ibv_query_gid_table", EINVAL,
				   "there is room for %zu entries, the device has %zu", max_entries,
				   count);
	return (ssize_t)count;
}

int sim_query_pkey(struct ibv_context *context, uint8_t num, int index, __be16 *pkey)
{
	int err = check_entry(context, "ibv_query_pkey", num, index, pkey_table_len);

	if (err) {
		errno = err;
		return -1;
	}
	*pkey = htons(SIM_PKEY);
	return 0;
}

int sim_get_pkey_index(struct ibv_context *context, uint8_t num, __be16 pkey)
{
	static const char call[] = "ibv_get_pkey_index";
	int err = check_entry(context, call, num, 0, pkey_table_len);

	if (!err && pkey != htons(SIM_PKEY))
		err = nic_refuse(nic_device(context), call, EINVAL,
				 "port %u has the P_Key 0x%04x only", num, SIM_PKEY);
	if (!err)
		return 0;
	errno = err;
	return -1;
}
