/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_compare.c - the records of two runs (turn/record.h): where do they differ first?  The order
 * are turns and most calls.  Other calls, arguments and results may differ although the order is the
 * same; they are told as what may have caused a difference.
 */
#include "config.h"

#include <string.h>

#include "system.h"

/* Programs can write into a record, so its numbers are not trusted. */
static uint32_t num_events(const struct turn_segment *segment)
{
	const uint32_t num = segment->record.num_events;

	return num < TURN_MAX_EVENTS ? num : TURN_MAX_EVENTS;
}

static uint64_t num_counted(const struct turn_segment *segment)
{
	return segment->turns + segment->calls;
}

/* What the number of the order is made of. */
static bool is_same_place(const struct turn_event *a, const struct turn_event *b)
{
	return a->kind == b->kind && a->slot == b->slot && a->now == b->now &&
	       (a->kind == TURN_GIVEN || a->call == b->call);
}

static bool is_same(const struct turn_event *a, const struct turn_event *b, bool with_data)
{
	if (!is_same_place(a, b))
		return false;
	if (a->kind == TURN_GIVEN)
		return true;
	return !memcmp(a->arguments, b->arguments,
		       system_call_arguments(a->call) * sizeof(a->arguments[0])) &&
	       (!a->returned || !b->returned ||
		(a->result == b->result && (!with_data || a->data == b->data)));
}

/* The next that counts for the order; the end: none. */
static uint32_t next_counted(const struct turn_segment *segment, uint32_t at)
{
	while (at < num_events(segment) && segment->record.events[at].kind == TURN_QUIET_CALL)
		at++;
	return at;
}

/* Places in both records; false: what is kept is the same.  *ret_num: so much of it. */
static bool find_place(const struct turn_segment *const segments[2], uint32_t ret[2],
		       uint64_t *ret_num)
{
	ret[0] = ret[1] = 0;
	for (*ret_num = 0; ; (*ret_num)++) {
		for (int i = 0; i < 2; i++) {
			ret[i] = next_counted(segments[i], ret[i]);
			/* Events behind it are not kept. */
			if (ret[i] == TURN_MAX_EVENTS)
				return false;
		}
		if (ret[0] == num_events(segments[0]) || ret[1] == num_events(segments[1]))
			return ret[0] != num_events(segments[0]) ||
			       ret[1] != num_events(segments[1]);
		if (!is_same_place(&segments[0]->record.events[ret[0]],
				   &segments[1]->record.events[ret[1]]))
			return true;
		ret[0]++;
		ret[1]++;
	}
}

/* What differs before both places; a result counts that was there before. */
static void find_hint(const struct turn_segment *const segments[2], const uint32_t places[2],
		      bool with_data, struct system_difference *ret)
{
	for (uint32_t i = 0; i < places[0] && i < places[1]; i++) {
		const struct turn_event *a = &segments[0]->record.events[i];
		const struct turn_event *b = &segments[1]->record.events[i];

		if (is_same(a, b, with_data) || a->returned > places[0] || b->returned > places[1])
			continue;
		ret->hints[0] = a;
		ret->hints[1] = b;
		return;
	}
}

/* By marks, from a place on up to which they are the same. */
static void find_part(const struct turn_segment *const segments[2], uint64_t same,
		      struct system_difference *ret)
{
	uint64_t least = num_counted(segments[0]), most = num_counted(segments[1]), i;

	if (least > most) {
		most = least;
		least = num_counted(segments[1]);
	}
	for (i = same / TURN_MARK_EVERY; i < least / TURN_MARK_EVERY && i < TURN_MAX_MARKS; i++)
		if (segments[0]->record.marks[i].hash != segments[1]->record.marks[i].hash)
			break;
	ret->begin = i * TURN_MARK_EVERY > same ? i * TURN_MARK_EVERY : same;
	ret->end = (i + 1) * TURN_MARK_EVERY < most ? (i + 1) * TURN_MARK_EVERY : most;
}

bool system_has_cause(const struct system_difference *difference)
{
	const struct turn_event *a = difference->hints[0], *b = difference->hints[1];

	return a && a->kind == b->kind && a->call == b->call &&
	       !memcmp(a->arguments, b->arguments,
		       system_call_arguments(a->call) * sizeof(a->arguments[0]));
}

bool system_compare(const struct turn_segment *const segments[2], struct system_difference *ret)
{
	uint32_t places[2];
	uint64_t num;

	*ret = (struct system_difference){ .segments = { segments[0], segments[1] } };
	ret->is_known = find_place(segments, places, &num);
	find_hint(segments, places, false, ret);
	/* Some of what is read differs in most runs, such as numbers of inodes. */
	if (!system_has_cause(ret))
		find_hint(segments, places, true, ret);
	for (int i = 0; ret->is_known && i < 2; i++)
		if (places[i] < num_events(segments[i]))
			ret->events[i] = &segments[i]->record.events[places[i]];
	if (ret->is_known)
		return true;
	if (segments[0]->hash == segments[1]->hash &&
	    num_counted(segments[0]) == num_counted(segments[1]))
		return false;
	find_part(segments, segments[0]->record.from + num, ret);
	return true;
}
