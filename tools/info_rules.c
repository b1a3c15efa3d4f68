/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * info_rules.c - the rules of transports side by side: a row for each rule, a
 * column for each transport.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "polycm.h"
#include "polycm/polycm.h"

/* Of a column of values. */
#define WIDTH_OF_MANY 24
#define WIDTH_OF_ONE 60

struct rule {
	char *name;
	char **values;		/* one per transport; NULL: it has no such rule */
};

struct rules {
	struct rule *rules;
	size_t num, num_transports;
	size_t transport;	/* the one that is being walked */
	size_t next;		/* where a rule that the others lack belongs */
};

/* Makes room for a rule at `at`. */
static struct rule *insert_rule(struct rules *rules, size_t at, const char *name)
{
	struct rule *rule;

	rules->rules = reallocarray(rules->rules, rules->num + 1, sizeof(*rules->rules));
	if (!rules->rules)
		return NULL;
	rule = &rules->rules[at];
	memmove(rule + 1, rule, (rules->num - at) * sizeof(*rule));
	rules->num++;
	rule->name = tool_strdup(name);
	rule->values = calloc(rules->num_transports, sizeof(*rule->values));
	return rule->values ? rule : NULL;
}

static int keep_rule(void *arg, const char *name, const char *value)
{
	struct rules *rules = arg;
	struct rule *rule;
	size_t i;

	for (i = 0; i < rules->num && strcmp(rules->rules[i].name, name); i++)
		;
	rule = i < rules->num ? &rules->rules[i] : insert_rule(rules, rules->next, name);
	if (!rule)
		return -1;
	rules->next = (size_t)(rule - rules->rules) + 1;
	rule->values[rules->transport] = tool_strdup(value);
	return 0;
}

/* How much of the text goes into one line: up to the last blank that fits. */
static size_t line_length(const char *text, size_t width)
{
	size_t len = strlen(text), end;

	if (len <= width)
		return len;
	for (end = width; end > 0 && text[end] != ' '; end--)
		;
	return end ? end : strcspn(text, " ");
}

/* One rule; long values go on in further rows. */
static int add_rule(struct table *table, const struct rule *rule, size_t num, size_t width)
{
	char **cells = calloc(num + 1, sizeof(*cells));
	size_t *seen = calloc(num, sizeof(*seen));
	bool more = cells && seen;
	int status = more ? 0 : -1;

	for (size_t line = 0; more; line++) {
		more = false;
		cells[0] = tool_strdup(line ? "" : rule->name);
		for (size_t i = 0; i < num; i++) {
			const char *rest = rule->values[i] ? rule->values[i] + seen[i] :
					   line ? "" : "-";
			size_t len = line_length(rest, width);

			cells[i + 1] = tool_printf("%.*s", (int)len, rest);
			len += strspn(rest + len, " ");
			seen[i] += len;
			more |= rest[len] != '\0';
		}
		table_row(table, (const char *const *)cells, num + 1);
		for (size_t i = 0; i <= num; i++)
			free(cells[i]);
	}
	free(seen);
	free(cells);
	return status;
}

static int print_rules(const struct rules *rules, const char *const *transports)
{
	size_t num = rules->num_transports, width = num > 1 ? WIDTH_OF_MANY : WIDTH_OF_ONE;
	struct table table = { 0 };
	int status = 0;

	if (num > 1) {
		struct rule head = { (char[]){ "RULE" }, (char **)(uintptr_t)transports };

		status = add_rule(&table, &head, num, width);
	}
	for (size_t i = 0; i < rules->num && !status; i++)
		status = add_rule(&table, &rules->rules[i], num, width);
	table_print(&table, 2);
	return status;
}

int info_rules(const char *const *transports, size_t num)
{
	struct rules rules = { .num_transports = num };

	for (; rules.transport < num; rules.transport++) {
		rules.next = 0;
		if (polycm_rules_walk(transports[rules.transport], keep_rule, &rules) < 0) {
			tool_error("info: no rules of transport %s: %m",
				   transports[rules.transport]);
			return EXIT_FAILURE;
		}
	}
	return print_rules(&rules, transports) ? EXIT_FAILURE : 0;
}
