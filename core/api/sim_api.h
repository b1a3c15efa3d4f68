/* SPDX-License-Identifier: BSD-2-Clause */
/* api/sim_api.h - between the files sim_*.c: the calls of <polycm/sim.h>. */
#ifndef POLYCM_CORE_SIM_API_H
#define POLYCM_CORE_SIM_API_H

#include "sim_ops.h"

struct polycm_module;

/* The provider's table, members that it lacks NULL; NULL: no simulator is selected. */
const struct polycm_sim_ops *polycm_sim_table(void);
/* Whose it is. */
const struct polycm_module *polycm_sim_owner(void);
/* For a mistake of the test: logs it, sets errno and returns -1. */
int polycm_sim_refuse(const char *call, int r, const char *why);
/* errno and -1 for a negative errno. */
int polycm_sim_finish(int r);

/* A call of the table; arguments with parentheses. */
#define POLYCM_SIM_PASS(call, arguments)                                                           \
	polycm_sim_finish(!polycm_sim_table() ? -ENODEV :                                          \
			  !polycm_sim_table()->call ? -EOPNOTSUPP :                                \
			  polycm_sim_table()->call arguments)
#define POLYCM_SIM_FORWARD(call, ...) POLYCM_SIM_PASS(call, (__VA_ARGS__))

#endif
