/* SPDX-License-Identifier: BSD-2-Clause */
/* timeline_last.c - the end of a trace as a ladder, for the page about a failure. */
#include "config.h"

#include "polycm.h"
#include "timeline.h"

#define LAST_NS UINT64_C(1000000000)
#define LEAST_ITEMS 48u		/* also if they are earlier */
#define MOST_ITEMS 160u
#define WIDTH 120u

/* The last second before that time, or some more if little happened in it. */
void timeline_keep_last(struct timeline *timeline)
{
	uint64_t last = 0;
	size_t kept = 0;

	for (size_t i = timeline->num_items; i--; ) {
		struct item *item = &timeline->items[i];

		if (!item->selected)
			continue;
		item->selected = item->time <= timeline->until && kept < MOST_ITEMS;
		if (!item->selected)
			continue;
		if (!kept)
			last = item->time;
		item->selected = kept < LEAST_ITEMS || item->time + LAST_NS >= last;
		kept += item->selected;
	}
}

bool timeline_print_last(FILE *to, char *trace, uint64_t start, uint64_t until)
{
	struct timeline timeline = { .cm = true, .until = until };
	struct rows rows;
	bool drawn = false;

	if (!timeline_read(&timeline, &trace, 1) && timeline.num_items &&
	    !timeline_select(&timeline, -1, NULL)) {
		if (start)
			timeline.start = start;
		timeline_rows(&timeline, &rows);
		timeline_text(&timeline, &rows, to, WIDTH, false);
		timeline_rows_free(&rows);
		drawn = true;
	}
	timeline_free(&timeline);
	return drawn;
}
