/* SPDX-License-Identifier: BSD-2-Clause */
/* chance.c - a fabric, its links and what goes wrong on it, by the seed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lives.h"

#define MS(ms) ((uint64_t)(ms) * 1000000u)

uint32_t lives_below(struct world *world, uint32_t bound)
{
	uint64_t z = world->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ z >> 31) >> 32) % bound;
}

bool lives_chance(struct world *world, unsigned int percent)
{
	return lives_below(world, 100) < percent;
}

static void build_nodes(struct world *world)
{
	static const char *const transports[] = { "roce", "ib", "iwarp" };
	const char *usual = transports[lives_below(world, 3)];
	bool mixed = lives_chance(world, 10);
	char name[16], address[24];

	world->num_nodes = 2 + lives_below(world, MAX_NODES - 1);
	for (unsigned int i = 0; i < world->num_nodes; i++) {
		world->transports[i] = mixed ? transports[lives_below(world, 3)] : usual;
		snprintf(name, sizeof(name), "node%u", i);
		snprintf(address, sizeof(address), "10.0.0.%u/24", i + 1);
		if (polycm_sim_node_add(name, world->transports[i], address, &world->nodes[i]))
			broken(world, "no node: %s", strerror(errno));
		lives_say(world, "%s is %s", name, world->transports[i]);
	}
}

static void build_link(struct world *world)
{
	struct polycm_sim_link link = { .size = sizeof(link), .latency_ns = 1000 };

	if (lives_chance(world, 50))
		return;
	link.latency_ns = 1 + lives_below(world, lives_chance(world, 20) ? 2000000000 : 100000);
	link.jitter_ns = lives_chance(world, 50) ? lives_below(world, 1000000) : 0;
	link.loss = lives_chance(world, 40) ? lives_below(world, 40) / 100.0 : 0;
	link.duplication = lives_chance(world, 30) ? lives_below(world, 50) / 100.0 : 0;
	link.reordering = lives_chance(world, 30) ? lives_below(world, 50) / 100.0 : 0;
	if (polycm_sim_link_set(NULL, NULL, &link))
		broken(world, "no link: %s", strerror(errno));
	lives_say(world, "link: latency %llu, loss %.2f, duplication %.2f, reordering %.2f",
		  (unsigned long long)link.latency_ns, link.loss, link.duplication, link.reordering);
}

static const char *random_message(struct world *world)
{
	static const char *const messages[] = {
		"REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP",
		"MPA_REQ", "MPA_REP", "MPA_REJ", "FIN", "RST", "cm", "any",
	};

	return messages[lives_below(world, sizeof(messages) / sizeof(messages[0]))];
}

static const char *random_call(struct world *world)
{
	static const char *const calls[] = {
		"create_id", "bind", "resolve_addr", "resolve_route", "listen", "connect",
		"accept", "reject", "disconnect", "create_qp", "create_cq", "alloc_pd",
	};

	return calls[lives_below(world, sizeof(calls) / sizeof(calls[0]))];
}

/* What the rule is about: a message, a call or a lookup. */
static void choose_message(struct world *world, struct polycm_sim_fault_rule *rule)
{
	rule->message = random_message(world);
	if (rule->action == POLYCM_SIM_FAIL)
		rule->message = random_call(world);
	if (rule->action == POLYCM_SIM_ANSWER_LATE || rule->action == POLYCM_SIM_ANSWER_NEVER)
		rule->message = lives_chance(world, 50) ? "path" : "neighbour";
	if (rule->action == POLYCM_SIM_REJECT)
		rule->message = (const char *[]){ "REQ", "REP", "MPA_REQ" }[lives_below(world, 3)];
}

static void add_fault(struct world *world)
{
	static const enum polycm_sim_action actions[] = {
		POLYCM_SIM_LOSE, POLYCM_SIM_LOSE, POLYCM_SIM_LOSE, POLYCM_SIM_DELAY,
		POLYCM_SIM_DELAY, POLYCM_SIM_DUPLICATE, POLYCM_SIM_REORDER, POLYCM_SIM_CORRUPT,
		POLYCM_SIM_REJECT, POLYCM_SIM_FAIL, POLYCM_SIM_FAIL, POLYCM_SIM_ANSWER_LATE,
		POLYCM_SIM_ANSWER_NEVER, POLYCM_SIM_FREEZE, POLYCM_SIM_PORT_DOWN,
		POLYCM_SIM_CRASH, POLYCM_SIM_REMOVE_DEVICE, POLYCM_SIM_FULL_BACKLOG,
		POLYCM_SIM_CHANGE_MAC,
	};
	struct polycm_sim_fault_rule rule = { .size = sizeof(rule) };
	unsigned int on = lives_below(world, world->num_nodes);
	char address[24];

	rule.action = actions[lives_below(world, sizeof(actions) / sizeof(actions[0]))];
	choose_message(world, &rule);
	if (lives_chance(world, 40))
		rule.from = world->nodes[lives_below(world, world->num_nodes)];
	if (lives_chance(world, 70))
		rule.nth = 1 + lives_below(world, 4);
	if (lives_chance(world, 40))
		rule.times = 1 + lives_below(world, 20);
	rule.delay_ns = 1 + (lives_chance(world, 50) ? MS(lives_below(world, 20000)) :
			     lives_below(world, 1000000));
	rule.count = lives_below(world, 3);
	rule.offset = rule.action == POLYCM_SIM_CORRUPT ? -1 : 0;
	rule.reason = (uint16_t)(1 + lives_below(world, 35));
	if (rule.action >= POLYCM_SIM_FREEZE) {
		rule.on = world->nodes[on];
		rule.nth = 1 + lives_below(world, 8);
		rule.times = 1;
	}
	if (rule.action == POLYCM_SIM_CHANGE_MAC) {
		snprintf(address, sizeof(address), "10.0.0.%u", on + 1);
		rule.address = address;
		world->moves = true;
	}
	world->halts |= rule.action == POLYCM_SIM_CRASH;
	if (polycm_sim_fault_add(&rule, NULL))
		broken(world, "no fault %d of %s: %s", rule.action, rule.message, strerror(errno));
	lives_say(world, "fault: action %d on %s, nth %u, times %u, delay %llu", rule.action,
		  rule.message, rule.nth, rule.times, (unsigned long long)rule.delay_ns);
}

void lives_build(struct world *world)
{
	unsigned int faults;

	world->random = world->seed;
	(void)lives_below(world, 2);
	build_nodes(world);
	build_link(world);
	faults = lives_chance(world, 30) ? 0 : 1 + lives_below(world, 4);
	for (unsigned int i = 0; i < faults; i++)
		add_fault(world);
}
