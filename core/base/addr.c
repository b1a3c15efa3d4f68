/* SPDX-License-Identifier: BSD-2-Clause */
/* base/addr.c - length, wildcard, port and text of socket addresses. */
#include "config.h"
#include "addr.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* Programs hand over addresses of any alignment, so members are copied out. */
union any_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_ib ib;
};

static size_t read_addr(const struct sockaddr *addr, union any_addr *ret_addr)
{
	size_t len = polycm_addr_len(addr);

	memset(ret_addr, 0, sizeof(*ret_addr));
	if (len)
		memcpy(ret_addr, addr, len);
	return len;
}

bool polycm_addr_wildcard(const struct sockaddr *addr)
{
	union any_addr a;

	if (!read_addr(addr, &a))
		return true;

	switch (a.sa.sa_family) {
	case AF_INET:
		return a.in.sin_addr.s_addr == 0;
	case AF_INET6:
		return IN6_IS_ADDR_UNSPECIFIED(&a.in6.sin6_addr);
	default:
		return ib_addr_any(&a.ib.sib_addr);
	}
}

uint16_t polycm_addr_port(const struct sockaddr *addr)
{
	union any_addr a;

	if (!read_addr(addr, &a))
		return 0;

	switch (a.sa.sa_family) {
	case AF_INET:
		return a.in.sin_port;
	case AF_INET6:
		return a.in6.sin6_port;
	default:
		return htobe16((uint16_t)be64toh(a.ib.sib_sid));
	}
}

void polycm_addr_set_port(struct sockaddr *addr, uint16_t port)
{
	union any_addr a;
	size_t len = read_addr(addr, &a);

	if (!len)
		return;

	switch (a.sa.sa_family) {
	case AF_INET:
		a.in.sin_port = port;
		break;
	case AF_INET6:
		a.in6.sin6_port = port;
		break;
	default:
		a.ib.sib_sid = htobe64((be64toh(a.ib.sib_sid) & ~UINT64_C(0xffff)) | be16toh(port));
		break;
	}
	memcpy(addr, &a, len);
}

const char *polycm_addr_text(const struct sockaddr *addr, char buf[static POLYCM_ADDR_TEXT])
{
	char text[INET6_ADDRSTRLEN] = "";
	union any_addr a;

	if (!read_addr(addr, &a)) {
		(void)snprintf(buf, POLYCM_ADDR_TEXT, "-");
		return buf;
	}

	switch (a.sa.sa_family) {
	case AF_INET:
		(void)inet_ntop(AF_INET, &a.in.sin_addr, text, sizeof(text));
		(void)snprintf(buf, POLYCM_ADDR_TEXT, "%s:%u", text, ntohs(a.in.sin_port));
		break;
	case AF_INET6:
		(void)inet_ntop(AF_INET6, &a.in6.sin6_addr, text, sizeof(text));
		(void)snprintf(buf, POLYCM_ADDR_TEXT, "[%s]:%u", text, ntohs(a.in6.sin6_port));
		break;
	default:
		(void)inet_ntop(AF_INET6, &a.ib.sib_addr, text, sizeof(text));
		(void)snprintf(buf, POLYCM_ADDR_TEXT, "gid %s service %016llx", text,
			       (unsigned long long)be64toh(a.ib.sib_sid));
		break;
	}
	return buf;
}
