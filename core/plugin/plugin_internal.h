/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/plugin_internal.h - what the files of this room share.
 *
 * find.c finds files, load.c makes a module out of one, check.c checks and copies what a
 * plugin hands over, registry.c keeps files and modules, and select.c decides which ones
 * are loaded and starts them.
 */
#ifndef POLYCM_CORE_PROVIDER_INTERNAL_H
#define POLYCM_CORE_PROVIDER_INTERNAL_H

#include <errno.h>
#include <string.h>

#include "registry.h"

#define PROVIDER_NAME_MAX 31
#define PROVIDER_WHY_SIZE 512

/* What a plugin returned, in words, whatever it is. */
static inline const char *provider_strerror(int r)
{
	return strerror(r < 0 && r > -4096 ? -r : EINVAL);
}

/* What is wrong, into `why' (PROVIDER_WHY_SIZE bytes); returns err (plugin/check.c). */
int polycm_refuse(char *why, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
#define INVALID(why, ...) polycm_refuse(why, -EINVAL, __VA_ARGS__)

/* A plugin file.  Under registry_lock, but for name, path and folder. */
struct provider_file {
	char *name;
	char *path;			/* absolute */
	const char *folder;		/* as it was found */
	struct polycm_module *module;	/* NULL: not loaded */
	char *problem;			/* why it cannot be loaded, or NULL: not tried, or fine */
	bool logged;			/* the problem is in the log */
	bool wrong;			/* it loads, but breaks a rule of the ABI */
	bool loading;
};

/* --- plugin/find.c: no lock, called once. --- */

/* The folders that were searched, in order. */
struct provider_folders {
	char **paths;
	size_t num;
};

/* The folder that the build was configured for; tests set another one. */
extern const char *polycm_installed_folder;

/* Look for files; the first folder that has a name wins.  0 or -ENOMEM. */
int polycm_files_find(struct provider_folders *ret_folders, struct provider_file **ret_files,
		      size_t *ret_num);
/* Of a provider or transport: [a-z][a-z0-9_-]*, at most PROVIDER_NAME_MAX bytes. */
bool polycm_provider_name_valid(const char *name);
/* The prefix of a provider's settings: "POLYCM_ACME_" for acme. */
void polycm_provider_prefix(const char *name, char *buf, size_t size);

/* --- plugin/load.c --- */

/* Load the file into a fresh module.  On an error `why' (PROVIDER_WHY_SIZE bytes) says what is wrong. */
int polycm_file_load(const struct provider_file *file, struct polycm_module **ret_module, char *why);

/* --- plugin/elf.c --- */

/* Does the file end where its headers say, at the earliest?  true if it cannot be read at all. */
bool polycm_file_complete(const char *path);

/* --- plugin/check.c --- */

/*
 * A module with copies of what a plugin handed over, if that is as it has to be: table sizes,
 * required operations, names, options.  name: what it must be called; path: for people.
 * -EINVAL with `why' as above, or -ENOMEM.
 */
int polycm_module_new(const struct polycm_provider *theirs, const char *name, const char *path,
		      struct polycm_module **ret_module, char *why);
void polycm_module_free(struct polycm_module *module);

/* For each operation that a provider may lack (plugin/stubs.c). */
extern const struct polycm_ops polycm_stub_ops;

/* --- plugin/registry.c: the files and the modules made of them. --- */

/* The provider, installed but not loaded, that a variable of the environment belongs to, or NULL. */
const char *polycm_file_of_variable(const char *variable);

/* Each file, also those that cannot be loaded, in order; stops at non-zero.  A copy is shown. */
int polycm_files_walk(int (*fn)(void *arg, const struct provider_file *file), void *arg);

/*
 * The module of a file, which is loaded.  NULL: it cannot be loaded; *ret_problem says
 * why, and so does the log unless quiet.  With *ret_problem NULL there is no such file.
 */
struct polycm_module *polycm_files_load(const char *name, bool quiet, const char **ret_path,
					const char **ret_problem);
/* "/folder: acme ib; /other: none" */
void polycm_files_describe(char *buf, size_t size);
/* The provider whose name is most like this one, or NULL. */
const char *polycm_files_nearest(const char *name);
/* *ret_from_memory: they are modules of polycm_registry_add_static(). */
size_t polycm_files_count(bool *ret_from_memory);

#endif
