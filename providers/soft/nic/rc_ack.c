/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/rc_ack.c - acknowledgements of messages.  They are cumulative, so of the packets that are
 * read together from a process's ring the last message of each QP is acknowledged only.
 */
#include "config.h"

#include <utlist.h>

#include "providers/soft/link/shape.h"
#include "rc_internal.h"

static struct sim_qp *owing;

void rc_ack_now(struct sim_qp *qp)
{
	struct rc_header h = { .psn = qp->ack_psn, .op = RC_ACK, .rkey = qp->ack_rkey };

	if (!qp->owes_ack)
		return;
	rc_ack_forget(qp);
	rc_send(qp, &h, NULL, 0, 0);
}

void rc_ack(struct sim_qp *qp, uint32_t psn, uint32_t rkey)
{
	if (!qp->owes_ack)
		LL_PREPEND2(owing, qp, next_owing);
	qp->owes_ack = true;
	qp->ack_psn = psn;
	if (rkey)
		qp->ack_rkey = rkey;
	/* Who looks at packets, or loses some, is to have one for each message. */
	if (!sim_link_reads_many || sim_tapped() || sim_shaping())
		rc_ack_now(qp);
}

void rc_ack_forget(struct sim_qp *qp)
{
	if (!qp->owes_ack)
		return;
	LL_DELETE2(owing, qp, next_owing);
	qp->owes_ack = false;
	qp->ack_rkey = 0;
}

void rc_ack_all(void)
{
	while (owing)
		rc_ack_now(owing);
}
