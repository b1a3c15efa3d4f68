/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/device.c - the attributes of a simulated device and its ports, GID and P_Key tables.
 */
#include "config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <time.h>

#include "providers/soft/fabric/gids.h"
#include "providers/soft/fabric/profile.h"
#include "device.h"
#include "refuse.h"
#include "verbs.h"

#define ETHERNET_MTU 1500u
#define HEADERS 104u		/* of a packet of RoCE, with some room */
#define SPEED_NDR 128u		/* 100 Gb/s a lane */

static enum ibv_mtu mtu_enum(uint32_t bytes)
{
	for (int mtu = IBV_MTU_4096; mtu > IBV_MTU_256; mtu--)
		if (bytes >= 128u << mtu)
			return (enum ibv_mtu)mtu;
	return IBV_MTU_256;
}

/* The MTU of an interface on which a port has that path MTU. */
static uint32_t netdev_mtu_of(uint32_t active_mtu)
{
	return active_mtu <= IBV_MTU_1024 ? ETHERNET_MTU : (128u << active_mtu) + HEADERS;
}

static const struct sim_profile_port *profile_of(const struct sim_port *port)
{
	return port->device->profile ? &port->device->profile->ports[port->num - 1] : NULL;
}

static void init_port(struct sim_port *port)
{
	const struct polycm_transport *rules = port->device->rules;
	const struct sim_profile_port *profile = profile_of(port);
	uint32_t netdev_mtu = port->netdev_mtu ? port->netdev_mtu : ETHERNET_MTU;

	port->max_mtu = IBV_MTU_4096;
	port->max_msg_sz = NIC_MAX_MESSAGE;
	port->pkey_tbl_len = nic_is_iwarp(port->device) ? 0 : 1;
	if (profile && profile->max_msg_sz && profile->max_msg_sz < NIC_MAX_MESSAGE)
		port->max_msg_sz = profile->max_msg_sz;
	if (profile && profile->pkey_tbl_len && port->pkey_tbl_len)
		port->pkey_tbl_len = (uint16_t)profile->pkey_tbl_len;
	if (profile) {
		port->max_mtu = profile->max_mtu;
		port->active_mtu = profile->active_mtu;
		if (!(rules->flags & POLYCM_T_HAS_SA))
			port->netdev_mtu = netdev_mtu_of(profile->active_mtu);
	} else if (rules->flags & POLYCM_T_HAS_SA)
		port->active_mtu = IBV_MTU_4096;
	else
		port->active_mtu = mtu_enum(rules->path_mtu ? rules->path_mtu(netdev_mtu) : netdev_mtu);
}

static void init_device(struct sim_device *device)
{
	nic_init_limits(device);
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
	if (nic_device(context)->services & NIC_SVC_PLACEMENT)
		full.device_cap_flags_ex |= SIM_DEVICE_FLUSH_GLOBAL | SIM_DEVICE_ATOMIC_WRITE;
	nic_init_odp(nic_device(context), &full);
	nic_init_clock(nic_device(context), &full);
	full.max_dm_size = nic_max_dm_size(nic_device(context));
	full.phys_port_cnt_ex = full.orig_attr.phys_port_cnt;
	memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

int sim_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	static const char call[] = "ibv_query_rt_values_ex";
	const struct sim_device *device = nic_device(context);

	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return nic_refuse(device, call, EINVAL, "comp_mask is 0x%x, only the raw clock is known",
				  values->comp_mask);
	if (!nic_has_clock(device))
		return nic_refuse(device, call, EOPNOTSUPP, "the device's profile has no clock");
	/* Cycles, as drivers give them, whatever the member's name says. */
	if (values->comp_mask)
		values->raw_clock = (struct timespec) {
			.tv_nsec = (long)nic_clock_at(device, sim_now()),
		};
	return 0;
}

static int gid_table_len(const struct sim_port *port)
{
	const struct sim_profile_port *profile = profile_of(port);
	unsigned int len = SIM_MAX_GIDS;

	if (profile && profile->gid_tbl_len)
		len = profile->gid_tbl_len;
	else if (nic_is_iwarp(port->device))
		len = 1;
	else if (port->device->rules->link_layer == IBV_LINK_LAYER_INFINIBAND)
		len = 8;
	return (int)(len > port->num_gids ? len : port->num_gids);
}

static int pkey_table_len(const struct sim_port *port)
{
	return port->pkey_tbl_len;
}

static void apply_profile(const struct sim_profile_port *profile, struct ibv_port_attr *attr)
{
	/* All ports have some; of these 0 is a port that was down. */
	if (profile->port_cap_flags)
		attr->port_cap_flags = profile->port_cap_flags;
	if (profile->active_width)
		attr->active_width = (uint8_t)profile->active_width;
	/* Newer ones do not fit: as the kernel, the fastest that does. */
	if (profile->active_speed)
		attr->active_speed = (uint8_t)(profile->active_speed < SPEED_NDR ?
					       profile->active_speed : SPEED_NDR);
	attr->port_cap_flags2 = (uint16_t)profile->port_cap_flags2;
	attr->max_vl_num = (uint8_t)profile->max_vl_num;
	attr->subnet_timeout = (uint8_t)profile->subnet_timeout;
	attr->init_type_reply = (uint8_t)profile->init_type_reply;
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
		.max_msg_sz = port->max_msg_sz,
		.pkey_tbl_len = port->pkey_tbl_len,
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
	if (profile_of(port))
		apply_profile(profile_of(port), attr);
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
	*pkey = index ? 0 : htons(SIM_PKEY);
	return 0;
}

int sim_get_pkey_index(struct ibv_context *context, uint8_t num, __be16 pkey)
{
	static const char call[] = "ibv_get_pkey_index";
	int err = check_entry(context, call, num, 0, pkey_table_len);
	int index = pkey == htons(SIM_PKEY) ? 0 : 1;

	/* As libibverbs: 0 is in the first empty entry. */
	if (!err && index && (pkey || pkey_table_len(nic_port(nic_device(context), num)) < 2))
		err = nic_refuse(nic_device(context), call, EINVAL,
				 "port %u has the P_Key 0x%04x only", num, SIM_PKEY);
	if (!err)
		return index;
	errno = err;
	return -1;
}
