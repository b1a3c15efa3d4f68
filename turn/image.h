/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/image.h - what a program's file is: whether libpolycm-turn is loaded with it.  Pure: it reads
 * through a function of its caller's, which is a member before exec, or the launcher.
 */
#ifndef TURN_IMAGE_H
#define TURN_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum turn_image {
	TURN_IMAGE_FITS,	/* or the kernel refuses it */
	TURN_IMAGE_SCRIPT,	/* its interpreter is what counts */
	TURN_IMAGE_STATIC,	/* no dynamic linker, which could preload something */
	TURN_IMAGE_FOREIGN,	/* for another processor */
	TURN_IMAGE_UNREADABLE,	/* it can be executed, but nobody knows what it is */
};

struct turn_image_file {
	long fd;
	/* How many bytes it has of these; else an error. */
	long (*read)(const struct turn_image_file *file, void *to, size_t len, uint64_t at);
};

/* ret_interpreter: a script's; others leave it alone. */
enum turn_image turn_image_of(const struct turn_image_file *file, char *ret_interpreter, size_t size);

/* Whoever starts it has other rights in it, so the dynamic linker preloads nothing. */
bool turn_image_gains_rights(const struct stat *st, bool has_capabilities, uid_t uid, gid_t gid);

#endif
