/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_without_device.c - programs that find no device or no provider: the
 * errno of each first call, and the one line that says what to do.  Each case
 * is a process of its own: this program, started again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "steps.h"

#define CHILD "--child"

/* --- The child: makes the calls and says what came of them. --- */

static void say(const char *call, bool failed)
{
	printf("%s %s\n", call, failed ? strerrorname_np(errno) : "ok");
}

static int child(void)
{
	struct rdma_event_channel *channel;
	struct rdma_addrinfo *info = NULL;
	struct ibv_context **list;
	struct rdma_cm_id *id = NULL;
	uint64_t now;
	int num = -1;

	errno = 0;
	channel = rdma_create_event_channel();
	say("channel", !channel);
	errno = 0;
	say("id", rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) != 0);
	if (id)
		rdma_destroy_id(id);
	if (channel)
		rdma_destroy_event_channel(channel);
	errno = 0;
	say("addrinfo", rdma_getaddrinfo("no.such.host.invalid", "1", NULL, &info) != 0);
	errno = 0;
	list = rdma_get_devices(&num);
	say("devices", !list);
	printf("num %d\n", num);
	rdma_free_devices(list);
	errno = 0;
	say("sim", polycm_sim_now(&now) != 0);
	return 0;
}

/* --- The parent. --- */

struct run {
	char out[4096], err[4096];
	int status;
};

static void read_all(int fd, char *buffer, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len + 1 < size && (n = read(fd, buffer + len, size - 1 - len)) > 0)
		len += (size_t)n;
	buffer[len] = '\0';
	close(fd);
}

static void start(struct run *run, const char *provider, const char *log)
{
	int out[2], err[2];
	pid_t pid;

	assert_int_equal(pipe(out), 0);
	assert_int_equal(pipe(err), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(out[1], STDOUT_FILENO);
		dup2(err[1], STDERR_FILENO);
		close(out[0]);
		close(err[0]);
		if (provider)
			setenv("POLYCM_PROVIDER", provider, 1);
		else
			unsetenv("POLYCM_PROVIDER");
		if (log)
			setenv("POLYCM_LOG", log, 1);
		else
			unsetenv("POLYCM_LOG");
		step_exec_self(CHILD);
		_exit(127);
	}
	close(out[1]);
	close(err[1]);
	read_all(out[0], run->out, sizeof(run->out));
	read_all(err[0], run->err, sizeof(run->err));
	assert_int_equal(waitpid(pid, &run->status, 0), pid);
}

static const char all_enodev[] =
	"channel ENODEV\nid ENODEV\naddrinfo ENODEV\ndevices ENODEV\nnum 0\nsim ENODEV\n";

static unsigned int count(const char *text, const char *word)
{
	unsigned int num = 0;

	while ((text = strstr(text, word))) {
		num++;
		text++;
	}
	return num;
}

static const struct {
	const char *name;
	const char *provider;		/* POLYCM_PROVIDER, NULL: unset */
	const char *words[3];		/* all on standard error */
	unsigned int lines;		/* there; one of them for <polycm/sim.h> if two */
} cases[] = {
	/* Hardware providers only, and this build's have no devices. */
	{ "unset", NULL, { "no RDMA device", "POLYCM_PROVIDER=sim", "polycm run" }, 2 },
	{ "all but one", "^iwarp", { "no RDMA device", "^iwarp" }, 2 },
	{ "hardware by name", "roce", { "no RDMA device", "POLYCM_PROVIDER=roce" }, 2 },
	{ "unknown", "nosuch", { "nosuch", "there is no provider", "found in" }, 1 },
	{ "unknown among known", "sim,nosuch", { "nosuch", "there is no provider", "found in" }, 1 },
	{ "misspelt", "simm", { "simm", "did you mean sim?" }, 1 },
};

static void says_what_is_wrong(void **state)
{
	static struct run run;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		print_message("%s\n", cases[i].name);
		start(&run, cases[i].provider, NULL);
		assert_int_equal(run.status, 0);
		assert_string_equal(run.out, all_enodev);
		for (size_t w = 0; w < ARRAY_LEN(cases[i].words) && cases[i].words[w]; w++)
			if (!strstr(run.err, cases[i].words[w]))
				fail_msg("no \"%s\" in: %s", cases[i].words[w], run.err);
		/* Once, however many calls fail. */
		assert_int_equal(count(run.err, "\n"), cases[i].lines);
	}
}

static void the_simulator_has_one(void **state)
{
	static struct run run;

	(void)state;
	start(&run, "sim", NULL);
	assert_int_equal(run.status, 0);
	assert_int_equal(count(run.out, "ENODEV"), 0);
	assert_non_null(strstr(run.out, "channel ok\nid ok\n"));
	assert_non_null(strstr(run.out, "devices ok\n"));
	assert_string_equal(run.err, "");
}

/* Unknown names of settings are told, with the nearest match, at the default level. */
static void misspelt_settings_are_told(void **state)
{
	static struct run run;

	(void)state;
	setenv("POLYCM_PROVIDR", "sim", 1);
	start(&run, "sim", NULL);
	unsetenv("POLYCM_PROVIDR");
	assert_int_equal(run.status, 0);
	assert_non_null(strstr(run.err, "POLYCM_PROVIDR"));
	assert_non_null(strstr(run.err, "POLYCM_PROVIDER"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_is_wrong),
		cmocka_unit_test(the_simulator_has_one),
		cmocka_unit_test(misspelt_settings_are_told),
	};

	if (argc > 1 && !strcmp(argv[1], CHILD))
		return child();
	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
