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
	SCENARIO_LIST,		/* config_setting_t *: a list of groups, empty or not */
	SCENARIO_GROUP,		/* config_setting_t * */
	SCENARIO_ANY,		/* config_setting_t *: the caller looks at it */
};

struct scenario_member {
	const char *name;
	enum scenario_kind kind;
	size_t offset;
};

#define SCENARIO_MEMBER(struct_type, member, its_kind)                                             \
	{ .name = #member, .kind = (its_kind), .offset = offsetof(struct_type, member) }

/* The file as a whole, to be freed; a line at error level tells of what is wrong. */
int scenario_load_text(const char *path, char **ret_text, size_t *ret_len);
/* Into scenario->config, which is initialised and has a path; likewise. */
int scenario_parse(struct scenario *scenario, const char *text, size_t len);

/* scenario_syntax.c: what libconfig would do with, but we would not, and the line; NULL: nothing. */
const char *scenario_forbidden(const char *text, unsigned int *ret_line);
/* false: where the text is wrong, and what was expected there.  true: what is wrong is no word of it. */
bool scenario_syntax(const char *text, unsigned int *ret_line, char *ret_why, size_t size);

/* A REJ's reason, an errno: a number or a word for one (scenario_words.c).  -EINVAL: told. */
int scenario_read_reason(const struct scenario *scenario, const config_setting_t *setting,
			 int *ret_reason);
int scenario_read_errno(const struct scenario *scenario, const config_setting_t *setting,
			int *ret_errno);

/* One line at error level; returns -EINVAL.  at may be NULL: the file as a whole. */
int scenario_error(const struct scenario *scenario, const config_setting_t *at, const char *format,
		   ...) __attribute__((format(printf, 3, 4)));

/* "latency = 5", or only the value, for such lines; in one of two static buffers. */
const char *scenario_show(const config_setting_t *setting);

/* Fill in the struct's members that the group has; what: "a link". */
int scenario_read_group(const struct scenario *scenario, const config_setting_t *group,
			const char *what, const struct scenario_member *members, unsigned int num,
			void *ret);

#endif
