/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sim_provider.c - the plugin's descriptor, which addresses it takes, and
 * the control of the simulator from tests.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/interposer.h"
#include "sim_ops.h"
#include "sim_world.h"

static const struct polycm_provider *provider;
static const struct polycm_sim_ops *control;
static const struct polycm_clock *installed;
static struct polycm_device_info devices[8];
static unsigned int num_devices, num_removed;
static const char *seed = "7", *trace = "";
static int clock_result;
static char said[256];		/* the last line of log */
static unsigned int num_said;

static const char *setting(const char *name)
{
	static const char *const values[][2] = {
		{ "POLYCM_SIM_TRANSPORT", "iwarp" },
		{ "POLYCM_SIM_CLOCK", "virtual" },
		{ "POLYCM_SIM_FABRIC", "" },
	};

	if (!strcmp(name, "POLYCM_SIM_SEED"))
		return seed;
	if (!strcmp(name, "POLYCM_SIM_TRACE"))
		return trace;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		if (!strcmp(name, values[i][0]))
			return values[i][1];
	return NULL;
}

static __attribute__((format(printf, 3, 4)))
void log_line(enum polycm_log_level level, const struct polycm_id *id, const char *format, ...)
{
	va_list args;

	(void)id;
	if (level > POLYCM_LOG_WARN)
		return;
	va_start(args, format);
	vsnprintf(said, sizeof(said), format, args);
	va_end(args);
	num_said++;
}

static int clock_install(const struct polycm_clock *clock, void *ctx)
{
	(void)ctx;
	if (!clock_result)
		installed = clock;
	return clock_result;
}

static int device_add(struct polycm_module *module, const struct polycm_device_info *info,
		      struct polycm_device **ret_device)
{
	(void)module;
	assert_true(num_devices < ARRAY_SIZE(devices));
	devices[num_devices++] = *info;
	*ret_device = info->cookie;
	return 0;
}

static const struct polycm_clock_services clock_services = {
	.size = sizeof(clock_services),
	.install = clock_install,
	.show = polycm_clock_show,
	.real_ns = polycm_real_ns,
	.cond_wait = polycm_cond_wait,
	.time_moved = polycm_time_moved,
};

static const void *extension(const char *name, unsigned int version)
{
	return !strcmp(name, POLYCM_CLOCK) && version == POLYCM_CLOCK_VERSION ? &clock_services : NULL;
}

static const void *no_extension(const char *name, unsigned int version)
{
	(void)name;
	(void)version;
	return NULL;
}

static void device_remove(struct polycm_device *device)
{
	assert_non_null(device);
	num_removed++;
}

static int setup(void **state)
{
	void *ctx;

	(void)state;
	world_core.setting = setting;
	world_core.log = log_line;
	world_core.extension = extension;
	world_core.device_add = device_add;
	world_core.device_remove = device_remove;
	assert_int_equal(polycm_provider_query_v1(&world_core, &provider), 0);
	assert_int_equal(provider->ops->init(NULL, &ctx), 0);
	control = provider->extension("sim", 1);
	assert_non_null(control);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	provider->ops->fini(NULL);
	return 0;
}

static void without_the_clock_it_does_not_serve(void **state)
{
	const struct polycm_provider *again = NULL;

	(void)state;
	world_core.extension = no_extension;
	num_said = 0;
	assert_int_equal(polycm_provider_query_v1(&world_core, &again), -EOPNOTSUPP);
	assert_int_equal(num_said, 1);
	assert_string_equal(said, "this libpolycm does not let providers own time");
	assert_null(again);
	world_core.extension = extension;
	assert_int_equal(polycm_provider_query_v1(&world_core, &again), 0);
}

static void the_descriptor_is_whole(void **state)
{
	const struct polycm_provider *again;

	(void)state;
	assert_int_equal(polycm_provider_query_v1(&world_core, &again), 0);
	assert_ptr_equal(again, provider);
	assert_int_equal(provider->size, sizeof(*provider));
	assert_string_equal(provider->name, "sim");
	assert_int_equal(provider->flags,
			 POLYCM_PROVIDER_ON_REQUEST | POLYCM_PROVIDER_LOSES_REQUESTS);
	assert_null(provider->transport);
	assert_int_equal(provider->id_size, sizeof(struct sim_id));
	assert_int_equal(provider->ops->size, sizeof(struct polycm_ops));
	assert_null(provider->extension("sim", 2));
	assert_null(provider->extension("other", 1));
	for (uint32_t i = 0; i < provider->num_options; i++) {
		assert_int_equal(provider->options[i].size, sizeof(struct polycm_option));
		assert_int_equal(strncmp(provider->options[i].name, "POLYCM_SIM_", 11), 0);
		assert_non_null(provider->options[i].default_value);
		assert_true(strlen(provider->options[i].help) > 10);
	}
	assert_non_null(installed);
	assert_ptr_equal(installed->idle, sim_idle);
}

static void it_shows_the_device_of_this_host(void **state)
{
	(void)state;
	num_devices = 0;
	assert_int_equal(provider->ops->enumerate(NULL), 0);
	assert_int_equal(provider->ops->enumerate(NULL), 0);
	assert_int_equal(num_devices, 1);
	assert_string_equal(devices[0].name, "sim0");
	assert_string_equal(devices[0].transport, "iwarp");
	assert_int_equal(devices[0].verbs->device.node_type, IBV_NODE_RNIC);
}

static int match(const char *src, const char *dst)
{
	union sim_sockaddr s, d;

	if (src)
		s = world_address(src, 0);
	if (dst)
		d = world_address(dst, 1);
	return provider->ops->match(NULL, src ? &s.sa : NULL, dst ? &d.sa : NULL);
}

static void it_takes_its_addresses(void **state)
{
	static const struct {
		const char *src, *dst;
		int result;
	} cases[] = {
		{ NULL, NULL, 0 },
		{ "0.0.0.0", NULL, 0 },
		{ "::", NULL, 0 },
		{ NULL, "127.0.0.1", 0 },
		{ NULL, "10.9.0.1", 0 },
		{ NULL, "10.9.0.77", 0 },	/* nobody, but routed */
		{ NULL, "192.0.2.1", 0 },
		{ NULL, "fd00::1", -ENODEV },	/* no address of that family */
		{ "10.9.0.1", NULL, 0 },
		{ "10.9.0.1", "10.9.0.77", 0 },
		{ "10.9.0.3", NULL, -ENODEV },
		{ "10.9.0.3", "10.9.0.1", -ENODEV },
	};
	struct sockaddr other = { .sa_family = AF_UNIX };
	struct polycm_sim_node *node;

	(void)state;
	assert_int_equal(control->create(1), 0);
	assert_int_equal(match(NULL, NULL), -ENODEV);	/* no device yet */
	assert_int_equal(control->node_add("a", "roce", "10.9.0.1/24", &node), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(match(cases[i].src, cases[i].dst), cases[i].result);
	assert_int_equal(provider->ops->match(NULL, NULL, &other), -ENODEV);
	assert_int_equal(provider->ops->match(NULL, &other, NULL), -ENODEV);
	assert_int_equal(control->destroy(), 0);
}

static void nodes_are_checked(void **state)
{
	static const struct {
		const char *name, *transport, *address;
		const char *why;	/* of -EINVAL, in one line of log; NULL: 0 */
	} cases[] = {
		{ "b", "roce", "10.9.0.2/24", NULL },
		{ "c", "ib", "fd00::3/64", NULL },
		{ "d", "iwarp", "10.9.0.4", NULL },
		{ "b", "roce", "10.9.0.5/24", "b: the name is taken" },
		{ "e", "roce", "10.9.0.2/24", "10.9.0.2/24: a node has that address" },
		{ "e", "token-ring", "10.9.0.5/24", "token-ring: neither a transport that "
		  "'polycm info' lists nor a device of 'polycm run --device'" },
		{ "e", "roce", "10.9.0.5/33", "10.9.0.5/33: no address as in 10.0.0.1/24 or "
					      "fd00::1/64" },
		{ "e", "roce", "ten", "ten: no address as in 10.0.0.1/24 or fd00::1/64" },
		{ "e", "roce", "0.0.0.0/0", "0.0.0.0/0: the address of no interface" },
		{ "e", "roce", "127.0.0.1/8", "127.0.0.1/8: a loopback address" },
		{ "", "roce", "10.9.0.5/24", "the name is empty or too long" },
		{ NULL, "roce", "10.9.0.5/24", "name: NULL is no argument" },
		{ "e", NULL, "10.9.0.5/24", "kind: NULL is no argument" },
		{ "e", "roce", NULL, "address: NULL is no argument" },
		{ "e", "roce", "10.9.0.5/24", NULL },
	};
	static const char call[] = "polycm_sim_node_add: ";
	struct polycm_sim_node *node = NULL;

	(void)state;
	assert_int_equal(control->create(1), 0);
	num_devices = 0;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		num_said = 0;
		assert_int_equal(control->node_add(cases[i].name, cases[i].transport,
						   cases[i].address, &node),
				 cases[i].why ? -EINVAL : 0);
		assert_int_equal(num_said, cases[i].why != NULL);
		if (!cases[i].why)
			continue;
		assert_memory_equal(said, call, strlen(call));
		assert_string_equal(said + strlen(call), cases[i].why);
	}
	assert_int_equal(num_devices, 4);
	assert_string_equal(devices[1].name, "sim1");
	assert_string_equal(devices[3].name, "sim3");
	assert_int_equal(control->node_add("f", "roce", "10.9.0.6/24", NULL), -EINVAL);
	assert_string_equal(said, "polycm_sim_node_add: ret_node: NULL is no argument");
	assert_int_equal(control->node_use(NULL), -EINVAL);
	assert_string_equal(said, "polycm_sim_node_use: node: NULL is no argument");
	assert_int_equal(control->node_add_address(node, "10.9.1.1/24"), 0);
	assert_int_equal(control->node_add_address(node, "10.9.1.1/24"), -EINVAL);
	assert_string_equal(said,
			    "polycm_sim_node_add_address: 10.9.1.1/24: a node has that address");
	assert_int_equal(control->node_add_address(NULL, "10.9.1.2/24"), -EINVAL);
	assert_int_equal(control->node_use(NULL), -EINVAL);
	assert_int_equal(control->node_use(node), 0);
	num_removed = 0;
	assert_int_equal(control->destroy(), 0);
	assert_int_equal(num_removed, 4);
}

static void time_is_the_tests(void **state)
{
	uint64_t ns = 99;

	(void)state;
	assert_int_equal(control->create(1), 0);
	assert_int_equal(control->now(&ns), 0);
	assert_int_equal(ns, 0);
	assert_int_equal(control->advance(12345), 0);
	assert_int_equal(control->now(&ns), 0);
	assert_int_equal(ns, 12345);
	assert_int_equal(installed->now_ns(NULL), 12345);
	assert_int_equal(control->now(NULL), -EINVAL);
	/* A new fabric begins at 0. */
	assert_int_equal(control->create(1), 0);
	assert_int_equal(installed->now_ns(NULL), 0);
	assert_int_equal(control->destroy(), 0);
}

static void count_up(void *arg)
{
	++*(int *)arg;
}

static void the_core_has_timers(void **state)
{
	struct polycm_timer *first, *second;
	int fired = 0;

	(void)state;
	assert_int_equal(control->create(1), 0);
	assert_int_equal(installed->timer_start(NULL, 100, count_up, &fired, &first), 0);
	assert_int_equal(installed->timer_start(NULL, 200, count_up, &fired, &second), 0);
	assert_int_equal(control->advance(99), 0);
	assert_int_equal(fired, 0);
	assert_int_equal(control->advance(1), 0);
	assert_int_equal(fired, 1);
	installed->timer_cancel(NULL, second);
	installed->timer_cancel(NULL, first);
	assert_int_equal(control->advance(1000), 0);
	assert_int_equal(fired, 1);
	assert_int_equal(world.allocated, 0);
	assert_int_equal(control->destroy(), 0);
}

static void what_is_left_is_counted(void **state)
{
	struct polycm_sim_counts counts = { .size = sizeof(counts) };
	struct polycm_sim_node *node;
	struct ibv_context *context;
	struct polycm_id *id;

	(void)state;
	assert_int_equal(control->create(1), 0);
	assert_int_equal(control->node_add("a", "roce", "10.9.0.1/24", &node), 0);
	id = world_id(RDMA_PS_TCP);
	assert_int_equal(control->live(&counts), 0);
	assert_int_equal(counts.size, sizeof(counts));
	assert_int_equal(counts.ids, 1);
	assert_int_equal(control->destroy(), -EBUSY);
	assert_int_equal(control->create(2), -EBUSY);
	world_destroy(id);

	/* A program's context: the device stays there for it. */
	context = sim_verbs.open_device(&devices[num_devices - 1].verbs->device);
	assert_int_equal(control->live(&counts), 0);
	assert_int_equal(counts.ids, 0);
	assert_int_equal(counts.contexts, 1);
	num_devices = 0;
	assert_int_equal(control->destroy(), -EBUSY);
	assert_int_equal(num_devices, 1);
	assert_int_equal(sim_verbs.close_device(context), 0);
	assert_int_equal(control->destroy(), 0);

	/* A caller that knows less. */
	counts.size = offsetof(struct polycm_sim_counts, ids);
	counts.ids = 77;
	assert_int_equal(control->live(&counts), 0);
	assert_int_equal(counts.ids, 77);
	counts.size = 0;
	assert_int_equal(control->live(&counts), -EINVAL);
	assert_int_equal(control->live(NULL), -EINVAL);
}

/* A dropped fabric gives way to the one of the settings when one is needed. */
static void the_default_comes_back(void **state)
{
	(void)state;
	assert_int_equal(control->create(1), 0);
	assert_int_equal(control->destroy(), 0);
	assert_int_equal(control->destroy(), 0);
	num_devices = 0;
	assert_int_equal(match(NULL, "127.0.0.1"), 0);
	assert_int_equal(provider->ops->enumerate(NULL), 0);
	assert_int_equal(num_devices, 1);
	assert_string_equal(devices[0].transport, "iwarp");
}

static void bad_settings_are_refused(void **state)
{
	static const char *const seeds[] = { "x", "1x", "-1", "99999999999999999999" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
		assert_int_equal(control->create(1), 0);
		assert_int_equal(control->destroy(), 0);
		seed = seeds[i];
		assert_int_equal(provider->ops->enumerate(NULL), -EINVAL);
		assert_int_equal(match(NULL, NULL), -ENODEV);
	}
	assert_string_equal(said, "POLYCM_SIM_SEED=99999999999999999999: not a number");
	seed = "0x10";
	num_said = 0;
	trace = "/nowhere/trace";
	assert_int_equal(provider->ops->enumerate(NULL), -ENOENT);
	assert_int_equal(num_said, 1);
	assert_string_equal(said, "POLYCM_SIM_TRACE=/nowhere/trace: No such file or directory");
	assert_int_equal(match(NULL, NULL), -ENODEV);
	assert_int_equal(control->trace("/nowhere/trace"), -ENOENT);
	trace = "";
	assert_int_equal(provider->ops->enumerate(NULL), 0);
}

static void another_clock_is_in_the_way(void **state)
{
	void *ctx;

	(void)state;
	provider->ops->fini(NULL);
	clock_result = -EBUSY;
	assert_int_equal(provider->ops->init(NULL, &ctx), -EBUSY);
	clock_result = 0;
	assert_int_equal(provider->ops->init(NULL, &ctx), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_descriptor_is_whole),
		cmocka_unit_test(without_the_clock_it_does_not_serve),
		cmocka_unit_test(it_shows_the_device_of_this_host),
		cmocka_unit_test(it_takes_its_addresses),
		cmocka_unit_test(nodes_are_checked),
		cmocka_unit_test(time_is_the_tests),
		cmocka_unit_test(the_core_has_timers),
		cmocka_unit_test(what_is_left_is_counted),
		cmocka_unit_test(the_default_comes_back),
		cmocka_unit_test(bad_settings_are_refused),
		cmocka_unit_test(another_clock_is_in_the_way),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
