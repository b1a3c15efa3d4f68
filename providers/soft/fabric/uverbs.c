/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/uverbs.c - see uverbs.h. */
#include "config.h"

#include "uverbs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Not opendir(), which may be libpolycm-interpose's and then shows our own devices. */
static DIR *open_host(const char *path)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

/* A program may use devices of the host, too, so a name must not stand for two. */
unsigned int sim_first_uverbs(void)
{
	DIR *dir = open_host("/sys/class/infiniband_verbs");
	unsigned int first = 0, number;
	struct dirent *entry;

	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		if (sscanf(entry->d_name, "uverbs%u", &number) == 1 && number >= first)
			first = number + 1;
	closedir(dir);
	return first;
}
