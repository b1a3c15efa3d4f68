/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * info_settings.c - polycm info --config: the settings.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "polycm.h"
#include "polycm/polycm.h"

#define WIDTH 80
#define INDENT 10
#define OWN "polycm"	/* owner of the settings that are no plugin's */

struct shown {
	const char *owner;	/* whose settings */
	bool apart;		/* an empty line between two of them */
	unsigned int num;
};

struct owners {
	const char **names;	/* the library's own first, then in the order of names */
	size_t num;
};

static void print_choices(const char *choices)
{
	fputs("  one of  ", stdout);
	for (; *choices; choices++) {
		if (*choices == '|')
			fputs(", ", stdout);
		else
			putchar(*choices);
	}
	putchar('\n');
}

static int show_setting(void *arg, const struct polycm_setting_info *info)
{
	struct shown *shown = arg;

	if (strcmp(shown->owner, info->owner))
		return 0;
	if (shown->num++ && shown->apart)
		putchar('\n');
	if (info->given)
		printf("%s=%s\n  from the environment; default: %s\n", info->name, info->value,
		       info->default_value[0] ? info->default_value : "unset");
	else if (info->default_value[0])
		printf("%s=%s\n  default\n", info->name, info->value);
	else
		printf("%s\n  unset\n", info->name);
	if (info->choices)
		print_choices(info->choices);
	printf("  %-*s", INDENT - 2, strcmp(info->owner, OWN) ? info->owner : "all");
	tool_wrap(stdout, info->help, INDENT, WIDTH);
	return 0;
}

static bool comes_first(const char *a, const char *b)
{
	if (!strcmp(b, OWN))
		return false;
	return !strcmp(a, OWN) || strcmp(a, b) < 0;
}

static int add_owner(void *arg, const struct polycm_setting_info *info)
{
	struct owners *owners = arg;
	size_t at = owners->num;

	for (size_t i = 0; i < owners->num; i++)
		if (!strcmp(owners->names[i], info->owner))
			return 0;
	owners->names = tool_realloc(owners->names, owners->num + 1, sizeof(*owners->names));
	for (owners->num++; at && comes_first(info->owner, owners->names[at - 1]); at--)
		owners->names[at] = owners->names[at - 1];
	owners->names[at] = info->owner;
	return 0;
}

/* The library lists them in the order in which it found the plugins, which depends on their folders. */
int info_settings(const char *owner)
{
	struct shown shown = { .owner = owner, .apart = !owner };
	struct owners owners = { .num = 0 };
	int r;

	if (owner)
		r = polycm_settings_walk(show_setting, &shown);
	else
		r = polycm_settings_walk(add_owner, &owners);
	for (size_t i = 0; r >= 0 && i < owners.num; i++) {
		shown.owner = owners.names[i];
		r = polycm_settings_walk(show_setting, &shown);
	}
	if (r < 0)
		tool_error("info: cannot list the settings: %m");
	else if (!shown.num)
		puts("  none");
	free(owners.names);
	return r < 0 ? EXIT_FAILURE : 0;
}
