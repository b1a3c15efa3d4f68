/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api/info.c - <polycm/polycm.h>: what there is, for programs that ask.
 */
#include "config.h"

#include "polycm/polycm.h"

#include <errno.h>
#include <stdlib.h>

#include "core/device/device.h"
#include "core/base/export.h"
#include "core/plugin/options.h"
#include "core/plugin/plugin_internal.h"
#include "core/plugin/transport.h"

POLYCM_EXPORT const char *polycm_version(void)
{
	return PACKAGE_VERSION;
}

static unsigned int devices_of(const struct polycm_module *module)
{
	struct polycm_device **devices;
	unsigned int of_module = 0;
	size_t num;

	if (polycm_devices(&devices, &num))
		return 0;
	for (size_t i = 0; i < num; i++)
		of_module += devices[i]->module == module;
	polycm_devices_free(devices, num);
	return of_module;
}

static const char *place_of(const struct polycm_module *module)
{
	if (!module->selected || module->init_error || !module->desc.extension)
		return NULL;
	return module->desc.extension("place", 1);
}

struct provider_walk {
	int (*fn)(void *arg, const struct polycm_provider_info *info);
	void *arg;
};

static int show_module(const struct provider_walk *walk, const struct polycm_module *module)
{
	struct polycm_provider_info info = {
		.size = sizeof(info),
		.name = module->name,
		.path = module->path,
		.version = module->desc.version,
		.description = module->desc.description,
		.transport = module->desc.transport ? module->transport.name : NULL,
		.on_request = module->desc.flags & POLYCM_PROVIDER_ON_REQUEST,
		.selected = module->selected,
		.error = module->init_error,
		.num_devices = devices_of(module),
		.layer = polycm_module_is_layer(module),
		.place = place_of(module),
	};

	return walk->fn(walk->arg, &info);
}

static int show_file(void *arg, const struct provider_file *file)
{
	const struct provider_walk *walk = arg;
	struct polycm_provider_info info = {
		.size = sizeof(info),
		.name = file->name,
		.path = file->path,
		.problem = file->problem,
	};

	if (file->module)
		return show_module(walk, file->module);
	return file->problem ? walk->fn(walk->arg, &info) : 0;
}

POLYCM_EXPORT int polycm_providers_walk(bool installed,
					int (*fn)(void *arg, const struct polycm_provider_info *info),
					void *arg)
{
	struct provider_walk walk = { .fn = fn, .arg = arg };

	if (!fn) {
		errno = EINVAL;
		return -1;
	}
	/* What cannot be selected is to be shown all the same. */
	(void)polycm_registry_get();
	if (installed)
		polycm_registry_load_all();
	return polycm_files_walk(show_file, &walk);
}

struct setting_walk {
	int (*fn)(void *arg, const struct polycm_setting_info *info);
	void *arg;
};

static int show_setting(void *arg, const char *owner, const struct polycm_option *option)
{
	const struct setting_walk *walk = arg;
	struct polycm_setting_info info = {
		.size = sizeof(info),
		.name = option->name,
		.owner = owner,
		.value = polycm_setting(option->name),
		.default_value = option->default_value,
		.choices = option->choices,
		.help = option->help,
		.given = polycm_setting_given(option->name),
	};

	return walk->fn(walk->arg, &info);
}

POLYCM_EXPORT int polycm_settings_walk(int (*fn)(void *arg, const struct polycm_setting_info *info),
				       void *arg)
{
	struct setting_walk walk = { .fn = fn, .arg = arg };

	if (!fn) {
		errno = EINVAL;
		return -1;
	}
	(void)polycm_registry_get();
	return polycm_options_walk(show_setting, &walk);
}

POLYCM_EXPORT int polycm_rules_walk(const char *transport,
				    int (*fn)(void *arg, const char *rule, const char *value),
				    void *arg)
{
	const struct polycm_transport *rules = polycm_registry_transport(transport);

	if (!rules || !fn) {
		errno = fn ? ENOENT : EINVAL;
		return -1;
	}
	return polycm_transport_walk(rules, fn, arg);
}
