/* SPDX-License-Identifier: BSD-2-Clause */
/* timeline_numbers.c - polycm timeline: sets of ids, each with a number that belongs to it. */
#include "config.h"

#include <stdlib.h>

#include "polycm.h"
#include "timeline.h"

struct number *number_find(struct number *set, long long key)
{
	struct number *number;

	HASH_FIND(hh, set, &key, sizeof(key), number);
	return number;
}

bool number_add(struct number **set, long long key, long long value)
{
	struct number *number;

	if (key <= 0 || number_find(*set, key))
		return false;
	number = tool_realloc(NULL, 1, sizeof(*number));
	*number = (struct number){ .key = key, .value = value };
	HASH_ADD(hh, *set, key, sizeof(number->key), number);
	return true;
}

void number_drop(struct number **set)
{
	struct number *number, *next;

	HASH_ITER(hh, *set, number, next) {
		HASH_DEL(*set, number);
		free(number);
	}
}
