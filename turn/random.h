/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/random.h - random numbers of a member, which the system's seed decides. */
#ifndef TURN_RANDOM_H
#define TURN_RANDOM_H

#include <stdbool.h>

#include "trap.h"

/* getrandom(). */
long turn_random_get(const struct turn_call *call);
/* open(), openat(): notes descriptors of /dev/urandom and /dev/random. */
long turn_random_open(const struct turn_call *call);
/* openat2(). */
long turn_random_open_how(const struct turn_call *call);
/* Is it one of these?  Then what read(), readv() and pread64() give. */
bool turn_random_is(int fd);
long turn_random_read(const struct turn_call *call);

#endif
