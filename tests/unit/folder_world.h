/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * folder_world.h - a process that joins and leaves the shared fabric, for tests of
 * the folder that it is in.
 */
#ifndef TESTS_FOLDER_WORLD_H
#define TESTS_FOLDER_WORLD_H

#include <sys/types.h>

/* Set-up and tear-down of a test: an empty runtime folder, and all as it was. */
int folder_start(void **state);
int folder_stop(void **state);

/* 0 or a negative errno. */
int folder_join(void);
void folder_leave(void);
/* Joining must fail so, with one line at `error' that has these words, and leave nothing. */
void folder_refused(int error, const char *why);

/* In the runtime folder. */
void folder_make(const char *path, mode_t mode);
void folder_write(const char *path, off_t at, const void *bytes, size_t len);

#endif
