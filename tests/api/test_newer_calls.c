/* SPDX-License-Identifier: BSD-2-Clause */
/* test_newer_calls.c - calls of librdmacm 60: events that the core makes, without a provider. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "steps.h"

int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t arg);
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);

#define EVENT_ADDRINFO_RESOLVED ((enum rdma_cm_event_type)16)
#define EVENT_USER ((enum rdma_cm_event_type)18)
#define RAI_SA 0x10
#define RAI_DNS 0x20

static void take_user(struct rdma_cm_id *id, int status, uint64_t arg)
{
	struct rdma_cm_event *event = pair_expect(id->channel, EVENT_USER, status);

	assert_ptr_equal(event->id, id);
	assert_memory_equal(&event->param, &arg, sizeof(arg));
	assert_int_equal(rdma_ack_cm_event(event), 0);
}

static void look_up(struct rdma_cm_id *id)
{
	struct rdma_addrinfo *info = NULL;
	const struct sockaddr_in *addr;

	assert_errno(rdma_query_addrinfo(id, &info), ENOENT);
	assert_int_equal(rdma_resolve_addrinfo(id, "10.0.0.1", "7471", NULL), 0);
	assert_string_equal(rdma_event_str(EVENT_ADDRINFO_RESOLVED),
			    "RDMA_CM_EVENT_ADDRINFO_RESOLVED");
	assert_errno(rdma_resolve_addrinfo(id, "10.0.0.1", "7471", NULL), EBUSY);
	pair_take(id->channel, EVENT_ADDRINFO_RESOLVED, 0);
	assert_errno(rdma_query_addrinfo(id, NULL), EINVAL);
	assert_int_equal(rdma_query_addrinfo(id, &info), 0);
	addr = (const struct sockaddr_in *)(const void *)info->ai_dst_addr;
	assert_int_equal(addr->sin_port, htons(7471));
	assert_int_equal(addr->sin_addr.s_addr, inet_addr("10.0.0.1"));
	rdma_freeaddrinfo(info);
	assert_errno(rdma_query_addrinfo(id, &info), ENOENT);
}

static void they_work_in_every_state(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t < NUM_TRANSPORTS; t++) {
		for (enum step step = 0; step < NUM_STEPS; step++) {
			struct rdma_cm_id *id;
			struct pair pair;

			if (!step_exists(t, step))
				continue;
			print_message("%s\n", step_name[step]);
			id = step_open(&pair, t, step);
			assert_int_equal(rdma_write_cm_event(id, EVENT_USER, -5, 1), 0);
			assert_int_equal(rdma_write_cm_event(id, EVENT_USER, 0, UINT64_MAX), 0);
			take_user(id, -5, 1);
			take_user(id, 0, UINT64_MAX);
			look_up(id);
			/* Left behind: both go with the id. */
			assert_int_equal(rdma_resolve_addrinfo(id, "10.0.0.1", NULL, NULL), 0);
			pair_close(&pair);
		}
	}
}

static void what_is_refused(void **state)
{
	static const struct { int flags; const char *node, *service; int error; } cases[] = {
		{ RAI_SA, NULL, "1", EOPNOTSUPP },
		{ RAI_SA, "10.0.0.1", "1", EOPNOTSUPP },
		{ RAI_SA | RAI_DNS, NULL, "1", EOPNOTSUPP },
		{ RAI_DNS | RAI_NUMERICHOST, "not an address", "1", EINVAL },
	};
	struct rdma_addrinfo *info;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	for (int type = -1; type < 21; type++)
		if (type != (int)EVENT_USER)
			assert_errno(rdma_write_cm_event(pair.client, (enum rdma_cm_event_type)type,
							 0, 1), EINVAL);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct rdma_addrinfo hints = { .ai_flags = cases[i].flags };

		assert_errno(rdma_resolve_addrinfo(pair.client, cases[i].node, cases[i].service,
						   &hints), cases[i].error);
		assert_errno(rdma_query_addrinfo(pair.client, &info), ENOENT);
	}
	assert_errno(rdma_resolve_addrinfo(pair.client, NULL, NULL, NULL), EINVAL);
	pair_none(pair.client_channel);
	pair_close(&pair);
}

static void a_synchronous_id_waits(void **state)
{
	struct polycm_sim_node *server, *client;
	struct rdma_addrinfo *info;
	struct rdma_cm_id *id;

	(void)state;
	pair_open_nodes(ROCE, &server, &client);
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addrinfo(id, "10.0.0.1", "7471", NULL), 0);
	assert_int_equal(id->event->event, EVENT_ADDRINFO_RESOLVED);
	assert_int_equal(rdma_query_addrinfo(id, &info), 0);
	rdma_freeaddrinfo(info);
	assert_int_equal(rdma_destroy_id(id), 0);
	pair_close_nodes();
}

static void a_stale_id_is_none(void **state)
{
	struct rdma_cm_id *id;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	id = pair.client;
	pair_close(&pair);
	assert_errno(rdma_write_cm_event(NULL, EVENT_USER, 0, 0), EINVAL);
	assert_errno(rdma_write_cm_event(id, EVENT_USER, 0, 0), EINVAL);
	assert_errno(rdma_resolve_addrinfo(id, "10.0.0.1", NULL, NULL), EINVAL);
	assert_errno(rdma_query_addrinfo(id, NULL), EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_work_in_every_state),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(a_synchronous_id_waits),
		cmocka_unit_test(a_stale_id_is_none),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
