/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/nic.h - what the rest of the simulator may ask of the simulated NIC.
 * The NIC's own structs are in nic/objects.h.
 *
 * Engine lock held, unless said otherwise.
 */
#ifndef SIM_NIC_H
#define SIM_NIC_H

#include "polycm/sim.h"
#include "providers/soft/fabric/fabric.h"

/* Remote flush: numbers that the headers of rdma-core 44 lack. */
enum {
	SIM_ACCESS_FLUSH_GLOBAL = 1 << 8,	/* IBV_ACCESS_*: of regions and QPs */
	SIM_ACCESS_FLUSH_PERSISTENT = 1 << 9,
	SIM_ACCESS_FLUSH = SIM_ACCESS_FLUSH_GLOBAL | SIM_ACCESS_FLUSH_PERSISTENT,
	SIM_WR_FLUSH = 14,			/* enum ibv_wr_opcode */
	SIM_WC_FLUSH = 8,			/* enum ibv_wc_opcode */
	SIM_QP_EX_WITH_FLUSH = 1 << 11,
	SIM_FLUSH_GLOBAL = 1 << 0,		/* enum ibv_placement_type */
	SIM_FLUSH_PERSISTENT = 1 << 1,
	SIM_FLUSH_RANGE = 0,			/* enum ibv_selectivity_level */
	SIM_FLUSH_MR = 1,
};
#define SIM_DEVICE_FLUSH_GLOBAL (1ull << 38)	/* device_cap_flags_ex */
#define SIM_DEVICE_ATOMIC_WRITE (1ull << 40)

struct sim_qp;

/* The ibv_* side of a device (nic/context.c). */
extern const struct polycm_verbs sim_verbs;
/* What devices of a fabric are with this NIC (nic/device.c). */
extern const struct sim_device_model sim_nic_model;

/* Register the handlers of packets and of what happens to devices; drop what is left at the end. */
void sim_nic_start(void);
void sim_nic_stop(void);

/* Post an event to all contexts of the port's device (nic/async.c). */
void sim_nic_port_event(struct sim_port *port, enum ibv_event_type type);
/* The device was removed: its QPs go to error, its contexts get an event. */
void sim_nic_device_removed(struct sim_device *device);

/* What there is to say of the device of that name.  Its health: 0 or a negative errno. */
int sim_nic_inspect(const char *name, const struct polycm_report *to);

/* Is it the descriptor of a completion channel or of a context?  If so, text describes it. */
bool sim_nic_owns_fd(int fd, char *text, size_t size);

/* Live QPs, CQs, MRs, PDs ...; what the NIC does not count is 0. */
void sim_nic_counts(struct polycm_sim_counts *ret_counts);
/* Call fn for each of these, with a text that describes it. */
void sim_nic_each(void (*fn)(void *arg, const char *kind, const void *handle, const char *text),
		  void *arg);

/* --- For the CM engines. --- */

/* The live QP of that number in this process on that device, or NULL. */
struct sim_qp *sim_qp_find(const struct sim_device *device, uint32_t qpn);
enum ibv_qp_state sim_qp_state(const struct sim_qp *qp);

/*
 * iWARP: the device moves the QP.  connect: to RTS, its stream leads to
 * peer_qpn on peer.  error: the stream has ended, flush.  The callback `closed' is
 * called once for the owner (NULL: there is none), when the program ends the stream
 * by moving the QP to SQD or ERR or destroying it, or when the NIC breaks it (a
 * protocol or access error).
 */
int sim_qp_stream_connect(struct sim_qp *qp, struct sim_port *peer, uint32_t peer_qpn,
			  uint8_t responder_resources, uint8_t initiator_depth);
void sim_qp_stream_error(struct sim_qp *qp);
/* Both may be NULL.  connecting(): is the stream being set up?  Destroying the QP waits for that. */
void sim_qp_stream_set_callbacks(void (*closed)(struct sim_id *owner, bool by_program),
				 bool (*connecting)(const struct sim_id *owner));
void sim_qp_stream_set_owner(struct sim_qp *qp, struct sim_id *owner);
struct sim_id *sim_qp_stream_owner(const struct sim_qp *qp);

#endif
