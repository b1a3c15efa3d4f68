/* SPDX-License-Identifier: BSD-2-Clause */
/* shm/sweep.h - removing what fabrics without processes left beside our folder. */
#ifndef SIM_SWEEP_H
#define SIM_SWEEP_H

struct sim_folder;

void sim_sweep(const struct sim_folder *own);

#endif
