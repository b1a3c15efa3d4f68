/* SPDX-License-Identifier: BSD-2-Clause */
/* cm/iwcm_segment.c - the segments of a stream on the link. */
#include "config.h"

#include "providers/soft/link/link.h"
#include "iwcm.h"

int iw_segment_send(struct sim_port *from, struct sim_port *to, unsigned int slot,
		    const struct segment *segment)
{
	struct iovec payload = { .iov_base = (void *)(uintptr_t)segment->data,
				 .iov_len = segment->len };
	uint8_t header[SEG_SYN_LEN];
	size_t header_len = iw_segment_header(segment, header);

	return sim_link_send(from, to, slot, SIM_PACKET_STREAM, header, header_len, &payload,
			     segment->len ? 1 : 0, segment->len);
}
