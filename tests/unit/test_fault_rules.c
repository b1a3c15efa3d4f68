/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of the layer "fault": which calls they are for, and what is told of those for none. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/common/core.h"
#include "providers/fault/fault.h"
#include "rule_counts.h"
#include "tests/cmocka_all.h"

#define NUM(array) (sizeof(array) / sizeof((array)[0]))

static uint64_t now;
static char warning[200];

static uint64_t now_ns(void)
{
	return now;
}

static void *alloc(size_t size)
{
	return calloc(1, size);
}

__attribute__((format(printf, 3, 4)))
static void log_line(enum polycm_log_level level, const struct polycm_id *id, const char *format, ...)
{
	va_list args;

	(void)id;
	if (level != POLYCM_LOG_WARN)
		return;
	va_start(args, format);
	vsnprintf(warning, sizeof(warning), format, args);
	va_end(args);
}

static const struct polycm_core core = {
	.size = sizeof(core),
	.now_ns = now_ns,
	.alloc = alloc,
	.free = free,
	.log = log_line,
};

static void start(const struct rule_count *row)
{
	struct fault_rule rule = {
		.action = FAULT_FAIL,
		.what = UINT64_C(1) << FAULT_connect,
		.nth = row->nth,
		.times = row->times,
		.probability = row->probability == 0 ? 1 : row->probability,
		.after_ns = row->from_ns,
		.until_ns = row->until_ns,
		.error = 1,
		.file = "rules",
		.line = 7,
	};

	sim_core = &core;
	now = 1000;
	warning[0] = '\0';
	fault_rules_start(1);
	assert_int_equal(fault_rules_add(&rule), 0);
}

static bool happens(enum fault_what what)
{
	struct fault_effect effect = { 0 };

	fault_rules_ask(NULL, what, &effect);
	return effect.error != 0;
}

static void rules_count_as_the_simulators_do(void **state)
{
	(void)state;
	for (size_t i = 0; i < NUM(rule_counts); i++) {
		char others[40] = "";
		size_t len = 0;

		start(&rule_counts[i]);
		for (unsigned int n = 0; n < 10; n++) {
			/* What it is not about is not counted. */
			assert_false(happens(FAULT_accept));
			if (!happens(FAULT_connect))
				len += (size_t)snprintf(others + len, sizeof(others) - len, "%s%u",
							len ? " " : "", n);
			now += 10;
		}
		assert_string_equal(others, rule_counts[i].others);
		fault_rules_end();
		assert_int_equal(!warning[0], rule_counts[i].hits > 0);
	}
}

static void what_never_happened_is_told(void **state)
{
	static const struct {
		struct rule_count rule;
		unsigned int calls;
		const char *told;
	} rows[] = {
		{ { .nth = 0 }, 0, "rules:7: fault 1 has never happened: nothing matched it" },
		{ { .nth = 3 }, 2, "rules:7: fault 1 has never happened: only 2 matched, and nth is 3" },
		{ { .probability = 1e-9 }, 2,
		  "rules:7: fault 1 has never happened: 2 matched, but chance was against it" },
		{ { .nth = 2, .probability = 1e-9 }, 2,
		  "rules:7: fault 1 has never happened: 2 matched, but chance was against it" },
		{ { .nth = 2 }, 2, "" },
	};

	(void)state;
	for (size_t i = 0; i < NUM(rows); i++) {
		start(&rows[i].rule);
		for (unsigned int n = 0; n < rows[i].calls; n++)
			(void)happens(FAULT_connect);
		fault_rules_end();
		assert_string_equal(warning, rows[i].told);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_count_as_the_simulators_do),
		cmocka_unit_test(what_never_happened_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
