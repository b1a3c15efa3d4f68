/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * carry_world.h - packets on a carrier that is made of memory: it delays, reorders, refuses, and
 * dies.  The test is the peer: what is said on the stream comes here, and what the peer sends it
 * makes itself.
 */
#ifndef TESTS_UNIT_CARRY_WORLD_H
#define TESTS_UNIT_CARRY_WORLD_H

#include "providers/ofi/carry_internal.h"
#include "tests/cmocka_all.h"

#define WINDOW OFI_CARRIER_BUFFERS
#define THEIR_TOKEN 0x7172737475767778u
#define MANY 256u

extern struct ofi_carrier_news said[MANY];	/* on the stream */
extern unsigned int num_said;
extern uint64_t delivered[MANY];		/* numbers of packets, in order */
extern unsigned int num_delivered;
extern uint64_t streamed[MANY];			/* likewise: sent on the stream */
extern unsigned int num_streamed;
extern bool nonsense;				/* the next one that is delivered */
extern bool stands_still;			/* the peer, says its stream */
extern struct ofi_peer peer;

struct memory_carrier {
	struct ofi_carried sent[MANY];
	unsigned int num_sent, num_peers;
	int refuse;			/* with that */
	struct {
		uint8_t bytes[OFI_CARRIER_MESSAGE];
		size_t len;
	} arrived[MANY];		/* to be received */
	unsigned int num_arrived;
	int fails;			/* a message to the peer */
	bool dies;
	bool closed;
};
extern struct memory_carrier memory;
extern const struct ofi_carrier_ops memory_ops;
extern const struct ofi_carrier_name name;
extern uint64_t our_token;			/* of the peer for us */
extern uint64_t last_number;			/* of what was sent */

void say(enum ofi_carrier_what what, uint16_t window, uint64_t number);
/* Something with this number arrives; when progress is made. */
void arrive(uint64_t token, uint64_t sequence, uint64_t number, uint16_t window);
/* The packet of a sequence number has the same number. */
void packet(uint64_t sequence);
void assert_delivered(unsigned int num);
bool send_type(enum sim_packet_type type);
bool send_one(void);
void open_memory(void);
const struct ofi_carrier_news *last_said(void);
/* We are ready. */
void expect_ready(void);
/* Both directions are on the carrier, with a window for us. */
void change(uint16_t window);
void pass(uint64_t ns);
int set_up(void **state);
int tear_down(void **state);

#endif
