/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run_tcp.c - what a scenario says of TCP (tcp = true, rules about its segments), and that has no
 * effect: its user learns that before the run, by file and line.
 */
#include "config.h"

#include <libconfig.h>
#include <strings.h>

#include "run.h"

static bool is_of_tcp(const char *message)
{
	return message && (!strcasecmp(message, "tcp") || !strncasecmp(message, "TCP_", 4));
}

static void tell_rules(const char *file, const config_setting_t *faults, const char *why)
{
	const int num = faults && config_setting_is_list(faults) ? config_setting_length(faults) : 0;

	for (int i = 0; i < num; i++) {
		const config_setting_t *rule = config_setting_get_elem(faults, (unsigned int)i);
		const char *message = NULL, *action = "";

		(void)config_setting_lookup_string(rule, "message", &message);
		(void)config_setting_lookup_string(rule, "action", &action);
		if (is_of_tcp(message))
			tool_error("%s:%d: fault rule %d (%s %s) can never happen: %s", file,
				   config_setting_source_line(rule), i + 1, action, message, why);
	}
}

static void tell(const char *path, const config_t *config, bool several)
{
	const config_setting_t *tcp = config_lookup(config, "tcp");
	const bool is_wanted = tcp && config_setting_get_bool(tcp);
	const char *file = path;

	(void)config_lookup_string(config, "file", &file);
	if (is_wanted && !several)
		tool_error("%s:%d: tcp = true has no effect: it is for programs behind --on, or of the "
			   "scenario's 'programs'", file, config_setting_source_line(tcp));
	if (!is_wanted)
		tell_rules(file, config_lookup(config, "faults"), "TCP connections go over the links "
			   "with 'tcp = true' only");
}

void run_tell_tcp(const char *scenario, bool several)
{
	config_t config;

	if (!scenario || !*scenario)
		return;
	config_init(&config);
	if (config_read_file(&config, scenario) == CONFIG_TRUE)
		tell(scenario, &config, several);
	config_destroy(&config);
}
