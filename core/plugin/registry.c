/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/registry.c - the plugin files, each with the module that was made of
 * it.  A file is opened at most once; a module is never unloaded.
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
static bool from_memory;		/* the files stand for modules that tests have added */
static char no_memory[] = "out of memory";

static void find_once(void)
{
	int r;

	if (found)
		return;
	found = true;
	polycm_log_init();
	r = polycm_files_find(&folders, &files, &num_files);
	if (r)
		polycm_log(POLYCM_LOG_ERROR, "no providers: %s", strerror(-r));
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

static struct polycm_module *module_of_transport(const char *name)
{
	for (size_t i = 0; i < num_files; i++) {
		struct polycm_module *module = files[i].module;

		if (module && module->desc.transport && !strcmp(module->transport.name, name))
			return module;
	}
	return NULL;
}

/* What must be unique is; adding the options comes last because it stays. */
static int admit(struct polycm_module *module, char *why)
{
	const struct provider_file *file = find_file(module->name);
	const struct polycm_module *other;
	int r;

	if (file && file->module)
		return polycm_refuse(why, -EEXIST, "the name %s is taken", module->name);
	other = module->desc.transport ? module_of_transport(module->transport.name) : NULL;
	if (other)
		return polycm_refuse(why, -EEXIST, "the rules of transport %s are in %s already",
				     module->transport.name, other->path);
	r = polycm_options_add(module->name, module->desc.options, module->desc.num_options);
	if (r == -EEXIST)
		return polycm_refuse(why, r, "the name of one of its settings is taken");
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
	struct polycm_nearest nearest = { .word = name };

	lock_files();
	for (size_t i = 0; i < num_files; i++)
		polycm_nearest_try(&nearest, files[i].name);
	pthread_mutex_unlock(&registry_lock);
	return nearest.found;
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

size_t polycm_files_count(bool *ret_from_memory)
{
	size_t num;

	lock_files();
	*ret_from_memory = from_memory;
	num = num_files;
	pthread_mutex_unlock(&registry_lock);
	return num;
}

/* ------------------------------------------------------------------------
 * registry.h
 */

size_t polycm_registry_load_all(void)
{
	size_t num = 0;

	lock_files();
	for (size_t i = 0; i < num_files; i++)
		num += load(&files[i], false) != NULL;
	pthread_mutex_unlock(&registry_lock);
	return num;
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
	char why[PROVIDER_WHY_SIZE] = "out of memory", path[PROVIDER_NAME_MAX + sizeof("()")];
	struct polycm_module *module = NULL;
	int r = -ENOMEM;

	pthread_mutex_lock(&registry_lock);
	if (found && !from_memory) {
		pthread_mutex_unlock(&registry_lock);
		return -EBUSY;
	}
	found = true;
	polycm_log_init();
	if (!files)
		files = calloc(MAX_STATIC, sizeof(*files));
	(void)snprintf(path, sizeof(path), "(%s)", provider->name);
	if (files && num_files < MAX_STATIC)
		r = polycm_module_new(provider, provider->name, path, &module, why);
	if (!r)
		r = admit(module, why);
	if (!r) {
		files[num_files++] = (struct provider_file){
			.name = module->name, .path = module->path, .module = module,
		};
		from_memory = true;
	} else {
		polycm_log(r == -EINVAL ? POLYCM_LOG_ERROR : POLYCM_LOG_WARN,
			   "provider skipped: %s", why);
		if (module)
			polycm_module_free(module);
	}
	pthread_mutex_unlock(&registry_lock);
	return r;
}
