/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/answer.c - providers that do not answer resolve_addr() or
 * resolve_route(): the program has a time-out, and gets its event.
 *
 * A provider has its own timer for that.  Only where it did not answer while
 * it was asked is there one of the core's, later than the provider's, on the
 * clock that is installed or on the core's thread for timers.  Nothing of that
 * is done for the kernel, nor for a provider that owns time: it may let it
 * stand still, as the simulator does on a frozen node.
 *
 * id->asked is the channel's lock's; the timer's function takes no other.
 */
#include "config.h"
#include "id_internal.h"

#include <errno.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/plugin/op.h"

#define NS_PER_MS UINT64_C(1000000)

uint64_t polycm_answer_slack_ns = 1000 * NS_PER_MS;

static const struct {
	const char *operation;
	const char *good;
	enum rdma_cm_event_type bad;
} questions[] = {
	[POLYCM_ASKED_ADDR] = { "resolve_addr", "ADDR_RESOLVED", RDMA_CM_EVENT_ADDR_ERROR },
	[POLYCM_ASKED_ROUTE] = { "resolve_route", "ROUTE_RESOLVED", RDMA_CM_EVENT_ROUTE_ERROR },
};

static bool is_watched(const struct polycm_module *module)
{
	return !polycm_module_is_kernel(module) && !module->owns_clock;
}

/*
 * Subnet administrators may take a tenth more than they were given, and
 * threads may come late to a processor.
 */
static uint64_t slack_ns(int timeout_ms)
{
	return polycm_answer_slack_ns + (uint64_t)timeout_ms * NS_PER_MS / 4;
}

static uint64_t end_of(int timeout_ms)
{
	/* As for the kernel: a negative time-out is none. */
	if (timeout_ms < 0)
		return UINT64_MAX;
	return polycm_now_ns() + (uint64_t)timeout_ms * NS_PER_MS + slack_ns(timeout_ms);
}

/* ------------------------------------------------------------------------
 * The time is over.
 */

/*
 * If the timer itself came late, the process stood still (in a debugger, or
 * stopped), and so did the provider.
 */
static bool extend_locked(struct polycm_id *id, uint64_t now)
{
	uint64_t more = slack_ns(id->asked.timeout_ms);

	if (id->asked.extended || now - id->asked.until_ns <= more / 2)
		return false;
	id->asked.extended = true;
	id->asked.until_ns = now + more;
	return !polycm_timer_again(id->answer_timer, id->asked.until_ns);
}

/* Which question is given up, or none. */
static enum polycm_question give_up(struct polycm_id *id, struct polycm_module **ret_module,
				    int *ret_timeout_ms)
{
	enum polycm_question question = POLYCM_NO_QUESTION;
	struct polycm_channel *chan = polycm_channel_lock(id);
	uint64_t now = polycm_now_ns();

	if (chan && !id->closing && now >= id->asked.until_ns && !extend_locked(id, now)) {
		question = id->asked.open;
		id->asked.open = POLYCM_NO_QUESTION;
		id->asked.given_up = question;
	}
	*ret_module = id->module;
	*ret_timeout_ms = id->asked.timeout_ms;
	polycm_channel_unlock(chan);
	return question;
}

static void overdue(void *arg)
{
	struct polycm_event event = {
		.size = sizeof(event), .status = -ETIMEDOUT,
		.why = "the provider did not answer in time",
	};
	struct polycm_id *id = arg;
	struct polycm_module *module;
	enum polycm_question question;
	int timeout_ms;

	question = give_up(id, &module, &timeout_ms);
	if (!question)
		return;
	event.type = questions[question].bad;
	polycm_misuse(module, questions[question].operation, "neither %s nor %s was posted within "
		      "timeout_ms, %d: the program gets %s with -ETIMEDOUT",
		      questions[question].good, polycm_event_name(event.type), timeout_ms,
		      polycm_event_name(event.type));
	(void)polycm_post(id, &event, 0, POLYCM_BY_CORE);
}

static void arm(struct polycm_id *id, uint64_t until_ns)
{
	int err = polycm_timer_start(until_ns, overdue, id, &id->answer_timer);

	/* The operation is under way, and the provider has a timer of its own as a rule. */
	if (err)
		polycm_log_id(POLYCM_LOG_WARN, id, "no timer to see whether the provider answers in "
			      "time: %s", strerror(-err));
}

/* ------------------------------------------------------------------------
 * Asking.
 */

void polycm_answer_stop(struct polycm_id *id)
{
	struct polycm_timer *timer = __atomic_load_n(&id->answer_timer, __ATOMIC_RELAXED);

	if (!timer)
		return;
	polycm_timer_cancel(timer);
	__atomic_store_n(&id->answer_timer, NULL, __ATOMIC_RELAXED);
}

void polycm_ask(struct polycm_id *id, enum polycm_question question, struct polycm_asked *before)
{
	bool watched = is_watched(id->module);
	struct polycm_channel *chan;

	if (!watched && !id->watched)
		return;
	id->watched = true;
	chan = polycm_channel_lock_held(id);
	*before = id->asked;
	id->asked = (struct polycm_asked){ .open = question, .until_ns = UINT64_MAX };
	if (!watched)
		id->asked.open = POLYCM_NO_QUESTION;
	polycm_channel_unlock(chan);
}

void polycm_asked(struct polycm_id *id, const struct polycm_asked *before, int timeout_ms, int err)
{
	struct polycm_channel *chan;
	uint64_t until_ns;

	if (!id->watched)
		return;
	until_ns = end_of(timeout_ms);
	chan = polycm_channel_lock_held(id);
	if (!id->asked.open) {
		until_ns = UINT64_MAX;
	} else if (err) {
		/* It may still be busy with what it was asked before. */
		id->asked = *before;
		until_ns = before->open ? before->until_ns : UINT64_MAX;
	} else {
		id->asked.timeout_ms = timeout_ms;
		id->asked.until_ns = until_ns;
	}
	polycm_channel_unlock(chan);
	polycm_answer_stop(id);
	if (until_ns != UINT64_MAX)
		arm(id, until_ns);
}

/* ------------------------------------------------------------------------
 * Answers.
 */

bool polycm_answer_locked(struct polycm_id *id, enum polycm_question question)
{
	if (__builtin_expect(id->asked.given_up == question, 0))
		return false;
	if (id->asked.open == question)
		id->asked.open = POLYCM_NO_QUESTION;
	return true;
}

void polycm_answer(struct polycm_id *id, enum rdma_cm_event_type type)
{
	enum polycm_question question = polycm_event_question(type);
	struct polycm_channel *chan;

	if (!question)
		return;
	chan = polycm_channel_lock(id);
	(void)polycm_answer_locked(id, question);
	polycm_channel_unlock(chan);
}

void polycm_answer_seen(struct polycm_id *id)
{
	struct polycm_channel *chan = polycm_channel_lock_held(id);
	bool open = id->asked.open;

	polycm_channel_unlock(chan);
	if (!open)
		polycm_answer_stop(id);
}
