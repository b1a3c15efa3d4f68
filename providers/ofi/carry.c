/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/carry.c - see carry.h.
 *
 * Each direction of a pair of processes has its own state.  It begins on the stream, and changes to
 * the carrier when a probe has shown that this works.  Packets there have sequence numbers: the
 * receiver holds back what comes too early, that is, before CHANGED or before another packet.
 * What is on the stream (messages of the CM) waits for the packets that were sent before it.
 * When the carrier fails, what is under way there is lost, as on a wire, and RC repeats it.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "carry_internal.h"
#include "load.h"
#include "route.h"
#include "session.h"

#define PROBE_FOR SIM_MS(10000)
#define FLUSH_FOR SIM_MS(200)
#define DRAIN_TURNS 1000u
#define MAX_LATER ((size_t)1 << 20)	/* bytes on the stream that wait for what is on the carrier */

struct ofi_carry *ofi_carries;
struct ofi_own_carrier ofi_own;

static const char *host_of(const struct ofi_carry *c)
{
	return c->peer->host->node->name;
}

static const char *carrier_of(const struct ofi_carry *c)
{
	return ofi_own.ops ? ofi_own.name.provider : c->providers[0];
}

/* False: no memory. */
bool ofi_carry_say(struct ofi_carry *c, enum ofi_carrier_what what, uint64_t number)
{
	struct ofi_carrier_news news = {
		.what = (uint8_t)what,
		.window = (uint16_t)c->granted,
		.number = number,
	};
	uint8_t bytes[OFI_CARRIER_MAX];
	size_t len;

	if (what == OFI_CARRIER_READY)
		news.name = ofi_own.name;
	c->told = c->granted;
	len = ofi_carrier_encode(&news, bytes);
	return c->peer->session && !ofi_session_send(c->peer->session, OFI_CARRIER,
						     &(struct iovec){ bytes, len }, 1, len);
}

void ofi_carry_lose(struct ofi_carry *c, const char *why, bool tell)
{
	if (c->failed)
		return;
	c->failed = true;
	if (!why)
		;
	else if (c->on || c->coming)
		sim_core->log(POLYCM_LOG_WARN, NULL, "host %s, process %u: carrier %s fails (%s): its "
			      "data goes over TCP", host_of(c), c->peer->slot, carrier_of(c), why);
	else
		sim_core->log(POLYCM_LOG_INFO, NULL, "host %s, process %u: carrier %s is not used: %s",
			      host_of(c), c->peer->slot, carrier_of(c), why);
	if (tell)
		(void)ofi_carry_say(c, OFI_CARRIER_LOST, why ? 1 : 0);
	ofi_carry_drop_token(c);
	ofi_carry_remove_to(c);
	sim_timer_disarm(&c->timer);
	ofi_carry_to_stream(c);
	if (c->before)
		ofi_carry_go_on(c);
}

/* ------------------------------------------------------------------------
 * What both say on the stream.
 */

static void say_ready(struct ofi_carry *c)
{
	ofi_carry_new_token(c);
	if (c->token && !ofi_carry_say(c, OFI_CARRIER_READY, c->token))
		ofi_carry_drop_token(c);
}

static bool has_provider(const struct ofi_carry *c, const char *provider)
{
	for (unsigned int i = 0; i < c->num_providers; i++)
		if (!strcmp(c->providers[i], provider))
			return true;
	return false;
}

/* Both are ready? */
static void connect_to(struct ofi_carry *c)
{
	int r;

	if (!ofi_own.ops || !c->token || !c->their_token || c->to)
		return;
	if (strcmp(c->name.provider, ofi_own.name.provider) ||
	    strcmp(c->name.protocol, ofi_own.name.protocol) || c->name.format != ofi_own.name.format) {
		ofi_carry_lose(c, "it speaks another protocol there", true);
		return;
	}
	r = ofi_own.ops->peer_add(ofi_own.carrier, &c->name, c, &c->to);
	if (r < 0) {
		c->to = NULL;
		ofi_carry_lose(c, strerror(-r), true);
		return;
	}
	c->probe_until = sim_now() + PROBE_FOR;
	ofi_carry_probe(c);
}

static void take_ready(struct ofi_carry *c, const struct ofi_carrier_news *news)
{
	bool again = c->their_token;

	ofi_carry_remove_to(c);
	ofi_carry_to_stream(c);
	c->name = news->name;
	c->their_token = news->number;
	c->sent = c->before_said = 0;
	c->limit = news->window;
	/* It opened another endpoint, which has not had our READY yet. */
	if (again && c->token)
		say_ready(c);
	connect_to(c);
}

static void take_heard(struct ofi_carry *c)
{
	if (!c->to || c->on || !ofi_carry_say(c, OFI_CARRIER_CHANGED, 0))
		return;
	sim_timer_disarm(&c->timer);
	c->probe_until = 0;
	c->on = true;
	sim_core->log(POLYCM_LOG_INFO, NULL, "host %s, process %u: data goes over libfabric's %s (%s)",
		      host_of(c), c->peer->slot, ofi_own.name.provider, ofi_own.name.protocol);
}

bool ofi_carry_frame(struct ofi_peer *peer, const uint8_t *body, size_t len)
{
	struct ofi_carry *c = peer->carry;
	struct ofi_carrier_news news;

	if (ofi_carrier_decode(body, len, &news) < 0)
		return false;
	if (!c || c->failed)
		return true;
	switch (news.what) {
	case OFI_CARRIER_READY:
		if (news.number)
			take_ready(c, &news);
		break;
	case OFI_CARRIER_HEARD:
		ofi_carry_take_window(c, news.window);
		take_heard(c);
		break;
	case OFI_CARRIER_CHANGED:
		c->coming = c->token;
		if (!ofi_carry_deliver_held(c))
			ofi_carry_lose(c, "what it sent makes no sense", true);
		break;
	case OFI_CARRIER_WINDOW:
		ofi_carry_take_window(c, news.window);
		ofi_carry_push(c);
		break;
	case OFI_CARRIER_BEFORE:
		ofi_carry_wait_for(c, news.number);
		break;
	default:
		ofi_carry_lose(c, news.number ? "the peer says so" : NULL, false);
	}
	return true;
}

bool ofi_carry_waits(const struct ofi_peer *peer)
{
	return peer->carry && peer->carry->before;
}

bool ofi_carry_holds(struct ofi_peer *peer, const uint8_t *body, size_t len)
{
	struct ofi_carry *c = peer->carry;
	struct ofi_packet packet;

	/* One without memory for it comes early, and so do all if they are too many. */
	if (c && c->before && c->later.bytes >= MAX_LATER)
		ofi_carry_go_on(c);
	return c && c->before && !ofi_packet_decode(body, len, &packet) &&
	       !ofi_queue_put(&c->later, packet.type,
			      &(struct iovec){ (void *)(uintptr_t)body, len }, 1, len);
}

/* ------------------------------------------------------------------------
 * Peers.
 */

static void log_none(const struct ofi_peer *peer)
{
	if (ofi_load_asked())
		sim_core->log(POLYCM_LOG_INFO, NULL, "host %s, process %u: data goes over TCP: it has "
			      "none of this host's POLYCM_OFI_FABRIC", peer->host->node->name,
			      peer->slot);
}

void ofi_carry_meet(struct ofi_peer *peer, const struct ofi_hello *hello)
{
	struct ofi_carry *c = peer->carry;

	if (c)
		return;
	c = calloc(1, sizeof(*c));
	if (!c)
		return;
	c->peer = peer;
	c->num_providers = ofi_load_common(hello, c->providers);
	if (!c->num_providers) {
		log_none(peer);
		free(c);
		return;
	}
	sim_timer_init(&c->timer, ofi_carry_timed);
	sim_timer_init(&c->give_up, ofi_carry_missing);
	DL_APPEND(ofi_carries, c);
	peer->carry = c;
}

static void begin(struct ofi_carry *c)
{
	if (!ofi_own.ops || c->failed || c->token || !c->peer->session)
		return;
	if (!has_provider(c, ofi_own.name.provider)) {
		ofi_carry_lose(c, "the peer has another one", false);
		return;
	}
	say_ready(c);
	connect_to(c);
}

void ofi_carry_start(struct ofi_peer *peer)
{
	struct ofi_carry *c = peer->carry;

	if (!c)
		return;
	if (ofi_own.ops)
		begin(c);
	else
		ofi_load(c->providers, c->num_providers, peer->session->stream->source.fd);
}

/* All that came before the end of the session is delivered. */
static void drain(struct ofi_carry *c)
{
	for (unsigned int i = 0; i < DRAIN_TURNS && ofi_carry_poll(); i++)
		;
	if (c->before)
		ofi_carry_go_on(c);
}

void ofi_carry_stop(struct ofi_peer *peer)
{
	struct ofi_carry *c = peer->carry;

	if (!c)
		return;
	if (c->coming)
		drain(c);
	ofi_carry_drop_token(c);
	ofi_carry_remove_to(c);
	ofi_queue_move(&peer->waiting, &c->waiting);
	ofi_own.num_waiting -= c->num_waiting;
	c->num_waiting = 0;
	c->on = c->failed = false;
	c->before = 0;
	ofi_queue_clear(&c->later);
	sim_timer_disarm(&c->timer);
	sim_timer_disarm(&c->give_up);
}

bool ofi_carry_is_on(const struct ofi_peer *peer)
{
	return peer->carry && peer->carry->on;
}

void ofi_carry_drop(struct ofi_peer *peer)
{
	struct ofi_carry *c = peer->carry;

	if (!c)
		return;
	c->coming = false;
	ofi_carry_stop(peer);
	DL_DELETE(ofi_carries, c);
	peer->carry = NULL;
	free(c);
}

/* ------------------------------------------------------------------------
 * The carrier.
 */

static void failed(void *owner, int error)
{
	if (owner)
		ofi_carry_lose(owner, strerror(-error), true);
	else
		ofi_own.broken = true;
}

const struct ofi_carrier_user ofi_carry_user = { ofi_carry_received, failed };

void ofi_carry_opened(const struct ofi_carrier_ops *ops, struct ofi_carrier *carrier,
		      const struct ofi_carrier_name *name)
{
	struct ofi_carry *c;

	ofi_own.ops = ops;
	ofi_own.carrier = carrier;
	ofi_own.name = *name;
	ofi_own.broken = false;
	DL_FOREACH(ofi_carries, c)
		begin(c);
}

void ofi_carry_closed(void)
{
	struct ofi_carry *c;

	if (!ofi_own.ops)
		return;
	DL_FOREACH(ofi_carries, c)
		ofi_carry_lose(c, ofi_own.broken ? "it works no more" : NULL, true);
	ofi_own.ops->close(ofi_own.carrier);
	ofi_own.ops = NULL;
}

void ofi_carry_forget(void)
{
	ofi_own.ops = NULL;
}

bool ofi_carry_poll(void)
{
	struct ofi_carry *c;
	bool some;

	if (!ofi_own.ops || ofi_own.busy)
		return false;
	ofi_own.busy = true;
	some = ofi_own.ops->progress(ofi_own.carrier);
	ofi_own.busy = false;
	if (ofi_own.broken) {
		ofi_carry_closed();
		return true;
	}
	/* Most polls of a program that polls all the time find nothing. */
	if (!some && !ofi_own.num_waiting)
		return false;
	DL_FOREACH(ofi_carries, c) {
		if (c->num_waiting)
			ofi_carry_push(c);
		ofi_carry_tell_window(c);
	}
	return some;
}

bool ofi_carry_may_sleep(int *ret_fd, int *ret_ms)
{
	struct ofi_carry *c;

	*ret_fd = -1;
	*ret_ms = -1;
	if (!ofi_own.ops)
		return true;
	*ret_fd = ofi_own.ops->wait_fd(ofi_own.carrier);
	*ret_ms = ofi_own.ops->sleep_ms(ofi_own.carrier);
	DL_FOREACH(ofi_carries, c)
		if (c->num_waiting || c->probe_until)
			*ret_ms = 1;
	return ofi_own.ops->may_sleep(ofi_own.carrier);
}

static bool is_idle(void)
{
	struct ofi_carry *c;

	DL_FOREACH(ofi_carries, c)
		if (c->num_waiting && c->peer->session)
			return false;
	return ofi_own.ops->is_idle(ofi_own.carrier);
}

void ofi_carry_flush(void)
{
	uint64_t until = sim_now() + FLUSH_FOR;
	struct ofi_carry *c;

	do
		(void)ofi_carry_poll();
	while (ofi_own.ops && !is_idle() && sim_now() < until);
	DL_FOREACH(ofi_carries, c)
		if (c->on && c->sent > c->before_said)
			(void)ofi_carry_say(c, OFI_CARRIER_BEFORE, c->before_said = c->sent);
}
