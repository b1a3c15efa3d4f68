/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline_pairs.c - polycm timeline: both ends of a packet: which lines are about the
 * same one, who has the other end if the trace lacks it, and whether it was lost.
 *
 * On a shared fabric, a process that does not write into the trace receives packets, too.
 * There a packet is lost only if the sender's lines show it: a fault or the link's loss
 * follows, it has no receiver, or its node is cut off.  Elsewhere the trace has all
 * arrivals.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "polycm.h"
#include "timeline.h"

#define EVER UINT64_MAX

/* A node that nothing comes to. */
struct cut {
	const char *node;
	uint64_t until;
};

struct pairs {
	struct timeline *timeline;
	/* The columns of communication ids and QPs. */
	struct number *comm_ids, *qpns;
	struct number *peers;	/* by whose communication id sends: where it arrived */
	struct cut cuts[TIMELINE_MAX_COLUMNS];
	unsigned int num_cuts;
};

/* ------------------------------------------------------------------------
 * Both lines of a packet.
 */

/*
 * A packet of which the link makes copies is sent and comes several times: each time for itself.  TCP
 * repeats what was lost, and it comes once.
 */
static void number_copies(struct timeline *timeline)
{
	struct number *sends = NULL, *arrivals = NULL;

	for (size_t i = 0; i < timeline->num_items; i++) {
		struct item *item = &timeline->items[i];
		struct number **counts = item->kind == ITEM_SEND ? &sends : &arrivals;
		long long packet = (long long)item->packet;

		if (!item_is_packet(item) || packet <= 0)
			continue;
		if (item_is_tcp(item)) {
			item->packet <<= TIMELINE_COPY_BITS;
			continue;
		}
		number_add(counts, packet, 0);
		item->packet = item->packet << TIMELINE_COPY_BITS |
			       (number_find(*counts, packet)->value++ &
				((1 << TIMELINE_COPY_BITS) - 1));
	}
	number_drop(&sends);
	number_drop(&arrivals);
}

struct name {
	char *text;
	uint64_t number;
	UT_hash_handle hh;
};

/* Each host counts its packets, and on a simulated network nobody else does. */
void timeline_number_packets(struct timeline *timeline)
{
	struct name *names = NULL, *name, *next;
	char *text;

	if (timeline->num_hosts < 2)
		return;
	for (size_t i = 0; i < timeline->num_items; i++) {
		struct item *item = &timeline->items[i];

		if (!item_is_packet(item) || (long long)item->packet <= 0)
			continue;
		text = tool_printf("%s/%s/%lld", item_text(item, "from"), item->text,
				   (long long)item->packet);
		HASH_FIND_STR(names, text, name);
		if (name) {
			free(text);
		} else {
			name = tool_realloc(NULL, 1, sizeof(*name));
			*name = (struct name){ .text = text, .number = HASH_COUNT(names) + 1 };
			HASH_ADD_KEYPTR(hh, names, name->text, strlen(name->text), name);
		}
		item->packet = name->number;
	}
	HASH_ITER(hh, names, name, next) {
		HASH_DEL(names, name);
		free(name->text);
		free(name);
	}
}

/* TCP has sent it once more, since it was lost before. */
static void repeat(struct timeline *timeline, struct number *send, size_t again)
{
	timeline->items[send->value].lost = true;
	send->value = (long long)again;
}

void timeline_pair(struct timeline *timeline)
{
	struct number *sent = NULL, *send;	/* line of a packet's departure */

	number_copies(timeline);
	for (size_t i = 0; i < timeline->num_items; i++) {
		struct item *item = &timeline->items[i];
		long long packet = (long long)item->packet;

		item->other = TIMELINE_NONE;
		if (item->kind == ITEM_SEND && !number_add(&sent, packet, (long long)i) &&
		    item_is_tcp(item))
			repeat(timeline, number_find(sent, packet), i);
		send = item->kind == ITEM_RECV ? number_find(sent, packet) : NULL;
		if (!send)
			continue;
		item->other = (size_t)send->value;
		if (timeline->items[send->value].other == TIMELINE_NONE)
			timeline->items[send->value].other = i;
	}
	number_drop(&sent);
}

/* ------------------------------------------------------------------------
 * Whose a packet is that the trace has one end of.
 */

static void learn(struct number **owners, long long number, int column)
{
	if (column >= 0)
		number_add(owners, number, column);
}

static int column_of(struct number *owners, long long number)
{
	const struct number *owner = number_find(owners, number);

	return owner ? (int)owner->value : -1;
}

static void learn_owner(struct pairs *pairs, const struct item *item)
{
	bool sent = item->kind == ITEM_SEND;

	if (item->kind == ITEM_STATE)
		learn(&pairs->qpns, item_key(item, "qpn"), item->column);
	if (!item_is_packet(item))
		return;
	learn(&pairs->comm_ids, item_key(item, sent ? "local" : "remote"), item->column);
	if (sent && item->other != TIMELINE_NONE)
		learn(&pairs->peers, item_key(item, "local"),
		      pairs->timeline->items[item->other].column);
	if (!sent)
		learn(&pairs->qpns, item_key(item, "dst_qpn"), item->column);
}

/* The process that has the id or QP. */
static int find_owner(const struct pairs *pairs, const struct item *item)
{
	bool sent = item->kind == ITEM_SEND;
	int column = column_of(pairs->comm_ids, item_key(item, sent ? "remote" : "local"));

	if (column < 0 && item_key(item, "dst_qpn") >= 0)
		column = column_of(pairs->qpns, item_key(item, sent ? "dst_qpn" : "qpn"));
	/* A repeated REQ has no remote id yet. */
	return column < 0 && sent ? column_of(pairs->peers, item_key(item, "local")) : column;
}

/* Of a host with one process; else -1. */
static int only_process(const struct timeline *timeline, int host)
{
	int only = -1;

	for (int i = 0; i < timeline->num_columns; i++) {
		const struct column *column = &timeline->columns[i];

		if (column->host != host || column->untraced || column->kernel)
			continue;
		if (only >= 0)
			return -1;
		only = i;
	}
	return only;
}

/* That one, or one of the node that has no line in the trace. */
static int find_peer(struct pairs *pairs, const struct item *item)
{
	const char *node = item_text(item, item->kind == ITEM_SEND ? "to" : "from");
	int column = find_owner(pairs, item);

	if (column >= 0 || item->lost || !*node)
		return column;
	if (item->far != item->host)
		column = only_process(pairs->timeline, item->far);
	if (column >= 0)
		return column;
	column = timeline_column(pairs->timeline, tool_printf("%s, not traced", node));
	if (column >= 0) {
		pairs->timeline->columns[column].untraced = true;
		pairs->timeline->columns[column].host = item->far;
	}
	return column;
}

/* ------------------------------------------------------------------------
 * What is lost.
 */

static void cut_off(struct pairs *pairs, const struct item *item)
{
	const char *what = item_text(item, "what"), *state = item_text(item, "state");
	long long duration = item_number(item, "for");
	struct cut *cut = pairs->cuts;

	if (!*state && strcmp(what, "crash") && strcmp(what, "freeze") && strcmp(what, "removed"))
		return;
	while (cut < pairs->cuts + pairs->num_cuts && strcmp(cut->node, item->text))
		cut++;
	if (cut == pairs->cuts + TIMELINE_MAX_COLUMNS)
		return;
	if (cut == pairs->cuts + pairs->num_cuts)
		pairs->num_cuts++;
	cut->node = item->text;
	if (!strcmp(state, "ACTIVE"))
		cut->until = item->time;
	else if (!strcmp(what, "freeze") && duration > 0)
		cut->until = item->time + (uint64_t)duration;
	else
		cut->until = EVER;
}

static bool is_cut_off(const struct pairs *pairs, const char *node, uint64_t time)
{
	for (unsigned int i = 0; i < pairs->num_cuts; i++)
		if (!strcmp(pairs->cuts[i].node, node))
			return time < pairs->cuts[i].until;
	return false;
}

/*
 * Faults that happen to a packet follow its line, under the real clock a moment
 * later; corrupt data fails the wire's checksum.
 */
static bool is_taken(const struct timeline *t, const struct item *sent)
{
	bool data = item_number(sent, "dst_qpn") >= 0;

	for (const struct item *next = sent + 1;
	     next < t->items + t->num_items && (sent->process >= 0 || next->time == sent->time);
	     next++) {
		if (next->process != sent->process || next->writer != sent->writer)
			continue;
		if (next->kind != ITEM_FAULT || !*item_text(next, "what"))
			return false;
		if (!strcmp(next->text, "lose") || !strcmp(next->text, "reject") ||
		    (data && !strcmp(next->text, "corrupt")))
			return true;
	}
	return false;
}

static bool is_lost(const struct pairs *pairs, const struct item *sent)
{
	const struct timeline *t = pairs->timeline;

	if (!*item_text(sent, "to") || is_taken(t, sent))
		return true;
	if (sent->process >= 0)
		return is_cut_off(pairs, item_text(sent, "to"), sent->time);
	return t->items[t->num_items - 1].time - sent->time >= TIMELINE_LATE;
}

void timeline_find_peers(struct timeline *timeline)
{
	struct pairs pairs = { .timeline = timeline };

	for (size_t i = 0; i < timeline->num_items; i++)
		if (timeline->items[i].process >= 0)
			learn_owner(&pairs, &timeline->items[i]);
	for (size_t i = 0; i < timeline->num_items; i++) {
		struct item *item = &timeline->items[i];

		if (item->kind == ITEM_WORLD)
			cut_off(&pairs, item);
		if (!item_is_packet(item) || item->other != TIMELINE_NONE)
			continue;
		item->lost |= item->kind == ITEM_SEND && is_lost(&pairs, item);
		if (item->process >= 0 && !item_is_tcp(item))
			item->peer = find_peer(&pairs, item);
	}
	number_drop(&pairs.comm_ids);
	number_drop(&pairs.qpns);
	number_drop(&pairs.peers);
}
