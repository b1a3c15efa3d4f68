/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario_syntax.c - reads a scenario file word by word, as libconfig's scanner does.
 * It finds what libconfig's parser must not get, and it says what was expected where
 * that parser only says "syntax error".
 */
#include "config.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "scenario_read.h"

#define MAX_DEPTH 16u			/* of nested brackets, since the parser's stack is limited */
#define MAX_SHOWN 30			/* characters of an unexpected word */

enum kind { END, NAME, WORD, NUMBER, TEXT, MARK, OPEN_TEXT };

struct word {
	enum kind kind;
	const char *at;
	int len;
	unsigned int line;
};

struct reader {
	const char *at;
	unsigned int line;
	struct word word;		/* the current one */
	unsigned int depth, opened[MAX_DEPTH + 1];	/* lines */
	char *why;
	size_t size;
	unsigned int why_line;
	bool is_strict;			/* no comma after the last element */
};

/* ------------------------------------------------------------------------
 * Words.
 */

/* Skip a comment or blanks; false: there are none here. */
static bool skip(struct reader *r)
{
	const char *end;

	if (*r->at == '#' || !strncmp(r->at, "//", 2))
		end = strchrnul(r->at, '\n');
	else if (!strncmp(r->at, "/*", 2))
		end = strstr(r->at + 2, "*/") ? strstr(r->at + 2, "*/") + 2 : strchr(r->at, '\0');
	else
		end = r->at + strspn(r->at, " \t\n\r\f\v");
	if (end == r->at)
		return false;
	for (; r->at < end; r->at++)
		r->line += *r->at == '\n';
	return true;
}

/* A text may go over several lines, and its quotes may be escaped. */
static int text_length(struct reader *r, bool *ret_closed)
{
	const char *at = r->at + 1;

	for (; *at && *at != '"'; at++) {
		if (*at == '\\' && (at[1] == '"' || at[1] == '\\'))
			at++;
		r->line += *at == '\n';
	}
	*ret_closed = *at == '"';
	return (int)(at - r->at) + *ret_closed;
}

static bool is_number(const char *at, int len)
{
	return isdigit((unsigned char)at[strspn(at, "+-.")]) && strspn(at, "+-.") < (size_t)len;
}

static void next(struct reader *r)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-*.+";
	struct word *word = &r->word;
	bool closed;

	while (skip(r))
		;
	*word = (struct word){ .kind = END, .at = r->at, .line = r->line };
	if (!*r->at)
		return;
	word->len = (int)strspn(r->at, letters);
	if (*r->at == '"') {
		word->len = text_length(r, &closed);
		word->kind = closed ? TEXT : OPEN_TEXT;
	} else if (!word->len) {
		word->len = 1;
		word->kind = MARK;
	} else if (is_number(r->at, word->len)) {
		word->kind = NUMBER;
	} else {
		word->kind = isalpha((unsigned char)*r->at) || *r->at == '*' ? NAME : WORD;
	}
	r->at += word->len;
}

static bool is_mark(const struct reader *r, char mark)
{
	return r->word.kind == MARK && *r->word.at == mark;
}

static bool is_bool(const struct word *word)
{
	return word->kind == NAME && ((word->len == 4 && !strncasecmp(word->at, "true", 4)) ||
				      (word->len == 5 && !strncasecmp(word->at, "false", 5)));
}

/* ------------------------------------------------------------------------
 * What was expected.
 */

static bool expected(struct reader *r, const char *what)
{
	const struct word *word = &r->word;
	int shown = word->len < MAX_SHOWN ? word->len : MAX_SHOWN;

	r->why_line = word->line;
	if (word->kind == OPEN_TEXT)
		snprintf(r->why, r->size, "the text in quotes that begins here does not end");
	else if (word->kind == END && r->depth)
		snprintf(r->why, r->size, "expected %s, found the end of the file: a bracket of "
			 "line %u is not closed", what, r->opened[r->depth]);
	else if (word->kind == END)
		snprintf(r->why, r->size, "expected %s, found the end of the file", what);
	else
		snprintf(r->why, r->size, "expected %s, found %s%.*s%s", what,
			 word->kind == TEXT ? "" : "'", shown, word->at, word->kind == TEXT ? "" : "'");
	return false;
}

static bool opens(const struct word *word)
{
	return word->kind == MARK && strchr("{[(", *word->at);
}

/* In an array are numbers, texts and flags; whoever writes a group there means a list. */
static bool expected_list(struct reader *r, const struct word *name)
{
	r->why_line = r->opened[r->depth];
	snprintf(r->why, r->size, "%.*s%s[ ... ]: expected %s",
		 name->len < MAX_SHOWN ? name->len : MAX_SHOWN, name->at, name->len ? " = " : "",
		 is_mark(r, '{') ? "a list of groups: ( { ... }, { ... } )" :
				   "a list: ( ... ), since brackets are inside of it");
	return false;
}

/* The name is that of the member whose value it is; length 0: it is an element. */
static bool read_value(struct reader *r, const struct word *name);

/* Read elements with commas between them; libconfig 1.7 allows one after the last, 1.5 does not. */
static bool read_elements(struct reader *r, const struct word *name, char end, const char *between)
{
	static const struct word none = { .at = "" };

	while (!is_mark(r, end)) {
		if (end == ']' && opens(&r->word))
			return expected_list(r, name);
		if (!read_value(r, &none))
			return false;
		if (!is_mark(r, ',') && !is_mark(r, end))
			return expected(r, between);
		if (is_mark(r, ',')) {
			next(r);
			if (r->is_strict && is_mark(r, end))
				return expected(r, "a value after ','");
		}
	}
	return true;
}

static bool read_members(struct reader *r, const char *what)
{
	while (!is_mark(r, '}') && r->word.kind != END) {
		struct word name = r->word;

		if (name.kind != NAME)
			return expected(r, what);
		next(r);
		if (!is_mark(r, '=') && !is_mark(r, ':')) {
			char text[MAX_SHOWN + 20];

			snprintf(text, sizeof(text), "'=' after '%.*s'",
				 name.len < MAX_SHOWN ? name.len : MAX_SHOWN, name.at);
			return expected(r, text);
		}
		next(r);
		if (!read_value(r, &name))
			return false;
		if (is_mark(r, ';') || is_mark(r, ','))
			next(r);
	}
	return true;
}

static bool read_inside(struct reader *r, const struct word *name)
{
	const char open = *r->word.at;
	bool good;

	r->opened[++r->depth] = r->word.line;
	next(r);
	if (open == '{') {
		good = read_members(r, "a member or '}'");
		if (good && !is_mark(r, '}'))
			good = expected(r, "'}'");
	} else {
		good = open == '(' ? read_elements(r, name, ')', "',' or ')'") :
				     read_elements(r, name, ']', "',' or ']'");
	}
	if (good) {
		r->depth--;
		next(r);
	}
	return good;
}

static bool read_value(struct reader *r, const struct word *name)
{
	char what[MAX_SHOWN + 60];

	if (opens(&r->word))
		return read_inside(r, name);
	if (r->word.kind == TEXT) {
		while (r->word.kind == TEXT)	/* adjacent texts are one */
			next(r);
		return true;
	}
	if (r->word.kind == NUMBER || is_bool(&r->word)) {
		next(r);
		return true;
	}
	snprintf(what, sizeof(what), "a value%s%.*s%s%s", name->len ? " for '" : "",
		 name->len < MAX_SHOWN ? name->len : MAX_SHOWN, name->at, name->len ? "'" : "",
		 r->word.kind == NAME || r->word.kind == WORD ? " (text stands in quotes)" : "");
	return expected(r, what);
}

bool scenario_syntax(const char *text, bool is_strict, unsigned int *ret_line, char *ret_why,
		     size_t size)
{
	struct reader r = {
		.at = text, .line = 1, .why = ret_why, .size = size, .is_strict = is_strict,
	};
	bool good;

	next(&r);
	good = read_members(&r, "the name of a member, such as nodes");
	if (good && r.word.kind != END)
		good = expected(&r, "the name of a member, such as nodes");
	if (!good)
		*ret_line = r.why_line;
	return good;
}

const char *scenario_forbidden(const char *text, unsigned int *ret_line)
{
	struct reader r = { .at = text, .line = 1 };

	for (next(&r); r.word.kind != END; next(&r)) {
		*ret_line = r.word.line;
		if (r.word.kind != MARK)
			continue;
		if (!strncmp(r.word.at, "@include", 8))
			return "@include: a scenario is one file";
		if (strchr("{[(", *r.word.at) && ++r.depth > MAX_DEPTH)
			return "too many brackets inside of each other";
		if (strchr("}])", *r.word.at) && r.depth)
			r.depth--;
	}
	return NULL;
}
