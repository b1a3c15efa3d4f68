/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_moves.c - a member of a system, for system_rare.sh: one case of calls by which few programs
 * move data.  Where Linux lets them wait, others go on.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "member.h"

#define LEN (1 << 20)
#define HALF_A_SECOND 500000

static char data[LEN];

static void ends_well(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
}

/* A child that begins to read after half a second, to the end. */
static pid_t slow_reader(const int ends[2], size_t expected)
{
	pid_t pid = fork();
	size_t sum = 0;
	ssize_t len;

	CHECK(pid >= 0);
	if (pid) {
		close(ends[0]);
		return pid;
	}
	close(ends[1]);
	usleep(HALF_A_SECOND);
	while ((len = read(ends[0], data, 60000)) > 0)
		sum += (size_t)len;
	CHECK(!len && sum == expected);
	_exit(0);
}

static int file_of(size_t len)
{
	int fd = memfd_create("file", 0);

	CHECK(fd >= 0 && !ftruncate(fd, (off_t)len));
	return fd;
}

static void files(void)
{
	const int file = file_of(LEN);
	int ends[2];
	double began;
	off_t at;
	pid_t pid;

	for (int i = 0; i < 2; i++) {
		CHECK(!(i ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends)));
		pid = slow_reader(ends, LEN);
		began = seconds();
		at = 0;
		if (!i)
			CHECK(sendfile(ends[1], file, &at, 2 * LEN) == LEN);
		/* What there is room for. */
		while (at < LEN)
			CHECK(sendfile(ends[1], file, &at, 2 * LEN) > 0);
		CHECK(seconds() - began >= 0.4 && !close(ends[1]));
		ends_well(pid);
	}
	/* One that does not wait. */
	CHECK(!pipe2(ends, O_NONBLOCK));
	at = 0;
	CHECK(sendfile(ends[1], file, &at, LEN) == 65536 && at == 65536);
	CHECK(sendfile(ends[1], file, &at, LEN) < 0 && errno == EAGAIN);
}

static void pages(void)
{
	struct iovec part;
	size_t sum = 0;
	ssize_t len;
	int ends[2];
	pid_t pid;

	CHECK(!pipe(ends));
	pid = slow_reader(ends, LEN);
	for (; sum < LEN; sum += (size_t)len) {
		part = (struct iovec){ data + sum, LEN - sum };
		len = vmsplice(ends[1], &part, 1, 0);
		CHECK(len > 0);
	}
	CHECK(!close(ends[1]));
	ends_well(pid);
	CHECK(!pipe(ends));
	pid = fork();
	if (!pid) {
		usleep(HALF_A_SECOND);
		_exit(write(ends[1], "x", 1) != 1);
	}
	part.iov_len = 1;
	CHECK(vmsplice(ends[0], &part, 1, SPLICE_F_NONBLOCK) < 0 && errno == EAGAIN);
	CHECK(vmsplice(ends[0], &part, 1, 0) == 1);
	ends_well(pid);
}

static void flags(void)
{
	struct open_how how = { .flags = O_RDONLY };
	struct iovec part = { data, 4096 };
	int ends[2], fd;
	pid_t pid;

	CHECK(!pipe(ends) && preadv2(ends[0], &part, 1, -1, RWF_NOWAIT) < 0 && errno == EAGAIN);
	CHECK(write(ends[1], data, 65536) == 65536);
	CHECK(pwritev2(ends[1], &part, 1, -1, RWF_NOWAIT) < 0 && errno == EAGAIN);
	pid = slow_reader(ends, 65536 + 4096);
	CHECK(pwritev2(ends[1], &part, 1, -1, 0) == 4096 && !close(ends[1]));
	ends_well(pid);
	CHECK(!mkfifo("fifo", 0600));
	pid = fork();
	if (!pid) {
		usleep(HALF_A_SECOND);
		fd = open("fifo", O_WRONLY);
		_exit(write(fd, "x", 1) != 1);
	}
	fd = (int)syscall(SYS_openat2, AT_FDCWD, "fifo", &how, sizeof(how));
	CHECK(fd >= 0 && !unlink("fifo") && read(fd, data, 2) == 1);
	ends_well(pid);
}

/* Requests of descriptors that others serve. */
static void requests(void)
{
	const struct timespec second = { .tv_sec = 1 };
	aio_context_t context = 0;
	struct io_event event;
	struct iocb request = { .aio_lio_opcode = IOCB_CMD_POLL, .aio_buf = POLLIN };
	struct iocb *all[] = { &request };
	double began = seconds();
	int ends[2];
	pid_t pid;

	CHECK(!pipe(ends) && !syscall(SYS_io_setup, 8, &context));
	request.aio_fildes = (uint32_t)ends[0];
	CHECK(syscall(SYS_io_submit, context, 1, all) == 1);
	CHECK(!syscall(SYS_io_getevents, context, 1, 1, &event, &second) && seconds() >= began + 1);
	pid = fork();
	if (!pid) {
		usleep(HALF_A_SECOND);
		_exit(write(ends[1], "x", 1) != 1);
	}
	CHECK(syscall(SYS_io_getevents, context, 1, 1, &event, NULL) == 1 && event.res & POLLIN);
	ends_well(pid);
	request.aio_lio_opcode = IOCB_CMD_PREAD;
	request.aio_fildes = (uint32_t)file_of(10);
	request.aio_buf = (uint64_t)data;
	request.aio_nbytes = 4096;
	CHECK(syscall(SYS_io_submit, context, 1, all) == 1);
	CHECK(syscall(SYS_io_getevents, context, 1, 1, &event, NULL) == 1 && event.res == 10);
}

static void sends_after(int fd, size_t num)
{
	for (size_t i = 0; i < num; i++) {
		if (i)
			usleep(HALF_A_SECOND);
		CHECK(send(fd, "abc" + i % 3, 1, 0) == 1);
	}
	_exit(0);
}

/* Several datagrams by one call, of which the kernel returns when all are there. */
static void datagrams(void)
{
	struct timespec left = { .tv_nsec = HALF_A_SECOND * 1500 };
	struct mmsghdr some[4] = { 0 };
	struct iovec parts[4];
	int ends[2];
	pid_t pid;

	for (size_t i = 0; i < 4; i++) {
		parts[i] = (struct iovec){ data + i, 1 };
		some[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i], .msg_iovlen = 1 };
	}
	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
	CHECK(recvmmsg(ends[0], some, 4, MSG_DONTWAIT, NULL) < 0 && errno == EAGAIN);
	pid = fork();
	if (!pid)
		sends_after(ends[1], 12);
	usleep(HALF_A_SECOND / 2);
	CHECK(recvmmsg(ends[0], some, 4, 0, NULL) == 4 && !memcmp(data, "abca", 4));
	CHECK(some[0].msg_len == 1 && some[3].msg_len == 1);
	CHECK(recvmmsg(ends[0], some, 4, MSG_WAITFORONE, NULL) == 1 && data[0] == 'b');
	CHECK(recvmmsg(ends[0], some, 3, 0, &(struct timespec){ 9, 0 }) == 3);
	/* When one has come it is looked at whether that was too late. */
	CHECK(recvmmsg(ends[0], some, 4, 0, &left) == 2 && !left.tv_sec && !left.tv_nsec);
	left = (struct timespec){ 0 };
	CHECK(recvmmsg(ends[0], some, 4, 0, &left) == 1 && data[0] == 'b');
	left.tv_sec = 3;
	CHECK(recvmmsg(ends[0], some, 1, 0, &left) == 1 && data[0] == 'c' && left.tv_sec == 2);
	CHECK(recvmmsg(ends[0], some, 4, 0, &(struct timespec){ -1, 0 }) < 0 && errno == EINVAL);
	CHECK(recvmmsg(ends[0], some, 4, 0, (void *)8) < 0 && errno == EFAULT);
	CHECK(recvmmsg(ends[0], (void *)8, 4, MSG_DONTWAIT, NULL) < 0 && errno == EFAULT);
	ends_well(pid);
}

/* Several messages by one call, which waits for room. */
static void messages(int type, unsigned int num, size_t len)
{
	const struct iovec part = { data, len };
	static struct mmsghdr all[1000];
	double began;
	int ends[2];
	pid_t pid;

	memset(all, 0, sizeof(all));
	for (unsigned int i = 0; i < num; i++)
		all[i].msg_hdr = (struct msghdr){ .msg_iov = (struct iovec *)&part, .msg_iovlen = 1 };
	CHECK(!socketpair(AF_UNIX, type, 0, ends));
	pid = slow_reader(ends, num * len);
	began = seconds();
	CHECK(sendmmsg(ends[1], all, num, 0) == (int)num && seconds() - began >= 0.4);
	for (unsigned int i = 0; i < num; i++)
		CHECK(all[i].msg_len == len);
	/* The end; of datagrams it is an empty one. */
	CHECK(type == SOCK_STREAM ? !close(ends[1]) : !send(ends[1], data, 0, 0));
	ends_well(pid);
}

static void set_messages(struct mmsghdr *all, struct iovec *parts, size_t num, size_t len)
{
	memset(all, 0, num * sizeof(*all));
	for (size_t i = 0; i < num; i++) {
		parts[i] = (struct iovec){ data + i * len, len };
		all[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i], .msg_iovlen = 1 };
	}
}

/* A time-out that ends one message within ends the call: the rest of it is still to be sent. */
static void part(void)
{
	const struct timeval limit = { .tv_usec = HALF_A_SECOND / 2 };
	struct mmsghdr all[2];
	struct iovec parts[2];
	size_t sum = 0;
	ssize_t num;
	int ends[2];
	pid_t pid;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	CHECK(!setsockopt(ends[1], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)));
	set_messages(all, parts, 2, LEN / 2);
	memset(data, 'a', LEN);
	pid = fork();
	if (!pid) {
		close(ends[1]);
		usleep(HALF_A_SECOND);
		while ((num = read(ends[0], data, LEN)) > 0)
			sum += (size_t)num;
		_exit(num || sum >= LEN / 2);
	}
	close(ends[0]);
	CHECK(sendmmsg(ends[1], all, 2, 0) == 1 && all[0].msg_len && all[0].msg_len < LEN / 2);
	close(ends[1]);
	ends_well(pid);
}

/* All messages that are still to come are empty; how a connection failed is told first. */
static void ends(void)
{
	const struct linger reset = { .l_onoff = 1 };
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0), peer;
	struct mmsghdr all[3];
	struct iovec parts[3];
	int both[2];

	set_messages(all, parts, 3, 5);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, both));
	CHECK(write(both[1], "abc", 3) == 3 && !close(both[1]));
	CHECK(recvmmsg(both[0], all, 3, 0, NULL) == 3 && all[0].msg_len == 3 && !all[1].msg_len);
	CHECK(!bind(listener, (struct sockaddr *)&at, len) && !listen(listener, 1));
	CHECK(!getsockname(listener, (struct sockaddr *)&at, &len));
	CHECK(!connect(fd, (struct sockaddr *)&at, len));
	peer = accept(listener, NULL, NULL);
	CHECK(write(peer, "abc", 3) == 3);
	CHECK(!setsockopt(peer, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) && !close(peer));
	CHECK(recvmmsg(fd, all, 3, MSG_WAITFORONE, NULL) < 0 && errno == ECONNRESET);
	CHECK(recvmmsg(fd, all, 3, 0, NULL) == 3 && all[0].msg_len == 3 && !all[2].msg_len);
}

static void several(void)
{
	datagrams();
	part();
	ends();
	messages(SOCK_DGRAM, 1000, 1);
	messages(SOCK_SEQPACKET, 100, 5000);
	messages(SOCK_STREAM, 3, LEN / 2);
}

/* Of a connection whose peer reads nothing. */
static void lingers(void)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = 12 };
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	ssize_t sum = 0, num;
	int peer;

	CHECK(!bind(listener, (struct sockaddr *)&at, len) && !listen(listener, 1));
	CHECK(!getsockname(listener, (struct sockaddr *)&at, &len));
	CHECK(!connect(fd, (struct sockaddr *)&at, len));
	peer = accept(listener, NULL, NULL);
	while ((num = send(fd, data, LEN, MSG_DONTWAIT)) > 0)
		sum += num;
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) && !close(fd));
	/* It is all there, and then the end. */
	while ((num = read(peer, data, LEN)) > 0)
		sum -= num;
	CHECK(!num && !sum);
}

static const struct member_case cases[] = {
	{ "files", files }, { "pages", pages }, { "flags", flags }, { "requests", requests },
	{ "several", several }, { "lingers", lingers },
};

int main(int argc, char **argv)
{
	return member_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
