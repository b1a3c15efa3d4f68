/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn_tells.h - what libpolycm-turn tells libpolycm and the simulator about the process that they
 * are in, where it gives threads their turns.  Found by dlsym().  They are of one build.  Not installed.
 */
#ifndef TURN_TELLS_H
#define TURN_TELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define TURN_TELLS "polycm_turn_tells"

/* What a call of libpolycm waits for, for people. */
enum turn_purpose {
	TURN_FOR_ANY,		/* its system call says what */
	TURN_FOR_CM_EVENT,
	TURN_FOR_CQ_EVENT,
	TURN_FOR_ASYNC_EVENT,
	TURN_FOR_ACK,
};

struct turn_tells {
	uint32_t size;
	/* ns of its clock, which is not a look at it; 0: the calling thread has no turns. */
	uint64_t (*now)(void);
	/* --- For a thread that has turns. --- */
	/* Is another process of the run there, or one that has not begun yet? */
	bool (*has_others)(void);
	unsigned int (*num_threads)(void);
	/* The others go on until each of them waits. */
	void (*let_others)(void);
	/*
	 * How many others wait until a thread of this process ends that, and nothing else can, except
	 * those that wait for the lock at `lock'.
	 */
	unsigned int (*num_parked)(const void *lock, size_t size);
	/*
	 * If the calling thread waits in its next call, and that times out, it only looks whether
	 * another process has ended: it is no reason to go on when nobody else can.
	 */
	void (*next_wait_looks)(void);
	/* Until it says TURN_FOR_ANY. */
	void (*waits_for)(enum turn_purpose purpose);
	/* The calling thread is the simulator's: that it goes on is nothing that others could see. */
	void (*serves)(void);
	/* What the calling thread writes is polycm's, until it says that it is the program's. */
	void (*writes_own)(bool is_own);
	/* A packet has left, which others may see without a call. */
	void (*sent)(void);
	/*
	 * write(2) of what nobody in the run reads: no call of the thread.  It does not let others go
	 * on, and costs less.
	 */
	ssize_t (*write_unseen)(int fd, const void *bytes, size_t len);
	/* Its calls do not let others go on, until it says that they may; they must not wait. */
	void (*keep_turn)(bool keeps);
	/* --- For who carries TCP connections (turn/connects.h). --- */
	/*
	 * That connect() (turn/carried.h), of which fd is the socket, is carried out now.  Nobody sees
	 * the socket meanwhile.  0: it has ended; -ECANCELED: its program has given it up; or another
	 * negative errno.
	 */
	int (*connect_now)(uint32_t number, int fd, const struct sockaddr *to, socklen_t len);
	/* It has failed; the socket, if there is one, is as before. */
	void (*connect_fails)(uint32_t number, int fd, int result);
	/* The RST that the socket with that cookie gets means that error. */
	void (*reset_means)(uint64_t cookie, int error);
	/* A port of the carrier's own stands for that one; 0: no longer. */
	void (*port_is_for)(uint16_t port, uint16_t other);
};

#endif
