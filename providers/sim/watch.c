/* SPDX-License-Identifier: BSD-2-Clause */
/* watch.c - packets on their way to the trace and the capture, each in one piece. */
#include "config.h"

#include "providers/sim/link/link_internal.h"
#include "pcap.h"
#include "trace.h"

bool sim_watched, sim_watch_told;

void sim_watch_update(void)
{
	sim_watched = sim_trace_on || sim_pcap_on;
}

void sim_watch_sent(const struct sim_frame *frame, unsigned int to_slot)
{
	static uint8_t bytes[SIM_LINK_MAX_PACKET];
	const struct sim_packet packet = {
		.type = frame->type,
		.from = frame->from,
		.to = frame->to,
		.from_slot = sim_self_slot(),
		.number = frame->number,
		.data = bytes,
		.len = sim_frame_len(frame),
	};

	sim_watch_told = true;
	sim_frame_copy(frame, bytes);
	if (sim_trace_on)
		sim_trace_packet("send", &packet);
	if (sim_pcap_on)
		sim_pcap_sent(&packet, to_slot);
}

void sim_watch_received(const struct sim_packet *packet)
{
	if (sim_trace_on)
		sim_trace_packet("recv", packet);
	if (sim_pcap_on)
		sim_pcap_received(packet);
}
