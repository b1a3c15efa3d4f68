/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run.c - polycm run: sets the environment, preloads libpolycm, becomes the
 * program.
 *
 * Values are checked here, against what is installed, so that a mistake is one
 * line from this command and not a program that finds no device.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "polycm.h"
#include "polycm/polycm.h"

#define PROVIDER_VARIABLE "POLYCM_PROVIDER"
#define PATH_VARIABLE "POLYCM_PROVIDER_PATH"
#define PRELOAD_VARIABLE "LD_PRELOAD"
#define SIMULATOR "sim"
#define MAX_NAMES 64

static int check_provider(const char *value);
static int check_transport(const char *value);
static int check_seed(const char *value);
static int check_name(const char *value);
static int check_choice(const char *value);
static int check_path(const char *value);

/* Each option is a setting; those of POLYCM_SIM_* are the simulator's. */
static const struct run_option {
	const char *name;
	const char *variable;
	const char *argument;
	const char *help;
	int (*check)(const char *value);	/* 0 or STATUS_USAGE */
} run_options[] = {
	{ "provider", PROVIDER_VARIABLE, "NAMES",
	  "providers that may carry connections: sim or roce,iwarp or ^ib", check_provider },
	{ "transport", "POLYCM_SIM_TRANSPORT", "NAME",
	  "what the simulated device is: roce, ib, iwarp or a vendor's", check_transport },
	{ "seed", "POLYCM_SIM_SEED", "N",
	  "seed of all randomness in the simulator", check_seed },
	{ "clock", "POLYCM_SIM_CLOCK", "KIND",
	  "virtual or real: the simulator's time", check_choice },
	{ "fabric", "POLYCM_SIM_FABRIC", "NAME",
	  "simulated network; processes of one user that name the same meet", check_name },
	{ "trace", "POLYCM_SIM_TRACE", "FILE",
	  "write what happens in the simulator to FILE", check_path },
	{ "log", "POLYCM_LOG", "LEVEL",
	  "error, warn, info, debug or trace, to standard error", check_choice },
};

#define NUM_OPTIONS (sizeof(run_options) / sizeof(run_options[0]))

/* The option whose value is being checked. */
static const struct run_option *checked;

static bool is_simulators(const struct run_option *option)
{
	return !strncmp(option->variable, "POLYCM_SIM_", 11);
}

void run_usage(FILE *to)
{
	size_t i;

	fputs("usage: polycm run [OPTION]... [--] COMMAND [ARGUMENT]...\n"
	      "\n"
	      "Starts COMMAND with libpolycm in place of librdmacm.\n"
	      "\n", to);
	for (i = 0; i < NUM_OPTIONS; i++) {
		char *option = tool_printf("--%s %s", run_options[i].name, run_options[i].argument);

		fprintf(to, "  %-18s%s\n", option, run_options[i].help);
		free(option);
	}
	fputs("\n"
	      "Each option sets a variable of the environment; see 'polycm info --config'.\n"
	      "The simulator's options (--transport, --seed, --clock, --fabric, --trace) mean\n"
	      "--provider sim too, unless --provider or POLYCM_PROVIDER names providers.\n"
	      "\n"
	      "Exit status: COMMAND's; 2: bad options, 126: COMMAND cannot be executed,\n"
	      "127: it was not found.\n", to);
}

/* ------------------------------------------------------------------------
 * Checks.
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
	char *all = tool_strdup(installed->num ? installed->names[0] : "none");

	for (size_t i = 0; i < installed->num; i++) {
		char *shorter = all;

		if (i > 0) {
			all = tool_printf("%s, %s", shorter, installed->names[i]);
			free(shorter);
		}
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
 * The library reads settings once per process: those of the program must
 * neither start its providers here nor make it tell here what it will tell
 * there.  They are away while values are checked.
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

static int check_installed(const char *name, size_t len, bool of_transport)
{
	struct installed installed = { .wanted = name, .len = len, .of_transport = of_transport };
	int status = look(&installed);
	char *all = all_names(&installed);

	if (!status && installed.problem) {
		tool_error("--%s: %s", checked->name, installed.problem);
		status = STATUS_USAGE;
	} else if (!status && !installed.found) {
		tool_error("--%s: there is no %s '%.*s'; installed: %s", checked->name,
			   checked->name, (int)len, name, all);
		status = STATUS_USAGE;
	}
	free(installed.problem);
	free(all);
	return status;
}

/* The next of names with commas and perhaps blanks between, its length, and what follows or NULL. */
static const char *next_name(const char **rest, size_t *ret_len)
{
	const char *name = *rest + strspn(*rest, " \t");
	size_t len = strcspn(name, ",");

	*rest = name[len] ? name + len + 1 : NULL;
	while (len > 0 && strchr(" \t", name[len - 1]))
		len--;
	*ret_len = len;
	return name;
}

/* "sim", "roce,iwarp", "^ib". */
static int check_provider(const char *value)
{
	const char *rest = value + (value[0] == '^');
	int status = 0;

	while (rest && !status) {
		size_t len;
		const char *name = next_name(&rest, &len);

		status = check_installed(name, len, false);
	}
	return status;
}

static int check_transport(const char *value)
{
	return check_installed(value, strlen(value), true);
}

static int check_seed(const char *value)
{
	char *end;

	errno = 0;
	(void)strtoull(value, &end, 0);
	if (value[0] >= '0' && value[0] <= '9' && !*end && !errno)
		return 0;
	tool_error("--seed: '%s' is no number from 0 to 2^64 - 1", value);
	return STATUS_USAGE;
}

/* It becomes part of a file's name. */
static int check_name(const char *value)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz" "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789" "_-.";
	size_t len = strlen(value);

	if (len > 0 && len <= 64 && strspn(value, allowed) == len && value[0] != '.')
		return 0;
	tool_error("--%s: '%s' is no name: up to 64 letters, digits, '_', '-' and '.'",
		   checked->name, value);
	return STATUS_USAGE;
}

/* Can it be written, or made?  What is there stays as it is. */
static int check_path(const char *value)
{
	int fd;

	if (!value[0]) {
		tool_error("--%s: no file is named", checked->name);
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
	tool_error("--%s: %s: %m", checked->name, value);
	return STATUS_USAGE;
}

static int look_at_choices(void *arg, const struct polycm_setting_info *info)
{
	const char **ret_choices = arg;

	if (strcmp(info->name, checked->variable))
		return 0;
	*ret_choices = info->choices;
	return 1;
}

/* The setting itself knows what it may be: "a|b|c". */
static int check_choice(const char *value)
{
	struct installed all = { .wanted = "", .len = 0 };
	const char *choices = NULL, *choice;
	size_t len = strlen(value);
	int status = look(&all);

	free(all_names(&all));
	if (status)
		return status;
	polycm_settings_walk(look_at_choices, &choices);
	if (!choices)
		return 0;
	for (choice = choices; choice; choice = strchr(choice, '|')) {
		choice += *choice == '|';
		if (!strncmp(choice, value, len) && (choice[len] == '|' || !choice[len]))
			return 0;
	}
	tool_error("--%s: '%s' is not one of %s", checked->name, value, choices);
	return STATUS_USAGE;
}

/* Does a list of providers leave the simulator in? */
static bool names_simulator(const char *list)
{
	const char *rest = list[0] == '^' ? NULL : list;
	bool found = false;

	while (rest && !found) {
		size_t len;
		const char *name = next_name(&rest, &len);

		found = len == strlen(SIMULATOR) && !memcmp(name, SIMULATOR, len);
	}
	return found;
}

/* ------------------------------------------------------------------------
 * The environment.
 */

static int check_values(const char *const values[])
{
	struct hidden hidden;
	int status = 0;

	hide_settings(&hidden);
	for (size_t i = 0; i < NUM_OPTIONS && !status; i++) {
		checked = &run_options[i];
		if (values[i])
			status = checked->check(values[i]);
	}
	show_settings(&hidden);
	return status;
}

static int set_variables(const char *const values[])
{
	const char *providers = values[0], *simulators = NULL;
	size_t i;

	if (check_values(values))
		return STATUS_USAGE;
	for (i = 0; i < NUM_OPTIONS; i++)
		if (values[i] && is_simulators(&run_options[i]))
			simulators = run_options[i].name;
	if (simulators && providers && !names_simulator(providers)) {
		tool_error("--%s is for the simulator, which --provider %s leaves out",
			   simulators, providers);
		return STATUS_USAGE;
	}
	for (i = 0; i < NUM_OPTIONS; i++)
		if (values[i])
			setenv(run_options[i].variable, values[i], 1);
	if (simulators && !providers && !getenv(PROVIDER_VARIABLE))
		setenv(PROVIDER_VARIABLE, SIMULATOR, 1);
	return 0;
}

/* Ours comes first, so that its symbols win. */
static int set_preload(void)
{
	const char *library = place_library(), *given = getenv(PRELOAD_VARIABLE);
	char *both;
	size_t len;

	if (!library)
		return EXIT_FAILURE;
	if (strpbrk(library, ": ")) {
		tool_error("%s cannot be preloaded: its path has a blank or a colon", library);
		return EXIT_FAILURE;
	}
	len = strlen(library);
	if (!given || !given[0]) {
		setenv(PRELOAD_VARIABLE, library, 1);
	} else if (strncmp(given, library, len) || !strchr(": ", given[len])) {
		both = tool_printf("%s:%s", library, given);
		setenv(PRELOAD_VARIABLE, both, 1);
		free(both);
	}
	return 0;
}

static int become(char **command)
{
	int status;

	execvp(command[0], command);
	status = errno == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXECUTE;
	tool_error("%s: %m", command[0]);
	return status;
}

int run_command(int argc, char **argv)
{
	struct option options[NUM_OPTIONS + 2] = { 0 };
	const char *values[NUM_OPTIONS] = { NULL };
	int c, status;

	for (size_t i = 0; i < NUM_OPTIONS; i++)
		options[i] = (struct option){ run_options[i].name, required_argument, NULL, (int)i };
	options[NUM_OPTIONS] = (struct option){ "help", no_argument, NULL, 'h' };

	while ((c = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (c == 'h') {
			run_usage(stdout);
			return 0;
		}
		if (c == '?')
			return STATUS_USAGE;
		values[c] = optarg;
	}
	if (optind == argc) {
		tool_error("run: no command is given; 'polycm help run' tells more");
		return STATUS_USAGE;
	}
	status = set_variables(values);
	if (!status)
		status = set_preload();
	if (!status)
		status = become(argv + optind);
	return status;
}
