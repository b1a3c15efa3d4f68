/* SPDX-License-Identifier: BSD-2-Clause */
/* cm/cq.h - what the library makes for QPs and SRQs on ids: CQs with channels, XRC domains. */
#ifndef POLYCM_CORE_RDMA_CQ_H
#define POLYCM_CORE_RDMA_CQ_H

#include "id_internal.h"

/* Which of the id's CQs one call made. */
struct polycm_cqs_made {
	bool send, recv;
};

/* CQs with completion channels of at least these sizes where the size is not 0 and the id has none. */
int polycm_cqs_create(struct polycm_id *id, uint32_t send_size, uint32_t recv_size,
		      struct polycm_cqs_made *ret_made);
void polycm_cqs_undo(struct polycm_id *id, const struct polycm_cqs_made *made);
/* All CQs and completion channels of the id. */
void polycm_cqs_destroy(struct polycm_id *id);

/*
 * Attributes that served for another id have its CQs, since rdma_create_qp() writes them back:
 * the reason for err, if they are another device's.  cq may be NULL, or destroyed.
 */
int polycm_cq_whose(const struct polycm_id *id, const char *name, const struct ibv_cq *cq, int err);

/* The XRC domain that ids of a device share; it is open as long as the device. */
int polycm_xrcd_get(struct polycm_device *device, struct ibv_xrcd **ret_xrcd);

#endif
