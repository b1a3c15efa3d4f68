/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Other processes for tests of the shared fabric: the test program itself,
 * started again with "--child MODE".  They speak a line when they are ready
 * and go when their standard input ends.
 */
#ifndef SHM_CHILD_H
#define SHM_CHILD_H

#include <sys/types.h>

struct shm_child {
	pid_t pid;
	int to;				/* its standard input */
	int from;			/* its standard output */
	unsigned int slot;
	uint32_t qpn;			/* of a block it took */
	uint64_t address;		/* of SHM_CHILD_PATTERN bytes of it: 0, 1, 2 ... 250, 0 ... */
};

#define SHM_CHILD_PATTERN 100000u
#define SHM_CHILD_PORT 7471
#define SHM_CHILD_FLOOD 200u

/*
 * Modes: "echo" sends every packet back; "poll" does so by polling; "hold" has
 * a listener and QP numbers; "lock" also holds the segment's lock; "deaf"
 * receives nothing until it is told to; "silent" likewise, and answers only to
 * "end", with the number of packets before that came in order; "flood" sends
 * SHM_CHILD_FLOOD packets, numbered, to slot 0; "broken" sends it a packet and
 * spoils its ring; "size" and "magic" make something that is no ring; "churn"
 * comes and goes; "world" does what it is told (shm_child_ask()).
 *
 * SHM_CHILD_SCENARIO in the environment: the file that the fabric is from.
 */
void shm_child_start(struct shm_child *child, const char *mode);
void shm_child_tell(struct shm_child *child);	/* go on */
/*
 * Of a child in mode "world": receive, and show the world; the line is to be
 * freed.  Send a packet from its last port to the first one of slot 0.
 */
char *shm_child_ask(struct shm_child *child);
void shm_child_send(struct shm_child *child);
/* All that changes can change in this process's copy of the fabric, in a line; to be freed. */
char *shm_child_world(void);
/* End of input, or a signal; returns the status of waitpid(). */
int shm_child_end(struct shm_child *child);
int shm_child_kill(struct shm_child *child);

/* The fabric of a file, whether it has nodes or not.  Lock held. */
int shm_child_open(const char *scenario);

/* In main(): runs the child if this is one. */
int shm_child_main(int argc, char **argv);

#endif
