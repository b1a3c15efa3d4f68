/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scene_places.c - owns names: of addresses, ports and errno values.  The
 * addresses come from the environment, SCENARIO_CLIENT4 and so on; so do the
 * link-local ones of an interface that only the simulator knows, as
 * SCENARIO_CLIENT6_LINK ("fe80::1%2", its number).
 */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "scene_internal.h"

static const struct {
	const char *name;	/* in the trace */
	const char *variable;	/* where the address comes from, or */
	const char *address;	/* the same everywhere */
} places[NUM_PLACES] = {
	[CLIENT4] = { "client4", "SCENARIO_CLIENT4", NULL },
	[SERVER4] = { "server4", "SCENARIO_SERVER4", NULL },
	[CLIENT6] = { "client6", "SCENARIO_CLIENT6", NULL },
	[SERVER6] = { "server6", "SCENARIO_SERVER6", NULL },
	[NOBODY4] = { "nobody4", "SCENARIO_NOBODY4", NULL },
	[NOBODY6] = { "nobody6", "SCENARIO_NOBODY6", NULL },
	[UNROUTABLE4] = { "unroutable4", "SCENARIO_UNROUTABLE4", NULL },
	[NODEVICE4] = { "nodevice4", "SCENARIO_NODEVICE4", NULL },
	[ANY4] = { "any4", NULL, "0.0.0.0" },
	[ANY6] = { "any6", NULL, "::" },
	[LOOPBACK4] = { "loopback4", NULL, "127.0.0.1" },
	[LOOPBACK6] = { "loopback6", NULL, "::1" },
	[ELSEWHERE4] = { "elsewhere4", NULL, "192.0.2.1" },
	[MULTICAST4] = { "multicast4", NULL, "239.1.2.3" },
	[MULTICAST6] = { "multicast6", NULL, "ff15::101:203" },
	[SECOND4] = { "second4", "SCENARIO_SECOND4", NULL },
	[SECOND6] = { "second6", "SCENARIO_SECOND6", NULL },
	[OTHER4] = { "other4", "SCENARIO_OTHER4", NULL },
	[OTHER6] = { "other6", "SCENARIO_OTHER6", NULL },
	[OTHER_CLIENT4] = { "other-client4", "SCENARIO_OTHER_CLIENT4", NULL },
	[OTHER_SERVER4] = { "other-server4", "SCENARIO_OTHER_SERVER4", NULL },
	[OTHER_CLIENT6] = { "other-client6", "SCENARIO_OTHER_CLIENT6", NULL },
	[OTHER_SERVER6] = { "other-server6", "SCENARIO_OTHER_SERVER6", NULL },
};

static uint16_t first_port;

/* QP numbers that no device here gives, different ones in each scenario: peers remember them. */
#define OWN_QP_NUMS 0x400000u

void places_begin(uint16_t port)
{
	first_port = port;
}

uint32_t own_qp_num(unsigned int number)
{
	return OWN_QP_NUMS | (uint32_t)first_port << 4 | (number & 15);
}

/* -1: none of ours. */
int own_number(uint32_t qp_num)
{
	return (qp_num ^ own_qp_num(0)) < 16 ? (int)(qp_num & 15) : -1;
}

const char *host(enum place place)
{
	return places[place].variable ? getenv(places[place].variable) : places[place].address;
}

bool have(enum place place)
{
	return host(place) && *host(place);
}

bool known_link_local(enum place place, struct sockaddr_in6 *ret_address)
{
	char variable[64], text[INET6_ADDRSTRLEN];
	const char *given, *scope;

	snprintf(variable, sizeof(variable), "%s_LINK", places[place].variable);
	given = getenv(variable);
	scope = given ? strchr(given, '%') : NULL;
	if (!scope || (size_t)(scope - given) >= sizeof(text))
		return false;
	memcpy(text, given, (size_t)(scope - given));
	text[scope - given] = '\0';
	memset(ret_address, 0, sizeof(*ret_address));
	ret_address->sin6_family = AF_INET6;
	ret_address->sin6_scope_id = (uint32_t)atoi(scope + 1);
	return inet_pton(AF_INET6, text, &ret_address->sin6_addr) == 1;
}

static uint16_t port_number(int port)
{
	if (port == ANY_PORT)
		return 0;
	return (uint16_t)(port >= REAL(0) ? port - REAL(0) : first_port + port);
}

const char *service(int port)
{
	static char text[4][8];
	static unsigned int turn;
	char *buffer = text[turn++ % ARRAY_LEN(text)];

	snprintf(buffer, sizeof(text[0]), "%u", port_number(port));
	return buffer;
}

struct sockaddr *at(enum place place, int port)
{
	static _Thread_local struct sockaddr_storage buffers[8];
	static _Thread_local unsigned int turn;
	struct sockaddr_storage *buffer = &buffers[turn++ % ARRAY_LEN(buffers)];
	struct sockaddr_in *in = (struct sockaddr_in *)buffer;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)buffer;

	memset(buffer, 0, sizeof(*buffer));
	if (!have(place))
		end_skipped(places[place].variable);
	if (inet_pton(AF_INET, host(place), &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port_number(port));
	} else if (inet_pton(AF_INET6, host(place), &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port_number(port));
	} else {
		end_failed(places[place].variable);
	}
	return (struct sockaddr *)buffer;
}

/* Which place has this address, 4 or 16 bytes?  -1: none. */
static int place_of(int family, const void *address)
{
	size_t len = family == AF_INET ? 4 : 16;
	unsigned char bytes[16];
	int place;

	for (place = 0; place < NUM_PLACES; place++) {
		if (have((enum place)place) && inet_pton(family, host((enum place)place), bytes) == 1 &&
		    !memcmp(bytes, address, len))
			return place;
	}
	return -1;
}

static const char *port_text(uint16_t port)
{
	static char text[4][16];
	static unsigned int turn;
	char *buffer = text[turn++ % ARRAY_LEN(text)];

	if (port >= first_port && port < first_port + SCENE_PORTS)
		snprintf(buffer, sizeof(text[0]), "port%u", port - first_port);
	else if (port < 1024)
		snprintf(buffer, sizeof(text[0]), "%u", port);
	else
		snprintf(buffer, sizeof(text[0]), "ephemeral");
	return buffer;
}

const char *address_text(const struct sockaddr *address)
{
	static char text[4][128];
	static unsigned int turn;
	char *buffer = text[turn++ % ARRAY_LEN(text)], number[INET6_ADDRSTRLEN];
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;
	const void *bytes = &in->sin_addr;
	uint16_t port = in->sin_port;
	int place;

	if (address->sa_family == AF_INET6) {
		bytes = &in6->sin6_addr;
		port = in6->sin6_port;
	} else if (address->sa_family != AF_INET) {
		snprintf(buffer, sizeof(text[0]), "family %u", address->sa_family);
		return buffer;
	}
	place = place_of(address->sa_family, bytes);
	snprintf(buffer, sizeof(text[0]), "%s:%s",
		 place >= 0 ? places[place].name
			    : inet_ntop(address->sa_family, bytes, number, sizeof(number)),
		 port_text(ntohs(port)));
	return buffer;
}

const char *gid_text(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff }, zero[16];
	static const uint8_t mapped_v1[12] = { 0xff, 0x0e, [10] = 0xff, 0xff };
	int place = -1;

	if (!memcmp(gid->raw, zero, sizeof(zero)))
		return "zero";
	if (!memcmp(gid->raw, mapped, sizeof(mapped)) ||
	    !memcmp(gid->raw, mapped_v1, sizeof(mapped_v1)))
		place = place_of(AF_INET, gid->raw + 12);
	if (place < 0)
		place = place_of(AF_INET6, gid->raw);
	if (place >= 0)
		return places[place].name;
	return gid->raw[0] == 0xfe && gid->raw[1] == 0x80 ? "linklocal" : "other";
}

const char *errno_text(int error)
{
	static char text[4][16];
	static unsigned int turn;
	const char *name = strerrorname_np(error);
	char *buffer;

	if (name)
		return name;
	buffer = text[turn++ % ARRAY_LEN(text)];
	snprintf(buffer, sizeof(text[0]), "%d", error);
	return buffer;
}
