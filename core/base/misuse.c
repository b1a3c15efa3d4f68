/* SPDX-License-Identifier: BSD-2-Clause */
/* base/misuse.c - see misuse.h */
#include "config.h"

#include "misuse.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "log.h"

void polycm_misuse_at(const void *caller, const char *operation, const char *rule)
{
	const char *path = "(unknown)", *slash;
	char name[NAME_MAX + 1] = "";
	Dl_info info;

	if (dladdr(caller, &info) && info.dli_fname)
		path = info.dli_fname;
	slash = strrchr(path, '/');
	if (slash)
		path = slash + 1;
	/* NAME of provider-NAME.so; other files as they are. */
	(void)sscanf(path, "provider-%255[^.]", name);
	polycm_log(POLYCM_LOG_ERROR, "provider %s: %s(): %s", name[0] ? name : path, operation,
		   rule);
}
