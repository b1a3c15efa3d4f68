/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * effects/effects.h - what scenario files (polycm-scenario(5)) do to packets: their `links' and
 * `faults'.  An error in a file is one log line.  Engine lock held.
 */
#ifndef SIM_EFFECTS_H
#define SIM_EFFECTS_H

#include "providers/common/scenario_read.h"

/* One group of `links', of `faults'; their nodes are there.  -EINVAL; -ENOMEM. */
int sim_effects_link(const struct scenario *scenario, const config_setting_t *group, void *unused);
int sim_effects_fault(const struct scenario *scenario, const config_setting_t *group, void *unused);

/* A file that has only those.  -EINVAL; errors of open(2); -ENOMEM. */
int sim_effects_read(const char *path);

#endif
