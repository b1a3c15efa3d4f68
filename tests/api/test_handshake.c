/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_handshake.c - connect, exchange, disconnect, on each transport; and the
 * same seed gives the same trace, byte for byte.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pair.h"

static void disconnect(struct pair *pair)
{
	assert_int_equal(rdma_disconnect(pair->client), 0);
	if (pair->transport == IWARP) {
		pair_take(pair->client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		pair_take(pair->server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		return;
	}
	/* The client's comes with the DREP, which the server's rdma_disconnect() sends. */
	pair_take(pair->server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	pair_none(pair->client_channel);
	assert_int_equal(rdma_disconnect(pair->server), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	pair_take(pair->server_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
}

static void connects_and_disconnects(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		print_message("%s\n", transport_name[t]);
		pair_open(&pair, t, RDMA_PS_TCP);
		pair_connect(&pair);
		disconnect(&pair);
		pair_close(&pair);
	}
}

static char *trace_of_one_run(enum transport transport, size_t *ret_len)
{
	char path[] = "/tmp/polycm-trace-XXXXXX";
	int fd = mkstemp(path);
	struct pair pair;
	char *text;
	FILE *file;
	long len;

	assert_true(fd >= 0);
	close(fd);
	pair_open(&pair, transport, RDMA_PS_TCP);
	assert_int_equal(polycm_sim_trace(path), 0);
	pair_connect(&pair);
	disconnect(&pair);
	assert_int_equal(polycm_sim_trace(NULL), 0);
	pair_close(&pair);

	file = fopen(path, "r");
	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	len = ftell(file);
	assert_true(len > 0);
	rewind(file);
	text = malloc((size_t)len);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, (size_t)len, file), len);
	fclose(file);
	unlink(path);
	*ret_len = (size_t)len;
	return text;
}

static void one_seed_gives_one_trace(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		size_t first_len, len;
		char *first = trace_of_one_run(t, &first_len);

		print_message("%s: %zu bytes\n", transport_name[t], first_len);
		for (int run = 1; run < 100; run++) {
			char *text = trace_of_one_run(t, &len);

			assert_int_equal(len, first_len);
			assert_memory_equal(text, first, len);
			free(text);
		}
		free(first);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connects_and_disconnects),
		cmocka_unit_test(one_seed_gives_one_trace),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
