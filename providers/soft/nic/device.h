/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/device.h - attributes of devices, ports and addresses (device.c, sysfs.c). */
#ifndef SIM_NIC_DEVICE_H
#define SIM_NIC_DEVICE_H

#include "objects.h"

void nic_port_attr(const struct sim_port *port, struct ibv_port_attr *ret_attr);
/* The port of that number, or NULL. */
struct sim_port *nic_port(struct sim_device *device, uint32_t num);
/* Where an address vector leads: 0 and the port (NULL: no port has the address), or EINVAL. */
int nic_resolve_ah(struct sim_device *device, const struct ibv_ah_attr *attr,
		   struct sim_port **ret_peer);

#endif
