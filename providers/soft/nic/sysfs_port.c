/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/sysfs_port.c - the files of a port: its state, its tables, what it counts. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "providers/soft/fabric/counters.h"
#include "providers/soft/fabric/gids.h"
#include "sysfs.h"

/* --- State. --- */

static int show_state(const struct sysfs_place *at, char *buf, size_t size)
{
	static const char *const states[] = { "NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER" };

	return snprintf(buf, size, "%d: %s", (int)at->port_attr.state, states[at->port_attr.state]);
}

static int show_phys_state(const struct sysfs_place *at, char *buf, size_t size)
{
	unsigned int state = at->port_attr.phys_state;

	return snprintf(buf, size, "%u: %s", state, state == 5 ? "LinkUp" : "Disabled");
}

static int show_link_layer(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "%s", at->port_attr.link_layer == IBV_LINK_LAYER_INFINIBAND ?
			"InfiniBand" : "Ethernet");
}

/* "100 Gb/sec (4X EDR)": lanes times the speed of a lane. */
static int show_rate(const struct sysfs_place *at, char *buf, size_t size)
{
	static const struct {
		uint8_t code;
		unsigned int tenths;	/* of a Gb/s */
		const char *name;
	} speeds[] = {
		{ 1, 25, "" }, { 2, 50, " DDR" }, { 4, 100, " QDR" }, { 8, 100, " FDR10" },
		{ 16, 140, " FDR" }, { 32, 250, " EDR" }, { 64, 500, " HDR" }, { 128, 1000, " NDR" },
	};
	static const struct {
		uint8_t code, lanes;
	} widths[] = { { 1, 1 }, { 2, 4 }, { 4, 8 }, { 8, 12 }, { 16, 2 } };
	size_t speed = sizeof(speeds) / sizeof(speeds[0]) - 1;
	size_t width = sizeof(widths) / sizeof(widths[0]) - 1;
	unsigned int tenths;

	while (speed && speeds[speed].code != at->port_attr.active_speed)
		speed--;
	while (width && widths[width].code != at->port_attr.active_width)
		width--;
	tenths = speeds[speed].tenths * widths[width].lanes;
	return snprintf(buf, size, "%u%s Gb/sec (%uX%s)", tenths / 10, tenths % 10 ? ".5" : "",
			widths[width].lanes, speeds[speed].name);
}

static int show_lid(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "0x%x", at->port_attr.lid);
}

static int show_lid_mask_count(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "%u", at->port_attr.lmc);
}

static int show_sm_lid(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "0x%x", at->port_attr.sm_lid);
}

static int show_sm_sl(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "%u", at->port_attr.sm_sl);
}

static int show_cap_mask(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "0x%08x", at->port_attr.port_cap_flags);
}

static const struct sysfs_file port_files[] = {
	{ "cap_mask", show_cap_mask, 0 },
	{ "lid", show_lid, 0 },
	{ "lid_mask_count", show_lid_mask_count, 0 },
	{ "link_layer", show_link_layer, 0 },
	{ "phys_state", show_phys_state, 0 },
	{ "rate", show_rate, 0 },
	{ "sm_lid", show_sm_lid, 0 },
	{ "sm_sl", show_sm_sl, 0 },
	{ "state", show_state, 0 },
	{ NULL, NULL, 0 },
};

/* --- Tables. --- */

static unsigned int count_gids(const struct sysfs_place *at)
{
	return (unsigned int)at->port_attr.gid_tbl_len;
}

/* NULL: the entry is not used. */
static const struct sim_gid *gid_at(const struct sysfs_place *at)
{
	const struct sim_gid *gid = &at->port->gids[at->index];

	return at->index < at->port->num_gids && sim_gid_is_set(gid) ? gid : NULL;
}

static int show_gid(const struct sysfs_place *at, char *buf, size_t size)
{
	static const struct sim_gid none;
	const struct sim_gid *entry = gid_at(at);
	const uint8_t *raw = entry ? entry->gid.raw : none.gid.raw;
	int len = 0;

	for (unsigned int i = 0; i < 16 && (size_t)len < size; i += 2)
		len += snprintf(buf + len, size - (size_t)len, "%s%02x%02x", i ? ":" : "", raw[i],
				raw[i + 1]);
	return len;
}

static int show_gid_type(const struct sysfs_place *at, char *buf, size_t size)
{
	const struct sim_gid *gid = gid_at(at);

	if (!gid)
		return -1;
	return snprintf(buf, size, "%s", gid->type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
}

/*
 * The interface with the address that the GID stands for; the port's first has the default GIDs.
 * GIDs of InfiniBand stand for ports, and Linux knows no interface of theirs.
 */
static int show_gid_ndev(const struct sysfs_place *at, char *buf, size_t size)
{
	const struct sim_node *node = at->device->node;
	const struct sim_gid *gid = gid_at(at);
	const char *ifname = NULL;
	union ibv_gid of_address;

	if (!gid || sim_wire_of(at->device->rules) == SIM_WIRE_IB)
		return -1;
	for (unsigned int i = 0; node && i < node->num_addresses; i++) {
		const struct sim_address *address = &node->addresses[i];

		if (address->port != at->port)
			continue;
		if (!ifname)
			ifname = address->ifname;
		if (sim_port_gid_of_address(at->port, &address->addr.sa, &of_address) >= 0 &&
		    !memcmp(&of_address, &gid->gid, sizeof(of_address))) {
			ifname = address->ifname;
			break;
		}
	}
	return ifname ? snprintf(buf, size, "%s", ifname) : -1;
}

static unsigned int count_pkeys(const struct sysfs_place *at)
{
	return at->port_attr.pkey_tbl_len;
}

static int show_pkey(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "0x%04x", at->index ? 0 : SIM_PKEY);
}

static const struct sysfs_folder in_gid_attrs[] = {
	{ .name = "ndevs", .count = count_gids, .show = show_gid_ndev },
	{ .name = "types", .count = count_gids, .show = show_gid_type },
	{ .name = NULL },
};

/* --- Counters. --- */

#define NEVER SIM_COUNTERS		/* nothing here could count it */

static int show_counter(const struct sysfs_place *at, char *buf, size_t size)
{
	uint64_t value = at->arg == NEVER ? 0 : sim_counter(at->port, (enum sim_counter)at->arg);

	return snprintf(buf, size, "%" PRIu64, value);
}

/* Packets of groups are counted in those of all. */
static int show_unicast(const struct sysfs_place *at, char *buf, size_t size)
{
	bool sent = at->arg == SIM_SENT_PACKETS;
	uint64_t all = sim_counter(at->port, (enum sim_counter)at->arg);

	return snprintf(buf, size, "%" PRIu64, all - sim_counter(at->port, sent ?
			SIM_SENT_TO_GROUPS : SIM_RECEIVED_FROM_GROUPS));
}

/* How long a reading stays valid, in ms: as long as the kernel says unless it is told. */
static int show_lifespan(const struct sysfs_place *at, char *buf, size_t size)
{
	(void)at;
	return snprintf(buf, size, "10");
}

/* What the performance manager of InfiniBand knows. */
static const struct sysfs_file counters[] = {
	{ "VL15_dropped", show_counter, NEVER },
	{ "excessive_buffer_overrun_errors", show_counter, NEVER },
	{ "link_downed", show_counter, SIM_LINK_DOWNED },
	{ "link_error_recovery", show_counter, NEVER },
	{ "local_link_integrity_errors", show_counter, NEVER },
	{ "multicast_rcv_packets", show_counter, SIM_RECEIVED_FROM_GROUPS },
	{ "multicast_xmit_packets", show_counter, SIM_SENT_TO_GROUPS },
	{ "port_rcv_constraint_errors", show_counter, NEVER },
	{ "port_rcv_data", show_counter, SIM_RECEIVED_WORDS },
	{ "port_rcv_errors", show_counter, NEVER },
	{ "port_rcv_packets", show_counter, SIM_RECEIVED_PACKETS },
	{ "port_rcv_remote_physical_errors", show_counter, NEVER },
	{ "port_rcv_switch_relay_errors", show_counter, NEVER },
	{ "port_xmit_constraint_errors", show_counter, NEVER },
	{ "port_xmit_data", show_counter, SIM_SENT_WORDS },
	{ "port_xmit_discards", show_counter, SIM_NOT_SENT },
	{ "port_xmit_packets", show_counter, SIM_SENT_PACKETS },
	{ "port_xmit_wait", show_counter, NEVER },
	{ "symbol_error", show_counter, NEVER },
	{ "unicast_rcv_packets", show_unicast, SIM_RECEIVED_PACKETS },
	{ "unicast_xmit_packets", show_unicast, SIM_SENT_PACKETS },
	{ NULL, NULL, 0 },
};

/* Those of Linux's RoCE in software. */
static const struct sysfs_file hw_counters[] = {
	{ "ack_deferred", show_counter, NEVER },
	{ "completer_retry_err", show_counter, SIM_RETRIES },
	{ "duplicate_request", show_counter, SIM_DUPLICATE_REQUESTS },
	{ "lifespan", show_lifespan, 0 },
	{ "link_downed", show_counter, SIM_LINK_DOWNED },
	{ "out_of_seq_request", show_counter, SIM_OUT_OF_SEQUENCE },
	{ "rcvd_pkts", show_counter, SIM_RECEIVED_PACKETS },
	{ "rcvd_rnr_err", show_counter, SIM_RNR_RECEIVED },
	{ "rcvd_seq_err", show_counter, SIM_SEQUENCE_NAKS },
	{ "rdma_recvs", show_counter, SIM_RECEIVES },
	{ "rdma_sends", show_counter, SIM_SENDS },
	{ "retry_exceeded_err", show_counter, SIM_RETRY_EXCEEDED },
	{ "retry_rnr_exceeded_err", show_counter, SIM_RNR_RETRY_EXCEEDED },
	{ "send_err", show_counter, SIM_SEND_ERRORS },
	{ "send_rnr_err", show_counter, SIM_RNR_SENT },
	{ "sent_pkts", show_counter, SIM_SENT_PACKETS },
	{ NULL, NULL, 0 },
};

/* iWARP has no management packets, so nobody could ask for them. */
static bool has_counters(const struct sysfs_place *at)
{
	return !nic_is_iwarp(at->device);
}

/* --- Ports. --- */

static bool enter_port(struct sysfs_place *at, const char *name)
{
	char *end;
	unsigned long num = strtoul(name, &end, 10);

	if (*name < '1' || *name > '9' || *end || num > at->device->num_ports)
		return false;
	at->port = &at->device->ports[num - 1];
	nic_port_attr(at->port, &at->port_attr);
	return true;
}

static bool nth_port(const struct sysfs_place *at, unsigned int n,
		     char name[static IBV_SYSFS_NAME_MAX])
{
	(void)snprintf(name, IBV_SYSFS_NAME_MAX, "%u", n + 1);
	return n < at->device->num_ports;
}

static const struct sysfs_folder in_port[] = {
	{ .name = "counters", .files = counters, .exists = has_counters },
	{ .name = "gid_attrs", .folders = in_gid_attrs },
	{ .name = "gids", .count = count_gids, .show = show_gid },
	{ .name = "hw_counters", .files = hw_counters },
	{ .name = "pkeys", .count = count_pkeys, .show = show_pkey },
	{ .name = NULL },
};

const struct sysfs_folder nic_sysfs_ports[] = {
	{ .enter = enter_port, .nth = nth_port, .files = port_files, .folders = in_port },
	{ .name = NULL },
};
