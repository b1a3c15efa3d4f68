/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/registry.c - the plugin files and the modules that were made of
 * them.  A file is opened at most once; a module is never unloaded.
 *
 * `registry_lock' protects all of it, and libltdl.  It is recursive because loading a file runs
 * the plugin's constructors and its query: if they call polycm, they see what is loaded so
 * far.  No operation of a provider is called with it held.
 */
#include "config.h"

#include "plugin_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "options.h"

#define MAX_STATIC 16u

static pthread_mutex_t registry_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static bool found;
static struct provider_folders folders;
static struct provider_file *files;
static size_t num_files;
static struct polycm_module **modules;	/* room for one of each file; never moves */
static size_t num_modules;
static size_t num_static;
static char no_memory[] = "out of memory";

static void find_once(void)
{
	int r;

	if (found)
		return;
	found = true;
	polycm_log_init();
	r = polycm_files_find(&folders, &files, &num_files);
	if (!r) {
		modules = calloc(num_files + 1, sizeof(struct polycm_module *));
		if (!modules)
			r = -ENOMEM;
	}
	if (r) {
		num_files = 0;
		polycm_log(POLYCM_LOG_ERROR, "no providers: %s", strerror(-r));
	}
}

static void lock_files(void)
{
	pthread_mutex_lock(&registry_lock);
	find_once();
}

static struct provider_file *find_file(const char *name)
{
	for (size_t i = 0; i < num_files; i++)
		if (!strcmp(files[i].name, name))
			return &files[i];
	return NULL;
}

static struct polycm_module *find_module(const char *name)
{
	for (size_t i = 0; i < num_modules; i++)
		if (!strcmp(modules[i]->name, name))
			return modules[i];
	return NULL;
}

static struct polycm_module *module_of_transport(const char *name)
{
	for (size_t i = 0; i < num_modules; i++)
		if (modules[i]->desc.transport && !strcmp(modules[i]->transport.name, name))
			return modules[i];
	return NULL;
}

/* What must be unique is; adding the options comes last because it stays. */
static int admit(struct polycm_module *module, char *why)
{
	const struct polycm_module *other;
	int r;

	if (find_module(module->name)) {
		snprintf(why, PROVIDER_WHY_SIZE, "the name %s is taken", module->name);
		return -EEXIST;
	}
	other = module->desc.transport ? module_of_transport(module->transport.name) : NULL;
	if (other) {
		snprintf(why, PROVIDER_WHY_SIZE, "the rules of transport %s are in %s already",
			 module->transport.name, other->path);
		return -EEXIST;
	}
	r = polycm_options_add(module->name, module->desc.options, module->desc.num_options);
	if (r == -EEXIST)
		snprintf(why, PROVIDER_WHY_SIZE, "the name of one of its settings is taken");
	return r;
}

static int load_and_admit(const struct provider_file *file, struct polycm_module **ret_module,
			  char *why)
{
	int r;

	r = polycm_file_load(file, ret_module, why);
	if (r)
		return r;
	r = admit(*ret_module, why);
	if (r)
		polycm_module_free(*ret_module);
	return r;
}

static struct polycm_module *load(struct provider_file *file, bool quiet)
{
	char why[PROVIDER_WHY_SIZE];
	struct polycm_module *module;
	int r;

	if (!file->module && !file->problem && !file->loading) {
		file->loading = true;
		r = load_and_admit(file, &module, why);
		if (r) {
			/* It is a plugin, and breaks a rule of the ABI. */
			file->wrong = r == -EINVAL;
			file->problem = strdup(why);
			if (!file->problem)
				file->problem = no_memory;
		} else {
			file->module = module;
			modules[num_modules++] = module;
			polycm_log(POLYCM_LOG_DEBUG, "provider %s %s loaded from %s", module->name,
				   module->desc.version, module->path);
		}
		file->loading = false;
	}
	if (file->problem && !file->logged && !quiet)
		polycm_log(file->wrong ? POLYCM_LOG_ERROR : POLYCM_LOG_WARN, "%s skipped: %s",
			   file->path, file->problem);
	if (file->problem)
		file->logged = true;
	return file->module;
}

struct polycm_module *polycm_files_load(const char *name, bool quiet, const char **ret_path,
					const char **ret_problem)
{
	struct polycm_module *module = NULL;
	struct provider_file *file;

	*ret_path = NULL;
	*ret_problem = NULL;
	lock_files();
	file = find_file(name);
	if (file) {
		module = load(file, quiet);
		*ret_path = file->path;
		*ret_problem = file->problem;
	}
	pthread_mutex_unlock(&registry_lock);
	return module;
}

void polycm_files_describe(char *buf, size_t size)
{
	size_t len = 0;

	buf[0] = '\0';
	lock_files();
	for (size_t i = 0; i < folders.num; i++) {
		bool any = false;

		len += (size_t)snprintf(buf + len, size - len, "%s%s:", i ? "; " : "",
					folders.paths[i]);
		for (size_t k = 0; k < num_files && len < size; k++) {
			if (files[k].folder != folders.paths[i])
				continue;
			len += (size_t)snprintf(buf + len, size - len, " %s", files[k].name);
			any = true;
		}
		if (!any && len < size)
			len += (size_t)snprintf(buf + len, size - len, " none");
		if (len >= size)
			break;
	}
	pthread_mutex_unlock(&registry_lock);
}

const char *polycm_files_nearest(const char *name)
{
	const char *nearest = NULL;
	const char **names;

	lock_files();
	names = calloc(num_files + 1, sizeof(*names));
	if (names) {
		for (size_t i = 0; i < num_files; i++)
			names[i] = files[i].name;
		nearest = polycm_nearest(name, names, num_files);
		free(names);
	}
	pthread_mutex_unlock(&registry_lock);
	return nearest;
}

const char *polycm_file_of_variable(const char *variable)
{
	char prefix[sizeof("POLYCM__") + PROVIDER_NAME_MAX];
	const char *owner = NULL;

	lock_files();
	for (size_t i = 0; i < num_files && !owner; i++) {
		if (files[i].module)
			continue;
		polycm_provider_prefix(files[i].name, prefix, sizeof(prefix));
		if (!strncmp(variable, prefix, strlen(prefix)))
			owner = files[i].name;
	}
	pthread_mutex_unlock(&registry_lock);
	return owner;
}

int polycm_files_walk(int (*fn)(void *arg, const struct provider_file *file), void *arg)
{
	size_t num;
	int r = 0;

	lock_files();
	num = num_files;
	pthread_mutex_unlock(&registry_lock);
	for (size_t i = 0; i < num && !r; i++) {
		struct provider_file copy;

		pthread_mutex_lock(&registry_lock);
		copy = files[i];
		pthread_mutex_unlock(&registry_lock);
		r = fn(arg, &copy);
	}
	return r;
}

size_t polycm_modules_max(void)
{
	size_t max;

	lock_files();
	max = num_static ? num_static : num_files;
	pthread_mutex_unlock(&registry_lock);
	return max;
}

size_t polycm_modules_static(struct polycm_module *const **ret_modules)
{
	size_t num;

	lock_files();
	*ret_modules = modules;
	num = num_static;
	pthread_mutex_unlock(&registry_lock);
	return num;
}

/* ------------------------------------------------------------------------
 * registry.h
 */

size_t polycm_registry_load_all(struct polycm_module *const **ret_modules)
{
	size_t num;

	lock_files();
	for (size_t i = 0; i < num_files; i++)
		load(&files[i], false);
	*ret_modules = modules;
	num = num_modules;
	pthread_mutex_unlock(&registry_lock);
	return num;
}

struct polycm_module *polycm_registry_find(const char *name)
{
	struct polycm_module *module;
	struct provider_file *file;

	lock_files();
	module = find_module(name);
	file = module ? NULL : find_file(name);
	if (file)
		module = load(file, false);
	pthread_mutex_unlock(&registry_lock);
	return module;
}

/* Most transports are in a plugin of the same name; only a vendor's may not be. */
const struct polycm_transport *polycm_registry_transport(const char *name)
{
	struct polycm_module *module;
	struct provider_file *file;

	if (!name)
		return NULL;
	lock_files();
	module = module_of_transport(name);
	file = module ? NULL : find_file(name);
	if (file && load(file, false))
		module = module_of_transport(name);
	for (size_t i = 0; i < num_files && !module; i++)
		if (load(&files[i], false))
			module = module_of_transport(name);
	pthread_mutex_unlock(&registry_lock);
	return module ? &module->transport : NULL;
}

int polycm_registry_add_static(const struct polycm_provider *provider)
{
	struct polycm_module *module = NULL;
	char why[PROVIDER_WHY_SIZE] = "out of memory";
	int r = -ENOMEM;

	pthread_mutex_lock(&registry_lock);
	if (found && !num_static) {
		pthread_mutex_unlock(&registry_lock);
		return -EBUSY;
	}
	found = true;
	polycm_log_init();
	if (!modules)
		modules = calloc(MAX_STATIC, sizeof(struct polycm_module *));
	if (modules && num_modules < MAX_STATIC)
		module = calloc(1, sizeof(*module));
	if (module)
		r = polycm_module_fill(module, provider, provider->name, why);
	if (!r)
		r = asprintf(&module->path, "(%s)", module->name) < 0 ? -ENOMEM : 0;
	if (!r)
		r = admit(module, why);
	if (!r) {
		modules[num_modules++] = module;
		num_static = num_modules;
	} else {
		polycm_log(r == -EINVAL ? POLYCM_LOG_ERROR : POLYCM_LOG_WARN,
			   "provider skipped: %s", why);
		polycm_module_free(module);
	}
	pthread_mutex_unlock(&registry_lock);
	return r;
}
