/* SPDX-License-Identifier: BSD-2-Clause */
/* test_newer_calls.c - calls of librdmacm 60 for which Linux 6.12 has no command are refused. */
#include <errno.h>

#include "steps.h"

int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t arg);
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);

#define EVENT_USER 18

static void assert_refused(int ret, int error)
{
	assert_int_equal(ret, -1);
	assert_int_equal(errno, error);
}

static void they_are_refused_in_every_state(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t < NUM_TRANSPORTS; t++) {
		for (enum step step = 0; step < NUM_STEPS; step++) {
			struct rdma_addrinfo *info = NULL;
			struct rdma_cm_id *id;
			struct pair pair;

			if (!step_exists(t, step))
				continue;
			print_message("%s\n", step_name[step]);
			id = step_open(&pair, t, step);
			assert_refused(
				rdma_write_cm_event(id, (enum rdma_cm_event_type)EVENT_USER, 0, 1),
				EINVAL);
			assert_refused(rdma_write_cm_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, 1),
				       EINVAL);
			assert_refused(rdma_resolve_addrinfo(id, "10.0.0.1", "7471", NULL), EINVAL);
			assert_refused(rdma_query_addrinfo(id, &info), ENOENT);
			assert_null(info);
			pair_close(&pair);
		}
	}
}

static void a_stale_id_is_none(void **state)
{
	struct rdma_cm_id *id;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	id = pair.client;
	pair_close(&pair);
	assert_refused(rdma_write_cm_event(NULL, (enum rdma_cm_event_type)EVENT_USER, 0, 0),
		       EINVAL);
	assert_refused(rdma_write_cm_event(id, (enum rdma_cm_event_type)EVENT_USER, 0, 0), EINVAL);
	assert_refused(rdma_resolve_addrinfo(id, NULL, NULL, NULL), EINVAL);
	assert_refused(rdma_query_addrinfo(id, NULL), EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_are_refused_in_every_state),
		cmocka_unit_test(a_stale_id_is_none),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
