/* SPDX-License-Identifier: BSD-2-Clause */
/* base/misuse.c - see misuse.h */
#include "config.h"

#include "misuse.h"

#include <dlfcn.h>
#include <string.h>

#include "log.h"

void polycm_misuse_by(const char *plugin, const char *operation, const char *rule)
{
	polycm_log(POLYCM_LOG_ERROR, "provider %s: %s(): %s", plugin, operation, rule);
}

void polycm_misuse_at(const void *caller, const char *operation, const char *rule)
{
	const char *name = "(unknown)", *slash;
	Dl_info info;

	if (dladdr(caller, &info) && info.dli_fname) {
		slash = strrchr(info.dli_fname, '/');
		name = slash ? slash + 1 : info.dli_fname;
	}
	polycm_misuse_by(name, operation, rule);
}
