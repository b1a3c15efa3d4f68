/* SPDX-License-Identifier: BSD-2-Clause */
/* test_sim_control.c - <polycm/sim.h>: nodes and devices by handle, time, what is left. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "steps.h"
#include "tests/unit/capture.h"

#define MS(ms) ((uint64_t)(ms) * 1000000u)

/* ------------------------------------------------------------------------
 * Handles.
 */

static int use_node(void *handle)
{
	return polycm_sim_node_use(handle);
}

static int add_node_address(void *handle)
{
	return polycm_sim_node_add_address(handle, "10.9.0.1/24");
}

static int add_device(void *handle)
{
	return polycm_sim_device_add(handle, "roce", "10.9.0.2/24", NULL, NULL);
}

static int find_device(void *handle)
{
	struct polycm_sim_device *device;

	return polycm_sim_device_find(handle, NULL, &device);
}

static int add_device_address(void *handle)
{
	return polycm_sim_device_add_address(handle, "10.9.0.3/24");
}

static int limit_device(void *handle)
{
	const struct polycm_sim_limits limits = { .size = sizeof(limits), .max_qp = 7 };

	return polycm_sim_device_limit(handle, &limits);
}

static int remove_fault(void *handle)
{
	return polycm_sim_fault_remove(handle);
}

static int ask_hits(void *handle)
{
	unsigned int hits;

	return polycm_sim_fault_hits(handle, &hits);
}

static int set_link(void *handle)
{
	const struct polycm_sim_link link = { .size = sizeof(link), .latency_ns = 1000 };

	return polycm_sim_link_set(handle, handle, &link);
}

static int add_fault_on(void *handle)
{
	return polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE, .to = handle), NULL);
}

enum kind { NODE, DEVICE, FAULT };

static const struct taker {
	const char *name;
	enum kind kind;
	int (*call)(void *handle);
	bool null_is_all;
} takers[] = {
	{ "node_use", NODE, use_node, false },
	{ "node_add_address", NODE, add_node_address, false },
	{ "device_add", NODE, add_device, false },
	{ "device_find", NODE, find_device, false },
	{ "link_set", NODE, set_link, true },
	{ "fault_add", NODE, add_fault_on, true },
	{ "device_add_address", DEVICE, add_device_address, false },
	{ "device_limit", DEVICE, limit_device, false },
	{ "fault_hits", FAULT, ask_hits, false },
	{ "fault_remove", FAULT, remove_fault, false },
};

/* A fabric with one of each; the handles by kind. */
static void make_one_of_each(void *ret_handles[3])
{
	struct polycm_sim_device *device;
	struct polycm_sim_fault *fault;
	struct polycm_sim_node *node;

	assert_int_equal(polycm_sim_create(1), 0);
	assert_int_equal(polycm_sim_node_add("a", "roce", "10.0.0.1/24", &node), 0);
	assert_int_equal(polycm_sim_device_find(node, NULL, &device), 0);
	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE,
							       .message = "REQ"), &fault), 0);
	ret_handles[NODE] = node;
	ret_handles[DEVICE] = device;
	ret_handles[FAULT] = fault;
}

static void handles_are_checked(void **state)
{
	void *now[3], *gone[3];
	int on_stack;
	void *const garbage[] = { &on_stack, (void *)1, (void *)-1, (void *)make_one_of_each };

	(void)state;
	make_one_of_each(gone);
	make_one_of_each(now);
	for (size_t i = 0; i < ARRAY_LEN(takers); i++) {
		const struct taker *taker = &takers[i];

		print_message("%s\n", taker->name);
		for (size_t j = 0; j < ARRAY_LEN(garbage); j++)
			assert_errno(taker->call(garbage[j]), EINVAL);
		if (!taker->null_is_all)
			assert_errno(taker->call(NULL), EINVAL);
		for (enum kind kind = NODE; kind <= FAULT; kind++)
			if (kind != taker->kind)
				assert_errno(taker->call(now[kind]), EINVAL);
		assert_errno(taker->call(gone[taker->kind]), ENOENT);
		assert_int_equal(taker->call(now[taker->kind]), 0);
	}
	/* A rule that was removed is no garbage, but it is not there either. */
	assert_errno(ask_hits(now[FAULT]), ENOENT);
	assert_int_equal(polycm_sim_destroy(), 0);
	for (size_t i = 0; i < ARRAY_LEN(takers); i++)
		assert_errno(takers[i].call(now[takers[i].kind]), ENOENT);
	/* Nothing is left for the next fabric where there is none. */
	for (size_t i = 0; i < ARRAY_LEN(takers); i++)
		assert_errno(takers[i].call(NULL), EINVAL);
}

/* ------------------------------------------------------------------------
 * Finding.
 */

static void things_are_found_by_name(void **state)
{
	struct polycm_sim_node *a, *b, *node;
	struct polycm_sim_device *first, *second, *device;

	(void)state;
	assert_int_equal(polycm_sim_create(1), 0);
	assert_int_equal(polycm_sim_node_add("a", "roce", "10.0.0.1/24", &a), 0);
	assert_int_equal(polycm_sim_node_add("b", "ib", "10.0.0.2/24", &b), 0);
	assert_int_equal(polycm_sim_device_add(a, "iwarp", "10.0.1.1/24", NULL, &second), 0);

	assert_int_equal(polycm_sim_node_find("a", &node), 0);
	assert_ptr_equal(node, a);
	assert_int_equal(polycm_sim_node_find("b", &node), 0);
	assert_ptr_equal(node, b);
	assert_errno(polycm_sim_node_find("c", &node), EINVAL);
	assert_errno(polycm_sim_node_find(NULL, &node), EINVAL);
	assert_errno(polycm_sim_node_find("a", NULL), EINVAL);

	assert_int_equal(polycm_sim_device_find(a, NULL, &first), 0);
	assert_int_equal(polycm_sim_device_find(a, "sim0", &device), 0);
	assert_ptr_equal(device, first);
	assert_int_equal(polycm_sim_device_find(a, "sim2", &device), 0);
	assert_ptr_equal(device, second);
	/* That one is the other node's. */
	assert_errno(polycm_sim_device_find(a, "sim1", &device), EINVAL);
	assert_errno(polycm_sim_device_find(a, NULL, NULL), EINVAL);
	assert_int_equal(polycm_sim_destroy(), 0);
}

static const struct {
	const char *transport, *address;
	unsigned int max_qp, max_depth;
	int error;
} devices[] = {
	{ "roce", "10.0.1.1/24", 0, 0, 0 },
	{ "ib", "fd00::1/64", 5, 255, 0 },
	{ "nonsense", "10.0.1.2/24", 0, 0, EINVAL },
	{ "roce", "10.0.0.1/24", 0, 0, EINVAL },	/* the first device's */
	{ "roce", "10.0.1", 0, 0, EINVAL },
	{ "roce", "0.0.0.0/0", 0, 0, EINVAL },
	{ "roce", "127.0.0.1/8", 0, 0, EINVAL },
	{ "roce", "224.0.0.1/8", 0, 0, EINVAL },
	{ "roce", "10.0.1.3/24", 1u << 30, 0, EINVAL },
	{ "roce", "10.0.1.3/24", 0, 256, EINVAL },
	{ "iwarp", "10.0.1.4/24", 0, 0, 0 },
};

/* What is refused leaves nothing behind: names go on without a gap. */
static void devices_are_named_in_their_order(void **state)
{
	struct polycm_sim_device *device;
	struct polycm_sim_node *node;
	unsigned int made = 1;
	char name[16];

	(void)state;
	assert_int_equal(polycm_sim_create(1), 0);
	assert_int_equal(polycm_sim_node_add("a", "roce", "10.0.0.1/24", &node), 0);
	for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
		const struct polycm_sim_limits limits = {
			.size = sizeof(limits),
			.max_qp = devices[i].max_qp,
			.max_initiator_depth = devices[i].max_depth,
		};
		int r = polycm_sim_device_add(node, devices[i].transport, devices[i].address,
					      &limits, NULL);

		assert_int_equal(r ? errno : 0, devices[i].error);
		made += !r;
		snprintf(name, sizeof(name), "sim%u", made - 1);
		assert_int_equal(polycm_sim_device_find(node, name, &device), 0);
		snprintf(name, sizeof(name), "sim%u", made);
		assert_errno(polycm_sim_device_find(node, name, &device), EINVAL);
	}
	assert_int_equal(polycm_sim_destroy(), 0);
}

/* ------------------------------------------------------------------------
 * From a file.
 */

static const char scenario[] = "test_sim_control.cfg";

static void write_scenario(const char *text)
{
	FILE *file = fopen(scenario, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void a_network_is_loaded_from_a_file(void **state)
{
	struct polycm_sim_device *device;
	struct polycm_sim_node *node;
	struct rdma_cm_id *id;

	(void)state;
	assert_int_equal(polycm_sim_create(1), 0);
	assert_errno(polycm_sim_load(NULL), EINVAL);
	assert_errno(polycm_sim_load("no/such/file"), ENOENT);
	write_scenario("nodes = (");
	assert_errno(polycm_sim_load(scenario), EINVAL);
	write_scenario("clock = \"real\"; nodes = ();");
	assert_errno(polycm_sim_load(scenario), EINVAL);
	/* After what failed there is the environment's network, and none of a test's. */
	write_scenario("nodes = ( { name = \"a\"; devices = ( { transport = \"iwarp\"; "
		       "addresses = [ \"10.0.0.1/24\" ]; } ); } );");
	assert_int_equal(polycm_sim_load(scenario), 0);
	assert_int_equal(polycm_sim_node_find("a", &node), 0);
	assert_int_equal(polycm_sim_device_find(node, "sim0", &device), 0);
	/* More can be added to it. */
	assert_int_equal(polycm_sim_device_add_address(device, "10.0.0.2/24"), 0);
	assert_int_equal(polycm_sim_node_add("b", "roce", "10.0.0.3/24", &node), 0);

	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(id, step_sa("10.0.0.2", 0)), 0);
	assert_errno(polycm_sim_load(scenario), EBUSY);
	assert_errno(polycm_sim_create(1), EBUSY);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(polycm_sim_destroy(), 0);
	assert_int_equal(remove(scenario), 0);
}

/* ------------------------------------------------------------------------
 * Two devices of one node, as on a host with a cable between them.
 */

static void a_node_connects_to_itself_from_device_to_device(void **state)
{
	static const char *const server = "10.1.0.2", *const client = "10.1.0.1";

	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_event_channel *channel = NULL;
		struct rdma_cm_id *listener, *id, *child;
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct rdma_cm_event *event;
		struct polycm_sim_node *node;
		const struct ibv_qp_init_attr wanted = {
			.qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
				 .max_recv_sge = 1 },
		};
		struct ibv_qp_init_attr attr = wanted;

		print_message("%s\n", transport_name[t]);
		assert_int_equal(polycm_sim_create(1), 0);
		assert_int_equal(polycm_sim_node_add("host", transport_name[t], "10.1.0.1/24",
						     &node), 0);
		assert_int_equal(polycm_sim_device_add(node, transport_name[t], "10.1.0.2/24", NULL,
						       NULL), 0);
		channel = rdma_create_event_channel();
		assert_non_null(channel);
		assert_int_equal(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), 0);
		assert_int_equal(rdma_bind_addr(listener, step_sa(server, 7471)), 0);
		assert_int_equal(rdma_listen(listener, 1), 0);
		assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
		assert_int_equal(rdma_resolve_addr(id, step_sa(client, 0), step_sa(server, 7471),
						   1000), 0);
		pair_take(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_string_equal(ibv_get_device_name(id->verbs->device), "sim0");
		assert_int_equal(rdma_resolve_route(id, 1000), 0);
		pair_take(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
		assert_int_equal(rdma_connect(id, &param), 0);
		event = pair_expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
		child = event->id;
		assert_string_equal(ibv_get_device_name(child->verbs->device), "sim1");
		rdma_ack_cm_event(event);
		attr = wanted;
		assert_int_equal(rdma_create_qp(child, NULL, &attr), 0);
		assert_int_equal(rdma_accept(child, &param), 0);
		pair_take(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_take(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		rdma_destroy_ep(id);
		rdma_destroy_ep(child);
		assert_int_equal(rdma_destroy_id(listener), 0);
		rdma_destroy_event_channel(channel);
		assert_int_equal(polycm_sim_destroy(), 0);
	}
}

/* ------------------------------------------------------------------------
 * Time, and what is left.
 */

static void time_runs_until_nothing_is_left(void **state)
{
	struct pair pair;
	uint64_t before;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	before = pair_now();
	assert_int_equal(polycm_sim_run(SECONDS(1)), 0);
	assert_elapsed(before, 0);
	/* Nobody answers for that address. */
	assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa("10.0.0.77", 1), 700), 0);
	assert_errno(polycm_sim_run(MS(300)), ETIMEDOUT);
	assert_elapsed(before, MS(300));
	pair_none(pair.client_channel);
	assert_int_equal(polycm_sim_run(MS(1000)), 0);
	assert_elapsed(before, MS(700));
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	/* Exactly at the limit is in time; and a limit may be beyond all time. */
	assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa("10.0.0.77", 1), 5), 0);
	assert_int_equal(polycm_sim_run(MS(5)), 0);
	assert_int_equal(polycm_sim_run(UINT64_MAX), 0);
	assert_elapsed(before, MS(705));
	pair_close(&pair);
}

static void time_runs_until_an_event_waits(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct rdma_cm_event *event;
	struct pair pair;
	uint64_t before;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_errno(polycm_sim_run_until_event(pair.client, SECONDS(1)), EDEADLK);
	assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT),
					   1000), 0);
	before = pair_now();
	assert_errno(polycm_sim_run_until_event(pair.client, 1), ETIMEDOUT);
	assert_elapsed(before, 1);
	/* Not for somebody else's; then nothing is left. */
	assert_errno(polycm_sim_run_until_event(pair.listener, SECONDS(1)), EDEADLK);
	/* It waits already, and goes on doing so. */
	before = pair_now();
	assert_int_equal(polycm_sim_run_until_event(pair.client, 0), 0);
	assert_int_equal(polycm_sim_run_until_event(pair.client, 0), 0);
	assert_elapsed(before, 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(pair.client, 1000), 0);
	assert_int_equal(polycm_sim_run_until_event(pair.client, SECONDS(1)), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);

	/* A request is the listener's. */
	pair_client_qp(&pair);
	assert_int_equal(rdma_connect(pair.client, &param), 0);
	assert_int_equal(polycm_sim_run_until_event(pair.listener, SECONDS(1)), 0);
	event = pair_expect(pair.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	pair.server = event->id;
	rdma_ack_cm_event(event);
	pair_close(&pair);
}

static void time_runs_for_no_dead_id(void **state)
{
	struct rdma_cm_id none;
	struct pair pair;

	(void)state;
	memset(&none, 0, sizeof(none));
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_errno(polycm_sim_run_until_event(NULL, 1), EINVAL);
	assert_errno(polycm_sim_run_until_event(&none, 1), EINVAL);
	pair_close(&pair);
}

static struct polycm_sim_counts counts(void)
{
	struct polycm_sim_counts c = { .size = sizeof(c) };

	assert_int_equal(polycm_sim_live(&c), 0);
	return c;
}

static void ports_and_packets_are_counted(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;
	struct polycm_sim_counts old = { .size = offsetof(struct polycm_sim_counts, ports) };

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(counts().ports, 1);	/* the listener's */
	pair_resolve(&pair);
	assert_int_equal(counts().ports, 2);
	assert_int_equal(counts().packets, 0);
	pair_client_qp(&pair);
	assert_int_equal(rdma_connect(pair.client, &param), 0);
	assert_int_equal(counts().packets, 1);
	old.ports = 99;
	assert_int_equal(polycm_sim_live(&old), 0);
	assert_int_equal(old.ids, counts().ids);
	assert_int_equal(old.ports, 99);
	old.size = 0;
	assert_errno(polycm_sim_live(&old), EINVAL);
	assert_errno(polycm_sim_live(NULL), EINVAL);
	pair_close(&pair);
}

/* ------------------------------------------------------------------------
 * A test's own mistakes are told, whatever POLYCM_LOG is.
 */

static struct rdma_cm_id *left_id;
static struct polycm_sim_fault *removed;

static int too_early(void)
{
	return polycm_sim_create(2);
}

static int unknown_node(void)
{
	struct polycm_sim_node *node;

	return polycm_sim_node_find("nobody", &node);
}

static int removed_twice(void)
{
	return polycm_sim_fault_remove(removed);
}

static int no_handle(void)
{
	return polycm_sim_node_use((struct polycm_sim_node *)(void *)&left_id);
}

static int no_id(void)
{
	return polycm_sim_run_until_event(NULL, 1);
}

static int no_folder(void)
{
	return polycm_sim_trace("/nowhere/trace");
}

/* It would lose its context. */
static void a_window_keeps_the_fabric(void **state)
{
	struct polycm_sim_counts counts = { .size = sizeof(counts) };
	struct ibv_context **list;
	struct polycm_sim_node *node;
	struct ibv_pd *pd;
	struct ibv_mw *mw;

	(void)state;
	assert_int_equal(polycm_sim_create(1), 0);
	assert_int_equal(polycm_sim_node_add("a", "roce", "10.0.0.1/24", &node), 0);
	list = rdma_get_devices(NULL);
	assert_non_null(list);
	pd = ibv_alloc_pd(list[0]);
	assert_non_null(pd);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	assert_non_null(mw);
	assert_int_equal(polycm_sim_live(&counts), 0);
	assert_int_equal(counts.mws, 1);
	assert_errno(polycm_sim_destroy(), EBUSY);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	rdma_free_devices(list);
	assert_int_equal(polycm_sim_destroy(), 0);
}

static int impossible_fault(void)
{
	return polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE, .message = "REQUEST"),
				    NULL);
}

static const struct {
	int (*call)(void);
	int error;
	const char *line;
} mistakes[] = {
	{ too_early, EBUSY, "polycm_sim_create: the fabric is in use: 1 rdma_cm_id" },
	{ unknown_node, EINVAL, "polycm_sim_node_find: nobody: no node has that name" },
	{ removed_twice, ENOENT, "polycm_sim_fault_remove: the fault was removed" },
	{ no_handle, EINVAL, "polycm_sim_node_use: no such handle" },
	{ no_id, EINVAL, "polycm_sim_run_until_event: no id of rdma_create_id" },
	{ no_folder, ENOENT, "polycm_sim_trace: /nowhere/trace: No such file or directory" },
	{ impossible_fault, EINVAL, "polycm_sim_fault_add: there is no message, call or lookup "
				    "'REQUEST'; nearest: 'REQ'" },
};

static void mistakes_are_told(void **state)
{
	struct polycm_sim_node *node;
	struct capture capture;

	(void)state;
	assert_int_equal(polycm_sim_create(1), 0);
	assert_int_equal(polycm_sim_node_add("host", "roce", "10.0.0.1/24", &node), 0);
	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE), &removed), 0);
	assert_int_equal(polycm_sim_fault_remove(removed), 0);
	assert_int_equal(rdma_create_id(NULL, &left_id, NULL, RDMA_PS_TCP), 0);
	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		char expected[200];

		(void)snprintf(expected, sizeof(expected), "polycm: error: %s\n", mistakes[i].line);
		capture_begin(&capture);
		assert_errno(mistakes[i].call(), mistakes[i].error);
		(void)capture_end(&capture);
		/* Another line names what is left (test_left.c). */
		assert_int_equal(count_lines(capture.text), 1 + (mistakes[i].call == too_early));
		assert_memory_equal(capture.text, expected, strlen(expected));
	}
	assert_int_equal(rdma_destroy_id(left_id), 0);
	assert_int_equal(polycm_sim_destroy(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handles_are_checked),
		cmocka_unit_test(a_window_keeps_the_fabric),
		cmocka_unit_test(things_are_found_by_name),
		cmocka_unit_test(devices_are_named_in_their_order),
		cmocka_unit_test(a_network_is_loaded_from_a_file),
		cmocka_unit_test(a_node_connects_to_itself_from_device_to_device),
		cmocka_unit_test(time_runs_until_nothing_is_left),
		cmocka_unit_test(time_runs_until_an_event_waits),
		cmocka_unit_test(time_runs_for_no_dead_id),
		cmocka_unit_test(ports_and_packets_are_counted),
		cmocka_unit_test(mistakes_are_told),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
