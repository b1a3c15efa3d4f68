/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench/connections.c - what a connection costs in the simulator under its
 * virtual clock.  One process, one thread, one event channel for both ends.
 *
 * Counted is everything between rdma_create_id() and rdma_destroy_id() of both
 * ends: ids, ten events fetched and acknowledged, addresses and routes, MADs
 * (iWARP: MPA frames) encoded and decoded, disconnecting.  QPs are not made,
 * except on iWARP, which connects nothing else.  First so many connections are
 * opened; then, while they are open, one more is set up and the oldest torn
 * down, over and over; the quietest of five such rounds counts.  All times are
 * the process's own, not the machine's.
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
#define PER_CLIENT_NODE 10000	/* a node has some 28,000 port numbers */
#define ROUNDS 5

struct run {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	const char *transport;
	struct rdma_cm_id **ids;	/* both ends, in order of appearance, a ring */
	size_t room;
	size_t num_ids, established, gone;
	struct ibv_cq *cqs[MAX_NODES];	/* one a device, where QPs are needed */
	size_t num_cqs;
	struct polycm_sim_node *server, *clients[MAX_NODES];
	size_t num_clients;
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

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
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
	enum { TIMES = 2000000 };
	double start = seconds();

	for (int i = 0; i < TIMES; i++) {
		void *volatile block = malloc(512);

		free(block);
	}
	return (seconds() - start) / TIMES;
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
		run->ids[run->num_ids++ % run->room] = id;
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
	run->ids[run->num_ids++ % run->room] = id;
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000))
		die("rdma_resolve_addr");
}

/* Its number of those ever started says which client node it comes from. */
static void set_up(struct run *run, size_t number)
{
	size_t client = number / PER_CLIENT_NODE % run->num_clients;

	if (number % PER_CLIENT_NODE == 0 && polycm_sim_node_use(run->clients[client]))
		die("polycm_sim_node_use");
	start_connection(run);
	while (run->established < 2 * (number + 1))
		next_event(run);
}

static void tear_down(struct run *run, size_t number)
{
	for (size_t end = 0; end < 2; end++) {
		struct rdma_cm_id *id = run->ids[(2 * number + end) % run->room];

		if (end == 0 && rdma_disconnect(id))
			die("rdma_disconnect");
		while (run->gone < 2 * (number + 1))
			next_event(run);
		if (run->with_qps)
			rdma_destroy_qp(id);
		if (rdma_destroy_id(id))
			die("rdma_destroy_id");
	}
}

static void open_fabric(struct run *run, size_t num)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	if (polycm_sim_create(1) ||
	    polycm_sim_node_add("server", run->transport, "10.0.0.1/8", &run->server))
		die("polycm_sim_create");
	for (size_t i = 0; i <= num / PER_CLIENT_NODE; i++) {
		char name[32], address[32];

		snprintf(name, sizeof(name), "client%zu", i);
		snprintf(address, sizeof(address), "10.1.0.%zu/8", i + 1);
		if (i == MAX_NODES - 1 ||
		    polycm_sim_node_add(name, run->transport, address, &run->clients[i]))
			die("polycm_sim_node_add");
		run->num_clients++;
	}
	run->channel = rdma_create_event_channel();
	if (!run->channel)
		die("rdma_create_event_channel");
	inet_pton(AF_INET, "10.0.0.1", &any.sin_addr);
	if (rdma_create_id(run->channel, &run->listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(run->listener, (struct sockaddr *)&any) ||
	    rdma_listen(run->listener, 1024))
		die("listen");
	run->room = 2 * (num + 1);
	run->ids = calloc(run->room, sizeof(struct rdma_cm_id *));
	if (!run->ids)
		die("calloc");
}

static void close_fabric(struct run *run)
{
	rdma_destroy_id(run->listener);
	rdma_destroy_event_channel(run->channel);
	for (size_t i = 0; i < run->num_cqs; i++)
		ibv_destroy_cq(run->cqs[i]);
	if (polycm_sim_destroy())
		die("polycm_sim_destroy");
	free(run->ids);
}

struct result {
	double up, down;	/* seconds for each one, as the number grew and shrank */
	double both;		/* while that many are open */
	double memory;		/* bytes for each one, both ends */
};

static void measure(const char *transport, size_t num, size_t turns, struct result *ret)
{
	struct run run = {
		.transport = transport,
		.with_qps = !strcmp(transport, "iwarp"),	/* iWARP connects QPs only */
		.next_qpn = 0x100,
	};
	double start, before;
	size_t first = 0, next = 0;

	open_fabric(&run, num);
	before = resident_bytes();
	start = seconds();
	while (next < num)
		set_up(&run, next++);
	ret->up = (seconds() - start) / (double)num;
	ret->memory = (resident_bytes() - before) / (double)num;

	for (int round = 0; round < ROUNDS; round++) {
		double each;

		start = seconds();
		for (size_t i = 0; i < turns; i++) {
			set_up(&run, next++);
			tear_down(&run, first++);
		}
		each = (seconds() - start) / (double)turns;
		if (!round || each < ret->both)
			ret->both = each;
	}

	start = seconds();
	while (first < next)
		tear_down(&run, first++);
	ret->down = (seconds() - start) / (double)num;
	close_fabric(&run);
}

/* In a process of its own, whose heap holds nothing of the run before. */
static void measure_apart(const char *transport, size_t num, size_t turns, struct result *ret)
{
	int status = 0, fds[2];
	pid_t pid;

	fflush(stdout);
	if (pipe(fds))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		measure(transport, num, turns, ret);
		if (write(fds[1], ret, sizeof(*ret)) != sizeof(*ret))
			die("write");
		exit(0);
	}
	close(fds[1]);
	if (read(fds[0], ret, sizeof(*ret)) != sizeof(*ret))
		exit(1);
	close(fds[0]);
	if (waitpid(pid, &status, 0) != pid || status)
		exit(1);
}

static void measure_transport(const char *transport, size_t most, size_t turns, double yardstick)
{
	static const size_t sizes[] = { 100, 1000, 10000, 100000 };
	struct result result = { .both = 0 };
	double few = 0;

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]) && sizes[s] <= most; s++) {
		measure_apart(transport, sizes[s], turns, &result);
		if (!s)
			few = result.both;
		printf("%-6s %8zu  %10.0f  %8.1f  %8.2f  %10.0f  %10.0f  %8.0f\n", transport,
		       sizes[s], 1 / result.both, result.both / yardstick, result.both / few,
		       1 / result.up, 1 / result.down, result.memory);
	}
}

/* Arguments: the most connections to open, turns in a round, one transport. */
int main(int argc, char **argv)
{
	static const char *const transports[] = { "roce", "ib", "iwarp" };
	size_t most = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
	size_t turns = argc > 2 ? strtoul(argv[2], NULL, 10) : 20000;
	double yardstick;

	setenv("POLYCM_PROVIDER", "sim", 1);
	yardstick = allocation_seconds();
	printf("one malloc and free of 512 bytes: %.1f ns\n\n", yardstick * 1e9);
	printf("          open  up and down  in mallocs  cost to     up only  down only  bytes for\n");
	printf("       connec-  (all of it)  and frees   that with    per s     per s    an idle\n");
	printf("         tions       per s   for each    100 open                          one\n");
	for (size_t t = 0; t < 3; t++)
		if (argc < 4 || !strcmp(argv[3], transports[t]))
			measure_transport(transports[t], most, turns, yardstick);
	printf("iwarp: with a QP and its rings at each end\n");
	return 0;
}
