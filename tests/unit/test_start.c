/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starting and ending the selected providers, with providers in memory, and
 * what programs can ask about them.  Each test is a process of its own.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cmocka_all.h"

#include "polycm/polycm.h"
#include "sim_ops.h"

#include "core/device/device.h"
#include "core/plugin/plugin_internal.h"
#include "idle_ops.h"

#define CHECK(condition) do { if (!(condition)) return __LINE__; } while (0)

static char calls[256];		/* what was called, in order */
static int notes = -1;		/* where ends are noted, too */

static void note(const char *what, const char *name)
{
	sprintf(calls + strlen(calls), "%s %s;", what, name);
	if (notes >= 0)
		dprintf(notes, "%s %s;", what, name);
}

static int init_one(struct polycm_module *module, void **ret_ctx)
{
	struct polycm_module *const *modules;

	note("init", module->name);
	*ret_ctx = module;
	/* Asked while it starts, the registry answers and does not hang. */
	if (polycm_registry_get() || polycm_registry_selected(&modules) != 1 ||
	    !polycm_registry_transport("one-wire"))
		return -EDEADLK;
	return 0;
}

static int init_two(struct polycm_module *module, void **ret_ctx)
{
	note("init", module->name);
	*ret_ctx = module;
	return 0;
}

static int init_bad(struct polycm_module *module, void **ret_ctx)
{
	(void)ret_ctx;
	note("init", module->name);
	return -ENXIO;
}

static void fini(void *ctx)
{
	note("fini", ((struct polycm_module *)ctx)->name);
}

static int enumerate(void *ctx)
{
	note("enumerate", ((struct polycm_module *)ctx)->name);
	return 0;
}

#define OPS(how)                                                                                   \
	{                                                                                          \
		.size = sizeof(struct polycm_ops), .init = how, .fini = fini,                      \
		.enumerate = enumerate, .match = match, .open = open_id, .close = end,             \
		.stop = end, .free = end,                                                          \
	}

static const struct polycm_ops one_ops = OPS(init_one), two_ops = OPS(init_two);
static const struct polycm_ops bad_ops = OPS(init_bad);

static int sim_now(uint64_t *ret_ns)
{
	*ret_ns = 42;
	return 0;
}

static int sim_advance(uint64_t ns)
{
	return ns ? -EBUSY : 0;
}

/* An older one: it ends before advance. */
static const struct polycm_sim_ops old_sim = {
	.size = offsetof(struct polycm_sim_ops, advance),
	.now = sim_now,
	.advance = sim_advance,
};

static const struct polycm_sim_ops sim = {
	.size = sizeof(sim),
	.now = sim_now,
	.advance = sim_advance,
};

static const void *offer_sim(const char *name, unsigned int version)
{
	return !strcmp(name, "sim") && version == 1 ? &sim : NULL;
}

static const void *offer_old_sim(const char *name, unsigned int version)
{
	return !strcmp(name, "sim") && version == 1 ? &old_sim : NULL;
}

static const struct polycm_transport transport = {
	.size = sizeof(transport),
	.shape = POLYCM_RULES_SHAPE,
	.name = "one-wire",
	.description = "of a test",
};

static const struct polycm_option options[] = {
	{ .size = sizeof(options[0]), .name = "POLYCM_TWO_X", .default_value = "x", .help = "X." },
};

static struct polycm_provider one = {
	.size = sizeof(one), .name = "one", .version = "1.0", .transport = &transport,
	.ops = &one_ops, .id_size = 1, .flags = POLYCM_PROVIDER_ON_REQUEST,
};

static struct polycm_provider two = {
	.size = sizeof(two), .name = "two", .version = "2.0", .description = "the second",
	.ops = &two_ops, .id_size = 17, .channel_size = 16, .options = options, .num_options = 1,
};

static const struct polycm_provider bad = {
	.size = sizeof(bad), .name = "bad", .ops = &bad_ops, .id_size = 4096,
};

/* ------------------------------------------------------------------------
 * What the processes do: 0, or the line that failed.
 */

static int add_all(void)
{
	struct polycm_provider wrong = { .size = sizeof(wrong), .name = "wrong" };

	CHECK(polycm_registry_add_static(&two) == 0);
	CHECK(polycm_registry_add_static(&bad) == 0);
	CHECK(polycm_registry_add_static(&one) == 0);
	CHECK(polycm_registry_add_static(&one) == -EEXIST);
	CHECK(polycm_registry_add_static(&wrong) == -EINVAL);
	return 0;
}

static struct polycm_module *find_module(const char *name)
{
	const char *path, *problem;

	return polycm_files_load(name, false, &path, &problem);
}

static int start_all(void)
{
	struct polycm_module *const *modules;

	CHECK(!add_all());
	CHECK(polycm_registry_get() == 0);
	CHECK(!strcmp(calls, "init two;init bad;init one;enumerate two;enumerate one;"));
	CHECK(polycm_registry_selected(&modules) == 2);
	CHECK(!strcmp(modules[0]->name, "two") && !strcmp(modules[1]->name, "one"));
	CHECK(find_module("bad")->init_error == -ENXIO);
	/* Of those that work. */
	CHECK(polycm_registry_id_size() == 32);
	CHECK(polycm_registry_channel_size() == 16);
	*calls = '\0';
	CHECK(polycm_registry_get_devices() == 0);
	CHECK(!strcmp(calls, "enumerate two;enumerate one;"));
	CHECK(polycm_registry_load_all() == 3);
	return 0;
}

/* Who wants the devices is answered by one look, the first time too. */
static int devices_are_asked_for_once(void)
{
	CHECK(!add_all());
	CHECK(polycm_registry_get_devices() == 0);
	CHECK(!strcmp(calls, "init two;init bad;init one;enumerate two;enumerate one;"));
	*calls = '\0';
	CHECK(polycm_registry_get_devices() == 0);
	CHECK(!strcmp(calls, "enumerate two;enumerate one;"));
	return 0;
}

/* It shows what there is, in a debugger too, where a plugin's threads may stand still. */
static int a_dump_starts_nothing(void)
{
	FILE *to = fopen("/dev/null", "we");

	CHECK(to && !add_all());
	CHECK(!polycm_dump(to) && !*calls);
	CHECK(polycm_registry_get_devices() == 0);
	*calls = '\0';
	CHECK(!polycm_dump(to) && !*calls);
	fclose(to);
	return 0;
}

static int files_come_too_late(void)
{
	CHECK(polycm_registry_get() == 0);
	CHECK(polycm_registry_add_static(&one) == -EBUSY);
	return 0;
}

static void *get(void *unused)
{
	(void)unused;
	return polycm_registry_get() || polycm_registry_id_size() != 32 ? calls : NULL;
}

static int start_from_many_threads(void)
{
	pthread_t threads[8];
	void *failed;

	CHECK(!add_all());
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		CHECK(!pthread_create(&threads[i], NULL, get, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		pthread_join(threads[i], &failed);
		CHECK(!failed);
	}
	CHECK(!strcmp(calls, "init two;init bad;init one;enumerate two;enumerate one;"));
	return 0;
}

/* Ends by exit(), with and without a forked child that does so before. */
static int end_in_order(void)
{
	char text[64] = "";
	int ends[2], status;
	pid_t child;

	CHECK(!pipe(ends));
	child = fork();
	if (!child) {
		pid_t grandchild;

		if (start_all())
			_exit(1);
		notes = ends[1];
		grandchild = fork();
		if (!grandchild)
			exit(0);
		if (waitpid(grandchild, &status, 0) != grandchild || status)
			_exit(1);
		dprintf(notes, "parent;");
		exit(0);
	}
	close(ends[1]);
	CHECK(waitpid(child, &status, 0) == child && !status);
	CHECK(read(ends[0], text, sizeof(text) - 1) > 0);
	CHECK(!strcmp(text, "parent;fini one;fini two;"));
	return 0;
}

static int show_provider(void *arg, const struct polycm_provider_info *info)
{
	char *text = arg;

	if (info->size != sizeof(*info))
		return -7;
	sprintf(text + strlen(text), "%s,%s,%s,%s,%d%d,%d,%u,%s\n", info->name, info->version,
		info->description, info->transport ? info->transport : "-", info->on_request,
		info->selected, info->error, info->num_devices, info->problem ? info->problem : "-");
	return strcmp(info->name, "one") ? 0 : 5;
}

static int show_setting(void *arg, const struct polycm_setting_info *info)
{
	char *text = arg;

	if (!strcmp(info->name, "POLYCM_TWO_X") || !strcmp(info->name, "POLYCM_LOG"))
		sprintf(text + strlen(text), "%s,%s,%s,%s,%s,%d\n", info->name, info->owner,
			info->value, info->default_value, info->choices ? info->choices : "-",
			info->given);
	return 0;
}

static int show_device(void *arg, const struct polycm_device_view *view)
{
	sprintf((char *)arg + strlen(arg), "%s,%s,%s,%d\n", view->name, view->provider,
		view->transport, view->simulated);
	return 0;
}

static int count_rules(void *arg, const char *rule, const char *value)
{
	int *num = arg;

	(void)rule;
	(void)value;
	return ++*num == 4 ? 9 : 0;
}

static int look_around(void)
{
	struct polycm_device_info info = {
		.size = sizeof(info), .name = "two0", .transport = "one-wire",
	};
	char text[1024] = "";
	int num = 0;

	CHECK(!add_all());
	CHECK(!strcmp(polycm_version(), PACKAGE_VERSION));
	CHECK(polycm_registry_get() == 0);
	CHECK(!polycm_device_add(find_module("two"), &info, NULL));

	CHECK(polycm_providers_walk(true, show_provider, text) == 5);
	CHECK(!strcmp(text, "two,2.0,the second,-,01,0,1,-\n"
			    "bad,,,-,01,-6,0,-\n"
			    "one,1.0,,one-wire,11,0,0,-\n"));
	*text = '\0';
	CHECK(polycm_settings_walk(show_setting, text) == 0);
	CHECK(!strcmp(text, "POLYCM_LOG,polycm,error,error,error|warn|info|debug|trace,0\n"
			    "POLYCM_TWO_X,two,x,x,-,0\n"));
	*text = '\0';
	CHECK(polycm_devices_walk(show_device, text) == 0);
	CHECK(!strcmp(text, "two0,two,one-wire,0\n"));
	CHECK(polycm_rules_walk("one-wire", count_rules, &num) == 9 && num == 4);

	CHECK(polycm_rules_walk("none", count_rules, &num) == -1 && errno == ENOENT);
	CHECK(polycm_rules_walk("one-wire", NULL, NULL) == -1 && errno == EINVAL);
	CHECK(polycm_providers_walk(true, NULL, NULL) == -1 && errno == EINVAL);
	CHECK(polycm_settings_walk(NULL, NULL) == -1 && errno == EINVAL);
	CHECK(polycm_devices_walk(NULL, NULL) == -1 && errno == EINVAL);
	return 0;
}

static int control_a_simulator(void)
{
	uint64_t now = 0;

	one.extension = offer_sim;
	CHECK(!add_all());
	CHECK(polycm_sim_now(&now) == 0 && now == 42);
	CHECK(polycm_sim_advance(0) == 0);
	errno = 0;
	CHECK(polycm_sim_advance(1) == -1 && errno == EBUSY);
	/* In the table, but empty. */
	CHECK(polycm_sim_create(1) == -1 && errno == EOPNOTSUPP);
	CHECK(polycm_sim_destroy() == -1 && errno == EOPNOTSUPP);
	CHECK(polycm_sim_node_add("a", "roce", "10.0.0.1/24", NULL) == -1 && errno == EOPNOTSUPP);
	CHECK(polycm_sim_node_add_address(NULL, "10.0.0.1/24") == -1 && errno == EOPNOTSUPP);
	CHECK(polycm_sim_node_use(NULL) == -1 && errno == EOPNOTSUPP);
	CHECK(polycm_sim_trace(NULL) == -1 && errno == EOPNOTSUPP);
	CHECK(polycm_sim_live(NULL) == -1 && errno == EOPNOTSUPP);
	return 0;
}

static int control_an_older_simulator(void)
{
	uint64_t now = 0;

	two.extension = offer_old_sim;
	CHECK(!add_all());
	CHECK(polycm_sim_now(&now) == 0 && now == 42);
	CHECK(polycm_sim_advance(0) == -1 && errno == EOPNOTSUPP);
	return 0;
}

static int control_none(void)
{
	uint64_t now = 7;

	CHECK(!add_all());
	CHECK(polycm_sim_now(&now) == -1 && errno == ENODEV && now == 7);
	CHECK(polycm_sim_create(0) == -1 && errno == ENODEV);
	return 0;
}

/* ------------------------------------------------------------------------ */

static void run_process(int (*fn)(void))
{
	int status;
	pid_t child;

	child = fork();
	assert_true(child >= 0);
	if (!child) {
		int line;

		clearenv();
		setenv("POLYCM_PROVIDER", "^ib,iwarp,roce,sim", 1);
		line = fn();
		if (line)
			dprintf(STDOUT_FILENO, "failed in line %d, calls: %s\n", line, calls);
		_exit(line != 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#define PROCESS(fn)                                                                                \
	static void test_##fn(void **state)                                                        \
	{                                                                                          \
		(void)state;                                                                       \
		run_process(fn);                                                                   \
	}

PROCESS(start_all)
PROCESS(devices_are_asked_for_once)
PROCESS(a_dump_starts_nothing)
PROCESS(files_come_too_late)
PROCESS(start_from_many_threads)
PROCESS(end_in_order)
PROCESS(look_around)
PROCESS(control_a_simulator)
PROCESS(control_an_older_simulator)
PROCESS(control_none)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start_all),
		cmocka_unit_test(test_devices_are_asked_for_once),
		cmocka_unit_test(test_a_dump_starts_nothing),
		cmocka_unit_test(test_files_come_too_late),
		cmocka_unit_test(test_start_from_many_threads),
		cmocka_unit_test(test_end_in_order),
		cmocka_unit_test(test_look_around),
		cmocka_unit_test(test_control_a_simulator),
		cmocka_unit_test(test_control_an_older_simulator),
		cmocka_unit_test(test_control_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
