/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench/latency.c - a message between two processes through the simulator,
 * beside what the machine can do: a cache line handed from one core to the
 * other, and memcpy.
 *
 * Send/Recv ping-pong with polling at small sizes, RDMA Write of large blocks.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define PORT "7472"
#define BLOCK (1u << 20)
#define WRITES 400

struct buffer_info {	/* sent by the server first */
	uint64_t addr;
	uint32_t rkey;
};

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void die(const char *what)
{
	fprintf(stderr, "bench-latency: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* --- The yardsticks. --- */

struct lines {
	_Alignas(64) atomic_uint ping;
	_Alignas(64) atomic_uint pong;
};

static double cache_line_seconds(void)
{
	enum { ROUNDS = 300000 };
	struct lines *lines = mmap(NULL, sizeof(*lines), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double start;
	pid_t pid;

	if (lines == MAP_FAILED)
		die("mmap");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		for (unsigned int i = 1; i <= ROUNDS; i++) {
			while (atomic_load_explicit(&lines->ping, memory_order_acquire) != i)
				;
			atomic_store_explicit(&lines->pong, i, memory_order_release);
		}
		_exit(0);
	}
	start = seconds();
	for (unsigned int i = 1; i <= ROUNDS; i++) {
		atomic_store_explicit(&lines->ping, i, memory_order_release);
		while (atomic_load_explicit(&lines->pong, memory_order_acquire) != i)
			;
	}
	start = (seconds() - start) / ROUNDS / 2;
	waitpid(pid, NULL, 0);
	munmap(lines, sizeof(*lines));
	return start;
}

static double memcpy_bytes_per_second(void)
{
	enum { ROUNDS = 2000 };
	char *from = malloc(BLOCK), *to = malloc(BLOCK);
	double start;

	if (!from || !to)
		die("malloc");
	memset(from, 1, BLOCK);
	memset(to, 2, BLOCK);
	start = seconds();
	for (int i = 0; i < ROUNDS; i++) {
		memcpy(to, from, BLOCK);
		__asm__ volatile("" : : "r"(to) : "memory");
	}
	start = seconds() - start;
	free(from);
	free(to);
	return (double)BLOCK * ROUNDS / start;
}

/* --- The two ends. --- */

static struct rdma_addrinfo *address(int flags)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = flags }, *info;
	char host[] = "127.0.0.1", service[] = PORT;

	if (rdma_getaddrinfo(host, service, &hints, &info))
		die("rdma_getaddrinfo");
	return info;
}

static void wait_completion(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (!n);
	if (n < 0 || wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "bench-latency: completion: %s\n",
			n < 0 ? "failed" : ibv_wc_status_str(wc.status));
		exit(1);
	}
}

static struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr) {
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1,
			 .max_recv_sge = 1, .max_inline_data = 64 },
		.sq_sig_all = 1,
	};
}

static void pong(struct rdma_cm_id *id, char *buf, struct ibv_mr *mr, size_t size, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		wait_completion(id->recv_cq);
		if (rdma_post_recv(id, NULL, buf, BLOCK, mr) ||
		    rdma_post_send(id, NULL, buf, size, mr, 0))
			die("post");
		wait_completion(id->send_cq);
	}
}

static double ping(struct rdma_cm_id *id, char *buf, struct ibv_mr *mr, size_t size, int rounds)
{
	double start = seconds();

	for (int i = 0; i < rounds; i++) {
		if (rdma_post_send(id, NULL, buf, size, mr, 0))
			die("rdma_post_send");
		wait_completion(id->send_cq);
		wait_completion(id->recv_cq);
		if (rdma_post_recv(id, NULL, buf, BLOCK, mr))
			die("rdma_post_recv");
	}
	return (seconds() - start) / rounds / 2;
}

static const size_t sizes[] = { 8, 64, 100, 256, 4096 };	/* 100: what rping sends */
#define NUM_SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define ROUNDS 20000
#define WARM_UP 500

static char *blocks(struct rdma_cm_id *id, struct ibv_mr **ret_mr)
{
	char *buf = calloc(1, 2 * BLOCK);

	if (!buf)
		die("calloc");
	*ret_mr = ibv_reg_mr(id->pd, buf, 2 * BLOCK,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!*ret_mr)
		die("ibv_reg_mr");
	return buf;
}

static void serve(struct rdma_cm_id *listener)
{
	struct buffer_info info;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char *buf;

	if (rdma_get_request(listener, &id))
		die("rdma_get_request");
	buf = blocks(id, &mr);
	if (rdma_post_recv(id, NULL, buf, BLOCK, mr) || rdma_accept(id, NULL))
		die("rdma_accept");
	info = (struct buffer_info) { (uintptr_t)buf + BLOCK, mr->rkey };
	wait_completion(id->recv_cq);	/* the client is up */
	if (rdma_post_recv(id, NULL, buf, BLOCK, mr))
		die("rdma_post_recv");
	memcpy(buf, &info, sizeof(info));
	if (rdma_post_send(id, NULL, buf, sizeof(info), mr, 0))
		die("rdma_post_send");
	wait_completion(id->send_cq);
	for (size_t i = 0; i < NUM_SIZES; i++)
		pong(id, buf, mr, sizes[i], WARM_UP + ROUNDS);
	wait_completion(id->recv_cq);	/* the writes are done */
	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	free(buf);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

static void client(double line, double copy)
{
	struct rdma_addrinfo *to = address(0);
	struct ibv_qp_init_attr attr = qp_attr();
	struct buffer_info info;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	double start;
	char *buf;

	if (rdma_create_ep(&id, to, NULL, &attr))
		die("rdma_create_ep");
	rdma_freeaddrinfo(to);
	buf = blocks(id, &mr);
	if (rdma_post_recv(id, NULL, buf, BLOCK, mr) || rdma_connect(id, NULL))
		die("rdma_connect");
	if (rdma_post_send(id, NULL, buf, 1, mr, 0))
		die("rdma_post_send");
	wait_completion(id->send_cq);
	wait_completion(id->recv_cq);
	memcpy(&info, buf, sizeof(info));
	if (rdma_post_recv(id, NULL, buf, BLOCK, mr))
		die("rdma_post_recv");

	for (size_t i = 0; i < NUM_SIZES; i++) {
		double one_way;

		ping(id, buf, mr, sizes[i], WARM_UP);
		one_way = ping(id, buf, mr, sizes[i], ROUNDS);
		printf("  Send of %4zu bytes, one way        %8.3f us  %6.1f cache-line hand-overs\n",
		       sizes[i], one_way * 1e6, one_way / line);
	}
	start = seconds();
	for (int i = 0; i < WRITES; i++) {
		if (rdma_post_write(id, NULL, buf, BLOCK, mr, 0, info.addr, info.rkey))
			die("rdma_post_write");
		wait_completion(id->send_cq);
	}
	start = (double)BLOCK * WRITES / (seconds() - start);
	printf("  RDMA Write of 1 MiB, one at a time %8.2f GB/s  %5.2f of memcpy\n", start / 1e9,
	       start / copy);
	if (rdma_post_send(id, NULL, buf, 1, mr, 0))
		die("rdma_post_send");
	wait_completion(id->send_cq);
	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	free(buf);
	rdma_destroy_ep(id);
}

/* The server says through the pipe that it listens. */
static int start_server(pid_t *ret_pid)
{
	int fds[2];
	char ready;

	if (pipe(fds))
		die("pipe");
	*ret_pid = fork();
	if (*ret_pid < 0)
		die("fork");
	if (!*ret_pid) {
		struct rdma_addrinfo *at = address(RAI_PASSIVE);
		struct ibv_qp_init_attr attr = qp_attr();
		struct rdma_cm_id *listener;

		if (rdma_create_ep(&listener, at, NULL, &attr) || rdma_listen(listener, 1))
			die("rdma_listen");
		rdma_freeaddrinfo(at);
		if (write(fds[1], "", 1) != 1)
			die("write");
		serve(listener);
		exit(0);
	}
	close(fds[1]);
	if (read(fds[0], &ready, 1) != 1)
		die("the server did not start");
	close(fds[0]);
	return 0;
}

int main(void)
{
	static const char *const transports[] = { "roce", "ib", "iwarp" };
	double line = cache_line_seconds(), copy = memcpy_bytes_per_second();
	char fabric[32];

	snprintf(fabric, sizeof(fabric), "bench-%d", (int)getpid());
	setenv("POLYCM_PROVIDER", "sim", 1);
	setenv("POLYCM_SIM_FABRIC", fabric, 1);
	printf("this machine: a cache line from core to core %.3f us, memcpy %.2f GB/s\n",
	       line * 1e6, copy / 1e9);
	for (size_t t = 0; t < 3; t++) {
		pid_t server, pid;
		int status = 0;

		setenv("POLYCM_SIM_TRANSPORT", transports[t], 1);
		printf("%s, two processes that poll:\n", transports[t]);
		fflush(stdout);
		start_server(&server);
		pid = fork();	/* so that each transport begins with a fresh library */
		if (pid < 0)
			die("fork");
		if (!pid) {
			client(line, copy);
			exit(0);
		}
		waitpid(pid, &status, 0);
		if (status)
			return 1;
		waitpid(server, &status, 0);
		if (status)
			return 1;
	}
	return 0;
}
