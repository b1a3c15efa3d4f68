/* SPDX-License-Identifier: BSD-2-Clause */
/* test_rsocket_iomap.c - riomap(), riounmap(), riowrite(). */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "rsockets.h"

#define SIZE 100000

static uint8_t target[SIZE], source[SIZE];

/* A server that lets its client have four maps, and the other way round. */
static void open_with_maps(struct rsockets *r, enum transport t)
{
	int four = 4;

	rsockets_open(r, t);
	assert_int_equal(rsetsockopt(r->listener, SOL_RDMA, RDMA_IOMAPSIZE, &four, sizeof(four)), 0);
	assert_int_equal(rsetsockopt(r->client, SOL_RDMA, RDMA_IOMAPSIZE, &four, sizeof(four)), 0);
	rsockets_connect_opened(r);
	for (size_t i = 0; i < SIZE; i++)
		source[i] = (uint8_t)(i * 7 + i / 256);
	memset(target, 0, SIZE);
}

/* A byte of the stream: what was written before it is there when it is. */
static void follow(int from, int to)
{
	char byte;

	assert_int_equal(rsend(from, "x", 1, 0), 1);
	assert_int_equal(rsockets_poll(to, POLLIN, 1000), POLLIN);
	assert_int_equal(rrecv(to, &byte, 1, 0), 1);
}

static void write_all(int fd, size_t len, off_t offset)
{
	size_t done = 0, num;

	while (done < len) {
		num = riowrite(fd, source + done, len - done, offset + (off_t)done, 0);
		if (num == (size_t)-1) {
			assert_int_equal(errno, EAGAIN);
			assert_int_equal(rsockets_poll(fd, POLLOUT, 1000), POLLOUT);
			num = 0;
		}
		done += num;
	}
}

static void writes_into_a_map(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rsockets r;

		open_with_maps(&r, t);
		assert_int_equal(riomap(r.server, target, SIZE, PROT_WRITE, 0, 0), 0);
		follow(r.server, r.client);
		write_all(r.client, SIZE, 0);
		follow(r.client, r.server);
		assert_memory_equal(target, source, SIZE);
		assert_int_equal(riounmap(r.server, target, SIZE), 0);
		assert_errno(riounmap(r.server, target, SIZE), EINVAL);
		rsockets_close(&r);
	}
}

/* Offsets are of the program's choice, or the address; a write goes from one map into the next. */
static void offsets(void **state)
{
	struct rsockets r;
	off_t at;

	(void)state;
	open_with_maps(&r, ROCE);
	assert_int_equal(riomap(r.server, target, 1000, PROT_WRITE, 0, 5000), 5000);
	assert_int_equal(riomap(r.server, target + 3000, 1000, PROT_WRITE, 0, 6000), 6000);
	at = riomap(r.server, target + 8000, 100, PROT_WRITE, 0, -1);
	assert_true(at == (off_t)(uintptr_t)(target + 8000));
	follow(r.server, r.client);
	write_all(r.client, 1500, 5200);
	write_all(r.client, 100, at);
	follow(r.client, r.server);
	assert_memory_equal(target + 200, source, 800);
	assert_memory_equal(target + 3000, source + 800, 700);
	assert_memory_equal(target + 8000, source, 100);
	/* Nothing is behind the maps, and what is before it is written. */
	assert_int_equal(riowrite(r.client, source, 10, 4990, 0), 0);
	assert_int_equal(riowrite(r.client, source, 10, 6995, 0), 5);
	rsockets_close(&r);
}

static void refused_maps(void **state)
{
	struct rsockets r;

	(void)state;
	open_with_maps(&r, IB);
	for (int i = 0; i < 4; i++)
		assert_int_equal(riomap(r.server, target + i * 100, 100, PROT_WRITE, 0, i * 100),
				 i * 100);
	assert_errno((int)riomap(r.server, target, 100, PROT_WRITE, 0, 0), ENOMEM);
	/* Those that only this end knows need no place at the other. */
	assert_int_equal(riomap(r.server, target, 50, PROT_NONE, 0, 77), 77);
	assert_int_equal(riounmap(r.server, target + 100, 100), 0);
	assert_int_equal(riomap(r.server, target + 500, 100, PROT_WRITE, 0, 500), 500);
	assert_errno((int)riomap(r.server, target, 100, PROT_READ, 0, 0), EINVAL);
	assert_errno((int)riomap(r.listener, target, 100, PROT_WRITE, 0, 0), EINVAL);
	assert_errno(riounmap(r.server, target, 1), EINVAL);
	assert_errno((int)riowrite(r.listener, source, 1, 0, 0), ENOTCONN);
	rsockets_close(&r);
}

/* Each map costs a credit, which comes back. */
static void maps_again_and_again(void **state)
{
	struct rsockets r;

	(void)state;
	open_with_maps(&r, IWARP);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(riomap(r.server, target, 100, PROT_WRITE, 0, 0), 0);
		follow(r.server, r.client);
		assert_int_equal(riounmap(r.server, target, 100), 0);
	}
	rsockets_carry(&r, true, 100000, 1000);
	rsockets_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_into_a_map),
		cmocka_unit_test(offsets),
		cmocka_unit_test(refused_maps),
		cmocka_unit_test(maps_again_and_again),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
