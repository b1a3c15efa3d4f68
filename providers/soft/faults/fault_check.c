/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults/fault_check.c - whether a rule can be, and why not in words.  A rule that
 * could never do anything is an error, not a rule without effect.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "providers/soft/fabric/build.h"
#include "providers/soft/wire/address.h"
#include "providers/soft/wire/mad.h"
#include "providers/soft/wire/packet.h"
#include "fault_internal.h"

#define MAX_ERRNO 4095
#define MAX_COPIES 65535u
#define MAX_NAK 3u

/* The words that fault_check() returns. */
struct why {
	char *text;
	size_t size;
};

#define no(why, ...) (snprintf((why)->text, (why)->size, __VA_ARGS__), -EINVAL)

/* Is the rule about a time, since it names no packet, call or lookup? */
static bool is_timed(const struct polycm_sim_fault_rule *rule)
{
	return fault_is_node_action(rule->action) && !rule->from && !rule->to && !rule->message &&
	       !rule->nth && !rule->times && rule->probability == 0;
}

/* What an action can be about; node and device actions: whatever can be named. */
static uint64_t subjects(enum polycm_sim_action action, const char **ret_words)
{
	switch (action) {
	case POLYCM_SIM_LOSE:
	case POLYCM_SIM_DELAY:
	case POLYCM_SIM_DUPLICATE:
	case POLYCM_SIM_REORDER:
	case POLYCM_SIM_CORRUPT:
		*ret_words = "messages";
		return PACKET_MASK;
	case POLYCM_SIM_REJECT:
		*ret_words = "REQ, REP, MPA_REQ, SEND, WRITE, READ, ATOMIC, TCP_SYN, TCP_SYN_ACK "
			     "and TCP_DATA";
		return REJECT_MASK;
	case POLYCM_SIM_FAIL:
		*ret_words = "calls such as create_qp";
		return CALL_MASK;
	case POLYCM_SIM_ANSWER_LATE:
	case POLYCM_SIM_ANSWER_NEVER:
		*ret_words = "the lookups path and neighbour";
		return LOOKUP_MASK;
	default:
		*ret_words = "messages, calls and lookups";
		return PACKET_MASK | CALL_MASK | LOOKUP_MASK;
	}
}

static int check_message(const struct polycm_sim_fault_rule *rule, uint64_t *ret_mask,
			 struct why *why)
{
	const char *words;
	uint64_t can = subjects(rule->action, &words), named;

	if (!rule->message) {
		/* "cm" where that can be, else whatever it can be about. */
		*ret_mask = can & CM_MASK ? can & CM_MASK : can;
		return 0;
	}
	named = sim_what_mask(rule->message);
	if (!named)
		return no(why, "there is no message, call or lookup '%.40s'%s", rule->message,
			  sim_what_hint(rule->message, PACKET_MASK | CALL_MASK | LOOKUP_MASK));
	if (!(named & can))
		return no(why, "%s is for %s, not for '%s'", sim_action_name(rule->action), words,
			  rule->message);
	*ret_mask = named & can;
	return 0;
}

static int check_match(const struct polycm_sim_fault_rule *rule, uint64_t mask, struct why *why)
{
	if (!(rule->probability >= 0 && rule->probability <= 1))
		return no(why, "the probability %g is not from 0 to 1", rule->probability);
	if (rule->until_ns && rule->until_ns <= rule->from_ns)
		return no(why, "the time window ends before it begins");
	if (rule->to && !(mask & PACKET_MASK))
		return no(why, "'to' is for messages: calls and lookups have no receiver");
	return 0;
}

static int check_corrupt(const struct polycm_sim_fault_rule *rule, uint64_t mask, struct why *why)
{
	int end = mask & ~MAD_MASK ? (int)SIM_LINK_MAX_PACKET : (int)CM_MAD_SIZE;

	if (rule->offset < -1 || rule->offset >= end)
		return no(why, "there is no byte %d: the offset is -1 (anywhere) or 0 to %d",
			  rule->offset, end - 1);
	return 0;
}

static int check_address(const char *text, struct why *why)
{
	union sim_sockaddr addr;
	uint8_t prefix_len;

	if (text && sim_addr_parse(text, &addr, &prefix_len) < 0)
		return no(why, "'%s' is no address", text);
	return 0;
}

/* A REJ's reason, or a NAK's code, which nothing has to say; a RST has none. */
static int check_reject(const struct polycm_sim_fault_rule *rule, uint64_t mask, struct why *why)
{
	if (!(mask & ~RESET_MASK) && rule->reason)
		return no(why, "a TCP connection is reset without a reason: leave it out");
	if (!(mask & ~REQUEST_MASK) && rule->reason > MAX_NAK)
		return no(why, "data is rejected for reason 1 (invalid request), 2 (remote access "
			  "error) or 3 (remote operational error)");
	return rule->reason || !(mask & ~(REQUEST_MASK | BIT(SIM_MSG_MPA_REQ) | RESET_MASK)) ? 0 :
	       no(why, "reject needs a reason from 1 on");
}

/* The action's own members. */
static int check_what(const struct polycm_sim_fault_rule *rule, uint64_t mask, struct why *why)
{
	int r;

	if (rule->delay_ns > SIM_LONGEST)
		return no(why, "a delay of more than 73 years");
	switch (rule->action) {
	case POLYCM_SIM_DELAY:
	case POLYCM_SIM_ANSWER_LATE:
		return rule->delay_ns ? 0 : no(why, "%s needs a delay",
					       sim_action_name(rule->action));
	case POLYCM_SIM_DUPLICATE:
		return rule->count <= MAX_COPIES ? 0 :
		       no(why, "%u copies are more than %u", rule->count, MAX_COPIES);
	case POLYCM_SIM_CORRUPT:
		return check_corrupt(rule, mask, why);
	case POLYCM_SIM_REJECT:
		return check_reject(rule, mask, why);
	case POLYCM_SIM_FAIL:
		return rule->error >= 0 && rule->error <= MAX_ERRNO ? 0 :
		       no(why, "%d is no errno", rule->error);
	case POLYCM_SIM_CHANGE_ADDRESS:
		if (!rule->address && !rule->new_address)
			return no(why, "change_address needs an address, a new address or both");
		r = check_address(rule->address, why);
		return r < 0 ? r : check_address(rule->new_address, why);
	case POLYCM_SIM_CHANGE_MAC:
		return rule->address ? check_address(rule->address, why) :
		       no(why, "change_mac needs the address of a port");
	default:
		return 0;
	}
}

static int check_place(const struct polycm_sim_fault_rule *rule, struct why *why)
{
	struct polycm_sim_node *place = rule->on ? rule->on : rule->from;
	const struct sim_node *node = (const struct sim_node *)place;

	if (!fault_is_node_action(rule->action)) {
		if (rule->on || rule->device)
			return no(why, "%s happens to no node or device",
				  sim_action_name(rule->action));
		return 0;
	}
	if (is_timed(rule) && !rule->on)
		return no(why, "%s needs a node that it happens to",
			  sim_action_name(rule->action));
	if (node && rule->device && !sim_device_by_name(node, rule->device))
		return no(why, "node %s has no device '%s'", node->name, rule->device);
	return 0;
}

int fault_check(const struct polycm_sim_fault_rule *rule, uint64_t *ret_mask, char *ret_why,
		size_t why_size)
{
	struct why why = { .text = ret_why, .size = why_size };
	int r;

	if (!sim_action_name(rule->action))
		return no(&why, "there is no action %d", (int)rule->action);
	r = check_message(rule, ret_mask, &why);
	if (!r)
		r = check_match(rule, *ret_mask, &why);
	if (!r)
		r = check_what(rule, *ret_mask, &why);
	if (!r)
		r = check_place(rule, &why);
	if (!r && is_timed(rule))
		*ret_mask = 0;
	return r;
}
