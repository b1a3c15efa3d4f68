/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/trace_lines.c - see trace_lines.h. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "remote.h"
#include "trace_lines.h"

void sim_trace_state(const struct sim_node *node, const char *of, uint32_t number,
		     const char *state, const char *was)
{
	sim_trace_begin("state");
	sim_trace_text("node", node ? node->name : "");	/* an id without a device */
	sim_trace_text("of", of);
	sim_trace_number(!strcmp(of, "qp") ? "qpn" : "id", number);
	sim_trace_text("state", state);
	sim_trace_text("was", was);
	sim_trace_end();
}

void sim_trace_address(const struct sim_address *address, const char *action)
{
	const struct sim_device *device = address->port->device;
	const union sim_sockaddr *addr = &address->addr;
	char text[INET6_ADDRSTRLEN] = "?";
	bool told = sim_trace_used;

	inet_ntop(addr->sa.sa_family, addr->sa.sa_family == AF_INET ?
		  (const void *)&addr->in.sin_addr : (const void *)&addr->in6.sin6_addr,
		  text, sizeof(text));
	sim_trace_begin("address");
	sim_trace_text("node", device->node->name);
	sim_trace_text("action", action);
	sim_trace_text("device", device->vdev.device.name);
	sim_trace_text("transport", device->rules->name);
	sim_trace_text("address", text);
	sim_trace_end();
	sim_trace_used = told;
}

/* Other lines have the number of the process: this one has its name. */
static void trace_program(void)
{
	bool told = sim_trace_used;

	sim_trace_begin("process");
	sim_trace_text("program", program_invocation_short_name);
	sim_trace_end();
	sim_trace_used = told;
}

void sim_trace_fabric(void)
{
	if (sim_fabric_is_shared())
		trace_program();
	if (sim_remote)
		sim_remote->trace_begins();
	for (struct sim_node *node = sim_first_node(); node; node = node->next)
		for (unsigned int i = 0; i < node->num_addresses; i++)
			if (node->addresses[i].port)	/* that of a device */
				sim_trace_address(&node->addresses[i], "added");
}

/* ------------------------------------------------------------------------
 * Timers.
 */

static struct {
	void (*fn)(struct sim_timer *timer);
	sim_timer_describe_t describe;
} timers[SIM_TRACE_MAX_TIMERS];
static unsigned int num_timers;

void sim_trace_timers(void (*fn)(struct sim_timer *timer), sim_timer_describe_t describe)
{
	for (unsigned int i = 0; i < num_timers; i++)
		if (timers[i].fn == fn)
			return;
	if (num_timers == SIM_TRACE_MAX_TIMERS)
		return;
	timers[num_timers].fn = fn;
	timers[num_timers++].describe = describe;
}

/* All zero if nobody describes timers with this function. */
static struct sim_timer_text describe(const struct sim_timer *timer)
{
	struct sim_timer_text text = { .name = NULL };
	unsigned int i = 0;

	while (i < num_timers && timers[i].fn != timer->fn)
		i++;
	if (i < num_timers)
		timers[i].describe(timer, &text);
	return text;
}

const struct sim_node *sim_trace_timer_node(const struct sim_timer *timer)
{
	return describe(timer).node;
}

void sim_trace_timer(const struct sim_timer *timer, const char *action)
{
	struct sim_timer_text text;

	if (!sim_tracing())
		return;
	text = describe(timer);
	if (!text.name)
		return;
	sim_trace_begin("timer");
	sim_trace_text("node", text.node->name);
	sim_trace_number(text.of, text.number);
	sim_trace_text("timer", text.name);
	sim_trace_text("action", action);
	if (!strcmp(action, "armed"))
		sim_trace_number("until", timer->deadline);
	sim_trace_end();
}
