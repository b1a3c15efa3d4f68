/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario_programs.c - scenario files: the programs that polycm run starts.  The simulator does
 * nothing with them, but it is what reads the file before they are started: so it checks them.
 */
#include "config.h"

#include <string.h>

#include "include/programs.h"
#include "providers/soft/fabric/build.h"
#include "explore.h"
#include "scenario_internal.h"

struct program_text {
	struct programs_entry entry;
	config_setting_t *command, *expect;
	bool agree;
};

static const struct scenario_member program_members[] = {
	SCENARIO_MEMBER_AS("name", struct program_text, entry.name, SCENARIO_TEXT),
	SCENARIO_MEMBER_AS("node", struct program_text, entry.node, SCENARIO_TEXT),
	SCENARIO_MEMBER_AS("after", struct program_text, entry.after, SCENARIO_TEXT),
	SCENARIO_MEMBER_AS("daemon", struct program_text, entry.is_daemon, SCENARIO_FLAG),
	SCENARIO_MEMBER(struct program_text, command, SCENARIO_ANY),
	SCENARIO_MEMBER(struct program_text, expect, SCENARIO_ANY),
	SCENARIO_MEMBER(struct program_text, agree, SCENARIO_FLAG),
};

struct programs {
	struct programs_entry entries[PROGRAMS_MAX];
	uint32_t num, num_agree, num_daemons;
	bool any_last;
};

static int check_name(const struct scenario *scenario, const config_setting_t *group,
		      const struct programs *programs, const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz" "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789" "_-.";
	const config_setting_t *at = config_setting_get_member(group, "name");
	const size_t len = strlen(name);

	if (!len || len > PROGRAMS_MAX_NAME || strspn(name, allowed) != len ||
	    !strcmp(name, PROGRAMS_ALL))
		return scenario_error(scenario, at, "%s: expected up to %u letters, digits, '_', '-' "
				      "and '.', and not \"" PROGRAMS_ALL "\"", scenario_show(at),
				      PROGRAMS_MAX_NAME);
	for (uint32_t i = 0; i < programs->num; i++)
		if (!strcmp(programs_label(&programs->entries[i]), name))
			return scenario_error(scenario, at, "%s: another program has that name",
					      scenario_show(at));
	return 0;
}

/*
 * polycm run gives a file those that its programs name.  Faults of a file without nodes are each
 * process's own, so that runs could not be repeated.
 */
static bool has_nodes(const struct scenario *scenario)
{
	const config_setting_t *nodes = config_lookup(&scenario->config, "nodes");

	return nodes && config_setting_length(nodes);
}

static int check_node(const struct scenario *scenario, const config_setting_t *group,
		      const char *node)
{
	const config_setting_t *at = config_setting_get_member(group, "node");
	char names[200];

	if (!node)
		return scenario_error(scenario, group, "a program needs a node");
	/* Without nodes the whole list is refused, but not before what else is wrong. */
	if (programs_is_on_all(node) || !has_nodes(scenario) || sim_node_by_name(node))
		return 0;
	sim_list_nodes(names, sizeof(names));
	return scenario_error(scenario, at, "%s: expected \"" PROGRAMS_ALL "\" or the name of "
			      "a node: %s", scenario_show(at), names);
}

static int check_words(const struct scenario *scenario, const config_setting_t *command)
{
	const char *rest = config_setting_get_string(command);
	int len, num = 0;

	while ((len = programs_word(&rest, NULL)) >= 0)
		num++;
	if (len == PROGRAMS_QUOTE)
		return scenario_error(scenario, command, "%s: a quote does not end",
				      scenario_show(command));
	if (len == PROGRAMS_SHELL)
		return scenario_error(scenario, command, "%s: '%c' is for a shell, and none reads "
				      "this: quote it, or begin with sh -c", scenario_show(command),
				      rest[strcspn(rest, "|&;<>$`")]);
	return num ? 0 : scenario_error(scenario, command, "%s: no program is named",
					scenario_show(command));
}

/* Words in one text, or a text for each word. */
static int check_command(const struct scenario *scenario, const config_setting_t *group,
			 const config_setting_t *command)
{
	bool fits;
	int num;

	if (!command)
		return scenario_error(scenario, group, "a program needs a command");
	if (config_setting_get_string(command))
		return check_words(scenario, command);
	num = config_setting_is_aggregate(command) && !config_setting_is_group(command) ?
	      config_setting_length(command) : 0;
	fits = num > 0;
	for (int i = 0; i < num; i++)
		fits = fits && config_setting_get_string_elem(command, i);
	return fits ? 0 : scenario_error(scenario, command, "%s: expected text in \"quotes\", or a "
					 "list of texts", scenario_show(command));
}

static bool is_status(const config_setting_t *setting)
{
	return config_setting_type(setting) == CONFIG_TYPE_INT &&
	       config_setting_get_int(setting) >= 0 && config_setting_get_int(setting) <= 255;
}

static int check_expect(const struct scenario *scenario, const config_setting_t *expect)
{
	const bool several = config_setting_is_aggregate(expect) && !config_setting_is_group(expect);
	const int num = several ? config_setting_length(expect) : 0;
	bool fits = several ? num > 0 : is_status(expect);

	for (int i = 0; i < num; i++)
		fits = fits && is_status(config_setting_get_elem(expect, (unsigned int)i));
	return fits ? 0 : scenario_error(scenario, expect, "%s: expected exit statuses from 0 to 255, "
					 "such as [ 0, 1 ]", scenario_show(expect));
}

static int check_daemon(const struct scenario *scenario, const config_setting_t *group,
			const struct program_text *text)
{
	if (!text->entry.is_daemon)
		return 0;
	if (text->expect)
		return scenario_error(scenario, group, "a daemon is ended: `expect' is for a program "
				      "that ends");
	if (programs_is_last(&text->entry))
		return scenario_error(scenario, group, "a daemon cannot be the last program: it does "
				      "not end");
	return 0;
}

static int check_program(const struct scenario *scenario, const config_setting_t *group, void *arg)
{
	struct programs *programs = arg;
	struct program_text text = { .command = NULL };
	int r;

	if (programs->num == PROGRAMS_MAX)
		return scenario_error(scenario, group, "more than %u programs", PROGRAMS_MAX);
	r = scenario_read_group(scenario, group, "a program", program_members, &text);
	if (!r && text.entry.name)
		r = check_name(scenario, group, programs, text.entry.name);
	if (!r)
		r = check_node(scenario, group, text.entry.node);
	if (!r)
		r = check_command(scenario, group, text.command);
	if (!r && text.expect)
		r = check_expect(scenario, text.expect);
	if (!r)
		r = check_daemon(scenario, group, &text);
	if (r < 0)
		return r;
	programs->entries[programs->num++] = text.entry;
	programs->num_agree += text.agree;
	programs->num_daemons += text.entry.is_daemon;
	programs->any_last |= programs_is_last(&text.entry);
	return 0;
}

static int check_order(const struct scenario *scenario, const config_setting_t *list,
		       const struct programs *programs)
{
	struct programs_begin begins[PROGRAMS_MAX];
	const config_setting_t *at;
	int i;

	for (uint32_t j = 0; j < programs->num; j++) {
		at = config_setting_get_member(config_setting_get_elem(list, j), "after");
		if (!programs_begin(programs->entries, programs->num, j, &begins[j]))
			return scenario_error(scenario, at, "%s: expected another program or its "
					      "node, \"NAME ended\", a time such as \"2 s\", or \""
					      PROGRAMS_ALL "\"", scenario_show(at));
		for (uint32_t k = 0; begins[j].when == PROGRAMS_END && k < programs->num; k++)
			if (begins[j].those >> k & 1 && programs->entries[k].is_daemon)
				return scenario_error(scenario, at, "%s: %s is a daemon, which ends "
						      "after all others", scenario_show(at),
						      programs_label(&programs->entries[k]));
	}
	i = programs_circle(begins, programs->num);
	if (i < 0)
		return 0;
	at = config_setting_get_member(config_setting_get_elem(list, (unsigned int)i), "after");
	return scenario_error(scenario, at, "%s: these programs wait for each other, and none begins",
			      scenario_show(at));
}

int scenario_check_programs(const struct scenario *scenario, const config_setting_t *list)
{
	struct programs programs = { .num = 0 };
	int r;

	if (!config_setting_length(list))
		return 0;
	r = scenario_for_each(scenario, list, check_program, &programs);
	if (r < 0)
		return r;
	if (programs.num_daemons == programs.num)
		return scenario_error(scenario, list, "all programs are daemons: one must end");
	if (programs.num_agree == 1)
		return scenario_error(scenario, list, "one program only has agree = true: with whom?");
	r = check_order(scenario, list, &programs);
	if (!r && programs.any_last)
		r = sim_explore_check_pause(scenario, list);
	if (!r && !has_nodes(scenario))
		return scenario_error(scenario, list, "programs run on nodes of the file, which has "
				      "none: add nodes = ( { name = \"server\"; devices = "
				      "( { addresses = \"10.0.0.1/24\"; } ); } );");
	return r;
}
