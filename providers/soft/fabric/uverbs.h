/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/uverbs.h - the names of devices' nodes in /dev/infiniband, "uverbsN". */
#ifndef SIM_UVERBS_H
#define SIM_UVERBS_H

/* The first N that no device of the host has. */
unsigned int sim_first_uverbs(void);

#endif
