/* SPDX-License-Identifier: BSD-2-Clause */
/* system_start.c - polycm run with several programs: the folder of the run, and their start. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <libconfig.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run.h"
#include "system.h"
#include "turn/order.h"

#define PRELOAD_VARIABLE "LD_PRELOAD"

const char *system_value(const struct system *system, size_t option)
{
	const char *value = system->values[option];

	return value ? value : getenv(run_options[option].variable);
}

static int make_segment(struct system *system)
{
	char *path = tool_printf("%s/shm/" SYSTEM_SEGMENT, system->folder);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	const off_t size = sizeof(struct turn_segment);
	void *at = MAP_FAILED;

	/* All of it now: where there is no room, members would be killed later. */
	if (fd >= 0) {
		errno = posix_fallocate(fd, 0, system->records ? size : (off_t)offsetof(
						       struct turn_segment, record));
		/* For members that give up root's rights; who is none cannot reach the folder. */
		if (!errno && !geteuid() && fchmod(fd, 0666))
			errno = EACCES;
		if (!errno && !ftruncate(fd, size))
			at = mmap(NULL, sizeof(struct turn_segment), PROT_READ | PROT_WRITE,
				  MAP_SHARED, fd, 0);
	}
	if (at == MAP_FAILED)
		tool_error("run: %s: %m", path);
	else
		system->segment = at;
	if (fd >= 0)
		close(fd);
	free(path);
	return at == MAP_FAILED ? EXIT_FAILURE : 0;
}

/* Of those that are named, but for those of a program before it. */
static bool is_new_node(const struct system *system, size_t at)
{
	if (programs_is_on_all(system->programs[at].node))
		return false;
	for (size_t i = 0; i < at; i++)
		if (!strcmp(system->programs[i].node, system->programs[at].node))
			return false;
	return true;
}

/* In quotes, as libconfig has it. */
static void write_text(const char *text, FILE *to)
{
	fputc('"', to);
	for (; *text; text++) {
		if ((unsigned char)*text < ' ') {
			fprintf(to, "\\x%02x", *text);
			continue;
		}
		if (*text == '"' || *text == '\\')
			fputc('\\', to);
		fputc(*text, to);
	}
	fputc('"', to);
}

/* As one has that is a copy itself. */
static bool names_a_file(const char *scenario)
{
	config_t config;
	bool names;

	config_init(&config);
	names = config_read_file(&config, scenario) == CONFIG_TRUE && config_lookup(&config, "file");
	config_destroy(&config);
	return names;
}

static void write_name(const char *scenario, FILE *to)
{
	if (names_a_file(scenario))
		return;
	fputs("\nfile = ", to);
	write_text(scenario, to);
	fputs(";\n", to);
}

/* In front of the nodes, so that messages name its lines.  0 or -1. */
static int copy_scenario(const char *scenario, FILE *to)
{
	FILE *from = fopen(scenario, "re");
	char piece[4096];
	bool failed;
	size_t num;

	if (!from) {
		tool_error("run: %s: %m", scenario);
		return -1;
	}
	while ((num = fread(piece, 1, sizeof(piece), from)))
		fwrite(piece, 1, num, to);
	fputc('\n', to);
	write_name(scenario, to);
	failed = ferror(from) || ferror(to);
	if (failed)
		tool_error("run: the nodes cannot be added to %s: %m", scenario);
	fclose(from);
	return failed ? -1 : 0;
}

/* A node for each name, with one device: 10.0.0.1, 10.0.0.2, ... in the order of names. */
int system_write_scenario(const struct system *system, const char *transport, const char *path)
{
	const char *scenario = system_value(system, RUN_SCENARIO);
	FILE *file = fopen(path, "we");
	unsigned int num = 0;

	if (!file) {
		tool_error("run: %s: %m", path);
		return EXIT_FAILURE;
	}
	if (scenario && *scenario && copy_scenario(scenario, file))
		goto fail;
	fputs("nodes = (", file);
	for (size_t i = 0; i < system->num; i++) {
		if (!is_new_node(system, i))
			continue;
		num++;
		fprintf(file, "%s\n\t{ name = \"%s\"; devices = ( { transport = \"%s\"; "
			"addresses = \"10.0.0.%u/24\"; } ); }", num > 1 ? "," : "",
			system->programs[i].node, transport ? transport : "roce", num);
	}
	fputs("\n);\n", file);
	if (!fclose(file))
		return 0;
	tool_error("run: %s: %m", path);
	return EXIT_FAILURE;
fail:
	fclose(file);
	return EXIT_FAILURE;
}

/* What is no scenario is left to the simulator, which says what is wrong. */
static bool lacks_nodes(const char *scenario)
{
	config_t config;
	bool lacks;

	config_init(&config);
	lacks = config_read_file(&config, scenario) == CONFIG_TRUE &&
		!config_lookup(&config, "nodes");
	config_destroy(&config);
	return lacks;
}

bool system_needs_nodes(const struct system *system)
{
	const char *scenario = system_value(system, RUN_SCENARIO);

	for (size_t i = 0; i < system->num; i++)
		if (is_new_node(system, i))
			return !scenario || !*scenario || lacks_nodes(scenario);
	return false;
}

/* The names in its rules can only be checked together with the nodes. */
static int write_nodes(struct system *system)
{
	char *path = tool_printf("%s/shm/scenario", system->folder);
	int status = system_write_scenario(system, system_value(system, RUN_TRANSPORT), path);

	if (!status && system_value(system, RUN_SCENARIO))
		status = system_check_options(system, path);
	if (!status)
		system_read_nodes(system, path);
	free(path);
	return status;
}

int system_prepare(struct system *system)
{
	int status = system_folder_make(system);

	if (!status)
		status = make_segment(system);
	if (!status)
		status = system_output_prepare(system);
	system->has_own_nodes = system_needs_nodes(system);
	if (!status && system->has_own_nodes)
		status = write_nodes(system);
	else if (!status && system_value(system, RUN_SCENARIO))
		system_read_nodes(system, system_value(system, RUN_SCENARIO));
	return status;
}

/* Given, or else the scenario's, as the simulator has it. */
static uint64_t seed_of(const struct system *system)
{
	const char *given = system_value(system, RUN_SEED);
	const char *scenario = system_value(system, RUN_SCENARIO);
	long long seed = 1;
	config_t config;

	if (given)
		return strtoull(given, NULL, 0);
	config_init(&config);
	if (scenario && config_read_file(&config, scenario) == CONFIG_TRUE)
		(void)config_lookup_int64(&config, "seed", &seed);
	config_destroy(&config);
	return (uint64_t)seed;
}

/*
 * The simulator is loaded with the program: calls of the dynamic linker that come later are trapped,
 * and polycm explore would have them in each run.
 */
static void add_preload(void)
{
	char *simulator = place_plugin(RUN_SIMULATOR), *text;
	bool usable = simulator && !strpbrk(simulator, ": ");

	text = tool_printf("%s:%s%s%s", getenv(PRELOAD_VARIABLE), usable ? simulator : "",
			   usable ? ":" : "", place_turn());
	setenv(PRELOAD_VARIABLE, text, 1);
	free(text);
	free(simulator);
}

/* In its process: the environment of polycm run, with time from the system. */
static int set_environment(const struct system *system, const struct system_program *program,
			   uint32_t thread)
{
	const char *values[RUN_NUM_OPTIONS];
	char *path = tool_printf("%s/scenario", system->seen), *text;
	int status;

	memcpy(values, system->values, sizeof(values));
	values[RUN_NODE] = program->node;
	if (programs_is_on_all(program->node)) {
		values[RUN_NODE] = NULL;
		unsetenv(run_options[RUN_NODE].variable);
	}
	values[RUN_CLOCK] = "real";
	if (system->has_own_nodes) {
		values[RUN_SCENARIO] = path;
		values[RUN_TRANSPORT] = NULL;
	}
	/* What is noted takes other ways in the simulator: a run is the same when nobody reads it. */
	if (!system_value(system, RUN_TRACE))
		values[RUN_TRACE] = "/dev/null";
	/* For the launcher alone. */
	unsetenv(SYSTEM_RECORD_VARIABLE);
	unsetenv(SYSTEM_POINTS_VARIABLE);
	unsetenv(SYSTEM_FILES_VARIABLE);
	/* The folder of the fabric is this run's own, so that nothing of others is found there. */
	text = tool_printf("%s/run", system->seen);
	setenv("XDG_RUNTIME_DIR", text, 1);
	free(text);
	status = run_set_checked(values, program->command[0]);
	free(path);
	if (status)
		return status;
	run_use_one_arena();
	add_preload();
	text = tool_printf("%s/" SYSTEM_SEGMENT, system->seen);
	setenv(TURN_FILE_VARIABLE, text, 1);
	free(text);
	text = tool_printf("%u", thread);
	setenv(TURN_THREAD_VARIABLE, text, 1);
	free(text);
	system_again_set_environment();
	return 0;
}

void system_become(const struct system *system, const struct system_program *program,
		   uint32_t thread)
{
	int status = set_environment(system, program, thread);

	if (!status)
		status = system_output_take((size_t)(program - system->programs));
	if (!status) {
		/* kill(0, ...) is for the program's own processes. */
		setpgid(0, 0);
		tool_signals_as_usual();
		system_settle(system, program);
		execvp(program->command[0], program->command);
		status = errno == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXECUTE;
		tool_error("%s: %m", program->command[0]);
	}
	_exit(status);
}

/*
 * Members end with the launcher, however it ends: the kernel marks a word of its list of robust
 * futexes.
 */
static void announce(struct turn_segment *segment)
{
	struct robust_list_head *head = NULL;
	size_t len;

	atomic_store(&segment->launcher, (uint32_t)getpid());
	if (!syscall(SYS_get_robust_list, 0, &head, &len) && head)
		head->list_op_pending = (struct robust_list *)
			((char *)&segment->launcher - head->futex_offset);
}

/* Once, however many runs there are. */
static int check_programs(const struct system *system)
{
	static bool is_checked;
	int status = 0;

	if (is_checked)
		return 0;
	if (!place_turn())
		return EXIT_FAILURE;
	for (size_t i = 0; !status && i < system->num; i++)
		status = system_check_program(&system->programs[i]);
	is_checked = !status;
	return status;
}

static void begin_segment(const struct system *system, uint64_t seed)
{
	struct turn_segment *segment = system->segment;

	memset(segment, 0, offsetof(struct turn_segment, programs));
	segment->magic = TURN_MAGIC;
	segment->version = TURN_VERSION;
	segment->size = sizeof(*segment);
	turn_order_init(segment, seed);
	announce(segment);
	segment->until = TURN_BEGIN + system->until;
	segment->records = system->records;
	if (system->records)
		segment->record.from = system->record_from;
	system_show_hosts(system);
	segment->carries_tcp = system_carries_tcp(system);
	segment->carrier = (uint32_t)system->num - 1;
	if (system->killed)
		segment->stop_at = system->kill_at;
}

/* Its first thread has the number of the program. */
static void add_member(struct system *system, size_t i, uint64_t seed)
{
	struct system_program *program = &system->programs[i];
	struct turn_segment *segment = system->segment;
	uint32_t member = segment->num_members++;

	segment->members[member] = (struct turn_member){
		.life = TURN_STARTS, .parent = TURN_NOBODY, .number = ++segment->num_begun,
		.random = seed ^ (member + 1) * UINT64_C(0xd1342543de82ef95),
		.files = system_output_files(i),
	};
	program->member = member;
	program->thread = turn_order_add(segment, member);
	program->has_ended = program->has_waited = program->is_pending = false;
	program->status = 0;
}

static pid_t start(struct system *system, size_t i)
{
	pid_t pid;

	if (system_again_is_possible())
		return system_again_start(system, i);
	pid = fork();
	if (!pid)
		system_become(system, &system->programs[i], system->programs[i].thread);
	return pid;
}

int system_start(struct system *system)
{
	struct turn_segment *segment = system->segment;
	uint64_t seed = seed_of(system);
	int status = check_programs(system);

	if (status)
		return status;
	system->has_killed = false;
	begin_segment(system, seed);
	status = system_preempt_begin_record();
	if (!status)
		status = system_preempt_prepare(system, system_value(system, RUN_SCENARIO), seed);
	for (size_t i = 0; !status && i < system->num; i++)
		add_member(system, i, seed);
	if (!status && system_again_is_possible())
		status = system_again_load(system);
	for (size_t i = 0; !status && i < system->num; i++) {
		struct system_program *program = &system->programs[i];

		program->pid = start(system, i);
		if (program->pid < 0) {
			tool_error("run: %s cannot be started: %m", program->command[0]);
			status = EXIT_FAILURE;
		}
		segment->members[program->member].pid = (int32_t)program->pid;
		segment->threads[program->thread].tid = (int32_t)program->pid;
	}
	if (!status)
		system_set_begin(system);
	return status;
}

const struct system_program *system_program_of(const struct system *system, uint32_t member)
{
	const uint32_t program = member < TURN_MAX_MEMBERS ?
		system->segment->members[member].files.program : TURN_NOBODY;

	return program < system->num ? &system->programs[program] : NULL;
}
