/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/tcp.c - TCP on links that lose packets: on iWARP, and for connections between programs,
 * nothing is lost for the layers above, but late.  A lost segment is sent again after the
 * retransmission time-out, which doubles each time, and later segments wait for it.  TCP hides
 * copies and restores the order.  A segment that arrives at a port that is down counts as lost
 * when it was sent.
 *
 * As in Linux the first time-out is 200 ms, or a second while a connection is opened.  After 15
 * repetitions, or 6 of a SYN, the connection is given up: its sender gets an error, and its
 * segments are lost.  On iWARP the connecting side repeats SYNs.  A RST is never repeated.
 */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <utlist.h>

#include "providers/soft/wire/rc.h"
#include "providers/soft/wire/segment.h"
#include "providers/soft/wire/tcp.h"
#include "block.h"
#include "left.h"
#include "shape_internal.h"
#include "tap.h"

#define FIRST_TIMEOUT SIM_MS(200)	/* TCP_RTO_MIN, above any round trip here */
#define OPENING_TIMEOUT SIM_MS(1000)
#define LONGEST_TIMEOUT SIM_MS(120000)
#define RETRIES 15u			/* net.ipv4.tcp_retries2 */
#define SYN_RETRIES 6u			/* net.ipv4.tcp_syn_retries */
#define BUCKETS 64u			/* of senders, which are few: those that lost something */
#define STREAM_KEY (UINT64_C(1) << 32)	/* the number of the queue pair is not known yet */
#define PROGRAM_KEY (UINT64_C(1) << 33)	/* a connection of programs, and its direction */
#define ACK_KEY (UINT64_C(1) << 34)	/* the ACK that ends its opening, for which data does not wait */

/* A segment that was lost, or that waits for a lost one. */
struct segment_kept {
	struct segment_kept *next;
	struct sim_frame frame;		/* its header: data, no payload */
	struct sim_message message;
	struct sim_fate fate;		/* where it is not lost */
	unsigned int slot;
	bool lost;
	uint64_t announced;		/* of sim_left_announce() */
	uint8_t data[];
};

/* One direction of a connection, while a loss has an effect on it. */
struct sender {
	struct sim_timer timer;		/* first */
	struct sender *next;		/* in its bucket */
	const struct sim_port *from, *to;
	uint64_t connection;
	struct segment_kept *first, **end;	/* the first one is lost */
	struct sim_in_order arrived;	/* when all before have arrived */
	unsigned int retries;
	bool stuck;			/* the first one waits for memory to leave */
};

_Static_assert(sizeof(struct sender) <= SIM_BLOCK_SIZE, "a reserved block holds one");

bool sim_tcp_on;

static struct sender *buckets[BUCKETS];
static unsigned int num_senders, num_kept;

/* ------------------------------------------------------------------------
 * Which packets.
 */

static uint32_t word(const struct sim_frame *frame, size_t offset)
{
	uint32_t value = 0;

	if (frame->header_len >= offset + sizeof(value))
		memcpy(&value, (const char *)frame->header + offset, sizeof(value));
	return value;
}

/* MPA frames and data are one stream once the queue pair is known. */
static uint64_t stream_connection(const struct sim_frame *frame)
{
	const uint8_t *header = frame->header;
	uint32_t qpn;

	if (frame->header_len < SEG_HEADER || header[0] == SEG_SYN || header[0] == SEG_RST)
		return 0;
	qpn = (uint32_t)header[13] << 16 | (uint32_t)header[14] << 8 | header[15];
	return qpn ? qpn : STREAM_KEY | word(frame, SEG_SRC_ID);
}

static uint64_t program_connection(const struct sim_frame *frame)
{
	struct tcp_header h;

	if (!sim_frame_read(frame, 0, &h, sizeof(h)) || h.kind == POLYCM_TCP_RST)
		return 0;
	return PROGRAM_KEY | (uint64_t)!!h.to_server << 32 | h.connection |
	       (h.kind == POLYCM_TCP_ACK ? ACK_KEY : 0);
}

uint64_t sim_tcp_connection(const struct sim_frame *frame)
{
	if (frame->type == SIM_PACKET_STREAM)
		return stream_connection(frame);
	if (frame->type == SIM_PACKET_TCP)
		return program_connection(frame);
	if (frame->type == SIM_PACKET_RC && frame->from->device->rules->protocol == POLYCM_PROTO_MPA)
		return word(frame, offsetof(struct rc_header, src_qpn));
	return 0;
}

/* A SYN, or what answers it. */
static bool is_opening(const struct sim_frame *frame)
{
	uint32_t kind;

	if (frame->type != SIM_PACKET_TCP)
		return frame->type == SIM_PACKET_STREAM &&
		       *(const uint8_t *)frame->header == SEG_SYN_ACK;
	kind = word(frame, offsetof(struct tcp_header, kind));
	return kind <= POLYCM_TCP_ACK || kind == POLYCM_TCP_REFUSED;
}

static unsigned int most_retries(const struct sim_frame *frame)
{
	return frame->type == SIM_PACKET_TCP && is_opening(frame) ? SYN_RETRIES : RETRIES;
}

/* ------------------------------------------------------------------------
 * Senders.
 */

static void withdraw(struct segment_kept *kept)
{
	sim_left_withdraw(&kept->frame, kept->slot, kept->announced);
	kept->announced = 0;
}

/* The kernel sends again whether or not the process lives, and sooner or later it arrives. */
static void announce(const struct sender *sender, struct segment_kept *kept)
{
	withdraw(kept);
	kept->announced = sim_left_announce(&kept->frame, kept->slot, SIM_LEFT_IN_ORDER,
					    sender->timer.deadline, kept->message.wire_length);
}

static void announce_all(const struct sender *sender)
{
	for (struct segment_kept *kept = sender->first; kept; kept = kept->next)
		announce(sender, kept);
}

static void drop_first(struct sender *sender)
{
	struct segment_kept *kept = sender->first;

	withdraw(kept);
	sender->first = kept->next;
	if (!sender->first)
		sender->end = &sender->first;
	sim_block_put(kept);
	num_kept--;
}

static struct sender **bucket_of(const struct sim_port *from, const struct sim_port *to,
				 uint64_t connection)
{
	uint64_t key = connection ^ (uint64_t)from->fabric_index << 16 ^
		       (uint64_t)to->fabric_index << 24;

	return &buckets[(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % BUCKETS];
}

static void forget(struct sender *sender)
{
	struct sender **bucket = bucket_of(sender->from, sender->to, sender->connection);

	while (sender->first)
		drop_first(sender);
	sim_timer_disarm(&sender->timer);
	LL_DELETE(*bucket, sender);
	sim_tcp_on = --num_senders;
	sim_block_put(sender);
}

static uint64_t timeout(const struct sender *sender)
{
	uint64_t first = is_opening(&sender->first->frame) ? OPENING_TIMEOUT : FIRST_TIMEOUT;
	uint64_t t = first << sender->retries;

	return t < LONGEST_TIMEOUT ? t : LONGEST_TIMEOUT;
}

/* What happens to it, by rules, link and ports? */
static void decide(const struct sim_frame *frame, const struct sim_message *message,
		   struct sim_fate *fate)
{
	sim_shape_decide(sim_flow_of(frame), frame, message, fate);
	if (!sim_port_carries(frame->from) || !sim_port_carries(frame->to)) {
		fate->lost = true;
		fate->rejected = false;
	}
	fate->reordered = false;
	fate->copies = 0;
}

static int launch(struct sender *sender, struct segment_kept *kept, unsigned int repeats)
{
	sender->arrived.repeats = repeats;
	return sim_shape_launch(sim_flow_of(&kept->frame), &kept->frame, kept->slot,
				kept->message.wire_length, &kept->fate, &sender->arrived);
}

/*
 * The lost segment leaves, and those that waited for it, up to the next lost one.  If this process is
 * killed meanwhile a segment is lost, rather than delivered twice.
 */
static void go_on(struct sender *sender)
{
	uint64_t latency;

	do {
		withdraw(sender->first);
		if (launch(sender, sender->first, sender->retries) == -ENOMEM) {
			sender->stuck = true;
			sim_timer_arm(&sender->timer, sim_now() + SIM_LINK_AGAIN);
			announce(sender, sender->first);
			return;
		}
		sender->retries = 0;
		latency = sim_flow_of(&sender->first->frame)->link.latency_ns;
		drop_first(sender);
	} while (sender->first && !sender->first->lost);
	/* The next lost one is noticed with the answer; if there is none, the sender is forgotten. */
	sim_timer_arm(&sender->timer, sender->arrived.at + (sender->first ? latency : 0));
}

/* What the sender is told: a RST of the stream, or in the segment's own words. */
static void write_end(const struct segment_kept *kept, uint8_t *bytes)
{
	const uint32_t gives_up = POLYCM_TCP_GIVES_UP;

	if (kept->frame.type == SIM_PACKET_TCP) {
		memcpy(bytes, kept->data, sizeof(struct tcp_header));
		memcpy(bytes + offsetof(struct tcp_header, kind), &gives_up, sizeof(gives_up));
		return;
	}
	bytes[0] = SEG_RST;
	bytes[1] = SEG_VERSION;
	memcpy(bytes + SEG_DST_ID, kept->data + SEG_SRC_ID, 4);
	memcpy(bytes + SEG_SRC_ID, kept->data + SEG_DST_ID, 4);
}

/*
 * The owner of the socket gets an error, and the peer nothing.  A queue pair counts the
 * repetitions of its data itself, and who sent the ACK that ends an opening repeats nothing: its peer
 * repeats the SYN-ACK.
 */
static bool is_told(const struct sim_frame *frame)
{
	return frame->type == SIM_PACKET_STREAM ||
	       (frame->type == SIM_PACKET_TCP &&
		word(frame, offsetof(struct tcp_header, kind)) != POLYCM_TCP_ACK);
}

static void give_up(struct sender *sender)
{
	const struct segment_kept *kept = sender->first;
	const bool tells = is_told(&kept->frame);
	uint8_t end[sizeof(struct tcp_header)] = { 0 };
	struct sim_packet packet = {
		.type = kept->frame.type,
		.from = kept->frame.to,
		.to = kept->frame.from,
		.from_slot = kept->slot,
		.data = end,
		.len = kept->frame.type == SIM_PACKET_TCP ? sizeof(end) : SEG_HEADER,
	};

	_Static_assert(SEG_HEADER <= sizeof(end), "both fit");
	sim_core->log(POLYCM_LOG_INFO, NULL, "a TCP connection of node %s gives up",
		      packet.to->device->node->name);
	if (tells)
		write_end(kept, end);
	forget(sender);
	if (tells)
		sim_link_tell(&packet);
}

static void fire(struct sim_timer *timer)
{
	struct sender *sender = (struct sender *)timer;
	struct segment_kept *kept = sender->first;

	if (!kept) {
		forget(sender);
		return;
	}
	if (sender->stuck) {
		sender->stuck = false;
		go_on(sender);
		return;
	}
	if (sender->retries == most_retries(&kept->frame)) {
		give_up(sender);
		return;
	}
	sender->retries++;
	/* What TCP does below a stream of RDMA is not in a trace. */
	if (sim_tapped() && kept->frame.type == SIM_PACKET_TCP && sim_port_carries(kept->frame.from))
		sim_tap_sent(&kept->frame, kept->slot);
	decide(&kept->frame, &kept->message, &kept->fate);
	if (!kept->fate.lost || kept->fate.rejected)
		go_on(sender);
	else
		sim_timer_arm(timer, sim_now() + timeout(sender));
	announce_all(sender);
}

static struct sender *find_sender(const struct sim_frame *frame, uint64_t connection)
{
	struct sender *sender = *bucket_of(frame->from, frame->to, connection);

	while (sender && (sender->from != frame->from || sender->to != frame->to ||
			  sender->connection != connection))
		sender = sender->next;
	return sender;
}

/* NULL: no memory, not even reserved. */
static struct sender *get_sender(const struct sim_frame *frame, uint64_t connection)
{
	struct sender *sender = find_sender(frame, connection), **bucket;

	if (sender)
		return sender;
	sender = sim_block_get(sizeof(*sender), frame->type);
	if (!sender)
		return NULL;
	*sender = (struct sender){
		.from = frame->from, .to = frame->to, .connection = connection,
		.end = &sender->first,
	};
	sim_timer_init(&sender->timer, fire);
	bucket = bucket_of(frame->from, frame->to, connection);
	LL_PREPEND(*bucket, sender);
	num_senders++;
	sim_tcp_on = true;
	return sender;
}

/* Both are of this process, which numbers packets in their order. */
static bool is_before(const struct segment_kept *kept, const struct sim_frame *frame)
{
	return (int32_t)((uint32_t)kept->frame.number - (uint32_t)frame->number) < 0;
}

/* Its place, before all that were sent later. */
static struct segment_kept **place_of(struct sender *sender, const struct sim_frame *frame)
{
	struct segment_kept **at = &sender->first;

	while (*at && is_before(*at, frame))
		at = &(*at)->next;
	return at;
}

static struct segment_kept *keep(struct sender *sender, struct segment_kept **at,
				 const struct sim_frame *frame, unsigned int slot,
				 const struct sim_message *message, const struct sim_fate *fate)
{
	struct segment_kept *kept = sim_block_get(sizeof(*kept) + sim_frame_len(frame), frame->type);

	if (!kept) {
		if (!sim_timer_armed(&sender->timer))
			forget(sender);
		return NULL;
	}
	kept->next = *at;
	sim_frame_copy(frame, kept->data);
	kept->frame = *frame;
	kept->frame.header = kept->data;
	kept->frame.header_len = sim_frame_len(frame);
	kept->frame.payload_parts = 0;
	kept->frame.payload_len = 0;
	kept->message = *message;
	kept->fate = *fate;
	kept->slot = slot;
	kept->lost = fate->lost && !fate->rejected;
	kept->announced = 0;
	*at = kept;
	if (!kept->next)
		sender->end = &kept->next;
	num_kept++;
	return kept;
}

int sim_tcp_send(const struct sim_frame *frame, unsigned int slot,
		 const struct sim_message *message, uint64_t connection)
{
	struct sender *sender = find_sender(frame, connection);
	struct sim_flow *flow = sim_flow_of(frame);
	struct sim_fate fate;
	struct segment_kept *kept;
	bool lost;
	int r;

	decide(frame, message, &fate);
	lost = fate.lost && !fate.rejected;
	if (!sender && !lost && !fate.delay)
		return sim_shape_launch(flow, frame, slot, message->wire_length, &fate, NULL);
	if (!sender)
		sender = get_sender(frame, connection);
	if (!sender)
		return -ENOMEM;
	if (sender->first || lost) {
		kept = keep(sender, sender->end, frame, slot, message, &fate);
		if (!kept)
			return -ENOMEM;
		if (!sender->first->next) {
			sender->retries = 0;
			sender->stuck = false;
			sim_timer_arm(&sender->timer, sim_now() + timeout(sender));
		}
		announce(sender, kept);
		return 0;
	}
	sender->arrived.repeats = 0;
	r = sim_shape_launch(flow, frame, slot, message->wire_length, &fate, &sender->arrived);
	sim_timer_arm(&sender->timer, sender->arrived.at);
	return r;
}

/*
 * The first one is sent again after its time-out, but not before all that left after it has
 * arrived, so that it overtakes nothing.
 */
static void miss(struct sender *sender, uint64_t sent, unsigned int repeats)
{
	const struct sim_flow *flow = sim_flow_of(&sender->first->frame);
	uint64_t at;

	sender->retries = repeats;
	sender->stuck = false;
	at = sent + timeout(sender);
	if (at < sender->arrived.at)
		at = sender->arrived.at;
	if (at < flow->last)
		at = flow->last;
	sim_timer_arm(&sender->timer, at);
}

int sim_tcp_catch(const struct sim_frame *frame, unsigned int slot, uint64_t sent,
		   unsigned int repeats)
{
	struct sim_fate fate = { .lost = !sim_port_carries(frame->to) };
	uint64_t connection = sim_tcp_connection(frame);
	struct segment_kept *kept;
	struct sim_message message;
	struct sender *sender;

	if (!connection)
		return 0;
	sim_message_of(frame, &message);
	sender = fate.lost ? get_sender(frame, connection) : find_sender(frame, connection);
	if (!sender)
		return fate.lost ? -ENOMEM : 0;
	if (!fate.lost && (!sender->first || !is_before(sender->first, frame)))
		return 0;
	kept = keep(sender, place_of(sender, frame), frame, slot, &message, &fate);
	if (!kept)
		return -ENOMEM;
	if (sender->first == kept) {
		miss(sender, sent, repeats);
		announce_all(sender);
	} else {
		announce(sender, kept);
	}
	return 1;
}

unsigned int sim_tcp_waiting(void)
{
	return num_kept;
}

/* Other processes still get what was announced to them. */
void sim_tcp_drop_all(void)
{
	for (unsigned int i = 0; i < BUCKETS; i++)
		while (buckets[i]) {
			for (struct segment_kept *kept = buckets[i]->first; kept; kept = kept->next)
				kept->announced = 0;
			forget(buckets[i]);
		}
}
