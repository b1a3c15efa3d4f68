/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polycm.c - the polycm command: main(), help, and what its parts share.
 */
#include "config.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "polycm.h"
#include "polycm/polycm.h"

static const struct command {
	const char *name;
	const char *summary;
	int (*run)(int argc, char **argv);
	void (*usage)(FILE *to);
} commands[] = {
	{ "run", "start a program with libpolycm in place of librdmacm", run_command, run_usage },
	{ "explore", "find the faults under which a program fails, on the simulator",
	  explore_command, explore_usage },
	{ "info", "show providers, transports, devices and settings", info_command, info_usage },
	{ "timeline", "draw a trace of the simulator as a ladder diagram", timeline_command,
	  timeline_usage },
	/* For polycm run alone. */
	{ "carry", NULL, carry_command, NULL },
};

#define NUM_COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* Names and lines of programs may hold anything; a message stays one line of text. */
void tool_error(const char *format, ...)
{
	char text[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (char *at = text; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	fprintf(stderr, "polycm: %s\n", text);
}

static _Noreturn void out_of_memory(void)
{
	tool_error("out of memory");
	exit(EXIT_FAILURE);
}

char *tool_strdup(const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		out_of_memory();
	return copy;
}

static char *print(const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		out_of_memory();
	return text;
}

char *tool_printf(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = print(format, args);
	va_end(args);
	return text;
}

void tool_append(char **text, const char *format, ...)
{
	va_list args;
	char *more, *old = *text;

	va_start(args, format);
	more = print(format, args);
	va_end(args);
	*text = tool_printf("%s%s", old ? old : "", more);
	free(old);
	free(more);
}

void *tool_realloc(void *memory, size_t num, size_t size)
{
	void *bigger = reallocarray(memory, num, size);

	if (!bigger)
		out_of_memory();
	return bigger;
}

static const struct command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < NUM_COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	tool_error("'%s' is no polycm command; 'polycm help' lists them", name);
	return NULL;
}

static void usage(FILE *to)
{
	size_t i;

	fputs("usage: polycm COMMAND [ARGUMENT]...\n"
	      "       polycm help [COMMAND]\n"
	      "       polycm --version\n"
	      "\n", to);
	for (i = 0; i < NUM_COMMANDS; i++)
		if (commands[i].summary)
			fprintf(to, "  %-10s%s\n", commands[i].name, commands[i].summary);
}

static int help(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		usage(stdout);
		return 0;
	}
	command = find_command(argv[1]);
	if (!command || !command->usage)
		return STATUS_USAGE;
	command->usage(stdout);
	return 0;
}

/* What could not be written is an error too. */
static int finish(int status)
{
	if (fflush(stdout) || ferror(stdout)) {
		tool_error("cannot write the output: %m");
		return EXIT_FAILURE;
	}
	return status;
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		usage(stderr);
		return STATUS_USAGE;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("polycm %s\n", polycm_version());
		return finish(0);
	}
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return finish(help(argc - 1, argv + 1));

	command = find_command(argv[1]);
	if (!command)
		return STATUS_USAGE;
	/* getopt_long() prints it before what it says. */
	argv[1] = tool_printf("polycm %s", command->name);
	place_setup();
	return finish(command->run(argc - 1, argv + 1));
}
