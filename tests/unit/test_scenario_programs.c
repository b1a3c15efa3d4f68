/* SPDX-License-Identifier: BSD-2-Clause */
/* The programs of scenario files: what is said about bad ones, and what good ones mean. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "include/programs.h"
#include "link_world.h"
#include "providers/sim/explore.h"
#include "providers/sim/scenario.h"
#include "tests/cmocka_all.h"

#define NODE(name, address)                                                                        \
	"{ name = \"" name "\"; devices = ( { addresses = \"" address "\"; } ); }"
#define AB "nodes = ( " NODE("a", "10.0.0.1/24") ", " NODE("b", "10.0.0.2/24") " );\n"
#define ON_A "node = \"a\"; command = \"true\"; "
#define ON_B "node = \"b\"; command = \"true\"; "

/* libconfig 1.5 loses the text that it is reading when it meets an error there. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig\n";
}

static int build(const char *text)
{
	return sim_scenario_build("test.cfg", text, strlen(text));
}

/* ------------------------------------------------------------------------
 * Good ones.
 */

static void test_good(void **state)
{
	static const char text[] = AB
		"programs = (\n"
		"	{ node = \"a\"; command = \"server -a 10.0.0.1\"; daemon = true; },\n"
		"	{ node = \"b\"; name = \"one\"; command = [ \"load\", \"a b\" ];\n"
		"	  after = \"a\"; expect = [ 0, 1 ]; agree = true; },\n"
		"	{ node = \"b\"; name = \"two\"; command = ( \"load\" ); after = \"one ended\";\n"
		"	  expect = 3; agree = true; },\n"
		"	{ node = \"all\"; name = \"both\"; command = \"load\"; },\n"
		"	{ node = \"b\"; name = \"three\"; command = \"load\"; after = \"2.5 s\"; },\n"
		"	{ node = \"b\"; name = \"last\"; command = \"load\"; after = \"all\"; }\n"
		");\n";

	(void)state;
	assert_int_equal(build(text), 0);
	assert_int_equal(sim_fake_log_count(POLYCM_LOG_ERROR), 0);
}

static void test_none(void **state)
{
	(void)state;
	assert_int_equal(build("programs = ( );"), 0);
}

/* ------------------------------------------------------------------------
 * Bad ones.
 */

static const struct {
	const char *text, *line;
} bad[] = {
	{ "programs = { };",
	  "test.cfg:1: programs = { ... }: expected a list of groups: ( { ... }, { ... } )" },
	{ "programs = ( { node = \"host\"; command = \"true\"; } );",
	  "test.cfg:1: programs run on nodes of the file, which has none: add nodes = ( { name = "
	  "\"server\"; devices = ( { addresses = \"10.0.0.1/24\"; } ); } );" },
	{ "programs = ( { node = \"host\"; comand = \"true\"; } );",
	  "test.cfg:1: a program has no member 'comand'; nearest: 'command'" },
	{ AB "programs = ( { } );", "test.cfg:2: a program needs a node" },
	{ AB "programs = ( { node = \"c\"; } );",
	  "test.cfg:2: node = \"c\": expected \"all\" or the name of a node: a, b" },
	{ AB "programs = ( { node = \"a\"; } );", "test.cfg:2: a program needs a command" },
	{ AB "programs = ( { node = \"a\"; comand = \"true\"; } );",
	  "test.cfg:2: a program has no member 'comand'; nearest: 'command'" },
	{ AB "programs = ( { node = \"a\"; command = \" \"; } );",
	  "test.cfg:2: command = \" \": no program is named" },
	{ AB "programs = ( { node = \"a\"; command = 5; } );",
	  "test.cfg:2: command = 5: expected text in \"quotes\", or a list of texts" },
	{ AB "programs = ( { node = \"a\"; command = ( \"a\", 5 ); } );",
	  "test.cfg:2: command = ( ... ): expected text in \"quotes\", or a list of texts" },
	{ AB "programs = ( { node = \"a\"; command = \"echo 'a\"; } );",
	  "test.cfg:2: command = \"echo 'a\": a quote does not end" },
	{ AB "programs = ( { node = \"a\"; command = \"echo '>' a > b\"; } );",
	  "test.cfg:2: command = \"echo '>' a > b\": '>' is for a shell, and none reads this: quote it, "
	  "or begin with sh -c" },
	{ AB "programs = ( { " ON_A "daemon = 1; } );",
	  "test.cfg:2: daemon = 1: expected true or false" },
	{ AB "programs = ( { " ON_A "expect = 256; } );",
	  "test.cfg:2: expect = 256: expected exit statuses from 0 to 255, such as [ 0, 1 ]" },
	{ AB "programs = ( { " ON_A "expect = [ ]; } );",
	  "test.cfg:2: expect = [ ... ]: expected exit statuses from 0 to 255, such as [ 0, 1 ]" },
	{ AB "programs = ( { " ON_A "name = \"a b\"; } );",
	  "test.cfg:2: name = \"a b\": expected up to 64 letters, digits, '_', '-' and '.', and not "
	  "\"all\"" },
	{ AB "programs = ( { " ON_A "name = \"all\"; } );",
	  "test.cfg:2: name = \"all\": expected up to 64 letters, digits, '_', '-' and '.', and not "
	  "\"all\"" },
	{ AB "programs = ( { " ON_A "name = \"x\"; },\n{ " ON_B "name = \"x\"; } );",
	  "test.cfg:3: name = \"x\": another program has that name" },
	{ AB "programs = ( { " ON_A "after = \"b\"; } );",
	  "test.cfg:2: after = \"b\": expected another program or its node, \"NAME ended\", a time such "
	  "as \"2 s\", or \"all\"" },
	{ AB "programs = ( { " ON_A "after = \"a\"; } );",
	  "test.cfg:2: after = \"a\": expected another program or its node, \"NAME ended\", a time such "
	  "as \"2 s\", or \"all\"" },
	{ AB "programs = ( { " ON_A "after = \"b\"; },\n{ " ON_B "after = \"a ended\"; } );",
	  "test.cfg:2: after = \"b\": these programs wait for each other, and none begins" },
	{ AB "programs = ( { " ON_A "after = \"b ended\"; }, { " ON_B "daemon = true; } );",
	  "test.cfg:2: after = \"b ended\": b is a daemon, which ends after all others" },
	{ AB "programs = ( { " ON_A "}, { " ON_B "after = \"all\"; daemon = true; } );",
	  "test.cfg:2: a daemon cannot be the last program: it does not end" },
	{ AB "programs = ( { " ON_A "daemon = true; expect = 0; } );",
	  "test.cfg:2: a daemon is ended: `expect' is for a program that ends" },
	{ AB "programs = ( { " ON_A "daemon = true; } );",
	  "test.cfg:2: all programs are daemons: one must end" },
	{ AB "programs = ( { " ON_A "agree = true; }, { " ON_B "} );",
	  "test.cfg:2: one program only has agree = true: with whom?" },
};

static void test_bad(void **state)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		sim_fake_close(state);
		sim_fake_open(state);
		assert_int_equal(build(bad[i].text), -EINVAL);
		assert_string_equal(sim_fake_log(POLYCM_LOG_ERROR), bad[i].line);
		assert_int_equal(sim_fake_log_count(POLYCM_LOG_ERROR), 1);
	}
}

static void test_too_many(void **state)
{
	static char text[8000];
	size_t len = 0;

	(void)state;
	len += (size_t)snprintf(text, sizeof(text), AB "programs = ( { " ON_A "}");
	for (unsigned int i = 1; i < PROGRAMS_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, ",\n{ " ON_B "}");
	snprintf(text + len, sizeof(text) - len, " );");
	assert_int_equal(build(text), 0);
	snprintf(text + len, sizeof(text) - len, ", { " ON_A "} );");
	sim_fake_close(state);
	sim_fake_open(state);
	assert_int_equal(build(text), -EINVAL);
	assert_string_equal(sim_fake_log(POLYCM_LOG_ERROR), "test.cfg:65: more than 64 programs");
}

/* Faults that could last into the time of the last program. */
static void test_long_faults(void **state)
{
#define LAST "programs = ( { " ON_A "}, { " ON_B "after = \"all\"; } );"
	(void)state;
	sim_explore_listening = true;
	assert_int_equal(build(AB LAST "explore = { delay = \"1 min\"; };"), 0);
	sim_fake_close(state);
	sim_fake_open(state);
	assert_int_equal(build(AB LAST "explore = { nodes = { delay = \"61 s\"; }; };"), -EINVAL);
	assert_string_equal(sim_fake_log(POLYCM_LOG_ERROR),
			    "test.cfg:2: the last program begins 60 s after the others have ended, and "
			    "no fault may last longer: lower `delay' in `explore'");
	sim_explore_listening = false;
}

/* ------------------------------------------------------------------------
 * Commands and times.
 */

static void expect_words(const char *text, const char *const *words)
{
	char word[100];
	int len;

	for (; *words; words++) {
		len = programs_word(&text, word);
		assert_int_equal(len, (int)strlen(*words));
		assert_string_equal(word, *words);
	}
	assert_int_equal(programs_word(&text, word), -1);
}

static void test_words(void **state)
{
	(void)state;
	expect_words(" rping  -s -a\t10.0.0.1 ",
		     (const char *[]){ "rping", "-s", "-a", "10.0.0.1", NULL });
	expect_words("sh -c 'a \"b\" | c' \"\" x''y", (const char *[]){ "sh", "-c", "a \"b\" | c", "",
									"xy", NULL });
	expect_words("a\\ b \"c\\\"d\\e\" 'f\\'", (const char *[]){ "a b", "c\"d\\e", "f\\", NULL });
	expect_words("* ~ #", (const char *[]){ "*", "~", "#", NULL });
}

static void test_times(void **state)
{
	uint64_t ns;

	(void)state;
	assert_true(programs_time("2 s", &ns) && ns == UINT64_C(2000000000));
	assert_true(programs_time("0.25 ms", &ns) && ns == 250000);
	assert_true(programs_time("3min", &ns) && ns == UINT64_C(180000000000));
	assert_false(programs_time("2", &ns) || programs_time("s", &ns) || programs_time("2 h", &ns) ||
		     programs_time("-1 s", &ns) || programs_time("1000000000 s", &ns));
}

static void test_times_are_written(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} times[] = {
		{ 0, "0 ms" }, { 1, "0.000001 ms" }, { 250000, "0.25 ms" }, { 12345678, "12.345678 ms" },
		{ UINT64_C(2000000000), "2000 ms" }, { UINT64_C(1000000000000), "1000000 ms" },
		{ UINT64_C(100000000000000), "100000 s" },
		{ UINT64_C(123456000001000), "123456.000001 s" },
	};
	char text[PROGRAMS_TIME_LEN];
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		programs_write_time(times[i].ns, text, sizeof(text));
		assert_string_equal(text, times[i].text);
		assert_true(programs_time(text, &ns) && ns == times[i].ns);
	}
}

static void test_begins(void **state)
{
	static const struct programs_entry entries[] = {
		{ .node = "a", .is_daemon = true },
		{ .node = "b", .after = "a" },
		{ .node = "b", .name = "x", .after = "b" },
		{ .node = "a", .name = "b ended", .after = "b ended" },
		{ .node = "a", .after = "all" },
		{ .node = "b", .after = "1 ms" },
	};
	struct programs_begin begin;

	(void)state;
	assert_true(programs_begin(entries, 6, 0, &begin));
	assert_true(begin.when == PROGRAMS_IN_ORDER && !begin.those);
	/* All on that node. */
	assert_true(programs_begin(entries, 6, 1, &begin));
	assert_true(begin.when == PROGRAMS_WAITS && begin.those == (1 | 8 | 16));
	assert_true(programs_begin(entries, 6, 2, &begin));
	assert_true(begin.when == PROGRAMS_WAITS && begin.those == (2 | 32));
	assert_true(programs_begin(entries, 6, 3, &begin));
	assert_true(begin.when == PROGRAMS_END && begin.those == (2 | 4 | 32));
	assert_true(programs_begin(entries, 6, 4, &begin));
	assert_true(begin.when == PROGRAMS_LAST && begin.those == (2 | 4 | 8 | 32));
	assert_true(programs_begin(entries, 6, 5, &begin));
	assert_true(begin.when == PROGRAMS_AT && begin.at == 1000000);
}

#define test(f) cmocka_unit_test_setup_teardown(f, sim_fake_open, sim_fake_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_good),
		test(test_none),
		test(test_bad),
		test(test_too_many),
		test(test_long_faults),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_times_are_written),
		cmocka_unit_test(test_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
