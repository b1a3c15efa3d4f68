/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/record.c - see record.h. */
#include "config.h"

#include <string.h>

#include "record.h"

static void mark(struct turn_segment *segment, uint64_t num)
{
	/* 0: a program has written there. */
	if (!num || num % TURN_MARK_EVERY || num / TURN_MARK_EVERY > TURN_MAX_MARKS)
		return;
	segment->record.marks[num / TURN_MARK_EVERY - 1] = (struct turn_mark){
		.hash = segment->hash, .turns = segment->turns, .now = segment->now,
	};
}

static void keep(struct turn_segment *segment, enum turn_event_kind kind, uint32_t slot)
{
	struct turn_record *record = &segment->record;
	struct turn_thread *thread = &segment->threads[slot];
	const struct turn_member *member = &segment->members[thread->member];
	struct turn_event *event = &record->events[record->num_events++];

	*event = (struct turn_event){
		.kind = kind, .slot = slot, .program = member->files.program,
		.process = member->number, .thread = thread->number, .call = thread->call,
		.turn = segment->turns, .now = segment->now,
	};
	memcpy(event->arguments, thread->arguments, sizeof(event->arguments));
	if (kind != TURN_GIVEN)
		thread->event = record->num_events;
	record->num_counted += kind != TURN_QUIET_CALL;
}

void turn_record(struct turn_segment *segment, enum turn_event_kind kind, uint32_t thread)
{
	const uint64_t num = segment->turns + segment->calls;

	if (!segment->records)
		return;
	if (kind != TURN_QUIET_CALL)
		mark(segment, num);
	if (kind != TURN_GIVEN)
		segment->threads[thread].event = 0;
	if (num > segment->record.from && segment->record.num_events < TURN_MAX_EVENTS)
		keep(segment, kind, thread);
}

void turn_record_result(struct turn_segment *segment, struct turn_thread *thread, int64_t result)
{
	struct turn_event *event;

	if (!segment->records || !thread->event)
		return;
	event = &segment->record.events[thread->event - 1];
	event->result = result;
	event->returned = segment->record.num_events;
	thread->event = 0;
}
