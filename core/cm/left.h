/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/left.h - what the program has and has not ended: ids, event channels and
 * events, for reports of leaks and for tear-downs.
 *
 * Only what belongs to the provider `owner', or to none yet, counts; with NULL all does.
 */
#ifndef POLYCM_CORE_RDMA_LEFT_H
#define POLYCM_CORE_RDMA_LEFT_H

#include <stdbool.h>
#include <stddef.h>

struct polycm_module;

struct polycm_left {
	const char *kind;		/* "rdma_cm_id" */
	const void *handle;		/* the program's pointer */
	const char *made_by;		/* the call, or NULL */
	const void *made_at;		/* where it returned to */
	char text[192];
};

struct polycm_left_list {
	struct polycm_left *items;
	size_t num, room;
	bool failed;			/* no memory: it is not complete */
};

struct polycm_left_counts {
	unsigned int ids, channels, events;
	unsigned int orphans;		/* ids whose channel is destroyed */
};

void polycm_left_count(const struct polycm_module *owner, struct polycm_left_counts *ret_counts);
/* Adds to the list; ids first. */
void polycm_left_collect(const struct polycm_module *owner, struct polycm_left_list *list);
void polycm_left_add(struct polycm_left_list *list, const struct polycm_left *left);
/*
 * End them all, as if the program had acknowledged its events, destroyed its
 * ids and then its channels.  No other thread may use them meanwhile.
 */
void polycm_left_end(const struct polycm_module *owner);

#endif
