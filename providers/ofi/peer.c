/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/peer.c - see peer.h. */
#include "config.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "providers/soft/link/shm/shm.h"
#include "carrier.h"
#include "carry.h"
#include "knock.h"
#include "peer.h"
#include "route.h"
#include "session.h"

#define BUCKETS 256u
#define PONG_FOR_ALL SIM_MS(10)	/* timers of many QPs may ask at one time */
#define BOTH_BEGIN SIM_MS(5000)	/* after the first one a second one may have been begun with it */
#define LOST_MS 4000u		/* without a word, and LOST_TRIES: the network is cut */
#define LOST_TRIES 4u
#define DOUBT_MS 1000u		/* without a word of the peer's kernel to what is under way */

static struct ofi_peer *by_number[BUCKETS];
static unsigned int last_number = SIM_NOBODY;

struct ofi_peer *ofi_peer_by_number(unsigned int number)
{
	struct ofi_peer *peer = by_number[number % BUCKETS];

	while (peer && peer->number != number)
		peer = peer->next_number;
	return peer;
}

struct ofi_peer *ofi_peer_of_slot(const struct sim_remote_host *host, uint16_t slot)
{
	struct ofi_peer *peer = host->peers;

	while (peer && peer->slot != slot)
		peer = peer->next;
	return peer;
}

struct ofi_peer *ofi_peer_get(struct sim_remote_host *host, uint16_t slot)
{
	struct ofi_peer *peer = ofi_peer_of_slot(host, slot);

	if (peer)
		return peer;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->host = host;
	peer->slot = slot;
	/* 2^31 of them: a process per microsecond for half an hour. */
	peer->number = last_number = last_number + 1 < SIM_SLOT_ASK ? last_number + 1 : SIM_NOBODY + 1;
	LL_APPEND(host->peers, peer);
	LL_PREPEND2(by_number[peer->number % BUCKETS], peer, next_number);
	return peer;
}

struct ofi_peer *ofi_peer_meet(struct sim_remote_host *host, uint16_t slot, uint64_t token)
{
	struct ofi_peer *peer = ofi_peer_of_slot(host, slot);

	if (peer && peer->met && peer->token != token)
		ofi_peer_bury(peer);
	peer = ofi_peer_get(host, slot);
	if (!peer)
		return NULL;
	peer->met = true;
	peer->token = token;
	return peer;
}

/*
 * If both began one, both stay.  Who begins another one later has lost the first, whatever our
 * kernel still hopes of it.
 */
void ofi_peer_add_session(struct ofi_peer *peer, struct ofi_session *session)
{
	struct ofi_session *old = peer->session;

	session->peer = peer;
	peer->reset = false;
	if (old && sim_now() < old->began + BOTH_BEGIN) {
		LL_APPEND2(peer->others, session, next_other);
	} else {
		if (old)
			ofi_carry_stop(peer);
		peer->session = session;
		peer->ping_out = false;
		ofi_route_closed(peer);
	}
	ofi_carry_start(peer);
	if (old && peer->session == session) {
		old->peer = NULL;
		ofi_session_close(old);
	}
}

/* Did the process end, or did its kernel give the stream up while the network was cut? */
static void ask_for(struct ofi_peer *peer)
{
	const struct ofi_want want = { .kind = OFI_WANT_SLOT, .slot = peer->slot };

	peer->reset = true;
	ofi_knock(peer->host, peer, &want);
	if (!peer->knock)
		ofi_peer_bury(peer);
}

void ofi_peer_lose_session(struct ofi_peer *peer, struct ofi_session *session, int error)
{
	session->peer = NULL;
	if (peer->session != session) {
		LL_DELETE2(peer->others, session, next_other);
		return;
	}
	ofi_carry_stop(peer);
	peer->ping_out = false;
	ofi_route_closed(peer);
	peer->session = peer->others;
	if (peer->session) {
		LL_DELETE2(peer->others, peer->session, next_other);
		ofi_carry_start(peer);
		ofi_route_flush(peer);
	}
	if (peer->session)
		return;
	/* The peer's kernel said that the process has closed it.  Else nobody knows. */
	if (!error || error == -EBADMSG)
		ofi_peer_bury(peer);
	else if (error == -ECONNRESET || error == -EPIPE)
		ask_for(peer);
}

void ofi_peer_bury(struct ofi_peer *peer)
{
	struct sim_remote_host *host = peer->host;
	struct ofi_queue waiting;
	struct ofi_session *session;

	sim_core->log(POLYCM_LOG_DEBUG, NULL, "process %u of host %s has ended", peer->slot,
		      host->node->name);
	ofi_carry_drop(peer);
	while ((session = peer->session)) {
		peer->session = peer->others;
		if (peer->others)
			peer->others = peer->others->next_other;
		session->peer = NULL;
		ofi_session_close(session);
	}
	if (peer->knock)
		ofi_knock_stop(peer->knock);
	ofi_route_forget(peer);
	/* Its numbers still mean it.  What is sent to it now waits with the rest. */
	peer->ended = true;
	if (sim_link_process_died)
		sim_link_process_died(peer->number);
	LL_DELETE(host->peers, peer);
	LL_DELETE2(by_number[peer->number % BUCKETS], peer, next_number);
	waiting = peer->waiting;
	free(peer);
	ofi_route_again(host, &waiting);
}

static void ping(struct ofi_peer *peer)
{
	const struct ofi_ping now = { .sent = sim_now() };
	uint8_t bytes[OFI_PING_SIZE];

	if (peer->ping_out)
		return;
	ofi_ping_encode(&now, bytes);
	peer->ping_out = !ofi_session_send(peer->session, OFI_PING,
					   &(struct iovec){ bytes, sizeof(bytes) }, 1, sizeof(bytes));
}

size_t ofi_peer_max_packet(unsigned int number)
{
	const struct ofi_peer *peer = ofi_peer_by_number(number);

	if (!peer || !peer->session)
		return SIM_LINK_MAX_PACKET;
	return peer->carry ? OFI_CARRIER_PACKET : SIM_LINK_MAX_LONG;
}

void ofi_peer_ponged(struct ofi_peer *peer)
{
	peer->ping_out = false;
	peer->ponged = true;
}

/* Has its kernel acknowledged what was sent, or not yet had the time to? */
static bool is_connected(const struct ofi_peer *peer)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	if (!peer->session ||
	    getsockopt(peer->session->stream->source.fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return false;
	return !(info.tcpi_unacked || info.tcpi_probes) || info.tcpi_last_ack_recv < DOUBT_MS;
}

/*
 * While data is under way TCP repeats it less and less often, and for long after the network is
 * mended.  A new stream does not wait.
 */
void ofi_peer_check(struct ofi_peer *peer)
{
	struct ofi_session *session = peer->session;
	struct tcp_info info;
	socklen_t len = sizeof(info);

	if (!session || sim_now() < peer->checked + SIM_MS(DOUBT_MS))
		return;
	peer->checked = sim_now();
	if (getsockopt(session->stream->source.fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
	    !info.tcpi_unacked || info.tcpi_retransmits < LOST_TRIES ||
	    info.tcpi_last_ack_recv < LOST_MS)
		return;
	ofi_peer_lose_session(peer, session, -ETIMEDOUT);
	ofi_session_close(session);
}

/*
 * A PONG says that the process has handled all that came before the PING.  So an answer that is
 * still missing does not come.
 */
bool ofi_peer_stands_still(unsigned int number)
{
	struct ofi_peer *peer = ofi_peer_by_number(number);
	uint64_t now = sim_now();
	bool still;

	if (peer)
		ofi_peer_check(peer);
	if (!peer || !is_connected(peer))
		return false;
	if (peer->ponged)
		peer->ponged_until = now + PONG_FOR_ALL;
	peer->ponged = false;
	still = now >= peer->ponged_until;
	ping(peer);
	return still;
}

void ofi_peers_stop(void)
{
	for (unsigned int i = 0; i < BUCKETS; i++) {
		struct ofi_peer *peer;

		while ((peer = by_number[i])) {
			by_number[i] = peer->next_number;
			if (peer->knock)
				ofi_knock_stop(peer->knock);
			ofi_carry_drop(peer);
			LL_DELETE(peer->host->peers, peer);
			ofi_queue_clear(&peer->waiting);
			free(peer);
		}
	}
}
