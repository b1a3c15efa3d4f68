/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polycm/sim.h - control of the simulator from tests, in one process.
 *
 * A test links with -lpolycm only; the calls go to the "sim" provider, which
 * POLYCM_PROVIDER must select.  All return 0, or -1 with errno:
 *   ENODEV  the sim provider is not selected or not there
 *   EBUSY   the program's ids still use the fabric
 *   EINVAL  an argument that cannot be (POLYCM_LOG=warn tells why); ENOMEM
 *
 * Threads: any; the calls serialise themselves.
 */
#ifndef POLYCM_SIM_H
#define POLYCM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct polycm_sim_node;		/* valid until the fabric is dropped */

/*
 * Replace the process's fabric by a private, empty one with a virtual clock
 * at 0 and this seed.  Needs that no rdma_cm_id, event channel or verbs
 * context of the old one is left.
 */
int polycm_sim_create(uint64_t seed);
/* Drop it; the next call that needs one gets the fabric that the environment asks for. */
int polycm_sim_destroy(void);

/*
 * A node with one device that plays `transport` ("roce", "ib", "iwarp", a
 * vendor's) and has `address` ("10.0.0.1/24", "fd00::1/64").
 */
int polycm_sim_node_add(const char *name, const char *transport, const char *address,
			struct polycm_sim_node **ret_node);
int polycm_sim_node_add_address(struct polycm_sim_node *node, const char *address);
/* Calls without a source address come from this node from now on; the first one added before. */
int polycm_sim_node_use(struct polycm_sim_node *node);

/* Virtual time: read it in ns; move it, with all that happens meanwhile. */
int polycm_sim_now(uint64_t *ret_ns);
int polycm_sim_advance(uint64_t ns);

/* Trace from now on, one JSON object per line; NULL: no more.  Also the errors of open(2). */
int polycm_sim_trace(const char *path);

/*
 * What the program has: all zero after a clean test.  The context and the PD
 * that the library keeps of a device for all ids are not counted.
 */
struct polycm_sim_counts {
	size_t size;	/* of the struct, set by the caller */
	unsigned int ids, contexts, pds, mrs, comp_channels, cqs, srqs, qps, ahs;
};
int polycm_sim_live(struct polycm_sim_counts *counts);

/*
 * For the provider behind these calls: its extension("sim", 1).  The same
 * calls, returning 0 or a negative errno; live counts the library's, too.
 */
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
	int (*live)(struct polycm_sim_counts *counts);
};

#ifdef __cplusplus
}
#endif

#endif /* POLYCM_SIM_H */
