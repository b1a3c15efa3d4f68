/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_carrier.c - in a scenario with tcp = true, one more program: the one that carries the TCP
 * connections of the others over the simulated network (carry.c).
 */
#include "config.h"

#include <libconfig.h>

#include "run.h"
#include "system.h"

/* The simulator has checked it. */
static bool is_wanted(const char *scenario)
{
	config_t config;
	int wanted = false;

	config_init(&config);
	if (config_read_file(&config, scenario) == CONFIG_TRUE)
		(void)config_lookup_bool(&config, "tcp", &wanted);
	config_destroy(&config);
	return wanted;
}

bool system_has_carrier(const struct system *system)
{
	return system->programs[system->num - 1].is_carrier;
}

bool system_carries_tcp(const struct system *system)
{
	return system_has_carrier(system) && system->has_network;
}

void system_check_carrier(const struct system *system)
{
	if (system_has_carrier(system) && !system->has_network)
		tool_error("run: TCP connections do not go over the scenario's links (tcp = true): "
			   "there is no network of its own");
}

int system_add_carrier(struct system *system)
{
	const char *scenario = system_value(system, RUN_SCENARIO);
	struct system_program *carrier;

	if (!scenario || !*scenario || !is_wanted(scenario))
		return 0;
	if (system->num == TURN_MAX_MEMBERS) {
		tool_error("run: with tcp = true there can be %u programs, not more",
			   TURN_MAX_MEMBERS - 1);
		return STATUS_USAGE;
	}
	system->programs = tool_realloc(system->programs, system->num + 1, sizeof(*carrier));
	carrier = &system->programs[system->num++];
	*carrier = (struct system_program){
		.node = PROGRAMS_ALL,
		.name = "network",
		.command = tool_realloc(NULL, 3, sizeof(char *)),
		.is_daemon = true,
		.is_carrier = true,
		.begin = { .when = PROGRAMS_AT },
	};
	carrier->command[0] = place_command();
	carrier->command[1] = tool_strdup("carry");
	carrier->command[2] = NULL;
	return 0;
}
