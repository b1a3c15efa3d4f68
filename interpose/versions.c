/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/versions.c - calls on conditions, with the version of the C library if that has
 * two of them.
 *
 * A program that was linked with unversioned ones would get the C library's older calls when
 * it runs without this library.  So linkers do not find ours; programs look them up with the
 * C library's version, and so does ThreadSanitizer.
 */
#include "config.h"

#include "core/base/export.h"
#include "wait.h"

/* Processors on which glibc is older than its present threads, of 2003. */
#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__i386__) || defined(__s390__) || \
			   defined(__mips__) || defined(__sparc__) || defined(__alpha__) || \
			   (defined(__powerpc__) && defined(__BIG_ENDIAN__)))
#define EXPORT_AS(name) __asm__(".symver exported_" #name "," #name "@GLIBC_2.3.2")
#else
#define EXPORT_AS(name) __asm__(".set " #name ", exported_" #name "\n.global " #name)
#endif

POLYCM_EXPORT int exported_pthread_cond_signal(pthread_cond_t *cond);
POLYCM_EXPORT int exported_pthread_cond_broadcast(pthread_cond_t *cond);
POLYCM_EXPORT int exported_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
						  const struct timespec *until);

EXPORT_AS(pthread_cond_signal);
EXPORT_AS(pthread_cond_broadcast);
EXPORT_AS(pthread_cond_timedwait);

int exported_pthread_cond_signal(pthread_cond_t *cond)
{
	return polycm_cond_signal(cond);
}

int exported_pthread_cond_broadcast(pthread_cond_t *cond)
{
	return polycm_cond_broadcast(cond);
}

int exported_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				    const struct timespec *until)
{
	return polycm_cond_timedwait(cond, mutex, until);
}
