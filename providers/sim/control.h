/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.h - between the control*.c files, which are the table behind
 * <polycm/sim.h>: 0 or a negative errno, with an error in the log that says
 * why, since such a mistake is the test's own.
 *
 * A call that changes the fabric takes the setup lock, then the engine's.
 */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include "sim_ops.h"
#include "providers/soft/fabric/fabric.h"

/* The error "CALL: WHAT: WHY"; what may be "".  Returns -EINVAL. */
int control_refuse(const char *call, const char *what, const char *why);
/* The argument of that name is NULL. */
int control_null(const char *call, const char *argument);

/*
 * Take both locks for a change of a test's fabric.  -EINVAL, with nothing taken:
 * there is none that is ours alone.
 */
int control_begin(const char *call);
/* Lock held: -EINVAL, and the log, where there is no fabric at all. */
int control_needs_fabric(const char *call);
void control_end(void);

/* Engine lock held.  -ENOENT: the fabric of the handle is gone; -EINVAL: it is none. */
int control_node(const char *call, const struct polycm_sim_node *handle,
		 struct sim_node **ret_node);
int control_device(const char *call, const struct polycm_sim_device *handle,
		   struct sim_device **ret_device);

/* --- control_nodes.c --- */

int control_node_add(const char *name, const char *transport, const char *address,
		     struct polycm_sim_node **ret_node);
int control_node_add_address(struct polycm_sim_node *node, const char *address);
int control_node_use(struct polycm_sim_node *node);
int control_node_find(const char *name, struct polycm_sim_node **ret_node);
int control_device_add(struct polycm_sim_node *node, const char *transport, const char *address,
		       const struct polycm_sim_limits *limits,
		       struct polycm_sim_device **ret_device);
int control_device_add_address(struct polycm_sim_device *device, const char *address);
int control_device_find(struct polycm_sim_node *node, const char *name,
			struct polycm_sim_device **ret_device);
int control_device_limit(struct polycm_sim_device *device, const struct polycm_sim_limits *limits);
int control_link_set(struct polycm_sim_node *a, struct polycm_sim_node *b,
		     const struct polycm_sim_link *link);

/* --- control_faults.c --- */

int control_fault_add(const struct polycm_sim_fault_rule *rule,
		      struct polycm_sim_fault **ret_fault);
int control_fault_remove(struct polycm_sim_fault *fault);
int control_fault_hits(struct polycm_sim_fault *fault, unsigned int *ret_hits);

#endif
