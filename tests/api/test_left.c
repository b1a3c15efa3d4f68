/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a test leaves behind: it is counted and named before and after its
 * channel is destroyed, and polycm_sim_reset() ends it.
 */
#include "tests/cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pair.h"
#include "steps.h"
#include "tests/unit/capture.h"

static struct polycm_sim_counts counts(void)
{
	struct polycm_sim_counts c = { .size = sizeof(c) };

	assert_int_equal(polycm_sim_live(&c), 0);
	return c;
}

static void assert_nothing_left(void)
{
	struct polycm_sim_counts zero = { .size = sizeof(zero) }, c = counts();

	c.packets = 0;		/* what ended may have told its peer */
	assert_memory_equal(&c, &zero, sizeof(c));
}

/* The texts of all objects, a line each. */
struct listing {
	char text[4096];
	const void *handle;		/* of the first of `kind' */
	const char *kind;
	unsigned int num;
};

static int list_one(void *arg, const struct polycm_sim_object *object)
{
	struct listing *l = arg;
	size_t len = strlen(l->text);

	assert_int_equal(object->size, sizeof(*object));
	(void)snprintf(l->text + len, sizeof(l->text) - len, "%s%s%s\n", object->kind,
		       object->text[0] ? ", " : "", object->text);
	if (l->kind && !strcmp(l->kind, object->kind) && !l->num++)
		l->handle = object->handle;
	return 0;
}

static struct listing list(const char *kind)
{
	struct listing l = { .kind = kind };

	assert_int_equal(polycm_sim_live_walk(list_one, &l), 0);
	return l;
}

/* A pair with a request that the server has taken: its event. */
static struct rdma_cm_event *open_with_request(struct pair *pair, enum transport transport)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct rdma_cm_event *event;

	pair_open(pair, transport, RDMA_PS_TCP);
	pair_resolve(pair);
	pair_client_qp(pair);
	assert_int_equal(rdma_connect(pair->client, &param), 0);
	assert_int_equal(rdma_get_cm_event(pair->server_channel, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	pair->server = event->id;
	return event;
}

/* All but the server's id is ended as it should be. */
static struct rdma_cm_id *leak_a_request(struct pair *pair, enum transport transport)
{
	struct rdma_cm_id *leaked;

	assert_int_equal(rdma_ack_cm_event(open_with_request(pair, transport)), 0);
	leaked = pair->server;
	rdma_destroy_qp(pair->client);
	assert_int_equal(rdma_destroy_id(pair->client), 0);
	assert_int_equal(rdma_destroy_id(pair->listener), 0);
	assert_int_equal(ibv_destroy_cq(pair->client_cq), 0);
	rdma_destroy_event_channel(pair->client_channel);
	return leaked;
}

static void a_leaked_id_is_named(void **state)
{
	struct rdma_cm_id *leaked;
	struct capture capture;
	struct listing l;
	struct pair pair;

	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		print_message("%s\n", transport_name[t]);
		leaked = leak_a_request(&pair, t);
		for (int gone = 0; gone < 2; gone++) {
			if (gone)
				rdma_destroy_event_channel(pair.server_channel);
			assert_int_equal(counts().ids, 1);
			assert_int_equal(counts().channels, !gone);
			assert_int_equal(counts().contexts, 0);
			l = list("rdma_cm_id");
			assert_int_equal(l.num, 1);
			assert_ptr_equal(l.handle, leaked);
			assert_non_null(strstr(l.text, "rdma_cm_id, CONNECT_REQUEST from "
					       CLIENT_ADDRESS ":"));
			assert_non_null(strstr(l.text, ", created by rdma_get_cm_event in "));
			assert_non_null(strstr(l.text, "test_left+0x"));
			assert_int_equal(!!strstr(l.text, "its channel is destroyed"), gone);
			for (int call = 0; call < 2; call++) {
				capture_begin(&capture);
				assert_errno(call ? polycm_sim_create(1) : polycm_sim_destroy(), EBUSY);
				(void)capture_end(&capture);
				assert_non_null(strstr(capture.text, "in use: 1 rdma_cm_id"));
				assert_null(strstr(capture.text, "context"));
				assert_non_null(strstr(capture.text, "rdma_cm_id, CONNECT_REQUEST "
						       "from " CLIENT_ADDRESS ":"));
				assert_non_null(strstr(capture.text, "never destroyed"));
				assert_int_equal(count_lines(capture.text), 2);
			}
		}
		assert_int_equal(rdma_destroy_id(leaked), 0);
		assert_nothing_left();
		assert_int_equal(polycm_sim_destroy(), 0);
	}
}

/* How an id is told of, by where it is. */
static void an_id_is_told_by_its_state(void **state)
{
	static const struct {
		enum step step;
		const char *text;
	} steps[] = {
		{ STEP_IDLE, "rdma_cm_id, without an address, created by rdma_create_id in " },
		{ STEP_BOUND, "rdma_cm_id, bound to 10.0.0.2:" },
		{ STEP_BOUND_ANY, "rdma_cm_id, bound to 0.0.0.0:" },
		{ STEP_ROUTE_RESOLVED, "rdma_cm_id, to 10.0.0.1:7471 from 10.0.0.2:" },
		{ STEP_LISTENING, "rdma_cm_id, listens on 10.0.0.1:" },
	};
	struct rdma_cm_id *id;
	struct listing l;
	struct pair pair;

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		id = step_open(&pair, ROCE, steps[i].step);
		assert_non_null(id);
		l = list("rdma_cm_id");
		if (!strstr(l.text, steps[i].text))
			fail_msg("no '%s' in\n%s", steps[i].text, l.text);
		pair_close(&pair);
	}
}

static void objects_of_verbs_are_named(void **state)
{
	static const char *const texts[] = {
		"QP, RC, INIT, number ", "CQ, 16 entries, of sim", "MR, 64 bytes, of sim",
		"PD, of sim", "completion channel, of sim", "event channel, on descriptor ",
		"event, CONNECT_REQUEST of the id: listens on 10.0.0.1:7471",
	};
	static char memory[64];
	struct ibv_comp_channel *channel;
	struct rdma_cm_event *event;
	struct listing l;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct pair pair;

	(void)state;
	event = open_with_request(&pair, ROCE);
	pd = ibv_alloc_pd(pair.client->verbs);
	assert_non_null(pd);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	channel = ibv_create_comp_channel(pair.client->verbs);
	assert_non_null(channel);

	l = list("PD");
	assert_int_equal(l.num, 1);	/* none of the library's own */
	assert_ptr_equal(l.handle, pd);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!strstr(l.text, texts[i]))
			fail_msg("no '%s' in\n%s", texts[i], l.text);
	assert_null(strstr(l.text, "context"));
	assert_int_equal(counts().channels, 2);
	assert_int_equal(counts().events, 1);

	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(counts().events, 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	pair_close(&pair);
}

/* What the program made from a device that rdma_get_devices() opened, after it gave the list back. */
static void what_is_of_no_id_keeps_the_fabric(void **state)
{
	static const char *const heads[] = {
		"the fabric is in use: 1 PD\n", "the fabric is in use: 1 MR, 1 PD\n",
		"the fabric is in use: 1 MR, 1 PD, 1 context\n",
	};
	static char memory[64];

	(void)state;
	for (unsigned int more = 0; more < 3; more++) {
		struct polycm_sim_node *server, *client;
		struct ibv_context **devices, *context = NULL;
		struct capture capture;
		struct ibv_mr *mr = NULL;
		struct ibv_pd *pd;

		pair_open_nodes(ROCE, &server, &client);
		devices = rdma_get_devices(NULL);
		assert_non_null(devices);
		pd = ibv_alloc_pd(devices[0]);
		assert_non_null(pd);
		if (more > 0)
			mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
		if (more > 1)
			context = ibv_open_device(devices[0]->device);
		rdma_free_devices(devices);
		for (int call = 0; call < 2; call++) {
			capture_begin(&capture);
			assert_errno(call ? polycm_sim_create(1) : polycm_sim_destroy(), EBUSY);
			(void)capture_end(&capture);
			assert_non_null(strstr(capture.text, heads[more]));
			assert_non_null(strstr(capture.text, "left: PD, of sim"));
			assert_int_equal(count_lines(capture.text), 2 + more);
		}
		if (context)
			assert_int_equal(ibv_close_device(context), 0);
		if (mr)
			assert_int_equal(ibv_dereg_mr(mr), 0);
		assert_int_equal(ibv_dealloc_pd(pd), 0);
		assert_int_equal(polycm_sim_destroy(), 0);
	}
}

static int stop(void *arg, const struct polycm_sim_object *object)
{
	(void)object;
	return ++*(int *)arg == 2 ? 7 : 0;
}

static void a_walk_can_be_stopped(void **state)
{
	struct pair pair;
	int seen = 0;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(polycm_sim_live_walk(stop, &seen), 7);
	assert_int_equal(seen, 2);
	assert_errno(polycm_sim_live_walk(NULL, NULL), EINVAL);
	pair_close(&pair);
}

/* Tear-down of a test that stopped anywhere. */
static void a_reset_ends_what_is_left(void **state)
{
	struct polycm_sim_node *node;
	struct ibv_context **list;
	struct pair pair;

	(void)state;
	assert_int_equal(polycm_sim_reset(), 0);
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (enum step step = 0; step < NUM_STEPS; step++) {
			if (!step_exists(t, step))
				continue;
			assert_non_null(step_open(&pair, t, step));
			/* Before or after its channels are gone. */
			if (step % 2)
				rdma_destroy_event_channel(pair.client_channel);
			assert_int_equal(polycm_sim_reset(), 0);
			assert_nothing_left();
			assert_errno(rdma_destroy_id(pair.client), EINVAL);
		}
		/* With events that nobody has acknowledged, and requests that nobody has taken. */
		(void)open_with_request(&pair, t);
		assert_int_equal(polycm_sim_reset(), 0);
		assert_nothing_left();
	}
	/* What ibv_* made, also in contexts of the program's own. */
	assert_int_equal(polycm_sim_create(1), 0);
	assert_int_equal(polycm_sim_node_add("a", "roce", "10.0.0.1/24", &node), 0);
	list = rdma_get_devices(NULL);
	assert_non_null(list);
	assert_non_null(ibv_alloc_pd(list[0]));
	assert_non_null(ibv_create_cq(list[0], 4, NULL, NULL, 0));
	assert_non_null(ibv_open_device(list[0]->device));
	rdma_free_devices(list);
	assert_int_equal(counts().contexts, 1);
	assert_errno(polycm_sim_destroy(), EBUSY);
	assert_int_equal(polycm_sim_reset(), 0);
	assert_nothing_left();
}

static void a_reset_ends_synchronous_ids(void **state)
{
	struct polycm_sim_node *node;
	struct rdma_cm_id *id;

	(void)state;
	assert_int_equal(polycm_sim_create(1), 0);
	assert_int_equal(polycm_sim_node_add("a", "iwarp", "10.0.0.1/24", &node), 0);
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, step_sa("10.0.0.1", 7), 1000), 0);
	assert_int_equal(counts().ids, 1);
	assert_int_equal(counts().channels, 0);	/* its own is no other thing to end */
	assert_int_equal(polycm_sim_reset(), 0);
	assert_nothing_left();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_leaked_id_is_named),
		cmocka_unit_test(an_id_is_told_by_its_state),
		cmocka_unit_test(objects_of_verbs_are_named),
		cmocka_unit_test(what_is_of_no_id_keeps_the_fabric),
		cmocka_unit_test(a_walk_can_be_stopped),
		cmocka_unit_test(a_reset_ends_what_is_left),
		cmocka_unit_test(a_reset_ends_synchronous_ids),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
