/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stacks.c - a member of a system, for stacks.sh, that waits for ever: two threads for each other's
 * lock, far down in a recursion, or where nothing is left of its stack.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "member.h"

#define DEEP 1000

#define NOINLINE __attribute__((noinline, noclone))

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static volatile int sum;

static NOINLINE void take_both(pthread_mutex_t *one, pthread_mutex_t *other)
{
	CHECK(!pthread_mutex_lock(one));
	usleep(1000);
	CHECK(!pthread_mutex_lock(other));
	sum++;
}

static void *in_another_order(void *arg)
{
	take_both(&second, &first);
	sum++;
	return arg;
}

static NOINLINE void go_down(int depth)
{
	if (depth)
		go_down(depth - 1);
	else
		pause();
	sum++;
}

/* Of the callers nothing is left but addresses of the stack itself. */
static NOINLINE void wreck(void)
{
	uintptr_t *frame = __builtin_frame_address(0);

	for (size_t i = 0; i < 64; i++)
		frame[i] = (uintptr_t)(frame + i % 8);
	for (;;)
		pause();
}

static void *wrecked(void *arg)
{
	wreck();
	return arg;
}

int main(int argc, char **argv)
{
	void *(*begin)(void *) = in_another_order;
	pthread_t thread;

	CHECK(argc == 2);
	if (!strcmp(argv[1], "deep"))
		go_down(DEEP);
	if (!strcmp(argv[1], "wrecked"))
		begin = wrecked;
	CHECK(!pthread_create(&thread, NULL, begin, NULL));
	if (!strcmp(argv[1], "locks"))
		take_both(&first, &second);
	CHECK(!pthread_join(thread, NULL));
	return 0;
}
