/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run_check.c - polycm run: values are checked here, against what is installed,
 * so that a mistake is one line from this command and not a program that finds
 * no device.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "polycm/polycm.h"
#include "polycm/sim.h"
#include "run.h"

#define PATH_VARIABLE "POLYCM_PROVIDER_PATH"
#define MAX_NAMES 64

/* ------------------------------------------------------------------------
 * What is installed.
 */

struct installed {
	const char *wanted;
	size_t len;
	bool of_transport;	/* compare transports, not names */
	char *names[MAX_NAMES];	/* in order */
	size_t num;
	char *problem;		/* of the wanted one */
	bool found;
};

/* Into its place in the order, once. */
static void add_name(struct installed *installed, const char *name)
{
	char **names = installed->names;
	size_t at = installed->num;

	while (at > 0 && strcmp(names[at - 1], name) > 0)
		at--;
	if (installed->num == MAX_NAMES || (at > 0 && !strcmp(names[at - 1], name)))
		return;
	memmove(names + at + 1, names + at, (installed->num++ - at) * sizeof(*names));
	names[at] = tool_strdup(name);
}

/* "ib, iwarp, roce, sim"; frees the names. */
static char *all_names(struct installed *installed)
{
	char *all = tool_strdup(installed->num ? "" : "none");

	for (size_t i = 0; i < installed->num; i++) {
		tool_append(&all, "%s%s", i ? ", " : "", installed->names[i]);
		free(installed->names[i]);
	}
	installed->num = 0;
	return all;
}

static int look_at_provider(void *arg, const struct polycm_provider_info *info)
{
	struct installed *installed = arg;
	const char *name = installed->of_transport ? info->transport : info->name;

	if (!name)
		return 0;
	if (strlen(name) == installed->len && !memcmp(name, installed->wanted, installed->len)) {
		installed->found = true;
		if (info->problem)
			installed->problem = tool_printf("%s: %s", info->path, info->problem);
	}
	if (!info->problem)
		add_name(installed, name);
	return 0;
}

/*
 * The library reads settings once per process.  While values are checked, the program's
 * settings are hidden, so that they neither start its providers here nor cause its log
 * lines here.
 */
struct hidden {
	char **all;	/* the environment as it was */
	char **rest;
};

static void hide_settings(struct hidden *hidden)
{
	size_t num = 0, kept = 0;

	while (environ[num])
		num++;
	hidden->all = environ;
	hidden->rest = calloc(num + 1, sizeof(*hidden->rest));
	for (size_t i = 0; i < num && hidden->rest; i++)
		if (strncmp(environ[i], "POLYCM_", 7) || !strncmp(environ[i], PATH_VARIABLE "=",
								  sizeof(PATH_VARIABLE)))
			hidden->rest[kept++] = environ[i];
	if (hidden->rest)
		environ = hidden->rest;
}

static void show_settings(struct hidden *hidden)
{
	environ = hidden->all;
	free(hidden->rest);
}

/* Looks for it among all that is installed. */
static int look(struct installed *installed)
{
	int r = polycm_providers_walk(true, look_at_provider, installed);

	if (r < 0)
		tool_error("cannot look for providers: %m");
	return r < 0 ? STATUS_USAGE : 0;
}

static int check_installed(const struct run_option *option, const char *name, size_t len,
			   bool of_transport)
{
	struct installed installed = { .wanted = name, .len = len, .of_transport = of_transport };
	int status = look(&installed);
	char *all = all_names(&installed);

	if (!status && installed.problem) {
		tool_error("--%s: %s", option->name, installed.problem);
		status = STATUS_USAGE;
	} else if (!status && !installed.found) {
		tool_error("--%s: there is no %s '%.*s'; installed: %s", option->name,
			   option->name, (int)len, name, all);
		status = STATUS_USAGE;
	}
	free(installed.problem);
	free(all);
	return status;
}

/* ------------------------------------------------------------------------
 * A value each.
 */

/* The library says which of them are layers. */
static int check_layers(const struct run_option *option, const char *value)
{
	const char *end = run_behind_layers(value), *rest = value, *name;
	int status = 0;
	size_t len;

	while (!status && (name = run_next_layer(&rest, end, &len)))
		status = check_installed(option, name, len, false);
	return status;
}

/* "sim", "roce,iwarp", "^ib", "trace;roce". */
int run_check_provider(const struct run_option *option, const char *value)
{
	const char *list = run_behind_layers(value);
	const char *rest = list + (list[0] == '^');
	int status = check_layers(option, value);

	/* Nothing behind layers stands for all providers. */
	if (list > value && !*list)
		return status;

	while (rest && !status) {
		size_t len;
		const char *name = run_next_name(&rest, &len);

		status = check_installed(option, name, len, false);
	}
	return status;
}

int run_check_transport(const struct run_option *option, const char *value)
{
	return check_installed(option, value, strlen(value), true);
}

int run_check_seed(const struct run_option *option, const char *value)
{
	char *end;

	errno = 0;
	(void)strtoull(value, &end, 0);
	if (value[0] >= '0' && value[0] <= '9' && !*end && !errno)
		return 0;
	tool_error("--%s: '%s' is no number from 0 to 2^64 - 1", option->name, value);
	return STATUS_USAGE;
}

/* It becomes part of a file's name. */
int run_check_name(const struct run_option *option, const char *value)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz" "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789" "_-.";
	size_t len = strlen(value);

	if (len > 0 && len <= 64 && strspn(value, allowed) == len && value[0] != '.')
		return 0;
	tool_error("--%s: '%s' is no name: up to 64 letters, digits, '_', '-' and '.'",
		   option->name, value);
	return STATUS_USAGE;
}

static bool is_terminal(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	bool is = fd >= 0 && isatty(fd);

	if (fd >= 0)
		close(fd);
	return is;
}

/* Why it cannot be read here and by each process of COMMAND, or NULL. */
static const char *why_not_again(const char *path)
{
	static const char *const inputs[] = { "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0" };
	struct stat st;

	if (stat(path, &st))
		return NULL;
	if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
		return "a pipe can be read only once: give a file";
	if (S_ISCHR(st.st_mode) && is_terminal(path))
		return "a terminal can be read only once: give a file";
	for (size_t i = 0; S_ISREG(st.st_mode) && i < sizeof(inputs) / sizeof(inputs[0]); i++)
		if (!strcmp(path, inputs[i]))
			return "programs may have another standard input: give the file's name";
	return NULL;
}

int run_check_again(const char *const values[RUN_NUM_OPTIONS])
{
	static const unsigned int files[] = { RUN_SCENARIO, RUN_FAULT_FILE };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const struct run_option *option = &run_options[files[i]];
		const char *given = values[files[i]];
		const char *path = given ? given : getenv(option->variable);
		const char *why = path ? why_not_again(path) : NULL;

		if (!why)
			continue;
		tool_error("%s%s%s%s: %s", given ? "--" : "", given ? option->name : option->variable,
			   given ? " " : "=", path, why);
		return STATUS_USAGE;
	}
	return 0;
}

/* check_network() lets the simulator check the contents. */
int run_check_file(const struct run_option *option, const char *value)
{
	struct stat st;
	int fd = open(value, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (fstat(fd, &st) || !S_ISDIR(st.st_mode)) {
			close(fd);
			return 0;
		}
		close(fd);
		errno = EISDIR;
	}
	tool_error("--%s: %s: %m", option->name, value);
	return STATUS_USAGE;
}

/* check_network() lets the layer check the contents. */
int run_check_faults(const struct run_option *option, const char *value)
{
	if (run_check_file(option, value))
		return STATUS_USAGE;
	return check_installed(option, RUN_FAULTS, strlen(RUN_FAULTS), false);
}

/* check_network() lets the simulator look for it. */
int run_check_device(const struct run_option *option, const char *value)
{
	if (*value)
		return 0;
	tool_error("--%s: no device is named", option->name);
	return STATUS_USAGE;
}

int run_check_node(const struct run_option *option, const char *value)
{
	if (*value)
		return 0;
	tool_error("--%s: no node is named", option->name);
	return STATUS_USAGE;
}

/* Can it be written, or made?  What is there stays as it is. */
int run_check_path(const struct run_option *option, const char *value)
{
	int fd;

	if (!value[0]) {
		tool_error("--%s: no file is named", option->name);
		return STATUS_USAGE;
	}
	if (!strcmp(value, "-"))
		return 0;
	fd = open(value, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0) {
		close(fd);
		unlink(value);
		return 0;
	}
	if (errno == EEXIST) {
		fd = open(value, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 && !access(value, W_OK))
			return 0;
		if (fd >= 0) {
			close(fd);
			errno = EISDIR;
		}
	}
	tool_error("--%s: %s: %m", option->name, value);
	return STATUS_USAGE;
}

int run_check_capture(const struct run_option *option, const char *value)
{
	if (strcmp(value, "-"))
		return run_check_path(option, value);
	tool_error("--%s: a capture needs a file of its own", option->name);
	return STATUS_USAGE;
}

struct choices {
	const char *variable;
	const char *choices;	/* "a|b|c"; NULL: anything */
};

static int look_at_choices(void *arg, const struct polycm_setting_info *info)
{
	struct choices *wanted = arg;

	if (strcmp(info->name, wanted->variable))
		return 0;
	wanted->choices = info->choices;
	return 1;
}

/* The setting itself knows what it may be: "a|b|c". */
int run_check_choice(const struct run_option *option, const char *value)
{
	struct installed all = { .wanted = "", .len = 0 };
	struct choices wanted = { .variable = option->variable };
	const char *choice;
	size_t len = strlen(value);
	int status = look(&all);

	free(all_names(&all));
	if (status)
		return status;
	polycm_settings_walk(look_at_choices, &wanted);
	if (!wanted.choices)
		return 0;
	for (choice = wanted.choices; choice; choice = strchr(choice, '|')) {
		choice += *choice == '|';
		if (!strncmp(choice, value, len) && (choice[len] == '|' || !choice[len]))
			return 0;
	}
	tool_error("--%s: '%s' is not one of %s", option->name, value, wanted.choices);
	return STATUS_USAGE;
}

/* ------------------------------------------------------------------------
 * All of them.
 */

/* What makes a network, together. */
static const unsigned int of_network[] = { RUN_TRANSPORT, RUN_DEVICE, RUN_SCENARIO, RUN_NODE,
					   RUN_FAULT_FILE };
#define NUM_OF_NETWORK (sizeof(of_network) / sizeof(of_network[0]))

/*
 * Make the network in this process, with the layer of faults.  The plugins log what is wrong.
 * _exit() skips what the layer would log about rules that never matched.
 */
static int try_network(const char *const given[])
{
	bool faults = given[RUN_FAULT_FILE];
	struct hidden hidden;
	uint64_t now;

	hide_settings(&hidden);
	setenv(RUN_PROVIDER_VARIABLE, faults ? RUN_FAULTS ";" RUN_SIMULATOR : RUN_SIMULATOR, 1);
	setenv("POLYCM_SIM_CLOCK", "virtual", 1);
	for (size_t i = 0; i < NUM_OF_NETWORK; i++)
		if (given[of_network[i]])
			setenv(run_options[of_network[i]].variable, given[of_network[i]], 1);
	return polycm_sim_now(&now) < 0;
}

/*
 * In a process of its own, since the library starts its providers once in a
 * process, and before it has been used in this one.
 */
static int check_network(const char *const values[])
{
	static const unsigned int files[] = { RUN_SCENARIO, RUN_FAULT_FILE, RUN_DEVICE };
	const struct run_option *option, *first = NULL;
	int status;
	pid_t child;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		option = &run_options[files[i]];
		if (!values[files[i]])
			continue;
		if (files[i] != RUN_DEVICE && run_check_file(option, values[files[i]]))
			return STATUS_USAGE;
		first = first ? first : option;
	}
	if (!first)
		return 0;
	child = fork();
	if (!child)
		_exit(try_network(values));
	if (child < 0 || waitpid(child, &status, 0) < 0) {
		tool_error("--%s: %m", first->name);
		return STATUS_USAGE;
	}
	return status ? STATUS_USAGE : 0;
}

/* Only a scenario has nodes with names. */
static int check_has_scenario(const char *const values[])
{
	const char *variable = run_options[RUN_SCENARIO].variable, *given = getenv(variable);

	if (!values[RUN_NODE] || values[RUN_SCENARIO] || (given && *given))
		return 0;
	tool_error("--%s %s: there is no scenario that could have that node: give --%s FILE or "
		   "set %s", run_options[RUN_NODE].name, values[RUN_NODE],
		   run_options[RUN_SCENARIO].name, variable);
	return STATUS_USAGE;
}

int run_check_values(const char *const values[RUN_NUM_OPTIONS])
{
	struct hidden hidden;
	int status = run_check_again(values);

	if (!status)
		status = check_has_scenario(values);
	if (!status)
		status = check_network(values);
	if (status)
		return status;
	hide_settings(&hidden);
	for (size_t i = 0; i < RUN_NUM_OPTIONS && !status; i++)
		if (values[i])
			status = run_options[i].check(&run_options[i], values[i]);
	show_settings(&hidden);
	return status;
}
