/* SPDX-License-Identifier: BSD-2-Clause */
/* run.h - between the files run*.c: polycm run.  One thread. */
#ifndef TOOLS_RUN_H
#define TOOLS_RUN_H

#include "polycm.h"

#define RUN_PROVIDER_VARIABLE "POLYCM_PROVIDER"
#define RUN_EXPLORE_VARIABLE "POLYCM_SIM_EXPLORE"
#define RUN_SIMULATOR "sim"
#define RUN_HOSTS "ofi"
#define RUN_FAULTS "fault"

/* Each option is a setting; those of POLYCM_SIM_* are the simulator's. */
struct run_option {
	const char *name;
	const char *variable;
	const char *argument;
	const char *help;
	/* 0, or STATUS_USAGE after an error message. */
	int (*check)(const struct run_option *option, const char *value);
};

enum {
	RUN_PROVIDER, RUN_TRANSPORT, RUN_DEVICE, RUN_SEED, RUN_CLOCK, RUN_FABRIC, RUN_SCENARIO,
	RUN_FAULT_FILE, RUN_NODE, RUN_TRACE, RUN_PCAP, RUN_LOG,
	RUN_NUM_OPTIONS,
	RUN_SOCKETS = RUN_NUM_OPTIONS,	/* no setting, and without an argument */
	RUN_KILL,			/* NODE@TURN */
	RUN_UNTIL,			/* seconds of virtual time */
	RUN_VERIFY,			/* without an argument */
	RUN_OWN_FILES,			/* likewise */
	RUN_ON, RUN_DAEMON,		/* the node of the first of several programs */
	RUN_NUM_VALUES
};

extern const struct run_option run_options[RUN_NUM_OPTIONS];

/* --- run_check.c: values, against what is installed --- */

int run_check_provider(const struct run_option *option, const char *value);
int run_check_transport(const struct run_option *option, const char *value);
int run_check_seed(const struct run_option *option, const char *value);
int run_check_name(const struct run_option *option, const char *value);
int run_check_choice(const struct run_option *option, const char *value);
int run_check_path(const struct run_option *option, const char *value);
int run_check_file(const struct run_option *option, const char *value);
int run_check_faults(const struct run_option *option, const char *value);
int run_check_device(const struct run_option *option, const char *value);
int run_check_node(const struct run_option *option, const char *value);
int run_check_capture(const struct run_option *option, const char *value);

/* Files, given or in the environment, can be read more than once; nothing is read. */
int run_check_again(const char *const values[RUN_NUM_OPTIONS]);
/* All that are given, and that the scenario's network can be made; NULL: not given. */
int run_check_values(const char *const values[RUN_NUM_OPTIONS]);

/* --- run_lists.c: lists of providers, such as "trace;fault;roce,iwarp" --- */

/* What comes after the layers: "roce,iwarp". */
const char *run_behind_layers(const char *list);
/* The next of names with commas and perhaps blanks between, its length, and what follows or NULL. */
const char *run_next_name(const char **rest, size_t *ret_len);
/* The same of the layers; *rest is a list that ends at `end', which run_behind_layers() says. */
const char *run_next_layer(const char **rest, const char *end, size_t *ret_len);
/* Does it name that provider, without layers? */
bool run_names(const char *list, const char *provider);
/* With the layer of faults, innermost, so that others see what it does; to be freed. */
char *run_with_faults(const char *list);

/* --- run_environment.c --- */

/* COMMAND's sockets are to be rsockets; 0 or an exit status. */
int run_use_sockets(void);
/* Checks values and sets the environment to them for COMMAND; 0 or an exit status. */
int run_set_environment(const char *const values[RUN_NUM_OPTIONS], const char *command);
/* Of its threads one runs at a time: the C library's malloc() needs no more memory for each. */
void run_use_one_arena(void);
/* The same without the check, which a process can do once. */
int run_set_checked(const char *const values[RUN_NUM_OPTIONS], const char *command);

/* --- system.c --- */

/*
 * Several programs, each behind "--on" or "--daemon" and a node, of which words, in argv, are the
 * first that options were read from; NULL: the programs are in the scenario file.  The exit status.
 */
int run_system(const char *const values[RUN_NUM_VALUES], char **argv, char **words);

/* --- run_program.c --- */

struct run_program {
	char *runtime;	/* "libasan.so.8", to be freed, or NULL: it needs none, or has it inside */
	char *interpreter;	/* of a script: what the rest is about; to be freed, or NULL */
	bool is_static;	/* nothing can be preloaded */
	bool has_tsan;	/* ThreadSanitizer, inside or as a library */
};

/* Of a script: its interpreter.  All zero if it is not found or no ELF file. */
struct run_program run_program_of(const char *command);
/* Its file; NULL: errno says why there is none.  To be freed. */
char *run_path_of(const char *command);

#endif
