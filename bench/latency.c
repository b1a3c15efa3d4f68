/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench/latency.c - a message between two processes through the simulator,
 * beside what the machine can do: a cache line handed from one core to the
 * other, and memcpy.
 *
 * Send/Recv ping-pong with polling at small sizes, RDMA Write of large blocks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ends.h"

#define WRITES 400

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

static void client(void)
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

int main(void)
{
	return run_pairs("two processes that poll", serve, client);
}
