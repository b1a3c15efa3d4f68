/* SPDX-License-Identifier: BSD-2-Clause */
/* bench/ends.c - see ends.h. */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ends.h"

double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void die(const char *what)
{
	fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
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

double line, copy;

static void measure_machine(void)
{
	line = cache_line_seconds();
	copy = memcpy_bytes_per_second();
	printf("this machine: a cache line from core to core %.3f us, memcpy %.2f GB/s\n",
	       line * 1e6, copy / 1e9);
}

/* --- The two ends. --- */

struct rdma_addrinfo *address(int flags)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = flags }, *info;
	char host[] = "127.0.0.1", service[] = PORT;

	if (rdma_getaddrinfo(host, service, &hints, &info))
		die("rdma_getaddrinfo");
	return info;
}

void wait_completion(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (!n);
	if (n < 0 || wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "bench: completion: %s\n",
			n < 0 ? "failed" : ibv_wc_status_str(wc.status));
		exit(1);
	}
}

struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr) {
		.cap = { .max_send_wr = 128, .max_recv_wr = 128, .max_send_sge = 1,
			 .max_recv_sge = 1, .max_inline_data = 64 },
		.sq_sig_all = 1,
	};
}

char *blocks(struct rdma_cm_id *id, struct ibv_mr **ret_mr)
{
	char *buf = calloc(1, 2 * BLOCK);

	if (!buf)
		die("calloc");
	*ret_mr = ibv_reg_mr(id->pd, buf, 2 * BLOCK,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	if (!*ret_mr)
		die("ibv_reg_mr");
	return buf;
}

/* The server says through the pipe that it listens. */
static pid_t start_server(void (*serve)(struct rdma_cm_id *listener))
{
	pid_t pid;
	int fds[2];
	char ready;

	if (pipe(fds))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
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
	return pid;
}

int run_pairs(const char *what, void (*serve)(struct rdma_cm_id *listener), void (*client)(void))
{
	static const char *const transports[] = { "roce", "ib", "iwarp" };
	char fabric[32];

	measure_machine();
	snprintf(fabric, sizeof(fabric), "bench-%d", (int)getpid());
	setenv("POLYCM_PROVIDER", "sim", 1);
	setenv("POLYCM_SIM_FABRIC", fabric, 1);
	for (size_t t = 0; t < 3; t++) {
		pid_t server, pid;
		int status = 0;

		setenv("POLYCM_SIM_TRANSPORT", transports[t], 1);
		printf("%s, %s:\n", transports[t], what);
		fflush(stdout);
		server = start_server(serve);
		pid = fork();	/* so that each transport begins with a fresh library */
		if (pid < 0)
			die("fork");
		if (!pid) {
			client();
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
