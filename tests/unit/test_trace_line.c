/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of a trace: a member that does not fit is left out, and the line stays whole. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/common/trace_line.h"
#include "tests/cmocka_all.h"

static struct {
	struct trace_line line;
	char behind[64];		/* nothing may be written there */
} guarded;

static void fill_to(size_t len)
{
	trace_begin(&guarded.line, 1);
	while (guarded.line.len < len)
		guarded.line.text[guarded.line.len++] = ' ';
}

static void full_lines_stay_whole(void **state)
{
	char written[sizeof(guarded)];
	int fds[2];
	ssize_t len;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	for (size_t left = 0; left < 64; left++) {
		memset(&guarded, 0x5a, sizeof(guarded));
		fill_to(sizeof(guarded.line.text) - 4 - left);
		for (int i = 0; i < 40; i++) {
			trace_text(&guarded.line, "empty", "");
			trace_bytes(&guarded.line, "none", "", 0);
			trace_text(&guarded.line, "name", "value");
			trace_number(&guarded.line, "number", 7);
		}
		assert_true(guarded.line.len <= sizeof(guarded.line.text) - 3);
		assert_int_equal(trace_end(&guarded.line, fds[1], write), 0);
		len = read(fds[0], written, sizeof(written) - 1);
		assert_true(len > 2);
		written[len] = '\0';
		assert_string_equal(written + len - 2, "}\n");
		/* Quotes come in pairs: no value is there without its name. */
		for (char *at = written; (at = strchr(at, '"')); at = strchr(at + 1, '"') + 1)
			assert_non_null(strchr(at + 1, '"'));
		for (size_t i = 0; i < sizeof(guarded.behind); i++)
			assert_int_equal(guarded.behind[i], 0x5a);
	}
	close(fds[0]);
	close(fds[1]);
}

/* Members of all runs on a machine trace to one device, whose locks are nobody's business. */
static void only_files_are_locked(void **state)
{
	char folder[] = "/tmp/test_trace_lineXXXXXX", path[64];
	int reader, fd;

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/it", folder);
	for (int is_file = 0; is_file < 2; is_file++) {
		if (!is_file)
			assert_int_equal(mkfifo(path, 0600), 0);
		reader = open(path, O_RDWR | O_CREAT, 0600);
		fd = trace_file_open(path);
		assert_true(reader >= 0 && fd >= 0);
		assert_int_equal(flock(reader, LOCK_EX | LOCK_NB), is_file ? -1 : 0);
		close(fd);
		close(reader);
		unlink(path);
	}
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_lines_stay_whole),
		cmocka_unit_test(only_files_are_locked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
