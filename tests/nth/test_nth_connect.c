/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a connection, on each transport, with the n-th allocation,
 * descriptor, mapping or thread failing, for every n.  A call may fail.  What
 * a call has begun ends with an event; nothing crashes, and nothing is left.
 *
 *	NTH_FIRST=17 NTH_LAST=17 ./run tests/nth/test_nth_connect	one n only
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/api/pair.h"
#include "nth.h"

/* One side of the connection. */
struct side {
	struct rdma_cm_id *id;
	bool established;
};

struct life {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct side client, server;
	bool connecting;	/* rdma_connect() was called */
	bool lost;		/* an event was */
	const char *what;	/* last done, for messages */
};

static bool makes_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	return !rdma_create_qp(id, NULL, &attr);
}

/* Nothing ends it but a bug: destroying needs no memory. */
static void end_side(struct side *side)
{
	if (!side->id)
		return;
	if (side->id->qp)
		rdma_destroy_qp(side->id);
	if (rdma_destroy_id(side->id))
		fail_msg("rdma_destroy_id: %s", strerror(errno));
	side->id = NULL;
}

static bool begin(struct life *life)
{
	struct sockaddr_in at = pair_address(SERVER_ADDRESS, SERVER_PORT);

	life->channel = rdma_create_event_channel();
	if (!life->channel || rdma_create_id(life->channel, &life->listener, NULL, RDMA_PS_TCP)) {
		life->listener = NULL;
		return false;
	}
	if (rdma_bind_addr(life->listener, (struct sockaddr *)&at) || rdma_listen(life->listener, 4))
		return false;
	if (rdma_create_id(life->channel, &life->client.id, NULL, RDMA_PS_TCP)) {
		life->client.id = NULL;
		return false;
	}
	life->what = "rdma_resolve_addr";
	return !rdma_resolve_addr(life->client.id, NULL, (struct sockaddr *)&at, 2000);
}

/* false: this side gives up. */
static bool client_goes_on(struct life *life, enum rdma_cm_event_type type)
{
	struct rdma_conn_param param = pair_param(pair_data, 8);

	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		life->what = "rdma_resolve_route";
		return makes_qp(life->client.id) && !rdma_resolve_route(life->client.id, 2000);
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		life->what = "rdma_connect";
		life->connecting = true;
		return !rdma_connect(life->client.id, &param);
	case RDMA_CM_EVENT_ESTABLISHED:
		life->what = "rdma_disconnect";
		life->client.established = true;
		return !rdma_disconnect(life->client.id);
	default:
		return false;
	}
}

static bool server_goes_on(struct life *life, struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
	struct rdma_conn_param param = pair_param(pair_data, 8);

	switch (type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		life->server.id = id;
		return makes_qp(id) && !rdma_accept(id, &param);
	case RDMA_CM_EVENT_ESTABLISHED:
		life->server.established = true;
		return true;
	case RDMA_CM_EVENT_DISCONNECTED:
		/* On iWARP it is over by now. */
		(void)rdma_disconnect(id);
		return false;
	default:
		return false;
	}
}

static void handle(struct life *life, struct rdma_cm_event *event)
{
	enum rdma_cm_event_type type = event->event;
	struct rdma_cm_id *id = event->id;
	bool is_client = id == life->client.id;
	bool goes_on;

	assert_int_equal(rdma_ack_cm_event(event), 0);
	goes_on = is_client ? client_goes_on(life, type) : server_goes_on(life, id, type);
	if (!goes_on)
		end_side(is_client ? &life->client : &life->server);
}

/* Does a side wait for something? */
static bool waits(const struct life *life)
{
	return life->client.id || life->server.id;
}

static void live(struct life *life)
{
	struct rdma_cm_event *event;

	if (!begin(life))
		return;
	while (waits(life)) {
		if (!rdma_get_cm_event(life->channel, &event)) {
			handle(life, event);
			continue;
		}
		/* Any other failure is a refused call: once more. */
		life->lost = errno == EDEADLK;
		if (life->lost)
			return;
	}
}

static void end(struct life *life)
{
	end_side(&life->client);
	end_side(&life->server);
	if (life->listener)
		assert_int_equal(rdma_destroy_id(life->listener), 0);
	if (life->channel)
		rdma_destroy_event_channel(life->channel);
}

/* With the n-th failing, or none: 0; count as of nth_arm().  false: there were fewer. */
static bool live_with(enum transport transport, enum nth_kind kind, unsigned long n,
		      unsigned long count, unsigned int *lost)
{
	struct life life = { .what = "the beginning" };
	struct polycm_sim_node *server, *client;
	bool failed;

	pair_open_nodes(transport, &server, &client);
	nth_arm(kind, n, count);
	live(&life);
	failed = nth_disarm(NULL);
	if (life.lost) {
		print_error("%s, %lu: an event is lost after %s: %s%s wait; %s failed\n",
			    transport_name[transport], n,
			    life.what, life.client.id ? "client" : "",
			    life.server.id ? " server" : "", nth_last());
		(*lost)++;
	}
	if (!n && (!life.client.established || !life.server.established))
		fail_msg("without a failure the connection does not stand");
	end(&life);
	pair_close_nodes();
	return failed;
}

static unsigned long number(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) : otherwise;
}

static void sweep(enum nth_kind kind, unsigned long count)
{
	unsigned long last = number("NTH_LAST", 100000), n;
	unsigned int lost = 0;

	for (enum transport t = ROCE; t < NUM_TRANSPORTS; t++) {
		(void)live_with(t, kind, 0, count, &lost);
		for (n = number("NTH_FIRST", 1); n <= last; n++)
			if (!live_with(t, kind, n, count, &lost))
				break;
		print_message("%s: %lu\n", transport_name[t], n - 1);
		/* Else nothing was tested: the calls are not seen. */
		assert_true(n > 1);
	}
	assert_int_equal(lost, 0);
}

static void each_allocation(void **state)
{
	(void)state;
	sweep(NTH_ALLOC, 1);
}

static void *sleep_until(void *arg)
{
	(void)sem_wait(arg);
	return NULL;
}

/* There is no memory any more, and no spare blocks, which only one thread keeps. */
static void all_allocations_from_one_on(void **state)
{
	pthread_t thread;
	sem_t end;

	(void)state;
	assert_int_equal(sem_init(&end, 0, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, sleep_until, &end), 0);
	sweep(NTH_ALLOC, 0);
	assert_int_equal(sem_post(&end), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void each_descriptor(void **state)
{
	(void)state;
	sweep(NTH_DESCRIPTOR, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation),
		cmocka_unit_test(all_allocations_from_one_on),
		cmocka_unit_test(each_descriptor),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
