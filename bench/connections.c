/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench/connections.c - connections set up and torn down per second by the
 * simulator under its virtual clock, and what an idle one costs in memory.
 * One process, one thread, one event channel for both ends.
 *
 * The yardstick is what this machine needs for one allocation and release of
 * 512 bytes in the same run, so that figures of two machines compare.
 */
#include <errno.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "polycm/sim.h"

#define PORT 7471
#define MAX_NODES 16
#define PER_CLIENT_NODE 20000	/* a node has some 28,000 port numbers */

struct run {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct rdma_cm_id **ids;	/* both ends, in order of appearance */
	size_t num_ids, num_connections, established, gone;
	struct ibv_cq *cqs[MAX_NODES];	/* one a device, where QPs are needed */
	size_t num_cqs;
	struct polycm_sim_node *server;
	bool with_qps;
	uint32_t next_qpn;
};

static void die(const char *what)
{
	fprintf(stderr, "bench-connections: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double resident_bytes(void)
{
	unsigned long total = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%lu %lu", &total, &resident) != 2)
		die("/proc/self/statm");
	fclose(file);
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static double allocation_seconds(void)
{
	enum { ROUNDS = 2000000 };
	double start = seconds();

	for (int i = 0; i < ROUNDS; i++) {
		void *volatile block = malloc(512);

		free(block);
	}
	return (seconds() - start) / ROUNDS;
}

static struct ibv_cq *cq_of(struct run *run, struct ibv_context *verbs)
{
	for (size_t i = 0; i < run->num_cqs; i++)
		if (run->cqs[i]->context == verbs)
			return run->cqs[i];
	if (run->num_cqs == MAX_NODES)
		return NULL;
	run->cqs[run->num_cqs] = ibv_create_cq(verbs, 64, NULL, NULL, 0);
	return run->cqs[run->num_cqs] ? run->cqs[run->num_cqs++] : NULL;
}

static void make_qp(struct run *run, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	attr.send_cq = attr.recv_cq = cq_of(run, id->verbs);
	if (!attr.send_cq)
		die("ibv_create_cq");
	if (rdma_create_qp(id, id->pd, &attr))
		die("rdma_create_qp");
}

static struct rdma_conn_param conn_param(struct run *run)
{
	return (struct rdma_conn_param) {
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.qp_num = run->next_qpn++ & 0xffffff,
	};
}

static void handle(struct run *run, struct rdma_cm_event *event)
{
	struct rdma_conn_param param;
	struct rdma_cm_id *id = event->id;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(id, 1000))
			die("rdma_resolve_route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (run->with_qps)
			make_qp(run, id);
		param = conn_param(run);
		if (rdma_connect(id, &param))
			die("rdma_connect");
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		run->ids[run->num_ids++] = id;
		if (run->with_qps)
			make_qp(run, id);
		param = conn_param(run);
		if (rdma_accept(id, &param))
			die("rdma_accept");
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		if (rdma_establish(id))
			die("rdma_establish");
		run->established++;	/* the active side has no event of its own */
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		run->established++;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		run->gone++;
		rdma_disconnect(id);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		fprintf(stderr, "bench-connections: %s, status %d\n",
			rdma_event_str(event->event), event->status);
		exit(1);
	}
}

static void next_event(struct run *run)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(run->channel, &event))
		die("rdma_get_cm_event");
	handle(run, event);
	rdma_ack_cm_event(event);
}

static void start_connection(struct run *run)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct rdma_cm_id *id;

	inet_pton(AF_INET, "10.0.0.1", &to.sin_addr);
	if (rdma_create_id(run->channel, &id, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	run->ids[run->num_ids++] = id;
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000))
		die("rdma_resolve_addr");
}

static void open_fabric(struct run *run, const char *transport)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	if (polycm_sim_create(1) ||
	    polycm_sim_node_add("server", transport, "10.0.0.1/8", &run->server))
		die("polycm_sim_create");
	run->channel = rdma_create_event_channel();
	if (!run->channel)
		die("rdma_create_event_channel");
	inet_pton(AF_INET, "10.0.0.1", &any.sin_addr);
	if (rdma_create_id(run->channel, &run->listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(run->listener, (struct sockaddr *)&any) ||
	    rdma_listen(run->listener, 1024))
		die("listen");
}

static void close_fabric(struct run *run)
{
	for (size_t i = 0; i < run->num_ids; i++) {
		if (run->with_qps)
			rdma_destroy_qp(run->ids[i]);
		rdma_destroy_id(run->ids[i]);
	}
	rdma_destroy_id(run->listener);
	rdma_destroy_event_channel(run->channel);
	for (size_t i = 0; i < run->num_cqs; i++)
		ibv_destroy_cq(run->cqs[i]);
	if (polycm_sim_destroy())
		die("polycm_sim_destroy");
}

static void measure(const char *transport, size_t num, double yardstick)
{
	struct run run = {
		.num_connections = num,
		.with_qps = !strcmp(transport, "iwarp"),	/* iWARP connects QPs only */
		.next_qpn = 0x100,
	};
	double start, before, memory, up, down;

	run.ids = calloc(2 * num, sizeof(struct rdma_cm_id *));
	if (!run.ids)
		die("calloc");
	open_fabric(&run, transport);
	before = resident_bytes();

	start = seconds();
	for (size_t i = 0; i < num; i++) {
		if (i % PER_CLIENT_NODE == 0) {
			struct polycm_sim_node *node;
			char name[32], address[32];

			snprintf(name, sizeof(name), "client%zu", i / PER_CLIENT_NODE);
			snprintf(address, sizeof(address), "10.1.0.%zu/8", i / PER_CLIENT_NODE + 1);
			if (polycm_sim_node_add(name, transport, address, &node) ||
			    polycm_sim_node_use(node))
				die("polycm_sim_node_add");
		}
		start_connection(&run);
		while (run.established < 2 * (i + 1))
			next_event(&run);
	}
	up = seconds() - start;
	memory = (resident_bytes() - before) / (double)num;

	start = seconds();
	for (size_t i = 0; i < run.num_ids; i += 2) {
		size_t wanted = run.gone + 2;

		if (rdma_disconnect(run.ids[i]))
			die("rdma_disconnect");
		while (run.gone < wanted)
			next_event(&run);
	}
	down = seconds() - start;
	close_fabric(&run);
	free(run.ids);

	printf("%-6s %8zu  %10.0f  %9.1f  %10.0f  %12.0f%s\n", transport, num, (double)num / up,
	       up / (double)num / yardstick, (double)num / (up + down), memory,
	       run.with_qps ? "  (with a QP and its rings at each end)" : "");
}

/* In a process of its own, whose heap holds nothing of the run before. */
static void measure_apart(const char *transport, size_t num, double yardstick)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		measure(transport, num, yardstick);
		exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		exit(1);
}

int main(int argc, char **argv)
{
	static const char *const transports[] = { "roce", "ib", "iwarp" };
	static const size_t sizes[] = { 1000, 10000, 100000 };
	size_t most = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
	double yardstick;

	setenv("POLYCM_PROVIDER", "sim", 1);
	yardstick = allocation_seconds();
	printf("one malloc and free of 512 bytes: %.1f ns\n\n", yardstick * 1e9);
	printf("       connec-   set up   in mallocs    up and down  bytes per idle\n");
	printf("       tions     per s    per one       per s        connection, both ends\n");
	for (size_t t = 0; t < 3; t++)
		for (size_t s = 0; s < 3 && sizes[s] <= most; s++)
			measure_apart(transports[t], sizes[s], yardstick);
	return 0;
}
