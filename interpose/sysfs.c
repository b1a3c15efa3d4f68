/* SPDX-License-Identifier: BSD-2-Clause */
/* interpose/sysfs.c - which paths of a program lead to simulated devices. */
#include "config.h"

#include "sysfs.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "paths.h"
#include "thread_local.h"

bool polycm_sysfs_inside;

static pthread_mutex_t sysfs_lock = PTHREAD_MUTEX_INITIALIZER;	/* the folder */
static POLYCM_THREAD_LOCAL bool busy;		/* calls in between are not the program's */

/* Below /sys: what is ours, with what is below it. */
static const char *const prefixes[] = {
	"class/infiniband", "class/infiniband_verbs", "class/infiniband_mad",
};

/* Cards are in a domain of their own. */
#define CARDS "devices/pciffff:"

/* "//class/./infiniband" is "class/infiniband". */
static const char *skip(const char *path, const char *prefix)
{
	while (*prefix) {
		while (*path == '/' || (*path == '.' && (path[1] == '/' || !path[1])))
			path++;
		while (*prefix && *prefix != '/')
			if (*path++ != *prefix++)
				return NULL;
		if (*prefix == '/' && *path != '/')
			return NULL;
		prefix += *prefix == '/';
	}
	return path;
}

/* "class/net/eth0/device", with what is below it. */
static bool is_card_of_interface(const char *path)
{
	const char *name = skip(path, "class/net"), *end;

	if (!name || *name != '/')
		return false;
	name += strspn(name, "/.");
	end = skip(name + strcspn(name, "/"), "device");
	return end && (!*end || *end == '/');
}

static bool is_ours(const char *path)
{
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		const char *end = skip(path, prefixes[i]);

		if (end && (!*end || *end == '/'))
			return true;
	}
	return skip(path, CARDS) != NULL || is_card_of_interface(path);
}

/*
 * libibverbs describes real devices, and polycm asks the host.  This library's own calls are those
 * of a program's glob().
 */
static bool is_program(const void *caller)
{
	static const char *const others[] = { "libpolycm.so", "libibverbs.so", "provider-" };
	const char *name;
	Dl_info info;

	if (!dladdr(caller, &info) || !info.dli_fname)
		return true;
	name = strrchr(info.dli_fname, '/');
	name = name ? name + 1 : info.dli_fname;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strncmp(name, others[i], strlen(others[i])))
			return false;
	return true;
}

bool polycm_sysfs_shown(const char *real, char shown[static PATH_MAX])
{
	const char *rest = polycm_tree_rest(real);

	if (!rest)
		return false;
	return (size_t)snprintf(shown, PATH_MAX, "/sys%s", rest) < PATH_MAX;
}

/* The shown path of the folder that a relative path begins at. */
static bool shown_folder(int dirfd, char shown[static PATH_MAX])
{
	char link[40], real[PATH_MAX];
	ssize_t len;

	if (dirfd == AT_FDCWD)
		return polycm_paths()->getcwd(real, sizeof(real)) && polycm_sysfs_shown(real, shown);
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
	len = polycm_paths()->readlinkat(AT_FDCWD, link, real, sizeof(real) - 1);
	if (len < 0)
		return false;
	real[len] = '\0';
	return polycm_sysfs_shown(real, shown);
}

/* The path below /sys, or false: it is not ours. */
static bool below_sys(int dirfd, const char *path, char below[static PATH_MAX])
{
	const size_t prefix = strlen(POLYCM_SYSFS_PREFIX);
	char folder[PATH_MAX];

	if (*path == '/')
		return is_ours(path + prefix) &&
		       (size_t)snprintf(below, PATH_MAX, "%s", path + prefix) < PATH_MAX;
	/* An empty path is the descriptor itself. */
	return *path && shown_folder(dirfd, folder) && strlen(folder) > prefix &&
	       (size_t)snprintf(below, PATH_MAX, "%s/%s", folder + prefix, path) < PATH_MAX;
}

/* A thread that is cancelled must not keep the lock. */
static bool walk(const char *below, unsigned int use, struct polycm_sysfs_place *place)
{
	bool found;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&sysfs_lock);
	found = polycm_host()->sysfs_begin() && !polycm_sysfs_walk(below, use, place);
	pthread_mutex_unlock(&sysfs_lock);
	pthread_setcancelstate(state, NULL);
	return found;
}

struct polycm_sysfs_place *polycm_sysfs_find(int dirfd, const char *path, unsigned int use,
					     const void *caller)
{
	int saved_errno = errno;
	struct polycm_sysfs_place *place = NULL;
	char below[PATH_MAX];

	if (busy || !polycm_host())
		return NULL;
	busy = true;
	if (below_sys(dirfd, path, below) && is_program(caller))
		place = calloc(1, sizeof(*place));
	if (place && !walk(below, use, place)) {
		free(place);
		place = NULL;
	}
	if (place && use & POLYCM_SYSFS_LISTS && place->kind == POLYCM_SYSFS_FOLDER)
		__atomic_store_n(&polycm_sysfs_inside, true, __ATOMIC_RELAXED);
	busy = false;
	errno = saved_errno;
	return place;
}

void polycm_sysfs_put(struct polycm_sysfs_place *place)
{
	int saved_errno = errno;

	free(place);
	errno = saved_errno;
}

void polycm_sysfs_moved(void)
{
	int saved_errno = errno;
	char shown[PATH_MAX];

	if (shown_folder(AT_FDCWD, shown))
		__atomic_store_n(&polycm_sysfs_inside, true, __ATOMIC_RELAXED);
	errno = saved_errno;
}

static void forked(void)
{
	sysfs_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	polycm_tree_forked();
}

/* A shell in such a folder may have started this program. */
__attribute__((constructor)) static void begin(void)
{
	(void)pthread_atfork(NULL, NULL, forked);
	polycm_sysfs_moved();
}
