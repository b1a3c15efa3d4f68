/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/interposer.h - the seam between libpolycm and libpolycm-interpose.
 *
 * libpolycm-interpose exports calls of the C library (waits, clocks, timers,
 * paths of devices), so that a program can run in virtual time and finds the devices.  It attaches
 * to libpolycm, if that is there, when it is loaded, before main().  Where it is
 * not loaded, libpolycm uses the C library's own calls, and so does the program.
 *
 * Both libraries come from one build: the structs here are no ABI, and a size
 * that differs is refused.
 */
#ifndef POLYCM_CORE_INTERPOSER_H
#define POLYCM_CORE_INTERPOSER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <time.h>

#include "polycm/clock.h"
#include "polycm/provider.h"
#include "thread_local.h"

/* What is in sysfs, and its text: names, one a line, with '/' behind folders and '@' behind links. */
#define POLYCM_SYSFS_FOLDER	1
#define POLYCM_SYSFS_FILE	2	/* what one reads */
#define POLYCM_SYSFS_LINK	3	/* the target */

/* Nodes of devices: uverbs0 has this number, others follow. */
#define POLYCM_NODE_MAJOR	231
#define POLYCM_NODE_MINOR	192

/* What libpolycm-interpose gives libpolycm.  Any thread. */
struct polycm_interposer {
	uint32_t size;
	/* The C library's calls, by the system's clocks, whatever the program sees. */
	int (*epoll_wait)(int set, struct epoll_event *events, int max, int timeout);
	int (*clock_gettime)(clockid_t clock, struct timespec *time);
	int (*cond_wait)(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns);
	/*
	 * How often the program called what may make a descriptor non-blocking, or blocking,
	 * counted from 1 on; 0: its calls are not seen.  NULL: as if it were 0.
	 */
	unsigned int (*flags_changed)(void);
	/* polycm_core.sleep(), and members of struct polycm_clock_services. */
	void (*sleep)(uint64_t ns);
	void (*clock_show)(bool is_virtual);
	bool (*time_moved)(void);
	/* The installed clock is about to move time in a call of the program's. */
	void (*time_moves)(void);
};

/* What libpolycm gives libpolycm-interpose.  clock_*: of the installed clock (clock.h). */
struct polycm_interposer_host {
	uint32_t size;
	const bool *clock_installed;	/* atomic; the others of the clock only if it is true */
	bool (*clock_virtual)(void);
	int (*clock_wait)(const struct polycm_clock_wait *wait);
	bool (*clock_owns_fd)(int fd, char *text, size_t size);
	void (*clock_spin)(void);
	uint64_t (*clock_read)(const void *frame);
	uint64_t (*now_ns)(void);
	int (*timer_start)(uint64_t deadline_ns, void (*fn)(void *arg), void *arg,
			   struct polycm_timer **ret_timer);
	int (*timer_restart)(struct polycm_timer *timer, uint64_t deadline_ns);
	void (*timer_cancel)(struct polycm_timer *timer);
	/* polycm_channel_describe_fd() */
	bool (*channel_describe_fd)(int fd, char *text, size_t size, bool *ret_fetched);
	/* The minor number of a simulated device's node in /dev/infiniband, or -1. */
	int (*node_minor)(const char *name);
	/*
	 * Does the program see simulated devices?  Starts the providers, though only to be looked
	 * at.  No lock of polycm may be held.
	 */
	bool (*sysfs_begin)(void);
	/*
	 * What is at a path below /sys without a link, "." or ".." in it: a kind and its text; -EINVAL:
	 * a file that cannot be read; -EXDEV: it is the host's own; -ENOENT, -ENOSPC and others.
	 */
	int (*sysfs_read)(const char *path, char *buf, size_t size);
	void (*log)(enum polycm_log_level level, const struct polycm_id *id, const char *format, ...)
		__attribute__((format(printf, 3, 4)));
};

/*
 * Exported (core/interposer_host.c).  Once, from a constructor.  Keeps the
 * pointer.  NULL: of another build.
 */
const struct polycm_interposer_host *
polycm_interposer_attach(const struct polycm_interposer *interposer);

/* What polycm_interposer_attach() accepted. */
void polycm_interposer_use(const struct polycm_interposer *interposer);

/*
 * More than 0: this thread is in a call of a provider or of libibverbs, and paths in /sys that it
 * opens are the host's.
 */
extern POLYCM_THREAD_LOCAL unsigned int polycm_own_looks;

/* --- For libpolycm: by what is attached, else by the C library. --- */

int polycm_real_epoll_wait(int set, struct epoll_event *events, int max, int timeout);
uint64_t polycm_real_ns(clockid_t clock);
/* pthread_cond_timedwait() until a time of the clock that the condition was made with. */
int polycm_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns);
/* See flags_changed() above; 0 too where nothing is attached. */
unsigned int polycm_flag_changes(void);
/* polycm_core.sleep(), and members of struct polycm_clock_services. */
void polycm_sleep(uint64_t ns);
int polycm_clock_show(bool is_virtual);
bool polycm_time_moved(void);
/* Before the clock's idle(), wait() and spin(). */
void polycm_time_moves(void);

#endif
