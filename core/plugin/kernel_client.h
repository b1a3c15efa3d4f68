/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/kernel_client.h - the client of the kernel's RDMA CM (core/kernel), for lower
 * rooms: they complete the operations of providers over it, and set its descriptors.
 */
#ifndef POLYCM_CORE_KERNEL_CLIENT_H
#define POLYCM_CORE_KERNEL_CLIENT_H

#include "polycm/kernel.h"

extern const struct polycm_kernel polycm_kernel_table;
/* Its operations, complete; init() is that of a provider which has none of its own. */
extern const struct polycm_ops polycm_kernel_ops;
/* Bytes of its areas of an id and a channel. */
extern const uint32_t polycm_kernel_id_size, polycm_kernel_channel_size;

/*
 * From now on commands of this channel (its area) go to the descriptor in *fd, which the
 * program may change, as with librdmacm.
 */
void polycm_kernel_channel_follow(void *chan, const int *fd);

#endif
