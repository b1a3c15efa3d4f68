/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * carry.h - between the files carry*.c: polycm carry, the process of a system that carries its TCP
 * connections between nodes.  It is connected to both ends of each, and passes on what one sends when
 * it has arrived over the simulated network.  Everything is one thread's, but for arrivals (carry.c).
 */
#ifndef TOOLS_CARRY_H
#define TOOLS_CARRY_H

#include <poll.h>
#include <uthash.h>

#include "include/tcp_ops.h"
#include "include/turn_tells.h"
#include "polycm.h"
#include "turn/carried.h"

/* The two ends, and the ways on which data goes to them. */
enum carry_end { CARRY_CLIENT, CARRY_SERVER, CARRY_ENDS };

/* What goes to an end: sent on the network, arrived, and written to the end, in this order. */
struct carry_way {
	char *bytes;
	size_t begin, arrived, end;	/* of what is not written: places in bytes */
	size_t size;
	bool is_closed;			/* nothing more is sent */
	bool ends;			/* the end of data has arrived */
	bool has_ended;			/* and was passed on */
};

struct carry_connection {
	struct carry_connection *prev, *next;	/* in the order in which they began */
	UT_hash_handle hh;		/* by number */
	uint32_t number;
	uint64_t cookie;		/* of the client's socket */
	uint32_t connect;		/* the number of its connect() */
	int held;			/* that socket, which is not connected yet; else -1 */
	union turn_address from, to;	/* as the client's socket has them */
	union turn_address ends[CARRY_ENDS];	/* for the network: IPv4 where it is meant */
	int sockets[CARRY_ENDS];	/* ours, which are connected to the ends; or -1 */
	bool is_reached[CARRY_ENDS];	/* the end is connected */
	bool has_begun;			/* to connect to the server; or it never will */
	uint16_t port;			/* from which we are connected to the server */
	struct carry_service *service;	/* at which the client is connected to us; or NULL */
	struct carry_way to_end[CARRY_ENDS];
	short watched[CARRY_ENDS];	/* what is waited for there, as carry_events() has it */
	struct carry_connection *next_touched;
	bool is_touched;
};

/* A place where clients of a server's address and port connect to us; there as long as it has one. */
struct carry_service {
	struct carry_service *next;
	unsigned int num_clients;
	union turn_address to;
	int listener;
	uint16_t port;			/* ours */
};

/* --- carry.c --- */

extern const struct polycm_tcp_ops *carry_network;
extern const struct turn_tells *carry_tells;

/* --- carry_request.c --- */

/* The socket of programs that connect; or -1 and errno. */
int carry_open_requests(void);
/* What one asks there; false: there is nothing. */
bool carry_take_request(int requests);

/* --- carry_service.c: where clients connect to us --- */

/* With one client more.  Made if there is none yet; NULL: it cannot be. */
struct carry_service *carry_service_for(const union turn_address *to);
/* A client of it has gone; NULL: nothing is done. */
void carry_leave_service(struct carry_service *service);
/* As the kernel names it: the address of that family with that port. */
socklen_t carry_address_len(const union turn_address *address);
/* IPv4 in IPv6's clothes becomes IPv4. */
union turn_address carry_plain(const union turn_address *address);
uint16_t carry_port(const union turn_address *address);
void carry_set_port(union turn_address *address, uint16_t port);

/* --- carry_listener.c --- */

enum carry_listens {
	CARRY_LISTENS, CARRY_NOBODY,
	CARRY_UNKNOWN,		/* who connects learns it */
};
/* Is somebody there for a connection from `from' to `to'? */
enum carry_listens carry_listens(const union turn_address *from, const union turn_address *to);
/* The cookie (SO_COOKIE) of the socket at `to' that is connected to `from'; 0: it is not known. */
uint64_t carry_cookie(const union turn_address *from, const union turn_address *to);

/* --- carry_opening.c --- */

/* A program connects; takes the descriptor. */
void carry_begin(const struct turn_connect_request *request, int fd);
/* The client's connect() has that result, a negative errno; nothing is left of the connection. */
void carry_fail(struct carry_connection *connection, int result);
void carry_take_syn(struct carry_connection *connection);
void carry_take_syn_ack(struct carry_connection *connection);
/* The opening has ended: a server's accept() has the connection now, and not before. */
void carry_begin_server(struct carry_connection *connection);
/* What connect() to the server has come to. */
void carry_end_connecting(struct carry_connection *connection);

/* --- carry_connection.c --- */

extern struct carry_connection *carry_connections;

void carry_add(struct carry_connection *connection);
/* NULL: there is none of that number. */
struct carry_connection *carry_find(uint32_t number);
size_t carry_num_connections(void);

static inline enum carry_end carry_other(enum carry_end end)
{
	return end == CARRY_CLIENT ? CARRY_SERVER : CARRY_CLIENT;
}

/* In the name of the other end. */
int carry_send(const struct carry_connection *connection, enum carry_end end,
	       enum polycm_tcp_kind kind, size_t len);
/* What has arrived goes to the end, as far as it takes it. */
void carry_pass_on(struct carry_connection *connection, enum carry_end end);
void carry_close(struct carry_connection *connection, enum carry_end end);
/* The end gets a RST. */
void carry_reset(struct carry_connection *connection, enum carry_end end);
/* The end has gone, or has no memory of the connection. */
void carry_tell_other(struct carry_connection *connection, enum carry_end end);
/* A segment has arrived. */
void carry_arrived(const struct polycm_tcp_segment *segment);
/* What to wait for at that end, as poll() has it; 0: for nothing, and not for its end. */
short carry_events(const struct carry_connection *connection, enum carry_end end);
/* That is there. */
void carry_ready(struct carry_connection *connection, enum carry_end end, short events);
/*
 * Of those to which something has happened: that of which both ends are gone is forgotten, and others
 * are waited for.
 */
void carry_forget_ended(void);

/* --- carry_waits.c --- */

/* What else is read: a small number, of which carry_wait() sets the bit. */
bool carry_wait_for(int fd, unsigned int other);
/* What carry_events() says now. */
void carry_watch(struct carry_connection *connection, enum carry_end end);
/*
 * Until something is ready; connections are served.  Returns how many were, or a negative errno;
 * timeout_ms: as poll() has it.
 */
int carry_wait(int timeout_ms, unsigned int *ret_others);

#endif
