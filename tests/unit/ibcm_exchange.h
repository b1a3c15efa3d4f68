/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibcm_exchange.h - every message that the two ends of a connection exchange,
 * recorded.  Communication ids are the same in each world that is opened
 * afresh, so that a message fits the ids of any scene of ibcm_scene.h.
 */
#ifndef TESTS_IBCM_EXCHANGE_H
#define TESTS_IBCM_EXCHANGE_H

#include "ibcm_world.h"

#define EXCHANGE_MAX 16u

struct exchanged {
	const char *name;	/* "req", "mra_rep", ... */
	bool to_server;
	struct cm_msg msg;
};

/* Opens and closes worlds of its own.  Returns how many there are. */
unsigned int record_exchange(struct exchanged messages[EXCHANGE_MAX]);

#endif
