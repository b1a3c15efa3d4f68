/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/knock.c - see knock.h. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "knock.h"
#include "peer.h"
#include "route.h"
#include "self.h"
#include "session.h"

#define NEXT_AFTER SIM_MS(100)	/* or so many times what connecting took, if that is more */
#define NEXT_TIMES 3u
#define GIVE_UP SIM_MS(5000)	/* for a process that was there: after the last packet for it */
#define SYN_AGAIN SIM_MS(2000)	/* TCP repeats its SYN after 1 s, and then ever less often */
#define PAUSE SIM_MS(50)	/* after a failure before the host is asked again */
#define BARE_PAUSE SIM_MS(2)	/* the same, if it said that no program runs there: one may have come */

struct ofi_knock {
	struct sim_remote_host *host;
	struct ofi_peer *peer;		/* NULL: any */
	struct ofi_want want;
	struct ofi_session *sessions[OFI_ATTEMPTS];	/* under way */
	unsigned int attempts;
	int error;			/* of the last that failed */
	bool told;			/* the log says that the host does not answer */
	uint64_t wanted;		/* the last time */
	uint64_t kept_since;		/* what waits for it */
	struct sim_timer timer;
};

static void close_others(struct ofi_knock *knock, const struct ofi_session *than)
{
	for (unsigned int i = 0; i < OFI_ATTEMPTS; i++) {
		struct ofi_session *session = knock->sessions[i];

		knock->sessions[i] = NULL;
		if (session)
			session->knock = NULL;
		if (session && session != than)
			ofi_session_close(session);
	}
}

/* Those that have come through may be open at the other end, which may have sent something there. */
static void leave_others(struct ofi_knock *knock, const struct ofi_session *than)
{
	for (unsigned int i = 0; i < OFI_ATTEMPTS; i++) {
		struct ofi_session *session = knock->sessions[i];

		if (!session || session->state == OFI_CONNECTING)
			continue;
		session->knock = NULL;
		knock->sessions[i] = NULL;
	}
	close_others(knock, than);
}

static void unlink_knock(struct ofi_knock *knock)
{
	sim_timer_disarm(&knock->timer);
	if (knock->peer) {
		knock->peer->knock = NULL;
		knock->peer->knocked = sim_now();
	} else {
		knock->host->knock = NULL;
		knock->host->knocked = sim_now();
	}
}

void ofi_knock_stop(struct ofi_knock *knock)
{
	unlink_knock(knock);
	close_others(knock, NULL);
	free(knock);
}

static void tell(struct ofi_knock *knock)
{
	struct sim_remote_host *host = knock->host;

	if (knock->told)
		return;
	knock->told = true;
	sim_core->log(POLYCM_LOG_INFO, NULL, "host %s does not answer at TCP port %u: %s",
		      host->node->name, sim_addr_port(&host->gate.sa),
		      knock->error ? strerror(-knock->error) : "no answer");
}

/* No attempt has led anywhere. */
static void fail(struct ofi_knock *knock)
{
	struct sim_remote_host *host = knock->host;
	struct ofi_peer *peer = knock->peer;

	unlink_knock(knock);
	close_others(knock, NULL);
	if (knock->error == -EACCES) {	/* session.c has said why */
		if (peer)
			ofi_queue_clear(&peer->waiting);
		ofi_host_set_state(host, OFI_HOST_REFUSED);
		ofi_route_silent(host);
	} else if (knock->error == -ECONNREFUSED && !ofi_host_any(host)) {
		/* One whose last program has ended is asked by what is still on its way to that. */
		sim_core->log(host->identified ? POLYCM_LOG_INFO : POLYCM_LOG_WARN, NULL,
			      "host %s refuses TCP port %u: no polycm program listens there, or a "
			      "firewall refuses it", host->node->name,
			      sim_addr_port(&host->gate.sa));
		ofi_route_bare(host);
	} else if (!peer && ofi_host_any(host)) {
		ofi_route_opened(host, ofi_host_any(host));
	} else {
		/* That the gate is shut to us does not mean that nobody is there, if one reached us. */
		tell(knock);
		if (peer && peer->reset)
			ofi_peer_bury(peer);
		else if (peer)
			ofi_queue_clear(&peer->waiting);
		else
			ofi_route_silent(host);
	}
	free(knock);
}

static bool is_under_way(const struct ofi_knock *knock)
{
	for (unsigned int i = 0; i < OFI_ATTEMPTS; i++)
		if (knock->sessions[i])
			return true;
	return false;
}

static void attempt(struct ofi_knock *knock)
{
	struct ofi_session **session = &knock->sessions[knock->attempts++];
	int r = ofi_session_connect(knock->host, &knock->want, knock, session);

	if (r < 0) {
		*session = NULL;
		knock->error = r;
	}
}

/* In place of one that is not even connected: that is the network's matter, which may be mended. */
static void again(struct ofi_knock *knock)
{
	struct ofi_session **last = &knock->sessions[knock->attempts - 1], *session;

	if (ofi_session_connect(knock->host, &knock->want, knock, &session) < 0) {
		(*last)->began = sim_now();
		return;
	}
	(*last)->knock = NULL;
	ofi_session_close(*last);
	*last = session;
}

/* When another attempt may help; SIM_NEVER: not as things are. */
static uint64_t next_at(const struct ofi_knock *knock)
{
	const struct ofi_session *last;
	uint64_t took;

	if (!knock->attempts)
		return 0;
	if (knock->attempts == OFI_ATTEMPTS)
		return SIM_NEVER;
	/* The member that had it has ended; another one may be there. */
	last = knock->sessions[knock->attempts - 1];
	if (!last)
		return is_under_way(knock) || knock->error == -ECONNRESET ? 0 : SIM_NEVER;
	if (last->state == OFI_CONNECTING)
		return last->began + SYN_AGAIN;
	took = NEXT_TIMES * (last->connected - last->began);
	return last->connected + (took > NEXT_AFTER ? took : NEXT_AFTER);
}

static void on_timer(struct sim_timer *timer)
{
	struct ofi_knock *knock = sim_container(timer, struct ofi_knock, timer);
	const struct ofi_session *last;
	uint64_t now = sim_now();

	if (now < knock->wanted + GIVE_UP && now >= next_at(knock)) {
		last = knock->attempts ? knock->sessions[knock->attempts - 1] : NULL;
		if (last && last->state == OFI_CONNECTING)
			again(knock);
		else
			attempt(knock);
	}
	if (now >= knock->wanted + GIVE_UP || !is_under_way(knock)) {
		fail(knock);
		return;
	}
	if (now >= knock->kept_since + GIVE_UP) {
		tell(knock);
		knock->kept_since = now;
		if (knock->peer)
			ofi_queue_clear(&knock->peer->waiting);
		else
			ofi_route_drop_waiting(knock->host);
	}
	sim_timer_arm(timer, next_at(knock) < now + NEXT_AFTER ? next_at(knock) : now + NEXT_AFTER);
}

void ofi_knock(struct sim_remote_host *host, struct ofi_peer *peer, const struct ofi_want *want)
{
	struct ofi_knock *knock = peer ? peer->knock : host->knock;
	uint64_t now = sim_now(), knocked = peer ? peer->knocked : host->knocked;
	bool bare = host->state == OFI_HOST_BARE;

	/* Of one that was reset nobody knows whether it is still there. */
	if (knock && (peer ? !peer->reset : host->identified && want->kind == OFI_WANT_QPN))
		knock->wanted = now;
	if (knock || (!bare && now < knocked + PAUSE))
		return;
	knock = calloc(1, sizeof(*knock));
	if (!knock)
		return;		/* what waits is repeated, and so is this */
	knock->host = host;
	knock->peer = peer;
	knock->want = *want;
	knock->wanted = knock->kept_since = now;
	sim_timer_init(&knock->timer, on_timer);
	if (peer)
		peer->knock = knock;
	else
		host->knock = knock;
	if (bare && now < knocked + BARE_PAUSE) {
		sim_timer_arm(&knock->timer, knocked + BARE_PAUSE);
		return;
	}
	attempt(knock);
	/* An error, too, is told later: the caller is about to send, or to add to what waits. */
	sim_timer_arm(&knock->timer, is_under_way(knock) ? now + NEXT_AFTER : now);
}

void ofi_knock_opened(struct ofi_knock *knock, struct ofi_session *session)
{
	struct sim_remote_host *host = session->host;
	struct ofi_peer *wanted = knock->peer, *found = session->peer;

	unlink_knock(knock);
	/* It is known by another address, too. */
	if (knock->host != host)
		ofi_queue_move(&host->waiting, &knock->host->waiting);
	leave_others(knock, session);
	free(knock);
	/* Another process answers: the one that was wanted has ended. */
	if (wanted && wanted != found)
		ofi_peer_bury(wanted);
	ofi_route_opened(host, found);
}

void ofi_knock_failed(struct ofi_knock *knock, struct ofi_session *session, int error)
{
	for (unsigned int i = 0; i < OFI_ATTEMPTS; i++)
		if (knock->sessions[i] == session)
			knock->sessions[i] = NULL;
	session->knock = NULL;
	knock->error = error;
	/* A gate that is shut is so for all attempts. */
	if (!is_under_way(knock) || error == -ECONNREFUSED || error == -EACCES)
		sim_timer_arm(&knock->timer, sim_now());
	if (error == -ECONNREFUSED || error == -EACCES)
		close_others(knock, session);
}
