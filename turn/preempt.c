/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/preempt.c - see preempt.h. */
#include "config.h"

#include <stddef.h>

#include "order.h"
#include "preempt.h"

/* From 100 us, many messages long, to 100 ms, as under load: each power of ten alike. */
#define SHORTEST_NS 100000u
#define NUM_LENGTHS 4u

void turn_preempt_init(struct turn_segment *segment)
{
	segment->preempt_at = TURN_NEVER;
	segment->num_chosen = segment->num_given = segment->num_preempted = 0;
}

/* The least that is later than that, of all threads. */
static uint64_t next_chosen(const struct turn_segment *segment, uint64_t point)
{
	uint64_t next = TURN_NEVER;

	for (uint32_t i = 0; i < segment->num_chosen; i++)
		if (segment->chosen[i] > point && segment->chosen[i] < next)
			next = segment->chosen[i];
	return next;
}

void turn_preempt_choose(struct turn_segment *segment, const struct turn_choice *choice)
{
	segment->chosen_program = choice->program;
	segment->preempt_seed = choice->seed;
	while (choice->points && segment->num_chosen < choice->num &&
	       segment->num_chosen < TURN_MAX_CHOSEN)
		segment->chosen[segment->num_chosen++] =
			1 + turn_order_draw(&segment->preempt_seed) % choice->points;
	segment->preempt_at = next_chosen(segment, 0);
}

void turn_preempt_end_choice(struct turn_segment *segment)
{
	segment->preempt_at = TURN_NEVER;
	segment->num_chosen = 0;
}

bool turn_preempt_give(struct turn_segment *segment, const struct turn_preemption *given)
{
	if (segment->num_given == TURN_MAX_PREEMPTIONS)
		return false;
	segment->given[segment->num_given++] = *given;
	return true;
}

static bool is_for(const struct turn_segment *segment, const struct turn_preemption *given,
		   const struct turn_thread *thread)
{
	return given->process == segment->members[thread->member].number &&
	       given->thread == thread->number;
}

static struct turn_point next_given(const struct turn_segment *segment,
				    const struct turn_thread *thread)
{
	struct turn_point next = { .call = TURN_NEVER };

	for (uint32_t i = 0; i < segment->num_given; i++)
		if (is_for(segment, &segment->given[i], thread) &&
		    turn_point_is_before(&thread->point, &segment->given[i].point) &&
		    turn_point_is_before(&segment->given[i].point, &next))
			next = segment->given[i].point;
	return next;
}

void turn_preempt_begin(struct turn_segment *segment, struct turn_thread *thread)
{
	thread->preempt_at = next_given(segment, thread);
}

/* Of all that it has come to since the last one. */
static uint64_t length_of_given(const struct turn_segment *segment, const struct turn_thread *thread)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < segment->num_given; i++) {
		const struct turn_preemption *given = &segment->given[i];

		if (is_for(segment, given, thread) &&
		    !turn_point_is_before(&given->point, &thread->preempt_at) &&
		    !turn_point_is_before(&thread->point, &given->point))
			ns += given->ns;
	}
	return ns;
}

static uint64_t draw_length(struct turn_segment *segment)
{
	uint64_t ns = SHORTEST_NS;

	for (uint64_t i = turn_order_draw(&segment->preempt_seed) % NUM_LENGTHS; i; i--)
		ns *= 10;
	return ns;
}

static bool is_chosen(const struct turn_segment *segment, const struct turn_thread *thread)
{
	return segment->chosen_program == TURN_NOBODY ||
	       segment->chosen_program == segment->members[thread->member].files.program;
}

uint64_t turn_preempt_take(struct turn_segment *segment, struct turn_thread *thread)
{
	const struct turn_member *member = &segment->members[thread->member];
	uint64_t ns = 0;

	if (!turn_point_is_before(&thread->point, &thread->preempt_at)) {
		ns = length_of_given(segment, thread);
		thread->preempt_at = next_given(segment, thread);
	}
	if (segment->points == segment->preempt_at) {
		if (!ns && is_chosen(segment, thread))
			ns = draw_length(segment);
		segment->preempt_at = next_chosen(segment, segment->preempt_at);
	}
	/* What cannot be noted could not be repeated. */
	if (!ns || segment->num_preempted == TURN_MAX_PREEMPTIONS)
		return 0;
	segment->preempted[segment->num_preempted++] = (struct turn_preemption){
		.process = member->number, .thread = thread->number, .program = member->files.program,
		.point = thread->point, .ns = ns, .call = thread->point_of,
	};
	return ns;
}
