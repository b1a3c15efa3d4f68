/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_preempt.c - where threads of a system are held up although they could go on: as the seed
 * decides for polycm explore, or as the list `preemptions' of a scenario file says, which repeats it.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <libconfig.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "include/programs.h"
#include "system.h"
#include "turn/order.h"
#include "turn/points.h"
#include "turn/preempt.h"

#define MANY 128u		/* of each program, on average, if it were chosen */
#define SEED_MIX UINT64_C(0x8cb92ba72f3d8dd7)	/* decisions apart from those of the order */

static const struct {
	const char *name;
	uint32_t call;
} names[] = {
	{ "lock", TURN_CALL_POINT }, { "futex", SYS_futex },
	{ "read", SYS_read }, { "readv", SYS_readv }, { "recv", SYS_recvfrom },
	{ "recvmsg", SYS_recvmsg }, { "write", SYS_write }, { "writev", SYS_writev },
	{ "send", SYS_sendto }, { "sendmsg", SYS_sendmsg }, { "socket", SYS_socket },
	{ "bind", SYS_bind }, { "listen", SYS_listen }, { "accept", SYS_accept },
	{ "accept", SYS_accept4 }, { "connect", SYS_connect }, { "shutdown", SYS_shutdown },
	{ "close", SYS_close }, { "poll", SYS_poll }, { "poll", SYS_ppoll },
	{ "select", SYS_select }, { "select", SYS_pselect6 }, { "epoll_wait", SYS_epoll_wait },
	{ "epoll_wait", SYS_epoll_pwait }, { "epoll_ctl", SYS_epoll_ctl }, { "wait", SYS_wait4 },
	{ "wait", SYS_waitid }, { "clone", SYS_clone }, { "clone", SYS_clone3 },
	{ "fork", SYS_fork }, { "exec", SYS_execve }, { "exit", SYS_exit },
	{ "exit", SYS_exit_group }, { "sleep", SYS_nanosleep }, { "sleep", SYS_clock_nanosleep },
	{ "kill", SYS_kill }, { "kill", SYS_tgkill }, { "rename", SYS_rename },
	{ "unlink", SYS_unlink },
};

static const char *name_of(uint32_t call)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].call == call)
			return names[i].name;
	return "call";
}

/* ------------------------------------------------------------------------
 * Those that a scenario file gives, as they are written below.
 */

static bool read_number(const config_setting_t *group, const char *name, uint64_t *ret)
{
	const config_setting_t *member = config_setting_is_group(group) ?
		config_setting_get_member(group, name) : NULL;
	long long value = member ? config_setting_get_int64(member) : 0;

	*ret = (uint64_t)value;
	return member && value >= 0;
}

static bool read_delay(const config_setting_t *group, uint64_t *ret_ns)
{
	const char *text = NULL;

	return config_setting_lookup_string(group, "delay", &text) && programs_time(text, ret_ns) &&
	       *ret_ns;
}

static int refuse(const config_setting_t *group, const char *why)
{
	tool_error("run: %s:%u: a preemption %s", config_setting_source_file(group),
		   config_setting_source_line(group), why);
	return STATUS_USAGE;
}

static int read_one(struct turn_segment *segment, const config_setting_t *group)
{
	struct turn_preemption given = { 0 };
	uint64_t process, thread;
	bool has_call = read_number(group, "call", &given.point.call);
	bool has_lock = read_number(group, "lock", &given.point.lock);

	if (!config_setting_is_group(group) || !read_number(group, "process", &process) ||
	    !process || process > UINT32_MAX || !read_number(group, "thread", &thread) ||
	    !thread || thread > UINT32_MAX || !read_delay(group, &given.ns) ||
	    !(has_call || has_lock))
		return refuse(group, "needs a process and a thread, numbers from 1 on, call or lock, "
			      "and a delay such as \"10 ms\"");
	given.process = (uint32_t)process;
	given.thread = (uint32_t)thread;
	if (!turn_preempt_give(segment, &given))
		return refuse(group, "is too many: there can be 256");
	return 0;
}

static int read_all(struct turn_segment *segment, const config_t *config)
{
	const config_setting_t *list = config_lookup(config, "preemptions");
	int status = 0;

	for (int i = 0; !status && list && i < config_setting_length(list); i++)
		status = read_one(segment, config_setting_get_elem(list, (unsigned int)i));
	return status;
}

/* ------------------------------------------------------------------------
 * Those that the seed decides.
 */

/*
 * A quarter of the seeds has none, so that what needs only faults is found without them; another one
 * has one or a few anywhere.  The others make one program slow: it loses most races that it can lose.
 */
static const unsigned int numbers[] = { 0, 0, 1, 8, MANY, MANY, MANY, MANY };

/* The last ones run when nothing goes wrong any more, and the carrier is none of the user's. */
static bool may_be_slow(const struct system_program *program)
{
	return program->begin.when != PROGRAMS_LAST && !program->is_carrier;
}

static uint32_t choose_program(const struct system *system, uint64_t *state)
{
	uint32_t num = 0, program = 0;
	uint64_t place;

	for (size_t i = 0; i < system->num; i++)
		num += may_be_slow(&system->programs[i]);
	place = num ? turn_order_draw(state) % num : 0;
	while (program < system->num && (!may_be_slow(&system->programs[program]) || place--))
		program++;
	return program;
}

/* Whose points can be chosen. */
static uint32_t num_before_last(const struct system *system)
{
	uint32_t num = 0;

	for (size_t i = 0; i < system->num; i++)
		num += system->programs[i].begin.when != PROGRAMS_LAST;
	return num;
}

static void choose(const struct system *system, const config_t *config, uint64_t seed,
		   const char *points)
{
	uint64_t state = seed ^ SEED_MIX;
	struct turn_choice choice = {
		.points = strtoull(points, NULL, 10), .program = TURN_NOBODY,
	};
	int most = TURN_MAX_CHOSEN;

	(void)config_lookup_int(config, "explore.preemptions", &most);
	choice.num = numbers[turn_order_draw(&state) % (sizeof(numbers) / sizeof(numbers[0]))];
	if (choice.num == MANY) {
		choice.program = choose_program(system, &state);
		choice.num *= num_before_last(system);
	}
	if (most >= 0 && choice.num > (unsigned int)most)
		choice.num = (unsigned int)most;
	choice.seed = state;
	turn_preempt_choose(system->segment, &choice);
}

static uint64_t points_at_end;	/* of the choice; TURN_NEVER: it has not ended */

void system_preempt_end_choice(const struct system *system)
{
	turn_preempt_end_choice(system->segment);
	if (points_at_end == TURN_NEVER)
		points_at_end = system->segment->points;
}

int system_preempt_prepare(const struct system *system, const char *scenario, uint64_t seed)
{
	const char *points = getenv(SYSTEM_POINTS_VARIABLE);
	config_t config;
	int status = 0;

	points_at_end = TURN_NEVER;
	config_init(&config);
	/* Errors of the file are reported where the network is made of it. */
	if (scenario && config_read_file(&config, scenario) == CONFIG_TRUE)
		status = read_all(system->segment, &config);
	if (!status && points)
		choose(system, &config, seed, points);
	config_destroy(&config);
	return status;
}

/* ------------------------------------------------------------------------
 * What happened.
 */

static void record_one(const struct system *system, const struct turn_preemption *preemption,
		       FILE *file)
{
	const struct system_program *program = preemption->program < system->num ?
		&system->programs[preemption->program] : NULL;
	char delay[PROGRAMS_TIME_LEN];

	programs_write_time(preemption->ns, delay, sizeof(delay));
	fprintf(file, "{ process = %u; thread = %u; call = %llu; ", preemption->process,
		preemption->thread, (unsigned long long)preemption->point.call);
	if (preemption->point.lock)
		fprintf(file, "lock = %llu; ", (unsigned long long)preemption->point.lock);
	fprintf(file, "delay = \"%s\"; node = \"%s\"; before = \"%s\"; }\n", delay,
		program ? program->node : "", name_of(preemption->call));
}

static int record = -1;

static int cannot_record(const char *path)
{
	tool_error("run: %s: %m", path);
	return STATUS_CUT;
}

int system_preempt_begin_record(void)
{
	const char *path = getenv(SYSTEM_RECORD_VARIABLE);

	if (record >= 0)
		close(record);
	record = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
	return path && record < 0 ? cannot_record(path) : 0;
}

int system_preempt_record(const struct system *system)
{
	const struct turn_segment *segment = system->segment;
	const bool has_end = points_at_end != TURN_NEVER;
	FILE *file;

	if (record < 0)
		return 0;
	file = fdopen(record, "a");
	if (!file)
		goto fail;
	record = -1;
	for (uint32_t i = 0; i < segment->num_preempted; i++)
		record_one(system, &segment->preempted[i], file);
	fprintf(file, SYSTEM_POINTS_LINE "%llu\n",
		(unsigned long long)(has_end ? points_at_end : segment->points));
	if (!fclose(file))
		return 0;
fail:
	return cannot_record(getenv(SYSTEM_RECORD_VARIABLE));
}
