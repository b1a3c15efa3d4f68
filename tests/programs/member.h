/* SPDX-License-Identifier: BSD-2-Clause */
/* member.h - for the programs that tests compile and run, most of them as members of a system. */
#ifndef MEMBER_H
#define MEMBER_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			printf("line %d: %s, errno %d\n", __LINE__, #what, errno);                 \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* Since some time of the past. */
static inline double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct member_case {
	const char *name;
	void (*run)(void);
};

static char *member_argument;	/* behind the name of the case; or NULL */

/* Of main(): runs the case of that name, and says "ok" when it ends.  The status of the program. */
static inline int member_main(int argc, char **argv, const struct member_case *cases, size_t num)
{
	for (size_t i = 0; i < num; i++) {
		if (argc < 2 || strcmp(argv[1], cases[i].name) != 0)
			continue;
		member_argument = argv[2];
		cases[i].run();
		puts("ok");
		return 0;
	}
	return 2;
}

#endif
