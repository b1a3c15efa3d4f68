/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/clock.c - see clock.h. */
#include "config.h"

#include <inttypes.h>

#include "providers/soft/trace/trace.h"
#include "clock.h"
#include "peer.h"
#include "self.h"
#include "session.h"

#define EVERY SIM_MS(1000)
#define AT_ONCE 3u		/* more PINGs then: one of them may find nobody busy */
#define DRIFT 50000u		/* ns in which two clocks differ by one more: 20 ppm */
#define MAX_TIME ((uint64_t)1 << 62)

static struct sim_timer timer;

/* ------------------------------------------------------------------------
 * The measurement.
 */

void ofi_clock_measure(struct ofi_clock *clock, const struct ofi_ping *pong, uint64_t now)
{
	uint64_t round_trip = now - pong->sent, error;

	if (pong->sent > now || now > MAX_TIME || pong->answered > MAX_TIME)
		return;
	error = clock->round_trip / 2 + (now - clock->measured) / DRIFT;
	if (clock->measured && round_trip / 2 > error)
		return;
	clock->measured = now;
	clock->round_trip = round_trip;
	clock->offset = (int64_t)pong->answered - (int64_t)(pong->sent + round_trip / 2);
}

/* ------------------------------------------------------------------------
 * Lines of the trace.
 */

static void begin(const char *kind, const struct sim_node *node, const uint8_t host[OFI_HOST_ID])
{
	sim_trace_begin(kind);
	sim_trace_text("node", node->name);
	trace_bytes(&sim_trace_current, "host", host, OFI_HOST_ID);
}

/* Like lines about addresses they are not what the program does. */
static void end(bool told)
{
	sim_trace_end();
	sim_trace_used = told;
}

void ofi_clock_trace_begins(void)
{
	bool told = sim_trace_used;

	begin("host", ofi_self.device->node, ofi_self.host);
	end(told);
}

static void trace(const struct sim_remote_host *host)
{
	bool told = sim_trace_used;

	begin("clock", host->node, host->id);
	sim_trace_number("round_trip", host->clock.round_trip);
	trace_members(&sim_trace_current, ",\"offset\":%" PRId64, host->clock.offset);
	end(told);
}

/* ------------------------------------------------------------------------
 * PINGs.
 */

static void ask(struct ofi_peer *peer)
{
	struct ofi_clock *clock = &peer->host->clock;
	const struct ofi_ping now = { .sent = sim_now() };
	uint8_t bytes[OFI_PING_SIZE];

	ofi_ping_encode(&now, bytes);
	if (!ofi_session_send(peer->session, OFI_PING, &(struct iovec){ bytes, sizeof(bytes) }, 1,
			      sizeof(bytes)))
		clock->asked = now.sent;
}

static void tick(struct sim_timer *fired)
{
	bool any = false;

	if (!sim_tracing())
		return;
	for (struct sim_remote_host *host = ofi_host_first(); host; host = host->next) {
		struct ofi_peer *peer = ofi_host_any(host);

		if (!peer)
			continue;
		any = true;
		host->clock.more = AT_ONCE;
		ask(peer);
	}
	if (any)
		sim_timer_arm(fired, sim_now() + EVERY);
}

void ofi_clock_opened(struct ofi_peer *peer)
{
	if (!sim_tracing())
		return;
	peer->host->clock.more = AT_ONCE;
	ask(peer);
	if (sim_timer_armed(&timer))
		return;
	sim_timer_init(&timer, tick);
	sim_timer_arm(&timer, sim_now() + EVERY);
}

bool ofi_clock_ponged(struct ofi_peer *peer, const struct ofi_ping *pong)
{
	struct ofi_clock *clock = &peer->host->clock;
	uint64_t now = sim_now();

	if (!clock->asked || pong->sent != clock->asked)
		return false;
	clock->asked = 0;
	ofi_clock_measure(clock, pong, now);
	if (!sim_tracing())
		return true;
	/* At once: the program may soon end. */
	if (clock->measured == now || (clock->measured && !clock->more))
		trace(peer->host);
	if (clock->more && peer->session) {
		clock->more--;
		ask(peer);
	}
	return true;
}

void ofi_clock_stop(void)
{
	sim_timer_disarm(&timer);
}
