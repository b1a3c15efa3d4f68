/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * write_error.h - what happens when a trace, a capture or a record can no longer be
 * written: a log line, and an exit status if nobody asks.  Any thread, any lock.
 */
#ifndef COMMON_WRITE_ERROR_H
#define COMMON_WRITE_ERROR_H

/* Writing has failed with this errno, and no more is written.  Logged at level error. */
void sim_files_failed(const char *what, const char *path, int err);

/* The negative errno of the first failure since the last call; 0: there was none. */
int sim_files_status(void);

/* After a failure that nobody asked for, end the process with EX_IOERR instead of 0.  Or -ENOMEM. */
int sim_files_watch_exit(void);

#endif
