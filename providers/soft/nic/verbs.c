/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/verbs.c - the ibv_* side of a simulated device.  What is missing here
 * (ECE, XRC) answers EOPNOTSUPP.
 */
#include "config.h"

#include "context.h"
#include "cq.h"
#include "device.h"
#include "mcast.h"
#include "mr.h"
#include "pd.h"
#include "qp.h"
#include "rq.h"

const struct polycm_verbs sim_verbs = {
	.size = sizeof(sim_verbs),
	.open_device = sim_open_device,
	.close_device = sim_close_device,
	.get_async_event = sim_get_async_event,
	.ack_async_event = sim_ack_async_event,
	.query_device = sim_query_device,
	.query_port = sim_query_port,
	.query_gid = sim_query_gid,
	.query_gid_ex = sim_query_gid_ex,
	.query_gid_table = sim_query_gid_table,
	.query_pkey = sim_query_pkey,
	.get_pkey_index = sim_get_pkey_index,
	.read_sysfs_file = sim_read_sysfs_file,
	.alloc_pd = sim_alloc_pd,
	.dealloc_pd = sim_dealloc_pd,
	.reg_mr = sim_reg_mr,
	.rereg_mr = sim_rereg_mr,
	.dereg_mr = sim_dereg_mr,
	.create_comp_channel = sim_create_comp_channel,
	.destroy_comp_channel = sim_destroy_comp_channel,
	.create_cq = sim_create_cq,
	.resize_cq = sim_resize_cq,
	.destroy_cq = sim_destroy_cq,
	.get_cq_event = sim_get_cq_event,
	.ack_cq_events = sim_ack_cq_events,
	.create_srq = sim_create_srq,
	.modify_srq = sim_modify_srq,
	.query_srq = sim_query_srq,
	.destroy_srq = sim_destroy_srq,
	.create_qp = sim_create_qp,
	.qp_to_qp_ex = sim_qp_to_qp_ex,
	.query_qp = sim_query_qp,
	.modify_qp = sim_modify_qp,
	.destroy_qp = sim_destroy_qp,
	.create_ah = sim_create_ah,
	.destroy_ah = sim_destroy_ah,
	.attach_mcast = sim_attach_mcast,
	.detach_mcast = sim_detach_mcast,
};
