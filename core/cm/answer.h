/* SPDX-License-Identifier: BSD-2-Clause */
/* cm/answer.h - providers that do not answer a resolve in its time are given up. */
#ifndef POLYCM_CORE_CM_ANSWER_H
#define POLYCM_CORE_CM_ANSWER_H

#include "polycm/provider.h"

/* What its provider is asked, and answers with an event. */
enum polycm_question {
	POLYCM_NO_QUESTION,
	POLYCM_ASKED_ADDR,		/* resolve_addr() */
	POLYCM_ASKED_ROUTE,		/* resolve_route() */
};

struct polycm_asked {
	enum polycm_question open;	/* not answered yet */
	enum polycm_question given_up;	/* not answered in time: an answer is dropped */
	bool extended;			/* once more time was given */
	int timeout_ms;
	uint64_t until_ns;		/* given up then */
};

/*
 * Under the id's lock, before and after the operation that asks: `before' is
 * for the second, which gets what the operation returned.
 */
void polycm_ask(struct polycm_id *id, enum polycm_question question, struct polycm_asked *before);
void polycm_asked(struct polycm_id *id, const struct polycm_asked *before, int timeout_ms, int err);
/* Its provider posts an answer, under the channel's lock.  false: too late, it is dropped. */
bool polycm_answer_locked(struct polycm_id *id, enum polycm_question question);
/* It has posted one, whatever layers do with it. */
void polycm_answer(struct polycm_id *id, enum rdma_cm_event_type type);
/* Under the id's lock: the program has the answer; nothing is posted for the id any more. */
void polycm_answer_seen(struct polycm_id *id);
void polycm_answer_stop(struct polycm_id *id);
/* What a provider gets beyond its time; for tests. */
extern uint64_t polycm_answer_slack_ns;

#endif
