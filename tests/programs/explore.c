/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explore.c - a server and a client in one program, for explore.sh.  The
 * client waits three seconds for the connection and then tries again; what it
 * does wrong then, if anything, is its argument: "good", "crash", "hang",
 * "exit", "reason" (of a reject is its exit status), "always" (it fails
 * whatever happens), "own" (crash, on a fabric that it makes itself), "echo"
 * (prints the environment's seed and does well).
 */
#include <string.h>

#include "explore_two.h"

#ifdef WITH_SIM
#include "polycm/sim.h"
#endif

#define PATIENCE 3000	/* ms */

static const char *wrong = "good";

static void take(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };

	if (accepted)
		rdma_destroy_id(accepted);
	accepted = id;
	rdma_accept(id, &param);
}

/* The client's next event, or -1 after so long. */
static int next(int timeout)
{
	struct rdma_cm_event *event = next_event(timeout);
	int type;

	if (!event)
		return -1;
	type = event->event;
	if (type == RDMA_CM_EVENT_REJECTED && !strcmp(wrong, "reason"))
		exit(event->status);
	rdma_ack_cm_event(event);
	return type;
}

static void fail(struct rdma_cm_id *id)
{
	volatile int connected = 0;

	if (!strcmp(wrong, "hang"))
		while (!connected)
			;
	if (!strcmp(wrong, "exit"))
		exit(5);
	/* It is destroyed already. */
	if (strcmp(wrong, "good") && rdma_destroy_id(id))
		abort();
}

/* 0: connected; -1: not so soon. */
static int try(void)
{
	struct sockaddr_in from = address("10.0.0.2", 0), to = address("10.0.0.1", 7471);
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_id *id;
	int type;

	if (rdma_create_id(client, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, 2000) ||
	    next(-1) != RDMA_CM_EVENT_ADDR_RESOLVED || rdma_resolve_route(id, 2000) ||
	    next(-1) != RDMA_CM_EVENT_ROUTE_RESOLVED || rdma_connect(id, &param))
		die("connect");
	type = next(PATIENCE);
	if (type == RDMA_CM_EVENT_CONNECT_RESPONSE) {
		rdma_establish(id);
		rdma_disconnect(id);
	}
	rdma_destroy_id(id);
	if (type == -1)
		fail(id);
	return type == RDMA_CM_EVENT_CONNECT_RESPONSE ? 0 : -1;
}

static void make_fabric(void)
{
#ifdef WITH_SIM
	struct polycm_sim_node *node;

	if (polycm_sim_create(7) ||
	    polycm_sim_node_add("server", "roce", "10.0.0.1/24", &node) ||
	    polycm_sim_node_add("client", "roce", "10.0.0.2/24", &node))
		die("fabric");
#endif
}

/* Registered before polycm's own. */
static void clean_up(void)
{
	puts("the program cleans up");
}

int main(int argc, char **argv)
{
	if (argc > 1)
		wrong = argv[1];
	if (!strcmp(wrong, "good"))
		atexit(clean_up);
	if (!strcmp(wrong, "always"))
		return 4;
	if (!strcmp(wrong, "own"))
		make_fabric();
	two_begin();
	for (int i = 0; i < 20; i++)
		if (!try())
			break;
	if (accepted)
		rdma_destroy_id(accepted);
	two_end();
	return 0;
}
