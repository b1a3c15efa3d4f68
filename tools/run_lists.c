/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run_lists.c - polycm run: lists of providers as POLYCM_PROVIDER has them,
 * layers first: "trace;fault;roce,iwarp".
 */
#include "config.h"

#include <string.h>

#include "run.h"

const char *run_behind_layers(const char *list)
{
	const char *last = strrchr(list, ';');

	list = last ? last + 1 : list;
	return list + strspn(list, " \t");
}

/* Without the blanks around it. */
static const char *trim(const char *name, size_t len, size_t *ret_len)
{
	size_t blanks = strspn(name, " \t");

	blanks = blanks < len ? blanks : len;
	name += blanks;
	len -= blanks;
	while (len > 0 && strchr(" \t", name[len - 1]))
		len--;
	*ret_len = len;
	return name;
}

const char *run_next_name(const char **rest, size_t *ret_len)
{
	const char *name = *rest;
	size_t len = strcspn(name, ",");

	*rest = name[len] ? name + len + 1 : NULL;
	return trim(name, len, ret_len);
}

const char *run_next_layer(const char **rest, const char *end, size_t *ret_len)
{
	const char *name = *rest;
	size_t len = strcspn(name, ";");

	if (name >= end || !name[len])
		return NULL;
	*rest = name + len + 1;
	return trim(name, len, ret_len);
}

static bool is(const char *name, size_t len, const char *wanted)
{
	return len == strlen(wanted) && !memcmp(name, wanted, len);
}

bool run_names(const char *list, const char *provider)
{
	const char *behind = run_behind_layers(list), *name;
	const char *rest = behind[0] == '^' ? NULL : behind;
	bool found = false;
	size_t len;

	while (rest && !found) {
		name = run_next_name(&rest, &len);
		found = is(name, len, provider);
	}
	return found;
}

char *run_with_faults(const char *list)
{
	const char *behind = run_behind_layers(list), *rest = list, *name;
	size_t len;

	while ((name = run_next_layer(&rest, behind, &len)))
		if (is(name, len, RUN_FAULTS))
			return tool_strdup(list);
	return tool_printf("%.*s%s;%s", (int)(behind - list), list, RUN_FAULTS, behind);
}
