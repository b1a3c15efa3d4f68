/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tests/scenarios/scene.h - what a scenario is written with.
 *
 * A scenario is a function that plays one situation against <rdma/rdma_cma.h>
 * and <infiniband/verbs.h> alone, in a process of its own, both ends in one
 * thread, and leaves a trace on standard output that is the same in every
 * run: no pointers, QP numbers, times, chosen ports, names of devices.  The
 * trace on plain librdmacm over the kernel is recorded; polycm must give the
 * same.
 *
 * What a scenario expects stands nowhere: it plays and shows, and the record
 * is the truth.  It only has to take events in an order that does not depend
 * on chance.
 */
#ifndef TESTS_SCENARIOS_SCENE_H
#define TESTS_SCENARIOS_SCENE_H

#include <errno.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* ------------------------------------------------------------------------
 * The table of scenarios: each source has one, ended by an empty entry, and
 * stands in topics[] of main.c.
 */

enum scenario_flags {
	SLOW = 1 << 0,	    /* waits for minutes: only with --slow */
	LINK = 1 << 1,	    /* cuts the link or loses packets: runs alone */
	PROCESSES = 1 << 2, /* several processes (the simulator then in real time) */
	ALONE = 1 << 3,	    /* changes what others see: addresses, limits of the system */
};

struct scenario {
	const char *name;  /* "accept-too-long": file of its record */
	void (*play)(void);
	const char *about; /* one line: what is to be seen */
	unsigned int flags;
};

/* ------------------------------------------------------------------------
 * Who plays.  Both channels and the first two ids are made by open_scene();
 * a scenario may make more.  All that is left is destroyed at the end.
 */

extern struct rdma_event_channel *client_events, *server_events;
extern struct rdma_cm_id *client; /* the active id */
extern struct rdma_cm_id *server; /* the listening one */
extern struct rdma_cm_id *child;  /* of the last CONNECT_REQUEST that was taken */

/* Two channels and two ids, nothing bound. */
void open_scene(enum rdma_port_space ps);
void open_channels(void);
/* One more id, named in the trace. */
struct rdma_cm_id *make_id(const char *name, struct rdma_event_channel *events,
			   enum rdma_port_space ps);
struct rdma_event_channel *make_channel(const char *name);
/*
 * The server may be on another host than the client (two_hosts.c).  What is made for it other than
 * by open_channels() is on its host by make_server_channel(), or, an id without a channel, between
 * at_server(true) and at_server(false).
 */
struct rdma_event_channel *make_server_channel(const char *name);
void at_server(bool there);
/*
 * For ids and channels that the scenario made otherwise (rdma_create_ep(), TRY(rdma_create_id())):
 * names them in the trace and destroys them at the end.
 */
void name_id(const char *name, struct rdma_cm_id *id);
void name_channel(const char *name, struct rdma_event_channel *events);
/* rdma_destroy_qp() where there is one, and rdma_destroy_id() with its result. */
#define DESTROY(id) destroy_shown(#id, (id))
void destroy_shown(const char *name, struct rdma_cm_id *id);
/* The scenario has destroyed it itself. */
void forget_id(struct rdma_cm_id *id);
void forget_channel(struct rdma_event_channel *events);

/* ------------------------------------------------------------------------
 * Addresses.  Ports are 0 to 9 of the scenario's own, shown as port0 ... port9,
 * or ANY_PORT, or a real one as REAL(80).
 */

enum place {
	CLIENT4, SERVER4, CLIENT6, SERVER6,
	NOBODY4, NOBODY6,    /* on the subnet, nobody has it */
	UNROUTABLE4,	     /* no route leads there */
	NODEVICE4,	     /* of this machine, on an interface without an RDMA device */
	ANY4, ANY6,	     /* wildcards */
	LOOPBACK4, LOOPBACK6,
	ELSEWHERE4,	     /* not of this machine; 192.0.2.1 */
	MULTICAST4, MULTICAST6,
	SECOND4, SECOND6,    /* more addresses of the client's interface; no route over the link */
	OTHER4, OTHER6,	     /* of a device of this machine, of another transport */
	OTHER_CLIENT4, OTHER_SERVER4, /* sequences: the client's and server's of that transport */
	OTHER_CLIENT6, OTHER_SERVER6,
	NUM_PLACES
};

#define ANY_PORT (-1)
#define REAL(port) (1000 + (port))

/* One of a few static buffers, used in turn. */
struct sockaddr *at(enum place place, int port);
/* The same as text, NULL terminated, for rdma_getaddrinfo(). */
const char *host(enum place place);
const char *service(int port);
/* Is the place known here?  If not, end_skipped() suits. */
bool have(enum place place);
/* The link-local address of the interface with that place, where the system does not show it. */
struct sockaddr_in6;
bool known_link_local(enum place place, struct sockaddr_in6 *ret_address);
/* "server4:port0" */
const char *address_text(const struct sockaddr *address);

/* ------------------------------------------------------------------------
 * The trace.
 */

/* One line. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* No lines until loud(); calls nest. */
void quiet(void);
void loud(void);

/*
 * The call as it stands in the source, and what it gave: " = 0", " = -1 EINVAL".
 * TRY returns that value; TRY_PTR is for calls that return a pointer.
 */
#define TRY(call) (errno = 0, tried(#call, (call)))
#define TRY_PTR(call) (errno = 0, tried_ptr(#call, (call)))
int tried(const char *call, int result);
void *tried_ptr(const char *call, void *result);
/*
 * A call on which librdmacm itself may crash: " = crash" is recorded then, and polycm has to answer
 * with an errno, whichever.  Not in a second thread.
 */
#define TRY_CRASH(call)                                                                            \
	do {                                                                                       \
		crash_begins();                                                                    \
		if (!sigsetjmp(crash_point, 1))                                                    \
			crash_ends(#call, (errno = 0, (call)));                                    \
		else                                                                               \
			crash_happened(#call);                                                     \
	} while (0)
extern sigjmp_buf crash_point;
void crash_begins(void);
void crash_ends(const char *call, int result);
void crash_happened(const char *call);

/* A step that only prepares: says nothing unless it fails, and then the scenario ends. */
#define MUST(call)                                                                                 \
	do {                                                                                       \
		if (call)                                                                          \
			end_failed(#call);                                                         \
		settle();                                                                          \
	} while (0)
void end_failed(const char *what) __attribute__((noreturn));
/* There is nothing more to be seen. */
void end_here(void) __attribute__((noreturn));
/* The scenario cannot be played here. */
void end_skipped(const char *why) __attribute__((noreturn));

/* ------------------------------------------------------------------------
 * Events.  Waiting has a limit (30 s, SLOW: 20 minutes; any virtual time).
 */

/*
 * The next event, shown and acked; the copy is valid until the next call for that channel.
 * CONNECT_REQUEST: its id is also in `child`, named child, child2, ...  Nothing comes: says so,
 * and returns NULL.
 */
struct rdma_cm_event *next(struct rdma_event_channel *events);
struct rdma_cm_event *next_within(struct rdma_event_channel *events, unsigned int ms);
/* The next event, which must be this one for the scenario to go on. */
#define expect(events, type) expect_type((events), RDMA_CM_EVENT_##type)
struct rdma_cm_event *expect_type(struct rdma_event_channel *events, enum rdma_cm_event_type type);
/* The next event, shown, not acked; NULL as next(). */
struct rdma_cm_event *next_unacked(struct rdma_event_channel *events);
void ack(struct rdma_cm_event *event);
/* Over iWARP: waits until the kernel has moved the QP of a stream that has ended out of RTS. */
void stream_ended(const struct rdma_cm_id *id);
/*
 * Over RoCE: waits until the peer's refusal, which follows its answer, has reached the id, which has
 * not taken the answer.
 */
void answer_withdrawn(struct rdma_cm_id *id);
/* An event is there; it is not taken. */
void arrived(struct rdma_event_channel *events);
/* All that comes within 0.8 s (on the kernel 1.2 s), or "nothing"; also for "and nothing more comes". */
void rest(struct rdma_event_channel *events);
void show_event(struct rdma_event_channel *events, const struct rdma_cm_event *event);

/*
 * What has been set going ends before the next step, whose answer would else depend on who is
 * quicker, the kernel's threads or the scenario.  After each call in TRY() or MUST() and each event.
 */
void settle(void);
/* Time passes: really, or on the simulator's clock. */
void pass_ms(unsigned int ms);
/* Milliseconds since some point. */
uint64_t now_ms(void);
/*
 * "WHAT after about N ms" if it was (an emulated machine may be 15 s slow), "WHAT at once" (less than
 * half of it and than 5 s), else how long.
 */
void show_lapse(const char *what, uint64_t since_ms, unsigned int expected_ms);

/* ------------------------------------------------------------------------
 * What can be looked at.
 */

/* "client QP RTS", "client no QP" */
void show_qp(struct rdma_cm_id *id);
/* The same with what the connection set; depths rounded up to a power of two. */
void show_qp_attr(struct rdma_cm_id *id);
/* "client from client4:ephemeral to server4:port0, device yes, port yes" */
void show_addresses(struct rdma_cm_id *id);
/* Path records: MTU, packet life, rate, hop limit, traffic class, ... */
void show_route(struct rdma_cm_id *id);
/* "00*4 0102 ff*3" */
const char *bytes_text(const void *data, size_t len);

/* ------------------------------------------------------------------------
 * The way to a situation, without a word unless something fails.
 */

/* 1, 1, retries 7, no data; and with data (bytes 1, 2, 3, ...). */
struct rdma_conn_param param(void);
struct rdma_conn_param param_data(size_t len);
extern const uint8_t counting[256];

/*
 * For rdma_conn_param.qp_num where there is no QP, shown as own0 to own15.  The
 * scenario's own: a connection with the number of another live one is stale.
 */
uint32_t own_qp_num(unsigned int number);

/* server: bound to SERVER4, port 0, listening. */
void server_listens(int backlog);
/* client: resolved to SERVER4, port 0, up to ADDR_RESOLVED or ROUTE_RESOLVED. */
void client_finds(void);
void client_resolves(void);
/* A QP of the id's type (RC, UD); room for 4 messages each way. */
void make_qp(struct rdma_cm_id *id);
/* server listens, client (with a QP) connects, the server has taken the request: child (no QP yet). */
void request(struct rdma_conn_param *param);
/* ... child has a QP and accepts; the client has not looked for its event yet. */
void accepted(struct rdma_conn_param *param);
/* ... and both have taken ESTABLISHED. */
void established(void);

/* ------------------------------------------------------------------------
 * More than one thread or process.
 */

/*
 * A second thread (for synchronous calls); its lines come when it is joined.
 */
void beside(void (*play)(void));
void join(void);
/*
 * A second process.  Start it before the first rdma call (flag PROCESSES).  Its lines come when
 * peer_joined() or peer_killed() is called; tell() and await() are a signal each way.
 */
void start_peer(void (*play)(void));
void tell(void);
void await(void);
void peer_joined(void);
void peer_killed(int signal);

/*
 * The link between client and server; skips the scenario where that cannot be done.
 * loss: percent of the packets in both directions.
 */
void link_cut(void);
void link_mended(void);
void link_loses(unsigned int percent);
/* Every packet twice; each so much later. */
void link_duplicates(void);
void link_delays(unsigned int ms);
/* Both ends lose their carrier until link_up(). */
void link_down(void);
void link_up(void);

/* "EINVAL" */
const char *errno_text(int error);

/* For main.c: around a scenario. */
void scene_begin(const struct scenario *scenario);
void scene_end(void);

#endif
