/* SPDX-License-Identifier: BSD-2-Clause */
/* scenario_read.c - see scenario_read.h. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core.h"
#include "fault_names.h"
#include "scenario_read.h"

#define MAX_MEMBERS 32u
#define MAX_FRACTION 9u			/* digits behind the point */

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit time_units[] = {
	{ "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
	{ "min", UINT64_C(60000000000) }, { NULL, 0 },
};

static const struct unit rate_units[] = {
	{ "bit/s", 1 }, { "kbit/s", 1000 }, { "Mbit/s", 1000000 }, { "Gbit/s", 1000000000 },
	{ "Tbit/s", UINT64_C(1000000000000) }, { NULL, 0 },
};

static const char *const expected[] = {
	[SCENARIO_TEXT] = "text in \"quotes\"",
	[SCENARIO_TIME] = "a time such as \"5 us\" (ns, us, ms, s, min)",
	[SCENARIO_RATE] = "a rate such as \"10 Gbit/s\" (bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s)",
	[SCENARIO_CHANCE] = "a number from 0 to 1",
	[SCENARIO_COUNT] = "a number from 0 to 4294967295",
	[SCENARIO_NUMBER] = "a number from 0 to 9223372036854775807",
	[SCENARIO_INT] = "a whole number",
	[SCENARIO_FLAG] = "true or false",
	[SCENARIO_LIST] = "a list of groups: ( { ... }, { ... } )",
	[SCENARIO_GROUP] = "a group: { ... }",
};

/* ------------------------------------------------------------------------
 * Errors.
 */

int scenario_error(const struct scenario *scenario, const config_setting_t *at, const char *format,
		   ...)
{
	char text[1200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (at)
		sim_core->log(POLYCM_LOG_ERROR, NULL, "%s:%u: %s", scenario->path,
			      config_setting_source_line(at), text);
	else
		sim_core->log(POLYCM_LOG_ERROR, NULL, "%s: %s", scenario->path, text);
	return -EINVAL;
}

static int show_value(const config_setting_t *setting, char *text, size_t size)
{
	switch (config_setting_type(setting)) {
	case CONFIG_TYPE_INT:
	case CONFIG_TYPE_INT64:
		return snprintf(text, size, "%lld", config_setting_get_int64(setting));
	case CONFIG_TYPE_FLOAT:
		return snprintf(text, size, "%g", config_setting_get_float(setting));
	case CONFIG_TYPE_BOOL:
		return snprintf(text, size, "%s", config_setting_get_bool(setting) ? "true" :
				"false");
	case CONFIG_TYPE_STRING:
		return snprintf(text, size, "\"%.60s\"", config_setting_get_string(setting));
	case CONFIG_TYPE_GROUP:
		return snprintf(text, size, "{ ... }");
	case CONFIG_TYPE_ARRAY:
		return snprintf(text, size, "[ ... ]");
	default:
		return snprintf(text, size, "( ... )");
	}
}

/* Log lines are one line, whatever the file has. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

const char *scenario_show(const config_setting_t *setting)
{
	static char texts[2][160];
	static unsigned int turn;
	char *text = texts[turn++ % 2];
	const char *name = config_setting_name(setting);
	int len = name ? snprintf(text, sizeof(texts[0]), "%.40s = ", name) : 0;

	show_value(setting, text + len, sizeof(texts[0]) - (size_t)len);
	make_printable(text);
	return text;
}

/* ------------------------------------------------------------------------
 * Values.
 */

static bool is_integer(const config_setting_t *setting)
{
	int type = config_setting_type(setting);

	return type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64;
}

static const struct unit *find_unit(const char *name, const struct unit *units)
{
	for (; units->name; units++)
		if (!strcmp(units->name, name))
			return units;
	return NULL;
}

/* "1.5 ms", exactly: a part of a nanosecond or of a bit is an error. */
static bool parse_with_unit(const char *text, const struct unit *units, uint64_t *ret_value)
{
	uint64_t whole = 0, fraction = 0, scale = 1, parts;
	const struct unit *unit;
	unsigned int digits = 0;

	if (!isdigit((unsigned char)*text))
		return false;
	for (; isdigit((unsigned char)*text); text++)
		if (__builtin_mul_overflow(whole, 10u, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*text - '0'), &whole))
			return false;
	if (*text == '.') {
		for (text++; isdigit((unsigned char)*text); text++, scale *= 10) {
			if (++digits > MAX_FRACTION)
				return false;
			fraction = fraction * 10 + (uint64_t)(*text - '0');
		}
		if (!digits)
			return false;
	}
	text += strspn(text, " ");
	unit = find_unit(text, units);
	if (!unit || __builtin_mul_overflow(whole, unit->factor, &whole) ||
	    __builtin_mul_overflow(fraction, unit->factor, &parts) || parts % scale)
		return false;
	return !__builtin_add_overflow(whole, parts / scale, ret_value);
}

static bool read_text(const config_setting_t *setting, const char **ret_text)
{
	*ret_text = config_setting_get_string(setting);
	return *ret_text != NULL;
}

static bool read_with_unit(const config_setting_t *setting, const struct unit *units,
			   uint64_t *ret_value)
{
	const char *text = config_setting_get_string(setting);

	return text && parse_with_unit(text, units, ret_value);
}

static bool read_chance(const config_setting_t *setting, double *ret_chance)
{
	if (config_setting_type(setting) == CONFIG_TYPE_FLOAT)
		*ret_chance = config_setting_get_float(setting);
	else if (is_integer(setting))
		*ret_chance = (double)config_setting_get_int64(setting);
	else
		return false;
	return *ret_chance >= 0 && *ret_chance <= 1;
}

static bool read_integer(const config_setting_t *setting, int64_t min, int64_t max,
			 int64_t *ret_value)
{
	if (!is_integer(setting))
		return false;
	*ret_value = config_setting_get_int64(setting);
	return *ret_value >= min && *ret_value <= max;
}

/* The first element of a list that is not a group; the number of elements if all are. */
static int first_other_element(const config_setting_t *list)
{
	int i = 0;

	while (i < config_setting_length(list) &&
	       config_setting_type(config_setting_get_elem(list, (unsigned int)i)) ==
		       CONFIG_TYPE_GROUP)
		i++;
	return i;
}

static bool read_value(config_setting_t *setting, enum scenario_kind kind, void *ret)
{
	int64_t number;

	switch (kind) {
	case SCENARIO_TEXT:
		return read_text(setting, ret);
	case SCENARIO_TIME:
		return read_with_unit(setting, time_units, ret);
	case SCENARIO_RATE:
		return read_with_unit(setting, rate_units, ret);
	case SCENARIO_CHANCE:
		return read_chance(setting, ret);
	case SCENARIO_COUNT:
		if (!read_integer(setting, 0, UINT_MAX, &number))
			return false;
		*(unsigned int *)ret = (unsigned int)number;
		return true;
	case SCENARIO_NUMBER:
		if (!read_integer(setting, 0, INT64_MAX, &number))
			return false;
		*(uint64_t *)ret = (uint64_t)number;
		return true;
	case SCENARIO_INT:
		if (!read_integer(setting, INT_MIN, INT_MAX, &number))
			return false;
		*(int *)ret = (int)number;
		return true;
	case SCENARIO_FLAG:
		*(bool *)ret = config_setting_get_bool(setting);
		return config_setting_type(setting) == CONFIG_TYPE_BOOL;
	case SCENARIO_LIST:
		*(config_setting_t **)ret = setting;
		return config_setting_type(setting) == CONFIG_TYPE_LIST &&
		       first_other_element(setting) == config_setting_length(setting);
	case SCENARIO_GROUP:
		*(config_setting_t **)ret = setting;
		return config_setting_type(setting) == CONFIG_TYPE_GROUP;
	default:
		*(config_setting_t **)ret = setting;
		return true;
	}
}

static int wrong_element(const struct scenario *scenario, const config_setting_t *list)
{
	int i = first_other_element(list);
	const config_setting_t *element = config_setting_get_elem(list, (unsigned int)i);

	return scenario_error(scenario, element, "%s: element %d is %s: expected a group: { ... }",
			      config_setting_name(list), i + 1, scenario_show(element));
}

/* ------------------------------------------------------------------------
 * Groups.
 */

static const struct scenario_member *find_member(const char *name,
						 const struct scenario_member *members, size_t num)
{
	for (size_t i = 0; i < num; i++)
		if (!strcmp(members[i].name, name))
			return &members[i];
	return NULL;
}

static int unknown_member(const struct scenario *scenario, const config_setting_t *setting,
			  const char *what, const struct scenario_member *members, size_t num)
{
	const char *names[MAX_MEMBERS];

	for (size_t i = 0; i < num && i < MAX_MEMBERS; i++)
		names[i] = members[i].name;
	return scenario_error(scenario, setting, "%s has no member '%.40s'%s", what,
			      config_setting_name(setting),
			      sim_hint(config_setting_name(setting), names, (unsigned int)num));
}

int scenario_read_members(const struct scenario *scenario, const config_setting_t *group,
			  const char *what, const struct scenario_member *members, size_t num,
			  void *ret)
{
	const struct scenario_member *member;
	config_setting_t *setting;

	for (int i = 0; i < config_setting_length(group); i++) {
		setting = config_setting_get_elem(group, (unsigned int)i);
		member = find_member(config_setting_name(setting), members, num);
		if (!member)
			return unknown_member(scenario, setting, what, members, num);
		if (read_value(setting, member->kind, (char *)ret + member->offset))
			continue;
		if (member->kind == SCENARIO_LIST && config_setting_type(setting) == CONFIG_TYPE_LIST)
			return wrong_element(scenario, setting);
		return scenario_error(scenario, setting, "%s: expected %s", scenario_show(setting),
				      expected[member->kind]);
	}
	return 0;
}

int scenario_for_each(const struct scenario *scenario, const config_setting_t *list,
		      int (*read)(const struct scenario *scenario, const config_setting_t *group,
				  void *arg), void *arg)
{
	int r = 0;

	for (int i = 0; list && !r && i < config_setting_length(list); i++)
		r = read(scenario, config_setting_get_elem(list, (unsigned int)i), arg);
	return r;
}
