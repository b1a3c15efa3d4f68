/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/carry_in.c - packets from a carrier. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <utlist.h>

#include "carry_internal.h"
#include "route.h"

#define LEAST_WINDOW 4u
#define BEFORE_FOR SIM_MS(50)		/* without a packet: then what is missing does not come */
#define BUCKETS 256u

struct ofi_held {
	size_t len;
	uint64_t bytes[];		/* aligned */
};

static struct ofi_carry *by_token[BUCKETS];
static unsigned int num_tokens;		/* peers that may send to us */
static bool token_logged;

/* The buffers are shared by all that may send. */
static void grant(struct ofi_carry *c)
{
	uint64_t share = OFI_CARRIER_BUFFERS / (num_tokens ? num_tokens : 1);
	uint64_t granted = c->expected - 1 + (share < LEAST_WINDOW ? LEAST_WINDOW : share);

	if (granted > c->granted)
		c->granted = granted;
}

/* It must hear of a window before it has used up the one that it knows. */
void ofi_carry_tell_window(struct ofi_carry *c)
{
	if (c->coming && c->granted > c->told && c->granted - c->told >= c->told + 1 - c->expected)
		(void)ofi_carry_say(c, OFI_CARRIER_WINDOW, 0);
}

static void forget_held(struct ofi_carry *c)
{
	for (unsigned int i = 0; i < OFI_CARRIER_BUFFERS; i++) {
		free(c->held[i]);
		c->held[i] = NULL;
	}
}

/* What waited on the stream for packets of the carrier. */
void ofi_carry_go_on(struct ofi_carry *c)
{
	struct ofi_queue later = c->later;
	struct ofi_waiting *first;
	struct ofi_peer *peer = c->peer;

	c->before = 0;
	c->later = (struct ofi_queue){ 0 };
	sim_timer_disarm(&c->give_up);
	while ((first = ofi_queue_take(&later))) {
		/* Nonsense ends no session from here. */
		(void)ofi_route_frame(peer, OFI_PACKET, first->bytes, first->len);
		ofi_waiting_free(first);
	}
}

static bool deliver(struct ofi_carry *c, uint8_t *bytes, size_t len)
{
	size_t skip = OFI_CARRIED_HEADER - OFI_PACKET_HEADER;

	c->expected++;
	grant(c);
	return ofi_route_frame(c->peer, OFI_PACKET, ofi_carried_packet(bytes), len - skip);
}

/* Deliver what waited for the packet before it. */
bool ofi_carry_deliver_held(struct ofi_carry *c)
{
	struct ofi_held *held;
	bool good = true;

	while (good && c->coming && (held = c->held[c->expected % OFI_CARRIER_BUFFERS])) {
		c->held[c->expected % OFI_CARRIER_BUFFERS] = NULL;
		good = deliver(c, (uint8_t *)held->bytes, held->len);
		free(held);
	}
	if (c->before && c->expected > c->before)
		ofi_carry_go_on(c);
	return good;
}

static void hold(struct ofi_carry *c, uint64_t sequence, const uint8_t *bytes, size_t len)
{
	struct ofi_held **place = &c->held[sequence % OFI_CARRIER_BUFFERS];

	if (*place)
		return;
	*place = malloc(sizeof(**place) + len);
	if (!*place)
		return;		/* never delivered, nor what is behind it: STUCK_FOR */
	(*place)->len = len;
	memcpy((*place)->bytes, bytes, len);
}

/* Tokens are random. */
static struct ofi_carry *find_token(uint64_t token)
{
	struct ofi_carry *c = by_token[token % BUCKETS];

	while (c && c->token != token)
		c = c->next_token;
	return c;
}

void ofi_carry_received(uint8_t *bytes, size_t len)
{
	struct ofi_carried carried;
	struct ofi_carry *c = NULL;

	if (!ofi_carried_decode(bytes, len, &carried))
		c = find_token(carried.token);
	if (!c) {
		if (!token_logged)
			sim_core->log(POLYCM_LOG_DEBUG, NULL, "carrier %s: a message that nobody was "
				      "allowed to send is dropped", ofi_own.name.provider);
		token_logged = true;
		return;
	}
	if (!carried.sequence) {
		(void)ofi_carry_say(c, OFI_CARRIER_HEARD, 0);
		return;
	}
	ofi_carry_take_window(c, carried.window);
	if (carried.sequence < c->expected || carried.sequence > c->granted)
		return;
	if (carried.sequence != c->expected || !c->coming) {
		hold(c, carried.sequence, bytes, len);
		return;
	}
	if (!deliver(c, bytes, len) || !ofi_carry_deliver_held(c))
		ofi_carry_lose(c, "what it sent makes no sense", true);
}

void ofi_carry_drop_token(struct ofi_carry *c)
{
	if (c->token) {
		LL_DELETE2(by_token[c->token % BUCKETS], c, next_token);
		num_tokens--;
	}
	c->token = 0;
	c->coming = false;
	forget_held(c);
}

void ofi_carry_new_token(struct ofi_carry *c)
{
	uint64_t token;

	ofi_carry_drop_token(c);
	if (getrandom(&token, sizeof(token), 0) != sizeof(token) || !token || find_token(token))
		return;
	c->token = token;
	LL_PREPEND2(by_token[token % BUCKETS], c, next_token);
	num_tokens++;
	c->expected = 1;
	c->granted = 0;
	grant(c);
}

static void wait_on(struct ofi_carry *c)
{
	c->before_from = c->expected;
	sim_timer_arm(&c->give_up, sim_now() + BEFORE_FOR);
}

void ofi_carry_wait_for(struct ofi_carry *c, uint64_t number)
{
	(void)ofi_carry_poll();
	if (c->coming && number >= c->expected) {
		c->before = number;
		wait_on(c);
	}
}

void ofi_carry_missing(struct sim_timer *timer)
{
	struct ofi_carry *c = sim_container(timer, struct ofi_carry, give_up);

	/* This process may not have run for so long, while it came. */
	(void)ofi_carry_poll();
	if (c->before && c->expected > c->before_from)
		wait_on(c);
	else if (c->before)
		ofi_carry_go_on(c);
}
