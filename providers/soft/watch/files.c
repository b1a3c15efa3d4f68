/* SPDX-License-Identifier: BSD-2-Clause */
/* watch/files.c - see files.h. */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/soft/engine/engine.h"
#include "providers/soft/trace/trace.h"
#include "providers/soft/watch/pcap/pcap.h"
#include "files.h"
#include "watch.h"

static unsigned int number = 1;		/* of the files that are written now */

/* The program may change its folder between two fabrics. */
static char *absolute(const char *path)
{
	char *folder, *whole;

	if (*path == '/' || !strcmp(path, "-"))
		return strdup(path);
	folder = getcwd(NULL, 0);
	if (!folder)
		return strdup(path);
	if (asprintf(&whole, "%s/%s", folder, path) < 0)
		whole = NULL;
	free(folder);
	return whole;
}

/* Standard error, pipes and devices take what all fabrics have to tell. */
static bool is_numbered(const char *path)
{
	struct stat st;

	return number > 1 && strcmp(path, "-") && (stat(path, &st) < 0 || S_ISREG(st.st_mode));
}

static int open_numbered(const char *path, int (*open)(const char *path))
{
	char *with = NULL;
	int r;

	if (is_numbered(path) && asprintf(&with, "%s.%u", path, number) < 0)
		return -ENOMEM;
	sim_lock();
	r = open(with ? with : path);
	sim_unlock();
	if (!r && with)
		sim_core->log(POLYCM_LOG_INFO, NULL, "what happens on this fabric is in %s", with);
	free(with);
	return r;
}

static int open_file(const char *setting, char **path, int (*open)(const char *path))
{
	const char *told = sim_core->setting(setting);
	int r = -ENOMEM;

	if (!told || !*told)
		return 0;
	if (!*path)
		*path = absolute(told);
	if (*path)
		r = open_numbered(*path, open);
	if (r < 0)
		sim_core->log(POLYCM_LOG_ERROR, NULL, "%s=%s: %s", setting, told, strerror(-r));
	return r;
}

int sim_files_open(const char *trace, const char *capture)
{
	static char *trace_path, *capture_path;
	int r;

	number += sim_trace_used;
	sim_trace_used = false;
	r = open_file(trace, &trace_path, sim_trace_open);
	return r < 0 ? r : open_file(capture, &capture_path, sim_pcap_open);
}
