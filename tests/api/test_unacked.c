/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_unacked.c - a program that forgets to acknowledge an event: the call
 * that waits for it says which one, and fails where no other thread could do it.
 * That program is a process of its own, whose log is read.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "steps.h"

#define CHILD "--child"
#define PATIENCE_MS 30000

static int child(void)
{
	struct rdma_cm_event *event;
	struct pair pair;

	pair_open(&pair, ROCE, RDMA_PS_TCP);
	if (rdma_resolve_addr(pair.client, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT), 2000) ||
	    rdma_get_cm_event(pair.client_channel, &event))
		return 1;
	/* Nothing of it has been done, so it can be done once more. */
	if (!rdma_destroy_id(pair.client) || errno != EDEADLK || rdma_ack_cm_event(event) ||
	    rdma_destroy_id(pair.client))
		return 2;
	pair.client = NULL;
	pair_close(&pair);
	return 0;
}

/* A line, or as much of it as came before time was up. */
static void read_line(int fd, char *line, size_t size)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	size_t len = 0;

	while (len + 1 < size && poll(&poller, 1, PATIENCE_MS) == 1 &&
	       read(fd, line + len, 1) == 1 && line[len++] != '\n')
		;
	line[len] = '\0';
}

static void is_told_what_it_forgot(void **state)
{
	char line[1024];
	int err[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(err), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(err[1], STDERR_FILENO);
		step_exec_self(CHILD);
		_exit(127);
	}
	close(err[1]);
	read_line(err[0], line, sizeof(line));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(err[0]);
	for (const char *const *word = (const char *const[]) {
		     "error", "rdma_destroy_id", "for ever", "rdma_ack_cm_event of 1 event: ",
		     "ADDR_RESOLVED", "ago", NULL };
	     *word; word++)
		if (!strstr(line, *word))
			fail_msg("no \"%s\" in: %s", *word, line);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_told_what_it_forgot),
	};

	if (argc > 1 && !strcmp(argv[1], CHILD))
		return child();
	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
