/* SPDX-License-Identifier: BSD-2-Clause */
/* registry_case.c - see registry_case.h */
#include "registry_case.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "capture.h"

#include "core/device/device.h"
#include "core/plugin/options.h"
#include "core/plugin/plugin_internal.h"

static const char *const source_files[] = {
	[BY_NAME] = "by_name",
	[OTHER_VERSION] = "other_version",
	[UNDEFINED] = "undefined",
	[NOTHING] = "nothing",
	[BORROW] = "borrow",
};

char case_folder[256];
off_t case_truncated_size = 1000;

/* most: bytes to copy, negative: so many less than there are */
static void copy_file(const char *from, const char *to, off_t most)
{
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0700);
	struct stat st;

	if (in < 0 || out < 0 || fstat(in, &st))
		fail_msg("%s to %s: %s", from, to, strerror(errno));
	if (most < st.st_size)
		st.st_size = most < 0 ? st.st_size + most : most;
	while (st.st_size > 0) {
		ssize_t n = sendfile(out, in, NULL, (size_t)st.st_size);

		assert_true(n > 0);
		st.st_size -= n;
	}
	close(in);
	close(out);
}

static void source_path(enum source source, char *buf, size_t size)
{
	assert_true(snprintf(buf, size, "%s/tests/unit/.libs/%s.so", getenv("abs_top_builddir"),
			     source_files[source]) < (int)size);
}

static void make_plugin(const struct plugin *plugin)
{
	char from[PATH_MAX], to[2 * sizeof(case_folder)];
	FILE *text;

	snprintf(to, sizeof(to), "%s/%s", case_folder, plugin->file);
	switch (plugin->source) {
	case TEXT:
		text = fopen(to, "w");
		assert_non_null(text);
		fputs("INPUT(nothing)\n", text);
		fclose(text);
		break;
	case TRUNCATED:
		source_path(BY_NAME, from, sizeof(from));
		copy_file(from, to, case_truncated_size);
		break;
	case FOLDER:
		assert_int_equal(mkdir(to, 0700), 0);
		break;
	case US:
		memset(from, 0, sizeof(from));
		assert_true(readlink("/proc/self/exe", from, sizeof(from) - 1) > 0);
		assert_int_equal(symlink(from, to), 0);
		break;
	case DANGLING:
		assert_int_equal(symlink("/nowhere/at/all", to), 0);
		break;
	default:
		source_path(plugin->source, from, sizeof(from));
		copy_file(from, to, INT_MAX);
	}
}

static void remove_below(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	char name[PATH_MAX + 256];

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		if (unlink(name)) {
			remove_below(name);
			rmdir(name);
		}
	}
	if (dir)
		closedir(dir);
}

int case_make_folder(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	if (!getenv("abs_top_builddir"))
		return 0;
	snprintf(case_folder, sizeof(case_folder), "%s/polycm-test-%d", tmp ? tmp : "/tmp",
		 (int)getpid());
	return mkdir(case_folder, 0700);
}

int case_remove_folder(void **state)
{
	(void)state;
	if (*case_folder) {
		remove_below(case_folder);
		rmdir(case_folder);
	}
	return 0;
}

static void set_environment(const struct testcase *test)
{
	static char none[2 * sizeof(case_folder)];
	char path[4 * sizeof(case_folder)];

	/* What cmocka catches would make this process run the other tests. */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGILL, SIG_DFL);
	clearenv();
	snprintf(path, sizeof(path), "%s/a::%s/b:%s/a", case_folder, case_folder, case_folder);
	setenv("POLYCM_PROVIDER_PATH", path, 1);
	setenv("POLYCM_LOG", test->log ? test->log : "warn", 1);
	if (test->provider)
		setenv("POLYCM_PROVIDER", test->provider, 1);
	if (test->variable)
		setenv(test->variable, "1", 1);
	polycm_privileged_override = test->privileged;
	snprintf(none, sizeof(none), "%s/none", case_folder);
	polycm_installed_folder = none;
}

struct outcome {
	int result, again;
	char selected[256];
	char devices[256];
	char log[16384];
};

/* In a process of its own; what there is afterwards goes through the pipe. */
static void run_child(const struct testcase *test, int out)
{
	static struct outcome outcome;
	static struct capture capture;
	struct polycm_module *const *modules;
	struct polycm_device **devices;
	size_t num;

	set_environment(test);
	capture_begin(&capture);
	outcome.result = polycm_registry_get();
	outcome.again = polycm_registry_get();
	num = polycm_registry_selected(&modules);
	for (size_t i = 0; i < num; i++)
		sprintf(outcome.selected + strlen(outcome.selected), "%s%s", i ? " " : "",
			modules[i]->name);
	if (!polycm_devices(&devices, &num))
		for (size_t i = 0; i < num; i++)
			sprintf(outcome.devices + strlen(outcome.devices), "%s%s/%s", i ? " " : "",
				devices[i]->module->name, devices[i]->name);
	snprintf(outcome.log, sizeof(outcome.log), "%s", capture_end(&capture));
	if (write(out, &outcome, sizeof(outcome)) != sizeof(outcome))
		_exit(2);
	_exit(0);
}

static void run_case(const struct testcase *test, struct outcome *ret_outcome)
{
	char sub[sizeof(case_folder) + 8];
	size_t have = 0;
	int ends[2], status;
	pid_t child;

	if (!*case_folder)
		skip();
	remove_below(case_folder);
	snprintf(sub, sizeof(sub), "%s/a", case_folder);
	assert_int_equal(mkdir(sub, 0700), 0);
	snprintf(sub, sizeof(sub), "%s/b", case_folder);
	assert_int_equal(mkdir(sub, 0700), 0);
	for (size_t i = 0; i < ARRAY_SIZE(test->plugins) && test->plugins[i].file; i++)
		make_plugin(&test->plugins[i]);

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		run_child(test, ends[1]);
	close(ends[1]);
	while (have < sizeof(*ret_outcome)) {
		ssize_t n = read(ends[0], (char *)ret_outcome + have, sizeof(*ret_outcome) - have);

		if (n <= 0)
			break;
		have += (size_t)n;
	}
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (status || have != sizeof(*ret_outcome))
		fail_msg("child ended with status %#x", status);
}

void run_cases(const struct testcase *tests, size_t num)
{
	static struct outcome outcome;

	for (size_t i = 0; i < num; i++) {
		const struct testcase *test = &tests[i];

		print_message("case %zu: %s, POLYCM_PROVIDER=%s\n", i,
			      test->plugins[0].file ? test->plugins[0].file : "no plugin",
			      test->provider ? test->provider : "(unset)");
		run_case(test, &outcome);
		for (size_t k = 0; k < ARRAY_SIZE(test->said) && test->said[k]; k++)
			if (!strstr(outcome.log, test->said[k]))
				fail_msg("not said: %s\nbut: %s", test->said[k], outcome.log);
		if (count_lines(outcome.log) != test->lines)
			fail_msg("%zu lines, not %zu: %s", count_lines(outcome.log), test->lines,
				 outcome.log);
		assert_int_equal(outcome.result, test->result);
		assert_int_equal(outcome.again, test->result);
		assert_string_equal(outcome.selected, test->selected ? test->selected : "");
		assert_string_equal(outcome.devices, test->devices ? test->devices : "");
	}
}

void run_in_child(int (*fn)(void), const struct plugin *plugins, size_t num)
{
	struct testcase test = { .provider = "acme" };
	char sub[sizeof(case_folder) + 8];
	int status;
	pid_t child;

	if (!*case_folder)
		skip();
	remove_below(case_folder);
	for (const char *name = "ab"; *name; name++) {
		snprintf(sub, sizeof(sub), "%s/%c", case_folder, *name);
		assert_int_equal(mkdir(sub, 0700), 0);
	}
	for (size_t i = 0; i < num; i++)
		make_plugin(&plugins[i]);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		int line;

		set_environment(&test);
		line = fn();
		if (line)
			dprintf(STDOUT_FILENO, "failed in line %d\n", line);
		_exit(line != 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

