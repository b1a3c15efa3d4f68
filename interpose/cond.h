/* SPDX-License-Identifier: BSD-2-Clause */
/* interpose/cond.h - the calls on conditions that versions.c exports. */
#ifndef POLYCM_INTERPOSE_COND_H
#define POLYCM_INTERPOSE_COND_H

#include <pthread.h>

int polycm_cond_signal(pthread_cond_t *cond);
int polycm_cond_broadcast(pthread_cond_t *cond);
int polycm_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
			  const struct timespec *until);

#endif
