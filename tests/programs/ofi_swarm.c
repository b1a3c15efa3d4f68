/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi_swarm.c - many processes of other hosts, as a process with the provider ofi meets them: one
 * program that plays all of them, each with a TCP connection of its own.
 *
 *	ofi_swarm rules ADDRESS PORT
 *		waits for a process that looks for a host with that address, and prints the digest
 *		of its rules
 *	ofi_swarm TRANSPORT RULES ADDRESS PORT PEERS HOSTS SECONDS [ROLES]
 *		PEERS processes, of HOSTS hosts, of the host with that gate
 *
 * First each of them says who it is, asks for a port at which nobody listens, and is told so; "all
 * there" is printed.  Then for so many seconds each has its role (ROLES: digits, of enum role;
 * default: all), and what it loses it begins again.  Some end in order, the others are just gone.
 *
 * Exit status 1: a process that does nothing wrong was not served as it has to be; the last line
 * says how.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "providers/ofi/frame.h"
#include "providers/ofi/hello.h"
#include "providers/soft/wire/mad.h"
#include "providers/soft/wire/packet.h"
#include "providers/soft/wire/segment.h"

#define PATIENCE     60 /* seconds until a peer is served, on a machine that has much else to do */
#define ATTEMPTS     16u
#define NOBODYS_PORT 4999
#define IN_SIZE	     16384u
#define DEAF_SENDS   (4u << 20) /* bytes that one that never reads says at most */

enum role {
	HONEST, /* asks and pings, again and again */
	HONEST_TOO,
	PINGS,
	HALF_HELLO, /* closes in the middle of its HELLO, or says no more */
	HALF_FRAME, /* closes in the middle of a request */
	DEAF,	    /* pings and never reads */
	NOISE,	    /* says who it is, and then what means nothing */
	NONSENSE,   /* well-formed packets of all kinds with nonsense in them */
	ROLES
};

enum state { CLOSED, CONNECTING, GREETING, ASKING, PINGING, IDLE };

struct peer {
	enum role role;
	enum state state;
	int fd;
	uint16_t slot;
	unsigned int host;
	uint64_t token;
	uint32_t asks; /* also its newest connection id */
	unsigned int attempts;
	size_t in_len, out_len, out_sent, said;
	bool there; /* it was served once */
	time_t since;
	uint8_t in[IN_SIZE], out[IN_SIZE];
};

static struct peer *peers;
static unsigned int num_peers, num_hosts, num_there;
static unsigned long sessions, refusals, pongs, ended, asked, tried_again;
static const char *transport, *roles = "01234567";
static uint64_t rules;
static union sim_sockaddr gate;
static bool roles_on;
static int epoll;

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static int fail(const struct peer *peer, const char *what)
{
	printf("process %u of host %u, role %d: %s\n", peer->slot, peer->host, (int)peer->role,
	       what);
	exit(1);
}

static uint32_t number(void)
{
	return (uint32_t)random() << 8 ^ (uint32_t)random();
}

/* ------------------------------------------------------------------------
 * What they say.
 */

static union sim_sockaddr address_of(unsigned int host)
{
	union sim_sockaddr addr;

	memset(&addr, 0, sizeof(addr));
	addr.in.sin_family = AF_INET;
	addr.in.sin_addr.s_addr = htonl(0x0a4d0000u + host * 16 + 1); /* 10.77.0.0/16 */
	return addr;
}

static void put(struct peer *peer, const void *bytes, size_t len)
{
	if (peer->out_sent) {
		memmove(peer->out, peer->out + peer->out_sent, peer->out_len - peer->out_sent);
		peer->out_len -= peer->out_sent;
		peer->out_sent = 0;
	}
	if (len > sizeof(peer->out) - peer->out_len)
		return;
	memcpy(peer->out + peer->out_len, bytes, len);
	peer->out_len += len;
}

static void put_frame(struct peer *peer, uint8_t type, const void *body, size_t len)
{
	const struct ofi_frame frame = {.len = (uint32_t)len, .type = type};
	uint8_t bytes[OFI_FRAME_HEADER + OFI_HELLO_MAX];

	ofi_frame_encode(&frame, bytes);
	if (len)
		memcpy(bytes + OFI_FRAME_HEADER, body, len);
	put(peer, bytes, OFI_FRAME_HEADER + len);
}

/* But who says to be another process of its host is believed, without a key. */
static void spoil(const struct peer *peer, uint8_t *body, size_t len)
{
	static struct ofi_hello hello;
	size_t at = (size_t)random() % len;
	uint8_t before = body[at];
	unsigned int version;

	body[at] = (uint8_t)random();
	if (!ofi_hello_decode(body, len, &hello, &version) && hello.slot != peer->slot)
		body[at] = before;
}

static void put_hello(struct peer *peer)
{
	static struct ofi_hello hello;
	static uint8_t body[OFI_HELLO_MAX];
	union sim_sockaddr addr = address_of(peer->host);
	size_t len;

	memset(&hello, 0, sizeof(hello));
	snprintf((char *)hello.host, sizeof(hello.host), "swarm %u", peer->host);
	snprintf(hello.name, sizeof(hello.name), "swarm-%u", peer->host);
	snprintf(hello.transport, sizeof(hello.transport), "%s", transport);
	hello.slot = peer->slot;
	hello.rules = rules;
	hello.token = peer->token;
	hello.ports.num_ports = hello.ports.num_addresses = 1;
	hello.ports.ports[0] =
		(struct ofi_port){.mtu = 1500, .active_mtu = IBV_MTU_1024, .up = true};
	memcpy(hello.ports.ports[0].mac, "\x02\x4d", 2);
	memcpy(hello.ports.ports[0].mac + 2, &addr.in.sin_addr, 4);
	memcpy(hello.ports.ports[0].guid, hello.ports.ports[0].mac, 6);
	if (!strcmp(transport, "ib"))
		hello.ports.ports[0].lid = (uint16_t)(0x4000 + peer->host);
	hello.ports.addresses[0] = (struct ofi_address){.addr = addr, .prefix_len = 16};
	len = ofi_hello_encode(&hello, body);
	if (roles_on && peer->role == HALF_HELLO)
		len /= 2;
	if (roles_on && peer->role == NONSENSE && random() % 8 == 0)
		spoil(peer, body, len);
	put_frame(peer, OFI_HELLO, body, len);
	if (roles_on && peer->role == HALF_HELLO)
		peer->out_len -= 1 + (size_t)random() % (peer->out_len - 1);
}

static size_t request(const struct peer *peer, uint8_t body[OFI_PACKET_HEADER + CM_MAD_SIZE])
{
	const struct ofi_packet packet = {.type = strcmp(transport, "iwarp") ? SIM_PACKET_MAD
									     : SIM_PACKET_STREAM};
	struct segment syn = {.type = SEG_SYN, .src_id = peer->asks};
	struct cma_hdr_info header = {.ip_version = 4, .src = address_of(peer->host), .dst = gate};
	struct cm_msg msg;

	sim_addr_set_port(&header.src, 9999);
	sim_addr_set_port(&header.dst, NOBODYS_PORT);
	ofi_packet_encode(&packet, body);
	if (packet.type == SIM_PACKET_STREAM) {
		syn.src = header.src;
		syn.dst = header.dst;
		return OFI_PACKET_HEADER + iw_segment_header(&syn, body + OFI_PACKET_HEADER);
	}
	memset(&msg, 0, sizeof(msg));
	msg.attr_id = CM_REQ;
	msg.tid = (uint64_t)peer->asks << 32;
	msg.req.local_comm_id = peer->asks;
	msg.req.service_id = cm_service_id(RDMA_PS_TCP, NOBODYS_PORT);
	msg.req.local_qpn = 0x1000u + peer->slot;
	msg.req.path_mtu = IBV_MTU_1024;
	msg.req.pkey = 0xffff;
	msg.req.max_cm_retries = 15;
	msg.req.remote_cm_response_timeout = msg.req.local_cm_response_timeout = 20;
	cma_hdr_encode(&header, msg.req.private_data);
	cm_encode(&msg, body + OFI_PACKET_HEADER);
	return OFI_PACKET_HEADER + CM_MAD_SIZE;
}

static void ask(struct peer *peer)
{
	uint8_t body[OFI_PACKET_HEADER + CM_MAD_SIZE];
	size_t len;

	/* The slot is in it (SIM_CONN_INDEX_BITS of fabric.h). */
	peer->asks = (uint32_t)peer->slot << 22 | ((peer->asks + 1) & 0x3fffff);
	asked++;
	len = request(peer, body);
	put_frame(peer, OFI_PACKET, body, len);
	peer->state = ASKING;
	peer->since = now();
	if (roles_on && peer->role == HALF_FRAME)
		peer->out_len -= 1 + (size_t)random() % len;
}

static void ping(struct peer *peer)
{
	const struct ofi_ping ping = {.sent = 1};
	uint8_t body[OFI_PING_SIZE];

	ofi_ping_encode(&ping, body);
	put_frame(peer, OFI_PING, body, sizeof(body));
	peer->state = PINGING;
	peer->since = now();
}

static void noise(struct peer *peer)
{
	uint8_t bytes[512];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)random();
	put(peer, bytes, 1 + (size_t)random() % sizeof(bytes));
	peer->state = IDLE;
}

/* What decodes as a frame, and often as a packet, of a type that may come. */
static void nonsense(struct peer *peer)
{
	static const uint8_t types[] = {OFI_PACKET,   OFI_PACKET,  OFI_PACKET, OFI_PACKET,
					OFI_RETURNED, OFI_FIND,	   OFI_FOUND,  OFI_PORTS,
					OFI_PONG,     OFI_CARRIER, OFI_BYE};
	uint8_t body[1024], type = types[(size_t)random() % sizeof(types)];
	size_t len = type == OFI_BYE ? 0 : 1 + (size_t)random() % sizeof(body);
	struct ofi_packet packet = {.type = (uint8_t)(random() % SIM_PACKET_TYPES)};

	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = random() % 4 ? 0 : (uint8_t)random();
	if (type == OFI_PACKET) {
		len = packet.type == SIM_PACKET_MAD ? request(peer, body)
						    : OFI_PACKET_HEADER + len % 900;
		ofi_packet_encode(&packet, body);
		for (int i = 0; i < 4; i++) /* also attributes other than REQ */
			body[OFI_PACKET_HEADER + (size_t)random() % (len - OFI_PACKET_HEADER + 1)] =
				(uint8_t)number();
		if (packet.type == SIM_PACKET_MAD && random() % 2)
			body[OFI_PACKET_HEADER + 17] = (uint8_t)(CM_REQ + random() % 11);
	} else if (type == OFI_FIND) {
		len = OFI_FIND_SIZE;
	} else if (type == OFI_FOUND) {
		len = OFI_FOUND_SIZE;
	} else if (type == OFI_PONG) {
		len = OFI_PONG_SIZE;
	}
	if (len > ofi_frame_max(type))
		len = ofi_frame_max(type);
	put_frame(peer, type, body, len);
	peer->state = IDLE;
}

/* ------------------------------------------------------------------------
 * Their connections.
 */

static void watch(struct peer *peer, int operation)
{
	struct epoll_event event = {.data.ptr = peer};
	bool deaf = roles_on && peer->role == DEAF && peer->state > GREETING;

	event.events =
		(deaf ? 0 : (uint32_t)EPOLLIN) |
		(peer->state == CONNECTING || peer->out_sent < peer->out_len ? (uint32_t)EPOLLOUT
									     : 0);
	if (epoll_ctl(epoll, operation, peer->fd, &event))
		fail(peer, strerror(errno));
}

static void hang_up(struct peer *peer)
{
	struct linger reset = {.l_onoff = 1};

	if (random() % 2)
		(void)setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(peer->fd);
	peer->fd = -1;
	peer->state = CLOSED;
	peer->since = now();
}

static void call(struct peer *peer)
{
	peer->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (peer->fd < 0)
		fail(peer, strerror(errno));
	if (connect(peer->fd, &gate.sa, sizeof(gate.in)) && errno != EINPROGRESS)
		fail(peer, strerror(errno));
	peer->in_len = peer->out_len = peer->out_sent = peer->said = 0;
	peer->token = (uint64_t)number() << 32 | number();
	peer->state = CONNECTING;
	peer->since = now();
	watch(peer, EPOLL_CTL_ADD);
}

static bool is_honest(const struct peer *peer)
{
	return !roles_on || peer->role <= PINGS;
}

static void lost(struct peer *peer, const char *why)
{
	/* As knock.c does while nobody has answered. */
	if (is_honest(peer) && peer->state <= GREETING && ++peer->attempts < ATTEMPTS) {
		tried_again++;
		hang_up(peer);
		return;
	}
	if (is_honest(peer))
		fail(peer, why);
	ended++;
	hang_up(peer);
}

/* It has nothing to wait for: what it does next. */
static void act(struct peer *peer)
{
	if (!roles_on)
		return;
	switch (peer->role) {
	case HONEST:
	case HONEST_TOO:
	case HALF_FRAME:
		ask(peer);
		break;
	case NOISE:
		noise(peer);
		break;
	case NONSENSE:
		nonsense(peer);
		break;
	default:
		ping(peer);
		break;
	}
}

static void take_packet(struct peer *peer, const uint8_t *body, size_t len)
{
	struct ofi_packet packet;
	struct segment segment;
	struct cm_msg msg;

	if (ofi_packet_decode(body, len, &packet) < 0)
		fail(peer, "a packet that is none");
	body += OFI_PACKET_HEADER;
	len -= OFI_PACKET_HEADER;
	if (packet.type == SIM_PACKET_MAD) {
		if (cm_decode(body, len, &msg) < 0)
			fail(peer, "a MAD that is none");
		if (msg.attr_id != CM_REJ || msg.rej.remote_comm_id != peer->asks)
			return; /* the host speaks of what others said in its place before */
		if (msg.rej.reason != CM_REJ_INVALID_SERVICE_ID)
			fail(peer, "rejected for another reason than 8");
	} else if (packet.type != SIM_PACKET_STREAM || iw_segment_parse(body, len, &segment) < 0 ||
		   segment.type != SEG_RST || segment.dst_id != peer->asks) {
		return;
	}
	refusals++;
	if (peer->state == ASKING)
		ping(peer);
}

static void take(struct peer *peer, uint8_t type, const uint8_t *body, size_t len)
{
	static struct ofi_hello hello;
	unsigned int version;

	if (type == OFI_HELLO && peer->state == GREETING) {
		if (ofi_hello_decode(body, len, &hello, &version) < 0)
			fail(peer, "a HELLO that is none");
		sessions++;
		if (roles_on && !is_honest(peer))
			act(peer);
		else
			ask(peer);
	} else if (type == OFI_REFUSED) {
		if (is_honest(peer))
			printf("REFUSED %u\n", body[0]);
		lost(peer, "refused");
	} else if (type == OFI_PACKET) {
		take_packet(peer, body, len);
	} else if (type == OFI_PONG && peer->state == PINGING) {
		pongs++;
		num_there += !peer->there;
		peer->there = true;
		peer->state = IDLE;
		act(peer);
	}
}

static void hear(struct peer *peer)
{
	struct ofi_frame frame;
	ssize_t got = recv(peer->fd, peer->in + peer->in_len, sizeof(peer->in) - peer->in_len, 0);
	size_t at = 0;

	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0) {
		lost(peer, got ? strerror(errno) : "the host closed the connection");
		return;
	}
	peer->in_len += (size_t)got;
	while (peer->state != CLOSED && peer->in_len - at >= OFI_FRAME_HEADER) {
		if (ofi_frame_decode(peer->in + at, &frame) < 0)
			fail(peer, "a frame that is none");
		if (peer->in_len - at - OFI_FRAME_HEADER < frame.len)
			break;
		take(peer, frame.type, peer->in + at + OFI_FRAME_HEADER, frame.len);
		at += OFI_FRAME_HEADER + frame.len;
	}
	peer->in_len -= at;
	memmove(peer->in, peer->in + at, peer->in_len);
}

/* All of it is said. */
static void done(struct peer *peer)
{
	if (!roles_on || peer->state <= CONNECTING)
		return;
	if ((peer->role == HALF_HELLO && random() % 2) ||
	    (peer->role == HALF_FRAME && peer->state > GREETING)) {
		ended++;
		hang_up(peer);
	} else if (peer->role == DEAF && peer->state > GREETING && peer->said < DEAF_SENDS) {
		for (int i = 0; i < 256; i++)
			ping(peer);
	} else if (peer->role == NONSENSE && peer->state > GREETING) {
		nonsense(peer);
	} else if (peer->role == NOISE && peer->state > GREETING) {
		noise(peer);
	}
}

static void say(struct peer *peer)
{
	ssize_t sent;

	if (peer->state == CONNECTING) {
		put_hello(peer);
		peer->state = GREETING;
	}
	sent = send(peer->fd, peer->out + peer->out_sent, peer->out_len - peer->out_sent,
		    MSG_NOSIGNAL);
	if (sent < 0 && errno != EAGAIN) {
		lost(peer, strerror(errno));
		return;
	}
	if (sent > 0) {
		peer->out_sent += (size_t)sent;
		peer->said += (size_t)sent;
	}
	if (peer->out_sent < peer->out_len)
		return;
	peer->out_sent = peer->out_len = 0;
	done(peer);
}

static void turn(void)
{
	struct epoll_event events[256];
	int num = epoll_wait(epoll, events, 256, 10);

	for (int i = 0; i < num; i++) {
		struct peer *peer = events[i].data.ptr;

		if (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP))
			hear(peer);
		if (peer->state != CLOSED &&
		    (events[i].events & EPOLLOUT || peer->out_len > peer->out_sent))
			say(peer);
		if (peer->state != CLOSED)
			watch(peer, EPOLL_CTL_MOD);
	}
}

static void check_patience(void)
{
	for (unsigned int i = 0; i < num_peers; i++)
		if (is_honest(&peers[i]) && peers[i].state != IDLE && peers[i].state != CLOSED &&
		    now() > peers[i].since + PATIENCE)
			fail(&peers[i], "it waits too long");
}

/* ------------------------------------------------------------------------ */

static int print_rules(void)
{
	static uint8_t bytes[OFI_FRAME_HEADER + OFI_HELLO_MAX];
	static struct ofi_hello hello;
	struct ofi_frame frame;
	unsigned int version;
	const int on = 1;
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd;

	(void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, &gate.sa, sizeof(gate.in)) || listen(listener, 8)) {
		perror("bind");
		return 1;
	}
	alarm(PATIENCE);
	fprintf(stderr, "listening\n");
	fd = accept(listener, NULL, NULL);
	if (recv(fd, bytes, OFI_FRAME_HEADER, MSG_WAITALL) != OFI_FRAME_HEADER ||
	    ofi_frame_decode(bytes, &frame) < 0 ||
	    recv(fd, bytes, frame.len, MSG_WAITALL) != (ssize_t)frame.len ||
	    ofi_hello_decode(bytes, frame.len, &hello, &version) < 0)
		return 1;
	printf("%llu\n", (unsigned long long)hello.rules);
	return 0;
}

static void begin(void)
{
	for (unsigned int i = 0; i < num_peers; i++) {
		struct peer *peer = &peers[i];

		peer->host = i % num_hosts;
		peer->slot = (uint16_t)(i / num_hosts);
		peer->role = (enum role)(roles[i / num_hosts % strlen(roles)] - '0');
		call(peer);
	}
}

/* After up to a second: else the host has no port left. */
static void call_again(void)
{
	for (unsigned int i = 0; i < num_peers; i++)
		if (peers[i].state == CLOSED && now() > peers[i].since)
			call(&peers[i]);
}

static void end(void)
{
	for (unsigned int i = 0; i < num_peers; i++) {
		struct peer *peer = &peers[i];

		if (peer->state == CLOSED)
			continue;
		if (i % 2 && peer->out_len == peer->out_sent) {
			put_frame(peer, OFI_BYE, NULL, 0);
			(void)!send(peer->fd, peer->out, peer->out_len,
				    MSG_NOSIGNAL | MSG_DONTWAIT);
		}
		hang_up(peer);
	}
}

static int swarm(time_t seconds)
{
	struct timespec from, to;
	time_t until;

	peers = calloc(num_peers, sizeof(*peers));
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!peers || epoll < 0)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &from);
	begin();
	while (num_there < num_peers) {
		turn();
		check_patience();
		call_again();
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("all there: %u sessions, %lu refusals, %lu pongs, %lu tried again, %ld ms\n",
	       num_there, refusals, pongs, tried_again,
	       (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000);
	roles_on = true;
	for (unsigned int i = 0; i < num_peers; i++) {
		act(&peers[i]);
		watch(&peers[i], EPOLL_CTL_MOD);
	}
	until = now() + seconds;
	while (now() < until) {
		turn();
		check_patience();
		call_again();
	}
	printf("at the end: %lu sessions, %lu requests, %lu refusals, %lu pongs, %lu ended\n",
	       sessions, asked, refusals, pongs, ended);
	end();
	return 0;
}

int main(int argc, char **argv)
{
	uint8_t prefix_len;
	bool only_rules = argc == 4 && !strcmp(argv[1], "rules");
	char **at = argv + (only_rules ? 2 : 3);

	setvbuf(stdout, NULL, _IOLBF, 0);
	if ((!only_rules && argc != 8 && argc != 9) ||
	    sim_addr_parse(at[0], &gate, &prefix_len) < 0) {
		fprintf(stderr,
			"usage: ofi_swarm rules ADDRESS PORT\n"
			"       ofi_swarm TRANSPORT RULES ADDRESS PORT PEERS HOSTS SECONDS [ROLES]\n");
		return 2;
	}
	sim_addr_set_port(&gate, (uint16_t)atoi(at[1]));
	if (only_rules)
		return print_rules();
	transport = argv[1];
	rules = strtoull(argv[2], NULL, 10);
	if (argc == 9)
		roles = argv[8];
	if (strspn(roles, "01234567") != strlen(roles) || !*roles)
		return 2;
	num_peers = (unsigned int)atoi(at[2]);
	num_hosts = (unsigned int)atoi(at[3]);
	return swarm(atoi(at[4]));
}
