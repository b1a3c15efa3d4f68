/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/registry.h - the providers: which files there are, which are loaded, which
 * are selected to carry connections, in which order.
 *
 * Loaded once, on the first rdma_*, ibv_get_device_list() or polycm_* call
 * that needs it; nothing is unloaded before the process ends.
 */
#ifndef POLYCM_CORE_REGISTRY_H
#define POLYCM_CORE_REGISTRY_H

#include <pthread.h>
#include "polycm/layer.h"
#include "polycm/provider.h"

/* A loaded provider.  Tables are the core's copies: no operation is NULL, but for those of a layer. */
struct polycm_module {
	char *name;
	char *path;			/* file, absolute; for people */
	struct polycm_provider desc;	/* strings and transport point into the plugin */
	struct polycm_ops ops;
	struct polycm_ops base;		/* its own, where layers are around them (layers.h) */
	struct polycm_layer_ops layer;	/* of a layer; any may be NULL */
	struct polycm_transport transport;	/* valid if desc.transport, which then points here */
	void *ctx;			/* from ops.init */
	bool selected;			/* may carry connections */
	/*
	 * Whose ids it shares: its own, or those of the first provider over the
	 * kernel.  Set when the selected ones have been started.
	 */
	struct polycm_module *carrier;
	bool initialised;		/* ops.init succeeded */
	int init_error;			/* why it did not start, else 0 */
	bool owns_clock;		/* ops.init installed one */
};

static inline bool polycm_module_is_kernel(const struct polycm_module *module)
{
	return module->desc.flags & POLYCM_PROVIDER_KERNEL;
}

static inline bool polycm_module_is_layer(const struct polycm_module *module)
{
	return module->desc.layer;
}

/*
 * Load and select as POLYCM_PROVIDER and POLYCM_PROVIDER_PATH say, init and
 * enumerate the selected ones.  0, or -ENODEV when a provider that was asked
 * for by name is not there or cannot load (the log says which and why); the
 * same answer each time.
 */
int polycm_registry_get(void);
/* The same, and every selected provider has been asked for new devices since the call began. */
int polycm_registry_get_devices(void);
/*
 * The same for a program that reads sysfs: providers that are started by this make no file and
 * change no clock until the first of the two calls above.
 */
int polycm_registry_look(void);
bool polycm_registry_only_looked_at(void);

/* The selected, initialised modules in order of preference. */
size_t polycm_registry_selected(struct polycm_module *const **ret_modules);
/* The same, without starting them: none before that. */
size_t polycm_registry_active(struct polycm_module *const **ret_modules);
/* Those of them that are carriers: each has its own area in ids and channels. */
size_t polycm_registry_carriers(struct polycm_module *const **ret_modules);
/* Is the kernel's RDMA CM the only carrier? */
bool polycm_registry_kernel_only(void);
/* Did one of the selected not start? */
bool polycm_registry_any_failed(void);
/* Load every plugin file that was found: for polycm info.  Returns how many could be loaded. */
size_t polycm_registry_load_all(void);
/* The rules of a transport, its plugin loaded for the rules alone if need be, or NULL. */
const struct polycm_transport *polycm_registry_transport(const char *name);
/* Largest id_size and channel_size of the selected modules, rounded up to 16. */
size_t polycm_registry_id_size(void);
size_t polycm_registry_channel_size(void);

/* The table that plugins are given (core/host.c). */
extern const struct polycm_core polycm_core_table;

/*
 * For tests: make a module out of tables in memory, as if a file had been loaded and
 * selected; the environment selects nothing then.  To be called before any other
 * function; several calls add modules in order of preference.
 */
int polycm_registry_add_static(const struct polycm_provider *provider);

#endif
