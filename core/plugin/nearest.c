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

void polycm_nearest_try(struct polycm_nearest *self, const char *candidate)
{
	size_t skip = strncmp(self->word, PREFIX, PREFIX_LEN) ? 0 : PREFIX_LEN;
	size_t len = strlen(self->word + skip), candidate_len;
	unsigned int limit = len <= 3 ? 1 : len <= 7 ? 2 : 3, distance;

	/* The common prefix does not count. */
	if (skip && strncmp(candidate, PREFIX, PREFIX_LEN) != 0)
		return;
	candidate_len = strlen(candidate + skip);
	if (len > MAX_WORD || candidate_len > MAX_WORD)
		return;
	distance = edit_distance(self->word + skip, len, candidate + skip, candidate_len);
	if (distance > limit || 2 * distance >= len)
		return;
	if (!self->found || distance < self->distance) {
		self->found = candidate;
		self->distance = distance;
	}
}
