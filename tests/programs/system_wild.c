/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_wild.c - a member of a system that writes where it must not, as a program that is wrong may:
 * into the memory by which polycm runs it.
 *
 *	system_wild		all of it
 *	system_wild SEED	some words, by the seed; then it ends in one of several ways
 */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "member.h"

/* Words here and there, by a seed: small numbers, large ones, and what is there but for one bit. */
static void scribble(uint64_t *words, size_t num, unsigned int seed)
{
	srandom(seed);
	for (long i = random() % 8; i >= 0; i--) {
		/* Half of them where the numbers of the system itself are. */
		uint64_t *word = &words[(size_t)random() % (random() % 2 ? 64 : num)];

		switch (random() % 4) {
		case 0:
			*word = (uint64_t)random() % 300;
			break;
		case 1:
			*word = (uint64_t)random() << 32 | (uint64_t)random();
			break;
		case 2:
			*word ^= UINT64_C(1) << random() % 64;
			break;
		default:
			*word = UINT64_MAX;
		}
	}
	if (seed % 3 == 0)
		_exit(0);
	if (seed % 3 == 1)
		abort();
}

int main(int argc, char **argv)
{
	const char *path = getenv("LIBPOLYCM_TURN");
	int fd = path ? open(path, O_RDWR) : -1;
	struct stat st;
	char *at;

	CHECK(fd >= 0 && !fstat(fd, &st));
	at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED);
	if (argc > 1)
		scribble((uint64_t *)at, (size_t)st.st_size / sizeof(uint64_t),
			 (unsigned int)strtoul(argv[1], NULL, 10));
	else
		memset(at + 64, -1, (size_t)st.st_size - 64);
	for (;;)
		sleep(1);
}
