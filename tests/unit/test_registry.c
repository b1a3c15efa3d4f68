/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finding and selecting plugins, and what a loaded one is like.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "registry_case.h"
#include "capture.h"

#include "core/base/why.h"
#include "core/device/device.h"
#include "core/plugin/options.h"
#include "core/plugin/plugin_internal.h"

static void names_select(void **state)
{
	static const struct testcase tests[] = {
		{ .provider = NULL },
		{ .plugins = { ACME }, .provider = "acme", .selected = "acme",
		  .devices = "acme/acme0" },
		{ .plugins = { ACME, BETA }, .provider = "acme", .selected = "acme",
		  .devices = "acme/acme0" },
		{ .plugins = { ACME, BETA }, .provider = "beta,acme", .selected = "beta acme",
		  .devices = "acme/acme0" },
		{ .plugins = { ACME, BETA }, .provider = " beta , ,acme,beta",
		  .selected = "beta acme", .devices = "acme/acme0" },
		/* Folders in their order, names in a folder in theirs. */
		{ .plugins = { PLUGIN("b", "acme", BY_NAME), PLUGIN("a", "zeta", BY_NAME),
		    PLUGIN("a", "beta", BY_NAME) },
		  .selected = "beta zeta acme", .devices = "acme/acme0" },
		/* Only a list of names selects what is on request. */
		{ .plugins = { ACME, LAZY }, .selected = "acme", .devices = "acme/acme0" },
		{ .plugins = { ACME, LAZY, BETA }, .provider = "^beta", .selected = "acme",
		  .devices = "acme/acme0" },
		{ .plugins = { ACME, LAZY }, .provider = "lazy", .selected = "lazy" },
		{ .plugins = { ACME, LAZY, BETA }, .provider = "^ acme , beta" },
		{ .plugins = { ACME, BETA }, .provider = "^", .selected = "acme beta",
		  .devices = "acme/acme0" },
		{ .plugins = { ACME, BETA }, .provider = "^bata", .selected = "acme beta",
		  .devices = "acme/acme0", .lines = 1,
		  .said = { "polycm: warn: POLYCM_PROVIDER=^bata: there is no provider bata, did "
		    "you mean beta?\n" } },
		/* A list of one opens one file: the broken one is not looked at. */
		{ .plugins = { ACME, PLUGIN("a", "broken", TEXT) }, .provider = "acme",
		  .selected = "acme", .devices = "acme/acme0" },
		/* The first folder wins. */
		{ .plugins = { ACME, PLUGIN("b", "acme", TEXT) }, .provider = "acme",
		  .log = "info", .selected = "acme", .devices = "acme/acme0", .lines = 2,
		  .said = { "/b/provider-acme.so skipped: ",
		    "/a/provider-acme.so comes first\n" } },
		/* Other files are none of ours. */
		{ .plugins = { ACME, { "a/provider-x.la", TEXT }, { "a/libx.so", TEXT },
		    { "a/provider-.so", TEXT } },
		  .selected = "acme", .devices = "acme/acme0" },
		{ .plugins = { { "a/provider-Bad.so", TEXT } }, .lines = 1,
		  .said = { "/a/provider-Bad.so skipped: not a valid name of a provider\n" } },
	};

	(void)state;
	run_cases(tests, ARRAY_SIZE(tests));
}

static void names_that_fail(void **state)
{
	static const struct testcase tests[] = {
		{ .plugins = { ACME, BETA }, .provider = "amce", .result = -ENODEV, .lines = 1,
		  .said = { "polycm: error: POLYCM_PROVIDER=amce: there is no provider amce, did "
		    "you mean acme? (found in ", "/a: acme; ", "/b: beta" } },
		{ .plugins = { ACME }, .provider = "unlike", .result = -ENODEV, .lines = 1,
		  .said = { "polycm: error: POLYCM_PROVIDER=unlike: there is no provider unlike "
		    "(found in ", "/a: acme; ", "/b: none" } },
		/* Never another one instead. */
		{ .plugins = { ACME }, .provider = "acme,unlike", .result = -ENODEV, .lines = 1,
		  .said = { "there is no provider unlike" } },
		{ .plugins = { ACME, PLUGIN("a", "broken", TEXT) }, .provider = "broken,acme",
		  .result = -ENODEV, .lines = 1,
		  .said = { "polycm: error: POLYCM_PROVIDER=broken,acme: provider broken cannot "
		    "be used: ", "/a/provider-broken.so: ", "/a: acme broken; " } },
		/* The default level tells this. */
		{ .plugins = { PLUGIN("a", "broken", TEXT) }, .provider = "broken",
		  .log = "error", .result = -ENODEV, .lines = 1,
		  .said = { "provider broken cannot be used" } },
		{ .plugins = { ACME }, .provider = "trace;acme", .result = -ENODEV, .lines = 1,
		  .said = { "POLYCM_PROVIDER=trace;acme: there is no provider trace (found in " } },
		{ .plugins = { ACME }, .provider = "../acme", .result = -ENODEV, .lines = 1,
		  .said = { "there is no provider ../acme" } },
		{ .plugins = { ACME }, .provider = "ac\nme", .result = -ENODEV, .lines = 1,
		  .said = { "there is no provider ac?me" } },
		{ .plugins = { ACME }, .provider = "acme,^beta", .result = -ENODEV, .lines = 1,
		  .said = { "there is no provider ^beta" } },
	};

	(void)state;
	run_cases(tests, ARRAY_SIZE(tests));
}

/* A layer is named in front of what it is around, and is never taken for a provider. */
static void layers_go_around_providers(void **state)
{
	static const struct testcase tests[] = {
		{ .plugins = { ACME, WRAP, WRAP_TWO }, .provider = " wrap ; wrap-two;acme",
		  .selected = "acme", .devices = "acme/acme0" },
		{ .plugins = { ACME, BETA, WRAP }, .selected = "acme beta", .devices = "acme/acme0" },
		{ .plugins = { ACME, BETA, WRAP }, .provider = "wrap;", .selected = "acme beta",
		  .devices = "acme/acme0" },
		{ .plugins = { ACME, BETA, WRAP }, .provider = "wrap;^acme", .selected = "beta" },
		{ .plugins = { ACME, WRAP }, .provider = "wrap", .result = -ENODEV, .lines = 1,
		  .said = { "POLYCM_PROVIDER=wrap: wrap is a layer, which carries nothing itself: "
		    "POLYCM_PROVIDER='wrap;PROVIDER'\n" } },
		{ .plugins = { ACME, WRAP, WRAP_TWO }, .provider = "wrap;wrap-two",
		  .result = -ENODEV, .lines = 1, .said = { "wrap-two is a layer, which carries" } },
		{ .plugins = { ACME, BETA, WRAP }, .provider = "beta;acme", .result = -ENODEV,
		  .lines = 1, .said = { "'beta' in front of ';' is no layer but a provider" } },
		{ .plugins = { ACME, WRAP }, .provider = ";acme", .result = -ENODEV, .lines = 1,
		  .said = { "'' in front of ';' is no layer's name\n" } },
		{ .plugins = { ACME, WRAP }, .provider = "wrap;wrap;acme", .result = -ENODEV,
		  .lines = 1, .said = { "'wrap' in front of ';' is named twice\n" } },
		{ .plugins = { ACME, WRAP, WRAP_TWO }, .provider = "wrap,wrap-two;acme",
		  .result = -ENODEV, .lines = 1, .said = { "is a list of providers" } },
		{ .plugins = { ACME, WRAP }, .provider = "^wrap;acme", .result = -ENODEV, .lines = 1,
		  .said = { "is a list of providers" } },
		{ .plugins = { ACME, WRAP }, .provider = "warp;acme", .result = -ENODEV, .lines = 1,
		  .said = { "there is no provider warp, did you mean wrap? (found in " } },
		{ .plugins = { BETA, PLUGIN("a", "wrap-wire", BY_NAME) }, .selected = "beta",
		  .lines = 1, .said = { "skipped: it is a layer and yet has transport rules\n" } },
	};

	(void)state;
	run_cases(tests, ARRAY_SIZE(tests));
}

static void newer_tables_work(void **state)
{
	static const struct testcase tests[] = {
		{ .plugins = { PLUGIN("a", "long-tables", BY_NAME) }, .selected = "long-tables" },
	};

	(void)state;
	run_cases(tests, ARRAY_SIZE(tests));
}

static void failures_stay_with_their_provider(void **state)
{
	static const struct testcase tests[] = {
		{ .plugins = { PLUGIN("a", "init-fails", BY_NAME), BETA }, .selected = "beta",
		  .lines = 1,
		  .said = { "polycm: warn: provider init-fails does not start: Input/output "
		    "error (-5)\n" } },
		{ .plugins = { PLUGIN("a", "init-fails", BY_NAME), BETA },
		  .provider = "init-fails,beta", .selected = "beta", .lines = 1,
		  .said = { "polycm: error: provider init-fails does not start" } },
		{ .plugins = { PLUGIN("a", "enumerate-fails", BY_NAME), ACME },
		  .selected = "acme enumerate-fails", .devices = "acme/acme0", .lines = 1,
		  .said = { "polycm: warn: provider enumerate-fails cannot list its devices: "
		    "Input/output error (-5)\n" } },
		{ .plugins = { PLUGIN("a", "enumerate-fails", BY_NAME), ACME },
		  .provider = "acme,enumerate-fails", .selected = "acme enumerate-fails",
		  .devices = "acme/acme0", .lines = 1,
		  .said = { "polycm: error: provider enumerate-fails cannot list its devices" } },
	};

	(void)state;
	run_cases(tests, ARRAY_SIZE(tests));
}

static void environment_is_checked(void **state)
{
	static const struct testcase tests[] = {
		{ .plugins = { ACME }, .provider = "acme", .selected = "acme",
		  .devices = "acme/acme0", .lines = 1,
		  .said = { "polycm: error: unknown setting POLYCM_ACME_COLOUR: did you mean "
		    "POLYCM_ACME_COLOR?\n" },
		  .variable = "POLYCM_ACME_COLOUR" },
		{ .plugins = { ACME }, .provider = "acme", .selected = "acme",
		  .devices = "acme/acme0", .lines = 1,
		  .said = { "polycm: error: unknown setting POLYCM_SOMETHING_ELSE (polycm info "
		    "--config lists all)\n" },
		  .variable = "POLYCM_SOMETHING_ELSE" },
		/* Of a provider that is there but not loaded: it may be meant for others. */
		{ .plugins = { ACME, BETA }, .provider = "acme", .selected = "acme",
		  .devices = "acme/acme0", .lines = 1,
		  .said = { "polycm: warn: POLYCM_BETA_X has no effect: beta is not used with "
			    "POLYCM_PROVIDER=acme\n" },
		  .variable = "POLYCM_BETA_X" },
		/* With raised privileges it does not decide what is loaded. */
		{ .plugins = { ACME }, .provider = "acme", .lines = 2,
		  .said = { "polycm: warn: POLYCM_PROVIDER_PATH is ignored: the process has raised "
			    "privileges\n",
			    "polycm: warn: POLYCM_PROVIDER is ignored: " },
		  .privileged = true },
	};

	(void)state;
	run_cases(tests, ARRAY_SIZE(tests));
}

static struct polycm_module *find_module(const char *name)
{
	const char *path, *problem;

	return polycm_files_load(name, false, &path, &problem);
}

static int look_at_acme(void)
{
	struct polycm_module *const *modules;
	const struct polycm_transport *rules;
	struct polycm_module *acme;
	void *priv = NULL;
	int fd = 0;

	CHECK(polycm_registry_get() == 0);
	CHECK(polycm_registry_selected(&modules) == 1);
	acme = modules[0];
	CHECK(find_module("acme") == acme);
	CHECK(!strcmp(acme->desc.version, "1.2") && acme->path[0] == '/');
	CHECK(acme->desc.size == sizeof(struct polycm_provider));
	CHECK(acme->desc.ops == &acme->ops && acme->desc.transport == &acme->transport);
	CHECK(acme->selected && acme->initialised && !acme->init_error);
	CHECK(!strcmp(acme->ctx, "acme"));
	CHECK(acme->desc.extension("acme", 3) && !acme->desc.extension("acme", 2));

	/* Empty slots answer. */
	CHECK(acme->ops.bind(priv, NULL) == -EOPNOTSUPP);
	CHECK(!strcmp(polycm_why_text, "the provider has no operation bind"));
	CHECK(acme->ops.leave_multicast(priv, NULL) == -EOPNOTSUPP);
	CHECK(acme->ops.channel_open(acme->ctx, priv, &fd) == 0 && fd == -1);
	CHECK(acme->ops.migrate(priv, NULL) == 0);
	for (size_t at = offsetof(struct polycm_ops, init); at < sizeof(struct polycm_ops);
	     at += sizeof(void *))
		CHECK(*(void **)((char *)&acme->ops + at));

	rules = polycm_registry_transport("acme-wire");
	CHECK(rules == &acme->transport);
	CHECK(rules->ack_timeout(15, 16) == 0 && rules->path_mtu(1500) == 1024);
	CHECK(!rules->status_str(RDMA_CM_EVENT_REJECTED, 8));
	CHECK(polycm_registry_id_size() == 48 && polycm_registry_channel_size() == 32);

	/* Its settings, with the stride of its own struct. */
	CHECK(!strcmp(polycm_setting("POLYCM_ACME_COLOR"), "red"));
	CHECK(!strcmp(polycm_setting("POLYCM_ACME_SIZE"), "7"));
	return 0;
}

static void a_vendors_plugin_is_complete(void **state)
{
	static const struct plugin plugins[] = { ACME };

	(void)state;
	run_in_child(look_at_acme, plugins, ARRAY_SIZE(plugins));
}

static int load_for_rules(void)
{
	struct polycm_module *const *modules;
	const struct polycm_transport *rules;

	setenv("POLYCM_PROVIDER", "beta", 1);
	CHECK(polycm_registry_get() == 0);
	CHECK(polycm_registry_selected(&modules) == 1);
	CHECK(!strcmp(modules[0]->name, "beta"));
	/* In a plugin of another name, among others that do not load. */
	rules = polycm_registry_transport("acme-wire");
	CHECK(rules && rules->limit[POLYCM_KIND_RC][POLYCM_MSG_ACCEPT] == 190);
	CHECK(!find_module("acme")->selected);
	CHECK(!polycm_registry_transport("acme"));
	CHECK(!polycm_registry_transport(NULL));
	CHECK(!find_module("broken"));
	CHECK(!find_module("unknown"));
	CHECK(polycm_registry_selected(&modules) == 1);
	CHECK(polycm_registry_load_all() == 2);
	CHECK(polycm_device_count() == 0);
	return 0;
}

static void rules_are_found_in_any_plugin(void **state)
{
	static const struct plugin plugins[] = { ACME, BETA, PLUGIN("a", "broken", TEXT) };
	struct capture capture;

	(void)state;
	if (!*case_folder)
		skip();
	capture_begin(&capture);
	run_in_child(load_for_rules, plugins, ARRAY_SIZE(plugins));
	/* Said once, however often somebody asks. */
	assert_int_equal(count_lines(capture_end(&capture)), 1);
	assert_non_null(strstr(capture.text, "/a/provider-broken.so skipped: "));
}

static int find_in_relative_folder(void)
{
	struct polycm_module *const *modules;

	CHECK(chdir(case_folder) == 0);
	setenv("POLYCM_PROVIDER_PATH", "a", 1);
	CHECK(polycm_registry_get() == 0);
	CHECK(polycm_registry_selected(&modules) == 1);
	CHECK(modules[0]->path[0] == '/');
	return 0;
}

static void modules_are_opened_by_absolute_path(void **state)
{
	static const struct plugin plugins[] = { ACME };

	(void)state;
	run_in_child(find_in_relative_folder, plugins, ARRAY_SIZE(plugins));
}

static int find_installed(void)
{
	char path[sizeof(case_folder) + 8];

	setenv("POLYCM_PROVIDER_PATH", "/nowhere/at/all", 1);
	snprintf(path, sizeof(path), "%s/a", case_folder);
	polycm_installed_folder = path;
	CHECK(polycm_registry_get() == 0);
	CHECK(find_module("acme"));
	return 0;
}

static void the_installed_folder_comes_last(void **state)
{
	static const struct plugin plugins[] = { ACME };
	struct capture capture;

	(void)state;
	if (!*case_folder)
		skip();
	capture_begin(&capture);
	run_in_child(find_installed, plugins, ARRAY_SIZE(plugins));
	assert_string_equal(capture_end(&capture), "polycm: warn: no providers from folder "
						   "/nowhere/at/all: No such file or directory\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_select),
		cmocka_unit_test(names_that_fail),
		cmocka_unit_test(layers_go_around_providers),
		cmocka_unit_test(newer_tables_work),
		cmocka_unit_test(failures_stay_with_their_provider),
		cmocka_unit_test(environment_is_checked),
		cmocka_unit_test(a_vendors_plugin_is_complete),
		cmocka_unit_test(rules_are_found_in_any_plugin),
		cmocka_unit_test(modules_are_opened_by_absolute_path),
		cmocka_unit_test(the_installed_folder_comes_last),
	};

	return cmocka_run_group_tests(tests, case_make_folder, case_remove_folder);
}
