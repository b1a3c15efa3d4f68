/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/outside.c - see outside.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "descriptors.h"
#include "exec.h"
#include "hand.h"
#include "image.h"
#include "order.h"
#include "outside.h"
#include "raw.h"
#include "shown.h"
#include "tell.h"

#define MOST_SCRIPTS 6		/* each the interpreter of the one before */
#define NO_SETUID 2		/* of a file system's flags: ST_NOSUID */

static long read_at(const struct turn_image_file *file, void *to, size_t len, uint64_t at)
{
	return TURN_RAW(SYS_pread64, file->fd, to, len, at);
}

static bool gains_rights(long fd, const struct stat *st)
{
	const bool has_capabilities = TURN_RAW(SYS_fgetxattr, fd, "security.capability", NULL, 0) > 0;
	struct statfs system;

	if (!turn_image_gains_rights(st, has_capabilities, (uid_t)TURN_RAW(SYS_getuid),
				     (gid_t)TURN_RAW(SYS_getgid)))
		return false;
	/* Not where the kernel heeds none of it. */
	return TURN_RAW(SYS_prctl, PR_GET_NO_NEW_PRIVS) <= 0 &&
	       (TURN_RAW(SYS_fstatfs, fd, &system) || !(system.f_flags & NO_SETUID));
}

static enum turn_image image_of(long fd, char *ret_interpreter, size_t size, bool *ret_gains)
{
	const struct turn_image_file file = { .fd = fd, .read = read_at };
	enum turn_image image = TURN_IMAGE_FITS;
	struct stat st;

	*ret_gains = false;
	if (!TURN_RAW(SYS_fstat, fd, &st) && S_ISREG(st.st_mode)) {
		image = turn_image_of(&file, ret_interpreter, size);
		*ret_gains = image != TURN_IMAGE_SCRIPT && gains_rights(fd, &st);
	}
	return image;
}

/* Of a file that cannot be executed: FITS. */
static enum turn_image look(long folder, const char *path, char *ret_interpreter, size_t size,
			    bool *ret_gains)
{
	const bool is_fd = !*path;	/* fexecve() */
	long fd = folder;
	enum turn_image image;

	*ret_gains = false;
	if (!is_fd && TURN_RAW(SYS_faccessat, folder, path, X_OK))
		return TURN_IMAGE_FITS;
	if (!is_fd)
		fd = TURN_RAW(SYS_openat, folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return fd == -EACCES ? TURN_IMAGE_UNREADABLE : TURN_IMAGE_FITS;
	image = image_of(fd, ret_interpreter, size, ret_gains);
	if (!is_fd)
		TURN_RAW(SYS_close, fd);
	return image;
}

bool turn_outside_is(const struct turn_call *call, uint32_t *ret_told)
{
	const bool is_at = call->number == SYS_execveat;
	const char *path = (const char *)call->arguments[is_at ? 1 : 0];
	long folder = is_at ? call->arguments[0] : AT_FDCWD;
	char interpreters[2][256];
	enum turn_image image = TURN_IMAGE_SCRIPT;
	enum turn_notice what;
	bool gains = false;

	for (unsigned int i = 0; i < MOST_SCRIPTS && image == TURN_IMAGE_SCRIPT; i++) {
		char *next = interpreters[i % 2];

		image = look(folder, path, next, sizeof(interpreters[0]), &gains);
		if (image == TURN_IMAGE_SCRIPT) {
			path = next;
			folder = AT_FDCWD;
		}
	}
	if (image == TURN_IMAGE_FOREIGN)
		what = TURN_IS_FOREIGN;
	else if (image == TURN_IMAGE_STATIC)
		what = TURN_IS_STATIC;
	else if (image == TURN_IMAGE_UNREADABLE)
		what = TURN_IS_UNREADABLE;
	else if (gains)
		what = TURN_GAINS_RIGHTS;
	else if (image == TURN_IMAGE_FITS && !turn_exec_can_be_seen())
		what = TURN_CANNOT_SEE;
	else
		return false;
	*ret_told = turn_note(what, *path ? path : "a program");
	return true;
}

void turn_outside_begin(uint32_t member, uint32_t told)
{
	turn_order_remove_member(turn_segment, member);
	turn_segment->members[member].life = TURN_OUTSIDE;
	turn_segment->outside++;
	/* Nobody sees what it does. */
	turn_segment->leaves_traces = true;
	turn_segment->pace = turn_segment->now;
	if (told != TURN_NOBODY)
		turn_shown_told(told);
}

/*
 * The kernel marks a word of the list of robust futexes when the process has become another program
 * or has ended, whichever that is.
 */
static void set_pending(void *word)
{
	static struct robust_list_head own;
	struct robust_list_head *head = NULL;
	size_t len = 0;

	TURN_RAW(SYS_get_robust_list, 0, &head, &len);
	if (!head && word) {
		own.list.next = &own.list;
		head = &own;
		TURN_RAW(SYS_set_robust_list, head, sizeof(*head));
	}
	if (head)
		head->list_op_pending = !word ? NULL :
			(struct robust_list *)((char *)word - head->futex_offset);
}

long turn_outside_exec(const struct turn_call *call, uint32_t told)
{
	struct turn_segment *segment = turn_segment;
	long result;

	segment->becoming_told = told;
	segment->becoming_thread = turn_slot();
	segment->becoming = turn_member + 1;
	atomic_store(&segment->becomes, (uint32_t)TURN_RAW(SYS_getpid) | FUTEX_WAITERS);
	set_pending((void *)&segment->becomes);
	turn_give_to_launcher();
	result = turn_through(call);
	set_pending(NULL);
	atomic_store(&segment->becomes, 0);
	TURN_RAW(SYS_futex, &segment->becomes, FUTEX_WAKE, 1);
	turn_take();
	return result;
}
