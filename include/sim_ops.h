/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_ops.h - what the provider "sim" does for the calls of <polycm/sim.h>: the
 * table that its extension("sim", 1) returns.  For libpolycm and that provider
 * alone; not installed.
 *
 * Each member is the call of its name, but returns 0 or a negative errno.
 */
#ifndef SIM_OPS_H
#define SIM_OPS_H

#include "polycm/sim.h"

struct polycm_sim_ops {
	uint32_t size;
	int (*create)(uint64_t seed);
	int (*destroy)(void);
	int (*node_add)(const char *name, const char *transport, const char *address,
			struct polycm_sim_node **ret_node);
	int (*node_add_address)(struct polycm_sim_node *node, const char *address);
	int (*node_use)(struct polycm_sim_node *node);
	int (*now)(uint64_t *ret_ns);
	int (*advance)(uint64_t ns);
	int (*trace)(const char *path);
	/* Without what the core counts: ids, channels and events. */
	int (*live)(struct polycm_sim_counts *counts);
	int (*load)(const char *path);
	int (*node_find)(const char *name, struct polycm_sim_node **ret_node);
	int (*device_add)(struct polycm_sim_node *node, const char *transport, const char *address,
			  const struct polycm_sim_limits *limits,
			  struct polycm_sim_device **ret_device);
	int (*device_add_address)(struct polycm_sim_device *device, const char *address);
	int (*device_find)(struct polycm_sim_node *node, const char *name,
			   struct polycm_sim_device **ret_device);
	int (*device_limit)(struct polycm_sim_device *device,
			    const struct polycm_sim_limits *limits);
	int (*link_set)(struct polycm_sim_node *a, struct polycm_sim_node *b,
			const struct polycm_sim_link *link);
	/* run, and run_until_event: until done(arg), which may be NULL. */
	int (*run)(uint64_t limit_ns, bool (*done)(void *arg), void *arg);
	int (*fault_add)(const struct polycm_sim_fault_rule *rule,
			 struct polycm_sim_fault **ret_fault);
	int (*fault_remove)(struct polycm_sim_fault *fault);
	int (*fault_hits)(struct polycm_sim_fault *fault, unsigned int *ret_hits);
	int (*pcap)(const char *path);
	/* Each object of ibv_*, under the provider's locks. */
	void (*left)(void (*add)(void *arg, const char *kind, const void *handle, const char *text),
		     void *arg);
	int (*reset)(void);	/* ids are ended before */
};

#endif
