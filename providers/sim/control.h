/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.h - shared by the control*.c files, which implement <polycm/sim.h>.  Calls
 * return 0 or a negative errno, and log at level error what the test did wrong.
 *
 * A call that changes the fabric takes the setup lock, then the engine's.
 */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include "sim_ops.h"
#include "providers/soft/fabric/fabric.h"
#include "handles.h"

/* Log the error "CALL: WHAT: WHY"; what may be "".  Returns -EINVAL. */
int control_refuse(const char *call, const char *what, const char *why);
/* The argument of that name is NULL. */
int control_null(const char *call, const char *argument);

/* Take and release both locks, for a change of the fabric. */
void control_begin(void);
void control_end(void);
/* Locks held.  -EINVAL: there is no fabric that a test made. */
int control_needs_own_fabric(const char *call);
/* Engine lock held.  -EINVAL: there is no fabric at all. */
int control_needs_fabric(const char *call);

/*
 * Engine lock held.  The number, node or device of a handle.  -ENOENT: its fabric was
 * destroyed; -EINVAL: there is no such handle.
 */
int control_number(const char *call, enum sim_handle_kind kind, const void *handle,
		   uint32_t *ret_number);
int control_node(const char *call, const struct polycm_sim_node *handle,
		 struct sim_node **ret_node);
int control_device(const char *call, const struct polycm_sim_device *handle,
		   struct sim_device **ret_device);

/* --- control_nodes.c --- */

int control_node_add(const char *name, const char *kind, const char *address,
		     struct polycm_sim_node **ret_node);
int control_node_add_address(struct polycm_sim_node *node, const char *address);
int control_node_use(struct polycm_sim_node *node);
int control_node_find(const char *name, struct polycm_sim_node **ret_node);
int control_device_add(struct polycm_sim_node *node, const char *kind, const char *address,
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
