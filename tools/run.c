/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run.c - polycm run: its options, each of which sets a variable of the
 * environment, and then it becomes the program.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "run.h"

const struct run_option run_options[RUN_NUM_OPTIONS] = {
	[RUN_PROVIDER] = { "provider", RUN_PROVIDER_VARIABLE, "NAMES",
		"providers that may carry connections: sim or roce,iwarp or trace;^ib",
		run_check_provider },
	[RUN_TRANSPORT] = { "transport", "POLYCM_SIM_TRANSPORT", "NAME",
		"what the simulated device is: roce, ib, iwarp or a vendor's", run_check_transport },
	[RUN_SEED] = { "seed", "POLYCM_SIM_SEED", "N",
		"seed of all randomness in the simulator", run_check_seed },
	[RUN_CLOCK] = { "clock", "POLYCM_SIM_CLOCK", "KIND",
		"virtual or real: the simulator's time", run_check_choice },
	[RUN_FABRIC] = { "fabric", "POLYCM_SIM_FABRIC", "NAME",
		"simulated network; processes of one user that name the same meet", run_check_name },
	[RUN_SCENARIO] = { "scenario", "POLYCM_SIM_SCENARIO", "FILE",
		"nodes and links of the network, and what goes wrong on it", run_check_file },
	[RUN_FAULT_FILE] = { "faults", "POLYCM_FAULT_SCENARIO", "FILE",
		"calls that fail and events that come late, on any provider", run_check_faults },
	[RUN_NODE] = { "node", "POLYCM_SIM_NODE", "NAME",
		"the scenario's node that COMMAND is on", run_check_node },
	[RUN_TRACE] = { "trace", "POLYCM_SIM_TRACE", "FILE",
		"write what happens in the simulator to FILE", run_check_path },
	[RUN_PCAP] = { "pcap", "POLYCM_SIM_PCAP", "FILE",
		"capture the simulator's packets into FILE, for tshark", run_check_capture },
	[RUN_LOG] = { "log", "POLYCM_LOG", "LEVEL",
		"error, warn, info, debug or trace, to standard error", run_check_choice },
};

void run_usage(FILE *to)
{
	size_t i;

	fputs("usage: polycm run [OPTION]... [--] COMMAND [ARGUMENT]...\n"
	      "\n"
	      "Starts COMMAND with libpolycm in place of librdmacm.\n"
	      "\n", to);
	for (i = 0; i < RUN_NUM_OPTIONS; i++) {
		char *option = tool_printf("--%s %s", run_options[i].name, run_options[i].argument);

		fprintf(to, "  %-18s%s\n", option, run_options[i].help);
		free(option);
	}
	fputs("\n"
	      "Each option sets a variable of the environment; see 'polycm info --config'.\n"
	      "The simulator's options (all but --provider, --faults and --log) mean\n"
	      "--provider sim too, unless --provider or POLYCM_PROVIDER names providers.\n"
	      "--faults puts the layer fault around the providers, whichever they are.\n"
	      "\n"
	      "Exit status: COMMAND's; 2: bad options, 126: COMMAND cannot be executed,\n"
	      "127: it was not found, 74: COMMAND's is 0, but the trace or the capture is cut.\n", to);
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
	struct option options[RUN_NUM_OPTIONS + 2] = { 0 };
	const char *values[RUN_NUM_OPTIONS] = { NULL };
	int c, status;

	for (size_t i = 0; i < RUN_NUM_OPTIONS; i++)
		options[i] = (struct option){ run_options[i].name, required_argument, NULL, (int)i };
	options[RUN_NUM_OPTIONS] = (struct option){ "help", no_argument, NULL, 'h' };

	while ((c = tool_option(argc, argv, "+:h", options)) != -1) {
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
	status = run_set_environment(values, argv[optind]);
	if (!status)
		status = become(argv + optind);
	return status;
}
