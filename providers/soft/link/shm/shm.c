/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shm/shm.c - packets between the processes of a shared fabric: into the rings and out of
 * them.  Packets for which a ring has no room wait in a list.  Engine lock held.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "providers/soft/faults/changes.h"
#include "providers/soft/link/block.h"
#include "providers/soft/link/left.h"
#include "providers/soft/link/link_internal.h"
#include "providers/soft/shm/doorbell.h"
#include "look.h"
#include "shm_internal.h"

#define RECORDS_PER_TURN 64u	/* of one ring before the turn of the next */
#define MAX_WAITING ((size_t)64 << 20)	/* bytes; more data is lost, and repeated by its protocol */
#define TRY_AGAIN SIM_MS(10)	/* to make or open a ring after memory or descriptors were short */
#define CHECK_EVERY 256u	/* waiting packets between checks whether the receiver lives */

static struct sim_timer again;

/* Attend to peers whose ring waits for memory or a descriptor, as if they had sent mail. */
static void try_again(struct sim_timer *unused)
{
	(void)unused;
	for (unsigned int slot = 0; slot < SIM_MAX_SLOTS; slot++) {
		const struct sim_peer *peer = sim_peer_known(slot);

		if (peer && (peer->unopened || (peer->first && !peer->out.ring)))
			sim_segment_notify(sim_segment_slot(), slot);
	}
}

static void try_again_later(void)
{
	if (sim_timer_armed(&again))
		return;
	sim_timer_init(&again, try_again);
	sim_timer_arm(&again, sim_now() + TRY_AGAIN);
}

void sim_shm_stop_trying(void)
{
	sim_timer_disarm(&again);
}

/* ------------------------------------------------------------------------
 * Sending.
 */

static int lose(unsigned int slot, const char *why)
{
	sim_core->log(POLYCM_LOG_DEBUG, NULL, "packet to process %d lost: %s",
		      (int)sim_segment_peer(slot)->pid, why);
	return 0;
}

/* The process is to read what is in its ring. */
static void notify(struct sim_peer *peer, unsigned int slot)
{
	sim_ring_set_notified(&peer->out);
	sim_segment_sent(slot);
}

/* Put packets that wait into the ring, as far as there is room. */
static void flush(struct sim_peer *peer, unsigned int slot)
{
	struct sim_waiting *waiting;
	bool sent = false;
	void *bytes;

	while ((waiting = peer->first) &&
	       !sim_ring_reserve(&peer->out, waiting->len, &bytes)) {
		memcpy(bytes, waiting->bytes, waiting->len);
		sim_ring_commit(&peer->out, waiting->len, waiting->tag);
		peer->first = waiting->next;
		if (!peer->first)
			peer->end = &peer->first;
		peer->waiting_bytes -= waiting->len;
		sim_block_put(waiting);
		peer->num_waiting--;
		sent = true;
	}
	if (sent)
		notify(peer, slot);
}

/*
 * Ask the receiver to notify us when it has read something, unless there is room already.
 * The fence orders the request before flush() reads the ring's head: either we see what the
 * receiver read, or it sees the request.
 */
static void wait_for_room(struct sim_peer *peer, unsigned int slot)
{
	atomic_store(&peer->out.ring->writer_waits, 1);
	atomic_thread_fence(memory_order_seq_cst);
	flush(peer, slot);
	if (peer->first)
		sim_segment_notify(slot, sim_segment_slot());
	else
		atomic_store(&peer->out.ring->writer_waits, 0);
}

/* 0: there is a ring.  -EAGAIN: packets wait for it. */
static int make_ring(struct sim_peer *peer, unsigned int slot)
{
	int r = sim_peer_make_ring(peer, slot);

	if (!r)
		sim_death_watch();
	else if (r == -EAGAIN)
		try_again_later();
	return r;
}

static void send_on(struct sim_peer *peer, unsigned int slot)
{
	int r = 0;

	if (!sim_peer_is_live(slot) || (!peer->out.ring && (r = make_ring(peer, slot)) == -EAGAIN))
		return;
	if (r < 0)
		sim_peer_forget_outgoing(peer);
	else
		wait_for_room(peer, slot);
}

static void fill(const struct sim_frame *frame, uint8_t *bytes)
{
	const struct sim_wire wire = {
		.from = frame->from->fabric_index,
		.to = frame->to->fabric_index,
		.number = frame->number,
	};

	memcpy(bytes, &wire, sizeof(wire));
	sim_frame_copy(frame, bytes + sizeof(wire));
}

bool sim_link_last_word(struct sim_port *from, struct sim_port *to, unsigned int slot,
			const void *packet, size_t len)
{
	const struct sim_frame frame = { .from = from, .to = to, .header = packet, .header_len = len };
	const struct sim_peer *peer = sim_peer_known(slot);
	uint8_t bytes[sizeof(struct sim_wire) + SIM_LAST_WORD];

	_Static_assert(sizeof(bytes) <= SIM_RING_LAST_MAX, "it has room");
	if (!peer || !peer->out.ring || len > SIM_LAST_WORD)
		return false;
	if (packet)
		fill(&frame, bytes);
	sim_ring_set_last(&peer->out, bytes, packet ? (uint32_t)(sizeof(struct sim_wire) + len) : 0,
			  SIM_PACKET_RC | sim_changes_tag);
	return true;
}

static int append(struct sim_peer *peer, unsigned int slot, const struct sim_frame *frame,
		  uint32_t len)
{
	struct sim_waiting *waiting;

	if (peer->waiting_bytes >= MAX_WAITING &&
	    (frame->type == SIM_PACKET_RC || frame->type == SIM_PACKET_UD))
		return lose(slot, "it does not read");
	waiting = sim_block_get(sizeof(*waiting) + len, frame->type);
	if (!waiting)
		return -ENOMEM;
	waiting->next = NULL;
	waiting->len = len;
	waiting->tag = frame->type | sim_changes_tag;
	fill(frame, waiting->bytes);
	*peer->end = waiting;
	peer->end = &waiting->next;
	peer->waiting_bytes += len;
	if (peer->num_waiting++ % CHECK_EVERY == 0)
		sim_segment_check(slot);
	if (!sim_peer_is_live(slot))
		return lose(slot, "it is gone");
	if (peer->out.ring)
		wait_for_room(peer, slot);
	return 0;
}

/* Who has never heard of us would not notice our end either. */
static bool wants_reading(const struct sim_peer *peer, const struct sim_frame *frame)
{
	return frame->type != SIM_PACKET_NOTE &&
	       (frame->type != SIM_PACKET_LEFT || !peer->out.notified);
}

int sim_shm_send(const struct sim_frame *frame, unsigned int slot)
{
	uint32_t len = (uint32_t)(sizeof(struct sim_wire) + sim_frame_len(frame));
	struct sim_peer *peer;
	void *bytes;
	int r;

	if (!sim_segment_joined() || slot >= SIM_MAX_SLOTS)
		return 0;
	r = sim_peer_get(slot, &peer);
	if (r == -ESRCH) {
		/* The new process in its slot does not get it, before the death is handled. */
		if (!sim_peer_known(slot)->reading)
			sim_segment_notify(sim_segment_slot(), slot);
		return lose(slot, "it is gone");
	}
	if (r < 0)
		return r;
	if (!sim_peer_is_live(slot))
		return lose(slot, "it is gone");
	if (!peer->out.ring && !peer->first) {
		r = make_ring(peer, slot);
		if (r < 0 && r != -EAGAIN)
			return r;
	}
	if (!peer->first && peer->out.ring) {
		r = sim_ring_reserve(&peer->out, len, &bytes);
		if (!r) {
			fill(frame, bytes);
			sim_ring_commit(&peer->out, len, frame->type | sim_changes_tag);
			if (wants_reading(peer, frame))
				notify(peer, slot);
			return 0;
		}
		if (r == -EBADMSG)
			return lose(slot, "it broke the ring");
	}
	return append(peer, slot, frame, len);
}

/* ------------------------------------------------------------------------
 * Receiving.
 */

/* Within sim_shm_receive(), where no action on a node is under way. */
static bool receiving;

/* Only a copy of a packet under way has more in front than each packet has. */
static bool is_too_long(uint32_t len, uint32_t type)
{
	const size_t more = type == SIM_PACKET_LEFT ? sizeof(struct sim_left) : 0;

	return len > sizeof(struct sim_wire) + more + SIM_LINK_MAX_PACKET;
}

static void deliver(unsigned int slot, const uint8_t *bytes, uint32_t len, uint32_t tag)
{
	uint32_t type = tag & SIM_CHANGES_TYPE;
	struct sim_packet packet;
	struct sim_wire wire;

	if (len < sizeof(wire) || is_too_long(len, type) ||
	    (type >= SIM_PACKET_TYPES && type != SIM_PACKET_LEFT))
		goto drop;
	memcpy(&wire, bytes, sizeof(wire));
	packet = (struct sim_packet){
		.type = type,
		.from = sim_port_by_index(wire.from),
		.to = sim_port_by_index(wire.to),
		.from_slot = slot,
		.number = wire.number,
		.data = bytes + sizeof(wire),
		.len = len - sizeof(wire),
	};
	if (!packet.from || !packet.to)
		goto drop;
	/* What is owed for the packets before goes as things are then. */
	if (receiving && sim_changes_differ(tag))
		sim_settle();
	if (receiving)
		sim_changes_before(tag);
	if (type == SIM_PACKET_LEFT)
		sim_left_read(&packet);
	else if (type == SIM_PACKET_NOTE)
		sim_link_tell(&packet);
	else
		sim_link_deliver(&packet);
	return;
drop:
	sim_core->log(POLYCM_LOG_DEBUG, NULL, "packet of no known kind or size from %d dropped",
		      (int)sim_segment_peer(slot)->pid);
}

/* Deliver what is in a ring.  true: there is more. */
static bool read_ring(struct sim_peer *peer, unsigned int slot)
{
	struct sim_ring_reader *in = &peer->in;
	const void *bytes;
	uint32_t len, tag;
	unsigned int i;
	int r = 0;

	peer->reading = sim_link_reads_many = true;
	for (i = 0; i < RECORDS_PER_TURN && !(r = sim_ring_next(in, &bytes, &len, &tag)); i++) {
		deliver(slot, bytes, len, tag);
		sim_ring_release(in);
	}
	peer->reading = sim_link_reads_many = false;
	sim_link_has_read();
	if (r == -EBADMSG) {
		sim_core->log(POLYCM_LOG_WARN, NULL,
			      "process %d wrote nonsense into its ring: not listening to it any more",
			      (int)sim_segment_peer(slot)->pid);
		sim_peer_close_ring(peer);
		peer->deaf = true;
		return false;
	}
	/* Each time: after our death peers answer what is not marked as read. */
	sim_ring_publish(in);
	sim_look_has_read(peer, slot, i);
	/* Orders the position before the load: a writer asks first and reads the position then. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&in->ring->writer_waits) && atomic_exchange(&in->ring->writer_waits, 0))
		sim_segment_notify(slot, sim_segment_slot());
	return !r;
}

void sim_link_hear_last_word(unsigned int slot)
{
	struct sim_peer *peer = sim_peer_known(slot);
	uint8_t bytes[SIM_RING_LAST_MAX];
	uint32_t len, tag;

	if (!peer || !peer->in.ring || peer->reading)
		return;
	len = sim_ring_last(&peer->in, bytes, &tag);
	if (!len || (tag & SIM_CHANGES_TYPE) != SIM_PACKET_RC)
		return;
	peer->reading = true;
	deliver(slot, bytes, len, tag);
	peer->reading = false;
}

/* A packet to a process that is gone: we answer messages in place of its host. */
static void answer(const uint8_t *bytes, uint32_t len, uint32_t tag)
{
	if ((tag & SIM_CHANGES_TYPE) == SIM_PACKET_MAD)
		deliver(sim_self_slot(), bytes, len, tag);
}

/* All that it may not have read.  What it has read arrives twice, which protocols allow. */
static void answer_for(const struct sim_peer *gone)
{
	struct sim_ring_reader unread;
	const void *bytes;
	uint32_t len, tag;

	if (gone->out.ring) {
		sim_ring_reread(&unread, &gone->out, SIM_MAX_RECORD);
		while (unread.head < gone->out.tail &&
		       !sim_ring_next(&unread, &bytes, &len, &tag)) {
			answer(bytes, len, tag);
			sim_ring_release(&unread);
		}
	}
	for (const struct sim_waiting *waiting = gone->first; waiting; waiting = waiting->next)
		answer(waiting->bytes, waiting->len, waiting->tag);
}

/* Forget a process that is gone, after all that it sent was delivered. */
static void bury(struct sim_peer *peer, unsigned int slot)
{
	struct sim_peer gone = *peer;
	bool outer = receiving;

	peer->out.ring = NULL;
	peer->first = NULL;
	sim_peer_forget(peer);
	/* Packets that handlers send to it are lost. */
	peer->reading = true;
	if (sim_link_process_died)
		sim_link_process_died(slot);
	receiving = false;
	answer_for(&gone);
	receiving = outer;
	peer->reading = false;
	sim_peer_forget_outgoing(&gone);
}

/*
 * Deliver what a process sent, send what waits for it, and handle its death.  true: there is
 * more, maybe of another process that has its slot now.
 */
static bool attend(unsigned int slot)
{
	bool more = false, stale, gone;
	struct sim_peer *peer;
	int found;

	if (slot == sim_segment_slot() || slot >= SIM_MAX_SLOTS)
		return false;
	stale = sim_peer_is_stale(slot);
	if (stale)
		peer = sim_peer_known(slot);
	else if (sim_peer_get(slot, &peer) < 0)
		return false;
	if (peer->reading)
		return false;
	/* Before we read: a process that leaves meanwhile may have sent more, and notifies us. */
	gone = stale || !sim_peer_is_live(slot);
	found = sim_peer_find_ring(peer, slot);
	if (found == -EAGAIN) {
		/* If it is gone, its death is handled only after its packets. */
		try_again_later();
		return false;
	}
	if (!found) {
		sim_death_watch();
		more = read_ring(peer, slot);
	}
	stale = sim_peer_is_stale(slot);
	if (peer->first && !stale)
		send_on(peer, slot);
	if (!more && gone) {
		if (sim_left_take_over(slot, stale))
			return false;
		sim_link_hear_last_word(slot);
		bury(peer, slot);
		return stale;
	}
	return more;
}

/* Is it a slot of another process? */
static bool is_other(unsigned int slot)
{
	return sim_segment_joined() && slot != sim_segment_slot() && slot < SIM_MAX_SLOTS;
}

/* Attend to a process that is gone until nothing is left of it; `left': or whose slot is free. */
static void attend_to_dead(unsigned int slot, bool left)
{
	bool outer = receiving;

	receiving = false;
	while ((__builtin_expect(sim_peer_is_stale(slot), 0) || (left && !sim_peer_is_live(slot))) &&
	       attend(slot))
		;
	receiving = outer;
}

void sim_link_meet(unsigned int slot)
{
	if (is_other(slot))
		attend_to_dead(slot, false);
}

void sim_link_look_at(unsigned int slot)
{
	if (!is_other(slot))
		return;
	if (sim_segment_is_dead(slot))
		sim_segment_check(slot);
	/* Another process may have noticed it before. */
	attend_to_dead(slot, true);
}

unsigned int sim_link_answers_for(unsigned int slot)
{
	return is_other(slot) && !sim_peer_is_live(slot) ? sim_self_slot() : slot;
}

void sim_shm_receive(void)
{
	struct sim_slot *self = sim_segment_self();
	unsigned int watched = sim_doorbell_watched();
	uint64_t words, bits;
	bool more = false;

	if (!sim_shm_pending() || !sim_segment_joined())
		return;
	receiving = true;
	if (attend(watched)) {
		sim_segment_notify(sim_segment_slot(), watched);
		more = true;
	}
	for (words = atomic_exchange(&self->summary, 0); words; words &= words - 1) {
		unsigned int word = (unsigned int)__builtin_ctzll(words);

		if (word >= SIM_MAX_SLOTS / 64)
			break;
		for (bits = atomic_exchange(&self->inbox[word], 0); bits; bits &= bits - 1) {
			unsigned int slot = word * 64 + (unsigned int)__builtin_ctzll(bits);

			if (!attend(slot))
				continue;
			sim_segment_notify(sim_segment_slot(), slot);
			more = true;
		}
	}
	if (__builtin_expect(sim_changes_end_round(more), 0))
		sim_segment_notify(sim_segment_slot(), sim_segment_slot());
	receiving = false;
}
