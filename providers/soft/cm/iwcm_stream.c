/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/iwcm_stream.c - as much of TCP as MPA needs: SYN, SYN-ACK, RST, data and
 * FIN as packets of the link (iwcm_segment.c), which keeps order and loses only
 * what is sent to dead processes.  Segments come from other processes: what does
 * not fit is dropped or answered with RST.
 *
 * Each end names its side of a stream by a connection id that tells the
 * process.  The number of the sender's queue pair rides in the header, since
 * MPA has no place for it.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include <utlist.h>

#include "providers/soft/fabric/remote.h"
#include "providers/soft/fabric/trace_lines.h"
#include "providers/soft/fabric/world.h"
#include "providers/soft/link/shm/shm.h"
#include "providers/soft/nic/nic.h"
#include "cma_internal.h"
#include "iwcm.h"
#include "table.h"

/* Linux' tcp_syn_retries: seven waits from one second on, doubled each time. */
#define SYN_WAIT SIM_MS(1000)
#define MAX_SYNS 7u

/* The time between two attempts to find memory for a FIN. */
#define FIN_AGAIN SIM_MS(10)

#define NUM_INDICES (1u << SIM_CONN_INDEX_BITS)

/* Streams that are open or being opened. */
static struct cm_table streams = {
	.link = offsetof(struct iwcm, next), .number = offsetof(struct iwcm, local_id),
};
static struct iw_handshake *embryos;	/* passive, without an id yet */
static struct iwcm *kept;		/* by late FINs */
static uint32_t last_index;

struct iwcm *iw_stream_find(uint32_t local_id)
{
	return cm_table_first(&streams, local_id);
}

/* Numbers are used in turn, so that a late segment finds no new stream. */
static int enter(struct iwcm *cm)
{
	if (cm_table_reserve(&streams) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < NUM_INDICES; i++) {
		last_index = (last_index + 1) % NUM_INDICES;
		cm->local_id = sim_conn_id(last_index);
		if (!iw_stream_find(cm->local_id)) {
			cm_table_add(&streams, cm);
			return 0;
		}
	}
	return -ENOMEM;
}

static int open_handshake(struct iwcm *cm)
{
	cm->handshake = sim_core->alloc(sizeof(*cm->handshake));
	if (!cm->handshake)
		return -ENOMEM;
	cm->handshake->cm = cm;
	return 0;
}

void iw_stream_handshake_done(struct iwcm *cm)
{
	struct iw_handshake *handshake = cm->handshake;

	if (!handshake)
		return;
	if (handshake->prev)
		DL_DELETE(embryos, handshake);
	sim_core->free(handshake);
	cm->handshake = NULL;
}

/* It gets no more segments. */
static void forget(struct iwcm *cm)
{
	if (cm->stream != IW_STREAM_CLOSED)
		cm_table_remove(&streams, cm);
	cm->stream = IW_STREAM_CLOSED;
	sim_timer_disarm(&cm->timer);
	iw_stream_handshake_done(cm);
	sim_wake();
}

/*
 * A FIN that there was no memory for.  It goes out later, from the memory of
 * its own end, which stays until then (iw_stream_keeps()).
 */
static void send_late_fin(struct sim_timer *timer)
{
	struct iwcm *cm = sim_container(timer, struct iwcm, timer);

	if (iw_send(cm, SEG_FIN, NULL, 0) == -ENOMEM) {
		sim_timer_arm(timer, sim_now() + FIN_AGAIN);
		return;
	}
	cm->fin_late = false;
	if (cm->id)
		return;
	LL_DELETE(kept, cm);
	sim_core->free(cm);
}

void iw_stream_close(struct iwcm *cm)
{
	const struct iwcm *peer;
	bool late = false;

	if (cm->fin_late)
		return;
	if (cm->stream == IW_STREAM_OPEN) {
		peer = cm_table_guess(&streams, cm->peer_id);
		if (peer)
			sim_prefetch(peer, sizeof(*peer));
		late = iw_send(cm, SEG_FIN, NULL, 0) == -ENOMEM;
	}
	forget(cm);
	if (late) {
		cm->fin_late = true;
		sim_timer_init(&cm->timer, send_late_fin);
		sim_timer_arm(&cm->timer, sim_now() + FIN_AGAIN);
	}
}

bool iw_stream_keeps(struct iwcm *cm)
{
	if (!cm->fin_late)
		return false;
	cm->id = NULL;
	LL_PREPEND(kept, cm);
	return true;
}

/* --- Opening. --- */

/*
 * If routes lead to a host's own address over a cable, an answer from a loopback
 * address goes there, too, and nobody takes it.
 */
static bool answer_is_lost(const struct sim_id *id)
{
	return id->node->described && sim_addr_is_loopback(&id->dst.sa) &&
	       !sim_node_keeps(id->node, &id->dst.sa, &id->src.sa);
}

static void send_syn(struct iwcm *cm)
{
	struct sim_node *node = cm->peer->device->node;
	unsigned int slot = sim_self_slot();

	/* Nobody listens: any process of the host can send the RST. */
	if (!sim_find_service(node, 0, &cm->id->dst.sa, &slot) && !node->remote)
		sim_fabric_log_no_listener(cm->id->id, node,
					   sim_port_taken(node, RDMA_PS_TCP,
							  sim_addr_port(&cm->id->dst.sa)));
	sim_link_meet(slot);
	iw_send_syn(cm, answer_is_lost(cm->id) ? NULL : cm->peer, slot);
	sim_timer_arm(&cm->timer, sim_now() + (SYN_WAIT << cm->syns));
	cm->syns++;
}

static void not_opened(struct iwcm *cm, int error)
{
	cm->error = error;
	forget(cm);
	if (cm->state == IWCM_CONN_SENT)
		iwcm_open_failed(cm);
}

static void syn_unanswered(struct sim_timer *timer)
{
	struct iwcm *cm = sim_container(timer, struct iwcm, timer);

	if (cm->syns < MAX_SYNS) {
		send_syn(cm);
		return;
	}
	not_opened(cm, -ETIMEDOUT);
}

static bool syn_answered(void *arg)
{
	struct iwcm *cm = arg;

	return cm->stream != IW_STREAM_SYN_SENT;
}

int iw_stream_start(struct iwcm *cm)
{
	int r;

	cm->port = cm->id->port;
	cm->peer = cma_peer_port(cm->id);
	if (!cm->peer)
		return sim_refuse(-EHOSTUNREACH, "no port has the peer's address any more");
	r = open_handshake(cm);
	if (r < 0)
		return r;
	r = enter(cm);
	if (r < 0)
		goto err_enter;
	cm->stream = IW_STREAM_SYN_SENT;
	cm->error = -ECONNABORTED;
	cm->syns = 0;
	sim_timer_init(&cm->timer, syn_unanswered);
	if (cma_delay)
		sim_timer_arm(&cm->timer, sim_now() + cma_delay);
	else
		send_syn(cm);
	return 0;

err_enter:
	iw_stream_handshake_done(cm);
	return r;
}

static int not_connected(int error)
{
	switch (error) {
	case -ECONNREFUSED:
		return sim_refuse(error, "nobody listens on that port of the peer");
	case -ETIMEDOUT:
		return sim_refuse(error, "the peer does not answer to TCP's SYN");
	case -ECONNRESET:
		return sim_refuse(error, "the peer reset the stream");
	default:
		return error;
	}
}

int iw_stream_connect(struct iwcm *cm)
{
	int r;

	r = iw_stream_start(cm);
	if (r < 0)
		return r;
	r = sim_wait(syn_answered, cm, SIM_NEVER);
	if (r < 0)
		forget(cm);
	if (cm->stream != IW_STREAM_OPEN)
		return r < 0 ? r : not_connected(cm->error);
	return 0;
}

/* Is addr what a peer on this port may call its own, or call us? */
static bool address_fits(const struct sim_port *port, const union sim_sockaddr *addr, bool same)
{
	if (cma_is_any(&addr->sa))
		return same;
	return sim_node_address(port->device->node, &addr->sa) != NULL;
}

static void opened(struct iwcm *cm, const struct sim_packet *packet, const struct segment *segment)
{
	if (cm->stream == IW_STREAM_OPEN && segment->src_id == cm->peer_id)
		return;
	if (cm->stream != IW_STREAM_SYN_SENT ||
	    sim_slot_of_peer_conn(packet->from, segment->src_id) != packet->from_slot) {
		iw_send_rst(packet, segment);
		return;
	}
	cm->peer_id = segment->src_id;
	cm->stream = IW_STREAM_OPEN;
	cm->error = -ECONNRESET;	/* if it closes again */
	sim_timer_disarm(&cm->timer);
	sim_wake();
	if (cm->state == IWCM_CONN_SENT)
		iwcm_active_opened(cm);
}

/* An id that connects to its own address reaches itself: TCP's simultaneous open, of one socket. */
static bool opened_by_itself(const struct sim_packet *packet, const struct segment *syn)
{
	struct iwcm *cm;

	if (!sim_addr_equal(&syn->src.sa, &syn->dst.sa) ||
	    sim_addr_port(&syn->src.sa) != sim_addr_port(&syn->dst.sa))
		return false;
	cm = iw_stream_find(syn->src_id);
	if (!cm || cm->stream != IW_STREAM_SYN_SENT)
		return false;
	opened(cm, packet, syn);
	return true;
}

/* The peer asks again: our answer was lost, or is under way. */
static bool already_open(const struct sim_packet *packet, const struct segment *syn)
{
	struct iw_handshake *embryo;

	DL_FOREACH(embryos, embryo)
		if (embryo->cm->peer == packet->from && embryo->cm->peer_id == syn->src_id) {
			(void)iw_send(embryo->cm, SEG_SYN_ACK, NULL, 0);
			return true;
		}
	return false;
}

static void passive_open(const struct sim_packet *packet, const struct segment *syn)
{
	bool same = packet->from == packet->to;
	struct sim_id *listener = NULL;
	unsigned int slot;
	struct iwcm *cm;

	if (sim_slot_of_peer_conn(packet->from, syn->src_id) != packet->from_slot ||
	    !address_fits(packet->from, &syn->src, same) ||
	    !address_fits(packet->to, &syn->dst, same) || already_open(packet, syn) ||
	    opened_by_itself(packet, syn))
		return;
	if (!sim_find_socket(packet->to->device->node, &syn->dst.sa, &slot, &listener) || !listener) {
		iw_send_rst(packet, syn);
		return;
	}
	/* A wildcard's sockets are at the devices' interfaces, by which no answer gets there. */
	if (packet->to->device->node->described && listener->bound_any &&
	    sim_addr_is_loopback(&syn->src.sa))
		return;
	cm = sim_core->alloc(sizeof(*cm));
	if (!cm)
		return;
	cm->passive = true;
	cm->port = packet->to;
	cm->peer = packet->from;
	cm->peer_id = syn->src_id;
	sim_timer_init(&cm->timer, NULL);
	if (open_handshake(cm) < 0 || enter(cm) < 0) {
		iw_stream_handshake_done(cm);
		sim_core->free(cm);
		return;
	}
	cm->stream = IW_STREAM_OPEN;
	cm->handshake->local = syn->dst;
	cm->handshake->remote = syn->src;
	DL_APPEND(embryos, cm->handshake);
	(void)iw_send(cm, SEG_SYN_ACK, NULL, 0);
	iwcm_opened(cm);
}

/* --- On an open stream. --- */

static void peer_closed(struct iwcm *cm)
{
	forget(cm);
	iwcm_closed(cm);
}

static void input(struct iwcm *cm, const struct segment *segment)
{
	struct iw_handshake *handshake = cm->handshake;

	if (!handshake && iwcm_take_rtr(cm, segment->data, segment->len))
		return;
	/* Nothing else goes this way. */
	if (!handshake || segment->len > sizeof(handshake->bytes) - handshake->len) {
		iw_stream_close(cm);
		iwcm_closed(cm);
		return;
	}
	memcpy(handshake->bytes + handshake->len, segment->data, segment->len);
	handshake->len += segment->len;
	cm->peer_qpn = segment->qpn;
	iwcm_input(cm);
}

void iw_stream_receive(const struct sim_packet *packet)
{
	struct segment segment;
	struct iwcm *cm;

	if (iw_segment_parse(packet->data, packet->len, &segment) < 0)
		return;
	if (segment.type == SEG_SYN) {
		passive_open(packet, &segment);
		return;
	}
	cm = iw_stream_find(segment.dst_id);
	if (cm && cm->id)
		cma_prefetch(cm->id);
	if (cm && (cm->peer != packet->from || cm->port != packet->to))
		return;
	if (cm && segment.type == SEG_SYN_ACK) {
		opened(cm, packet, &segment);
		return;
	}
	if (cm && cm->stream == IW_STREAM_SYN_SENT) {
		if (segment.type == SEG_RST)
			not_opened(cm, -ECONNREFUSED);
		return;
	}
	if (!cm || cm->peer_id != segment.src_id || sim_slot_of_peer_conn(packet->from, cm->peer_id) !=
	    packet->from_slot) {
		if (segment.type == SEG_DATA || segment.type == SEG_SYN_ACK)
			iw_send_rst(packet, &segment);
		return;
	}
	if (segment.type == SEG_DATA)
		input(cm, &segment);
	else
		peer_closed(cm);
}

/* The kernel of a dead process closes its sockets. */
static void close_if_dead(struct iwcm *cm, unsigned int dead_slot)
{
	if (cm->stream == IW_STREAM_OPEN && sim_slot_of_peer_conn(cm->peer, cm->peer_id) == dead_slot &&
	    cm->peer && sim_port_carries(cm->peer))
		peer_closed(cm);
}

void iw_stream_process_died(unsigned int slot)
{
	struct iw_handshake *embryo, *next;
	struct sim_id *id;

	if (slot == sim_self_slot())
		return;
	for (id = cma_first_id(); id; id = id->next)
		if (id->engine == &sim_iwcm_engine && id->iw)
			close_if_dead(id->iw, slot);
	DL_FOREACH_SAFE(embryos, embryo, next)
		close_if_dead(embryo->cm, slot);
}

static void describe_timer(const struct sim_timer *timer, struct sim_timer_text *ret_text)
{
	const struct iwcm *cm = sim_container(timer, struct iwcm, timer);

	*ret_text = (struct sim_timer_text){
		.name = timer->fn == syn_unanswered ? "syn" :
			timer->fn == send_late_fin ? "fin" :
			timer->fn == iwcm_reply_missing ? "mpa_reply" : "mpa_request",
		.node = cm->port->device->node,
		.of = "id",
		.number = cm->id ? cm->id->number : 0,
	};
}

void iw_streams_start(void)
{
	last_index = 0;
	sim_trace_timers(syn_unanswered, describe_timer);
	sim_trace_timers(send_late_fin, describe_timer);
	sim_trace_timers(iwcm_reply_missing, describe_timer);
	sim_trace_timers(iwcm_request_missing, describe_timer);
	sim_link_set_handler(SIM_PACKET_STREAM, iw_stream_receive);
	sim_link_set_rejecter(SIM_PACKET_STREAM, iw_reject_by_rule);
	sim_qp_stream_set_callbacks(sim_iw_qp_closed, sim_iw_qp_connecting);
}

void iw_streams_stop(void)
{
	struct iw_handshake *embryo, *next;
	struct iwcm *late, *next_late;

	DL_FOREACH_SAFE(embryos, embryo, next) {
		struct iwcm *cm = embryo->cm;

		iw_stream_close(cm);
		iwcm_free(cm);
	}
	LL_FOREACH_SAFE(kept, late, next_late) {
		sim_timer_disarm(&late->timer);
		sim_core->free(late);
	}
	kept = NULL;
	sim_link_set_handler(SIM_PACKET_STREAM, NULL);
	sim_qp_stream_set_callbacks(NULL, NULL);
	cm_table_free(&streams);
}
