/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_files.c - POLYCM_SIM_TRACE and POLYCM_SIM_PCAP follow the fabrics that a
 * test makes: the first into the file itself, the others into numbered ones.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pair.h"

static char folder[] = "/tmp/polycm-files.XXXXXX";

static const char *path_of(const char *name)
{
	static char path[100];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* How often the text is in it; -1: there is no such file. */
static int count_in(const char *name, const char *text)
{
	static char content[1 << 20];
	FILE *file = fopen(path_of(name), "re");
	int count = 0;
	size_t len;

	if (!file)
		return -1;
	len = fread(content, 1, sizeof(content) - 1, file);
	fclose(file);
	content[len] = '\0';
	for (const char *at = content; (at = strstr(at, text)); at++)
		count++;
	return count;
}

static bool has_packets(const char *name)
{
	struct stat st;

	return !stat(path_of(name), &st) && st.st_size > 24;
}

/* A client asks where nobody listens; then the fabric goes. */
static int attempt_and_drop(void)
{
	struct ibv_qp_init_attr qp = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *to;
	struct rdma_cm_id *id;

	assert_int_equal(rdma_getaddrinfo("10.0.0.1", "7471", &hints, &to), 0);
	assert_int_equal(rdma_create_ep(&id, to, NULL, &qp), 0);
	assert_errno(rdma_connect(id, NULL), ECONNREFUSED);
	rdma_destroy_ep(id);
	rdma_freeaddrinfo(to);
	return polycm_sim_destroy();
}

static void attempt(const char *transport)
{
	struct polycm_sim_node *client, *server;

	if (transport) {
		assert_int_equal(polycm_sim_create(1), 0);
		assert_int_equal(polycm_sim_node_add("client", transport, "10.0.0.2/24", &client), 0);
		assert_int_equal(polycm_sim_node_add("server", transport, "10.0.0.1/24", &server), 0);
	}
	assert_int_equal(attempt_and_drop(), 0);
}

#define REQ_SENT "\"message\":\"REQ\",\"id\""
#define ADDED "\"action\":\"added\""

static void each_fabric_has_a_file(void **state)
{
	struct polycm_sim_node *node;

	(void)state;
	/* Nothing happens on these, nor on the environment's before it. */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(polycm_sim_create(1), 0);
		assert_int_equal(polycm_sim_node_add("idle", "roce", "10.9.0.1/24", &node), 0);
	}
	assert_int_equal(polycm_sim_destroy(), 0);
	attempt("roce");
	assert_int_equal(count_in("trace", REQ_SENT), 1);
	assert_int_equal(count_in("trace", "\"idle\""), 0);
	assert_int_equal(count_in("trace", ADDED), 2);
	assert_int_equal(count_in("trace.2", ""), -1);
	assert_true(has_packets("capture"));

	/* The folder is the one that it was in. */
	assert_int_equal(chdir("/"), 0);
	attempt("ib");
	attempt("iwarp");
	assert_int_equal(count_in("trace", "\"transport\":\"ib\""), 0);
	assert_int_equal(count_in("trace.2", "\"transport\":\"ib\""), 2);
	assert_int_equal(count_in("trace.2", REQ_SENT), 1);
	assert_int_equal(count_in("trace.3", "\"transport\":\"iwarp\""), 2);
	assert_true(has_packets("capture.2") && has_packets("capture.3"));
	assert_int_equal(count_in("trace.4", ""), -1);
}

/* What a full disk leaves out is said once, when the fabric is dropped. */
static void a_file_that_cannot_grow(void **state)
{
	struct rlimit unlimited, limit;
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	struct polycm_sim_node *client, *server;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
	limit = unlimited;
	assert_int_equal(sigaction(SIGXFSZ, &ignore, &before), 0);
	for (int capture = 0; capture <= 1; capture++) {
		assert_int_equal(polycm_sim_create(1), 0);
		assert_int_equal(capture ? polycm_sim_pcap(path_of("cut")) :
					   polycm_sim_trace(path_of("cut")), 0);
		assert_int_equal(polycm_sim_node_add("client", "roce", "10.0.0.2/24", &client), 0);
		assert_int_equal(polycm_sim_node_add("server", "roce", "10.0.0.1/24", &server), 0);
		limit.rlim_cur = 400;
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		assert_errno(attempt_and_drop(), EFBIG);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
		assert_int_equal(polycm_sim_destroy(), 0);
		assert_int_equal(unlink(path_of("cut")), 0);
	}
	/* Not even the fabric's own lines fit. */
	assert_int_equal(polycm_sim_create(1), 0);
	assert_int_equal(polycm_sim_node_add("server", "roce", "10.0.0.1/24", &server), 0);
	assert_errno(polycm_sim_trace("/dev/full"), ENOSPC);
	assert_errno(polycm_sim_destroy(), ENOSPC);
	assert_int_equal(polycm_sim_destroy(), 0);
	/* A reset says it, too. */
	assert_int_equal(polycm_sim_create(1), 0);
	assert_int_equal(polycm_sim_node_add("server", "roce", "10.0.0.1/24", &server), 0);
	assert_errno(polycm_sim_trace("/dev/full"), ENOSPC);
	assert_errno(polycm_sim_reset(), ENOSPC);
	assert_int_equal(polycm_sim_reset(), 0);
	assert_int_equal(sigaction(SIGXFSZ, &before, NULL), 0);
}

/* A test that names a file itself writes there, and leaves what is in the others. */
static void a_file_of_the_tests_own(void **state)
{
	struct polycm_sim_node *node;

	(void)state;
	assert_int_equal(polycm_sim_create(1), 0);
	assert_int_equal(polycm_sim_trace(path_of("own")), 0);
	assert_int_equal(polycm_sim_node_add("server", "roce", "10.0.0.1/24", &node), 0);
	attempt(NULL);
	assert_int_equal(count_in("own", REQ_SENT), 1);
	assert_int_equal(count_in("trace.4", REQ_SENT), 0);
	assert_int_equal(count_in("trace.3", "\"transport\":\"iwarp\""), 2);
}

static int setup(void **state)
{
	if (!mkdtemp(folder) || chdir(folder) || setenv("POLYCM_SIM_TRACE", "trace", 1) ||
	    setenv("POLYCM_SIM_PCAP", path_of("capture"), 1))
		return -1;
	return pair_group_setup(state);
}

static int teardown(void **state)
{
	static const char *const names[] = { "trace", "capture" };
	char name[20];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		unlink(path_of(names[i]));
		for (int number = 2; number < 9; number++) {
			(void)snprintf(name, sizeof(name), "%s.%d", names[i], number);
			unlink(path_of(name));
		}
	}
	unlink(path_of("own"));
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_fabric_has_a_file),
		cmocka_unit_test(a_file_of_the_tests_own),
		cmocka_unit_test(a_file_that_cannot_grow),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
