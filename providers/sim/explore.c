/* SPDX-License-Identifier: BSD-2-Clause */
/* explore.c - see explore.h: deciding, counting, and telling what was decided. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cm/mad.h"
#include "explore.h"
#include "fault_internal.h"
#include "trace.h"

#define MAX_REASONS 32u
#define MEMBERS(members) ((unsigned int)(sizeof(members) / sizeof((members)[0])))

/* What may happen; chances are of each message. */
struct bounds {
	double loss, duplication, reordering, lateness, rejection;
	uint64_t delay;			/* the longest */
	unsigned int most;		/* faults in a run */
	config_setting_t *messages, *reasons, *faults;
};

/* One that is given. */
struct given {
	struct given *next;
	unsigned int fabric, nth;
	enum sim_what what;
	enum polycm_sim_action action;
	uint16_t reason;
	uint64_t delay;
	char from[sizeof(((struct sim_node *)NULL)->name)];
};

bool sim_exploring;

static struct bounds bounds = {
	.loss = 0.1,
	.duplication = 0.05,
	.reordering = 0.05,
	.lateness = 0.1,
	.delay = SIM_MS(6000),		/* longer than any CM's time-out for one message */
	.most = 8,
};
static struct given *givens;
static uint64_t mask = CM_MASK;
/* Of a REJ: what Linux's connection managers and their programs say to a REQ. */
static uint16_t reasons[MAX_REASONS] = {
	CM_REJ_NO_RESOURCES, CM_REJ_INVALID_SERVICE_ID, CM_REJ_STALE_CONN, CM_REJ_CONSUMER_DEFINED,
};
static unsigned int num_reasons = 4;
static uint64_t run_seed, state;
static double vigour;			/* of this run: a factor of the chances */
static bool listening, deciding;
static unsigned int decided;
static int record = -1;

static unsigned int fabric;		/* the process's, from 1 */
static unsigned int (*counts)[SIM_WHATS];	/* of messages, by the sender's number */
static uint32_t num_counts;

/* ------------------------------------------------------------------------
 * Chance of its own: splitmix64.
 */

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint64_t draw(void)
{
	return mix(state += 0x9e3779b97f4a7c15u);
}

static bool chance(double probability)
{
	return (double)(draw() >> 11) * 0x1p-53 < probability * vigour;
}

/* Half of the delays are short against a time-out, so that messages overtake each other. */
static uint64_t draw_delay(void)
{
	uint64_t longest = draw() & 1 ? bounds.delay : bounds.delay / 1000;

	return 1 + draw() % (longest ? longest : 1);
}

/* Without a draw of its own: bounds change no other decision. */
static uint16_t pick_reason(void)
{
	return reasons[mix(state ^ 0xd6e8feb86659fd93u) % num_reasons];
}

/* ------------------------------------------------------------------------
 * Deciding.
 */

static const struct given *find(enum sim_what what, const struct sim_node *from, unsigned int nth)
{
	const struct given *given = givens;

	while (given && (given->fabric != fabric || given->what != what || given->nth != nth ||
			 strcmp(given->from, from->name)))
		given = given->next;
	return given;
}

/* TCP undoes copies and order. */
static bool is_streamed(enum sim_what what)
{
	return what >= SIM_MSG_MPA_REQ && what <= SIM_MSG_OTHER_STREAM;
}

/* As many draws for each message, whatever becomes of it: bounds change no other decision. */
static enum polycm_sim_action decide(enum sim_what what, uint64_t *ret_delay)
{
	bool lose = chance(bounds.loss), late = chance(bounds.lateness);
	bool copy = chance(bounds.duplication), swap = chance(bounds.reordering);
	bool reject = chance(bounds.rejection);

	*ret_delay = draw_delay();
	if (lose)
		return POLYCM_SIM_LOSE;
	if (reject && BIT(what) & REJECT_MASK)
		return POLYCM_SIM_REJECT;
	if (late)
		return POLYCM_SIM_DELAY;
	if (is_streamed(what))
		return 0;
	return copy ? POLYCM_SIM_DUPLICATE : swap ? POLYCM_SIM_REORDER : 0;
}

static void apply(enum polycm_sim_action action, uint64_t delay, uint16_t reason,
		  struct sim_fate *fate)
{
	switch (action) {
	case POLYCM_SIM_LOSE:
		fate->lost = true;
		break;
	case POLYCM_SIM_REJECT:
		fate->lost = fate->rejected = true;
		fate->reason = reason;
		break;
	case POLYCM_SIM_DELAY:
		fate->delay += delay;
		break;
	case POLYCM_SIM_DUPLICATE:
		fate->copies++;
		fate->copy_gap = delay;
		break;
	default:
		fate->reordered = true;
		break;
	}
}

/* A line at once, because the program may end any moment. */
static void tell(const char *line, int len)
{
	if (record >= 0 && write(record, line, (size_t)len) != len) {
		sim_core->log(POLYCM_LOG_ERROR, NULL, "POLYCM_SIM_EXPLORE: %s", strerror(errno));
		close(record);
		record = -1;
	}
}

static void tell_fault(enum polycm_sim_action action, enum sim_what what,
		       const struct sim_node *from, unsigned int nth, uint64_t delay,
		       uint16_t reason)
{
	bool timed = action == POLYCM_SIM_DELAY || action == POLYCM_SIM_DUPLICATE;
	char line[300], where[40] = "", how[60] = "";

	if (record < 0)
		return;
	if (fabric > 1)
		snprintf(where, sizeof(where), "fabric = %u; ", fabric);
	if (timed)
		snprintf(how, sizeof(how), " delay = \"%llu ns\";", (unsigned long long)delay);
	if (action == POLYCM_SIM_REJECT)
		snprintf(how, sizeof(how), " reason = %u;", reason);
	tell(line, snprintf(line, sizeof(line),
			    "{ %saction = \"%s\"; message = \"%s\"; from = \"%s\"; nth = %u;%s }\n",
			    where, sim_action_name(action), sim_what_name(what), from->name, nth, how));
}

/* The how many-th of its kind from this node; 0: no memory. */
static unsigned int count(enum sim_what what, const struct sim_node *from)
{
	unsigned int (*grown)[SIM_WHATS];

	if (from->number >= num_counts) {
		grown = reallocarray(counts, from->number + 1, sizeof(*counts));
		if (!grown)
			return 0;
		memset(grown + num_counts, 0, (from->number + 1 - num_counts) * sizeof(*counts));
		counts = grown;
		num_counts = from->number + 1;
	}
	return ++counts[from->number][what];
}

void sim_explore_packet(enum sim_what what, const struct sim_node *from, const struct sim_node *to,
			struct sim_fate *fate)
{
	enum polycm_sim_action action = 0;
	const struct given *given;
	unsigned int nth;
	uint64_t delay = 0;
	uint16_t reason;

	nth = sim_what_name(what) ? count(what, from) : 0;
	if (!nth)
		return;
	if (deciding && mask & BIT(what) && decided < bounds.most)
		action = decide(what, &delay);
	reason = pick_reason();
	given = givens ? find(what, from, nth) : NULL;
	if (given) {
		action = given->action;
		delay = given->delay;
		reason = given->reason;
	}
	if (!action || fate->lost)
		return;
	decided++;
	apply(action, delay, reason, fate);
	tell_fault(action, what, from, nth, delay, reason);
	sim_trace("fault", "\"rule\":0,\"action\":\"%s\",\"what\":\"%s\",\"from\":\"%s\",\"to\":\"%s\"",
		  sim_action_name(action), sim_what_name(what), from->name, to->name);
}

/* ------------------------------------------------------------------------
 * Fabrics.
 */

int sim_explore_open(uint64_t seed)
{
	const char *path = sim_core->setting("POLYCM_SIM_EXPLORE");

	run_seed = seed;
	if (!path || !*path || deciding)
		return 0;
	record = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (record < 0) {
		sim_core->log(POLYCM_LOG_ERROR, NULL, "POLYCM_SIM_EXPLORE=%s: %s", path,
			      strerror(errno));
		return -errno;
	}
	state = mix(seed + 1);
	vigour = 0.25 * (double)(1u << draw() % 4);
	deciding = sim_exploring = true;
	return 0;
}

uint64_t sim_explore_seed(uint64_t seed)
{
	return sim_exploring ? seed ^ mix(run_seed) : seed;
}

void sim_explore_fabric(void)
{
	char line[40];

	fabric++;
	sim_faults_on |= sim_exploring;
	if (num_counts)
		memset(counts, 0, num_counts * sizeof(*counts));
	if (fabric > 1)
		tell(line, snprintf(line, sizeof(line), "# fabric %u\n", fabric));
}

/* ------------------------------------------------------------------------
 * The scenario file's group.
 */

struct text {
	const char *action, *message, *from;
	unsigned int nth, fabric;
	config_setting_t *reason;
	uint64_t delay;
};

static const struct scenario_member fault_members[] = {
	SCENARIO_MEMBER(struct text, action, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct text, message, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct text, from, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct text, nth, SCENARIO_COUNT),
	SCENARIO_MEMBER(struct text, fabric, SCENARIO_COUNT),
	SCENARIO_MEMBER(struct text, reason, SCENARIO_ANY),
	SCENARIO_MEMBER(struct text, delay, SCENARIO_TIME),
};

static const struct scenario_member members[] = {
	SCENARIO_MEMBER(struct bounds, loss, SCENARIO_CHANCE),
	SCENARIO_MEMBER(struct bounds, duplication, SCENARIO_CHANCE),
	SCENARIO_MEMBER(struct bounds, reordering, SCENARIO_CHANCE),
	SCENARIO_MEMBER(struct bounds, lateness, SCENARIO_CHANCE),
	SCENARIO_MEMBER(struct bounds, rejection, SCENARIO_CHANCE),
	SCENARIO_MEMBER(struct bounds, delay, SCENARIO_TIME),
	SCENARIO_MEMBER(struct bounds, most, SCENARIO_COUNT),
	SCENARIO_MEMBER(struct bounds, messages, SCENARIO_ANY),
	SCENARIO_MEMBER(struct bounds, reasons, SCENARIO_ANY),
	SCENARIO_MEMBER(struct bounds, faults, SCENARIO_LIST),
};

/* The one kind of message that a name stands for; -1: none, or several. */
static int kind_of(const char *name)
{
	uint64_t kinds = name ? sim_what_mask(name) & PACKET_MASK : 0;

	return kinds && !(kinds & (kinds - 1)) ? __builtin_ctzll(kinds) : -1;
}

static int read_fault(const struct scenario *scenario, const config_setting_t *group)
{
	struct text text = { .fabric = 1 };
	struct given *given;
	int r, kind, reason = CM_REJ_CONSUMER_DEFINED;

	r = scenario_read_group(scenario, group, "an explored fault", fault_members,
				MEMBERS(fault_members), &text);
	if (r < 0)
		return r;
	if (text.reason)
		r = scenario_read_reason(scenario, text.reason, &reason);
	if (r < 0)
		return r;
	kind = kind_of(text.message);
	if (kind < 0 || !text.nth || !text.from || strlen(text.from) >= sizeof(given->from) ||
	    text.delay > SIM_LONGEST)
		return scenario_error(scenario, group, "an explored fault needs one message, from "
				      "and nth");
	given = calloc(1, sizeof(*given));
	if (!given)
		return -ENOMEM;
	given->action = text.action ? sim_action_of(text.action) : 0;
	if (given->action < POLYCM_SIM_LOSE || given->action > POLYCM_SIM_REJECT ||
	    given->action == POLYCM_SIM_CORRUPT) {
		free(given);
		return scenario_error(scenario, group, "an explored fault's action is lose, delay, "
				      "duplicate, reorder or reject");
	}
	given->what = (enum sim_what)kind;
	given->nth = text.nth;
	given->fabric = text.fabric;
	given->delay = text.delay;
	given->reason = (uint16_t)reason;
	strcpy(given->from, text.from);
	given->next = givens;
	givens = given;
	return 0;
}

static int read_messages(const struct scenario *scenario, const config_setting_t *messages,
			 uint64_t *ret_mask)
{
	bool several = config_setting_is_aggregate(messages);
	int num = several ? config_setting_length(messages) : 1;
	const char *name;
	uint64_t kinds;

	*ret_mask = 0;
	for (int i = 0; i < num; i++) {
		name = several ? config_setting_get_string_elem(messages, i) :
				 config_setting_get_string(messages);
		kinds = name ? sim_what_mask(name) & PACKET_MASK : 0;
		if (!kinds && name)
			return scenario_error(scenario, messages, "messages: there is no message "
					      "'%.40s'%s", name, sim_what_hint(name));
		if (!kinds)
			return scenario_error(scenario, messages, "messages: expected names of "
					      "messages, such as \"cm\" or [ \"REQ\", \"REP\" ]");
		*ret_mask |= kinds;
	}
	return 0;
}

/* One, or several. */
static int read_reasons(const struct scenario *scenario, const config_setting_t *told,
			uint16_t ret_reasons[MAX_REASONS], unsigned int *ret_num)
{
	int num = config_setting_is_aggregate(told) ? config_setting_length(told) : -1, r, reason;

	if (!num || num > (int)MAX_REASONS)
		return scenario_error(scenario, told, "reasons: expected 1 to %u of them", MAX_REASONS);
	*ret_num = num < 0 ? 1 : (unsigned int)num;
	for (unsigned int i = 0; i < *ret_num; i++) {
		r = scenario_read_reason(scenario, num < 0 ? told : config_setting_get_elem(told, i),
					 &reason);
		if (r < 0)
			return r;
		ret_reasons[i] = (uint16_t)reason;
	}
	return 0;
}

static void forget_given(struct given *list)
{
	struct given *given;

	while ((given = list)) {
		list = given->next;
		free(given);
	}
}

int sim_explore_read(const struct scenario *scenario, const config_setting_t *group)
{
	struct given *before = givens;
	struct bounds told = bounds;
	uint16_t told_reasons[MAX_REASONS];
	unsigned int num_told = 0;
	uint64_t kinds = mask;
	int r;

	givens = NULL;
	told.messages = told.reasons = told.faults = NULL;
	r = scenario_read_group(scenario, group, "explore", members, MEMBERS(members), &told);
	if (!r && told.delay > SIM_LONGEST)
		r = scenario_error(scenario, group, "a delay of more than 73 years");
	if (!r && told.messages)
		r = read_messages(scenario, told.messages, &kinds);
	if (!r && told.reasons)
		r = read_reasons(scenario, told.reasons, told_reasons, &num_told);
	for (int i = 0; !r && told.faults && i < config_setting_length(told.faults); i++)
		r = read_fault(scenario, config_setting_get_elem(told.faults, (unsigned int)i));
	if (r < 0 || !listening) {
		forget_given(givens);
		givens = before;
		return r;
	}
	forget_given(before);
	sim_exploring |= told.faults != NULL;
	sim_faults_on |= sim_exploring;
	told.messages = told.reasons = told.faults = NULL;
	if (num_told) {
		memcpy(reasons, told_reasons, num_told * sizeof(reasons[0]));
		num_reasons = num_told;
	}
	bounds = told;
	mask = kinds;
	return 0;
}

void sim_explore_listen(bool on)
{
	listening = on;
}
