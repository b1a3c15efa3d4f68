/* SPDX-License-Identifier: BSD-2-Clause */
/* member.h - for the programs that system.sh and preempt.sh compile and run as members of a system. */
#ifndef MEMBER_H
#define MEMBER_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			printf("line %d: %s, errno %d\n", __LINE__, #what, errno);                 \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#endif
