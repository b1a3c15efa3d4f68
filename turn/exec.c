/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/exec.c - see exec.h.  This thread is the new program's first. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "descriptors.h"
#include "exec.h"
#include "futex.h"
#include "hand.h"
#include "order.h"
#include "outside.h"
#include "pointers.h"
#include "raw.h"
#include "spin.h"
#include "tell.h"
#include "threads.h"
#include "timers.h"
#include "traced.h"
#include "tsc.h"

#define PRELOAD "LD_PRELOAD"
#define MOST_ADDED 3		/* entries of an environment */

/* Programs that clear their environment (env -i) belong to the system all the same. */
static char file_entry[4096] = TURN_FILE_VARIABLE "=", preload_entry[8192] = PRELOAD "=";
static size_t preload_len;

static size_t append(char *entry, size_t size, const char *value)
{
	size_t len = strlen(entry), more = strlen(value);

	if (len + more < size)
		memcpy(entry + len, value, more + 1);
	return strlen(entry);
}

void turn_exec_begin(const char *file, const char *preload)
{
	append(file_entry, sizeof(file_entry), file);
	preload_len = append(preload_entry, sizeof(preload_entry), preload ? preload : "");
}

/* What makes a program one of the system, and where that finds the run. */
bool turn_exec_can_be_seen(void)
{
	static const char name[] = "libpolycm-turn";
	const char *all = preload_entry + sizeof(PRELOAD), *at = strstr(all, name), *begin = at;
	const char *file = file_entry + sizeof(TURN_FILE_VARIABLE);
	char path[512];
	size_t len;
	long fd;

	if (!at)
		return true;
	while (begin > all && begin[-1] != ':' && begin[-1] != ' ')
		begin--;
	len = (size_t)(at - begin) + strcspn(at, ": ");
	/* Without a slash it is looked for. */
	if (len >= sizeof(path) || *begin != '/')
		return true;
	memcpy(path, begin, len);
	path[len] = '\0';
	for (int i = 0; i < 2; i++) {
		fd = TURN_RAW(SYS_openat, AT_FDCWD, i ? file : path,
			      (i ? O_RDWR : O_RDONLY) | O_CLOEXEC);
		if (fd == -ENOENT || fd == -EACCES || fd == -ENOTDIR)
			return false;
		if (fd >= 0)
			TURN_RAW(SYS_close, fd);
	}
	return true;
}

static bool is_variable(const char *entry, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(entry, name, len) && entry[len] == '=';
}

/* How many there are; -EFAULT: not all of it is there to be read. */
static long count(char *const *list)
{
	long num = 0;

	for (; list; num++) {
		if (!turn_can_read(&list[num], sizeof(*list)))
			return -EFAULT;
		if (!list[num])
			break;
		if (!turn_can_read_string(list[num]))
			return -EFAULT;
	}
	return num;
}

/*
 * What the new program is to see: what it is given, and what it needs to be one of the system; thread:
 * NULL: it is none, nor is what it starts.
 */
static void copy_environment(char **to, char *const *from, char *thread)
{
	const char *preload = NULL;

	preload_entry[preload_len] = '\0';
	for (size_t i = 0; from && from[i]; i++) {
		if (thread && is_variable(from[i], PRELOAD))
			preload = from[i] + sizeof(PRELOAD);
		else if (!is_variable(from[i], TURN_THREAD_VARIABLE) &&
			 !is_variable(from[i], TURN_FILE_VARIABLE))
			*to++ = from[i];
	}
	*to = NULL;
	if (!thread)
		return;
	*to++ = thread;
	*to++ = file_entry;
	*to++ = preload_entry;
	/* One that has what is needed, or that leaves no room, stays. */
	if (preload && (strstr(preload, "libpolycm-turn") ||
			preload_len + strlen(preload) + 2 > sizeof(preload_entry)))
		to[-1] = (char *)(uintptr_t)(preload - sizeof(PRELOAD));
	else if (preload)
		memcpy(mempcpy(preload_entry + preload_len, ":", 1), preload, strlen(preload) + 1);
	*to = NULL;
}

/* "NAME=NUMBER", without functions of the C library that may not be used here. */
static void write_entry(char *entry, uint32_t number)
{
	char digits[12];
	size_t num = 0;

	memcpy(entry, TURN_THREAD_VARIABLE "=", sizeof(TURN_THREAD_VARIABLE));
	entry += sizeof(TURN_THREAD_VARIABLE);
	do {
		digits[num++] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	while (num)
		*entry++ = digits[--num];
	*entry = '\0';
}

/* Kept for the next time: a spawned child could not free it, which is its parent's memory. */
static char **room_for(size_t num)
{
	static char **room;
	static size_t size;
	const size_t wanted = num * sizeof(*room);
	long at;

	if (wanted <= size)
		return room;
	at = TURN_RAW(SYS_mmap, NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if ((unsigned long)at > -4096ul)
		return NULL;
	if (room)
		TURN_RAW(SYS_munmap, room, size);
	room = (char **)at;
	size = wanted;
	return room;
}

static void set_others(enum turn_state *kept, bool restore)
{
	for (uint32_t i = 0; i < turn_segment->num_threads; i++) {
		struct turn_thread *thread = &turn_segment->threads[i];

		if (thread->member != turn_member || i == turn_slot())
			continue;
		if (restore)
			thread->state = kept[i];
		else
			kept[i] = thread->state;
		if (!restore)
			turn_order_remove(turn_segment, i);
	}
}

/* A program outside has nobody who handles the signals of a filter: each call would end it. */
static long refuse(const struct turn_call *call)
{
	const char *path = (const char *)call->arguments[call->number == SYS_execve ? 0 : 1];

	turn_tell(TURN_CANNOT_BE_OUTSIDE, *path ? path : "a program");
	return -ENOSYS;
}

/* The call, by a process that becomes that program; it comes back only if it cannot. */
static long become(const struct turn_call *call, bool is_outside, uint32_t told)
{
	enum turn_state kept[TURN_MAX_THREADS];
	const bool is_filtered = turn_trap_is_filter();
	long result;

	if (turn_spawned() != TURN_NOBODY) {
		turn_spawned_outside(is_outside, told);
		result = is_filtered ? turn_traced_exec(call) : turn_through(call);
		turn_spawned_outside(false, TURN_NOBODY);
		return result;
	}
	set_others(kept, false);
	turn_timers_keep();
	turn_futex_let_go();
	result = is_outside ? turn_outside_exec(call, told) :
		 is_filtered ? turn_traced_exec(call) : turn_through(call);
	set_others(kept, true);
	return result;
}

long turn_exec(const struct turn_call *call)
{
	const unsigned int argument = call->number == SYS_execve ? 2 : 3;
	char *const *given = (char *const *)call->arguments[argument];
	const char *path = (const char *)call->arguments[argument - 2];
	char entry[sizeof(TURN_THREAD_VARIABLE) + 12];
	const long num = count(given);
	uint32_t told = TURN_NOBODY;
	struct turn_call other = *call;
	uint64_t mask = 0;
	char **environment;
	bool is_outside;
	long result;

	if (num < 0 || !turn_can_read_string(path))
		return -EFAULT;
	environment = room_for((size_t)num + MOST_ADDED + 1);
	if (!environment)
		return -ENOMEM;
	is_outside = turn_outside_is(call, &told);
	if (is_outside && turn_trap_is_filter()) {
		if (told != TURN_NOBODY)
			turn_segment->num_told--;
		return refuse(call);
	}
	write_entry(entry, turn_spawned() != TURN_NOBODY ? turn_spawned() : turn_slot());
	copy_environment(environment, given, is_outside ? NULL : entry);
	other.arguments[argument] = (long)environment;
	turn_changed();		/* descriptors are closed */
	turn_tsc_end();
	turn_spin_forbid();
	/* The new program has the mask of this moment, and no signal of ours. */
	TURN_RAW(SYS_rt_sigprocmask, SIG_SETMASK, &call->context->uc_sigmask, &mask,
		 TURN_SIGSET_SIZE);
	result = become(&other, is_outside, told);
	TURN_RAW(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, TURN_SIGSET_SIZE);
	turn_spin_allow();
	turn_tsc_begin();
	/* exec failed: there is nothing to report. */
	if (told != TURN_NOBODY)
		turn_segment->num_told--;
	return result;
}
