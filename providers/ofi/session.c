/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/session.c - see session.h. */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "carry.h"
#include "knock.h"
#include "refusal.h"
#include "route.h"
#include "self.h"
#include "session.h"

#define OPEN_WITHIN SIM_MS(5000)
#define MAX_SESSIONS 4096u
#define MAX_OF_PEER (2 * OFI_ATTEMPTS)	/* it may begin some while we begin some */
#define FLUSH_MS 200
#define FLUSH_MAX 64u

static struct ofi_session *sessions;
static unsigned int num_sessions;
static struct ofi_hello hello;		/* too large for the stack; used by one function at a time */

unsigned int ofi_sessions_open(void)
{
	return num_sessions;
}

/* ------------------------------------------------------------------------
 * The end.
 */

static void free_session(struct ofi_session *session)
{
	sim_timer_disarm(&session->timer);
	DL_DELETE(sessions, session);
	if (!--num_sessions)
		sim_fetch_on(false);
	free(session->own);
	free(session->theirs);
	free(session);
}

void ofi_session_close(struct ofi_session *session)
{
	struct ofi_knock *knock = session->knock;

	if (knock)
		ofi_knock_failed(knock, session, -ECONNABORTED);
	ofi_stream_close(session->stream);
	free_session(session);
}

/* The stream is over; error 0: the peer has closed it. */
static void finish(struct ofi_session *session, int error)
{
	struct ofi_peer *peer = session->peer;

	if (session->knock)
		ofi_knock_failed(session->knock, session, error ? error : -ECONNRESET);
	if (peer)
		ofi_peer_lose_session(peer, session, error);
	ofi_stream_close(session->stream);
	free_session(session);
}

static void ended(struct ofi_stream *stream, int error)
{
	finish(stream->owner, error);
}

/* ------------------------------------------------------------------------
 * Refusals.
 */

/* The peer reads it before the end of the stream. */
static void say_refused(struct ofi_session *session, uint8_t reason, uint32_t value,
			const char *text)
{
	struct ofi_refused refused = { .reason = reason, .value = value };
	uint8_t bytes[OFI_REFUSED_SIZE];

	strncpy(refused.text, text, sizeof(refused.text) - 1);
	ofi_refused_encode(&refused, bytes);
	(void)ofi_stream_send(session->stream, OFI_REFUSED,
			      &(struct iovec){ bytes, sizeof(bytes) }, 1, sizeof(bytes));
}

void ofi_session_refuse(struct ofi_session *session, enum ofi_refusal reason, uint32_t value,
			const char *text)
{
	ofi_refusal_log(session, true, (uint8_t)reason, value,
			reason == OFI_REFUSED_TRANSPORT ? hello.transport : "");
	say_refused(session, (uint8_t)reason, value, text);
	finish(session, -EACCES);
}

static bool take_refused(struct ofi_session *session, const uint8_t *body, size_t len)
{
	struct ofi_refused refused;

	if (ofi_refused_decode(body, len, &refused) < 0)
		return false;
	ofi_refusal_log(session, false, refused.reason, refused.value, refused.text);
	finish(session, -EACCES);
	return true;
}

/* ------------------------------------------------------------------------
 * The greeting.
 */

static int send_hello(struct ofi_session *session)
{
	uint8_t *body = malloc(OFI_HELLO_MAX);

	if (!body)
		return -ENOMEM;
	ofi_self_hello(&hello, session->initiator ? &session->want : NULL);
	session->own = body;
	session->own_len = ofi_hello_encode(&hello, body);
	return ofi_stream_send(session->stream, OFI_HELLO, &(struct iovec){ body, session->own_len }, 1,
			       session->own_len);
}

/* The proof that one side gives. */
static void proof_of(const struct ofi_session *session, bool initiator, uint8_t proof[SHA256_SIZE])
{
	bool own_first = session->initiator;

	ofi_proof(ofi_self.key, ofi_self.key_len, initiator,
		  own_first ? session->own : session->theirs,
		  own_first ? session->own_len : session->theirs_len,
		  own_first ? session->theirs : session->own,
		  own_first ? session->theirs_len : session->own_len, proof);
}

static int send_proof(struct ofi_session *session)
{
	uint8_t proof[SHA256_SIZE];

	proof_of(session, session->initiator, proof);
	return ofi_stream_send(session->stream, OFI_PROOF, &(struct iovec){ proof, sizeof(proof) }, 1,
			       sizeof(proof));
}

static bool proof_is_good(const struct ofi_session *session, const uint8_t *body, size_t len)
{
	uint8_t proof[SHA256_SIZE];

	if (len != SHA256_SIZE)
		return false;
	proof_of(session, !session->initiator, proof);
	return sha256_equal(proof, body);
}

/* A reason to refuse whoever said that, or 0. */
static enum ofi_refusal objection(uint32_t *ret_value, const char **ret_text)
{
	*ret_value = 0;
	*ret_text = "";
	if (strcmp(hello.transport, ofi_self.transport->name)) {
		*ret_text = ofi_self.transport->name;
		return OFI_REFUSED_TRANSPORT;
	}
	if (hello.rules != ofi_self.rules)
		return OFI_REFUSED_RULES;
	if (hello.has_key != !!ofi_self.key)
		return OFI_REFUSED_KEY;
	/* A process of this host is reached through shared memory, never through the network. */
	if (!memcmp(hello.host, ofi_self.host, OFI_HOST_ID) || !hello.ports.num_ports)
		return OFI_REFUSED_MALFORMED;
	if (num_sessions > MAX_SESSIONS)
		return OFI_REFUSED_BUSY;
	return 0;
}

/* Whose host it is.  One that is there keeps its address, also if another one says the same. */
static struct sim_remote_host *find_host(const struct ofi_session *session)
{
	struct sim_remote_host *host = ofi_host_by_id(hello.host);

	if (host || session->host)
		return host ? host : session->host;
	for (unsigned int i = 0; i < hello.ports.num_addresses && !host; i++) {
		host = ofi_host_of_address(&hello.ports.addresses[i].addr.sa);
		if (host && host->identified && ofi_host_any(host))
			host = NULL;
	}
	return host;
}

static void open_session(struct ofi_session *session)
{
	struct ofi_knock *knock = session->knock;
	struct ofi_peer *peer = session->peer;

	session->state = OFI_OPEN;
	ofi_stream_allow_long(session->stream);
	sim_fetch_on(true);
	sim_timer_disarm(&session->timer);
	free(session->own);
	free(session->theirs);
	session->own = session->theirs = NULL;
	session->knock = NULL;
	ofi_peer_add_session(peer, session);
	sim_core->log(POLYCM_LOG_DEBUG, NULL, "process %u of host %s: connected by TCP", peer->slot,
		      peer->host->node->name);
	ofi_host_set_state(peer->host, OFI_HOST_UP);
	ofi_clock_opened(peer);
	if (knock)
		ofi_knock_opened(knock, session);
	else
		ofi_route_opened(peer->host, peer);
}

static unsigned int num_of_peer(const struct ofi_peer *peer)
{
	unsigned int num = peer->session != NULL;

	for (const struct ofi_session *other = peer->others; other; other = other->next_other)
		num++;
	return num;
}

/* Who it says to be, it is.  False: the stream ends. */
static bool proven(struct ofi_session *session)
{
	struct sim_remote_host *looked_for = session->host;
	struct ofi_peer *peer;
	unsigned int version;

	if (ofi_hello_decode(session->theirs, session->theirs_len, &hello, &version) < 0)
		return false;
	session->host = find_host(session);
	if (!session->host) {
		ofi_session_refuse(session, OFI_REFUSED_ADDRESS, 0, "");
		return true;
	}
	ofi_host_take(session->host, &hello);
	if (looked_for && looked_for != session->host)
		ofi_host_take_gate(session->host, looked_for);
	peer = ofi_peer_meet(session->host, hello.slot, hello.token);
	if (!peer)
		return false;
	if (num_of_peer(peer) >= MAX_OF_PEER) {
		ofi_session_refuse(session, OFI_REFUSED_BUSY, MAX_OF_PEER, "");
		return true;
	}
	session->peer = peer;
	ofi_carry_meet(peer, &hello);
	open_session(session);
	return true;
}

/* What was said stays in `hello' while this runs. */
static bool take_hello(struct ofi_session *session, const uint8_t *body, size_t len)
{
	enum ofi_refusal reason;
	unsigned int version;
	const char *text;
	uint32_t value;
	int r;

	r = ofi_hello_decode(body, len, &hello, &version);
	if (r == -EPROTONOSUPPORT) {
		ofi_session_refuse(session, OFI_REFUSED_VERSION, OFI_VERSION, "");
		return true;
	}
	if (r < 0) {
		ofi_session_refuse(session, OFI_REFUSED_MALFORMED, 0, "");
		return true;
	}
	reason = objection(&value, &text);
	if (reason) {
		ofi_session_refuse(session, reason, value, text);
		return true;
	}
	session->theirs = malloc(len);
	if (!session->theirs)
		return false;
	memcpy(session->theirs, body, len);
	session->theirs_len = len;
	if (!session->initiator && send_hello(session) < 0)
		return false;
	session->state = OFI_PROVING;
	if (ofi_self.key)
		return session->initiator || !send_proof(session);
	return proven(session);
}

static bool take_proof(struct ofi_session *session, const uint8_t *body, size_t len)
{
	if (!ofi_self.key || !proof_is_good(session, body, len)) {
		ofi_session_refuse(session, OFI_REFUSED_KEY, 0, "");
		return true;
	}
	if (session->initiator && send_proof(session) < 0)
		return false;
	return proven(session);
}

static bool frame(struct ofi_stream *stream, uint8_t type, uint8_t *body, size_t len)
{
	struct ofi_session *session = stream->owner;

	if (session->state == OFI_OPEN)
		return ofi_route_frame(session->peer, type, body, len);
	if (type == OFI_REFUSED)
		return take_refused(session, body, len);
	if (session->state == OFI_GREETING && type == OFI_HELLO)
		return take_hello(session, body, len);
	if (session->state == OFI_PROVING && type == OFI_PROOF)
		return take_proof(session, body, len);
	return false;
}

static void connected(struct ofi_stream *stream)
{
	struct ofi_session *session = stream->owner;

	session->state = OFI_GREETING;
	session->connected = sim_now();
	if (send_hello(session) < 0)
		finish(session, -ENOMEM);
}

static const struct ofi_stream_ops ops = {
	.connected = connected,
	.frame = frame,
	.place = ofi_route_place,
	.placed = ofi_route_placed,
	.ended = ended,
};

/* ------------------------------------------------------------------------
 * The beginning.
 */

static void too_late(struct sim_timer *timer)
{
	finish(sim_container(timer, struct ofi_session, timer), -ETIMEDOUT);
}

static struct ofi_session *make(bool initiator)
{
	struct ofi_session *session = calloc(1, sizeof(*session));

	if (!session)
		return NULL;
	session->initiator = initiator;
	session->state = initiator ? OFI_CONNECTING : OFI_GREETING;
	session->began = sim_now();
	DL_APPEND(sessions, session);
	num_sessions++;
	sim_timer_init(&session->timer, too_late);
	sim_timer_arm(&session->timer, session->began + OPEN_WITHIN);
	return session;
}

int ofi_session_connect(struct sim_remote_host *host, const struct ofi_want *want,
			struct ofi_knock *knock, struct ofi_session **ret_session)
{
	const union sim_sockaddr *to = &host->gate;
	socklen_t len = to->sa.sa_family == AF_INET ? sizeof(to->in) : sizeof(to->in6);
	struct ofi_session *session = make(true);
	int r;

	if (!session)
		return -ENOMEM;
	session->host = host;
	session->knock = knock;
	session->want = *want;
	r = ofi_stream_connect(&to->sa, len, &ops, session, &session->stream);
	if (r < 0) {
		free_session(session);
		return r;
	}
	ofi_stream_keep_alive(session->stream);
	*ret_session = session;
	return 0;
}

void ofi_session_accept(int fd, const uint8_t *body, size_t len)
{
	struct ofi_session *session = make(false);

	if (!session || ofi_stream_adopt(fd, &ops, session, &session->stream) < 0) {
		close(fd);
		if (session)
			free_session(session);
		return;
	}
	ofi_stream_keep_alive(session->stream);
	if (!take_hello(session, body, len))
		finish(session, -EBADMSG);
}

int ofi_session_send(struct ofi_session *session, uint8_t type, const struct iovec *body,
		     unsigned int parts, size_t len)
{
	return ofi_stream_send(session->stream, type, body, parts, len);
}

/* ------------------------------------------------------------------------
 * All of them.
 */

void ofi_sessions_tell(uint8_t type, const struct iovec *body, unsigned int parts, size_t len)
{
	struct ofi_session *session;

	DL_FOREACH(sessions, session)
		if (session->state == OFI_OPEN)
			(void)ofi_session_send(session, type, body, parts, len);
}

/* Send what waits, as far as the kernel takes it; returns how many streams may take more later. */
static nfds_t flush_once(struct pollfd *wait, nfds_t max)
{
	struct ofi_session *session;
	nfds_t num = 0, left = 0;

	DL_FOREACH(sessions, session)
		if (session->state == OFI_OPEN && !ofi_stream_flush(session->stream) && num < max)
			wait[num++] = (struct pollfd){
				.fd = session->stream->source.fd, .events = POLLOUT,
			};
	/* A broken one is ready all the time. */
	(void)poll(wait, num, 0);
	for (nfds_t i = 0; i < num; i++)
		if (!(wait[i].revents & (POLLERR | POLLHUP | POLLNVAL)))
			wait[left++] = wait[i];
	return left;
}

/* One time for all: it is the program's end that waits. */
void ofi_sessions_flush(void)
{
	struct pollfd wait[FLUSH_MAX];
	uint64_t now = sim_time->real_ns(CLOCK_MONOTONIC), until = now + SIM_MS(FLUSH_MS);
	nfds_t num;

	while ((num = flush_once(wait, FLUSH_MAX)) && now < until) {
		(void)poll(wait, num, (int)((until - now) / SIM_MS(1)) + 1);
		now = sim_time->real_ns(CLOCK_MONOTONIC);
	}
}

/* Nobody is told; but nobody may look at it later. */
static void leave_knock(struct ofi_session *session)
{
	if (session->knock)
		ofi_knock_failed(session->knock, session, -ECONNABORTED);
}

void ofi_sessions_stop(void)
{
	struct ofi_session *session, *next;

	DL_FOREACH_SAFE(sessions, session, next) {
		leave_knock(session);
		ofi_stream_close(session->stream);
		free_session(session);
	}
}

void ofi_sessions_forget(void)
{
	struct ofi_session *session, *next;

	DL_FOREACH_SAFE(sessions, session, next) {
		leave_knock(session);
		ofi_stream_forget(session->stream);
		free_session(session);
	}
}
