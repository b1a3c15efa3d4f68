/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which of ten messages, 10 ns apart, the first at 0, a rule is for, by count,
 * time and chance, with seed 1.  It is the same for the simulator's rules and
 * for those of the layer "fault".
 */
#ifndef RULE_COUNTS_H
#define RULE_COUNTS_H

#include <stdint.h>

static const struct rule_count {
	unsigned int nth, times;
	double probability;		/* 0: always */
	uint64_t from_ns, until_ns;
	const char *others;		/* the rule is not for these */
	unsigned int hits;
} rule_counts[] = {
	{ .nth = 0, .others = "", .hits = 10 },
	{ .nth = 1, .others = "1 2 3 4 5 6 7 8 9", .hits = 1 },
	{ .nth = 3, .others = "0 1 3 4 5 6 7 8 9", .hits = 1 },
	{ .nth = 11, .others = "0 1 2 3 4 5 6 7 8 9", .hits = 0 },
	{ .times = 2, .others = "2 3 4 5 6 7 8 9", .hits = 2 },
	{ .nth = 3, .times = 4, .others = "0 1 6 7 8 9", .hits = 4 },
	{ .nth = 9, .times = 100, .others = "0 1 2 3 4 5 6 7", .hits = 2 },
	{ .from_ns = 35, .others = "0 1 2 3", .hits = 6 },
	{ .from_ns = 30, .others = "0 1 2", .hits = 7 },
	{ .until_ns = 30, .others = "3 4 5 6 7 8 9", .hits = 3 },
	{ .from_ns = 20, .until_ns = 40, .others = "0 1 4 5 6 7 8 9", .hits = 2 },
	{ .from_ns = 20, .nth = 2, .others = "0 1 2 4 5 6 7 8 9", .hits = 1 },
	{ .probability = 1, .others = "", .hits = 10 },
	{ .probability = 0.5, .others = "0 1 2 4 8 9", .hits = 4 },
	/* Chance is asked for those that count says, and only for them. */
	{ .probability = 0.5, .times = 2, .others = "0 1 2 4 6 7 8 9", .hits = 2 },
	{ .probability = 0.5, .nth = 3, .others = "0 1 2 3 4 5 6 7 8 9", .hits = 0 },
	{ .probability = 0.5, .nth = 3, .times = 5, .others = "0 1 2 3 4 6 7 8 9", .hits = 1 },
	{ .probability = 1e-9, .others = "0 1 2 3 4 5 6 7 8 9", .hits = 0 },
};

#endif
