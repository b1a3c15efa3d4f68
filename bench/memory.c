/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench/memory.c - one process in the memory of another: RDMA Write to memory that is polled,
 * Read and fetch-and-add, large blocks; the rate of short messages; registration.  Each is
 * beside what the machine can do: a cache line handed from core to core, memcpy, mmap.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ends.h"

#define POLLED 20000u			/* writes each way */
#define READS 20000u
#define MESSAGES 200000u
#define WINDOW 64u			/* messages at a time, of which .. */
#define CREDITS 16u			/* .. so many are acknowledged at once */
#define LARGE ((size_t)400 << 20)	/* bytes of each size */
#define REGISTRATIONS 5000u

struct end {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char *buf;			/* two blocks: the first for messages, the second for the peer */
	struct buffer_info peer;
};

static void receive(const struct end *end)
{
	if (rdma_post_recv(end->id, NULL, end->buf, 256, end->mr))
		die("rdma_post_recv");
}

/* Tell each other where the second block is. */
static void introduce(struct end *end)
{
	const struct buffer_info mine = { (uintptr_t)end->buf + BLOCK, end->mr->rkey };

	memcpy(end->buf + 512, &mine, sizeof(mine));
	if (rdma_post_send(end->id, NULL, end->buf + 512, sizeof(mine), end->mr, 0))
		die("rdma_post_send");
	wait_completion(end->id->send_cq);
	wait_completion(end->id->recv_cq);
	memcpy(&end->peer, end->buf, sizeof(end->peer));
}

static void write_to_peer(const struct end *end, const char *from, size_t len, uint64_t offset)
{
	if (rdma_post_write(end->id, NULL, (void *)(uintptr_t)from, len, end->mr, 0,
			    end->peer.addr + offset, end->peer.rkey))
		die("rdma_post_write");
	wait_completion(end->id->send_cq);
}

/* Each polls memory that the other writes. */
static double write_in_turn(const struct end *end, bool first)
{
	volatile uint64_t *polled = (volatile uint64_t *)(void *)(end->buf + BLOCK);
	uint64_t *number = (uint64_t *)(void *)(end->buf + 1024);
	double start = seconds();

	for (uint64_t i = 1; i <= POLLED; i++) {
		*number = i;
		if (first)
			write_to_peer(end, (const char *)number, sizeof(*number), 0);
		while (*polled != i)
			;
		if (!first)
			write_to_peer(end, (const char *)number, sizeof(*number), 0);
	}
	return (seconds() - start) / POLLED / 2;
}

/* On iWARP a message must find a receive, so the peer says how many it has. */
static void send_credits(const struct end *end)
{
	if (rdma_post_send(end->id, NULL, end->buf, 1, end->mr, 0))
		die("rdma_post_send");
	wait_completion(end->id->send_cq);
}

static void serve(struct rdma_cm_id *listener)
{
	struct end end = { 0 };

	if (rdma_get_request(listener, &end.id))
		die("rdma_get_request");
	end.buf = blocks(end.id, &end.mr);
	for (unsigned int i = 0; i < WINDOW + 1; i++)
		receive(&end);
	if (rdma_accept(end.id, NULL))
		die("rdma_accept");
	introduce(&end);
	write_in_turn(&end, false);
	for (unsigned int i = 1; i <= MESSAGES; i++) {
		wait_completion(end.id->recv_cq);
		receive(&end);
		if (i % CREDITS == 0)
			send_credits(&end);
	}
	wait_completion(end.id->recv_cq);
	rdma_disconnect(end.id);
	rdma_dereg_mr(end.mr);
	free(end.buf);
	rdma_destroy_ep(end.id);
	rdma_destroy_ep(listener);
}

static double each_read(const struct end *end)
{
	double start = seconds();

	for (unsigned int i = 0; i < READS; i++) {
		if (rdma_post_read(end->id, NULL, end->buf, 8, end->mr, 0, end->peer.addr,
				   end->peer.rkey))
			die("rdma_post_read");
		wait_completion(end->id->send_cq);
	}
	return (seconds() - start) / READS;
}

static double each_fetch_add(const struct end *end)
{
	struct ibv_sge sge = { .addr = (uintptr_t)end->buf, .length = 8, .lkey = end->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = { .remote_addr = end->peer.addr + 64, .rkey = end->peer.rkey,
			       .compare_add = 1 },
	}, *bad;
	double start = seconds();

	for (unsigned int i = 0; i < READS; i++) {
		if (ibv_post_send(end->id->qp, &wr, &bad))
			die("ibv_post_send");
		wait_completion(end->id->send_cq);
	}
	return (seconds() - start) / READS;
}

/* Bytes a second, one request at a time. */
static double large(const struct end *end, size_t size, bool read)
{
	unsigned int rounds = (unsigned int)(LARGE / size);
	double start = seconds();

	for (unsigned int i = 0; i < rounds; i++) {
		if (!read) {
			write_to_peer(end, end->buf, size, 0);
			continue;
		}
		if (rdma_post_read(end->id, NULL, end->buf, size, end->mr, 0, end->peer.addr,
				   end->peer.rkey))
			die("rdma_post_read");
		wait_completion(end->id->send_cq);
	}
	return (double)size * rounds / (seconds() - start);
}

static void completions(struct ibv_cq *cq, unsigned int *count)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(cq, 16, wc);

	for (int i = 0; i < n; i++)
		if (wc[i].status)
			die(ibv_wc_status_str(wc[i].status));
	*count += n > 0 ? (unsigned int)n : 0;
}

static double messages_per_second(const struct end *end)
{
	unsigned int sent = 0, done = 0, credits = 0, taken = 0;
	double start;

	for (unsigned int i = 0; i < WINDOW / CREDITS; i++)
		receive(end);
	start = seconds();
	while (taken < MESSAGES / CREDITS) {
		while (sent < MESSAGES && sent - done < WINDOW && sent - taken * CREDITS < WINDOW) {
			if (rdma_post_send(end->id, NULL, end->buf, 8, end->mr, 0))
				die("rdma_post_send");
			sent++;
		}
		completions(end->id->send_cq, &done);
		completions(end->id->recv_cq, &credits);
		for (; taken < credits; taken++)
			receive(end);
	}
	return MESSAGES / (seconds() - start);
}

static double registrations_per_second(struct ibv_pd *pd, char *memory, size_t size)
{
	double start = seconds();

	for (unsigned int i = 0; i < REGISTRATIONS; i++) {
		struct ibv_mr *mr = ibv_reg_mr(pd, memory, size, IBV_ACCESS_LOCAL_WRITE |
					       IBV_ACCESS_REMOTE_WRITE);

		if (!mr || ibv_dereg_mr(mr))
			die("ibv_reg_mr");
	}
	return REGISTRATIONS / (seconds() - start);
}

static double mmaps_per_second(size_t size)
{
	double start = seconds();

	for (unsigned int i = 0; i < REGISTRATIONS; i++) {
		void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED || munmap(memory, size))
			die("mmap");
	}
	return REGISTRATIONS / (seconds() - start);
}

static void registrations(struct ibv_pd *pd)
{
	static const size_t sizes[] = { 4096, BLOCK };
	char *memory = aligned_alloc(4096, BLOCK);

	if (!memory)
		die("aligned_alloc");
	memset(memory, 1, BLOCK);
	for (size_t i = 0; i < 2; i++) {
		double rate = registrations_per_second(pd, memory, sizes[i]);

		printf("  regions of %4zu KiB, each for a moment %9.0f k/s   %5.2f of mmap, munmap\n",
		       sizes[i] >> 10, rate / 1e3, rate / mmaps_per_second(sizes[i]));
	}
	free(memory);
}

static void print_time(const char *what, double time)
{
	printf("  %-38s %8.3f us  %6.1f cache-line hand-overs\n", what, time * 1e6, time / line);
}

static void print_rate(const char *what, double rate)
{
	printf("  %-38s %8.2f GB/s  %5.2f of memcpy\n", what, rate / 1e9, rate / copy);
}

static void client(void)
{
	struct rdma_addrinfo *to = address(0);
	struct ibv_qp_init_attr attr = qp_attr();
	bool atomics;
	struct ibv_device_attr device;
	struct end end = { 0 };

	if (rdma_create_ep(&end.id, to, NULL, &attr))
		die("rdma_create_ep");
	rdma_freeaddrinfo(to);
	end.buf = blocks(end.id, &end.mr);
	receive(&end);
	if (rdma_connect(end.id, NULL))
		die("rdma_connect");
	introduce(&end);
	print_time("Write of 8 bytes to polled memory", write_in_turn(&end, true));
	print_time("Read of 8 bytes", each_read(&end));
	atomics = !ibv_query_device(end.id->verbs, &device) && device.atomic_cap != IBV_ATOMIC_NONE;
	if (atomics)
		print_time("fetch-and-add", each_fetch_add(&end));
	print_rate("Write of 64 KiB, one at a time", large(&end, 65536, false));
	print_rate("Write of 1 MiB, one at a time", large(&end, BLOCK, false));
	print_rate("Read of 1 MiB, one at a time", large(&end, BLOCK, true));
	printf("  %-38s %8.2f M/s\n", "Sends of 8 bytes", messages_per_second(&end) / 1e6);
	registrations(end.id->pd);
	if (rdma_post_send(end.id, NULL, end.buf, 1, end.mr, 0))
		die("rdma_post_send");
	wait_completion(end.id->send_cq);
	rdma_disconnect(end.id);
	rdma_dereg_mr(end.mr);
	free(end.buf);
	rdma_destroy_ep(end.id);
}

int main(void)
{
	return run_pairs("two processes that poll", serve, client);
}
