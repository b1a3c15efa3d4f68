/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/terminals.c - see terminals.h.  The kernel does at once what is on its way to a terminal when
 * somebody polls it.
 */
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "descriptors.h"
#include "hand.h"
#include "raw.h"
#include "terminals.h"

#define MASTERS makedev(5, 2)		/* /dev/ptmx */
#define FIRST_SLAVES 136u		/* majors of /dev/pts */
#define LAST_SLAVES 143u
#define MOST_SHOWN 4096u		/* of the set's descriptors */

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)	/* Linux 4.13 */
#endif

static uint64_t *word_of(unsigned int number)
{
	return number < TURN_MAX_TERMINALS ? &turn_segment->terminals[number / 64] : NULL;
}

static void set_open(unsigned int number, bool is_open)
{
	uint64_t *word = word_of(number);

	if (word && is_open)
		*word |= UINT64_C(1) << (number % 64);
	else if (word)
		*word &= ~(UINT64_C(1) << (number % 64));
}

void turn_terminals_opened(int fd)
{
	struct stat st;

	if (!turn_segment->sends_signals || TURN_RAW(SYS_fstat, fd, &st) || !S_ISCHR(st.st_mode))
		return;
	if (major(st.st_rdev) >= FIRST_SLAVES && major(st.st_rdev) <= LAST_SLAVES)
		set_open((major(st.st_rdev) - FIRST_SLAVES) * 256 + minor(st.st_rdev), true);
}

void turn_terminals_control(const struct turn_call *call, long result)
{
	unsigned int number;

	if (result < 0)
		return;
	if (call->arguments[1] == TIOCGPTPEER)
		turn_terminals_opened((int)result);
	/* Nobody has opened the terminal yet. */
	if (call->arguments[1] == TIOCSPTLCK &&
	    !TURN_RAW(SYS_ioctl, call->arguments[0], TIOCGPTN, &number))
		set_open(number, false);
}

/* Opening it would be seen, if nobody had it open. */
static bool has_peer(int master)
{
	unsigned int number;
	const uint64_t *word;

	if (TURN_RAW(SYS_ioctl, master, TIOCGPTN, &number))
		return false;
	word = word_of(number);
	return word && *word >> (number % 64) & 1 && !turn_has_failed(master);
}

void turn_terminals_settle(int fd)
{
	struct stat st;
	long peer;

	if (!turn_segment->sends_signals || TURN_RAW(SYS_fstat, fd, &st) ||
	    !S_ISCHR(st.st_mode) || st.st_rdev != MASTERS || !has_peer(fd))
		return;
	peer = TURN_RAW(SYS_ioctl, fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (peer < 0)
		return;
	turn_is_ready((int)peer, POLLIN);
	TURN_RAW(SYS_close, peer);
}

/* Where each read begins with a byte that says what it is. */
static bool has_packets(int master)
{
	int is = 0;

	return TURN_RAW(SYS_ioctl, master, TIOCGPKT, &is) || is;
}

/* What is on its way the kernel moves when a read finds nothing. */
long turn_terminals_read_rest(const struct turn_call *call, long len)
{
	const int fd = (int)call->arguments[0];
	struct stat st;
	long flags, more;

	if (!turn_segment->sends_signals || len <= 0 || call->number != SYS_read ||
	    TURN_RAW(SYS_fstat, fd, &st) || !S_ISCHR(st.st_mode) || st.st_rdev != MASTERS ||
	    has_packets(fd))
		return len;
	flags = TURN_RAW(SYS_fcntl, fd, F_GETFL);
	TURN_RAW(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK);
	while (len < call->arguments[2]) {
		more = TURN_RAW(SYS_read, fd, call->arguments[1] + len, call->arguments[2] - len);
		if (more <= 0)
			break;
		len += more;
	}
	TURN_RAW(SYS_fcntl, fd, F_SETFL, flags);
	return len;
}

void turn_terminals_settle_set(int epoll)
{
	char lines[MOST_SHOWN];
	const char *at = lines;
	uint64_t fd;

	if (!turn_segment->sends_signals || !turn_descriptor_info(epoll, lines, sizeof(lines)))
		return;
	while ((at = turn_descriptor_number(at, "tfd", &fd)))
		turn_is_ready((int)fd, POLLIN);
}
