/* SPDX-License-Identifier: BSD-2-Clause */
/* misuse.c - see misuse.h */
#include "config.h"

#include "misuse.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log.h"

#define MAX_ERRNO 4095

static void tell(const char *plugin, const char *operation, const char *rule)
{
	polycm_log(POLYCM_LOG_ERROR, "provider %s: %s(): %s", plugin, operation, rule);
}

void polycm_misuse(const struct polycm_module *module, const char *operation, const char *format, ...)
{
	char rule[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(rule, sizeof(rule), format, args);
	va_end(args);
	tell(module ? module->name : "(unknown)", operation, rule);
}

void polycm_misuse_at(const void *caller, const char *operation, const char *rule)
{
	const char *name = "(unknown)", *slash;
	Dl_info info;

	if (dladdr(caller, &info) && info.dli_fname) {
		slash = strrchr(info.dli_fname, '/');
		name = slash ? slash + 1 : info.dli_fname;
	}
	tell(name, operation, rule);
}

int polycm_misuse_positive(const struct polycm_module *module, const char *operation, int r)
{
	polycm_misuse(module, operation, "it returned %d: operations return 0 or a negative errno", r);
	return r <= MAX_ERRNO ? -r : -EINVAL;
}
