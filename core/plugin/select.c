/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/select.c - selects providers by POLYCM_PROVIDER, and starts them.
 *
 * The first thread that needs providers starts them, once; other threads wait for it.  If
 * a provider calls polycm on that thread meanwhile, polycm uses the providers that have
 * started so far.  No lock is held while a provider's operations run.
 */
#include "config.h"

#include "plugin_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/fork.h"
#include "core/base/interposer.h"
#include "layers.h"
#include "core/base/log.h"
#include "op.h"
#include "options.h"

/* In this order.  LOOKED_AT: started for a program that so far has only read sysfs. */
enum start_state { NOT_STARTED, STARTING, LOOKED_AT, STARTED };

static pthread_mutex_t selection_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static enum start_state state;	/* read without the lock, too */
static pthread_t starter;
static int result;
static bool looking;		/* atomic */

/* Only the starter writes these; other threads read them once the state is LOOKED_AT. */
static struct polycm_module **chosen;	/* selected providers, the preferred one first */
static size_t num_chosen;
static struct polycm_module **active;	/* those that are initialised, too */
static size_t num_active;
static struct polycm_module **carriers;	/* the active ones, one for all over the kernel */
static size_t num_carriers;
static size_t id_size, channel_size;
static pid_t process;			/* the one that started them */

/* ------------------------------------------------------------------------
 * POLYCM_PROVIDER
 */

static char *trim(char *name)
{
	char *end;

	while (isblank((unsigned char)*name))
		name++;
	end = name + strlen(name);
	while (end > name && isblank((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return name;
}

/* Returns the next name of a comma-separated list without blanks around it; NULL: the end. */
static char *next_name(char **rest)
{
	char *name;

	while ((name = strsep(rest, ","))) {
		name = trim(name);
		if (*name)
			return name;
	}
	return NULL;
}

static bool in_list(const char *list, const char *name)
{
	char *copy = strdup(list), *rest = copy, *entry;
	bool found = false;

	while (copy && !found && (entry = next_name(&rest)))
		found = !strcmp(entry, name);
	free(copy);
	return found;
}

static void choose(struct polycm_module *module)
{
	if (module->selected)
		return;
	module->selected = true;
	chosen[num_chosen++] = module;
}

static int load_named(const char *setting, const char *name, struct polycm_module **ret_module)
{
	const char *path, *problem, *nearest;
	char found[1024];

	*ret_module = polycm_files_load(name, true, &path, &problem);
	if (*ret_module)
		return 0;
	polycm_files_describe(found, sizeof(found));
	nearest = polycm_files_nearest(name);
	if (path)
		polycm_log(POLYCM_LOG_ERROR, "POLYCM_PROVIDER=%s: provider %s cannot be used: %s: %s "
			   "(found in %s)", setting, name, path, problem ? problem : "it loads", found);
	else
		polycm_log(POLYCM_LOG_ERROR, "POLYCM_PROVIDER=%s: there is no provider %s%s%s%s "
			   "(found in %s)", setting, name, nearest ? ", did you mean " : "",
			   nearest ? nearest : "", nearest ? "?" : "", found);
	return -ENODEV;
}

static int choose_named(const char *setting, const char *name)
{
	struct polycm_module *module;
	int r = load_named(setting, name, &module);

	if (r)
		return r;
	if (polycm_module_is_layer(module)) {
		polycm_log(POLYCM_LOG_ERROR, "POLYCM_PROVIDER=%s: %s is a layer, which carries "
			   "nothing itself: POLYCM_PROVIDER='%s;PROVIDER'", setting, name, name);
		return -ENODEV;
	}
	choose(module);
	return 0;
}

static int choose_list(const char *setting, const char *list)
{
	char *copy = strdup(list), *rest = copy, *name;
	int r = 0, one;

	if (!copy)
		return -ENOMEM;
	while ((name = next_name(&rest))) {
		one = choose_named(setting, name);
		if (one)
			r = one;
	}
	free(copy);
	return r;
}

static int refuse_layer(const char *setting, const char *name, const char *why)
{
	polycm_log(POLYCM_LOG_ERROR, "POLYCM_PROVIDER=%s: '%s' in front of ';' %s", setting, name,
		   why);
	return -ENODEV;
}

static int add_layer(const char *setting, const char *name)
{
	struct polycm_module *module;
	int r;

	if (!*name)
		return refuse_layer(setting, name, "is no layer's name");
	if (*name == '^' || strchr(name, ','))
		return refuse_layer(setting, name, "is a list of providers: lists come after the "
				    "last ';'");
	r = load_named(setting, name, &module);
	if (r)
		return r;
	if (!polycm_module_is_layer(module))
		return refuse_layer(setting, name, "is no layer but a provider: providers come after "
				    "the last ';'");
	if (module->selected)
		return refuse_layer(setting, name, "is named twice");
	module->selected = true;
	r = polycm_layers_add(module);
	return r ? refuse_layer(setting, name, "is one layer too many") : 0;
}

/* Add the layers before `end': "trace;fault;" of "trace;fault;roce,iwarp". */
static int choose_layers(const char *setting, const char *end)
{
	char *copy = strndup(setting, (size_t)(end - setting)), *rest = copy, *name;
	int r = copy ? 0 : -ENOMEM;

	while (!r && (name = strsep(&rest, ";")))
		r = add_layer(setting, trim(name));
	free(copy);
	return r;
}

/* arg is the list after "^". */
static int choose_unless_excluded(void *arg, const struct provider_file *file)
{
	const char *path, *problem;
	struct polycm_module *module;

	if (in_list(arg, file->name))
		return 0;
	module = polycm_files_load(file->name, false, &path, &problem);
	if (module && !polycm_module_is_layer(module) &&
	    !(module->desc.flags & POLYCM_PROVIDER_ON_REQUEST))
		choose(module);
	return 0;
}

static int is_name(void *arg, const struct provider_file *file)
{
	return !strcmp(arg, file->name);
}

static void warn_of_unknown(const char *setting)
{
	char *copy = strdup(setting), *rest = copy, *name;

	while (copy && (name = next_name(&rest))) {
		const char *nearest;

		if (polycm_files_walk(is_name, name))
			continue;
		nearest = polycm_files_nearest(name);
		polycm_log(POLYCM_LOG_WARN, "POLYCM_PROVIDER=^%s: there is no provider %s%s%s%s",
			   setting, name, nearest ? ", did you mean " : "", nearest ? nearest : "",
			   nearest ? "?" : "");
	}
	free(copy);
}

static int choose_loaded(void *unused, const struct provider_file *file)
{
	(void)unused;
	if (polycm_module_is_layer(file->module))
		return polycm_layers_add(file->module);
	choose(file->module);
	return 0;
}

static int choose_providers(void)
{
	const char *setting = polycm_setting("POLYCM_PROVIDER");
	const char *last = strrchr(setting, ';'), *list = last ? last + 1 : setting;
	int r = last ? choose_layers(setting, last) : 0;

	if (r)
		return r;
	while (isblank((unsigned char)*list))
		list++;
	if (*list && *list != '^')
		return choose_list(setting, list);
	if (*list == '^')
		warn_of_unknown(++list);
	return polycm_files_walk(choose_unless_excluded, (void *)(uintptr_t)list);
}

/* ------------------------------------------------------------------------
 * Starting them.
 */

static void start_module(struct polycm_module *module)
{
	bool named = polycm_setting_given("POLYCM_PROVIDER");
	unsigned int errors = polycm_log_errors();
	bool had_clock = polycm_clock_installed;

	module->init_error = polycm_options_check_values(module->name);
	polycm_own_looks++;
	if (!module->init_error)
		module->init_error = POLYCM_OP(module, init, module, &module->ctx);
	polycm_own_looks--;
	module->owns_clock = !had_clock && polycm_clock_installed;
	if (module->init_error) {
		/* If the provider logged its reason as an error, this line adds little: a warning. */
		polycm_log(named && polycm_log_errors() == errors ? POLYCM_LOG_ERROR : POLYCM_LOG_WARN,
			   "provider %s does not start: %s (%d)", module->name,
			   provider_strerror(module->init_error), module->init_error);
		return;
	}
	module->initialised = true;
	if (polycm_module_is_layer(module))
		return;
	polycm_layers_wrap(module);
	active[num_active++] = module;
	if (module->desc.id_size > id_size)
		id_size = module->desc.id_size;
	if (module->desc.channel_size > channel_size)
		channel_size = module->desc.channel_size;
}

/* If a selected layer does not start, no provider is started. */
static int start_layers(void)
{
	for (unsigned int i = 0; i < polycm_num_layers; i++) {
		start_module(polycm_layer(i));
		if (!polycm_layer(i)->initialised)
			return -ENODEV;
	}
	return 0;
}

/* Providers over the kernel share its ids, so they are one carrier: the first of them. */
static void find_carriers(void)
{
	struct polycm_module *kernel = NULL;

	for (size_t i = 0; i < num_active; i++) {
		struct polycm_module *module = active[i];

		module->carrier = module;
		if (polycm_module_is_kernel(module)) {
			if (kernel)
				module->carrier = kernel;
			kernel = module->carrier;
		}
		if (module->carrier == module)
			carriers[num_carriers++] = module;
	}
}

static void enumerate(void)
{
	bool named = polycm_setting_given("POLYCM_PROVIDER");

	polycm_own_looks++;
	for (size_t i = 0; i < num_active; i++) {
		int r = POLYCM_OP(active[i], enumerate, active[i]->ctx);

		if (r)
			polycm_log(named ? POLYCM_LOG_ERROR : POLYCM_LOG_WARN,
				   "provider %s cannot list its devices: %s (%d)", active[i]->name,
				   provider_strerror(r), r);
	}
	polycm_own_looks--;
}

/* Is this polycm itself, a selected provider or a layer, so that its settings have an effect? */
static bool is_used(const char *name)
{
	bool used = !strcmp(name, "polycm");

	for (size_t i = 0; i < num_chosen && !used; i++)
		used = !strcmp(chosen[i]->name, name);
	for (unsigned int i = 0; i < polycm_num_layers && !used; i++)
		used = !strcmp(polycm_layer(i)->name, name);
	return used;
}

static int start(void)
{
	bool from_memory;
	size_t max;
	int r;

	polycm_log_init();
	polycm_forks_watch();	/* before a provider does: see fork.c */
	process = getpid();
	max = polycm_files_count(&from_memory);
	chosen = calloc(max + 1, sizeof(struct polycm_module *));
	active = calloc(max + 1, sizeof(struct polycm_module *));
	carriers = calloc(max + 1, sizeof(struct polycm_module *));
	if (!chosen || !active || !carriers)
		return -ENOMEM;

	r = from_memory ? polycm_files_walk(choose_loaded, NULL) : choose_providers();
	polycm_options_check_environment(from_memory ? NULL : is_used);
	if (!r)
		r = start_layers();
	if (r)
		return r;
	for (size_t i = 0; i < num_chosen; i++)
		start_module(chosen[i]);
	find_carriers();
	enumerate();
	return 0;
}

static int reach(enum start_state wanted)
{
	pthread_mutex_lock(&selection_lock);
	while (state < wanted) {
		enum start_state before = state;

		if (before == STARTING && pthread_equal(starter, pthread_self()))
			break;
		if (before == STARTING) {
			pthread_cond_wait(&changed, &selection_lock);
			continue;
		}
		__atomic_store_n(&state, STARTING, __ATOMIC_RELAXED);	/* read without the lock */
		starter = pthread_self();
		pthread_mutex_unlock(&selection_lock);
		__atomic_store_n(&looking, wanted == LOOKED_AT, __ATOMIC_RELEASE);
		/* Providers that were only looked at learn by enumerate() that they are used now. */
		if (before == NOT_STARTED)
			result = start();
		else if (!result)
			enumerate();
		pthread_mutex_lock(&selection_lock);
		__atomic_store_n(&state, wanted, __ATOMIC_RELEASE);
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&selection_lock);
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == STARTING ? 0 : result;
}

int polycm_registry_get(void)
{
	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == STARTED)
		return result;
	return reach(STARTED);
}

bool polycm_registry_only_looked_at(void)
{
	return __atomic_load_n(&looking, __ATOMIC_ACQUIRE);
}

size_t polycm_registry_active(struct polycm_module *const **ret_modules)
{
	*ret_modules = active;
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE) < LOOKED_AT || result ? 0 : num_active;
}

size_t polycm_registry_selected(struct polycm_module *const **ret_modules)
{
	int r = polycm_registry_get();

	*ret_modules = active;
	return r ? 0 : num_active;
}

size_t polycm_registry_carriers(struct polycm_module *const **ret_modules)
{
	int r = polycm_registry_get();

	*ret_modules = carriers;
	return r ? 0 : num_carriers;
}

bool polycm_registry_kernel_only(void)
{
	struct polycm_module *const *modules;

	return !polycm_num_layers && polycm_registry_carriers(&modules) == 1 &&
	       polycm_module_is_kernel(modules[0]);
}

bool polycm_registry_any_failed(void)
{
	bool failed = false;

	if (polycm_registry_get())
		return true;
	for (size_t i = 0; i < num_chosen && !failed; i++)
		failed = chosen[i]->init_error != 0;
	return failed;
}

static int get_devices(enum start_state wanted)
{
	/* To start them is to ask them. */
	bool begun = __atomic_load_n(&state, __ATOMIC_ACQUIRE) != NOT_STARTED;
	int r = reach(wanted);

	if (!r && begun)
		enumerate();
	return r;
}

int polycm_registry_get_devices(void)
{
	return get_devices(STARTED);
}

int polycm_registry_look(void)
{
	return get_devices(LOOKED_AT);
}

size_t polycm_registry_id_size(void)
{
	return polycm_registry_get() ? 0 : polycm_layers_size() + ((id_size + 15) & ~(size_t)15);
}

size_t polycm_registry_channel_size(void)
{
	return polycm_registry_get() ? 0 : ((channel_size + 15) & ~(size_t)15);
}

/*
 * The process exits: providers notify peers, as the kernel would.  This runs after the program's
 * own exit handlers, and not in a forked child, which owns none of it.
 */
__attribute__((destructor)) static void finish(void)
{
	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) < LOOKED_AT || process != getpid())
		return;
	for (size_t i = num_active; i > 0; i--)
		active[i - 1]->ops.fini(active[i - 1]->ctx);
	for (unsigned int i = polycm_num_layers; i > 0; i--)
		if (polycm_layer(i - 1)->initialised)
			polycm_layer(i - 1)->ops.fini(polycm_layer(i - 1)->ctx);
}
