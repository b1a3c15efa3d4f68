/* SPDX-License-Identifier: BSD-2-Clause */
/* sim_iwarp.h - a listener and a client with their queue pairs, on two iWARP nodes. */
#ifndef TESTS_UNIT_SIM_IWARP_H
#define TESTS_UNIT_SIM_IWARP_H

#include "sim_world.h"

struct pair {
	struct polycm_id *listener, *active, *child;
	struct ibv_qp *client_qp, *server_qp;
};

/* The client up to ROUTE_RESOLVED. */
void iwarp_open(struct pair *p);
/* With rules of the test's own. */
void iwarp_open_as(struct pair *p, const struct polycm_transport *rules);
/* Destroys what is left; nothing may remain. */
void iwarp_close(struct pair *p);

/* Connect with 5 bytes, take the request. */
void iwarp_request(struct pair *p);
/* Up to both ESTABLISHED, taken. */
void iwarp_establish(struct pair *p);
int iwarp_reject(struct pair *p, const void *data, uint8_t len);
int iwarp_disconnect(struct polycm_id *id);
/* The event carries so much of world_data, exactly. */
void iwarp_check_data(const struct polycm_event *event, size_t len);

#endif
