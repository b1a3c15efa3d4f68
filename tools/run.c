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
		"providers to use: sim or ofi or roce,iwarp or trace;^ib",
		run_check_provider },
	[RUN_TRANSPORT] = { "transport", "POLYCM_SIM_TRANSPORT", "NAME",
		"transport of the device: roce, ib, iwarp or a vendor's", run_check_transport },
	[RUN_DEVICE] = { "device", "POLYCM_SIM_DEVICE", "NAME",
		"what the device looks like: connectx-6, ..., or ./FILE",
		run_check_device },
	[RUN_SEED] = { "seed", "POLYCM_SIM_SEED", "N",
		"seed of all random numbers in the simulator", run_check_seed },
	[RUN_CLOCK] = { "clock", "POLYCM_SIM_CLOCK", "KIND",
		"virtual or real: the simulator's time", run_check_choice },
	[RUN_FABRIC] = { "fabric", "POLYCM_SIM_FABRIC", "NAME",
		"name of the simulated network; processes share it by name", run_check_name },
	[RUN_SCENARIO] = { "scenario", "POLYCM_SIM_SCENARIO", "FILE",
		"nodes, links and faults of the simulated network", run_check_file },
	[RUN_FAULT_FILE] = { "faults", "POLYCM_FAULT_SCENARIO", "FILE",
		"make calls fail and events come late, on any provider", run_check_faults },
	[RUN_NODE] = { "node", "POLYCM_SIM_NODE", "NAME",
		"the scenario's node that COMMAND runs on", run_check_node },
	[RUN_TRACE] = { "trace", "POLYCM_SIM_TRACE", "FILE",
		"write a trace of the simulator to FILE", run_check_path },
	[RUN_PCAP] = { "pcap", "POLYCM_SIM_PCAP", "FILE",
		"capture the simulator's packets into FILE, for tshark", run_check_capture },
	[RUN_LOG] = { "log", "POLYCM_LOG", "LEVEL",
		"log level: error, warn, info, debug or trace", run_check_choice },
};

void run_usage(FILE *to)
{
	size_t i;

	fputs("usage: polycm run [OPTION]... [--] COMMAND [ARGUMENT]...\n"
	      "       polycm run [OPTION]... {--on | --daemon} NODE COMMAND [ARGUMENT]...\n"
	      "                  {--on | --daemon} NODE COMMAND ...\n"
	      "       polycm run [OPTION]... --scenario FILE\n"
	      "\n"
	      "Starts COMMAND with libpolycm in place of librdmacm. Without COMMAND it starts\n"
	      "the programs of the scenario file.\n"
	      "\n", to);
	for (i = 0; i < RUN_NUM_OPTIONS; i++) {
		char *option = tool_printf("--%s %s", run_options[i].name, run_options[i].argument);

		fprintf(to, "  %-18s%s\n", option, run_options[i].help);
		free(option);
	}
	fputs("  --sockets         make COMMAND's sockets rsockets\n"
	      "  --on NODE         COMMAND runs on NODE, in one virtual time with all others that\n"
	      "                    are given so; without --scenario, nodes get the addresses\n"
	      "                    10.0.0.1, 10.0.0.2, ... in the order in which they are named;\n"
	      "                    NODE 'all': COMMAND sees the devices of all nodes\n"
	      "  --daemon NODE     the same; COMMAND need not end: it gets SIGTERM when all that\n"
	      "                    are behind --on have ended\n"
	      "  --until TIME      end them at that virtual time: seconds, or as in '2 min' (1 h)\n"
	      "  --kill NODE@N     kill what runs on NODE, or the program of that name, before the\n"
	      "                    N-th turn; --log info tells how many turns there were\n"
	      "  --verify          run them twice, and tell the first turn that differs\n"
	      "  --own-files       what they write to files only this run sees, and is not kept\n"
	      "\n"
	      "Each other option sets an environment variable; see 'polycm info --config'.\n"
	      "The simulator's options (all but --provider, --faults, --log and --sockets)\n"
	      "imply --provider sim, unless --provider or POLYCM_PROVIDER names providers.\n"
	      "With --provider ofi, --transport, --trace and --pcap are that provider's.\n"
	      "--faults puts the layer fault around any providers.\n"
	      "\n"
	      "Exit status: that of COMMAND; 2: bad options, 126: COMMAND cannot be executed,\n"
	      "127: it was not found, 74: COMMAND exited with 0, but the trace, the capture or\n"
	      "the output is not complete. Several programs: the first status that is not 0;\n"
	      "75: all wait, and nobody can end it, 76: --verify found that the second run\n"
	      "differs.\n", to);
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
	struct option options[RUN_NUM_VALUES + 2] = { 0 };
	const char *values[RUN_NUM_VALUES] = { NULL };
	int status;

	for (size_t i = 0; i < RUN_NUM_OPTIONS; i++)
		options[i] = (struct option){ run_options[i].name, required_argument, NULL, (int)i };
	options[RUN_SOCKETS] = (struct option){ "sockets", no_argument, NULL, RUN_SOCKETS };
	options[RUN_KILL] = (struct option){ "kill", required_argument, NULL, RUN_KILL };
	options[RUN_UNTIL] = (struct option){ "until", required_argument, NULL, RUN_UNTIL };
	options[RUN_VERIFY] = (struct option){ "verify", no_argument, NULL, RUN_VERIFY };
	options[RUN_OWN_FILES] = (struct option){ "own-files", no_argument, NULL, RUN_OWN_FILES };
	options[RUN_ON] = (struct option){ "on", required_argument, NULL, RUN_ON };
	options[RUN_DAEMON] = (struct option){ "daemon", required_argument, NULL, RUN_DAEMON };
	options[RUN_NUM_VALUES] = (struct option){ "help", no_argument, NULL, 'h' };

	status = tool_options(argc, argv, "+:h", options, run_usage, values);
	if (status >= 0)
		return status;
	/* Under polycm explore the environment names it. */
	if (optind == argc && !values[RUN_SCENARIO] && !getenv(run_options[RUN_SCENARIO].variable)) {
		tool_error("run: no command is given; 'polycm help run' tells more");
		return STATUS_USAGE;
	}
	status = values[RUN_SOCKETS] ? run_use_sockets() : 0;
	if (!status && optind == argc)
		return run_system(values, argv, NULL);
	if (!status && (values[RUN_ON] || values[RUN_DAEMON]))
		return run_system(values, argv, argv + optind - 2);
	if (!status && (values[RUN_KILL] || values[RUN_UNTIL] || values[RUN_VERIFY] ||
			values[RUN_OWN_FILES])) {
		tool_error("--kill, --until, --verify and --own-files are for programs behind --on: "
			   "for a single program put '--on all' in front of the command");
		return STATUS_USAGE;
	}
	if (!status)
		status = run_set_environment(values, argv[optind]);
	if (status)
		return status;
	run_tell_tcp(getenv(run_options[RUN_SCENARIO].variable), false);
	if (values[RUN_SCENARIO] && !values[RUN_NODE] && system_has_programs(values[RUN_SCENARIO]))
		tool_error("run: the programs of %s are not started, since a command is given: "
			   "without it they are; with --on NODE it runs on a node in virtual time",
			   values[RUN_SCENARIO]);
	return become(argv + optind);
}
