/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_no_thread.c - the system starts no more threads (a limit on processes
 * or memory): the calls whose events the simulator's thread would bring fail,
 * with a line that says so, and succeed when threads can be started again.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pair.h"

#define PORT 7471
#define WHOLE_ADDRESS_SPACE ((size_t)1 << 46)

static char log_path[] = "/tmp/polycm-no-thread-XXXXXX";

struct host {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct sockaddr_in any, loopback;
};

/* No thread has room for its stack then. */
static void allow_threads(bool allow)
{
	static size_t stack_size;
	pthread_attr_t attr;

	assert_int_equal(pthread_getattr_default_np(&attr), 0);
	if (!stack_size)
		assert_int_equal(pthread_attr_getstacksize(&attr, &stack_size), 0);
	assert_int_equal(pthread_attr_setstacksize(&attr, allow ? stack_size : WHOLE_ADDRESS_SPACE), 0);
	assert_int_equal(pthread_setattr_default_np(&attr), 0);
	pthread_attr_destroy(&attr);
}

static int resolve_addr(struct host *host)
{
	return rdma_resolve_addr(host->id, NULL, (struct sockaddr *)&host->loopback, 1000);
}

static int listen_on_any(struct host *host)
{
	return rdma_bind_addr(host->id, (struct sockaddr *)&host->any) ? -2 : rdma_listen(host->id, 1);
}

static int create_qp(struct host *host)
{
	struct ibv_context **list = rdma_get_devices(NULL);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_pd *pd;
	struct ibv_qp *qp;
	int err;

	(void)host;
	assert_non_null(list);
	pd = ibv_alloc_pd(list[0]);
	assert_non_null(pd);
	attr.send_cq = attr.recv_cq = ibv_create_cq(list[0], 2, NULL, NULL, 0);
	assert_non_null(attr.send_cq);
	qp = ibv_create_qp(pd, &attr);
	err = errno;
	if (qp)
		assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(attr.send_cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	rdma_free_devices(list);
	errno = err;
	return qp ? 0 : -1;
}

static const struct {
	const char *name;
	int (*call)(struct host *host);
} calls[] = {
	{ "rdma_resolve_addr", resolve_addr },
	{ "rdma_listen", listen_on_any },
	{ "ibv_create_qp", create_qp },
};

/* The line about the call that gives the reason. */
static bool log_explains(const char *call)
{
	char line[512];
	bool found = false;
	FILE *file = fopen(log_path, "r");

	assert_non_null(file);
	while (!found && fgets(line, sizeof(line), file))
		found = strstr(line, call) && strstr(line, "cannot start its thread");
	fclose(file);
	return found;
}

static void open_host(struct host *host)
{
	*host = (struct host) {
		.any = { .sin_family = AF_INET, .sin_port = htons(PORT) },
		.loopback = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) },
	};
	host->channel = rdma_create_event_channel();
	assert_non_null(host->channel);
	assert_int_equal(rdma_create_id(host->channel, &host->id, NULL, RDMA_PS_TCP), 0);
}

static void close_host(struct host *host)
{
	assert_int_equal(rdma_destroy_id(host->id), 0);
	rdma_destroy_event_channel(host->channel);
}

static void calls_whose_events_never_came_fail(void **state)
{
	struct host host;
	int r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		open_host(&host);
		allow_threads(false);
		errno = 0;
		r = calls[i].call(&host);
		allow_threads(true);
		if (r != -1 || (errno != EAGAIN && errno != ENOMEM))
			fail_msg("%s: %d, %s", calls[i].name, r, strerror(errno));
		if (!log_explains(calls[i].name))
			fail_msg("%s: no line says why", calls[i].name);
		close_host(&host);
	}
}

static void they_succeed_when_threads_can_be_started_again(void **state)
{
	struct rdma_cm_event *event;
	struct host host;

	(void)state;
	open_host(&host);
	allow_threads(false);
	assert_int_equal(resolve_addr(&host), -1);
	allow_threads(true);
	assert_int_equal(resolve_addr(&host), 0);
	assert_int_equal(rdma_get_cm_event(host.channel, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	close_host(&host);
}

static int set_up(void **state)
{
	char name[32];
	int fd = mkstemp(log_path);

	(void)state;
	snprintf(name, sizeof(name), "no-thread-%d", (int)getpid());
	if (fd < 0 || close(fd) || setenv("POLYCM_PROVIDER", "sim", 1) ||
	    setenv("POLYCM_SIM_FABRIC", name, 1) || setenv("POLYCM_LOG", "warn", 1))
		return -1;
	/* Log lines go to standard error. */
	return freopen(log_path, "a", stderr) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(log_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: a thread that runs is not started again. */
		cmocka_unit_test(calls_whose_events_never_came_fail),
		cmocka_unit_test(they_succeed_when_threads_can_be_started_again),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
