/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_programs.c - the programs of a scenario file, as a system.  The simulator checks the file,
 * and says what is wrong with it; a file without nodes is checked with those that programs name.
 */
#include "config.h"

#include <libconfig.h>
#include <stdlib.h>
#include <string.h>

#include "include/programs.h"
#include "system.h"

static char *text_of(const config_setting_t *group, const char *name)
{
	const char *text;

	return config_setting_lookup_string(group, name, &text) ? tool_strdup(text) : NULL;
}

static bool flag_of(const config_setting_t *group, const char *name)
{
	int flag = 0;

	return config_setting_lookup_bool(group, name, &flag) && flag;
}

static void add_word(struct system_program *program, size_t *num, char *word)
{
	program->command = tool_realloc(program->command, *num + 2, sizeof(char *));
	program->command[(*num)++] = word;
	program->command[*num] = NULL;
}

static void read_command(struct system_program *program, const config_setting_t *command)
{
	const char *rest = config_setting_get_string(command);
	size_t num = 0;

	for (int i = 0; !rest && i < config_setting_length(command); i++) {
		const char *text = config_setting_get_string_elem(command, i);

		if (text)
			add_word(program, &num, tool_strdup(text));
	}
	for (char *word; rest; add_word(program, &num, word)) {
		word = tool_strdup(rest);
		if (programs_word(&rest, word) >= 0)
			continue;
		free(word);
		break;
	}
}

static void read_expect(struct system_program *program, const config_setting_t *expect)
{
	const bool several = config_setting_is_aggregate(expect);
	const int num = several ? config_setting_length(expect) : 1;

	program->expect = tool_realloc(NULL, (size_t)num, sizeof(int));
	for (int i = 0; i < num; i++)
		program->expect[i] = several ? config_setting_get_int_elem(expect, i) :
					       config_setting_get_int(expect);
	program->num_expect = (size_t)num;
}

static void add_program(struct system *system, const config_setting_t *group,
			struct programs_entry *ret_entry)
{
	const config_setting_t *command = config_setting_get_member(group, "command");
	const config_setting_t *expect = config_setting_get_member(group, "expect");
	struct system_program *program;
	const char *node;

	if (!config_setting_lookup_string(group, "node", &node) || !system_is_name(node))
		return;
	system->programs = tool_realloc(system->programs, system->num + 1, sizeof(*program));
	program = &system->programs[system->num++];
	*program = (struct system_program){
		.node = tool_strdup(node),
		.name = text_of(group, "name"),
		.after = text_of(group, "after"),
		.is_daemon = flag_of(group, "daemon"),
		.agree = flag_of(group, "agree"),
	};
	if (command)
		read_command(program, command);
	/* Of its node the others may speak, until the simulator refuses it. */
	if (!program->command) {
		program->command = tool_realloc(NULL, 1, sizeof(char *));
		program->command[0] = NULL;
	}
	if (expect)
		read_expect(program, expect);
	*ret_entry = (struct programs_entry){
		.name = program->name, .node = program->node, .after = program->after,
		.is_daemon = program->is_daemon,
	};
}

static void read_programs(struct system *system, const config_setting_t *list)
{
	struct programs_entry entries[PROGRAMS_MAX];

	for (int i = 0; system->num < PROGRAMS_MAX && i < config_setting_length(list); i++) {
		const config_setting_t *group = config_setting_get_elem(list, (unsigned int)i);

		if (config_setting_is_group(group))
			add_program(system, group, &entries[system->num]);
	}
	for (uint32_t i = 0; i < system->num; i++)
		programs_begin(entries, (uint32_t)system->num, i, &system->programs[i].begin);
}

/* The list, which may be empty; NULL: there is none. */
static const config_setting_t *programs_of(config_t *config, const char *path)
{
	const config_setting_t *list;

	if (!path || config_read_file(config, path) != CONFIG_TRUE)
		return NULL;
	list = config_lookup(config, "programs");
	return list && config_setting_is_list(list) ? list : NULL;
}

bool system_has_programs(const char *path)
{
	const config_setting_t *list;
	config_t config;
	bool has;

	config_init(&config);
	list = programs_of(&config, path);
	has = list && config_setting_length(list);
	config_destroy(&config);
	return has;
}

void system_read_programs(struct system *system, const char *path)
{
	const config_setting_t *list;
	config_t config;

	config_init(&config);
	list = programs_of(&config, path);
	if (list)
		read_programs(system, list);
	config_destroy(&config);
}
