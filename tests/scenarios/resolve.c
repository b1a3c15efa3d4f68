/* SPDX-License-Identifier: BSD-2-Clause */
/* resolve.c - scenarios of unusual addresses: destinations, sources and what ids are bound to. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "scene.h"

static struct sockaddr *numeric(const char *text, int port)
{
	static struct sockaddr_storage buffers[8];
	static unsigned int turn;
	struct sockaddr_storage *buffer = &buffers[turn++ % ARRAY_LEN(buffers)];
	struct sockaddr_in *in = (struct sockaddr_in *)buffer;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)buffer;

	memset(buffer, 0, sizeof(*buffer));
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)port);
	} else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons((uint16_t)port);
	} else {
		end_failed(text);
	}
	return (struct sockaddr *)buffer;
}

static void fresh(enum rdma_port_space ps)
{
	if (client) {
		rdma_destroy_id(client);
		forget_id(client);
	}
	client = make_id("client", client_events, ps);
}

static void go(struct sockaddr *source, struct sockaddr *to)
{
	if (!TRY(rdma_resolve_addr(client, source, to, 1000)))
		next(client_events);
	show_addresses(client);
}

static void destinations(enum rdma_port_space ps, const char *const *list, size_t num)
{
	size_t i;

	open_channels();
	for (i = 0; i < num; i++) {
		say("-- %s", list[i]);
		fresh(ps);
		go(at(CLIENT4, ANY_PORT), numeric(list[i], 7000));
	}
}

static void resolve_special(void)
{
	static const char *const list[] = {"255.255.255.255", "240.0.0.1", "0.0.0.5",
					   "127.0.0.2",	      "239.1.2.3", "224.0.0.1"};

	destinations(RDMA_PS_TCP, list, ARRAY_LEN(list));
}

static void resolve_subnet_broadcast(void)
{
	struct sockaddr *to;

	open_channels();
	fresh(RDMA_PS_TCP);
	to = at(SERVER4, 0);
	((struct sockaddr_in *)to)->sin_addr.s_addr |= htonl(255);
	if (!TRY(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), to, 1000)))
		next(client_events);
	fresh(RDMA_PS_TCP);
	to = at(SERVER4, 0);
	((struct sockaddr_in *)to)->sin_addr.s_addr &= htonl(0xffffff00);
	if (!TRY(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), to, 1000)))
		next(client_events);
}

/* --- Sources. --- */

static void source_bound(void)
{
	open_scene(RDMA_PS_TCP);
	MUST(rdma_bind_addr(client, at(CLIENT4, 3)));
	go(at(CLIENT4, 4), at(SERVER4, 0));
	fresh(RDMA_PS_TCP);
	MUST(rdma_bind_addr(client, at(CLIENT4, 5)));
	go(at(SERVER4, 6), at(SERVER4, 0));
	fresh(RDMA_PS_TCP);
	MUST(rdma_bind_addr(client, at(CLIENT4, 7)));
	go(at(ELSEWHERE4, 6), at(SERVER4, 0));
	fresh(RDMA_PS_TCP);
	MUST(rdma_bind_addr(client, at(CLIENT4, 8)));
	go(NULL, at(SERVER6, 0));
	go(NULL, at(SERVER4, 0));
}

static void resolve_after_failure(void)
{
	open_scene(RDMA_PS_TCP);
	go(at(CLIENT4, 3), at(UNROUTABLE4, 0));
	go(at(CLIENT4, 4), at(NOBODY4, 0));
	go(at(CLIENT4, 5), at(SERVER4, 0));
	go(NULL, at(SERVER4, 0));
}

/* An address is no destination, but the id's own device is one. */
static void resolve_any_bound(void)
{
	open_channels();
	fresh(RDMA_PS_TCP);
	go(at(SERVER4, ANY_PORT), at(ANY4, 1));
	TRY(rdma_resolve_route(client, 1000));
	next(client_events);
	show_route(client);
	fresh(RDMA_PS_TCP);
	go(at(SERVER6, ANY_PORT), at(ANY6, 1));
	TRY(rdma_resolve_route(client, 1000));
	next(client_events);
	show_route(client);
}

/* An address of this machine, looked for on another's link. */
static void resolve_nodevice_bound(void)
{
	open_channels();
	fresh(RDMA_PS_TCP);
	go(at(SERVER4, ANY_PORT), at(NODEVICE4, 0));
	go(NULL, at(SERVER4, 0));
	fresh(RDMA_PS_TCP);
	go(NULL, at(NODEVICE4, 0));
}

const struct scenario resolve_scenarios[] = {
	{"resolve-special", resolve_special, "broadcast, multicast, reserved addresses", 0},
	{"resolve-subnet-broadcast", resolve_subnet_broadcast,
	 "the subnet's broadcast and its number", 0},
	{"resolve-after-failure", resolve_after_failure, "again, from other sources", 0},
	{"resolve-any-bound", resolve_any_bound, "a wildcard, from an address", 0},
	{"resolve-nodevice-bound", resolve_nodevice_bound,
	 "an own address without a device, from another", 0},
	{"source-bound", source_bound, "bound, and another source", 0},
	{NULL, NULL, NULL, 0},
};
