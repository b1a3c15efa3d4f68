/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nth.h - makes the n-th allocation, descriptor, mapping, thread or disk
 * operation of a process fail.  There are two ways to use it.
 *
 * 1. For any program, by LD_PRELOAD of tests/nth/.libs/libnth.so:
 *
 *	NTH_KIND=alloc		what to fail: alloc, descriptor, map, thread,
 *				disk, or any (the default)
 *	NTH_FAIL=17		the first to fail; 0, the default: none
 *	NTH_COUNT=1		how many fail in a row; 0: all from there on
 *	NTH_IN=libpolycm,provider-	only calls from files whose names contain
 *				one of these; the default.  Empty: all calls
 *	NTH_REPORT=FILE		append a line for each failure, when it happens,
 *				and a line of counts when the process exits
 *
 *   The lines are
 *
 *	PID failed alloc 17: calloc from provider-sim.so
 *	PID counts alloc 120 descriptor 8 map 3 thread 1 disk 2
 *
 *   tests/nth/sweep runs a command once for each n.  Children inherit the
 *   variables, and each process counts for itself.
 *
 * 2. Inside one process: link tests/nth/libnth-in.la into the test and call the
 *   functions below.  Objects of the program itself come first in the symbol
 *   search, so this also works with AddressSanitizer and ThreadSanitizer.
 *
 *	nth_arm(NTH_ALLOC, n, 1);
 *	... the calls under test ...
 *	failed = nth_disarm(&counts);
 *
 * What counts as which kind:
 *	alloc		malloc, calloc, realloc, aligned_alloc, posix_memalign,
 *			strdup, strndup, asprintf		ENOMEM
 *	descriptor	open, openat, fopen, opendir, socket, eventfd,
 *			epoll_create1, memfd_create, pipe2, dup	EMFILE
 *	map		mmap					ENOMEM
 *	thread		pthread_create				EAGAIN
 *	disk		ftruncate, posix_fallocate, mkdir	ENOSPC
 */
#ifndef TESTS_NTH_H
#define TESTS_NTH_H

#include <stdbool.h>

enum nth_kind {
	NTH_ALLOC, NTH_DESCRIPTOR, NTH_MAP, NTH_THREAD, NTH_DISK,
	NTH_KINDS,
	NTH_ANY = NTH_KINDS,
};

struct nth_counts {
	unsigned long of[NTH_KINDS];	/* since nth_arm() */
	unsigned long failed;		/* of them */
};

/*
 * Count from 0 again, and fail calls first to first + count - 1 of the kind, in
 * all threads.  first 0: only count.  count 0: all from first on.
 */
void nth_arm(enum nth_kind kind, unsigned long first, unsigned long count);
/* As NTH_IN; "": calls from all files, also the program's own.  The string must stay. */
void nth_in(const char *files);
/* Fail nothing any more.  Did anything fail?  ret_counts may be NULL. */
bool nth_disarm(struct nth_counts *ret_counts);
/* The call that failed last and the file that made it, for messages: "calloc from provider-sim.so". */
const char *nth_last(void);

#endif
