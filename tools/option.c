/* SPDX-License-Identifier: BSD-2-Clause */
/* option.c - options of the command line, and what is said of one that cannot be. */
#include "config.h"

#include <string.h>

#include "polycm.h"

#define LONGEST 32u			/* of what is compared */

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* How many letters have to be put in, taken out or replaced (Levenshtein). */
static unsigned int distance(const char *a, size_t a_len, const char *b)
{
	size_t b_len = strnlen(b, LONGEST);
	unsigned int row[LONGEST + 1], corner, above;

	for (unsigned int j = 0; j <= b_len; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		corner = row[0]++;
		for (size_t j = 1; j <= b_len; j++) {
			above = row[j];
			row[j] = least(corner + (a[i - 1] != b[j - 1]), 1 + least(above, row[j - 1]));
			corner = above;
		}
	}
	return row[b_len];
}

/* NULL: too many letters differ for a slip. */
static const char *nearest(const char *word, size_t len, const struct option *options)
{
	unsigned int best = ((unsigned int)len + 2) / 3 + 1, d;
	const char *name = NULL;

	for (; len <= LONGEST && options->name; options++) {
		d = distance(word, len, options->name);
		if (d < best) {
			name = options->name;
			best = d;
		}
	}
	return name;
}

static const char *name_of(int value, const struct option *options)
{
	for (; options->name; options++)
		if (options->val == value)
			return options->name;
	return NULL;
}

static void tell_unknown(const char *command, const char *word, const struct option *options)
{
	size_t len = strcspn(word, "=");
	const char *near = nearest(word, len, options);

	fprintf(stderr, "%s: unrecognized option '--%.*s'%s%s%s; 'polycm help%s' lists them\n", command,
		(int)len, word, near ? "; nearest: '--" : "", near ? near : "", near ? "'" : "",
		strpbrk(command, " "));
}

/* "--trace=x" where it takes none, or the beginning of several. */
static void tell_long(const char *command, const char *word, const struct option *options)
{
	size_t len = strcspn(word, "=");
	unsigned int begin = 0;

	for (const struct option *option = options; option->name; option++)
		begin += !strncmp(option->name, word, len);
	if (!begin)
		tell_unknown(command, word, options);
	else if (begin > 1)
		fprintf(stderr, "%s: option '--%.*s' is ambiguous\n", command, (int)len, word);
	else
		fprintf(stderr, "%s: option '--%.*s' takes no value\n", command, (int)len, word);
}

/* Like getopt_long(); '?': after an error message. */
static int next_option(int argc, char **argv, const char *letters, const struct option *options)
{
	const char *word, *name;
	int c;

	opterr = 0;
	c = getopt_long(argc, argv, letters, options, NULL);
	if (c != '?' && c != ':')
		return c;
	word = argv[optind - 1];
	name = c == ':' ? name_of(optopt, options) : NULL;
	if (name)
		fprintf(stderr, "%s: option '--%s' requires an argument\n", argv[0], name);
	else if (!strncmp(word, "--", 2))
		tell_long(argv[0], word + 2, options);
	else
		fprintf(stderr, "%s: invalid option -- '%c'\n", argv[0], optopt);
	return '?';
}

int tool_options(int argc, char **argv, const char *letters, const struct option *options,
		 void (*usage)(FILE *to), const char **values)
{
	int c;

	while ((c = next_option(argc, argv, letters, options)) != -1) {
		if (c == '?')
			return STATUS_USAGE;
		if (c == 'h') {
			usage(stdout);
			return 0;
		}
		values[c] = optarg ? optarg : "";
	}
	return -1;
}
