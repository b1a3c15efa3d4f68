/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * carrier_world.h - what carries TCP connections (tools/carry*.c), over a network that is a list:
 * segments arrive when the test says so.  Programs are this process, over loopback: a client is
 * 127.0.0.2, and what libpolycm-turn does for its connect() is done here; the server is 127.0.0.1.
 */
#ifndef TESTS_UNIT_CARRIER_WORLD_H
#define TESTS_UNIT_CARRIER_WORLD_H

#include "tools/carry.h"
#include "tests/cmocka_all.h"

#define MANY 4096u
/* Of a connect() that is under way; that its program has given up. */
#define NO_RESULT 1
#define GIVEN_UP 2

extern struct polycm_tcp_segment under_way[MANY];	/* in the order in which they were sent */
extern unsigned int num_under_way;
extern int send_fails;			/* 0, or what it returns */
extern char sent[1024];			/* since sent_is(): "SYN> DATA<:5" */
extern int reset_means;			/* the last one that was told */
extern uint16_t ports_for[65536];	/* by carry_tells->port_is_for() */
extern bool knows_listeners;		/* false: the kernel does not say whether somebody listens */
extern int listener;			/* of the server, which does not wait */

struct client {
	int fd;				/* does not wait, unless it is said */
	uint32_t number;		/* of its last connect() */
	union turn_address own;
};

/* cmocka set-up and tear-down of a test, which must leave nothing. */
int carrier_open(void **state);
int carrier_close(void **state);

/* "127.0.0.1" or "::1". */
union turn_address carrier_address(const char *text, uint16_t port);
uint16_t carrier_server_port(void);
/* A listener there, which does not wait; *ret: with its port.  -1: the system has no such address. */
int carrier_listen(const char *text, union turn_address *ret);

/* A socket as connect() makes it, of which nothing was asked; it has a result when that comes. */
struct client carrier_socket(const char *from);
/* connect() of a new socket of that address to another one. */
struct client carrier_connect(const char *from, const union turn_address *to, bool waits);
/* connect() of the client to the server. */
struct client carrier_connect_to_server(void);
/* Again, of the same socket; NULL: to the server. */
void carrier_connect_again(struct client *client, const union turn_address *to);
/* The program gives it up: by shutdown(), or connect() to no address. */
void carrier_give_up_connect(const struct client *client);
/* NO_RESULT, 0 or a negative errno. */
int carrier_result(const struct client *client);

/* What polycm carry's loop does once; false: it had nothing to do in so many milliseconds. */
bool carrier_step(int timeout_ms);
/* The first segment of that kind under way, which must be there, is taken away from it. */
struct polycm_tcp_segment carrier_take(enum polycm_tcp_kind kind);
/* It arrives; or its sender gives up. */
void carrier_deliver_nth(unsigned int i);
void carrier_lose_nth(unsigned int i);
void carrier_deliver(enum polycm_tcp_kind kind);
void carrier_give_up(enum polycm_tcp_kind kind);
/* All that is under way arrives, and what is sent then, until nothing happens. */
void carrier_settle(void);
/* The same, until that is so; what the kernel has to do for it may take a while. */
#define carrier_until(what)									\
	do {											\
		unsigned int tries = 0;								\
		while (carrier_settle(), !(what)) {						\
			if (++tries == 500)							\
				fail_msg("it does not come to this: %s", #what);		\
			(void)carrier_step(10);							\
		}										\
	} while (0)
/* Without segments that arrive. */
#define carrier_stays_until(what)								\
	do {											\
		unsigned int tries = 0;								\
		while (!(what)) {								\
			if (++tries == 500)							\
				fail_msg("it does not come to this: %s", #what);		\
			(void)carrier_step(10);							\
		}										\
	} while (0)

/* Are these the segments that were sent?  Forgets them. */
void assert_sent(const char *text);

/* A connection: its client, and the server's socket, which does not wait. */
struct pair {
	struct client client;
	int server;
};
struct pair carrier_pair(void);
/* accept() of the server: -1 if there is none. */
int carrier_accept(void);
void carrier_close_pair(struct pair *pair);

/* Of poll(), at once. */
short ready(int fd);
/* What recv() says: its text, "" at the end, or the name of an errno; "EAGAIN". */
const char *received(int fd);
#define receives(fd, text) (!strcmp(received(fd), text))
void say(int fd, const char *text);
/* close() sends a RST. */
void abort_socket(int fd);

unsigned int num_connections(void);
unsigned int num_descriptors(void);

/* For the tests after it: the kernel does not say who listens. */
int carrier_forget_listeners(void **state);
#define carrier_run_twice(tests)                                                                   \
	(cmocka_run_group_tests_name("the kernel says who listens", tests, NULL, NULL) +           \
	 cmocka_run_group_tests_name("it does not", tests, carrier_forget_listeners, NULL))

#endif
