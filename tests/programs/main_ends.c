/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main_ends.c - a program whose main() ends its thread only: the process ends when its last thread
 * has ended, with status 0 and its handlers.  With an argument that thread ends it, with that status.
 * Its threads may be called as those of polycm are, and a signal is for the one that waits for it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

static pthread_t main_thread;

static void *work(void *status)
{
	sigset_t set;
	int signal;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (pthread_sigmask(SIG_BLOCK, &set, NULL) || pthread_join(main_thread, NULL))
		return NULL;
	printf("main has ended\n");
	sleep(1);
	if (kill(getpid(), SIGUSR1) || sigwait(&set, &signal))
		return NULL;
	pthread_setname_np(pthread_self(), "two\nlines");
	sleep(1);
	printf("the last has ended\n");
	if (status)
		exit(atoi(status));
	return NULL;
}

static void at_exit(void)
{
	printf("the process has ended\n");
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr at = { .sa_family = AF_INET };
	struct rdma_cm_id *id;
	pthread_t thread;

	/* Now the simulator has its thread. */
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) || rdma_bind_addr(id, &at) ||
	    rdma_listen(id, 1) || atexit(at_exit))
		return 1;
	main_thread = pthread_self();
	if (pthread_setname_np(main_thread, "polycm-own"))
		return 1;
	if (pthread_create(&thread, NULL, work, argc > 1 ? argv[1] : NULL))
		return 1;
	pthread_detach(thread);
	pthread_exit(NULL);
}
