/* SPDX-License-Identifier: BSD-2-Clause */
/* plugin/nearest.c - which name a person may have meant. */
#include "config.h"

#include "options.h"

#include <string.h>

#define PREFIX "POLYCM_"
#define PREFIX_LEN (sizeof(PREFIX) - 1)
#define MAX_WORD 64

static unsigned int min3(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int least = a < b ? a : b;

	return least < c ? least : c;
}

/* Insertions, deletions, substitutions and swaps of neighbours from a to b; both short. */
static unsigned int edit_distance(const char *a, size_t len_a, const char *b, size_t len_b)
{
	unsigned int table[3][MAX_WORD + 1];	/* the last three rows */

	for (unsigned int j = 0; j <= len_b; j++)
		table[0][j] = j;
	for (unsigned int i = 1; i <= len_a; i++) {
		unsigned int *now = table[i % 3], *before = table[(i + 2) % 3];
		const unsigned int *two_before = table[(i + 1) % 3];

		now[0] = i;
		for (unsigned int j = 1; j <= len_b; j++) {
			bool same = a[i - 1] == b[j - 1];

			now[j] = min3(before[j] + 1, now[j - 1] + 1, before[j - 1] + !same);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    two_before[j - 2] + 1 < now[j])
				now[j] = two_before[j - 2] + 1;
		}
	}
	return table[len_a % 3][len_b];
}

const char *polycm_nearest(const char *word, const char *const *candidates, size_t num)
{
	size_t skip = strncmp(word, PREFIX, PREFIX_LEN) ? 0 : PREFIX_LEN;
	size_t len = strlen(word + skip);
	unsigned int limit = len <= 3 ? 1 : len <= 7 ? 2 : 3;
	const char *nearest = NULL;

	if (len > MAX_WORD)
		return NULL;
	for (size_t i = 0; i < num; i++) {
		unsigned int distance;
		const char *candidate = candidates[i];
		size_t candidate_len;

		/* The common prefix does not count. */
		if (skip) {
			if (strncmp(candidate, PREFIX, PREFIX_LEN) != 0)
				continue;
			candidate += PREFIX_LEN;
		}
		candidate_len = strlen(candidate);
		if (candidate_len > MAX_WORD)
			continue;
		distance = edit_distance(word + skip, len, candidate, candidate_len);
		if (distance > limit || 2 * distance >= len)
			continue;
		nearest = candidates[i];
		if (!distance)
			break;
		limit = distance - 1;
	}
	return nearest;
}
