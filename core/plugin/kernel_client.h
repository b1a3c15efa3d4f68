/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/kernel_client.h - the client of the kernel's RDMA CM (core/kernel), as
 * those know it who complete providers over it and open their channels.
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
 * From now on commands of this channel, its area, go to the descriptor that
 * stands in *fd: the program has it and may move it to another number, as it
 * may with librdmacm.
 */
void polycm_kernel_channel_follow(void *chan, const int *fd);

#endif
