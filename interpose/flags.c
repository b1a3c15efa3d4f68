/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/flags.c - fcntl() and ioctl(), which make descriptors non-blocking and blocking
 * again.  Ours count these calls before they call the C library's, so that libpolycm need
 * not ask the kernel before each wait: in virtual time a wait ends at once, and asking took
 * as long as the rest of a connection.
 *
 * The names are given to the linker only: headers may define fcntl() as fcntl64().
 */
#include "config.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include "core/base/export.h"
#include "libc.h"
#include "wait.h"

static unsigned int changes = 1;	/* atomic */
static bool watched;			/* the program calls the functions here */

POLYCM_EXPORT int own_fcntl(int fd, int cmd, ...) __asm__("fcntl");
POLYCM_EXPORT int own_fcntl64(int fd, int cmd, ...) __asm__("fcntl64");
POLYCM_EXPORT int own_ioctl(int fd, unsigned long request, ...) __asm__("ioctl");

static void count(void)
{
	/* 0 means that the calls are not seen. */
	if (!__atomic_add_fetch(&changes, 1, __ATOMIC_RELEASE))
		__atomic_add_fetch(&changes, 1, __ATOMIC_RELEASE);
}

/* The third argument is whatever the command takes, or missing, as in the C library. */
#define THIRD(second)                           \
	({                                      \
		va_list args;                   \
		void *arg;                      \
						\
		va_start(args, second);         \
		arg = va_arg(args, void *);     \
		va_end(args);                   \
		arg;                            \
	})

int own_fcntl(int fd, int cmd, ...)
{
	if (cmd == F_SETFL)
		count();
	return polycm_libc()->fcntl(fd, cmd, THIRD(cmd));
}

int own_fcntl64(int fd, int cmd, ...)
{
	if (cmd == F_SETFL)
		count();
	return polycm_libc()->fcntl64(fd, cmd, THIRD(cmd));
}

int own_ioctl(int fd, unsigned long request, ...)
{
	if (request == FIONBIO)
		count();
	return polycm_libc()->ioctl(fd, request, THIRD(request));
}

/* Does the program find the function of this library under that name? */
static bool is_found(const char *name, const void *own)
{
	void *found = dlsym(RTLD_DEFAULT, name);
	Dl_info theirs, ours;

	return found && dladdr(found, &theirs) && dladdr(own, &ours) &&
	       theirs.dli_fbase == ours.dli_fbase;
}

/* Programs with a 64-bit time on 32-bit machines call others (__fcntl_time64). */
__attribute__((constructor)) static void look_who_is_called(void)
{
	watched = sizeof(long) == sizeof(int64_t) && is_found("fcntl", &changes) &&
		  is_found("fcntl64", &changes) && is_found("ioctl", &changes);
}

unsigned int polycm_flags_changed(void)
{
	return watched ? __atomic_load_n(&changes, __ATOMIC_ACQUIRE) : 0;
}
