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

struct shown {
	const char *owner;	/* whose settings; NULL: everybody's */
	unsigned int num;
};

/* Text in lines of at most WIDTH columns, the first of which has begun. */
static void print_wrapped(const char *text)
{
	size_t column = INDENT, len;

	for (; *text; text += len + strspn(text + len, " ")) {
		len = strcspn(text, " ");
		if (column > INDENT && column + 1 + len > WIDTH) {
			printf("\n%*s", INDENT, "");
			column = INDENT;
		}
		column += (size_t)printf("%s%.*s", column > INDENT ? " " : "", (int)len, text);
	}
	putchar('\n');
}

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

	if (shown->owner && strcmp(shown->owner, info->owner))
		return 0;
	if (shown->num++ && !shown->owner)
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
	printf("  %-*s", INDENT - 2, strcmp(info->owner, "polycm") ? info->owner : "all");
	print_wrapped(info->help);
	return 0;
}

int info_settings(const char *owner)
{
	struct shown shown = { .owner = owner };

	if (polycm_settings_walk(show_setting, &shown) < 0) {
		tool_error("info: cannot list the settings: %m");
		return EXIT_FAILURE;
	}
	if (!shown.num)
		puts("  none");
	return 0;
}
