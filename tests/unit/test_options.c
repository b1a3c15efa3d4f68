/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings: values, defaults and choices; rows of providers; names that nobody
 * knows.
 */
#include <errno.h>
#include <stdio.h>

#include "tests/cmocka_all.h"
#include "capture.h"

#include "core/base/log.h"
#include "core/plugin/options.h"
#include "tests/nth/nth.h"

static struct capture capture;

#define ROW(row_name, value, row_choices)                                                          \
	{                                                                                          \
		.size = sizeof(struct polycm_option), .name = row_name, .default_value = value,    \
		.choices = row_choices, .help = "A test's."                                        \
	}

static const struct {
	struct polycm_option row;
	const char *environment;	/* NULL: not set */
	bool privileged;
	const char *value;
	bool given;
	const char *said;
} values[] = {
	{ ROW("POLYCM_T_A", "seven", NULL), NULL, false, "seven", false, "" },
	{ ROW("POLYCM_T_B", "seven", NULL), "eight", false, "eight", true, "" },
	{ ROW("POLYCM_T_C", "seven", NULL), "", false, "seven", false, "" },
	{ ROW("POLYCM_T_D", "", NULL), NULL, false, "", false, "" },
	{ ROW("POLYCM_T_E", "a", "a|bc|d"), "bc", false, "bc", true, "" },
	{ ROW("POLYCM_T_F", "a", "a|bc|d"), "d", false, "d", true, "" },
	{ ROW("POLYCM_T_G", "a", "a|bc|d"), "b", false, "a", false,
	  "polycm: error: POLYCM_T_G=b is not one of a|bc|d\n" },
	{ ROW("POLYCM_T_H", "a", "a|bc|d"), "a|bc", false, "a", false,
	  "polycm: error: POLYCM_T_H=a|bc is not one of a|bc|d\n" },
	{ ROW("POLYCM_T_I", "", "a|bc|d"), "BC", false, "", false,
	  "polycm: error: POLYCM_T_I=BC is not one of a|bc|d\n" },
	{ ROW("POLYCM_T_J", "seven", NULL), "eight", true, "seven", false,
	  "polycm: warn: POLYCM_T_J is ignored: the process has raised privileges\n" },
};

static void values_come_from_the_environment(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		const char *name = values[i].row.name, *value;

		print_message("case %zu: %s\n", i, name);
		assert_null(polycm_setting(name));
		assert_int_equal(polycm_options_add("test", &values[i].row, 1), 0);
		if (values[i].environment)
			setenv(name, values[i].environment, 1);
		polycm_privileged_override = values[i].privileged;
		capture_begin(&capture);
		value = polycm_setting(name);
		assert_string_equal(value, values[i].value);

		/* Once per process, and said once. */
		setenv(name, "changed", 1);
		assert_ptr_equal(polycm_setting(name), value);
		assert_string_equal(value, values[i].value);
		assert_int_equal(polycm_setting_given(name), values[i].given);
		assert_string_equal(capture_end(&capture), values[i].said);
		polycm_privileged_override = -1;
		unsetenv(name);
	}
	/* Some were outside the choices; the core's own are not. */
	assert_int_equal(polycm_options_check_values("test"), -EINVAL);
	assert_int_equal(polycm_options_check_values("polycm"), 0);
	assert_int_equal(polycm_options_check_values("nobody"), 0);
	assert_null(polycm_setting("POLYCM_T"));
	assert_null(polycm_setting(NULL));
	assert_false(polycm_setting_given("POLYCM_T"));
}

/* What is said, unlike what is loaded, may always be chosen. */
static void the_log_may_be_asked_for_with_privileges(void **state)
{
	(void)state;
	polycm_privileged_override = 1;
	assert_string_equal(polycm_setting("POLYCM_LOG"), "warn");
	assert_true(polycm_setting_given("POLYCM_LOG"));
	polycm_privileged_override = -1;
}

static void names_are_unique(void **state)
{
	static const struct polycm_option twice[] = {
		ROW("POLYCM_U_A", "", NULL), ROW("POLYCM_U_B", "", NULL), ROW("POLYCM_U_A", "", NULL),
	};
	static const struct polycm_option taken[] = {
		ROW("POLYCM_U_C", "", NULL), ROW("POLYCM_LOG", "", NULL),
	};

	(void)state;
	assert_int_equal(polycm_options_add("twice", twice, 3), -EEXIST);
	assert_int_equal(polycm_options_add("taken", taken, 2), -EEXIST);
	assert_null(polycm_setting("POLYCM_U_A"));
	assert_null(polycm_setting("POLYCM_U_C"));
	assert_int_equal(polycm_options_add("none", NULL, 0), 0);
	assert_int_equal(polycm_options_add("good", twice, 2), 0);
	assert_string_equal(polycm_setting("POLYCM_U_B"), "");
}

static int note(void *arg, const char *owner, const struct polycm_option *row)
{
	char *list = arg;

	sprintf(list + strlen(list), "%s/%s ", owner, row->name + strlen("POLYCM_"));
	/* fn may ask for values. */
	assert_non_null(polycm_setting(row->name));
	return !strcmp(row->name, "POLYCM_W_B") ? 42 : 0;
}

static void a_walk_has_a_stable_order(void **state)
{
	static const struct polycm_option rows[] = {
		ROW("POLYCM_W_Z", "1", NULL), ROW("POLYCM_W_B", "2", NULL), ROW("POLYCM_W_C", "3", NULL),
	};
	char list[1024] = "";

	(void)state;
	assert_int_equal(polycm_options_add("w", rows, 3), 0);
	assert_int_equal(polycm_options_walk(note, list), 42);
	assert_string_equal(list, "polycm/PROVIDER polycm/PROVIDER_PATH polycm/LOG w/W_Z w/W_B ");
}

static void near_words_are_found(void **state)
{
	static const char *const words[] = { "roce", "iwarp", "sim", "ib", "POLYCM_LOG",
					     "POLYCM_PROVIDER", "POLYCM_PROVIDER_PATH" };
	static const struct {
		const char *word, *nearest;
	} tests[] = {
		{ "roce", "roce" },
		{ "rcoe", "roce" },		/* swapped */
		{ "rocee", "roce" },		/* one too many */
		{ "rce", "roce" },		/* one missing */
		{ "rose", "roce" },		/* another one */
		{ "iwrap", "iwarp" },
		{ "sin", "sim" },
		{ "is", NULL },			/* half of it is different */
		{ "mis", NULL },
		{ "mlx5", NULL },
		{ "", NULL },
		{ "POLYCM_LGO", "POLYCM_LOG" },
		{ "POLYCM_PROVDER", "POLYCM_PROVIDER" },
		{ "POLYCM_PROVIDERS", "POLYCM_PROVIDER" },
		{ "POLYCM_PROVIDERPATH", "POLYCM_PROVIDER_PATH" },
		{ "POLYCM_X", NULL },		/* what all have in common does not count */
		{ "POLYCM_roce", NULL },
		{ "POLYCM_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		  NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		struct polycm_nearest nearest = { .word = tests[i].word };

		print_message("case %zu: %s\n", i, tests[i].word);
		for (size_t k = 0; k < ARRAY_SIZE(words); k++)
			polycm_nearest_try(&nearest, words[k]);
		if (tests[i].nearest) {
			assert_non_null(nearest.found);
			assert_string_equal(nearest.found, tests[i].nearest);
		} else {
			assert_null(nearest.found);
		}
	}
}

static void unknown_variables_are_told(void **state)
{
	(void)state;
	clearenv();
	setenv("POLYCM_LOG", "warn", 1);
	setenv("POLYCM_PROVIDR", "x", 1);
	setenv("POLYCM", "not ours", 1);
	setenv("OTHER_POLYCM_LOG", "not ours", 1);
	setenv("POLYCM_WHATEVER", "\n", 1);
	capture_begin(&capture);
	polycm_options_check_environment(NULL);
	assert_string_equal(capture_end(&capture),
			    "polycm: error: unknown setting POLYCM_PROVIDR: did you mean "
			    "POLYCM_PROVIDER?\n"
			    "polycm: error: unknown setting POLYCM_WHATEVER (polycm info --config lists "
			    "all)\n");
}

/* Not the default in its place, which may be another fabric. */
static void a_value_needs_no_memory(void **state)
{
	static const struct polycm_option row = ROW("POLYCM_T_MEMORY", "seven", NULL);
	const char *value;

	(void)state;
	setenv(row.name, "eight", 1);
	assert_int_equal(polycm_options_add("t", &row, 1), 0);
	nth_in("");
	nth_arm(NTH_ALLOC, 1, 0);
	value = polycm_setting(row.name);
	assert_true(nth_disarm(NULL));
	assert_string_equal(value, "eight");
	assert_true(polycm_setting_given(row.name));
	/* What was told without memory is not kept: the environment may move. */
	value = polycm_setting(row.name);
	assert_ptr_not_equal(value, getenv(row.name));
	unsetenv(row.name);
	assert_ptr_equal(polycm_setting(row.name), value);
	assert_string_equal(value, "eight");
}

static int setup(void **state)
{
	(void)state;
	clearenv();
	setenv("POLYCM_LOG", "warn", 1);
	polycm_log_level = POLYCM_LOG_WARN;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_log_may_be_asked_for_with_privileges),
		cmocka_unit_test(a_walk_has_a_stable_order),
		cmocka_unit_test(values_come_from_the_environment),
		cmocka_unit_test(a_value_needs_no_memory),
		cmocka_unit_test(names_are_unique),
		cmocka_unit_test(near_words_are_found),
		cmocka_unit_test(unknown_variables_are_told),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
