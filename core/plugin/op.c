/* SPDX-License-Identifier: BSD-2-Clause */
/* plugin/op.c - see op.h */
#include "config.h"

#include "op.h"

#include <errno.h>
#include <stdio.h>

#define MAX_ERRNO 4095

void polycm_misuse(const struct polycm_module *module, const char *operation, const char *format, ...)
{
	char rule[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(rule, sizeof(rule), format, args);
	va_end(args);
	polycm_misuse_by(module ? module->name : "(unknown)", operation, rule);
}

int polycm_misuse_positive(const struct polycm_module *module, const char *operation, int r)
{
	polycm_misuse(module, operation, "it returned %d: operations return 0 or a negative errno", r);
	return r <= MAX_ERRNO ? -r : -EINVAL;
}
