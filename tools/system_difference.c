/* SPDX-License-Identifier: BSD-2-Clause */
/* system_difference.c - where two runs differ (system_compare.c), in words. */
#include "config.h"

#include <stdlib.h>
#include <sys/syscall.h>

#include "system.h"

static double seconds(uint64_t now)
{
	return (double)(now - TURN_BEGIN) / 1e9;
}

/* "server: rping, process 1, thread 2", to be freed. */
static char *who(const struct system *system, const struct turn_event *event)
{
	const struct system_program *program = event->program < system->num ?
		&system->programs[event->program] : NULL;

	return tool_printf("%s: %s, process %u, thread %u", program ? system_name(program) : "?",
			   program ? program->command[0] : "?", event->process, event->thread);
}

/* Its descriptor is of the file that a call before it opened; NULL: it is not known. */
static const struct turn_event *opened(const struct turn_segment *segment,
				       const struct turn_event *event)
{
	static const uint32_t calls[] = {
		SYS_read, SYS_readv, SYS_pread64, SYS_preadv, SYS_write, SYS_writev, SYS_pwrite64,
		SYS_pwritev, SYS_getdents64, SYS_fstat, SYS_lseek,
	};
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]) && calls[i] != event->call; i++)
		;
	for (const struct turn_event *is = event;
	     i < sizeof(calls) / sizeof(calls[0]) && is-- > segment->record.events;)
		if (is->process == event->process && is->has_path && is->returned &&
		    (is->call == SYS_open || is->call == SYS_openat || is->call == SYS_creat) &&
		    is->result == (int64_t)event->arguments[0])
			return is;
	return NULL;
}

/* What it does, to be freed. */
static char *what(const struct turn_segment *segment, const struct turn_event *event)
{
	const struct turn_event *file = opened(segment, event);
	char *call = system_call_words(event), *words;

	words = tool_printf("%s%s", event->kind == TURN_GIVEN ? "goes on in " : "", call);
	free(call);
	if (file) {
		call = system_call_path(file);
		tool_append(&words, " of %s", call);
		free(call);
	}
	if (event->kind != TURN_GIVEN && event->returned)
		tool_append(&words, " = %lld", (long long)event->result);
	if (event->data)
		tool_append(&words, " (data %08x)", (unsigned int)(event->data ^ event->data >> 32));
	return words;
}

static void tell_event(const struct system *system, const char *run,
		       const struct turn_segment *segment, const struct turn_event *event)
{
	char *name, *words;

	if (!event) {
		tool_error("run: the %s run has ended", run);
		return;
	}
	name = who(system, event);
	words = what(segment, event);
	tool_error("run: the %s run, turn %llu, %.6f s: %s, %s", run, (unsigned long long)event->turn,
		   seconds(event->now), name, words);
	free(words);
	free(name);
}

static void tell_pair(const struct system *system, const struct system_difference *difference,
		      const struct turn_event *const events[2])
{
	tell_event(system, "first", difference->segments[0], events[0]);
	tell_event(system, "second", difference->segments[1], events[1]);
}

static uint64_t first_turn(const struct system_difference *difference)
{
	uint64_t turn = UINT64_MAX;

	for (int i = 0; i < 2; i++)
		if (difference->events[i] && difference->events[i]->turn < turn)
			turn = difference->events[i]->turn;
	return turn;
}

/* Turns, of turns and calls: as near as marks say. */
static uint64_t turn_at(const struct turn_segment *segment, uint64_t num, bool is_end)
{
	const uint64_t mark = (num + (is_end ? TURN_MARK_EVERY - 1 : 0)) / TURN_MARK_EVERY;

	if (!mark)
		return 0;
	return mark <= TURN_MAX_MARKS && mark <= (segment->turns + segment->calls) / TURN_MARK_EVERY ?
		segment->record.marks[mark - 1].turns : segment->turns;
}

void system_tell_difference(const struct system *system, const struct system_difference *difference,
			    const struct turn_segment *first, const char *why)
{
	if (difference->is_known) {
		tool_error("run: the second run differs from the first in turn %llu:",
			   (unsigned long long)first_turn(difference));
		tell_pair(system, difference, difference->events);
	} else {
		tool_error("run: the second run differs from the first between the turns %llu and "
			   "%llu, and %s",
			   (unsigned long long)turn_at(first, difference->begin, false),
			   (unsigned long long)turn_at(first, difference->end, true), why);
	}
}

/* Is all that was before the difference in the records? */
static bool knows_all(const struct system_difference *difference)
{
	const struct turn_record *record = &difference->segments[0]->record;

	return !record->from && (difference->is_known || record->num_events < TURN_MAX_EVENTS);
}

void system_tell_hint(const struct system *system, const struct system_difference *difference)
{
	const bool has_hint = difference->hints[0], has_cause = system_has_cause(difference);

	if (has_hint) {
		tool_error("run: the first call that %s:", has_cause ?
			   "has another result, which may be the cause" : "is not the same");
		tell_pair(system, difference, difference->hints);
	}
	if (!has_cause && knows_all(difference))
		tool_error("run: all calls before that have the same results: the cause may be "
			   "memory that others change, or the processor's time stamp counter or "
			   "random numbers (RDRAND)");
}
