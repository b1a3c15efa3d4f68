/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace/write_error.h - a trace, a capture or a record cannot be written any further:
 * told once, and by the program's exit status if nobody asks.
 */
#ifndef SIM_WRITE_ERROR_H
#define SIM_WRITE_ERROR_H

/*
 * A trace, a capture or a record cannot be written any further, for this errno.  One
 * line of the log, and what the next two say.
 */
void sim_files_failed(const char *what, const char *path, int err);

/* 0, or the negative errno of the first such failure since this was asked.  Any lock. */
int sim_files_status(void);

/* From now on the process ends with EX_IOERR where it would with 0 and nobody asked for a failure. */
int sim_files_watch_exit(void);

#endif
