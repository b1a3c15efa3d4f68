/* SPDX-License-Identifier: BSD-2-Clause */
/* files.c - see files.h. */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "engine.h"
#include "files.h"
#include "pcap.h"
#include "trace.h"
#include "watch.h"

static atomic_int status;		/* errno of a failure that nobody asked for yet */
static bool ends_well;			/* the process, with status 0 */
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

int sim_files_open(void)
{
	static char *trace, *capture;
	int r;

	number += sim_watch_told;
	sim_watch_told = false;
	r = open_file("POLYCM_SIM_TRACE", &trace, sim_trace_open);
	return r < 0 ? r : open_file("POLYCM_SIM_PCAP", &capture, sim_pcap_open);
}

void sim_files_failed(const char *what, const char *path, int err)
{
	int none = 0;

	(void)atomic_compare_exchange_strong(&status, &none, err);
	sim_core->log(POLYCM_LOG_ERROR, NULL, "the %s %s ends here: %s; what comes later is missing "
		      "from it", what, path, strerror(err));
}

int sim_files_status(void)
{
	return -atomic_exchange(&status, 0);
}

static void at_exit(int exit_status, void *arg)
{
	(void)arg;
	ends_well = !exit_status;
}

/* Behind all exit handlers: those that write, and the program's own. */
static __attribute__((destructor)) void change_status(void)
{
	if (!ends_well || !sim_files_status())
		return;
	fflush(NULL);
	_exit(EX_IOERR);
}

int sim_files_watch_exit(void)
{
	return on_exit(at_exit, NULL) ? -ENOMEM : 0;
}
