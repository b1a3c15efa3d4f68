/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/rc_ack.c - acknowledgements of messages.  They are cumulative, so of the packets that are
 * read together from a process's ring the last message of each QP is acknowledged only.
 *
 * Many programs that poll answer each message before they poll again.  For one that does, the
 * acknowledgement waits for its answer, and goes in the same packet; or until the next poll
 * (sim_owe()).  If the process dies before that, the peer has it nevertheless
 * (sim_link_last_word()).
 */
#include "config.h"

#include <utlist.h>

#include "providers/soft/link/shape.h"
#include "providers/soft/link/shm/shm.h"
#include "providers/soft/shm/visit.h"
#include "providers/soft/wire/rc_short.h"
#include "rc_internal.h"

#define ANSWERS 4u		/* in a row that make it likely that the next message has one, too */

static struct sim_qp *owing;

static void settled(struct sim_qp *qp)
{
	LL_DELETE2(owing, qp, next_owing);
	qp->owes_ack = false;
	qp->ack_rkey = 0;
	if (!owing)
		sim_owe(false);
}

void rc_ack_sent(struct sim_qp *qp)
{
	if (qp->has_last_word)
		(void)sim_link_last_word(qp->port, qp->peer, qp->peer_slot, NULL, 0);
	qp->has_last_word = false;
}

void rc_ack_now(struct sim_qp *qp)
{
	struct rc_header h = { .psn = qp->ack_psn, .op = RC_ACK, .rkey = qp->ack_rkey };

	if (!qp->owes_ack)
		return;
	settled(qp);
	rc_send(qp, &h, NULL, 0, 0);
	rc_ack_sent(qp);
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

void rc_ack_end(struct sim_qp *qp)
{
	rc_ack_now(qp);
	rc_ack_sent(qp);
	qp->awaits_answer = false;
	qp->answers = 0;
}

void rc_ack_all(void)
{
	while (owing)
		rc_ack_now(owing);
}

/* Only in a program's poll that is followed by others. */
static bool may_wait(const struct sim_qp *qp)
{
	return qp->answers >= ANSWERS && sim_poll_turn() && !qp->ack_rkey &&
	       qp->type == IBV_QPT_RC && !sim_slot_is_tapped(qp->peer_slot);
}

static bool wait_for_answer(struct sim_qp *qp)
{
	const struct rc_short ack = {
		.dst_qpn = qp->attr.dest_qp_num,
		.src_qpn = nic_qpn(qp),
		.psn = qp->ack_psn,
		.op = RC_ACK | RC_SHORT,
	};

	if (!sim_link_last_word(qp->port, qp->peer, qp->peer_slot, &ack, sizeof(ack)))
		return false;
	qp->has_last_word = true;
	qp->last_word_psn = qp->ack_psn;
	qp->read_at = 0;
	sim_owe(true);
	return true;
}

void rc_ack_read(void)
{
	struct sim_qp *qp = owing;

	/* One at most waits, for there is one last word. */
	if (!qp || qp->next_owing) {
		rc_ack_all();
		return;
	}
	if (qp->has_last_word && qp->last_word_psn == qp->ack_psn)
		return;		/* it waits, and another ring was read */
	if (qp->awaits_answer)
		qp->answers = 0;
	qp->awaits_answer = true;
	if (may_wait(qp) && wait_for_answer(qp))
		return;
	qp->read_at = sim_poll_turn();
	rc_ack_all();
}

uint32_t rc_ack_with(struct sim_qp *qp)
{
	if (qp->awaits_answer) {
		qp->awaits_answer = false;
		if (!qp->has_last_word && (!qp->read_at || qp->read_at != sim_poll_turn()))
			qp->answers = 0;
		else if (qp->answers < ANSWERS)
			qp->answers++;
	}
	if (!qp->owes_ack || qp->ack_rkey)
		return 0;
	settled(qp);
	return RC_ACKED | qp->ack_psn;
}
