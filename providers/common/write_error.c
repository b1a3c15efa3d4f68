/* SPDX-License-Identifier: BSD-2-Clause */
/* write_error.c - see write_error.h. */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "core.h"
#include "write_error.h"

static atomic_int status;		/* errno of a failure that nobody has asked for yet */
static bool exits_with_0;

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
	exits_with_0 = !exit_status;
}

/* Runs after all exit handlers: those that write files, and the program's own. */
static __attribute__((destructor)) void change_status(void)
{
	if (!exits_with_0 || !sim_files_status())
		return;
	fflush(NULL);
	_exit(EX_IOERR);
}

int sim_files_watch_exit(void)
{
	static bool watching;

	if (!watching && on_exit(at_exit, NULL))
		return -ENOMEM;
	watching = true;
	return 0;
}
