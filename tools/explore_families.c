/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explore_families.c - polycm explore: failures that are alike are of one family: they end alike,
 * need faults of the same kinds, and of a system the last lines of all programs are the same but for
 * numbers and names of programs.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "explore.h"

static bool is_same_failure(const struct explore_run *a, const struct explore_run *b)
{
	return explore_same(&a->result, &b->result) && !strcmp(a->last_words, b->last_words);
}

/* With a cause the words of a single program say no more. */
static bool is_alike(const struct explore *explore, const struct explore_run *a,
		     const struct explore_run *b, bool has_cause)
{
	return has_cause && !explore->is_system ? explore_same(&a->result, &b->result) :
						  is_same_failure(a, b);
}

/* Other faults, which it does not need, may change what other programs print. */
static bool is_alike_with_kinds(const struct explore *explore, const struct explore_family *family,
				struct explore_run *run)
{
	char *words;
	bool same;

	if (!explore_same(&family->run->result, &run->result))
		return false;
	words = explore_words_of_kinds(explore, run, &family->run->faults, family->keep);
	same = words && !strcmp(words, family->run->last_words);
	free(words);
	return same;
}

bool explore_has_family(const struct explore *explore, const struct explore_family *family,
			struct explore_run *run)
{
	const bool has_cause = family->needed;

	if (!is_alike(explore, family->run, run, has_cause) &&
	    !(has_cause && is_alike_with_kinds(explore, family, run)))
		return false;
	return !has_cause || explore_has_cause(explore, run, &family->run->faults, family->keep);
}

static bool is_one_family(const struct explore *explore, const struct explore_family *a,
			  const struct explore_family *b)
{
	return a->repeats == b->repeats && !a->needed == !b->needed &&
	       is_alike(explore, a->run, b->run, a->needed) &&
	       explore_same_kinds(&a->run->faults, a->keep, &b->run->faults, b->keep);
}

void explore_add_seed(struct explore_family *family, uint64_t seed)
{
	family->others = tool_realloc(family->others, family->num_others + 1, sizeof(uint64_t));
	family->others[family->num_others++] = seed;
}

void explore_free_family(struct explore_family *family)
{
	explore_free_run(family->run);
	free(family->trace);
	free(family->keep);
	free(family->others);
}

/* One of them is reported for both: the one with fewer faults. */
static void merge(struct explore_family *to, struct explore_family *from)
{
	struct explore_family fewer = from->needed < to->needed ? *from : *to;
	struct explore_family more = from->needed < to->needed ? *to : *from;

	for (size_t i = 0; i < more.num_others; i++)
		explore_add_seed(&fewer, more.others[i]);
	explore_add_seed(&fewer, more.run->seed);
	explore_free_family(&more);
	*to = fewer;
}

struct explore_family *explore_add_family(const struct explore *explore,
					  struct explore_families *families,
					  struct explore_family *family)
{
	for (size_t i = 0; i < families->num; i++) {
		if (!is_one_family(explore, &families->all[i], family))
			continue;
		merge(&families->all[i], family);
		return &families->all[i];
	}
	families->all = tool_realloc(families->all, families->num + 1, sizeof(*family));
	families->all[families->num] = *family;
	return &families->all[families->num++];
}
