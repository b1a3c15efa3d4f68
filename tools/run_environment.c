/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run_environment.c - polycm run: the environment of the program, with
 * libpolycm preloaded, and its auditor for what the program opens later.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "run.h"

#define PRELOAD_VARIABLE "LD_PRELOAD"
#define AUDIT_VARIABLE "LD_AUDIT"
#define ASAN_VARIABLE "ASAN_OPTIONS"
#define TUNABLES_VARIABLE "GLIBC_TUNABLES"
#define VALGRIND_VARIABLE "VALGRIND_OPTS"

/* Of 16 KiB, the smallest stack of a thread, this leaves enough. */
#define STATIC_TLS "glibc.rtld.optional_static_tls="
#define STATIC_TLS_SIZE "4096"

static const char *sockets;		/* preloaded; NULL: not wanted */

/* Options of the simulator that RUN_HOSTS has, too. */
static const char *const hosts_variables[RUN_NUM_OPTIONS] = {
	[RUN_TRANSPORT] = "POLYCM_OFI_TRANSPORT",
	[RUN_SCENARIO] = "POLYCM_OFI_SCENARIO",
	[RUN_TRACE] = "POLYCM_OFI_TRACE",
	[RUN_PCAP] = "POLYCM_OFI_PCAP",
};

static bool is_simulators(const struct run_option *option)
{
	return !strncmp(option->variable, "POLYCM_SIM_", 11);
}

static const char *variable_of(size_t option, bool hosts)
{
	return hosts && hosts_variables[option] ? hosts_variables[option]
						: run_options[option].variable;
}

/* The program may go elsewhere before it opens the file. */
static int set_file(const char *const values[], unsigned int option, bool hosts)
{
	const char *path = values[option];
	char *absolute = path ? realpath(path, NULL) : NULL;

	if (path && !absolute) {
		tool_error("--%s: %s: %m", run_options[option].name, path);
		return STATUS_USAGE;
	}
	if (absolute)
		setenv(variable_of(option, hosts), absolute, 1);
	free(absolute);
	return 0;
}

static void add_faults(void)
{
	const char *list = getenv(RUN_PROVIDER_VARIABLE);
	char *with = run_with_faults(list ? list : "");

	setenv(RUN_PROVIDER_VARIABLE, with, 1);
	free(with);
}

/* The providers that the program will use, as far as they are named. */
static const char *named_providers(const char *const values[])
{
	const char *list = values[RUN_PROVIDER];

	if (!list)
		list = getenv(RUN_PROVIDER_VARIABLE);
	return list ? list : "";
}

static int set_variables(const char *const values[])
{
	const char *providers = values[RUN_PROVIDER], *simulators = NULL;
	bool hosts = run_names(named_providers(values), RUN_HOSTS);
	size_t i;

	for (i = 0; i < RUN_NUM_OPTIONS; i++)
		if (values[i] && is_simulators(&run_options[i]) &&
		    !(hosts && hosts_variables[i]))
			simulators = run_options[i].name;
	if (simulators && providers && !run_names(providers, RUN_SIMULATOR)) {
		tool_error("--%s is for the simulator, which --provider %s leaves out",
			   simulators, providers);
		return STATUS_USAGE;
	}
	for (i = 0; i < RUN_NUM_OPTIONS; i++)
		if (values[i])
			setenv(variable_of(i, hosts), values[i], 1);
	if (simulators && !providers && !getenv(RUN_PROVIDER_VARIABLE))
		setenv(RUN_PROVIDER_VARIABLE, RUN_SIMULATOR, 1);
	if (values[RUN_FAULT_FILE])
		add_faults();
	if (set_file(values, RUN_SCENARIO, hosts))
		return STATUS_USAGE;
	if (values[RUN_DEVICE] && strchr(values[RUN_DEVICE], '/') && set_file(values, RUN_DEVICE, hosts))
		return STATUS_USAGE;
	return set_file(values, RUN_FAULT_FILE, hosts);
}

static void add_option(const char *variable, const char *separator, const char *option)
{
	const char *given = getenv(variable);
	char *both;

	if (given && strstr(given, option))
		return;
	both = tool_printf("%s%s%s", given ? given : "", given && *given ? separator : "", option);
	setenv(variable, both, 1);
	free(both);
}

/*
 * COMMAND (a shell, env(1)) may start programs with AddressSanitizer.  Its check of the order of
 * libraries would end them.  Its allocator reads the clock in free(), which moves virtual time.
 */
static void set_asan_options(void)
{
	add_option(ASAN_VARIABLE, ":", "verify_asan_link_order=0");
	add_option(ASAN_VARIABLE, ":", "allocator_release_to_os_interval_ms=-1");
}

void run_use_one_arena(void)
{
	add_option(TUNABLES_VARIABLE, ":", "glibc.malloc.arena_max=1");
}

/* What was given, without the library that an outer polycm run has put in front. */
static const char *behind(const char *given, const char *library)
{
	size_t len = strlen(library);

	if (given && !strncmp(given, library, len) && (!given[len] || strchr(": ", given[len])))
		given += len + (given[len] != '\0');
	return given && *given ? given : NULL;
}

static int check_path(const char *library)
{
	if (!library)
		return EXIT_FAILURE;
	if (!strpbrk(library, ": "))
		return 0;
	tool_error("%s cannot be preloaded: its path has a blank or a colon", library);
	return EXIT_FAILURE;
}

/* Its devices have files in /sys and /dev only there. */
static bool simulates(void)
{
	const char *list = getenv(RUN_PROVIDER_VARIABLE);

	return list && (run_names(list, RUN_SIMULATOR) || run_names(list, RUN_HOSTS));
}

/*
 * libpolycm comes first, so that its symbols are used, but after a sanitizer's runtime, and
 * after what calls rsockets for sockets.
 * libpolycm-interpose is only for devices that are not the kernel's.
 */
static int set_preload(const char *command, const struct run_program *program)
{
	const char *library = place_library(), *interposer = place_interposer(), *given;
	char *list;

	if (check_path(library) || check_path(interposer))
		return EXIT_FAILURE;
	given = getenv(PRELOAD_VARIABLE);
	if (sockets)
		given = behind(given, sockets);
	given = behind(behind(given, interposer), library);
	if (program->is_static)
		tool_error("%s%s%s is linked statically, so that polycm is not in it: link it with the "
			   "shared librdmacm", command, program->interpreter ? ": its interpreter " : "",
			   program->interpreter ? program->interpreter : "");
	list = tool_printf("%s%s%s%s%s%s%s%s%s", program->runtime ? program->runtime : "",
			   program->runtime ? ":" : "", sockets ? sockets : "", sockets ? ":" : "",
			   simulates() ? interposer : "", simulates() ? ":" : "", library,
			   given ? ":" : "", given ? given : "");
	setenv(PRELOAD_VARIABLE, list, 1);
	free(list);
	set_asan_options();
	return 0;
}

int run_use_sockets(void)
{
	sockets = place_sockets();
	return check_path(sockets);
}

/*
 * What glibc needs with any auditor.  It allocates the program's static TLS before it knows the
 * libraries: only those with little (1.6 KB) would fit, and jemalloc has more.  At the end of a
 * program under valgrind it would free memory from before malloc().
 */
static void set_audit_options(void)
{
	const char *tunables = getenv(TUNABLES_VARIABLE);

	if (!tunables || !strstr(tunables, STATIC_TLS))
		add_option(TUNABLES_VARIABLE, ":", STATIC_TLS STATIC_TLS_SIZE);
	add_option(VALGRIND_VARIABLE, " ", "--run-libc-freeres=no");
}

/* Ours first: glibc 2.36 skips auditors behind one that does not want to know of a dlsym(). */
static int set_audit(const struct run_program *program)
{
	const char *auditor = place_auditor(), *given;
	char *list;

	/* ThreadSanitizer's runtime does not start beside an auditor. */
	if (!auditor || program->has_tsan)
		return 0;
	if (check_path(auditor))
		return EXIT_FAILURE;
	given = behind(getenv(AUDIT_VARIABLE), auditor);
	list = tool_printf("%s%s%s", auditor, given ? ":" : "", given ? given : "");
	setenv(AUDIT_VARIABLE, list, 1);
	free(list);
	set_audit_options();
	return 0;
}

static int set_libraries(const char *command)
{
	struct run_program program = run_program_of(command);
	int status = set_preload(command, &program);

	if (!status)
		status = set_audit(&program);
	free(program.interpreter);
	free(program.runtime);
	return status;
}

int run_set_environment(const char *const values[RUN_NUM_OPTIONS], const char *command)
{
	return run_check_values(values) ? STATUS_USAGE : run_set_checked(values, command);
}

int run_set_checked(const char *const values[RUN_NUM_OPTIONS], const char *command)
{
	int status = set_variables(values);

	return status || !command ? status : set_libraries(command);
}

int run_prepare(const char *scenario, const char *transport, const char *command)
{
	const char *values[RUN_NUM_OPTIONS] = {
		[RUN_PROVIDER] = RUN_SIMULATOR,
		[RUN_TRANSPORT] = transport,
		[RUN_SCENARIO] = scenario,
	};

	return run_set_environment(values, command);
}
