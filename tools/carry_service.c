/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * carry_service.c - for each address and port at which a program has clients, a port of ours at the
 * same address, to which these are connected.  They see the program's port in place of ours.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "carry.h"

/* Above those that Linux chooses: nobody else has them, if they can be helped. */
#define LAST_PORT 65535u
#define NUM_PORTS (LAST_PORT - 61000u + 1)

static struct carry_service *services;

socklen_t carry_address_len(const union turn_address *address)
{
	return address->sa.sa_family == AF_INET6 ? sizeof(address->in6) : sizeof(address->in);
}

/* Both families have it at the same place. */
uint16_t carry_port(const union turn_address *address)
{
	return ntohs(address->in.sin_port);
}

void carry_set_port(union turn_address *address, uint16_t port)
{
	address->in.sin_port = htons(port);
}

union turn_address carry_plain(const union turn_address *address)
{
	union turn_address plain = { .in = { .sin_family = AF_INET } };

	if (address->sa.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&address->in6.sin6_addr))
		return *address;
	memcpy(&plain.in.sin_addr, address->in6.sin6_addr.s6_addr + 12, 4);
	plain.in.sin_port = address->in6.sin6_port;
	return plain;
}

static bool is_same(const union turn_address *a, const union turn_address *b)
{
	if (a->sa.sa_family != b->sa.sa_family || carry_port(a) != carry_port(b))
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr);
}

/* To a port that is free, from the last one on; 0, or -1 and errno. */
static int bind_to_free(int fd, union turn_address address, uint16_t *ret_port)
{
	static uint32_t next;
	int r = -1;

	errno = EADDRINUSE;
	for (uint32_t i = 0; i < NUM_PORTS && r && errno == EADDRINUSE; i++) {
		*ret_port = (uint16_t)(LAST_PORT - next++ % NUM_PORTS);
		carry_set_port(&address, *ret_port);
		r = bind(fd, &address.sa, carry_address_len(&address));
	}
	return r;
}

/* A listener at the same address; or -1. */
static int listen_at(const union turn_address *address, uint16_t *ret_port)
{
	static const int on = 1;
	int fd = socket(address->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -1;
	r = bind_to_free(fd, *address, ret_port);
	/* What the kernel keeps of earlier clients (TIME_WAIT) need not take the port. */
	if (r && errno == EADDRINUSE && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		r = bind_to_free(fd, *address, ret_port);
	if (!r && !listen(fd, SOMAXCONN))
		return fd;
	close(fd);
	return -1;
}

struct carry_service *carry_service_for(const union turn_address *to)
{
	struct carry_service *service = services;

	while (service && !is_same(&service->to, to))
		service = service->next;
	if (service) {
		service->num_clients++;
		return service;
	}
	service = tool_realloc(NULL, 1, sizeof(*service));
	service->to = *to;
	service->num_clients = 1;
	service->listener = listen_at(to, &service->port);
	if (service->listener < 0) {
		free(service);
		return NULL;
	}
	carry_tells->port_is_for(service->port, carry_port(to));
	LL_PREPEND(services, service);
	return service;
}

void carry_leave_service(struct carry_service *service)
{
	if (!service || --service->num_clients)
		return;
	close(service->listener);
	carry_tells->port_is_for(service->port, 0);
	LL_DELETE(services, service);
	free(service);
}
