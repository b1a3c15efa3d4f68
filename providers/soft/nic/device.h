/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/device.h - what a device tells about itself (device.c, sysfs.c). */
#ifndef SIM_NIC_DEVICE_H
#define SIM_NIC_DEVICE_H

#include "objects.h"

int sim_query_device(struct ibv_context *context, struct ibv_device_attr *attr);
int sim_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr, size_t size);
int sim_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
int sim_query_port_ex(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		      size_t size);
int sim_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);
int sim_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		     struct ibv_gid_entry *entry, uint32_t flags);
ssize_t sim_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			    size_t max_entries, uint32_t flags);
int sim_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey);
int sim_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey);
int sim_read_sysfs_file(struct ibv_device *device, const char *file, char *buf, size_t size);
int sim_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
void nic_port_attr(const struct sim_port *port, struct ibv_port_attr *ret_attr);
/* The port of that number, or NULL. */
struct sim_port *nic_port(struct sim_device *device, uint32_t num);
/* Where an address vector leads: 0 and the port (NULL: to nobody), or EINVAL. */
int nic_resolve_ah(struct sim_device *device, const struct ibv_ah_attr *attr,
		   struct sim_port **ret_peer);

#endif
