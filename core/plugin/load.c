/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/load.c - from a plugin file to a module.
 *
 * libltdl opens the file, but binds lazily and reports each failure as "file not
 * found"; so dlopen() opens it first, with RTLD_NOW.  Modules are local and are
 * never unloaded.  libltdl has no locks: the caller holds registry_lock.
 */
#include "config.h"

#include "plugin_internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <ltdl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define QUERY "polycm_provider_query_v1"
#define QUERY_OF_VERSION "polycm_provider_query_v%d"

typedef int (*query_t)(const struct polycm_core *core, const struct polycm_provider **ret_provider);

/* Under another name, our own library would hand itself out as a plugin. */
static bool is_us(const char *path)
{
	struct stat ours, theirs;
	Dl_info info;

	return dladdr((void *)(uintptr_t)polycm_file_load, &info) && info.dli_fname &&
	       !stat(info.dli_fname, &ours) && !stat(path, &theirs) &&
	       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

/* The linker's reasons begin with the path, which the log line has already. */
static const char *linker_reason(const char *path)
{
	const char *reason = dlerror();
	size_t len = strlen(path);

	if (!reason)
		return "unknown reason";
	if (!strncmp(reason, path, len) && !strncmp(reason + len, ": ", 2))
		reason += len + 2;
	return reason;
}

/* Is the symbol in the module itself, rather than in a library that it needs? */
static bool is_own_symbol(void *handle, void *symbol)
{
	struct link_map *module, *home;
	Dl_info info;

	return !dlinfo(handle, RTLD_DI_LINKMAP, &module) &&
	       dladdr1(symbol, &info, (void **)&home, RTLD_DL_LINKMAP) && home == module;
}

static int find_query(void *handle, char *why)
{
	char name[sizeof(QUERY_OF_VERSION) + 16];
	void *symbol = dlsym(handle, QUERY);

	if (symbol) {
		if (is_own_symbol(handle, symbol))
			return 0;
		return polycm_refuse(why, -ENOEXEC, "its " QUERY " is in a library that it needs");
	}
	for (int version = 2; version <= 9; version++) {
		snprintf(name, sizeof(name), QUERY_OF_VERSION, version);
		symbol = dlsym(handle, name);
		if (symbol && is_own_symbol(handle, symbol))
			return polycm_refuse(why, -ENOEXEC,
				      "it was built for version %d of the provider ABI, this is %d",
				      version, POLYCM_ABI_MAJOR);
	}
	return polycm_refuse(why, -ENOEXEC, "no " QUERY ": not a provider, or "
			     "it does not export it (visibility)");
}

static int open_with_libltdl(const char *path, lt_dlhandle *ret_handle, char *why)
{
	static bool initialised;
	lt_dladvise advise;
	int r = 0;

	if (!initialised && lt_dlinit())
		return polycm_refuse(why, -ENOMEM, "libltdl does not start: %s", lt_dlerror());
	initialised = true;
	if (lt_dladvise_init(&advise))
		return polycm_refuse(why, -ENOMEM, "libltdl: %s", lt_dlerror());
	if (lt_dladvise_local(&advise) || lt_dladvise_resident(&advise))
		r = polycm_refuse(why, -ENOTSUP, "libltdl: %s", lt_dlerror());
	if (!r) {
		*ret_handle = lt_dlopenadvise(path, advise);
		if (!*ret_handle)
			r = polycm_refuse(why, -ENOEXEC, "libltdl: %s", lt_dlerror());
	}
	lt_dladvise_destroy(&advise);
	return r;
}

static int ask(lt_dlhandle handle, const struct polycm_provider **ret_theirs, char *why)
{
	void *symbol = lt_dlsym(handle, QUERY);
	query_t query;
	int r;

	if (!symbol)
		return polycm_refuse(why, -ENOEXEC, "libltdl: %s", lt_dlerror());
	memcpy(&query, &symbol, sizeof(query));
	r = query(&polycm_core_table, ret_theirs);
	if (r)
		return polycm_refuse(why, -ENOEXEC, "its query says: %s (%d)",
			      provider_strerror(r), r);
	return 0;
}

int polycm_file_load(const struct provider_file *file, struct polycm_module **ret_module, char *why)
{
	const struct polycm_provider *theirs = NULL;
	lt_dlhandle handle = NULL;
	void *strict;
	int r;

	snprintf(why, PROVIDER_WHY_SIZE, "out of memory");
	if (is_us(file->path))
		return polycm_refuse(why, -ENOEXEC, "it is libpolycm itself");
	if (!polycm_file_complete(file->path))
		return polycm_refuse(why, -ENOEXEC, "the file is truncated");
	strict = dlopen(file->path, RTLD_NOW | RTLD_LOCAL);
	if (!strict)
		return polycm_refuse(why, -ENOEXEC, "%s", linker_reason(file->path));

	r = find_query(strict, why);
	if (!r)
		r = open_with_libltdl(file->path, &handle, why);
	if (!r)
		r = ask(handle, &theirs, why);
	if (!r)
		r = polycm_module_new(theirs, file->name, file->path, ret_module, why);
	/* One that was asked stays: it may have kept the core's table, or started something. */
	dlclose(strict);
	return r;
}
