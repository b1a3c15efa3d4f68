/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/carry.h - packets of RC and UD on a carrier (carrier.h) in place of the stream: when they
 * change from one to the other, in which order they are delivered, how many may be under way.
 *
 * Engine lock held for all.
 */
#ifndef OFI_CARRY_H
#define OFI_CARRY_H

#include "carrier.h"
#include "peer.h"

/* --- The process has a carrier, or has none any more. --- */

extern const struct ofi_carrier_user ofi_carry_user;
void ofi_carry_opened(const struct ofi_carrier_ops *ops, struct ofi_carrier *carrier,
		      const struct ofi_carrier_name *name);
/* Close it, if there is one; what waits goes over the stream. */
void ofi_carry_closed(void);
/* In the child of a fork(): it is the parent's. */
void ofi_carry_forget(void);

/* Deliver what came, send what waits.  True: there was something. */
bool ofi_carry_poll(void);
/*
 * May the thread that waits for the carrier sleep now?  Then for so many ms at the most, and on
 * which descriptor, or -1.
 */
bool ofi_carry_may_sleep(int *ret_fd, int *ret_ms);
/* The process ends: send what waits, as far as it goes in a short time. */
void ofi_carry_flush(void);

/* --- A peer. --- */

/* What its HELLO offers.  Nothing of it begins before there is a session. */
void ofi_carry_meet(struct ofi_peer *peer, const struct ofi_hello *hello);
/* It has a session, or another one; it has lost its session, and what waits waits for the next one. */
void ofi_carry_start(struct ofi_peer *peer);
void ofi_carry_stop(struct ofi_peer *peer);
/* Does what is sent to it go over the carrier? */
bool ofi_carry_is_on(const struct ofi_peer *peer);
/* It is about to be freed. */
void ofi_carry_drop(struct ofi_peer *peer);

/*
 * Send the body of a PACKET frame to a peer that has a session.  False: that takes it, now or
 * always.  *ret: 0, or -ENOMEM: it is lost.
 */
bool ofi_carry_send(struct ofi_peer *peer, enum sim_packet_type type, const struct iovec *parts,
		    unsigned int num, size_t len, int *ret);
/* A CARRIER frame; false: it is nonsense. */
bool ofi_carry_frame(struct ofi_peer *peer, const uint8_t *body, size_t len);
/* What is on the stream waits for that. */
bool ofi_carry_waits(const struct ofi_peer *peer);
/* True: the body of a PACKET frame waits for what is on the carrier before it. */
bool ofi_carry_holds(struct ofi_peer *peer, const uint8_t *body, size_t len);

#endif
