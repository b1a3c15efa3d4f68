/* SPDX-License-Identifier: BSD-2-Clause */
/* base/base.c - the services of the core, for all of the plugin. */
#include "config.h"

#include "base.h"

const struct polycm_core *sim_core;
const struct polycm_clock_services *sim_time;
const struct polycm_verbs_services *sim_verbs_services;

__typeof__(((struct polycm_core *)0)->why) sim_why(void)
{
	return sim_core->why;
}
