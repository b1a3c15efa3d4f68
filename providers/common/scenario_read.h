/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario_read.h - members of a scenario file's groups, read by tables, and
 * errors that say where and what.
 */
#ifndef COMMON_SCENARIO_READ_H
#define COMMON_SCENARIO_READ_H

#include <libconfig.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scenario {
	const char *path;
	config_t config;
};

/* Where a member's value goes: the type of the struct's member. */
enum scenario_kind {
	SCENARIO_TEXT,		/* const char *, valid as long as the scenario */
	SCENARIO_TIME,		/* uint64_t, "5 us" */
	SCENARIO_RATE,		/* uint64_t, "10 Gbit/s" */
	SCENARIO_CHANCE,	/* double, from 0 to 1 */
	SCENARIO_COUNT,		/* unsigned int */
	SCENARIO_NUMBER,	/* uint64_t */
	SCENARIO_INT,		/* int */
	SCENARIO_FLAG,		/* bool */
	SCENARIO_LIST,		/* config_setting_t *: a list of groups, empty or not */
	SCENARIO_GROUP,		/* config_setting_t * */
	SCENARIO_ANY,		/* config_setting_t *: the caller looks at it */
};

struct scenario_member {
	const char *name;
	enum scenario_kind kind;
	size_t offset;
};

#define SCENARIO_MEMBER_AS(its_name, struct_type, member, its_kind)                                \
	{ .name = (its_name), .kind = (its_kind), .offset = offsetof(struct_type, member) }
#define SCENARIO_MEMBER(struct_type, member, its_kind)                                             \
	SCENARIO_MEMBER_AS(#member, struct_type, member, its_kind)

/*
 * Parse the text, or without one the file of scenario->path.  An error is logged.  The caller
 * destroys scenario->config in any case.
 */
int scenario_open(struct scenario *scenario, const char *text, size_t len);

/* scenario_syntax.c: something that libconfig accepts and we refuse, and its line; NULL: nothing. */
const char *scenario_forbidden(const char *text, unsigned int *ret_line);
/*
 * false: the line of the first syntax error, and what was expected there.  true: the syntax is right.
 * is_strict: a comma after the last element is an error, as for libconfig before 1.7.
 */
bool scenario_syntax(const char *text, bool is_strict, unsigned int *ret_line, char *ret_why,
		     size_t size);

/* A REJ's reason, an errno: a number or its name (scenario_words.c).  -EINVAL, which is logged. */
int scenario_read_reason(const struct scenario *scenario, const config_setting_t *setting,
			 int *ret_reason);
int scenario_read_errno(const struct scenario *scenario, const config_setting_t *setting,
			int *ret_errno);

/* Log one line at level error; returns -EINVAL.  at NULL: the line is about the whole file. */
int scenario_error(const struct scenario *scenario, const config_setting_t *at, const char *format,
		   ...) __attribute__((format(printf, 3, 4)));

/* "latency = 5", or only the value, for scenario_error(); in one of two static buffers. */
const char *scenario_show(const config_setting_t *setting);

/* Set those members of the struct that the group has; what: "a link". */
int scenario_read_members(const struct scenario *scenario, const config_setting_t *group,
			  const char *what, const struct scenario_member *members, size_t num,
			  void *ret);
#define scenario_read_group(scenario, group, what, members, ret)                                   \
	scenario_read_members(scenario, group, what, members, sizeof(members) / sizeof((members)[0]), \
			      ret)

/* Call read() for each group of a list, until one fails.  A list that is NULL is empty. */
int scenario_for_each(const struct scenario *scenario, const config_setting_t *list,
		      int (*read)(const struct scenario *scenario, const config_setting_t *group,
				  void *arg), void *arg);

#endif
