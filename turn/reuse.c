/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/reuse.c - see reuse.h.  The choice is a program of the socket filter's language (socket(7),
 * SO_ATTACH_REUSEPORT_CBPF), which has to know how many there are.
 */
#include "config.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "hand.h"
#include "raw.h"
#include "reuse.h"

#ifndef SO_ATTACH_REUSEPORT_CBPF
#define SO_ATTACH_REUSEPORT_CBPF 51	/* Linux 4.5 */
#endif
#define LISTENS 0x0a		/* states of /proc/net/tcp */
#define IS_BOUND 0x07		/* and udp */

/* Of a table of the kernel: so much of a line is looked at. */
struct table {
	long fd;
	char text[1024];
	long at, len;
};

static int next(struct table *table)
{
	if (table->at == table->len) {
		table->len = TURN_RAW(SYS_read, table->fd, table->text, sizeof(table->text));
		table->at = 0;
	}
	return table->len > 0 ? table->text[table->at++] : -1;
}

static unsigned int digit_of(int c)
{
	return c >= '0' && c <= '9' ? (unsigned int)(c - '0') :
	       c >= 'A' && c <= 'F' ? (unsigned int)(c - 'A' + 10) : 16;
}

/* Up to that character: the number in front of it; false: the table ends. */
static bool read_number(struct table *table, char end, unsigned int *ret)
{
	unsigned int value = 0;
	int c;

	while ((c = next(table)) >= 0 && c != end)
		if (digit_of(c) < 16)
			value = value << 4 | digit_of(c);
	*ret = value;
	return c >= 0;
}

/* "  0: 0100007F:1F90 00000000:0000 0A ...": sockets with that port, in that state. */
static unsigned int count(const char *path, unsigned int port, unsigned int state)
{
	struct table table = { .fd = TURN_RAW(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) };
	unsigned int num = 0, is_port, is_state, skipped;

	if (table.fd < 0)
		return 0;
	if (read_number(&table, '\n', &skipped))
		while (read_number(&table, ':', &skipped) && read_number(&table, ':', &skipped) &&
		       read_number(&table, ' ', &is_port) && read_number(&table, ':', &skipped) &&
		       read_number(&table, ' ', &skipped) && read_number(&table, ' ', &is_state) &&
		       read_number(&table, '\n', &skipped))
			num += is_port == port && is_state == state;
	TURN_RAW(SYS_close, table.fd);
	return num;
}

/* The sender's port, in an IPv4 header without options or an IPv6 one, by their number. */
static void attach(int fd, unsigned int num)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (unsigned int)SKF_NET_OFF),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 6, 2, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, (unsigned int)SKF_NET_OFF + 20),
		BPF_STMT(BPF_JMP | BPF_JA, 1),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, (unsigned int)SKF_NET_OFF + 40),
		BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, num),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	TURN_RAW(SYS_setsockopt, fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program));
}

static int option_of(int fd, int option)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return TURN_RAW(SYS_getsockopt, fd, SOL_SOCKET, option, &value, &len) ? 0 : value;
}

void turn_reuse_join(int fd)
{
	union { struct sockaddr sa; struct sockaddr_in in; struct sockaddr_in6 in6; } own;
	socklen_t len = sizeof(own);
	bool is_tcp, is_ipv6;
	const char *path;
	unsigned int num;

	if (turn_segment->chooses_itself || !option_of(fd, SO_REUSEPORT) ||
	    TURN_RAW(SYS_getsockname, fd, &own, &len) || !own.in.sin_port)
		return;
	is_ipv6 = own.sa.sa_family == AF_INET6;
	if (!is_ipv6 && own.sa.sa_family != AF_INET)
		return;
	is_tcp = option_of(fd, SO_TYPE) == SOCK_STREAM;
	if (is_tcp ? !option_of(fd, SO_ACCEPTCONN) : option_of(fd, SO_TYPE) != SOCK_DGRAM)
		return;
	path = is_tcp ? is_ipv6 ? "/proc/thread-self/net/tcp6" : "/proc/thread-self/net/tcp" :
			is_ipv6 ? "/proc/thread-self/net/udp6" : "/proc/thread-self/net/udp";
	num = count(path, ntohs(own.in.sin_port), is_tcp ? LISTENS : IS_BOUND);
	if (num > 1)
		attach(fd, num);
}

void turn_reuse_note_option(const struct turn_call *call)
{
	/* The one of eBPF has the next number. */
	if (call->arguments[1] == SOL_SOCKET &&
	    (call->arguments[2] == SO_ATTACH_REUSEPORT_CBPF ||
	     call->arguments[2] == SO_ATTACH_REUSEPORT_CBPF + 1))
		turn_segment->chooses_itself = true;
}
