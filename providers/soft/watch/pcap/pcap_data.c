/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch/pcap/pcap_data.c - the data of a message that another process sends: in the
 * packet, in its memory where that can be read, and the end of the fragment
 * before, since a packet of the wire may begin in one and end in the next.
 * Fragments of several QPs come in turns, and so do a QP's requests and its
 * answers: each has an end of its own, until its message is complete.
 */
#include "config.h"

#include <stdlib.h>

#include "providers/soft/link/shm/shm.h"
#include "providers/soft/nic/objects.h"
#include "providers/soft/nic/rc_internal.h"
#include "pcap_internal.h"

#define BUCKETS 64u

struct tail {
	struct tail *next;		/* in its bucket */
	uint64_t key;			/* of the sender: port, QP, whether it answers */
	uint32_t psn;			/* of the message */
	uint32_t end;			/* offset behind it */
	uint32_t len;
	uint8_t bytes[SIM_PCAP_MAX_FRAME];
};

static struct tail *tails[BUCKETS];

static uint8_t buffer[SIM_PCAP_MAX_FRAME];

/* Out of the sender's memory, which the packet lists. */
static bool read_parts(const struct sim_packet *packet, const struct rc_header *h, uint32_t from,
		       uint32_t len)
{
	const uint8_t *list = packet->data + sizeof(*h);
	struct iovec parts[NIC_MAX_SGE], to = { .iov_base = buffer, .iov_len = len };
	uint64_t skip = from, left = len;
	unsigned int num = 0;

	if (h->parts > NIC_MAX_SGE || packet->len != sizeof(*h) + h->parts * sizeof(struct rc_part))
		return false;
	for (unsigned int i = 0; i < h->parts && left; i++) {
		struct rc_part part;
		uint64_t n;

		memcpy(&part, list + i * sizeof(part), sizeof(part));
		if (part.len <= skip) {
			skip -= part.len;
			continue;
		}
		n = part.len - skip < left ? part.len - skip : left;
		parts[num++] = (struct iovec){ (void *)(uintptr_t)(part.addr + skip), n };
		skip = 0;
		left -= n;
	}
	return !left && !sim_link_pull(packet->from_slot, parts, num, &to, 1, len);
}

static uint64_t key_of(const struct sim_packet *packet, const struct rc_header *h)
{
	return (uint64_t)packet->from->fabric_index << 32 | (uint64_t)h->src_qpn << 1 |
	       (h->op >= RC_ACK);
}

/* Where it is, or is to be. */
static struct tail **place_of(uint64_t key)
{
	struct tail **at = &tails[(key ^ key >> 8) % BUCKETS];

	while (*at && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

static void drop(struct tail **at)
{
	struct tail *tail = *at;

	*at = tail->next;
	free(tail);
}

void sim_pcap_data_forget(void)
{
	for (unsigned int i = 0; i < BUCKETS; i++)
		while (tails[i])
			drop(&tails[i]);
}

void sim_pcap_keep_foreign(const struct sim_packet *packet)
{
	const uint8_t *bytes = packet->data + sizeof(struct rc_header);
	struct rc_header h;
	struct tail **at;
	uint32_t here;

	if (packet->len <= sizeof(h))
		return;
	memcpy(&h, packet->data, sizeof(h));
	here = (uint32_t)(packet->len - sizeof(h));
	if (h.flags & RC_F_REF || (!h.offset && here == h.length))
		return;
	at = place_of(key_of(packet, &h));
	if (h.offset + here == h.length) {
		if (*at)
			drop(at);
		return;
	}
	if (!*at)
		*at = calloc(1, sizeof(**at));
	if (!*at) {
		sim_pcap_no_memory();
		return;
	}
	(*at)->key = key_of(packet, &h);
	(*at)->psn = h.psn;
	(*at)->end = h.offset + here;
	(*at)->len = here < sizeof((*at)->bytes) ? here : sizeof((*at)->bytes);
	memcpy((*at)->bytes, bytes + (here - (*at)->len), (*at)->len);
}

/* The bytes from `from' up to the packet's, of which the fragment before had the last. */
static bool take_tail(const struct sim_packet *packet, const struct rc_header *h, uint32_t from,
		      uint32_t len)
{
	const struct tail *tail = *place_of(key_of(packet, h));
	uint32_t back = h->offset - from;

	if (!tail || tail->psn != h->psn || tail->end != h->offset || tail->len < back)
		return false;
	memcpy(buffer, tail->bytes + (tail->len - back), len);
	return true;
}

bool sim_pcap_foreign_data(const struct sim_packet *packet, uint32_t from, uint32_t len,
			   struct iovec *ret_data)
{
	const uint8_t *bytes = packet->data + sizeof(struct rc_header);
	uint32_t here = (uint32_t)(packet->len - sizeof(struct rc_header)), before = 0;
	struct rc_header h;

	memcpy(&h, packet->data, sizeof(h));
	*ret_data = (struct iovec){ .iov_base = buffer, .iov_len = len };
	if (len > sizeof(buffer))
		return false;
	if (h.flags & RC_F_REF)
		return read_parts(packet, &h, from, len);
	if (from < h.offset) {
		before = h.offset - from < len ? h.offset - from : len;
		if (!take_tail(packet, &h, from, before))
			return false;
		from += before;
	}
	if (from - h.offset > here || len - before > here - (from - h.offset))
		return false;
	memcpy(buffer + before, bytes + (from - h.offset), len - before);
	return true;
}
