/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polycm.h - what the files of the polycm command share.  One thread; memory
 * that is needed until the end is not given back.
 */
#ifndef TOOLS_POLYCM_H
#define TOOLS_POLYCM_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses besides 0 and 1. */
#define STATUS_USAGE 2
#define STATUS_CANNOT_EXECUTE 126
#define STATUS_NOT_FOUND 127
#define STATUS_CUT 74		/* EX_IOERR: a file could not be written to its end */

/* Subcommands: argv[0] is "polycm NAME". */
int run_command(int argc, char **argv);
void run_usage(FILE *to);
int explore_command(int argc, char **argv);
void explore_usage(FILE *to);
int info_command(int argc, char **argv);
void info_usage(FILE *to);
int timeline_command(int argc, char **argv);
void timeline_usage(FILE *to);
int carry_command(int argc, char **argv);

/*
 * run_environment.c: the environment of polycm run for COMMAND with these two options, either
 * of which may be NULL, and the simulator for the provider.  Without COMMAND nothing is preloaded.
 * 0 or an exit status.
 */
int run_prepare(const char *scenario, const char *transport, const char *command);
/*
 * system.c: if the scenario, which may be NULL, has no nodes: a scenario file with its text and those
 * that "--on NODE COMMAND ..." names, or without words those of the file's programs.  0 or a status.
 */
int system_write_nodes(char **words, const char *scenario, const char *transport, const char *path,
		       bool *ret_written);
/* system.c: does the scenario file have the nodes that these name?  0 or a status. */
int system_check_nodes(char **words, const char *scenario);
/* system_programs.c: does the file have programs? */
bool system_has_programs(const char *path);
/*
 * system_again.c: a socket (SOCK_SEQPACKET) in the environment of polycm run, of which its number is
 * the value.  To it goes the exit status of each run as an int, if there can be another one in the
 * same process; from it comes what changes for that: the file for the output, as a descriptor, and
 * variables, "NAME=VALUE" or "NAME" (it is not set), each with its 0.
 */
#define SYSTEM_AGAIN_VARIABLE "LIBPOLYCM_AGAIN"
#define SYSTEM_AGAIN_REQUEST 16384
/*
 * run_tcp.c: says what a scenario, which may be NULL, has about TCP without effect; several: programs
 * behind --on, or of the scenario.
 */
void run_tell_tcp(const char *scenario, bool several);
/* run_program.c: 0, or after an error message STATUS_NOT_FOUND or STATUS_CANNOT_EXECUTE. */
int run_find(const char *command);

/*
 * timeline_last.c: what happened in a trace shortly before a time in ns, without data, as a ladder
 * whose times are counted from `start' (0: from the first line).  false: there is nothing, or an error
 * message was printed.
 */
bool timeline_print_last(FILE *to, char *trace, uint64_t start, uint64_t until);

/* The parts of polycm info, of one provider or (NULL) of all.  0 or an exit status. */
int info_rules(const char *const *transports, size_t num);
int info_devices(const char *provider);
int info_settings(const char *owner);

/*
 * caller.c: what whoever starts the command has closed, ignores or has blocked.  First of all: the
 * standard files are open.  Before the first child: they are, and it can be waited for.  Did nohup
 * start the command?  In a child, before its program: as a shell starts one.
 */
void tool_open_standard_files(void);
void tool_prepare_children(void);
bool tool_outlives_terminal(void);
void tool_signals_as_usual(void);

/*
 * option.c: reads all options, with ':' in front of letters; values[val] of one that is given is
 * its argument, or "" if it takes none.  -1, or the exit status: 0 after 'h', which prints the
 * usage, STATUS_USAGE after an error message.
 */
int tool_options(int argc, char **argv, const char *letters, const struct option *options,
		 void (*usage)(FILE *to), const char **values);

/* Words in lines of `width' columns after `indent' blanks, which the first line has already. */
void tool_wrap(FILE *to, const char *text, int indent, int width);
/* "polycm: TEXT" to standard error. */
void tool_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Like strdup(), asprintf() and reallocarray(), but they end the program where memory is short. */
char *tool_strdup(const char *text);
char *tool_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *tool_realloc(void *memory, size_t num, size_t size);
/* Put more behind a text, which moves; NULL is an empty one. */
void tool_append(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* place.c: the path of libpolycm as this process has it, absolute, or NULL (the error is printed). */
const char *place_library(void);
/* The same of libpolycm-interpose. */
const char *place_interposer(void);
/* That of libpolycm-audit, or NULL: it is not there, as on systems for which it is not built. */
const char *place_auditor(void);
/* That of libpolycm-turn, for several programs in one virtual time; NULL after an error message. */
const char *place_turn(void);
/* The file of a provider's plugin where libpolycm looks first, to be freed; or NULL. */
char *place_plugin(const char *name);
/* This command itself. */
char *place_command(void);
/* Run from a build tree: let the library find that tree's plugins. */
void place_setup(void);
/* The library that gives programs for sockets rsockets; NULL after an error message. */
const char *place_sockets(void);

/*
 * table.c: text in columns as wide as their contents.  Cells are copied, NULL
 * is an empty one; numbers of cells per row may differ.
 */
struct table {
	char ***rows;		/* each ends with NULL */
	size_t num_rows;
};

void table_row(struct table *table, const char *const *cells, size_t num);
#define TABLE_ROW(table, ...)								\
	table_row(table, (const char *const[]){ __VA_ARGS__ },				\
		  sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))
/* Prints it, each line after so many blanks, and empties it. */
void table_print(struct table *table, int indent);

#endif
