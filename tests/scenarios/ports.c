/* SPDX-License-Identifier: BSD-2-Clause */
/* ports.c - scenarios of port numbers: which conflict, which are given, who sees them. */
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "scene.h"

/* --- Two ids on one port. --- */

struct claim {
	enum place place;
	bool reuse, only;
};

static void set_flag(struct rdma_cm_id *id, int option)
{
	int yes = 1;

	MUST(rdma_set_option(id, RDMA_OPTION_ID, option, &yes, sizeof(yes)));
}

static int bind_as(struct rdma_cm_id *id, const struct claim *claim)
{
	if (claim->reuse)
		set_flag(id, RDMA_OPTION_ID_REUSEADDR);
	if (claim->only)
		set_flag(id, RDMA_OPTION_ID_AFONLY);
	say("%s%s%s", address_text(at(claim->place, 0)), claim->reuse ? ", reuse" : "",
	    claim->only ? ", one family" : "");
	return rdma_bind_addr(id, at(claim->place, 0));
}

/* Each pair: one is bound, then the other; both gone before the next pair. */
static void pairs(const struct claim (*pair)[2], size_t num)
{
	struct rdma_cm_id *first, *second;

	open_channels();
	for (; num--; pair++) {
		first = make_id("first", server_events, RDMA_PS_TCP);
		second = make_id("second", server_events, RDMA_PS_TCP);
		TRY(bind_as(first, &(*pair)[0]));
		TRY(bind_as(second, &(*pair)[1]));
		MUST(rdma_destroy_id(first));
		MUST(rdma_destroy_id(second));
		forget_id(first);
		forget_id(second);
	}
}

static void port_conflicts(void)
{
	static const struct claim list[][2] = {
		{ { SERVER4, false, false }, { SERVER4, false, false } },
		{ { SERVER4, false, false }, { CLIENT4, false, false } },
		{ { SERVER4, false, false }, { ANY4, false, false } },
		{ { ANY4, false, false }, { SERVER4, false, false } },
		{ { ANY4, false, false }, { ANY4, false, false } },
	};

	pairs(list, ARRAY_LEN(list));
}

static void port_conflicts_reuse(void)
{
	static const struct claim list[][2] = {
		{ { SERVER4, true, false }, { SERVER4, true, false } },
		{ { SERVER4, true, false }, { SERVER4, false, false } },
		{ { SERVER4, false, false }, { SERVER4, true, false } },
		{ { SERVER4, true, false }, { ANY4, true, false } },
		{ { ANY4, true, false }, { SERVER4, false, false } },
		{ { ANY4, true, false }, { ANY4, true, false } },
	};

	pairs(list, ARRAY_LEN(list));
}

static void port_conflicts_families(void)
{
	static const struct claim list[][2] = {
		{ { ANY4, false, false }, { ANY6, false, false } },
		{ { ANY6, false, false }, { ANY4, false, false } },
		{ { ANY4, false, false }, { ANY6, false, true } },
		{ { ANY4, false, true }, { ANY6, false, true } },
		{ { SERVER4, false, false }, { SERVER6, false, false } },
		{ { SERVER6, false, false }, { ANY6, false, false } },
		{ { SERVER4, false, false }, { ANY6, false, false } },
		{ { SERVER6, false, false }, { SERVER6, false, false } },
	};

	pairs(list, ARRAY_LEN(list));
}

static void port_listen_reuse(void)
{
	struct rdma_cm_id *other;

	open_scene(RDMA_PS_TCP);
	other = make_id("other", server_events, RDMA_PS_TCP);
	set_flag(server, RDMA_OPTION_ID_REUSEADDR);
	set_flag(other, RDMA_OPTION_ID_REUSEADDR);
	TRY(rdma_bind_addr(server, at(SERVER4, 0)));
	TRY(rdma_bind_addr(other, at(SERVER4, 0)));
	TRY(rdma_listen(server, 0));
	say("the other is still bound");
	TRY(rdma_destroy_id(other));
	forget_id(other);
	TRY(rdma_listen(server, 0));
	other = make_id("third", server_events, RDMA_PS_TCP);
	set_flag(other, RDMA_OPTION_ID_REUSEADDR);
	TRY(rdma_bind_addr(other, at(SERVER4, 0)));
}

/* --- Port spaces. --- */

static void port_spaces(void)
{
	static const enum rdma_port_space spaces[] = { RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB };
	struct rdma_cm_id *one;
	size_t i;

	open_channels();
	for (i = 0; i < ARRAY_LEN(spaces); i++) {
		one = make_id("one", server_events, spaces[i]);
		say("space 0x%x", (unsigned int)spaces[i]);
		TRY(rdma_bind_addr(one, at(SERVER4, 0)));
		show_addresses(one);
		TRY(rdma_listen(one, 0));
	}
}

/* --- Low ports. --- */

static void port_low(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(rdma_bind_addr(server, at(SERVER4, REAL(79))));
	show_addresses(server);
}

/* Before the channel is opened: the kernel takes commands only from the one who has opened it. */
static void lose_privilege(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	MUST(syscall(SYS_capget, &header, data));
	data[0].effective &= ~(1U << CAP_NET_BIND_SERVICE);
	MUST(syscall(SYS_capset, &header, data));
}

static void port_low_without_privilege(void)
{
	lose_privilege();
	open_scene(RDMA_PS_TCP);
	TRY(rdma_bind_addr(server, at(SERVER4, REAL(79))));
	TRY(rdma_bind_addr(server, at(ANY4, REAL(1023))));
	TRY(rdma_bind_addr(server, at(ANY4, 0)));
}

/* --- Ports given. --- */

static void port_zero(void)
{
	struct rdma_cm_id *other;

	open_scene(RDMA_PS_TCP);
	say("port %u before", ntohs(rdma_get_src_port(server)));
	TRY(rdma_bind_addr(server, at(SERVER4, ANY_PORT)));
	show_addresses(server);
	TRY(rdma_listen(server, 0));
	show_addresses(server);
	other = make_id("other", server_events, RDMA_PS_TCP);
	TRY(rdma_bind_addr(other, at(SERVER4, ANY_PORT)));
	say("%s", rdma_get_src_port(server) == rdma_get_src_port(other) ? "the same" : "another");
	other = make_id("unbound", server_events, RDMA_PS_TCP);
	TRY(rdma_listen(other, 0));
	show_addresses(other);
	say("port %s", rdma_get_src_port(other) ? "yes" : "no");
}

static void port_of_client(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	TRY(rdma_bind_addr(client, at(CLIENT4, 3)));
	TRY(rdma_resolve_addr(client, NULL, at(SERVER4, 0), 5000));
	expect(client_events, ADDR_RESOLVED);
	show_addresses(client);
	TRY(rdma_resolve_route(client, 5000));
	expect(client_events, ROUTE_RESOLVED);
	make_qp(client);
	TRY(rdma_connect(client, &with));
	expect(server_events, CONNECT_REQUEST);
	show_addresses(child);
	say("ports %s", rdma_get_src_port(child) == rdma_get_dst_port(client) &&
				       rdma_get_dst_port(child) == rdma_get_src_port(client)
			       ? "agree" : "disagree");
	say("peer %s, local %s", address_text(rdma_get_peer_addr(child)),
	    address_text(rdma_get_local_addr(child)));
}

/* Two clients from one port, to two ports of the server. */
static void port_of_two_clients(void)
{
	struct rdma_cm_id *other;

	open_scene(RDMA_PS_TCP);
	other = make_id("other", client_events, RDMA_PS_TCP);
	TRY(rdma_resolve_addr(client, at(CLIENT4, 3), at(SERVER4, 0), 5000));
	next(client_events);
	TRY(rdma_resolve_addr(other, at(CLIENT4, 3), at(SERVER4, 1), 5000));
	rest(client_events);
	show_addresses(other);
	TRY(rdma_resolve_addr(other, at(CLIENT4, 4), at(SERVER4, 1), 5000));
	next(client_events);
	show_addresses(other);
}

static void port_free_again(void)
{
	struct rdma_cm_id *other;

	open_scene(RDMA_PS_TCP);
	established();
	TRY(rdma_destroy_id(server));
	forget_id(server);
	say("the listener is gone, its connection is there");
	other = make_id("other", server_events, RDMA_PS_TCP);
	TRY(rdma_bind_addr(other, at(SERVER4, 0)));
	TRY(rdma_listen(other, 0));
	show_addresses(other);
}

const struct scenario ports_scenarios[] = {
	{ "port-conflicts", port_conflicts, "two ids on one port", 0 },
	{ "port-conflicts-reuse", port_conflicts_reuse, "two ids on one port, REUSEADDR", 0 },
	{ "port-conflicts-families", port_conflicts_families, "IPv4 and IPv6 on one port", 0 },
	{ "port-listen-reuse", port_listen_reuse, "REUSEADDR and listening", 0 },
	{ "port-spaces", port_spaces, "one port in several port spaces", 0 },
	{ "port-low", port_low, "below 1024", ALONE },
	{ "port-low-without-privilege", port_low_without_privilege, "below 1024, not allowed to", 0 },
	{ "port-zero", port_zero, "ports that are given", 0 },
	{ "port-of-client", port_of_client, "a client's chosen port, seen by both", 0 },
	{ "port-of-two-clients", port_of_two_clients, "two clients want one port", 0 },
	{ "port-free-again", port_free_again, "a listener's port after its end", 0 },
	{ NULL, NULL, NULL, 0 },
};
