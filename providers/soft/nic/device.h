/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/device.h - attributes of devices, ports and addresses (device.c, limits.c, sysfs.c). */
#ifndef SIM_NIC_DEVICE_H
#define SIM_NIC_DEVICE_H

#include "objects.h"

#define NIC_SOFTWARE_VENDOR 0xffffffu	/* rxe and siw have no vendor_id of their own */
#define NIC_MELLANOX 0x02c9u			/* vendor_id of mlx4's and mlx5's cards */

/* What a device may have beside POLYCM_SVC_*; bits of device->services. */
#define NIC_SVC_ODP (1u << 28)			/* on-demand paging */
#define NIC_SVC_PLACEMENT (1u << 29)		/* flush and atomic write */
#define NIC_SVC_WINDOWS (1u << 30)		/* memory windows of a type */
#define NIC_SVC_INVALIDATE (1u << 31)		/* operations that invalidate keys */
_Static_assert(POLYCM_SERVICES < NIC_SVC_ODP, "bits of their own");

/* Set device->attr and device->services (limits.c). */
void nic_init_limits(struct sim_device *device);
/* How many completion vectors it has. */
int nic_comp_vectors(const struct sim_device *device);
/*
 * Does ibv_req_notify_cq() notify of completions that were there before and have not been polled?
 * mlx4's and mlx5's cards do (limits.c).
 */
bool nic_tells_of_earlier(const struct sim_device *device);
/* Has it a clock for timestamps?  That clock at a time of the engine's (limits.c). */
bool nic_has_clock(const struct sim_device *device);
uint64_t nic_clock_at(const struct sim_device *device, uint64_t ns);
/* Bytes that it has for ibv_alloc_dm(). */
size_t nic_max_dm_size(const struct sim_device *device);
void nic_init_odp(const struct sim_device *device, struct ibv_device_attr_ex *attr);
void nic_init_clock(const struct sim_device *device, struct ibv_device_attr_ex *attr);
void nic_port_attr(const struct sim_port *port, struct ibv_port_attr *ret_attr);
/* The port of that number, or NULL. */
struct sim_port *nic_port(struct sim_device *device, uint32_t num);
/*
 * Where an address vector leads: 0 and the port (NULL: no port has the address), or the
 * refusal of the call, EINVAL.
 */
int nic_resolve_ah(struct sim_device *device, const char *call, const struct ibv_ah_attr *attr,
		   struct sim_port **ret_peer);

#endif
