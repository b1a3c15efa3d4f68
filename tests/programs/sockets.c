/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sockets.c - a program for TCP, for `polycm run --sockets'.
 *
 *	sockets each		both ends in one thread: each of the tests below
 *	sockets serve		reads to the end, and expects BYTES bytes
 *	sockets send		sends them, and exits with its socket open
 *
 * Exit status 1: what is not as it should be is on standard error.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES	100000
#define PORT	7475
#define MUST(is) do { if (!(is)) failed(__func__, __LINE__, #is); } while (0)
#define FAILS(call, err) MUST((call) == -1 && errno == (err))

/* Of fortified programs. */
int __poll_chk(struct pollfd *fds, nfds_t nfds, int timeout, size_t size);
ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t size, size_t room, int flags);

static int listener, client, server;

_Noreturn static void failed(const char *function, int line, const char *what)
{
	fprintf(stderr, "%s, line %d: %s: %s\n", function, line, what, strerror(errno));
	exit(1);
}

static const struct sockaddr_in *address(void)
{
	static struct sockaddr_in at = { .sin_family = AF_INET };

	at.sin_port = htons(PORT);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return &at;
}

static void listen_there(int flags)
{
	listener = socket(AF_INET, SOCK_STREAM | flags, 0);
	MUST(listener >= 0);
	MUST(!setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)));
	MUST(!bind(listener, (const struct sockaddr *)address(), sizeof(*address())));
	MUST(!listen(listener, 4));
}

static short polled(int fd, short events, int timeout)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	MUST(poll(&pfd, 1, timeout) >= 0);
	return pfd.revents;
}

/* A client, and a request of it at the listener.  Both go on in poll(). */
static void call_in(void)
{
	struct pollfd fds[2];

	client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	MUST(client >= 0);
	FAILS(connect(client, (const struct sockaddr *)address(), sizeof(*address())), EINPROGRESS);
	fds[0] = (struct pollfd){ .fd = client, .events = POLLOUT };
	fds[1] = (struct pollfd){ .fd = listener, .events = POLLIN };
	MUST(poll(fds, 2, 1000) == 1 && fds[1].revents == POLLIN);
}

static void pick_up(int flags)
{
	server = accept4(listener, NULL, NULL, flags);
	MUST(server >= 0);
	MUST(polled(client, POLLOUT, 1000) == POLLOUT);
}

static void hang_up(void)
{
	MUST(!close(client) && !close(server));
}

static void accepts_with_flags(void)
{
	socklen_t len = sizeof(struct sockaddr_in);
	struct sockaddr_in from;

	call_in();
	FAILS(accept4(listener, NULL, NULL, 1), EINVAL);
	pick_up(SOCK_NONBLOCK | SOCK_CLOEXEC);
	MUST(fcntl(server, F_GETFL) & O_NONBLOCK);
	MUST(fcntl(server, F_GETFD) == FD_CLOEXEC);
	hang_up();
	call_in();
	server = accept(listener, (struct sockaddr *)&from, &len);
	MUST(server >= 0 && from.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	/* As the kernel's: not as the listener. */
	MUST(!(fcntl(server, F_GETFL) & O_NONBLOCK) && !fcntl(server, F_GETFD));
	MUST(!ioctl(server, FIONBIO, &(int){ 1 }) && fcntl(server, F_GETFL) & O_NONBLOCK);
	MUST(!ioctl(server, FIONBIO, &(int){ 0 }) && !(fcntl(server, F_GETFL) & O_NONBLOCK));
	MUST(polled(client, POLLOUT, 1000) == POLLOUT);
	hang_up();
	FAILS(accept(listener, NULL, NULL), EAGAIN);
}

static void numbers_share_a_socket(void)
{
	int second, third;
	char buf[8];

	call_in();
	pick_up(0);
	second = dup(client);
	third = fcntl(client, F_DUPFD_CLOEXEC, 100);
	MUST(second > 0 && third >= 100 && fcntl(third, F_GETFD) == FD_CLOEXEC);
	MUST(!close(client));
	MUST(write(second, "a", 1) == 1 && send(third, "b", 1, 0) == 1);
	FAILS(write(client, "c", 1), EBADF);
	MUST(!close(third));
	MUST(!polled(server, POLLHUP, 10));
	/* The last one goes, in favour of another file. */
	client = open("/dev/null", O_RDONLY);
	MUST(dup2(client, second) == second);
	MUST(polled(server, POLLIN, 1000) == POLLIN);
	MUST(read(server, buf, sizeof(buf)) == 2 && read(server, buf, sizeof(buf)) == 0);
	MUST(read(second, buf, sizeof(buf)) == 0);
	MUST(!close(second));
	FAILS(dup2(second, server), EBADF);
	MUST(dup3(server, second, O_CLOEXEC) == second && !close(second));
	hang_up();
}

/* As librdmacm's rrecvfrom(): the program need not ask for the peer's name. */
static void names_the_peer(void)
{
	struct sockaddr_in from = { .sin_family = 0 }, own;
	socklen_t len = sizeof(from), own_len = sizeof(own);
	char buf[8];

	call_in();
	pick_up(0);
	MUST(!getsockname(client, (struct sockaddr *)&own, &own_len));
	MUST(write(client, "x", 1) == 1 && polled(server, POLLIN, 1000) == POLLIN);
	MUST(recvfrom(server, buf, sizeof(buf), 0, (struct sockaddr *)&from, &len) == 1);
	MUST(len == sizeof(from) && from.sin_family == AF_INET && from.sin_port == own.sin_port);
	MUST(from.sin_addr.s_addr == own.sin_addr.s_addr);
	hang_up();
}

static void on_signal(int number)
{
	(void)number;
}

static void waits_with_a_mask(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct timespec soon = { .tv_nsec = 5000000 };
	struct pollfd pfd;
	sigset_t blocked, none;
	fd_set in;

	call_in();
	pick_up(0);
	sigemptyset(&none);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	MUST(!sigaction(SIGUSR1, &action, NULL) && !sigprocmask(SIG_BLOCK, &blocked, NULL));
	pfd = (struct pollfd){ .fd = server, .events = POLLIN };
	MUST(!raise(SIGUSR1));
	MUST(ppoll(&pfd, 1, &soon, &blocked) == 0);
	FAILS(ppoll(&pfd, 1, NULL, &none), EINTR);
	FD_ZERO(&in);
	FD_SET(server, &in);
	MUST(!raise(SIGUSR1));
	FAILS(pselect(server + 1, &in, NULL, NULL, &(struct timespec){ 0 }, &none), EINTR);
	MUST(FD_ISSET(server, &in));
	MUST(pselect(server + 1, &in, NULL, NULL, &soon, &none) == 0 && !FD_ISSET(server, &in));
	hang_up();
}

static void selects(void)
{
	int fds[2], twin, most;
	fd_set in, out;
	char buf[8];

	call_in();
	pick_up(0);
	MUST(!pipe(fds));
	twin = dup(server);
	most = (twin > fds[1] ? twin : fds[1]) + 1;
	MUST(write(client, "x", 1) == 1 && polled(server, POLLIN, 1000) == POLLIN);
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(server, &in);
	FD_SET(twin, &in);
	FD_SET(fds[0], &in);
	FD_SET(fds[1], &out);
	MUST(select(most, &in, &out, NULL, NULL) == 3);
	MUST(FD_ISSET(server, &in) && FD_ISSET(twin, &in) && !FD_ISSET(fds[0], &in) &&
	     FD_ISSET(fds[1], &out));
	MUST(__recv_chk(server, buf, 1, sizeof(buf), MSG_PEEK) == 1);
	MUST(__read_chk(twin, buf, 1, sizeof(buf)) == 1 && buf[0] == 'x');
	FD_SET(server, &in);
	MUST(select(most, &in, NULL, NULL, &(struct timeval){ .tv_usec = 1000 }) == 0);
	FD_SET(fds[1], &out);
	MUST(select(most, NULL, &out, NULL, NULL) == 1);
	FAILS(select(server + 1, NULL, NULL, NULL, &(struct timeval){ .tv_usec = -1 }), EINVAL);
	FD_SET(server, &in);
	FAILS(select(server + 1, &in, NULL, NULL, &(struct timeval){ .tv_usec = -1 }), EINVAL);
	MUST(__poll_chk(&(struct pollfd){ .fd = server }, 1, 1, sizeof(struct pollfd)) == 0);
	MUST(!close(fds[0]) && !close(fds[1]) && !close(twin));
	hang_up();
}

/* The rsocket's own number may be too high for a set although the program's is not. */
static void selects_no_high_numbers(void)
{
	static int opened[FD_SETSIZE];
	struct rlimit limit;
	unsigned int num = 0;
	int high, low, last;
	fd_set in;

	MUST(!getrlimit(RLIMIT_NOFILE, &limit));
	if (limit.rlim_max < FD_SETSIZE + 100)
		return;
	limit.rlim_cur = FD_SETSIZE + 100;
	MUST(!setrlimit(RLIMIT_NOFILE, &limit));
	low = open("/dev/null", O_RDONLY);
	while ((last = open("/dev/null", O_RDONLY)) >= 0 && last < FD_SETSIZE)
		opened[num++] = last;
	high = socket(AF_INET, SOCK_STREAM, 0);
	MUST(low >= 0 && last == FD_SETSIZE && high > last && dup2(high, low) == low);
	FD_ZERO(&in);
	FD_SET(low, &in);
	FAILS(select(low + 1, &in, NULL, NULL, &(struct timeval){ 0 }), EINVAL);
	MUST(polled(low, POLLIN, 0) == 0 || polled(low, POLLIN, 0) == POLLHUP);
	MUST(!close(high) && !close(low));
	MUST(!close(last));
	while (num)
		MUST(!close(opened[--num]));
}

/* Small numbers are kept for sockets, unless the program uses them itself. */
static void takes_no_number_of_the_program(void)
{
	int first = socket(AF_INET, SOCK_STREAM, 0), next = socket(AF_INET, SOCK_STREAM, 0);
	int fds[2], more[16];
	struct stat before, after;

	MUST(first >= 0 && next > first && !close(next) && !pipe(fds));
	for (int i = 1; i < 5; i++)
		MUST(dup2(fds[0], next + i) == next + i && !fstat(fds[0], &before));
	for (int i = 0; i < 16; i++) {
		more[i] = socket(AF_INET, SOCK_STREAM, 0);
		MUST(more[i] >= 0);
	}
	for (int i = 1; i < 5; i++)
		MUST(!fstat(next + i, &after) && after.st_ino == before.st_ino && !close(next + i));
	for (int i = 0; i < 16; i++)
		MUST(!close(more[i]));
	MUST(!close(first) && !close(fds[0]) && !close(fds[1]));
}

/* Level for sockets, and whatever there is for the rest. */
static void sets_of_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 1 }, found[4];
	int fds[2], set = epoll_create1(EPOLL_CLOEXEC), twin;

	MUST(set >= 0 && !pipe(fds));
	call_in();
	pick_up(0);
	MUST(!epoll_ctl(set, EPOLL_CTL_ADD, server, &event));
	FAILS(epoll_ctl(set, EPOLL_CTL_ADD, server, &event), EEXIST);
	event = (struct epoll_event){ .events = EPOLLIN | EPOLLET, .data.u32 = 2 };
	MUST(!epoll_ctl(set, EPOLL_CTL_ADD, fds[0], &event));
	FAILS(epoll_ctl(set, EPOLL_CTL_ADD, client, &event), EINVAL);
	MUST(epoll_wait(set, found, 4, 10) == 0);
	MUST(write(fds[1], "x", 1) == 1);
	MUST(epoll_wait(set, found, 4, -1) == 1 && found[0].data.u32 == 2);
	MUST(epoll_pwait(set, found, 4, 10, NULL) == 0);
	MUST(write(client, "x", 1) == 1 && write(fds[1], "x", 1) == 1);
	MUST(polled(server, POLLIN, 1000) == POLLIN);
	twin = dup(set);
	MUST(epoll_wait(twin, found, 4, -1) == 2 && found[0].data.u32 + found[1].data.u32 == 3);
	MUST(!close(twin));
	/* Closed without being taken out, and another one in its place. */
	hang_up();
	MUST(epoll_wait(set, found, 4, 10) == 0);
	call_in();
	pick_up(0);
	event = (struct epoll_event){ .events = EPOLLIN, .data.u32 = 3 };
	MUST(!epoll_ctl(set, EPOLL_CTL_ADD, server, &event));
	MUST(write(client, "x", 1) == 1);
	MUST(epoll_wait(set, found, 4, -1) == 1 && found[0].data.u32 == 3);
	MUST(!close(set) && !close(fds[0]) && !close(fds[1]));
	hang_up();
}

/* Of more than fit, each has its turn. */
static void all_in_a_set_are_reported(void)
{
	struct epoll_event event = { .events = EPOLLOUT, .data.u32 = 1 };
	int set = epoll_create1(0);
	unsigned int found = 0;

	call_in();
	pick_up(0);
	MUST(!epoll_ctl(set, EPOLL_CTL_ADD, client, &event));
	event = (struct epoll_event){ .events = EPOLLIN, .data.u32 = 2 };
	MUST(!epoll_ctl(set, EPOLL_CTL_ADD, server, &event));
	MUST(write(client, "x", 1) == 1 && polled(server, POLLIN, 1000) == POLLIN);
	for (int i = 0; i < 3; i++) {
		MUST(epoll_wait(set, &event, 1, -1) == 1);
		found |= event.data.u32;
	}
	MUST(found == 3 && !close(set));
	hang_up();
}

static void *waits_in_a_set(void *set)
{
	struct epoll_event found = { .data.u32 = 0 };
	int num = epoll_wait(*(int *)set, &found, 1, 5000);

	MUST(num == 1 && found.data.u32 == 4);
	return NULL;
}

/* By another thread than the one that waits. */
static void joins_a_set_that_is_waited_for(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 4 };
	int set = epoll_create1(0);
	pthread_t thread;

	call_in();
	pick_up(0);
	MUST(write(client, "x", 1) == 1 && polled(server, POLLIN, 1000) == POLLIN);
	MUST(!pthread_create(&thread, NULL, waits_in_a_set, &set));
	usleep(50000);
	MUST(!epoll_ctl(set, EPOLL_CTL_ADD, server, &event));
	MUST(!pthread_join(thread, NULL));
	MUST(!close(set));
	hang_up();
}

static void other_sockets_stay(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fds[2], plain = socket(AF_UNIX, SOCK_STREAM, 0);
	char buf[4] = "xy";
	struct msghdr msg = { .msg_iov = &(struct iovec){ buf, 2 }, .msg_iovlen = 1 };

	MUST(plain >= 0 && !bind(plain, (struct sockaddr *)&at, sizeof(sa_family_t)));
	MUST(!listen(plain, 1));
	MUST(!close(plain));
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	MUST(sendmsg(fds[0], &msg, 0) == 2 && recv(fds[1], buf, 4, 0) == 2);
	MUST(polled(fds[0], POLLIN | POLLOUT, 0) == POLLOUT);
	MUST(!shutdown(fds[0], SHUT_RDWR) && read(fds[1], buf, 4) == 0);
	MUST(!close(fds[0]) && !close(fds[1]));
}

static void a_child_may_close(void)
{
	int status;
	pid_t pid;

	call_in();
	pick_up(0);
	pid = fork();
	MUST(pid >= 0);
	if (!pid)
		exit(!(write(client, "x", 1) == -1 && errno == EACCES && !close(client)));
	MUST(waitpid(pid, &status, 0) == pid && !status);
	MUST(write(client, "y", 1) == 1 && polled(server, POLLIN, 1000) == POLLIN);
	hang_up();
}

static void each(void)
{
	int lowest = open("/dev/null", O_RDONLY);

	MUST(!close(lowest));
	listen_there(SOCK_NONBLOCK | SOCK_CLOEXEC);
	/* Small ones, though rsockets need some, too. */
	MUST(listener == lowest && fcntl(listener, F_GETFD) == FD_CLOEXEC);
	takes_no_number_of_the_program();
	numbers_share_a_socket();
	accepts_with_flags();
	names_the_peer();
	waits_with_a_mask();
	selects();
	sets_of_epoll();
	all_in_a_set_are_reported();
	joins_a_set_that_is_waited_for();
	other_sockets_stay();
	a_child_may_close();
	MUST(!close(listener));
	selects_no_high_numbers();
}

static void serve(void)
{
	ssize_t num, all = 0;
	char buf[1000];

	listen_there(0);
	server = accept(listener, NULL, NULL);
	MUST(server >= 0);
	while ((num = read(server, buf, sizeof(buf))) > 0)
		all += num;
	MUST(num == 0 && all == BYTES);
}

static void send_all(void)
{
	static char buf[BYTES];

	client = socket(AF_INET, SOCK_STREAM, 0);
	MUST(!connect(client, (const struct sockaddr *)address(), sizeof(*address())));
	MUST(write(client, buf, sizeof(buf)) == sizeof(buf));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "each";

	if (!strcmp(what, "serve"))
		serve();
	else if (!strcmp(what, "send"))
		send_all();
	else
		each();
	return 0;
}
