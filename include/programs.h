/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * programs.h - the group `programs' of a scenario file, which the simulator checks and polycm run
 * starts: what its texts mean.  Not installed.
 */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define PROGRAMS_MAX 64u	/* a bit for each */
#define PROGRAMS_MAX_NAME 64u
#define PROGRAMS_TIME_LEN 40u	/* of a time as a text */
#define PROGRAMS_ALL "all"
#define PROGRAMS_ENDED " ended"
#define PROGRAMS_PAUSE_S 60u	/* before those that begin after all others */

struct programs_entry {
	const char *name;	/* or NULL */
	const char *node, *after;
	bool is_daemon;
};

enum programs_when {
	PROGRAMS_IN_ORDER,	/* a second after the one before it */
	PROGRAMS_AT,
	PROGRAMS_WAITS,		/* when those wait for the first time */
	PROGRAMS_END,		/* when those have ended */
	PROGRAMS_LAST,		/* the same: all that are no daemons */
};

struct programs_begin {
	enum programs_when when;
	uint64_t those;		/* bits */
	uint64_t at;		/* ns */
};

/* ------------------------------------------------------------------------
 * Commands.
 */

#define PROGRAMS_QUOTE -2	/* one that does not end */
#define PROGRAMS_SHELL -3	/* what only a shell understands */

/*
 * The next word of a command, as a shell has it that expands nothing: its length, -1 at the end, or
 * what is wrong.  word: room for all of the rest, or NULL.
 */
static inline int programs_word(const char **rest, char *word)
{
	const char *at = *rest + strspn(*rest, " \t\n");
	char quote = '\0';
	int len = 0;

	if (!*at) {
		*rest = at;
		return -1;
	}
	for (; *at && (quote || !strchr(" \t\n", *at)); at++) {
		if (*at == quote) {
			quote = '\0';
			continue;
		}
		if (!quote && (*at == '\'' || *at == '"')) {
			quote = *at;
			continue;
		}
		if (!quote && strchr("|&;<>$`", *at))
			return PROGRAMS_SHELL;
		if (*at == '\\' && quote != '\'' && at[1] && (!quote || strchr("\"\\", at[1])))
			at++;
		if (word)
			word[len] = *at;
		len++;
	}
	if (word)
		word[len] = '\0';
	*rest = at;
	return quote ? PROGRAMS_QUOTE : len;
}

/* ------------------------------------------------------------------------
 * Who begins when.
 */

/* It sees the devices of all nodes, as the only program of a simulation does. */
static inline bool programs_is_on_all(const char *node)
{
	return !strcmp(node, PROGRAMS_ALL);
}

static inline const char *programs_label(const struct programs_entry *entry)
{
	return entry->name ? entry->name : entry->node;
}

/* Those of that name, or else on that node, but for one of them. */
static inline uint64_t programs_named(const struct programs_entry *entries, uint32_t num,
				      uint32_t but, const char *name, size_t len)
{
	uint64_t named = 0, there = 0;

	for (uint32_t i = 0; i < num; i++) {
		const char *is = entries[i].name, *node = entries[i].node;

		if (i == but)
			continue;
		if (is && strlen(is) == len && !memcmp(is, name, len))
			named |= UINT64_C(1) << i;
		if (strlen(node) == len && !memcmp(node, name, len))
			there |= UINT64_C(1) << i;
	}
	return named ? named : there;
}

/* "2 s", "0.5 s", "100 ms" */
static inline bool programs_time(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
		{ "min", UINT64_C(60000000000) },
	};
	uint64_t whole = 0, part = 0, scale = 1;

	if (*text < '0' || *text > '9')
		return false;
	for (; *text >= '0' && *text <= '9' && whole < 1000000000; text++)
		whole = whole * 10 + (uint64_t)(*text - '0');
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9' && scale < 1000000; text++, scale *= 10)
			part = part * 10 + (uint64_t)(*text - '0');
	text += strspn(text, " ");
	for (uint32_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(text, units[i].name) != 0)
			continue;
		*ret_ns = whole * units[i].ns + part * units[i].ns / scale;
		return whole < 100000000;
	}
	return false;
}

/* As programs_time() reads it: each ns up to a day, then us. */
static inline void programs_write_time(uint64_t ns, char *ret, size_t size)
{
	const bool is_long = ns / 1000000 >= 100000000;
	const uint64_t unit = is_long ? 1000000000 : 1000000;
	char part[16];
	size_t len;

	snprintf(part, sizeof(part), ".%06u", (unsigned int)(ns % unit / (unit / 1000000)));
	for (len = strlen(part); part[len - 1] == '0'; len--)
		;
	part[part[len - 1] == '.' ? 0 : len] = '\0';
	snprintf(ret, size, "%llu%s %s", (unsigned long long)(ns / unit), part, is_long ? "s" : "ms");
}

static inline bool programs_is_last(const struct programs_entry *entry)
{
	return entry->after && !strcmp(entry->after, PROGRAMS_ALL);
}

static inline uint64_t programs_before_last(const struct programs_entry *entries, uint32_t num)
{
	uint64_t those = 0;

	for (uint32_t i = 0; i < num; i++)
		if (!entries[i].is_daemon && !programs_is_last(&entries[i]))
			those |= UINT64_C(1) << i;
	return those;
}

/* When the i-th begins; false: its `after' means nothing. */
static inline bool programs_begin(const struct programs_entry *entries, uint32_t num, uint32_t i,
				  struct programs_begin *ret)
{
	const char *after = entries[i].after;
	const size_t len = after ? strlen(after) : 0, end = strlen(PROGRAMS_ENDED);

	*ret = (struct programs_begin){ .when = PROGRAMS_IN_ORDER };
	if (!after)
		return true;
	if (programs_is_last(&entries[i])) {
		ret->when = PROGRAMS_LAST;
		ret->those = programs_before_last(entries, num);
		return true;
	}
	ret->when = PROGRAMS_WAITS;
	ret->those = programs_named(entries, num, i, after, len);
	if (!ret->those && len > end && !strcmp(after + len - end, PROGRAMS_ENDED)) {
		ret->when = PROGRAMS_END;
		ret->those = programs_named(entries, num, i, after, len - end);
	}
	if (ret->those)
		return true;
	ret->when = PROGRAMS_AT;
	return programs_time(after, &ret->at);
}

/* One of those that wait for each other; -1: none does. */
static inline int programs_circle(const struct programs_begin *begins, uint32_t num)
{
	uint64_t begun = 0, before;

	do {
		before = begun;
		for (uint32_t i = 0; i < num; i++)
			if (!(begins[i].those & ~begun))
				begun |= UINT64_C(1) << i;
	} while (begun != before);
	for (uint32_t i = 0; i < num; i++)
		if (!(begun >> i & 1))
			return (int)i;
	return -1;
}

#endif
