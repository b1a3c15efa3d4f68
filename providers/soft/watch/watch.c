/* SPDX-License-Identifier: BSD-2-Clause */
/* watch/watch.c - see watch.h. */
#include "config.h"

#include "providers/soft/fabric/trace_lines.h"
#include "providers/soft/link/tap.h"
#include "watch.h"

static void sent(const struct sim_packet *packet, unsigned int to_slot)
{
	(void)to_slot;
	if (sim_tracing())
		sim_trace_packet("send", packet);
}

static void received(const struct sim_packet *packet)
{
	if (sim_tracing())
		sim_trace_packet("recv", packet);
}

static struct sim_tap tap = { .sent = sent, .received = received };

int sim_trace_open(const char *path)
{
	int r = sim_trace_start(path);

	if (r < 0)
		return r;
	sim_tap_add(&tap);
	sim_engine_hooks.timer = sim_trace_timer;
	sim_trace_fabric();
	return sim_trace_error();
}

void sim_trace_close(void)
{
	sim_engine_hooks.timer = NULL;
	sim_tap_remove(&tap);
	sim_trace_stop();
}
