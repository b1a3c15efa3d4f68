/* SPDX-License-Identifier: BSD-2-Clause */
/* fault_names.c - what rules call messages, calls, lookups and actions. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "fault_names.h"

#define X(what, name) [what] = name,
static const char *const what_names[SIM_WHATS] = { SIM_WHAT_LIST(X) };
#undef X

static const struct {
	const char *name;
	uint64_t mask;
} groups[] = {
	{ "cm", CM_MASK },
	{ "data", DATA_MASK },
	{ "tcp", TCP_MASK },
	{ "any", PACKET_MASK },
};

static const char *const action_names[] = {
	[POLYCM_SIM_LOSE] = "lose",
	[POLYCM_SIM_DELAY] = "delay",
	[POLYCM_SIM_DUPLICATE] = "duplicate",
	[POLYCM_SIM_REORDER] = "reorder",
	[POLYCM_SIM_CORRUPT] = "corrupt",
	[POLYCM_SIM_REJECT] = "reject",
	[POLYCM_SIM_FAIL] = "fail",
	[POLYCM_SIM_ANSWER_LATE] = "answer_late",
	[POLYCM_SIM_ANSWER_NEVER] = "answer_never",
	[POLYCM_SIM_FREEZE] = "freeze",
	[POLYCM_SIM_CRASH] = "crash",
	[POLYCM_SIM_PORT_DOWN] = "port_down",
	[POLYCM_SIM_PORT_UP] = "port_up",
	[POLYCM_SIM_REMOVE_DEVICE] = "remove_device",
	[POLYCM_SIM_CHANGE_ADDRESS] = "change_address",
	[POLYCM_SIM_CHANGE_MAC] = "change_mac",
	[POLYCM_SIM_FULL_BACKLOG] = "full_backlog",
};

#define NUM_GROUPS (sizeof(groups) / sizeof(groups[0]))
#define NUM_ACTIONS (sizeof(action_names) / sizeof(action_names[0]))
#define LONGEST 32u			/* of what is compared */

const char *sim_what_name(enum sim_what what)
{
	return what < SIM_WHATS ? what_names[what] : NULL;
}

uint64_t sim_what_mask(const char *name)
{
	for (unsigned int i = 0; i < NUM_GROUPS; i++)
		if (!strcasecmp(groups[i].name, name))
			return groups[i].mask;
	for (unsigned int i = 0; i < SIM_WHATS; i++)
		if (what_names[i] && !strcasecmp(what_names[i], name))
			return BIT(i);
	return 0;
}

const char *sim_action_name(enum polycm_sim_action action)
{
	return action < NUM_ACTIONS ? action_names[action] : NULL;
}

enum polycm_sim_action sim_action_of(const char *name)
{
	for (unsigned int i = 1; i < NUM_ACTIONS; i++)
		if (!strcasecmp(action_names[i], name))
			return (enum polycm_sim_action)i;
	return 0;
}

/* How many letters have to be put in, taken out or replaced (Levenshtein). */
static unsigned int distance(const char *a, const char *b)
{
	size_t a_len = strnlen(a, LONGEST), b_len = strnlen(b, LONGEST);
	unsigned int row[LONGEST + 1], corner, above, best;

	for (unsigned int j = 0; j <= b_len; j++)
		row[j] = j;
	for (unsigned int i = 1; i <= a_len; i++) {
		corner = row[0];
		row[0] = i;
		for (unsigned int j = 1; j <= b_len; j++) {
			above = row[j];
			best = corner + (tolower((unsigned char)a[i - 1]) !=
					 tolower((unsigned char)b[j - 1]));
			if (above + 1 < best)
				best = above + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
			corner = above;
		}
	}
	return row[b_len];
}

/* "REQUEST" means REQ: what begins like the other is nearer than its length says. */
static unsigned int difference(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b), len = a_len < b_len ? a_len : b_len;
	unsigned int d = distance(a, b);

	return d > 1 && len > 1 && !strncasecmp(a, b, len) ? 1 : d;
}

/* NULL: too many letters differ for a slip. */
static const char *nearest_of(const char *name, const char *const names[], unsigned int num)
{
	unsigned int least = ((unsigned int)strnlen(name, LONGEST) + 2) / 3 + 1, d;
	const char *nearest = NULL;

	if (!strncasecmp(name, "rdma_", 5))
		name += 5;
	else if (!strncasecmp(name, "ibv_", 4))
		name += 4;
	for (unsigned int i = 0; i < num; i++) {
		d = names[i] ? difference(name, names[i]) : least;
		if (d < least) {
			nearest = names[i];
			least = d;
		}
	}
	return nearest;
}

static size_t add_names(char *text, size_t size, size_t len, const char *const names[],
			unsigned int num)
{
	for (unsigned int i = 0, told = 0; i < num && len < size; i++)
		if (names[i])
			len += (size_t)snprintf(text + len, size - len, "%s%s", told++ ? ", " : "",
						names[i]);
	return len;
}

const char *sim_hint(const char *name, const char *const names[], unsigned int num)
{
	static char text[800];
	const char *nearest = nearest_of(name, names, num);

	if (nearest)
		(void)snprintf(text, sizeof(text), "; nearest: '%s'", nearest);
	else
		(void)add_names(text, sizeof(text),
				(size_t)snprintf(text, sizeof(text), "; there are: "), names, num);
	return text;
}

const char *sim_what_hint(const char *name, uint64_t among)
{
	static char text[800];
	const char *names[SIM_WHATS + NUM_GROUPS], *const *of_groups = names + SIM_WHATS;
	unsigned int num_groups = 0;
	size_t len;

	for (unsigned int i = 0; i < SIM_WHATS; i++)
		names[i] = among & BIT(i) ? what_names[i] : NULL;
	for (unsigned int i = 0; i < NUM_GROUPS; i++)
		if (among & groups[i].mask)
			names[SIM_WHATS + num_groups++] = groups[i].name;
	if (!num_groups || nearest_of(name, names, SIM_WHATS + num_groups))
		return sim_hint(name, names, SIM_WHATS + num_groups);
	len = (size_t)snprintf(text, sizeof(text), "%s", sim_hint("", names, SIM_WHATS));
	if (len < sizeof(text))
		len += (size_t)snprintf(text + len, sizeof(text) - len, ", and the groups ");
	(void)add_names(text, sizeof(text), len, of_groups, num_groups);
	return text;
}

const char *sim_action_hint(const char *name)
{
	return sim_hint(name, action_names, NUM_ACTIONS);
}
