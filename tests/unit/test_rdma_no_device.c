/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process without any device: every first call says so, and says what to do;
 * devices that come later are found.
 */
#include "cm_fake.h"

static int start(void **state)
{
	(void)state;
	fakes[0].absent = true;
	return fakes_start(1);
}

static void everything_begins_with_a_device(void **state)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res = NULL;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id = NULL;
	struct capture capture;

	(void)state;
	fakes[0].absent = true;
	capture_begin(&capture);
	errno = 0;
	channel = rdma_create_event_channel();
	capture_end(&capture);
	assert_null(channel);
	assert_int_equal(errno, ENODEV);
	assert_non_null(strstr(capture.text, "POLYCM_PROVIDER=sim"));

	capture_begin(&capture);
	assert_errno(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), ENODEV);
	assert_errno(rdma_create_ep(&id, &hints, NULL, NULL), ENODEV);
	assert_errno(rdma_getaddrinfo("10.0.0.1", "1", &hints, &res), ENODEV);
	capture_end(&capture);
	/* Once is enough. */
	assert_null(strstr(capture.text, "POLYCM_PROVIDER=sim"));
	assert_null(id);
	assert_null(res);
	/* What cannot be is told first. */
	assert_errno(rdma_getaddrinfo(NULL, NULL, NULL, &res), EINVAL);

	fakes[0].absent = false;
	channel = rdma_create_event_channel();
	assert_non_null(channel);
	id = resolved_id(channel);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RDMA_TEST(everything_begins_with_a_device),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
