/* SPDX-License-Identifier: BSD-2-Clause */
/* test_inspect.c - <polycm/polycm.h> for support: facts of ids and devices, and the dump. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "polycm/polycm.h"
#include "steps.h"

static char text[16384];

static int add_fact(void *arg, const char *name, const char *value)
{
	size_t len = strlen(text);

	(void)snprintf(text + len, sizeof(text) - len, "%s = %s\n", name, value);
	return arg && !strcmp(name, arg) ? 7 : 0;
}

static const char *facts_of(struct rdma_cm_id *id)
{
	text[0] = '\0';
	assert_int_equal(polycm_id_walk(id, add_fact, NULL), 0);
	return text;
}

static const char *facts_of_device(const char *name)
{
	text[0] = '\0';
	assert_int_equal(polycm_device_walk(name, add_fact, NULL), 0);
	return text;
}

#define assert_has(text, part)                                                                     \
	do {                                                                                       \
		if (!strstr(text, part))                                                           \
			fail_msg("not \"%s\" in:\n%s", part, text);                                \
	} while (0)

static void an_id_has_facts(void **state)
{
	struct rdma_cm_id *id;
	struct pair pair;

	(void)state;
	pair_open_resolved(&pair, ROCE);
	assert_has(facts_of(pair.client), "provider = sim\ndevice = sim1\nsource = 10.0.0.2:");
	assert_has(text, "destination = 10.0.0.1:7471\nqueue pair = 0x");
	assert_has(text, "events not acknowledged = 0\n");
	assert_has(text, "state = ROUTE_RESOLVED\n");
	assert_has(facts_of(pair.listener), "backlog = ");
	assert_has(text, "state = LISTEN\n");
	pair_close(&pair);

	pair_open(&pair, ROCE, RDMA_PS_TCP);
	pair_connect(&pair);
	assert_has(facts_of(pair.client), "state = CONNECT\n");
	assert_has(text, "CM state = ESTABLISHED\nCM retries left = ");

	text[0] = '\0';
	assert_int_equal(polycm_id_walk(pair.client, add_fact, (void *)"device"), 7);
	assert_string_equal(text, "provider = sim\ndevice = sim1\n");

	assert_int_equal(rdma_create_id(pair.client_channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_has(facts_of(id), "device = none yet\nsource = -\ndestination = -\n");
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_errno(polycm_id_walk(id, add_fact, NULL), EINVAL);
	assert_errno(polycm_id_walk(pair.client, NULL, NULL), EINVAL);
	pair_close(&pair);
}

static void iwarp_has_other_facts(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, IWARP, RDMA_PS_TCP);
	pair_connect(&pair);
	assert_has(facts_of(pair.client), "state = CONNECT\n");
	assert_has(text, "SYNs sent = 1\n");
	pair_close(&pair);
}

/* The error of the device sim1, as the list of devices has it. */
static int find_error(void *arg, const struct polycm_device_view *view)
{
	if (!strcmp(view->name, "sim1"))
		*(int *)arg = view->error;
	return 0;
}

static int error_of_device(void)
{
	int error = 1;

	assert_int_equal(polycm_devices_walk(find_error, &error), 0);
	return error;
}

static void a_device_has_its_health(void **state)
{
	struct pair pair;

	(void)state;
	pair_open_resolved(&pair, ROCE);
	assert_has(facts_of_device("sim1"), "provider = sim\ntransport = roce\n");
	assert_has(text, "port = 1 is active\n");
	assert_has(text, "QP = 1\n");
	assert_has(text, "health = good\n");
	assert_int_equal(error_of_device(), 0);

	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_PORT_DOWN,
							       .on = pair.client_node), NULL), 0);
	assert_int_equal(polycm_sim_advance(1), 0);
	assert_has(facts_of_device("sim1"), "port = 1 is down\n");
	assert_has(text, "health = Network is down\n");
	assert_int_equal(error_of_device(), -ENETDOWN);

	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_CRASH,
							       .on = pair.client_node), NULL), 0);
	assert_int_equal(polycm_sim_advance(1), 0);
	assert_has(facts_of_device("sim1"), "health = Host is down\n");
	assert_errno(polycm_device_walk("none", add_fact, NULL), ENODEV);
	assert_errno(polycm_device_walk(NULL, add_fact, NULL), EINVAL);
	assert_errno(polycm_device_walk("sim1", NULL, NULL), EINVAL);
	pair_close(&pair);
}

static void the_dump_has_it_all(void **state)
{
	struct rdma_cm_event *event;
	struct pair pair;
	char *dump = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&dump, &size);

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT),
					   1000), 0);
	event = pair_expect(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(polycm_dump(to), 0);
	assert_has(dump, "polycm ");
	assert_has(dump, "listens on 10.0.0.1:7471, created by rdma_create_id\n"
			 "  provider                 sim\n");
	assert_has(dump, "  state                    LISTEN\n");
	assert_has(dump, "  events not acknowledged  1\n");
	assert_has(dump, ": ADDR_RESOLVED of the id: to 10.0.0.1:7471");
	assert_has(dump, "event channel 0x");
	assert_has(dump, "device sim1\n  provider                 sim\n");
	assert_int_equal(rdma_ack_cm_event(event), 0);
	fclose(to);
	free(dump);
	assert_errno(polycm_dump(NULL), EINVAL);
	to = fopen("/dev/full", "w");
	assert_non_null(to);
	assert_errno(polycm_dump(to), EIO);
	fclose(to);
	pair_close(&pair);
}

static void tables_without_a_dot_are_private(void **state)
{
	(void)state;
	errno = 0;
	assert_null(polycm_provider_extension("sim", "sim", 1));
	assert_int_equal(errno, ENOENT);
	assert_null(polycm_provider_extension("sim", "acme.qos", 1));
	assert_int_equal(errno, ENOENT);
	assert_null(polycm_provider_extension("acme", "acme.qos", 1));
	assert_int_equal(errno, ENODEV);
	assert_null(polycm_provider_extension(NULL, NULL, 1));
	assert_int_equal(errno, ENODEV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_id_has_facts),
		cmocka_unit_test(iwarp_has_other_facts),
		cmocka_unit_test(a_device_has_its_health),
		cmocka_unit_test(the_dump_has_it_all),
		cmocka_unit_test(tables_without_a_dot_are_private),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
