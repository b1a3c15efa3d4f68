/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts whose RDMA CM cannot be used: the errno of the first calls, and one
 * line in the log that says what to do about it.  Each case is a process of its
 * own, since such things are found out once.
 */
#include "kernel_stand_in_scene.h"

#include <sys/wait.h>

static const struct access_case {
	int abi_version, open_error, devices_error;
	bool no_devices;
	int error;			/* of the channel; 0: it works */
	const char *line, *advice;	/* in the log; NULL: nothing is logged */
	const char *log;		/* POLYCM_LOG, NULL: unset */
} cases[] = {
	{ .abi_version = 4 },
	{ .abi_version = 3 },
	/* Where sysfs does not tell, the device decides. */
	{ .abi_version = -ENOENT },
	{ .abi_version = 5, .error = EPERM, .line = "version 5", .advice = "3 to 4" },
	{ .abi_version = 2, .error = EPERM, .line = "version 2", .advice = "3 to 4" },
	{ .abi_version = 0, .error = EPERM, .line = "version 0", .advice = "3 to 4" },
	{ .abi_version = -ENOENT, .open_error = -ENOENT, .error = ENOENT,
	  .line = "/dev/infiniband/rdma_cm", .advice = "rdma_ucm" },
	{ .abi_version = 4, .open_error = -ENODEV, .error = ENODEV,
	  .line = "/dev/infiniband/rdma_cm", .advice = "rdma_ucm" },
	{ .abi_version = 4, .open_error = -EACCES, .error = EACCES,
	  .line = "/dev/infiniband/rdma_cm", .advice = "may not open" },
	{ .abi_version = 4, .open_error = -EMFILE, .error = EMFILE },
	{ .abi_version = 4, .no_devices = true, .error = ENODEV, .line = "no RDMA device",
	  .advice = "POLYCM_PROVIDER=sim" },
	{ .abi_version = 4, .devices_error = -EIO, .error = ENODEV, .log = "warn",
	  .line = "cannot list its devices: Input/output error", .advice = "no RDMA device" },
};

static size_t count(const char *text, const char *word)
{
	size_t num = 0;

	while ((text = strstr(text, word))) {
		text += strlen(word);
		num++;
	}
	return num;
}

/* In the child: every call that needs the RDMA CM fails alike. */
static int look(const struct access_case *c)
{
	struct rdma_event_channel *one;
	struct rdma_cm_id *id;
	int errors[2] = { 0 };

	if (c->log)
		setenv("POLYCM_LOG", c->log, 1);
	else
		unsetenv("POLYCM_LOG");
	if (scene_start(SCENE_ALL))
		return 1;
	stand_in.abi_version = c->abi_version;
	stand_in.open_error = c->open_error;
	stand_in.devices_error = c->devices_error;
	for (size_t i = 0; i < 4 && c->no_devices; i++)
		stand_in_plug((const char *const[]){ "hca0", "hca1", "rocee0", "iw0" }[i], false);

	for (size_t i = 0; i < 2; i++) {
		errno = 0;
		one = rdma_create_event_channel();
		if (!one)
			errors[i] = errno;
		else
			rdma_destroy_event_channel(one);
	}
	if (errors[0] != c->error || errors[1] != c->error)
		return 2;
	errno = 0;
	if (c->error)
		return rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) != -1 || errno != c->error ? 3 : 0;
	return rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) || rdma_destroy_id(id) ? 4 : 0;
}

static void what_is_missing_is_said_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct capture capture;
		const char *text;
		int status;
		pid_t pid;

		print_message("case %zu\n", i);
		capture_begin(&capture);
		pid = fork();
		if (!pid)
			_exit(look(&cases[i]));
		waitpid(pid, &status, 0);
		text = capture_end(&capture);
		print_message("%s", text);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
		if (!cases[i].line) {
			assert_int_equal(count(text, "error:"), 0);
			continue;
		}
		assert_true(count(text, cases[i].line) >= 1);
		assert_non_null(strstr(text, cases[i].advice));
		assert_int_equal(count(text, cases[i].advice), 1);
	}
}

/* Once it is there, it works: nothing of the failure is kept. */
static int recover(void)
{
	struct rdma_event_channel *one;

	if (scene_start(SCENE_ALL))
		return 1;
	stand_in.open_error = -ENOENT;
	if (rdma_create_event_channel() || errno != ENOENT)
		return 2;
	stand_in.open_error = 0;
	one = rdma_create_event_channel();
	if (!one)
		return 3;
	rdma_destroy_event_channel(one);
	return stand_in.files ? 4 : 0;
}

static void what_was_missing_may_come(void **state)
{
	struct capture capture;
	int status;
	pid_t pid;

	(void)state;
	capture_begin(&capture);
	pid = fork();
	if (!pid)
		_exit(recover());
	waitpid(pid, &status, 0);
	print_message("%s", capture_end(&capture));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_missing_is_said_once),
		cmocka_unit_test(what_was_missing_may_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
