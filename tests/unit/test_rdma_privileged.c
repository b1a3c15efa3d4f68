/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process with raised privileges and without any device: nobody is told to
 * set a variable that such a process ignores.
 */
#include "cm_fake.h"
#include "core/plugin/options.h"

static int start(void **state)
{
	(void)state;
	fakes[0].absent = true;
	return fakes_start(1);
}

static void no_ignored_variable_is_advised(void **state)
{
	struct rdma_event_channel *channel;
	struct capture capture;

	(void)state;
	fakes[0].absent = true;
	polycm_privileged_override = 1;
	capture_begin(&capture);
	errno = 0;
	channel = rdma_create_event_channel();
	capture_end(&capture);
	polycm_privileged_override = -1;
	assert_null(channel);
	assert_int_equal(errno, ENODEV);
	assert_non_null(strstr(capture.text, "no RDMA device"));
	assert_non_null(strstr(capture.text, "raised privileges"));
	assert_null(strstr(capture.text, "set POLYCM_PROVIDER"));
	assert_null(strstr(capture.text, "polycm run"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RDMA_TEST(no_ignored_variable_is_advised),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
