/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system.c - polycm run with several programs, each behind --on NODE or --daemon NODE or in the
 * scenario file, in one virtual time.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"
#include "system.h"

#define ON "--on"
#define DAEMON "--daemon"
#define UNTIL_S 3600
#define MOST_UNTIL_S 1e9

static volatile pid_t launcher;
static volatile sig_atomic_t is_interrupted;
static const int signals[] = { SIGINT, SIGTERM, SIGHUP };	/* that stop it */

static bool begins_program(const char *word)
{
	return !strcmp(word, ON) || !strcmp(word, DAEMON);
}

static int no_command(const char *how, const char *node)
{
	tool_error("run: %s %s: no command is given", how, node);
	return STATUS_USAGE;
}

/* Messages, files of hosts and scenario files have it. */
bool system_is_name(const char *node)
{
	if (!*node || *node == '-')
		return false;
	for (; *node; node++)
		if ((unsigned char)*node <= ' ' || *node == 0x7f || strchr(",\"\\", *node))
			return false;
	return true;
}

/* Up to the next program; ret_num: so many words. */
static int add_program(struct system *system, const char *how, const char *node, char **words,
		       size_t *ret_num)
{
	struct system_program *program;
	size_t num = 0;

	while (words[num] && !begins_program(words[num]))
		num++;
	*ret_num = num;
	if (!system_is_name(node)) {
		tool_error("run: %s '%s': that is no name of a node", how, node);
		return STATUS_USAGE;
	}
	if (!num)
		return no_command(how, node);
	if (system->num == TURN_MAX_MEMBERS) {
		tool_error("run: more than %u programs", TURN_MAX_MEMBERS);
		return STATUS_USAGE;
	}
	system->programs = tool_realloc(system->programs, system->num + 1, sizeof(*program));
	program = &system->programs[system->num++];
	*program = (struct system_program){ .node = node, .is_daemon = !strcmp(how, DAEMON) };
	program->command = tool_realloc(NULL, num + 1, sizeof(char *));
	memcpy(program->command, words, num * sizeof(char *));
	program->command[num] = NULL;
	return 0;
}

static int check_ends(const struct system *system)
{
	for (size_t i = 0; i < system->num; i++)
		if (!system->programs[i].is_daemon)
			return 0;
	tool_error("run: all programs are behind --daemon: put one that ends behind --on");
	return STATUS_USAGE;
}

/* "--on NODE COMMAND [ARGUMENT]... --daemon NODE COMMAND ..." */
static int add_programs(struct system *system, char **argv, char **words)
{
	/* What getopt() read as one more node: nothing was behind the one before it. */
	for (char **word = argv + 1; word + 2 <= words; word++)
		if (begins_program(word[0]) && begins_program(word[2]))
			return no_command(word[0], word[1]);
	if (!begins_program(*words)) {
		tool_error("run: behind --on NODE and --daemon NODE comes the command: put other "
			   "options in front");
		return STATUS_USAGE;
	}
	while (*words) {
		const char *how = words[0], *node = words[1];
		size_t num;
		int status;

		if (!node) {
			tool_error("run: %s: no node is given", how);
			return STATUS_USAGE;
		}
		status = add_program(system, how, node, words + 2, &num);
		if (status)
			return status;
		words += 2 + num;
	}
	return check_ends(system);
}

static void add_killable(const struct system *system, size_t num, const char *name, char **all)
{
	for (size_t i = 0; i < num; i++)
		if (system_is_named(&system->programs[i], name))
			return;
	tool_append(all, "%s%s", *all ? ", " : "", name);
}

/* "server, client, one"; to be freed. */
static char *killable(const struct system *system)
{
	char *all = NULL;

	for (size_t i = 0; i < system->num; i++) {
		const struct system_program *program = &system->programs[i];

		add_killable(system, i, program->node, &all);
		if (program->name && strcmp(program->name, program->node) != 0)
			add_killable(system, i, program->name, &all);
	}
	return all;
}

/* "NODE@TURN" */
static int read_kill(struct system *system, const char *text)
{
	const char *at = text ? strrchr(text, '@') : NULL;
	char *rest, *all;

	if (!text)
		return 0;
	errno = 0;
	if (at)
		system->kill_at = strtoull(at + 1, &rest, 10);
	if (!at || *rest || errno || at[1] < '0' || at[1] > '9') {
		tool_error("run: --kill %s: expected NODE@N or NAME@N, with a node or the name of a "
			   "program", text);
		return STATUS_USAGE;
	}
	system->killed = tool_printf("%.*s", (int)(at - text), text);
	for (size_t i = 0; i < system->num; i++)
		if (system_is_named(&system->programs[i], system->killed))
			return 0;
	all = killable(system);
	tool_error("run: --kill %s: no program has that name or runs on a node of that name; there "
		   "are: %s", text, all);
	free(all);
	return STATUS_USAGE;
}

/* 0: it is no unit. */
static double unit_in_seconds(const char *name)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {
		{ "", 1 }, { "ns", 1e-9 }, { "us", 1e-6 }, { "ms", 1e-3 }, { "s", 1 },
		{ "min", 60 }, { "h", 3600 },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(name, units[i].name))
			return units[i].seconds;
	return 0;
}

/* "90", "5 s", "2min" */
static int read_until(struct system *system, const char *text)
{
	char *rest;
	double seconds = text ? strtod(text, &rest) : UNTIL_S;

	if (text)
		seconds *= rest > text ? unit_in_seconds(rest + strspn(rest, " ")) : 0;
	if (!(seconds > 0 && seconds <= MOST_UNTIL_S)) {
		tool_error("run: --until: '%s' is no time such as 90, '2 min' or 1h; a number alone "
			   "is of seconds", text);
		return STATUS_USAGE;
	}
	system->until = (uint64_t)(seconds * (double)TURN_SECOND);
	return 0;
}

/* Lists without it, but for those that name only what is left out. */
static bool excludes_simulator(const char *providers)
{
	const char *names = providers ? run_behind_layers(providers) : "";

	return *names && *names != '^' && !run_names(providers, RUN_SIMULATOR);
}

static int check_provider(const char *given)
{
	const char *providers = given ? given : getenv(RUN_PROVIDER_VARIABLE);

	if (!excludes_simulator(providers))
		return 0;
	if (given)
		tool_error("run: --on needs the simulator: leave --provider %s out", given);
	else
		tool_error("run: --on needs the simulator: unset " RUN_PROVIDER_VARIABLE " (%s)",
			   providers);
	return STATUS_USAGE;
}

static int check_values(const char *const values[])
{
	if (values[RUN_CLOCK] && strcmp(values[RUN_CLOCK], "virtual") != 0) {
		tool_error("run: several programs are run in virtual time: leave --clock %s out",
			   values[RUN_CLOCK]);
		return STATUS_USAGE;
	}
	if (values[RUN_NODE]) {
		tool_error("run: --on and --daemon name the nodes: leave --node out");
		return STATUS_USAGE;
	}
	/* What the seed decides is noted for one run. */
	if (values[RUN_VERIFY] && getenv(RUN_EXPLORE_VARIABLE)) {
		tool_error("run: --verify is not for polycm explore: leave it out");
		return STATUS_USAGE;
	}
	if (run_check_again(values))
		return STATUS_USAGE;
	return check_provider(values[RUN_PROVIDER]);
}

/* NULL: there is none. */
static const char *scenario_of(const struct system *system)
{
	const char *scenario = system_value(system, RUN_SCENARIO);

	return scenario && *scenario ? scenario : NULL;
}

/* In a process of its own, since one can check once. */
int system_check_options(const struct system *system, const char *scenario)
{
	const char *with[RUN_NUM_OPTIONS];
	int status;
	pid_t pid = fork();

	if (!pid) {
		memcpy(with, system->values, sizeof(with));
		with[RUN_SCENARIO] = scenario;
		_exit(run_check_values(with) ? STATUS_USAGE : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		tool_error("run: the options cannot be checked: %m");
		return EXIT_FAILURE;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

static int check_node(const struct system_program *program, const char *scenario)
{
	char *all = programs_is_on_all(program->node) ? NULL :
		system_nodes_without(scenario, program->node);

	if (!all)
		return 0;
	tool_error("run: %s %s: the scenario has no node of that name; there are: %s",
		   program->is_daemon ? DAEMON : ON, program->node, all);
	free(all);
	return STATUS_USAGE;
}

static int check_nodes(const struct system *system)
{
	/* Without nodes they are what the user calls them; a scenario is checked with them. */
	const char *scenario = system_needs_nodes(system) ? NULL : scenario_of(system);
	int status;

	if (system->from_file)
		return 0;
	status = system_check_options(system, scenario);
	for (size_t i = 0; !status && scenario && i < system->num; i++)
		status = check_node(&system->programs[i], scenario);
	return status;
}

static void forward(int signal)
{
	is_interrupted = true;
	if (launcher > 0)
		kill(launcher, signal);
}

/* Until they can be forwarded, and the launcher can take them. */
static void hold_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(how, &set, NULL);
}

/* The launcher is another process, for the namespaces; when it ends, all members do. */
static int await_launcher(void)
{
	struct sigaction action = { .sa_handler = forward };
	int status = 0;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (signals[i] != SIGHUP || !tool_outlives_terminal())
			sigaction(signals[i], &action, NULL);
	hold_signals(SIG_UNBLOCK);
	while (waitpid(launcher, &status, 0) < 0 && errno == EINTR)
		;
	launcher = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void launch(struct system *system)
{
	int status;

	system_catch_signals();
	hold_signals(SIG_UNBLOCK);
	system_check_carrier(system);
	system_again_find_out(system);
	do {
		status = system_start(system);
		if (!status)
			status = system_run(system);
		fflush(stdout);
	} while (system_again(system, status));
	_exit(status);
}

static int run_launcher(struct system *system)
{
	launcher = system_enter(system);
	if (!launcher)
		launch(system);
	if (launcher > 0)
		return await_launcher();
	tool_error("run: the launcher cannot be started: %m");
	return EXIT_FAILURE;
}

/* A process can have a namespace for its children once. */
static int run_apart(struct system *system)
{
	launcher = fork();
	if (!launcher) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(run_launcher(system));
	}
	if (launcher > 0)
		return await_launcher();
	tool_error("run: a process cannot be started: %m");
	return EXIT_FAILURE;
}

bool system_is_interrupted(void)
{
	return is_interrupted;
}

int system_run_once(struct system *system)
{
	int status;

	hold_signals(SIG_BLOCK);
	status = system_prepare(system);
	if (!status) {
		fflush(NULL);
		system_files_begin(system);
		status = system->records ? run_apart(system) : run_launcher(system);
		system_files_end(system);
	}
	if (system->folder)
		system_folder_remove(system->folder);
	return status;
}

int system_write_nodes(char **words, const char *scenario, const char *transport, const char *path,
		       bool *ret_written)
{
	const char *const values[RUN_NUM_VALUES] = { [RUN_SCENARIO] = scenario };
	struct system system = { .values = values };
	int status = run_check_again(values);

	if (!status && *words)
		status = add_programs(&system, words, words);
	else if (!status)
		system_read_programs(&system, scenario);
	*ret_written = !status && system_needs_nodes(&system);
	return *ret_written ? system_write_scenario(&system, transport, path) : status;
}

int system_check_nodes(char **words, const char *scenario)
{
	const char *values[RUN_NUM_VALUES] = { [RUN_SCENARIO] = scenario };
	struct system system = { .values = values };
	int status = add_programs(&system, words, words);

	return status ? status : check_nodes(&system);
}

static int read_programs(struct system *system)
{
	const char *file = system_value(system, RUN_SCENARIO);
	int status = 0;

	system_read_programs(system, file);
	/* Without nodes it is checked with those that the programs name. */
	if (!system_needs_nodes(system))
		status = system_check_options(system, scenario_of(system));
	if (status)
		return status;
	system->from_file = true;
	if (system->num)
		return 0;
	tool_error("run: no command is given, and %s has no programs", file);
	return STATUS_USAGE;
}

int run_system(const char *const values[RUN_NUM_VALUES], char **argv, char **words)
{
	struct system system = { .values = values };
	int status;

	tool_prepare_children();
	system_again_begin();
	status = check_values(values);
	if (!status)
		status = words ? add_programs(&system, argv, words) : read_programs(&system);
	if (!status)
		status = read_kill(&system, values[RUN_KILL]);
	if (!status)
		status = read_until(&system, values[RUN_UNTIL]);
	if (!status)
		status = check_nodes(&system);
	if (!status)
		status = system_add_carrier(&system);
	if (status)
		return status;
	/* polycm explore has said it. */
	if (!getenv(SYSTEM_RECORD_VARIABLE))
		run_tell_tcp(scenario_of(&system), true);
	return values[RUN_VERIFY] ? system_verify(&system) : system_run_once(&system);
}
