/* SPDX-License-Identifier: BSD-2-Clause */
/* explore.c - see explore.h: decides the faults of a run, counts and records them. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/soft/fabric/build.h"
#include "providers/soft/faults/decisions.h"
#include "providers/soft/faults/fault_internal.h"
#include "providers/soft/trace/trace.h"
#include "providers/common/write_error.h"
#include "providers/soft/shm/segment.h"
#include "providers/soft/watch/files.h"
#include "providers/soft/wire/mad.h"
#include "explore_internal.h"

bool sim_explore_listening;
struct explore_given *explore_givens;

struct explore_limits explore_limits = {
	.cm = {
		.loss = 0.1,
		.duplication = 0.05,
		.reordering = 0.05,
		.lateness = 0.1,
		.delay = SIM_MS(6000),	/* longer than any CM's time-out for one message */
		.most = 8,
		.mask = CM_MASK,
		/* Reasons with which Linux's connection managers and programs reject a REQ. */
		.reasons = {
			CM_REJ_NO_RESOURCES, CM_REJ_INVALID_SERVICE_ID, CM_REJ_STALE_CONN,
			CM_REJ_CONSUMER_DEFINED,
		},
		.num_reasons = 4,
	},
	.data = {
		.delay = SIM_MS(100),
		.most = 8,
		.mask = DATA_MASK,
		.reasons = { 1, 2, 3 },
		.num_reasons = 3,
	},
	.nodes = {
		.delay = SIM_MS(6000),
		.most = 2,
	},
};

static uint64_t run_seed;
static struct sim_chooser own_choosers[SIM_DECISIONS], *choosers = own_choosers;
static double vigour;			/* a factor of all probabilities of this run */
static bool deciding;
static int record = -1;

static unsigned int fabric;		/* the number of this process's fabric, from 1 */
static unsigned int (*counts)[SIM_WHATS];	/* of messages, by the sender's number */
static uint32_t num_counts;

/* ------------------------------------------------------------------------
 * Random numbers of each chooser: splitmix64.
 */

static uint64_t draw(struct sim_chooser *chooser)
{
	return sim_random_mix(chooser->state += 0x9e3779b97f4a7c15u);
}

static bool chance(struct sim_chooser *chooser, double probability)
{
	return (double)(draw(chooser) >> 11) * 0x1p-53 < probability * vigour;
}

/* Half of the delays are short against a time-out, so that messages overtake each other. */
static uint64_t draw_delay(struct sim_chooser *chooser, uint64_t longest)
{
	longest = draw(chooser) & 1 ? longest : longest / 1000;
	return 1 + draw(chooser) % (longest ? longest : 1);
}

/* Another number from the last draw, so that bounds change no other decision. */
static uint64_t again(const struct sim_chooser *chooser)
{
	return sim_random_mix(chooser->state ^ 0xd6e8feb86659fd93u);
}

/* Limit the delay of a fault that begins now: it ends when all faults have to end. */
static uint64_t limit_delay(uint64_t delay)
{
	uint64_t left;

	if (!explore_limits.until)
		return delay;
	left = explore_limits.until - fault_now_to_note();
	return delay < left ? delay : left;
}

static bool is_over(void)
{
	return explore_limits.until && fault_now_to_note() >= explore_limits.until;
}

/* ------------------------------------------------------------------------
 * Deciding.
 */

/* Is it sent over TCP, which undoes copies and reordering? */
static bool is_streamed(enum sim_what what)
{
	return (what >= SIM_MSG_MPA_REQ && what <= SIM_MSG_OTHER_STREAM) || BIT(what) & TCP_MASK;
}

/* Each message takes the same number of draws, so that bounds change no other decision. */
static enum polycm_sim_action choose(struct sim_chooser *chooser, const struct explore_bounds *bounds,
				     enum sim_what what, uint64_t *ret_delay)
{
	bool lose = chance(chooser, bounds->loss), late = chance(chooser, bounds->lateness);
	bool copy = chance(chooser, bounds->duplication), swap = chance(chooser, bounds->reordering);
	bool reject = chance(chooser, bounds->rejection);

	*ret_delay = draw_delay(chooser, bounds->delay);
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

/* Perhaps corrupt a byte of data, if nothing else was decided. */
static void choose_byte(struct sim_chooser *chooser, size_t length, struct explore_decision *decision)
{
	bool corrupt = chance(chooser, explore_limits.data.corruption);
	uint64_t number = again(chooser);

	if (!corrupt || decision->rule.action || !length)
		return;
	decision->rule.action = POLYCM_SIM_CORRUPT;
	decision->rule.offset = (int)(number % length);
	decision->rule.value = (uint8_t)(1 + (number >> 32) % 255);
}

static void decide(enum sim_what what, size_t length, struct explore_decision *decision)
{
	bool data = !(explore_limits.cm.mask & BIT(what));
	struct explore_bounds *bounds = data ? &explore_limits.data : &explore_limits.cm;
	struct sim_chooser *chooser = &choosers[data ? SIM_DECIDE_DATA : SIM_DECIDE_CM];

	if (!(bounds->mask & BIT(what)) || chooser->decided >= bounds->most || is_over())
		return;
	decision->rule.action = choose(chooser, bounds, what, &decision->rule.delay_ns);
	decision->rule.reason = bounds->reasons[again(chooser) % bounds->num_reasons];
	/* The reasons of a REJ do not fit a NAK. */
	if (!data && BIT(what) & DATA_MASK)
		decision->rule.reason = (uint16_t)(1 + again(chooser) % 3);
	if (BIT(what) & RESET_MASK)
		decision->rule.reason = 0;
	if (data)
		choose_byte(chooser, length, decision);
	decision->rule.delay_ns = limit_delay(decision->rule.delay_ns);
	chooser->decided += decision->rule.action != 0;
}

/* Decide an action on the sender's or the receiver's node. */
static void decide_node(enum sim_what what, const struct sim_node *from, const struct sim_node *to,
			struct explore_decision *decision)
{
	const struct explore_node_bounds *bounds = &explore_limits.nodes;
	struct sim_chooser *chooser = &choosers[SIM_DECIDE_NODE];
	bool down, freeze, crash, removal;

	if (!(BIT(what) & CM_MASK) || chooser->decided >= bounds->most || is_over())
		return;
	down = chance(chooser, bounds->port_down);
	freeze = chance(chooser, bounds->freeze);
	crash = chance(chooser, bounds->crash);
	removal = chance(chooser, bounds->removal);
	decision->rule.delay_ns = limit_delay(draw_delay(chooser, bounds->delay));
	decision->on = again(chooser) & 1 ? from->name : to->name;
	decision->rule.action = down ? POLYCM_SIM_PORT_DOWN : freeze ? POLYCM_SIM_FREEZE :
				crash ? POLYCM_SIM_CRASH : removal ? POLYCM_SIM_REMOVE_DEVICE : 0;
	chooser->decided += decision->rule.action != 0;
}

/* ------------------------------------------------------------------------
 * Doing it.
 */

/* false: it does nothing to this packet. */
static bool apply(const struct explore_decision *decision, size_t length, struct sim_fate *fate)
{
	uint32_t copies = fate->copies;		/* those of rules */

	if (!fault_apply(&decision->rule, length, fate))
		return false;
	if (decision->rule.action == POLYCM_SIM_DUPLICATE)
		fate->copies += copies;
	return true;
}

/* As a rule does that a message matches: this process may end before the clock is looked at. */
static void apply_to_node(const struct explore_decision *decision)
{
	struct sim_node *node = sim_node_by_name(decision->on);
	struct polycm_sim_fault_rule rule = {
		.size = sizeof(rule),
		.action = decision->rule.action,
		.on = (struct polycm_sim_node *)node,
	};
	char why[200] = "out of memory";
	uint32_t number;

	if (decision->rule.action == POLYCM_SIM_FREEZE || decision->rule.action == POLYCM_SIM_PORT_DOWN)
		rule.delay_ns = decision->rule.delay_ns;
	if (!node || sim_fault_do(&rule, &number, why, sizeof(why)) < 0)
		sim_core->log(POLYCM_LOG_ERROR, NULL, "explored %s of node %s: %s",
			      sim_action_name(decision->rule.action), decision->on,
			      node ? why : "there is no such node");
}

static void record_failed(int err)
{
	sim_files_failed("record of the exploration", sim_core->setting("POLYCM_SIM_EXPLORE"), err);
	close(record);
	record = -1;
}

/* Write each line at once, because the program may end at any moment. */
static void tell(const char *line, int len)
{
	ssize_t written = record < 0 ? len : write(record, line, (size_t)len);

	if (written != len)
		record_failed(written < 0 ? errno : ENOSPC);
}

static void describe(const struct explore_decision *decision, char *text, size_t size)
{
	unsigned long long delay = decision->rule.delay_ns;

	*text = '\0';
	switch (decision->rule.action) {
	case POLYCM_SIM_DELAY:
	case POLYCM_SIM_DUPLICATE:
		snprintf(text, size, " delay = \"%llu ns\";", delay);
		break;
	case POLYCM_SIM_FREEZE:
	case POLYCM_SIM_PORT_DOWN:
		snprintf(text, size, " on = \"%s\"; delay = \"%llu ns\";", decision->on, delay);
		break;
	case POLYCM_SIM_CRASH:
	case POLYCM_SIM_REMOVE_DEVICE:
		snprintf(text, size, " on = \"%s\";", decision->on);
		break;
	case POLYCM_SIM_REJECT:
		if (decision->rule.reason)
			snprintf(text, size, " reason = %u;", decision->rule.reason);
		break;
	case POLYCM_SIM_CORRUPT:
		snprintf(text, size, " offset = %d; value = %u;", decision->rule.offset,
			 decision->rule.value);
		break;
	default:
		break;
	}
}

static void tell_fault(const struct explore_decision *decision, enum sim_what what,
		       const struct sim_node *from, unsigned int nth)
{
	char line[400], where[40] = "", how[160];

	if (record < 0)
		return;
	if (fabric > 1)
		snprintf(where, sizeof(where), "fabric = %u; ", fabric);
	describe(decision, how, sizeof(how));
	tell(line, snprintf(line, sizeof(line),
			    "{ %saction = \"%s\"; message = \"%s\"; from = \"%s\"; nth = %u;%s }\n",
			    where, sim_action_name(decision->rule.action), sim_what_name(what),
			    from->name, nth, how));
}

/* What this process has in common with others; NULL: its fabric is its own. */
static struct sim_decisions_area *shared_area(void)
{
	return fabric == 1 && sim_segment_joined() ? sim_segment_area(SIM_AREA_DECISIONS) : NULL;
}

/* Count a message of this kind from this node; returns the count, or 0: no memory. */
static unsigned int count(struct sim_decisions_area *shared, enum sim_what what,
			  const struct sim_node *from)
{
	unsigned int (*grown)[SIM_WHATS];

	if (shared && from->number < SIM_COUNTED_NODES)
		return ++shared->counts[from->number][what];
	if (from->number >= num_counts) {
		grown = reallocarray(counts, from->number + 1, sizeof(*counts));
		if (!grown) {
			if (record >= 0)
				record_failed(ENOMEM);
			return 0;
		}
		memset(grown + num_counts, 0, (from->number + 1 - num_counts) * sizeof(*counts));
		counts = grown;
		num_counts = from->number + 1;
	}
	return ++counts[from->number][what];
}

/* Whoever starts a last program takes away the right to write: from then on nothing begins. */
static bool is_complete(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && !(st.st_mode & S_IWUSR);
}

static bool is_complete_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !(st.st_mode & S_IWUSR);
}

/* The run's faults are over: this one does not begin. */
static bool is_too_late(const struct explore_decision *packet, const struct explore_decision *node)
{
	if (!packet->rule.action && !node->rule.action)
		return false;
	deciding = record < 0 || !is_complete(record);
	return !deciding;
}

/* A given decision replaces that of the seed, for the node and for the packet separately. */
static void look_up(enum sim_what what, const struct sim_node *from, unsigned int nth,
		    struct explore_decision *packet, struct explore_decision *node)
{
	for (const struct explore_given *given = explore_givens; given; given = given->next) {
		if (given->fabric != fabric || given->what != what || given->nth != nth ||
		    strcmp(given->from, from->name))
			continue;
		*(fault_is_node_action(given->does.rule.action) ? node : packet) = given->does;
	}
}

/*
 * Returns the message's count, or 0: no memory.  Without a lock, and so without a system call that a
 * run with given faults would not make: of the programs of a system one thread runs at a time.
 */
static unsigned int decide_all(enum sim_what what, const struct sim_node *from,
			       const struct sim_node *to, size_t length,
			       struct explore_decision *packet, struct explore_decision *node)
{
	struct sim_decisions_area *shared = shared_area();
	unsigned int nth;

	if (shared && !shared->begun) {
		memcpy(shared->choosers, own_choosers, sizeof(own_choosers));
		shared->begun = true;
	}
	choosers = shared ? shared->choosers : own_choosers;
	nth = count(shared, what, from);
	if (nth && deciding) {
		decide(what, length, packet);
		decide_node(what, from, to, node);
	}
	return nth;
}

void explore_packet(enum sim_what what, const struct sim_node *from, const struct sim_node *to,
			size_t length, struct sim_fate *fate)
{
	struct explore_decision packet = { .on = NULL }, node = { .on = NULL };
	unsigned int nth;

	if (!sim_what_name(what))
		return;
	nth = decide_all(what, from, to, length, &packet, &node);
	if (!nth)
		return;
	if (deciding && is_too_late(&packet, &node))
		packet = node = (struct explore_decision){ .on = NULL };
	look_up(what, from, nth, &packet, &node);
	if (node.rule.action) {
		apply_to_node(&node);
		tell_fault(&node, what, from, nth);
	}
	if (!packet.rule.action || fate->lost || !apply(&packet, length, fate))
		return;
	tell_fault(&packet, what, from, nth);
	sim_trace("fault", "\"rule\":0,\"action\":\"%s\",\"what\":\"%s\",\"from\":\"%s\",\"to\":\"%s\"",
		  sim_action_name(packet.rule.action), sim_what_name(what), from->name, to->name);
}

/* ------------------------------------------------------------------------
 * Fabrics.
 */

int sim_explore_open(uint64_t seed)
{
	const char *path = sim_core->setting("POLYCM_SIM_EXPLORE");

	run_seed = seed;
	if (!path || !*path || deciding || record >= 0)
		return 0;
	record = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (record >= 0 ? is_complete(record) : errno == EACCES && is_complete_file(path)) {
		sim_fault_explorer = explore_packet;
		return 0;
	}
	if (record < 0) {
		sim_core->log(POLYCM_LOG_ERROR, NULL, "POLYCM_SIM_EXPLORE=%s: %s", path,
			      strerror(errno));
		return -errno;
	}
	own_choosers[SIM_DECIDE_CM].state = sim_random_mix(seed + 1);
	own_choosers[SIM_DECIDE_DATA].state = sim_random_mix(seed ^ 0x6a09e667f3bcc908u);
	own_choosers[SIM_DECIDE_NODE].state = sim_random_mix(seed ^ 0xbb67ae8584caa73bu);
	vigour = 0.25 * (double)(1u << draw(&own_choosers[SIM_DECIDE_CM]) % 4);
	deciding = true;
	sim_explore_attend();
	return 0;
}

void sim_explore_attend(void)
{
	sim_fault_explorer = explore_packet;
	sim_faults_on = true;
}

uint64_t sim_explore_seed(uint64_t seed)
{
	return sim_fault_explorer ? seed ^ sim_random_mix(run_seed) : seed;
}

void sim_explore_fabric(void)
{
	char line[40];

	fabric++;
	sim_faults_on |= sim_fault_explorer != NULL;
	if (num_counts)
		memset(counts, 0, num_counts * sizeof(*counts));
	if (fabric > 1)
		tell(line, snprintf(line, sizeof(line), "# fabric %u\n", fabric));
}
