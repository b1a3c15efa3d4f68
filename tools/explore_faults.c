/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explore_faults.c - lists of faults as the simulator writes them, and scenario
 * files that repeat them: the base scenario with its faults and these.
 *
 * A program that makes fabrics of its own has faults on them too, which only
 * the group `explore' can name; else they are faults like any other.
 */
#include "config.h"

#include <errno.h>
#include <libconfig.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explore.h"
#include "system.h"

#define PREEMPTION "{ process = "	/* as tools/system_preempt.c writes it */

bool explore_is_preemption(const char *line)
{
	return !strncmp(line, PREEMPTION, strlen(PREEMPTION));
}

bool explore_has_faults(const char *record)
{
	struct explore_faults faults;
	bool any;

	(void)explore_read_record(record, &faults);
	any = faults.num;
	explore_free_faults(&faults);
	return any;
}

bool explore_lists_faults(const struct explore *explore)
{
	static const char *const lists[] = { "faults", "preemptions" };
	const config_setting_t *list;
	config_t config;
	bool any = false;

	config_init(&config);
	if (explore->scenario && config_read_file(&config, explore->scenario) == CONFIG_TRUE)
		for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
			list = config_lookup(&config, lists[i]);
			any |= list && config_setting_length(list);
		}
	config_destroy(&config);
	return any;
}

char *explore_points(const char *record)
{
	FILE *file = fopen(record, "re");
	char *line = NULL, *points = NULL;
	size_t size = 0;

	while (!points && file && getline(&line, &size, file) > 0)
		if (!strncmp(line, SYSTEM_POINTS_LINE, strlen(SYSTEM_POINTS_LINE)))
			points = tool_strdup(line + strlen(SYSTEM_POINTS_LINE));
	free(line);
	if (file)
		fclose(file);
	return points;
}

int explore_read_record(const char *path, struct explore_faults *ret_faults)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

	*ret_faults = (struct explore_faults){ 0 };
	if (!file)
		return errno == ENOENT ? 0 : -errno;
	while ((len = getline(&line, &size, file)) > 0) {
		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		if (!strncmp(line, SYSTEM_POINTS_LINE, strlen(SYSTEM_POINTS_LINE)))
			continue;
		if (line[0] != '{') {
			ret_faults->several_fabrics = true;
			continue;
		}
		ret_faults->lines = tool_realloc(ret_faults->lines, ret_faults->num + 1,
						 sizeof(char *));
		ret_faults->lines[ret_faults->num++] = tool_strdup(line);
	}
	free(line);
	fclose(file);
	return 0;
}

void explore_free_faults(struct explore_faults *faults)
{
	for (size_t i = 0; i < faults->num; i++)
		free(faults->lines[i]);
	free(faults->lines);
	*faults = (struct explore_faults){ 0 };
}

/* ------------------------------------------------------------------------
 * Scenario files.
 */

static config_setting_t *get_or_add(config_setting_t *parent, const char *name, int type)
{
	config_setting_t *setting = config_setting_get_member(parent, name);

	return setting ? setting : config_setting_add(parent, name, type);
}

static void set_number(config_setting_t *root, const char *name, uint64_t number)
{
	config_setting_t *setting;

	config_setting_remove(root, name);
	setting = config_setting_add(root, name,
				     number <= INT_MAX ? CONFIG_TYPE_INT : CONFIG_TYPE_INT64);
	if (setting && number <= INT_MAX)
		config_setting_set_int(setting, (int)number);
	else if (setting)
		config_setting_set_int64(setting, (long long)number);
}

static void copy_members(config_setting_t *to, const config_setting_t *from)
{
	for (int i = 0; i < config_setting_length(from); i++) {
		config_setting_t *member = config_setting_get_elem(from, (unsigned int)i);
		int type = config_setting_type(member);
		config_setting_t *copy = config_setting_add(to, config_setting_name(member), type);

		if (!copy)
			continue;
		if (type == CONFIG_TYPE_STRING)
			config_setting_set_string(copy, config_setting_get_string(member));
		else if (type == CONFIG_TYPE_INT)
			config_setting_set_int(copy, config_setting_get_int(member));
	}
}

/* Our own lines: a group of numbers and texts. */
static int add_fault(config_setting_t *list, const char *line)
{
	char *text = tool_printf("fault = %s;", line);
	config_setting_t *group;
	config_t config;
	int r = -EINVAL;

	config_init(&config);
	if (config_read_string(&config, text) == CONFIG_TRUE) {
		group = config_setting_add(list, NULL, CONFIG_TYPE_GROUP);
		if (group) {
			copy_members(group, config_lookup(&config, "fault"));
			r = 0;
		}
	}
	config_destroy(&config);
	free(text);
	return r;
}

/* That nodes may fail changes a system, whether they do or not: each process starts its NIC thread. */
static bool keep_nodes(config_setting_t *root)
{
	config_setting_t *group = config_setting_get_member(root, "explore");
	const char *name;

	if (!group || !config_setting_get_member(group, "nodes"))
		return false;
	for (int i = config_setting_length(group); i-- > 0;) {
		name = config_setting_name(config_setting_get_elem(group, (unsigned int)i));
		if (strcmp(name, "nodes"))
			config_setting_remove_elem(group, (unsigned int)i);
	}
	return true;
}

/* Where they go: whatever else stood there as an exploration's is left out. */
static config_setting_t *list_for(const struct explore *explore, config_setting_t *root,
				  const struct explore_faults *faults)
{
	if (!explore->is_system || !keep_nodes(root))
		config_setting_remove(root, "explore");
	if (faults->several_fabrics)
		root = get_or_add(root, "explore", CONFIG_TYPE_GROUP);
	return root ? get_or_add(root, "faults", CONFIG_TYPE_LIST) : NULL;
}

/* libconfig's config_write_file() takes a full disk for success.  errno where this fails. */
static int write_config(const config_t *config, const char *path)
{
	FILE *file = fopen(path, "we");
	int r = 0;

	if (!file)
		return -errno;
	config_write(config, file);
	if (fflush(file) || ferror(file))
		r = -errno;
	if (fclose(file) && !r)
		r = -errno;
	if (r)
		unlink(path);
	return r;
}

int explore_write_scenario(const struct explore *explore, const char *path, uint64_t seed,
			   const struct explore_faults *faults, const bool *keep)
{
	config_setting_t *root, *list, *clock, *preemptions;
	config_t config;
	int r = 0;

	config_init(&config);
	if (explore->scenario && config_read_file(&config, explore->scenario) != CONFIG_TRUE)
		r = -EINVAL;
	root = config_root_setting(&config);
	/* Its lines are not those of the file any more. */
	if (config_setting_get_member(root, "file"))
		config_setting_remove(root, "file");
	set_number(root, "seed", seed);
	clock = get_or_add(root, "clock", CONFIG_TYPE_STRING);
	if (clock)
		config_setting_set_string(clock, "virtual");
	list = list_for(explore, root, faults);
	preemptions = get_or_add(root, "preemptions", CONFIG_TYPE_LIST);
	if (!list || !clock || !preemptions)
		r = -ENOMEM;
	for (size_t i = 0; !r && i < faults->num; i++)
		if (!keep || keep[i])
			r = add_fault(explore_is_preemption(faults->lines[i]) ? preemptions : list,
				      faults->lines[i]);
	if (preemptions && !config_setting_length(preemptions))
		config_setting_remove(root, "preemptions");
	if (!r)
		r = write_config(&config, path);
	config_destroy(&config);
	if (r)
		tool_error("cannot write %s: %s", path, strerror(-r));
	return r;
}
