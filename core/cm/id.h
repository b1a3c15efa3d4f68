/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/id.h - what the rest of the core may ask of ids and channels.  The structs
 * and their locking are in id_internal.h, for the rdma_*.c files alone.
 */
#ifndef POLYCM_CORE_ID_H
#define POLYCM_CORE_ID_H

#include "polycm/provider.h"

/* struct polycm_core members (cm/event.c, cm/id.c) */
int polycm_post_event(struct polycm_id *id, const struct polycm_event *event);
int polycm_child_create(struct polycm_id *listener, struct polycm_id **ret_child, void **ret_priv);
void polycm_child_destroy(struct polycm_id *child);

/*
 * "sim sim0 127.0.0.1:40000 > 127.0.0.1:7471" into buf, for log lines; "-" for
 * what is not known yet.  Needs no lock; the id must be live.
 */
void polycm_id_describe(const struct polycm_id *id, char *buf, size_t size);

/* Under the id's lock: rules of its device's transport, else of its provider's own, else NULL. */
const struct polycm_transport *polycm_id_transport(const struct polycm_id *id);

/* Live objects of the process, for tests and for leak reports. */
struct polycm_live_counts {
	size_t ids, channels, events;
};
void polycm_live_counts(struct polycm_live_counts *ret_counts);

#endif
