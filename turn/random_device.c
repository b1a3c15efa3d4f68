/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/random_device.c - std::random_device of libstdc++, which asks the processor for random numbers
 * (RDRAND, RDSEED).  No system can catch that, so the functions are replaced: what getrandom() gives
 * is the seed's.
 */
#include "config.h"

#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* std::random_device::_M_getval(), and where libstdc++ is built without /dev/random */
EXPORT unsigned int _ZNSt13random_device9_M_getvalEv(void *device);
EXPORT unsigned int _ZNSt13random_device16_M_getval_pretr1Ev(void *device);

static unsigned int draw(void)
{
	unsigned int value = 0;

	/* Four bytes do not fail, and are not interrupted. */
	(void)syscall(SYS_getrandom, &value, sizeof(value), 0);
	return value;
}

unsigned int _ZNSt13random_device9_M_getvalEv(void *device)
{
	(void)device;
	return draw();
}

unsigned int _ZNSt13random_device16_M_getval_pretr1Ev(void *device)
{
	(void)device;
	return draw();
}
