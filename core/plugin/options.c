/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/options.c - the table of settings and the environment behind it.
 *
 * Rows are never removed, and values are kept from their first use on, so pointers to
 * both stay valid without the lock.  The lock protects the list and the values.  It is a
 * leaf: only the C library and the log are called with it held.
 */
#include "config.h"

#include "options.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "core/base/log.h"
#include "plugin_internal.h"

struct row {
	struct row *next;
	const char *owner;
	const struct polycm_option *option;
	bool read;		/* value and given are valid */
	bool given;
	bool bad;		/* what was given is none of the choices */
	const char *value;
};

#define SIZE sizeof(struct polycm_option)

/* Name, default, choices, help. */
static const struct polycm_option core_options[] = {
	{ SIZE, "POLYCM_PROVIDER", "", NULL,
		"Providers that may carry connections, in order of preference, separated "
		"by commas; ^ in front: all but these. Unset: all but sim and ofi. "
		"Layers come first, each followed by a semicolon: trace;roce." },
	{ SIZE, "POLYCM_PROVIDER_PATH", "", NULL,
		"Folders to search for providers, separated by colons, before the "
		"installed ones. Ignored in processes with raised privileges." },
	{ SIZE, "POLYCM_LOG", "error", "error|warn|info|debug|trace",
		"How much is logged to standard error." },
};

#define NUM_CORE_OPTIONS (sizeof(core_options) / sizeof(core_options[0]))

static struct row core_rows[NUM_CORE_OPTIONS];
static struct row *first, **last = &first;
static pthread_mutex_t options_lock = PTHREAD_MUTEX_INITIALIZER;

int polycm_privileged_override = -1;

bool polycm_privileged(void)
{
	if (polycm_privileged_override >= 0)
		return polycm_privileged_override;
	return getauxval(AT_SECURE) != 0;
}

static void append(struct row *row, const char *owner, const struct polycm_option *option)
{
	row->owner = owner;
	row->option = option;
	*last = row;
	last = &row->next;
}

static void lock_rows(void)
{
	pthread_mutex_lock(&options_lock);
	if (!first)
		for (size_t i = 0; i < NUM_CORE_OPTIONS; i++)
			append(&core_rows[i], "polycm", &core_options[i]);
}

static struct row *find_row(const char *name)
{
	struct row *row;

	for (row = first; row; row = row->next)
		if (!strcmp(row->option->name, name))
			break;
	return row;
}

int polycm_options_add(const char *owner, const struct polycm_option *options, size_t num)
{
	struct row *rows;
	int r = 0;

	if (!num)
		return 0;
	rows = calloc(num, sizeof(*rows));
	if (!rows)
		return -ENOMEM;

	lock_rows();
	for (size_t i = 0; i < num && !r; i++) {
		if (find_row(options[i].name))
			r = -EEXIST;
		for (size_t k = 0; k < i && !r; k++)
			if (!strcmp(options[k].name, options[i].name))
				r = -EEXIST;
	}
	for (size_t i = 0; i < num && !r; i++)
		append(&rows[i], owner, &options[i]);
	pthread_mutex_unlock(&options_lock);

	if (r)
		free(rows);
	return r;
}

/* Is value one of "a|b|c"? */
static bool is_choice(const char *value, const char *choices)
{
	size_t len = strlen(value);

	while (choices) {
		const char *end = strchrnul(choices, '|');

		if ((size_t)(end - choices) == len && !memcmp(choices, value, len))
			return true;
		choices = *end ? end + 1 : NULL;
	}
	return false;
}

/* With raised privileges only the log level, which is harmless, comes from the environment. */
static const char *from_environment(struct row *row)
{
	const struct polycm_option *option = row->option;
	const char *value = getenv(option->name);

	if (!value || !*value)
		return NULL;
	if (polycm_privileged() && strcmp(option->name, "POLYCM_LOG") != 0) {
		polycm_log(POLYCM_LOG_WARN, "%s is ignored: the process has raised privileges",
			   option->name);
		return NULL;
	}
	if (option->choices && !is_choice(value, option->choices)) {
		row->bad = true;
		polycm_log(POLYCM_LOG_ERROR, "%s=%s is not one of %s", option->name, value,
			   option->choices);
		return NULL;
	}
	return value;
}

static void read_row(struct row *row)
{
	const char *value = from_environment(row);
	/*
	 * setenv() may move the environment, so a copy is kept.  Without memory for a copy
	 * return the environment's own and do not keep it: the default would silently
	 * select another fabric or device.
	 */
	const char *copy = value ? strdup(value) : NULL;

	row->given = value != NULL;
	row->value = copy ? copy : value ? value : row->option->default_value;
	row->read = copy || !value;
}

static const char *value_of(const char *name, bool *ret_given)
{
	const char *value = NULL;
	struct row *row;

	lock_rows();
	row = find_row(name);
	if (row) {
		if (!row->read)
			read_row(row);
		value = row->value;
		*ret_given = row->given;
	}
	pthread_mutex_unlock(&options_lock);
	return value;
}

const char *polycm_setting(const char *name)
{
	bool given;

	return name ? value_of(name, &given) : NULL;
}

bool polycm_setting_given(const char *name)
{
	bool given = false;

	value_of(name, &given);
	return given;
}

int polycm_options_check_values(const char *owner)
{
	struct row *row;
	int r = 0;

	lock_rows();
	for (row = first; row; row = row->next) {
		if (strcmp(row->owner, owner) != 0)
			continue;
		if (!row->read)
			read_row(row);
		if (row->bad)
			r = -EINVAL;
	}
	pthread_mutex_unlock(&options_lock);
	return r;
}

int polycm_options_walk(int (*fn)(void *arg, const char *owner, const struct polycm_option *row),
			void *arg)
{
	struct row *row;
	int r = 0;

	lock_rows();
	row = first;
	pthread_mutex_unlock(&options_lock);

	/* Without the lock, so that fn may ask for values; rows never go away. */
	while (row && !r) {
		r = fn(arg, row->owner, row->option);
		pthread_mutex_lock(&options_lock);
		row = row->next;
		pthread_mutex_unlock(&options_lock);
	}
	return r;
}

/* ------------------------------------------------------------------------
 * Unknown names.
 */

static void report_unknown(const char *name)
{
	struct polycm_nearest nearest = { .word = name };

	lock_rows();
	for (const struct row *row = first; row; row = row->next)
		polycm_nearest_try(&nearest, row->option->name);
	pthread_mutex_unlock(&options_lock);
	if (nearest.found)
		polycm_log(POLYCM_LOG_ERROR, "unknown setting %s: did you mean %s?", name,
			   nearest.found);
	else
		polycm_log(POLYCM_LOG_ERROR, "unknown setting %s (polycm info --config lists all)",
			   name);
}

static const char *owner_of(const char *name)
{
	const struct row *row;

	lock_rows();
	row = find_row(name);
	pthread_mutex_unlock(&options_lock);
	return row ? row->owner : polycm_file_of_variable(name);
}

/* Only a warning: child processes may use the setting, with another POLYCM_PROVIDER. */
static void report_unused(const char *name, const char *owner)
{
	const char *providers = polycm_setting("POLYCM_PROVIDER");

	polycm_log(POLYCM_LOG_WARN, "%s has no effect: %s is not used with POLYCM_PROVIDER=%s", name,
		   owner, *providers ? providers : "(not set)");
}

void polycm_options_check_environment(bool (*in_use)(const char *owner))
{
	for (char **variable = environ; variable && *variable; variable++) {
		const char *equals = strchr(*variable, '='), *owner;
		size_t len = equals ? (size_t)(equals - *variable) : 0;
		char name[128];

		if (strncmp(*variable, "POLYCM_", 7) || len >= sizeof(name))
			continue;
		memcpy(name, *variable, len);
		name[len] = '\0';
		owner = owner_of(name);
		if (!owner)
			report_unknown(name);
		else if (equals[1] && in_use && !in_use(owner))
			report_unused(name, owner);
	}
}

static void read_level(void)
{
	polycm_log_set_level(polycm_setting("POLYCM_LOG"));
}

void polycm_log_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_level);
}
