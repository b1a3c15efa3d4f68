/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explore.h - faults that a seed decides (POLYCM_SIM_EXPLORE), and the list of
 * those that happened, from which a run can be repeated with some of them.
 *
 * A fault is a numbered decision: "the 3rd REP from server, on the process's
 * 1st fabric, is lost".  Decisions have a generator of their own, so that the
 * rest of the run is the same whether they are made here or given by the
 * `explore' group of a scenario file.
 *
 * Engine lock held, unless said otherwise.
 */
#ifndef SIM_EXPLORE_H
#define SIM_EXPLORE_H

#include "providers/common/scenario_read.h"
#include "providers/soft/faults/fault.h"

/* No lock.  Open the file of POLYCM_SIM_EXPLORE, if set: the seed chooses faults then.  Or -errno. */
int sim_explore_open(uint64_t seed);
/* Read the scenario file's group.  It applies only in the file of POLYCM_SIM_SCENARIO. */
int sim_explore_read(const struct scenario *scenario, const config_setting_t *group);
/* Look at each message, as where faults are chosen or given, though none is. */
void sim_explore_attend(void);
/* The same file's programs: do faults that last end before the last programs begin? */
int sim_explore_check_pause(const struct scenario *scenario, const config_setting_t *programs);
/* true: the file of POLYCM_SIM_SCENARIO is read next; false: other files. */
extern bool sim_explore_listening;
/* No lock.  The seed for a fabric that a test makes; it differs in each explored run. */
uint64_t sim_explore_seed(uint64_t seed);
/* The process has a new fabric. */
void sim_explore_fabric(void);

#endif
