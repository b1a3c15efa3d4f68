/* SPDX-License-Identifier: BSD-2-Clause */
/* tests/scenarios/scene_internal.h - between the parts of the harness; not for scenarios. */
#ifndef TESTS_SCENARIOS_SCENE_INTERNAL_H
#define TESTS_SCENARIOS_SCENE_INTERNAL_H

#include "scene.h"

#define SCENE_PORTS 10

/* scene_places.c */
void places_begin(uint16_t first_port);
int own_number(uint32_t qp_num);
const char *gid_text(const union ibv_gid *gid);

/* scene.c: what is known of ids, channels and QPs */
const char *id_name(const struct rdma_cm_id *id);
const char *channel_name(const struct rdma_event_channel *events);
bool knows_id(const struct rdma_cm_id *id);
bool knows_qp(uint32_t qp_num);
void know_qp(struct ibv_qp *qp);
void name_child(struct rdma_cm_id *id);
void scene_forget_all(void);

/* scene_trace.c */
void trace_begin(void);
/* Lines of this thread go to a buffer until trace_own_ends(), which returns them (free()). */
void trace_own(void);
char *trace_own_ends(void);
void trace_raw(const char *lines);
void watchdog(unsigned int seconds);

/* scene_events.c */
void unacked_are_acked(void);

/* scene_time.c */
bool virtual_time(void);
/* The simulator's link, all of it, from now on.  false: it is no simulator's. */
bool sim_link(double loss, double duplication, unsigned int latency_ms);
bool sim_link_carrier(bool up);
void time_begin(const struct scenario *scenario);
/* Is there an event?  Waits so long for one; 0: no. */
bool ready_within(struct rdma_event_channel *events, unsigned int ms);
/* Before a scenario is begun: until at most one other is seen to compute, some seconds at most. */
void wait_for_calm(void);
/* How long rest() waits for more. */
unsigned int rest_ms(void);
/* How long to wait for an event that has to come. */
unsigned int patience_ms(void);

/* scene_peer.c */
void peers_end(void);

/* scene_process.c */
/*
 * 0: this is the new process, what it prints goes to FOLDER/NAME.txt and
 * FOLDER/NAME.err.  Where that cannot be, whoever it is ends with status 99.
 */
pid_t start_process(const char *folder, const char *name);

#endif
