/* SPDX-License-Identifier: BSD-2-Clause */
/* scene_process.c - processes that play, each with files of its own for what it prints. */
#include <fcntl.h>
#include <unistd.h>

#include "scene_internal.h"

static void redirect(int target, const char *folder, const char *name, const char *suffix)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s.%s", folder, name, suffix);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0 || dup2(fd, target) < 0) {
		perror(path);
		_exit(99);
	}
	/* Else other processes of the scenario would hold it as well. */
	close(fd);
}

pid_t start_process(const char *folder, const char *name)
{
	pid_t process = fork();

	if (process < 0) {
		perror("fork");
		exit(99);
	}
	if (!process) {
		redirect(STDOUT_FILENO, folder, name, "txt");
		redirect(STDERR_FILENO, folder, name, "err");
	}
	return process;
}
