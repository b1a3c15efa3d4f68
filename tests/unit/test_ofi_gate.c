/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The gate, which all processes of a host keep: who gets a connection, also when members end or
 * stand still, and what callers can do to it that say nothing, or nonsense.
 *
 * Members are children of the test, which calls them by TCP.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ofi_far.h"
#include "providers/ofi/gate.h"
#include "providers/ofi/io.h"
#include "providers/ofi/self.h"
#include "providers/ofi/session.h"

#define FABRIC "ofi-test"
#define POLLS 50

static uint16_t port;		/* of the gate, a free one */
static uint8_t body[OFI_FAR_BODY];

/* ------------------------------------------------------------------------
 * A member.
 */

enum order {
	GO_AWAY = 1,	/* as a program that ends */
	DESCRIPTORS,	/* how many has it? */
	SESSIONS,
	NO_DESCRIPTORS,	/* it gets no more from now on */
	POLL,		/* how often has anything come in since then, which must be once at least? */
	MORE_DESCRIPTORS,
	PASS,		/* 6 s */
	MOMENT,		/* 600 ms */
};

static int num_came;

static bool poll_once(void)
{
	bool came = ofi_io_poll();

	num_came += came;
	return came;
}

static int poll_more(void)
{
	while (!num_came)
		(void)poll_once();
	for (int i = 0; i < POLLS; i++)
		(void)poll_once();
	return num_came;
}

static void limit_descriptors(bool none)
{
	struct rlimit limit;
	int fd;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max < 1024 ? limit.rlim_max : 1024;
	if (none) {
		/* All below the first one that is free are used. */
		fd = dup(0);
		assert_true(fd >= 0);
		close(fd);
		limit.rlim_cur = (rlim_t)fd;
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int obey(int order)
{
	switch (order) {
	case DESCRIPTORS:
		return (int)ofi_world_descriptors();
	case SESSIONS:
		return (int)ofi_sessions_open();
	case NO_DESCRIPTORS:
	case MORE_DESCRIPTORS:
		limit_descriptors(order == NO_DESCRIPTORS);
		num_came = 0;
		return 0;
	case POLL:
		return poll_more();
	case PASS:
	case MOMENT:
		ofi_world_pass(SIM_MS(order == PASS ? 6000 : 600));
		return 0;
	default:
		return 0;
	}
}

/* Says its slot, or a negative errno if its gate does not open, then does what it is told. */
static int member(int orders)
{
	const struct timespec moment = { .tv_nsec = 100000 };
	int answer, order;
	void *state;

	ofi_world_join(FABRIC);
	ofi_self.gate = port;
	answer = ofi_gate_open();
	if (!answer)
		answer = (int)sim_self_slot();
	do {
		assert_int_equal(send(orders, &answer, sizeof(answer), MSG_NOSIGNAL), sizeof(answer));
		/* Once in any case: orders may come as fast as they are answered. */
		do {
			if (!poll_once())
				(void)nanosleep(&moment, NULL);
		} while (recv(orders, &order, sizeof(order), MSG_DONTWAIT) != sizeof(order));
		if (order != GO_AWAY)
			answer = obey(order);
	} while (order != GO_AWAY);
	return ofi_world_close(&state);
}

/* ------------------------------------------------------------------------
 * Their parent.
 */

struct child {
	pid_t pid;
	int orders;
	int slot;
};

static struct child a, b;
static struct ofi_far far;

static int tell(const struct child *child, int order)
{
	int answer = -1;

	assert_int_equal(send(child->orders, &order, sizeof(order), MSG_NOSIGNAL), sizeof(order));
	if (order != GO_AWAY)
		assert_int_equal(recv(child->orders, &answer, sizeof(answer), 0), sizeof(answer));
	return answer;
}

static void start(struct child *child)
{
	int pair[2];

	ofi_world_pair(pair);
	child->pid = fork();
	assert_true(child->pid >= 0);
	if (!child->pid) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[1]);
		close(a.orders);
		_exit(member(pair[0]));
	}
	close(pair[0]);
	child->orders = pair[1];
	assert_int_equal(recv(child->orders, &child->slot, sizeof(child->slot), 0), sizeof(int));
}

static void wait_for(struct child *child, int expected)
{
	int status;

	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	assert_int_equal(status, expected);
	close(child->orders);
	*child = (struct child){ .orders = -1 };
}

static void end(struct child *child)
{
	(void)tell(child, GO_AWAY);
	wait_for(child, 0);
}

static void end_by(struct child *child, int sig)
{
	assert_int_equal(kill(child->pid, sig), 0);
	wait_for(child, sig);
}

static void start_two(void)
{
	start(&a);
	start(&b);
	if (a.slot < 0 || b.slot < 0)
		print_error("gates at port %u: %d, %d\n", port, a.slot, b.slot);
	assert_true(a.slot >= 0 && b.slot >= 0 && a.slot != b.slot);
}

static int call(void)
{
	union sim_sockaddr addr = { .in = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	} };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, &addr.sa, sizeof(addr.in)), 0);
	return fd;
}

/* A call for a slot (-1: any), with its HELLO. */
static void call_slot(struct ofi_far *caller, int slot)
{
	ofi_far_init(caller);
	caller->initiator = true;
	if (slot >= 0)
		caller->hello.want = (struct ofi_want){ .kind = OFI_WANT_SLOT, .slot = (uint16_t)slot };
	caller->fd = call();
	ofi_far_says_hello(caller);
}

/* Who answers; -1: nobody, it is closed. */
static int answer(struct ofi_far *caller)
{
	static struct ofi_hello hello;
	unsigned int version;

	if (ofi_far_receive(caller->fd, body, &caller->theirs_len) != OFI_HELLO)
		return -1;
	assert_int_equal(ofi_hello_decode(body, caller->theirs_len, &hello, &version), 0);
	return hello.slot;
}

static int who_answers(int slot)
{
	int who;

	call_slot(&far, slot);
	who = answer(&far);
	ofi_far_closes(&far);
	return who;
}

static bool is_silent(const struct ofi_far *caller)
{
	return !poll(&(struct pollfd){ .fd = caller->fd, .events = POLLIN }, 1, 0);
}

/* At all addresses, where the gate listens: other tests have ports at some. */
static uint16_t free_port(void)
{
	union sim_sockaddr addr = { .in.sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(addr.in);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, &addr.sa, len), 0);
	assert_int_equal(getsockname(fd, &addr.sa, &len), 0);
	close(fd);
	return sim_addr_port(&addr.sa);
}

static int setup(void **state)
{
	(void)state;
	sim_fake_make_runtime_dir();
	ofi_world_self();
	port = free_port();
	a.orders = b.orders = -1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sim_fake_remove_runtime_dir();
	return 0;
}

/* ------------------------------------------------------------------------
 * Who gets it.
 */

static void each_member_gets_its_own(void **state)
{
	(void)state;
	start_two();
	for (unsigned int i = 0; i < 20; i++) {
		int any = who_answers(-1);

		assert_true(any == a.slot || any == b.slot);
		assert_int_equal(who_answers(a.slot), a.slot);
		assert_int_equal(who_answers(b.slot), b.slot);
	}
	end(&a);
	end(&b);
}

/* Nobody has the slot: whoever gets it says so by being somebody else. */
static void of_nobody(void **state)
{
	(void)state;
	start(&a);
	assert_int_equal(who_answers(500), a.slot);
	assert_int_equal(who_answers(SIM_MAX_SLOTS - 1), a.slot);
	end(&a);
}

static void a_member_has_gone(void **state)
{
	int gone;

	(void)state;
	start_two();
	gone = b.slot;
	end(&b);
	for (unsigned int i = 0; i < 20; i++)
		assert_int_equal(who_answers(gone), a.slot);
	end(&a);
}

static void a_member_was_killed(void **state)
{
	int gone;

	(void)state;
	start_two();
	gone = b.slot;
	end_by(&b, SIGKILL);
	for (unsigned int i = 0; i < 20; i++)
		assert_int_equal(who_answers(gone), a.slot);
	/* Its slot and its inbox are another one's now. */
	start(&b);
	for (unsigned int i = 0; i < 20; i++)
		assert_int_equal(who_answers(b.slot), b.slot);
	end(&b);
	end(&a);
}

/* Nobody answers in its place, however many ask; and it does when it goes on. */
static void a_member_is_stopped(void **state)
{
	static struct ofi_far callers[40];
	unsigned int answered = 0;
	int status;

	(void)state;
	start_two();
	assert_int_equal(kill(b.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(b.pid, &status, WUNTRACED), b.pid);
	for (unsigned int i = 0; i < 40; i++)
		call_slot(&callers[i], b.slot);
	/* Twice, so that all that had come is handled. */
	(void)tell(&a, SESSIONS);
	assert_int_equal(tell(&a, SESSIONS), 0);
	assert_int_equal(kill(b.pid, SIGCONT), 0);
	for (unsigned int i = 0; i < 40; i++) {
		int who = answer(&callers[i]);

		assert_true(who == -1 || who == b.slot);
		answered += who == b.slot;
		ofi_far_closes(&callers[i]);
	}
	assert_int_not_equal(answered, 0);
	end(&a);
	end(&b);
}

static void another_program_has_the_port(void **state)
{
	static const int on = 1;
	union sim_sockaddr addr = { .in = { .sin_family = AF_INET, .sin_port = htons(port) } };

	(void)state;
	for (unsigned int shared = 0; shared < 2; shared++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
		if (shared)
			assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
		assert_int_equal(bind(fd, &addr.sa, sizeof(addr.in)), 0);
		assert_int_equal(listen(fd, 1), 0);
		start(&a);
		assert_int_equal(a.slot, -EADDRINUSE);
		close(fd);
		end(&a);
	}
	/* What is left of connections is nobody's. */
	start(&a);
	call_slot(&far, -1);
	assert_int_equal(answer(&far), a.slot);
	end(&a);
	start(&a);
	assert_true(a.slot >= 0);
	ofi_far_closes(&far);
	end(&a);
}

/* ------------------------------------------------------------------------
 * Callers.
 */

/* The number settles when all that came has been handled. */
static void has_descriptors(const struct child *child, int expected)
{
	for (unsigned int i = 0; i < 20000 && tell(child, DESCRIPTORS) != expected; i++)
		;
	assert_int_equal(tell(child, DESCRIPTORS), expected);
}

static void callers_that_hang_up_at_each_byte(void **state)
{
	uint8_t bytes[OFI_FRAME_HEADER + OFI_HELLO_MAX];
	int before;
	size_t len;

	(void)state;
	start(&a);
	before = tell(&a, DESCRIPTORS);
	ofi_far_init(&far);
	len = OFI_FRAME_HEADER + ofi_hello_encode(&far.hello, bytes + OFI_FRAME_HEADER);
	ofi_frame_encode(&(struct ofi_frame){ (uint32_t)len - OFI_FRAME_HEADER, OFI_HELLO }, bytes);
	for (size_t cut = 0; cut <= len; cut++) {
		int fd = call();

		if (cut)
			ofi_far_write(fd, bytes, cut);
		close(fd);
	}
	/* Who comes last is accepted last: the others have been. */
	assert_int_equal(who_answers(-1), a.slot);
	has_descriptors(&a, before);
	assert_int_equal(tell(&a, SESSIONS), 0);
	end(&a);
}

static void callers_that_say_something_else(void **state)
{
	static const uint8_t zeros[OFI_HELLO_MAX];

	(void)state;
	start(&a);
	for (uint8_t type = 1; type < OFI_FRAME_TYPES; type++) {
		ofi_far_init(&far);
		far.fd = call();
		ofi_far_send(far.fd, type, zeros, ofi_frame_max(type) < sizeof(zeros) ?
			     ofi_frame_max(type) : sizeof(zeros));
		if (type == OFI_HELLO)
			ofi_far_hears_refused(&far, OFI_REFUSED_MALFORMED);
		ofi_far_hears_end(&far);
	}
	assert_int_equal(tell(&a, SESSIONS), 0);
	end(&a);
}

/* All of them have connected before the first one says a word, as when the processes of a job start. */
static void callers_that_come_together(void **state)
{
	static struct ofi_far together[600];

	(void)state;
	start(&a);
	for (unsigned int i = 0; i < 600; i++) {
		ofi_far_init(&together[i]);
		together[i].initiator = true;
		together[i].fd = call();
	}
	for (unsigned int i = 0; i < 600; i++) {
		ofi_far_says_hello(&together[i]);
		assert_int_equal(answer(&together[i]), a.slot);
		ofi_far_closes(&together[i]);
	}
	end(&a);
}

/* They must not keep others out, and take no more descriptors than that of the program's. */
static void callers_that_say_nothing(void **state)
{
	static struct ofi_far silent[300];
	int before;

	(void)state;
	start(&a);
	before = tell(&a, DESCRIPTORS);
	for (unsigned int i = 0; i < 300; i++) {
		ofi_far_init(&silent[i]);
		silent[i].fd = call();
	}
	/* They might be about to say it. */
	call_slot(&far, -1);
	(void)tell(&a, DESCRIPTORS);
	assert_true(is_silent(&silent[0]));
	(void)tell(&a, MOMENT);
	assert_int_equal(answer(&far), a.slot);
	ofi_far_closes(&far);
	ofi_far_hears_end(&silent[0]);
	assert_true(is_silent(&silent[299]));
	assert_true(tell(&a, DESCRIPTORS) <= before + 256);
	(void)tell(&a, PASS);
	for (unsigned int i = 1; i < 300; i++)
		ofi_far_hears_end(&silent[i]);
	has_descriptors(&a, before);
	end(&a);
}

/* Then connections wait; the thread must not be told of them all the time. */
static void no_descriptor_is_left(void **state)
{
	(void)state;
	start(&a);
	(void)tell(&a, NO_DESCRIPTORS);
	call_slot(&far, -1);
	assert_int_equal(tell(&a, POLL), 1);
	assert_true(is_silent(&far));
	(void)tell(&a, MORE_DESCRIPTORS);
	(void)tell(&a, PASS);
	assert_int_equal(answer(&far), a.slot);
	ofi_far_closes(&far);
	end(&a);
}

/* ------------------------------------------------------------------------
 * The inbox.
 */

static void mail(const struct child *to, const int *fds, size_t num, const void *bytes, size_t len)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control = { .header = {
		.cmsg_len = CMSG_LEN(num * sizeof(int)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
	} };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct msghdr message = {
		.msg_name = &addr,
		.msg_namelen = sizeof(addr),
		.msg_iov = &(struct iovec){ (void *)(uintptr_t)bytes, len },
		.msg_iovlen = 1,
		.msg_control = num ? &control : NULL,
		.msg_controllen = num ? CMSG_LEN(num * sizeof(int)) : 0,
	};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (num)
		memcpy(CMSG_DATA(&control.header), fds, num * sizeof(int));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", sim_fake_path("polycm/" FABRIC "/gate.%d",
									   to->slot));
	assert_int_equal(sendmsg(fd, &message, 0), (ssize_t)len);
	close(fd);
}

/* Whatever comes, no descriptor stays. */
static void mail_that_is_none(void **state)
{
	static uint8_t bytes[OFI_HELLO_MAX + 1];
	int before, pair[2];

	(void)state;
	start(&a);
	before = tell(&a, DESCRIPTORS);
	for (size_t num = 0; num <= 4; num++) {
		for (size_t len = 0; len <= sizeof(bytes); len += len ? sizeof(bytes) - 1 : 1) {
			ofi_world_pair(pair);
			mail(&a, (int[]){ pair[0], pair[0], pair[0], pair[0] }, num, bytes, len);
			close(pair[0]);
			ofi_far_init(&far);
			far.fd = pair[1];
			if (num == 1 && len <= OFI_HELLO_MAX)
				ofi_far_hears_refused(&far, OFI_REFUSED_MALFORMED);
			ofi_far_hears_end(&far);
		}
	}
	has_descriptors(&a, before);
	end(&a);
}

#define GATE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		GATE(each_member_gets_its_own),
		GATE(of_nobody),
		GATE(a_member_has_gone),
		GATE(a_member_was_killed),
		GATE(a_member_is_stopped),
		GATE(another_program_has_the_port),
		GATE(callers_that_hang_up_at_each_byte),
		GATE(callers_that_say_something_else),
		GATE(callers_that_come_together),
		GATE(callers_that_say_nothing),
		GATE(no_descriptor_is_left),
		GATE(mail_that_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
