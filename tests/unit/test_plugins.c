/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plugins that are wrong in one way each: skipped with one line that says why.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/plugin/plugin_internal.h"
#include "registry_case.h"
#include "tests/nth/nth.h"

/* Wrong in one way each, beside a good one that works all the same. */
#define BROKEN(name, source, why)                                                                  \
	{ .plugins = { PLUGIN("a", name, source), BETA }, .selected = "beta", .lines = 1,          \
	  .said = { "/a/provider-" name ".so skipped: " why } }

static void broken_files_are_skipped(void **state)
{
	static const struct testcase tests[] = {
		BROKEN("text", TEXT, ""),
		BROKEN("folder", FOLDER, "not a regular file\n"),
		BROKEN("dangling", DANGLING, "No such file or directory\n"),
		BROKEN("undefined", UNDEFINED, "undefined symbol: function_that_nobody_has\n"),
		BROKEN("nothing", NOTHING, "no polycm_provider_query_v1: not a "
		       "provider, or it does not export it (visibility)\n"),
		BROKEN("borrow", BORROW,
		       "its polycm_provider_query_v1 is in a library that it needs\n"),
		BROKEN("newer", OTHER_VERSION,
		       "it was built for version 2 of the provider ABI, this is 1\n"),
		BROKEN("us", US, "it is libpolycm itself\n"),
	};
	char path[PATH_MAX];
	void *library;

	(void)state;
	if (!*case_folder)
		skip();
	snprintf(path, sizeof(path), "%s/tests/unit/.libs/libborrowed.so",
		 getenv("abs_top_builddir"));
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);	/* is found by its name, then */
	if (!library)
		fail_msg("%s", dlerror());
	run_cases(tests, ARRAY_SIZE(tests));
	dlclose(library);
}

static void truncated_files_are_skipped(void **state)
{
	static const struct testcase tests[] = { BROKEN("cut", TRUNCATED, "") };
	static const off_t sizes[] = { 0, 1, 63, 64, 200, 1000, 4095, 4096, 9000, -4096, -100, -1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		print_message("%ld bytes: ", (long)sizes[i]);
		case_truncated_size = sizes[i];
		run_cases(tests, ARRAY_SIZE(tests));
	}
}

/* For want of memory no file is called truncated. */
static void a_whole_file_needs_no_memory_to_be_one(void **state)
{
	char path[PATH_MAX];
	bool complete;

	(void)state;
	if (!*case_folder)
		skip();
	snprintf(path, sizeof(path), "%s/tests/unit/.libs/by_name.so", getenv("abs_top_builddir"));
	nth_in("");
	nth_arm(NTH_ALLOC, 1, 0);
	complete = polycm_file_complete(path);
	(void)nth_disarm(NULL);
	assert_true(complete);
}

static void wrong_tables_are_refused(void **state)
{
	static const struct testcase tests[] = {
		BROKEN("short-desc", BY_NAME, "its description has 80 bytes, version 1.0 has 88\n"),
		BROKEN("short-ops", BY_NAME,
		       "its table of operations has 232 bytes, version 1.0 has 240\n"),
		BROKEN("short-newer", BY_NAME, "its table of operations has 232 bytes, version 1.0 has "
		       "240 (it was built for version 1.1 of the provider ABI, this is 1.0)\n"),
		BROKEN("long-desc", BY_NAME, "its description has 152 bytes, version 1.0 has no more "
		       "than 88: it was built with other headers\n"),
		BROKEN("flag", BY_NAME, "its flag 1 << 7 is not known\n"),
		BROKEN("flag-newer", BY_NAME, "its flag 1 << 31 is not known (it was built for version "
		       "1.9 of the provider ABI, this is 1.0)\n"),
		BROKEN("no-ops", BY_NAME, "it has no table of operations\n"),
		BROKEN("no-name", BY_NAME, "it has no name\n"),
		BROKEN("bad-name", BY_NAME, "its name '../?' is not valid\n"),
		BROKEN("liar", BY_NAME, "it calls itself honest, not liar\n"),
		BROKEN("query-fails", BY_NAME, "its query says: Function not implemented (-38)\n"),
		BROKEN("query-odd", BY_NAME, "its query says: Invalid argument (12345)\n"),
		BROKEN("query-null", BY_NAME, "it describes no provider\n"),
		BROKEN("no-enumerate", BY_NAME, "its operation enumerate is missing\n"),
		BROKEN("no-match", BY_NAME, "its operation match is missing\n"),
		BROKEN("no-open", BY_NAME, "its operation open is missing\n"),
		BROKEN("no-close", BY_NAME, "its operation close is missing\n"),
		BROKEN("no-stop", BY_NAME, "its operation stop is missing\n"),
		BROKEN("no-free", BY_NAME, "its operation free is missing\n"),
		BROKEN("huge-id", BY_NAME, "its areas of 4294967295 and 24 bytes are too large\n"),
		{ .plugins = { PLUGIN("a", "no-id-size", BY_NAME), BETA }, .selected = "beta",
		  .lines = 1, .log = "error",
		  .said = { "polycm: error: ", "/a/provider-no-id-size.so skipped: its id_size is 0" } },
		BROKEN("options-many", BY_NAME, "its 100000000 settings cannot be true\n"),
		BROKEN("options-null", BY_NAME, "its 2 settings cannot be true\n"),
		BROKEN("options-short", BY_NAME, "its table of settings has 8 bytes, version 1.0 has "),
		BROKEN("option-foreign", BY_NAME,
		       "its setting POLYCM_ACME_COLOR is not called POLYCM_OPTION_FOREIGN_<NAME>\n"),
		BROKEN("option-no-help", BY_NAME,
		       "its setting POLYCM_OPTION_NO_HELP_A has no default or no help\n"),
		BROKEN("option-x", BY_NAME, "the name of one of its settings is taken\n"),
		BROKEN("wire-no-name", BY_NAME, "its transport has no name\n"),
		BROKEN("wire-short", BY_NAME,
		       "its struct of transport rules has 4 bytes, version 1.0 has "),
		BROKEN("wire-cut", BY_NAME, "its struct of transport rules has "),
		BROKEN("wire-shape", BY_NAME, "its struct of transport rules is of another shape, 0x904 "
		       "in place of 0x804: "),
		BROKEN("wire-flag", BY_NAME, "transport acme-wire: its flag 1 << 20 is not known\n"),
		BROKEN("wire-limits", BY_NAME,
		       "transport acme-wire: private data of kind 0, message 0: limit 57, reported 0, "
		       "capacity 92 cannot be\n"),
		/* Two that do not go together: the first stays. */
		{ .plugins = { ACME, PLUGIN("b", "twin", BY_NAME) }, .selected = "acme",
		  .devices = "acme/acme0", .lines = 1,
		  .said = { "/b/provider-twin.so skipped: the rules of transport acme-wire are "
		    "in ", "/a/provider-acme.so already\n" } },
	};

	(void)state;
	run_cases(tests, ARRAY_SIZE(tests));
}

/* Refused before its settings are copied: they are still the plugin's, and nobody frees them. */
static void refused_plugins_keep_their_settings(void **state)
{
	static const struct testcase tests[] = {
		BROKEN("settings-layer", BY_NAME, "it is a layer and yet has transport rules\n"),
		BROKEN("settings-no-ops", BY_NAME, "it has no table of operations\n"),
		BROKEN("settings-no-match", BY_NAME, "its operation match is missing\n"),
		BROKEN("settings-huge-id", BY_NAME,
		       "its areas of 4294967295 and 24 bytes are too large\n"),
		BROKEN("settings-wire", BY_NAME, "transport acme-wire: private data of kind 0"),
	};

	(void)state;
	run_cases(tests, ARRAY_SIZE(tests));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(broken_files_are_skipped),
		cmocka_unit_test(truncated_files_are_skipped),
		cmocka_unit_test(a_whole_file_needs_no_memory_to_be_one),
		cmocka_unit_test(wrong_tables_are_refused),
		cmocka_unit_test(refused_plugins_keep_their_settings),
	};

	return cmocka_run_group_tests(tests, case_make_folder, case_remove_folder);
}
