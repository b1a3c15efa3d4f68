/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/waited.c - what could make a descriptor ready: only virtual time, or something
 * outside.  Called when nothing is left to happen in virtual time.  The members of an epoll
 * set are in /proc/self/fdinfo.
 */
#include "config.h"

#include "host.h"
#include "wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "timers.h"

#define MAX_NESTING 5		/* EP_MAX_NESTS of the kernel is 4 */

static void add(struct polycm_waited *waited, int fd, unsigned int nesting);

static bool is_epoll_set(int fd)
{
	static const char name[] = "anon_inode:[eventpoll]";
	char path[40], target[sizeof(name)];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target)) == (ssize_t)(sizeof(name) - 1) &&
	       !memcmp(target, name, sizeof(name) - 1);
}

/* A line for each: "tfd:        5 events: ..." */
static void add_members(struct polycm_waited *waited, int set, unsigned int nesting)
{
	char path[40], *line = NULL;
	size_t room = 0;
	FILE *file;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", set);
	file = fopen(path, "re");
	if (!file) {
		waited->others++;
		return;
	}
	while (getline(&line, &room, file) > 0)
		if (sscanf(line, "tfd: %d", &fd) == 1)
			add(waited, fd, nesting + 1);
	free(line);
	fclose(file);
}

static void add_ours(struct polycm_waited *waited, const char *text)
{
	size_t room = sizeof(waited->text) - waited->len;
	int n = snprintf(waited->text + waited->len, room, "%s%s", waited->len ? "; " : "", text);

	waited->ours++;
	waited->len += (size_t)n < room ? (size_t)n : room - 1;
}

static void add(struct polycm_waited *waited, int fd, unsigned int nesting)
{
	char text[512];
	bool fetched = false;

	if (polycm_host()->channel_describe_fd(fd, text, sizeof(text), &fetched)) {
		/* A provider that fetches its events may get one at any time. */
		if (fetched)
			waited->others++;
		else
			add_ours(waited, text);
	} else if (polycm_host()->clock_owns_fd(fd, text, sizeof(text))) {
		add_ours(waited, text);
	} else if (polycm_timerfd_is_off(fd, text, sizeof(text))) {
		add_ours(waited, text);
	} else if (nesting < MAX_NESTING && is_epoll_set(fd)) {
		add_members(waited, fd, nesting);
	} else {
		waited->others++;
	}
}

/* A thread that is cancelled must leave no lock behind. */
void polycm_waited_add(struct polycm_waited *waited, int fd)
{
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	add(waited, fd, 0);
	pthread_setcancelstate(cancel_state, NULL);
}
