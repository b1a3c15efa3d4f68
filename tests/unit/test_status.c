/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statuses of events in words, with and without a transport's own.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cmocka_all.h"

#include "polycm/polycm.h"
#include "core/cm/status.h"

static void the_core_has_words(void **state)
{
	static const struct {
		enum rdma_cm_event_type type;
		int status;
		const char *words;
	} tests[] = {
		{ RDMA_CM_EVENT_ESTABLISHED, 0, "success" },
		{ RDMA_CM_EVENT_REJECTED, 8,
		  "REJ 8, invalid service id: nobody listens on that port" },
		{ RDMA_CM_EVENT_REJECTED, 28, "REJ 28, consumer defined: the peer's program rejected "
					      "it, or nobody listens on that address" },
		{ RDMA_CM_EVENT_REJECTED, 1, "REJ 1, no QP: the peer cannot have another" },
		{ RDMA_CM_EVENT_REJECTED, 35, "REJ 35, vendor option not supported" },
		{ RDMA_CM_EVENT_REJECTED, 34, "REJ 34, unknown" },
		{ RDMA_CM_EVENT_REJECTED, 36, "REJ 36, unknown" },
		{ RDMA_CM_EVENT_REJECTED, INT_MAX, "REJ 2147483647, unknown" },
		{ RDMA_CM_EVENT_REJECTED, -ECONNREFUSED, "ECONNREFUSED, refused by the peer" },
		{ RDMA_CM_EVENT_REJECTED, -ECONNRESET, "ECONNRESET, rejected or reset by the peer" },
		{ RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, "ETIMEDOUT, the peer does not answer" },
		{ RDMA_CM_EVENT_UNREACHABLE, 1,
		  "SIDR status 1, service id not supported: nobody listens on that port" },
		{ RDMA_CM_EVENT_UNREACHABLE, 5, "SIDR status 5, unsupported version" },
		{ RDMA_CM_EVENT_UNREACHABLE, 6, "SIDR status 6, unknown" },
		{ RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, "ETIMEDOUT, no answer for that address" },
		{ RDMA_CM_EVENT_ADDR_ERROR, -ENETUNREACH, "ENETUNREACH, Network is unreachable" },
		{ RDMA_CM_EVENT_ADDR_ERROR, -1, "failed on this side" },
		{ RDMA_CM_EVENT_ROUTE_ERROR, -1, "failed on this side" },
		{ RDMA_CM_EVENT_CONNECT_ERROR, -1, "failed on this side" },
		{ RDMA_CM_EVENT_MULTICAST_ERROR, -1, "failed on this side" },
		{ RDMA_CM_EVENT_DISCONNECTED, -1, "EPERM, Operation not permitted" },
		{ RDMA_CM_EVENT_CONNECT_ERROR, EINVAL, "EINVAL, Invalid argument" },
		{ RDMA_CM_EVENT_CONNECT_ERROR, -4095, "error 4095" },
		{ RDMA_CM_EVENT_CONNECT_ERROR, INT_MIN, "error -2147483648" },
		{ (enum rdma_cm_event_type)99, -EIO, "EIO, Input/output error" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		assert_string_equal(polycm_status_words(NULL, tests[i].type, tests[i].status),
				    tests[i].words);
}

static const char *own_words(enum rdma_cm_event_type type, int status)
{
	return type == RDMA_CM_EVENT_REJECTED && status == 8 ? "own words" : NULL;
}

static void a_transports_words_come_first(void **state)
{
	const struct polycm_transport transport = { .status_str = own_words };

	(void)state;
	assert_string_equal(polycm_status_words(&transport, RDMA_CM_EVENT_REJECTED, 8), "own words");
	assert_string_equal(polycm_status_words(&transport, RDMA_CM_EVENT_REJECTED, 4),
			    "REJ 4, time-out: the peer gave the attempt up");
}

static void programs_ask_for_events(void **state)
{
	struct rdma_cm_id id = { .verbs = NULL };
	struct rdma_cm_event event = { .id = &id, .event = RDMA_CM_EVENT_REJECTED, .status = 10 };

	(void)state;
	assert_string_equal(polycm_status_str(&event),
			    "REJ 10, stale connection: the peer still has one with this QP number");
	event.id = NULL;
	event.status = 2;
	assert_string_equal(polycm_status_str(&event), "REJ 2, no EEC");
	assert_string_equal(polycm_status_str(NULL), "no event");
	assert_string_equal(polycm_status_text(NULL, RDMA_CM_EVENT_REJECTED, 3),
			    "REJ 3, no resources at the peer");
	assert_string_equal(polycm_status_text("none such", RDMA_CM_EVENT_REJECTED, 3),
			    "REJ 3, no resources at the peer");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_core_has_words),
		cmocka_unit_test(a_transports_words_come_first),
		cmocka_unit_test(programs_ask_for_events),
	};

	setenv("POLYCM_PROVIDER_PATH", "", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
