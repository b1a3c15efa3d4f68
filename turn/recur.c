/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/recur.c - see recur.h.  The circle is found as by Brent's algorithm. */
#include "config.h"

#include <string.h>

#include "recur.h"

static void begin_at(struct turn_recur *recur, const struct turn_recur_state *state)
{
	recur->from = *state;
	recur->steps = 0;
	recur->num_words = 0;
}

static int compare(const struct turn_recur_state *a, const struct turn_recur_state *b)
{
	/* Most differ here. */
	if (a->registers[TURN_RIP] != b->registers[TURN_RIP])
		return a->registers[TURN_RIP] < b->registers[TURN_RIP] ? -1 : 1;
	for (unsigned int i = 0; i < TURN_NUM_REGISTERS; i++)
		if (a->registers[i] != b->registers[i])
			return a->registers[i] < b->registers[i] ? -1 : 1;
	return 0;
}

static bool is_same_memory(const struct turn_recur *recur)
{
	for (uint32_t i = 0; i < recur->num_words; i++)
		if (*recur->words[i].at != recur->words[i].value)
			return false;
	return true;
}

static bool is_back(const struct turn_recur *recur, const struct turn_recur_state *state)
{
	return !compare(&recur->from, state) && recur->from.others == state->others &&
	       is_same_memory(recur);
}

void turn_recur_begin(struct turn_recur *recur, const struct turn_recur_state *state)
{
	recur->phase = SEARCHES;
	recur->is_full = false;
	recur->next = 2;
	begin_at(recur, state);
}

static void note(struct turn_recur *recur, uint64_t *at)
{
	for (uint32_t i = 0; i < recur->num_words; i++)
		if (recur->words[i].at == at)
			return;
	if (recur->num_words == TURN_RECUR_WORDS) {
		recur->is_full = true;
		return;
	}
	recur->words[recur->num_words].at = at;
	recur->words[recur->num_words].value = *at;
	recur->num_words++;
}

void turn_recur_writes(struct turn_recur *recur, uint64_t at, size_t size)
{
	const uint64_t end = at + size;

	for (uint64_t word = at & ~UINT64_C(7); size && word < end; word += 8)
		note(recur, (uint64_t *)word);
}

static enum turn_recur_answer search(struct turn_recur *recur, const struct turn_recur_state *state)
{
	/* What was written is not known where it was too much; from another place it may be less. */
	if (!recur->is_full && is_back(recur, state)) {
		recur->phase = MEASURES;
		recur->is_double = false;
		recur->length = recur->steps;
		recur->least = *state;
		begin_at(recur, state);
		return TURN_RECUR_PERHAPS;
	}
	if (recur->steps == recur->next) {
		recur->next *= 2;
		recur->is_full = false;
		begin_at(recur, state);
	}
	return TURN_RECUR_PERHAPS;
}

static enum turn_recur_answer arrive(struct turn_recur *recur, const struct turn_recur_state *state)
{
	recur->phase = ROUNDS;
	begin_at(recur, state);
	return TURN_RECUR_WAITS;
}

static enum turn_recur_answer measure(struct turn_recur *recur, const struct turn_recur_state *state)
{
	int order;

	if (recur->steps == recur->length) {
		if (!is_back(recur, state) || recur->is_double)
			return TURN_RECUR_UNKNOWN;
		recur->phase = APPROACHES;
		recur->steps = 0;
		return compare(state, &recur->least) ? TURN_RECUR_PERHAPS : arrive(recur, state);
	}
	order = compare(state, &recur->least);
	if (order < 0)
		recur->least = *state;
	/* It is there twice, and memory differs. */
	if (order <= 0)
		recur->is_double = !order;
	return TURN_RECUR_PERHAPS;
}

static enum turn_recur_answer approach(struct turn_recur *recur, const struct turn_recur_state *state)
{
	if (!compare(state, &recur->least))
		return arrive(recur, state);
	return recur->steps == recur->length ? TURN_RECUR_UNKNOWN : TURN_RECUR_PERHAPS;
}

static enum turn_recur_answer round_again(struct turn_recur *recur,
					  const struct turn_recur_state *state)
{
	if (recur->steps < recur->length)
		return TURN_RECUR_PERHAPS;
	return is_back(recur, state) ? arrive(recur, state) : TURN_RECUR_CHANGED;
}

enum turn_recur_answer turn_recur_step(struct turn_recur *recur, const struct turn_recur_state *state)
{
	recur->steps++;
	if (recur->is_full && recur->phase != SEARCHES)
		return TURN_RECUR_UNKNOWN;
	switch (recur->phase) {
	case SEARCHES:
		return search(recur, state);
	case MEASURES:
		return measure(recur, state);
	case APPROACHES:
		return approach(recur, state);
	case ROUNDS:
		return round_again(recur, state);
	}
	return TURN_RECUR_UNKNOWN;
}
