/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcap_data.c - the data of a message that another process sends: in the
 * packet, in its memory where that can be read, and the end of the fragment
 * before, since a packet of the wire may begin in one and end in the next.
 */
#include "config.h"

#include "nic/rc.h"
#include "pcap_internal.h"

static struct {
	uint32_t qpn, psn;		/* of the sender, and the message */
	uint32_t end;			/* offset behind it */
	uint32_t len;
	uint8_t bytes[SIM_PCAP_MAX_FRAME];
} tail;

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

static void keep_tail(const struct rc_header *h, const uint8_t *bytes, uint32_t len)
{
	if (len > sizeof(tail.bytes)) {
		bytes += len - sizeof(tail.bytes);
		len = sizeof(tail.bytes);
	}
	tail.qpn = h->src_qpn;
	tail.psn = h->psn;
	tail.len = len;
	memcpy(tail.bytes, bytes, len);
}

void sim_pcap_keep_foreign(const struct sim_packet *packet)
{
	struct rc_header h;
	uint32_t here;

	if (packet->len <= sizeof(h))
		return;
	memcpy(&h, packet->data, sizeof(h));
	here = (uint32_t)(packet->len - sizeof(h));
	if (h.flags & RC_F_REF || h.offset + here == h.length)
		return;
	keep_tail(&h, packet->data + sizeof(h), here);
	tail.end = h.offset + here;
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
		if (tail.qpn != h.src_qpn || tail.psn != h.psn || tail.end != h.offset ||
		    tail.len < h.offset - from)
			return false;
		memcpy(buffer, tail.bytes + tail.len - (h.offset - from), before);
		from += before;
	}
	if (from - h.offset > here || len - before > here - (from - h.offset))
		return false;
	memcpy(buffer + before, bytes + (from - h.offset), len - before);
	return true;
}
