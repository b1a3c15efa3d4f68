/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/route.c - see route.h.
 *
 * Messages of the CM and segments of streams go to the process that made the connection, or for a
 * new one to the process that was last known to listen there, or to any.  Who gets a request for
 * a service of another process sends it back with that one's slot.  Data goes to the owner of the
 * QP number, which is asked for once for each block of numbers; meanwhile it waits.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "providers/soft/fabric/groups.h"
#include "providers/soft/link/link_internal.h"
#include "providers/soft/wire/rc.h"
#include "carry.h"
#include "frame.h"
#include "knock.h"
#include "owners.h"
#include "route.h"
#include "self.h"
#include "service.h"
#include "session.h"

#define ASK_AGAIN SIM_MS(100)	/* the first time; then after twice that, and so on */
#define ASK_AGAIN_MAX SIM_MS(3200)

/* What waits for the answer who has a block of QP numbers. */
struct ofi_question {
	UT_hash_handle hh;
	struct sim_remote_host *host;
	uint32_t number;		/* of the block */
	struct ofi_peer *asked;		/* NULL: nobody yet */
	struct sim_timer timer;		/* the stream may be given up with the question or the answer */
	uint64_t pause;
	struct ofi_queue waiting;
};

/* ------------------------------------------------------------------------
 * Sending.
 */

/* An acknowledgement may wait for the answer that the program is about to send. */
static bool is_ack(enum sim_packet_type type, const struct iovec *parts, unsigned int num)
{
	const uint8_t *header = num > 1 ? parts[1].iov_base : NULL;

	return type == SIM_PACKET_RC && header && parts[1].iov_len == sizeof(struct rc_header) &&
	       header[offsetof(struct rc_header, op)] == RC_ACK;
}

/* Send the body of a PACKET frame, or let it wait until there is a session. */
int ofi_send_to(struct ofi_peer *peer, enum sim_packet_type type, const struct iovec *parts,
		unsigned int num, size_t len)
{
	const struct ofi_want want = { .kind = OFI_WANT_SLOT, .slot = peer->slot };
	int r;

	if (type == SIM_PACKET_MAD || type == SIM_PACKET_STREAM)
		ofi_peer_check(peer);
	if (peer->session) {
		if (peer->carry && ofi_carry_send(peer, type, parts, num, len, &r))
			return r;
		if (ofi_stream_is_full(peer->session->stream) &&
		    (type == SIM_PACKET_RC || type == SIM_PACKET_UD))
			return 0;	/* it does not read; its protocol repeats it */
		if (is_ack(type, parts, num))
			return ofi_stream_put_off(peer->session->stream, OFI_PACKET, parts, num, len);
		return ofi_session_send(peer->session, OFI_PACKET, parts, num, len);
	}
	if (type == SIM_PACKET_NOTE)
		return 0;
	r = ofi_queue_put(&peer->waiting, type, parts, num, len);
	if (!peer->ended)	/* else ofi_peer_bury() sends it to whoever answers for the host */
		ofi_knock(peer->host, peer, &want);
	return r == -ENOBUFS ? 0 : r;
}

static void send_waiting(struct ofi_peer *peer, struct ofi_waiting *waiting)
{
	(void)ofi_send_to(peer, waiting->type, &(struct iovec){ waiting->bytes, waiting->len }, 1,
		      waiting->len);
	ofi_waiting_free(waiting);
}

static void ask(struct ofi_question *question, struct ofi_peer *peer)
{
	const struct ofi_find find = {
		.number = question->number,
		.qpn = question->number * SIM_QPN_BLOCK,
	};
	uint8_t bytes[OFI_FIND_SIZE];

	ofi_find_encode(&find, bytes);
	if (!ofi_session_send(peer->session, OFI_FIND, &(struct iovec){ bytes, sizeof(bytes) }, 1,
			      sizeof(bytes)))
		question->asked = peer;
}

/* A process of the host whose stream still moves, as far as is known. */
static struct ofi_peer *any_checked(struct sim_remote_host *host)
{
	struct ofi_peer *any = ofi_host_any(host);

	if (any)
		ofi_peer_check(any);
	return ofi_host_any(host);
}

static void ask_again(struct sim_timer *timer)
{
	struct ofi_question *question = sim_container(timer, struct ofi_question, timer);
	const struct ofi_want want = {
		.kind = OFI_WANT_QPN,
		.qpn = question->number * SIM_QPN_BLOCK,
	};
	struct ofi_peer *any = any_checked(question->host);

	question->asked = NULL;
	if (any)
		ask(question, any);
	else
		ofi_knock(question->host, NULL, &want);
	if (question->pause < ASK_AGAIN_MAX)
		question->pause *= 2;
	sim_timer_arm(timer, sim_now() + question->pause);
}

static struct ofi_question *question_get(struct sim_remote_host *host, uint32_t number)
{
	struct ofi_question *question;

	HASH_FIND(hh, host->questions, &number, sizeof(number), question);
	if (question)
		return question;
	question = calloc(1, sizeof(*question));
	if (!question)
		return NULL;
	question->host = host;
	question->number = number;
	HASH_ADD(hh, host->questions, number, sizeof(question->number), question);
	if (!question->hh.tbl) {
		free(question);
		return NULL;
	}
	sim_timer_init(&question->timer, ask_again);
	question->pause = ASK_AGAIN;
	sim_timer_arm(&question->timer, sim_now() + question->pause);
	return question;
}

/* It is not known who has the QP number. */
static int send_to_owner(struct sim_remote_host *host, uint32_t qpn, enum sim_packet_type type,
			 const struct iovec *parts, unsigned int num, size_t len)
{
	const struct ofi_want want = { .kind = OFI_WANT_QPN, .qpn = qpn };
	struct ofi_peer *owner = ofi_owner(host, qpn), *any = ofi_host_any(host);
	struct ofi_question *question;
	int r;

	if (owner)
		return ofi_send_to(owner, type, parts, num, len);
	question = question_get(host, ofi_block_of(qpn));
	if (!question)
		return -ENOMEM;
	r = ofi_queue_put(&question->waiting, type, parts, num, len);
	if (any && !question->asked)
		ask(question, any);
	else if (!any)
		ofi_knock(host, NULL, &want);
	return r == -ENOBUFS ? 0 : r;
}

/* Any process will do, or knows better. */
static int send_to_any(struct sim_remote_host *host, enum sim_packet_type type,
		       const struct iovec *parts, unsigned int num, size_t len)
{
	struct ofi_peer *any = ofi_host_any(host);
	struct ofi_want want;
	int r;

	if (any)
		return ofi_send_to(any, type, parts, num, len);
	if (type == SIM_PACKET_NOTE)
		return 0;
	ofi_service_want(type, parts, num, &want);
	r = ofi_queue_put(&host->waiting, type, parts, num, len);
	ofi_knock(host, NULL, &want);
	return r;
}

static uint32_t qpn_of(const uint8_t *header)
{
	uint32_t qpn;

	memcpy(&qpn, header, sizeof(qpn));
	return qpn;
}

/* The parts may have more bytes than are to be sent. */
static unsigned int trim(struct iovec *parts, unsigned int num, size_t len)
{
	for (unsigned int i = 0; i < num; i++) {
		if (parts[i].iov_len >= len) {
			parts[i].iov_len = len;
			return i + 1;
		}
		len -= parts[i].iov_len;
	}
	return num;
}

static int send_frame(const struct sim_frame *frame, unsigned int slot)
{
	struct sim_remote_host *host = frame->to->device->node->remote;
	const struct ofi_packet packet = {
		.number = frame->number,
		.from = (uint16_t)(frame->from->num - 1),
		.to = (uint16_t)(frame->to->num - 1),
		.type = (uint8_t)frame->type,
	};
	uint8_t header[OFI_PACKET_HEADER];
	struct iovec parts[OFI_PARTS];
	unsigned int num = 2 + frame->payload_parts;
	size_t len = sizeof(header) + sim_frame_len(frame);
	struct ofi_peer *peer;

	if (!host || num > OFI_PARTS)
		return host ? -EMSGSIZE : 0;
	ofi_packet_encode(&packet, header);
	parts[0] = (struct iovec){ header, sizeof(header) };
	parts[1] = (struct iovec){ (void *)(uintptr_t)frame->header, frame->header_len };
	if (frame->payload_parts)
		memcpy(parts + 2, frame->payload, frame->payload_parts * sizeof(*parts));
	num = trim(parts, num, len);
	if (!(slot & SIM_SLOT_ASK)) {
		peer = ofi_peer_by_number(slot);
		return peer ? ofi_send_to(peer, frame->type, parts, num, len) : 0;
	}
	/* A datagram to a group is for any process of the host. */
	if ((frame->type == SIM_PACKET_RC || frame->type == SIM_PACKET_UD) &&
	    frame->header_len >= sizeof(uint32_t) && qpn_of(frame->header) != SIM_MULTICAST_QPN)
		return send_to_owner(host, qpn_of(frame->header), frame->type, parts, num, len);
	return send_to_any(host, frame->type, parts, num, len);
}

/* ------------------------------------------------------------------------
 * What waited.
 */

void ofi_route_flush(struct ofi_peer *peer)
{
	struct ofi_queue waiting = peer->waiting;
	struct ofi_waiting *first;

	peer->waiting = (struct ofi_queue){ 0 };
	while ((first = ofi_queue_take(&waiting)))
		send_waiting(peer, first);
}

void ofi_route_again(struct sim_remote_host *host, struct ofi_queue *waiting)
{
	struct ofi_waiting *first;

	while ((first = ofi_queue_take(waiting))) {
		if (first->type == SIM_PACKET_MAD || first->type == SIM_PACKET_STREAM)
			(void)send_to_any(host, first->type,
					  &(struct iovec){ first->bytes, first->len }, 1, first->len);
		ofi_waiting_free(first);
	}
}

/* A packet of ours to a host on which no process runs: we answer in place of its CM. */
static void answer(struct sim_remote_host *host, const struct ofi_waiting *waiting)
{
	struct sim_port *from = &ofi_self.device->ports[0];
	struct ofi_packet packet;

	if (ofi_packet_decode(waiting->bytes, waiting->len, &packet) < 0 ||
	    (waiting->type != SIM_PACKET_MAD && waiting->type != SIM_PACKET_STREAM))
		return;
	sim_link_deliver(&(struct sim_packet){
		.type = waiting->type,
		.from = from,
		.to = host->port,
		.from_slot = sim_self_slot(),
		.number = packet.number,
		.data = waiting->bytes + OFI_PACKET_HEADER,
		.len = waiting->len - OFI_PACKET_HEADER,
	});
}

void ofi_route_drop_waiting(struct sim_remote_host *host)
{
	struct ofi_question *question, *next;

	ofi_queue_clear(&host->waiting);
	HASH_ITER(hh, host->questions, question, next)
		ofi_queue_clear(&question->waiting);
}

static void drop_question(struct sim_remote_host *host, struct ofi_question *question)
{
	HASH_DEL(host->questions, question);
	sim_timer_disarm(&question->timer);
	ofi_queue_clear(&question->waiting);
	free(question);
}

static void drop_questions(struct sim_remote_host *host)
{
	struct ofi_question *question, *next;

	HASH_ITER(hh, host->questions, question, next)
		drop_question(host, question);
}

void ofi_route_opened(struct sim_remote_host *host, struct ofi_peer *peer)
{
	struct ofi_queue waiting = host->waiting;
	struct ofi_question *question, *next;

	host->waiting = (struct ofi_queue){ 0 };
	ofi_queue_move(&peer->waiting, &waiting);
	ofi_route_flush(peer);
	HASH_ITER(hh, host->questions, question, next)
		if (!question->asked && peer->session)
			ask(question, peer);
}

void ofi_route_bare(struct sim_remote_host *host)
{
	struct ofi_queue waiting = host->waiting;
	struct ofi_waiting *first;

	host->waiting = (struct ofi_queue){ 0 };
	drop_questions(host);
	/* Its processes have ended while no stream led to them. */
	while (host->peers)
		ofi_peer_bury(host->peers);
	ofi_queue_move(&waiting, &host->waiting);
	ofi_host_set_state(host, OFI_HOST_BARE);
	while ((first = ofi_queue_take(&waiting))) {
		answer(host, first);
		ofi_waiting_free(first);
	}
}

void ofi_route_silent(struct sim_remote_host *host)
{
	ofi_queue_clear(&host->waiting);
	drop_questions(host);
	if (host->state != OFI_HOST_REFUSED)
		ofi_host_set_state(host, OFI_HOST_NEW);
	else
		sim_fabric_addresses++;
}

void ofi_route_closed(struct ofi_peer *peer)
{
	struct ofi_question *question, *next;

	HASH_ITER(hh, peer->host->questions, question, next)
		if (question->asked == peer)
			question->asked = NULL;
}

void ofi_route_forget(struct ofi_peer *peer)
{
	ofi_owners_forget(peer->host, peer);
	ofi_route_closed(peer);
}

void ofi_route_drop(struct sim_remote_host *host)
{
	drop_questions(host);
	ofi_owners_forget(host, NULL);
}

void ofi_route_found(struct ofi_peer *peer, const struct ofi_found *found)
{
	struct sim_remote_host *host = peer->host;
	uint32_t number = ofi_block_of(found->qpn);
	struct ofi_question *question;
	struct ofi_queue waiting;
	struct ofi_waiting *first;
	struct ofi_peer *owner = NULL;

	HASH_FIND(hh, host->questions, &number, sizeof(number), question);
	if (!question || question->asked != peer)
		return;
	waiting = question->waiting;
	question->waiting = (struct ofi_queue){ 0 };
	drop_question(host, question);
	if (found->slot != OFI_NO_SLOT)
		owner = ofi_peer_get(host, found->slot);
	if (owner)
		ofi_owner_set(host, found->qpn, owner);
	while ((first = ofi_queue_take(&waiting))) {
		if (owner)
			send_waiting(owner, first);
		else
			ofi_waiting_free(first);
	}
}

static int lose(const struct sim_frame *frame, unsigned int slot)
{
	(void)frame;
	(void)slot;
	return 0;
}

void ofi_route_start(void)
{
	sim_link_to_machine = send_frame;
}

void ofi_route_stop(void)
{
	sim_link_to_machine = lose;
}
