/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/show.c - what the trace tells of queue pairs. */
#include "config.h"

#include "providers/soft/fabric/trace_lines.h"
#include "qp.h"
#include "sq.h"

static const char *const state_names[] = {
	[IBV_QPS_RESET] = "RESET",
	[IBV_QPS_INIT] = "INIT",
	[IBV_QPS_RTR] = "RTR",
	[IBV_QPS_RTS] = "RTS",
	[IBV_QPS_SQD] = "SQD",
	[IBV_QPS_SQE] = "SQE",
	[IBV_QPS_ERR] = "ERR",
};

const char *nic_qp_state_name(uint8_t state)
{
	return state_names[state];
}

void nic_qp_set_state(struct sim_qp *qp, uint8_t state)
{
	if (sim_tracing() && qp->state != state)
		sim_trace_state(qp->port->device->node, "qp", nic_qpn(qp), state_names[state],
				state_names[qp->state]);
	qp->state = state;
}

static void describe_timer(const struct sim_timer *timer, struct sim_timer_text *ret_text)
{
	const struct sim_qp *qp = (const struct sim_qp *)((const char *)timer -
							  offsetof(struct sim_qp, timer));

	*ret_text = (struct sim_timer_text){
		.name = qp->rnr_wait ? "rnr" : "ack",
		.node = qp->port->device->node,
		.of = "qpn",
		.number = nic_qpn(qp),
	};
}

void nic_show_start(void)
{
	sim_trace_timers(rc_timer, describe_timer);
}
