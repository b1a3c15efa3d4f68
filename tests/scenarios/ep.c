/* SPDX-License-Identifier: BSD-2-Clause */
/* ep.c - scenarios of rdma_getaddrinfo() and of endpoints, rdma_create_ep(). */
#include "scene.h"

/* --- rdma_getaddrinfo(). --- */

static const char *address_or_none(const struct sockaddr *address)
{
	return address ? address_text(address) : "none";
}

static void show_info(const struct rdma_addrinfo *info)
{
	unsigned int num = 0;

	for (; info; info = info->ai_next, num++) {
		say("  flags 0x%x family %d qp type %d port space 0x%x", (unsigned int)info->ai_flags,
		    info->ai_family, info->ai_qp_type, (unsigned int)info->ai_port_space);
		say("  from %s (%u) to %s (%u)", address_or_none(info->ai_src_addr), info->ai_src_len,
		    address_or_none(info->ai_dst_addr), info->ai_dst_len);
		say("  names %s %s, route %zu connect %zu bytes",
		    info->ai_src_canonname ? info->ai_src_canonname : "-",
		    info->ai_dst_canonname ? info->ai_dst_canonname : "-", info->ai_route_len,
		    info->ai_connect_len);
	}
	say("  %u result%s", num, num == 1 ? "" : "s");
}

static void look_up(const char *node, const char *port, const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *info = NULL;

	if (TRY(rdma_getaddrinfo(node, port, hints, &info)))
		return;
	show_info(info);
	rdma_freeaddrinfo(info);
}

static void ep_info_families(void)
{
	struct rdma_addrinfo hints = { 0 };

	say("IPv4, no hints");
	look_up(host(SERVER4), service(0), NULL);
	say("IPv4, no service");
	look_up(host(SERVER4), NULL, NULL);
	say("IPv6, no hints");
	look_up(host(SERVER6), service(0), NULL);
	say("IPv6, hints of nothing");
	look_up(host(SERVER6), service(0), &hints);
	say("IPv4, wanted IPv6");
	hints.ai_family = AF_INET6;
	look_up(host(SERVER4), service(0), &hints);
	say("IPv6, wanted IPv4");
	hints.ai_family = AF_INET;
	look_up(host(SERVER6), service(0), &hints);
}

static void look_up_kind(int qp_type, int port_space)
{
	struct rdma_addrinfo hints = { .ai_qp_type = qp_type, .ai_port_space = port_space };

	say("qp type %d, port space 0x%x", qp_type, (unsigned int)port_space);
	look_up(host(SERVER4), service(0), &hints);
}

static void ep_info_kinds(void)
{
	look_up_kind(0, RDMA_PS_TCP);
	look_up_kind(0, RDMA_PS_UDP);
	look_up_kind(0, RDMA_PS_IB);
	look_up_kind(0, RDMA_PS_IPOIB);
	look_up_kind(IBV_QPT_RC, 0);
	look_up_kind(IBV_QPT_UD, 0);
	look_up_kind(IBV_QPT_UC, RDMA_PS_IB);
	look_up_kind(IBV_QPT_UD, RDMA_PS_IB);
	look_up_kind(IBV_QPT_UD, RDMA_PS_TCP);
	look_up_kind(IBV_QPT_RC, RDMA_PS_UDP);
	look_up_kind(100, 0);
	look_up_kind(0, 0x999);
}

static void look_up_flags(const char *node, const char *port, int flags, int family)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_family = family };

	look_up(node, port, &hints);
}

/* The family of InfiniBand's own addresses, which no name or number has. */
static void ep_info_family_ib(void)
{
	struct rdma_addrinfo hints = { .ai_family = AF_IB, .ai_port_space = RDMA_PS_TCP };

	look_up(host(SERVER4), service(0), &hints);
	look_up(host(SERVER6), service(0), &hints);
	hints.ai_flags = RAI_NUMERICHOST;
	look_up(host(SERVER4), service(0), &hints);
	hints.ai_flags = RAI_FAMILY | RAI_PASSIVE;
	look_up(host(SERVER4), service(0), &hints);
	look_up(NULL, service(0), &hints);
}

static void ep_info_flags(void)
{
	say("passive, no node");
	look_up_flags(NULL, service(0), RAI_PASSIVE, 0);
	say("passive, no node, IPv6");
	look_up_flags(NULL, service(0), RAI_PASSIVE, AF_INET6);
	say("passive");
	look_up_flags(host(SERVER4), service(0), RAI_PASSIVE, 0);
	say("numeric");
	look_up_flags(host(SERVER4), service(0), RAI_NUMERICHOST, 0);
	say("numeric, a name");
	look_up_flags("localhost.invalid", service(0), RAI_NUMERICHOST, 0);
	say("no route");
	look_up_flags(host(SERVER4), service(0), RAI_NOROUTE, 0);
	say("family");
	look_up_flags(host(SERVER4), service(0), RAI_FAMILY, AF_INET);
	say("unknown flags");
	look_up_flags(host(SERVER4), service(0), 0x1000, 0);
	say("an unknown family");
	look_up_flags(host(SERVER4), service(0), 0, 77);
	say("all of them, passive");
	look_up_flags(host(SERVER4), service(0),
		      RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY, AF_INET);
	say("a service that is none");
	look_up_flags(host(SERVER4), "no-such-service", 0, 0);
	say("a GID");
	look_up_flags(host(SERVER6), service(0), RAI_NUMERICHOST | RAI_FAMILY, AF_IB);
}

static void ep_info_nulls(void)
{
	struct rdma_addrinfo hints = { 0 };

	look_up(NULL, NULL, NULL);
	say("hints alone");
	look_up(NULL, NULL, &hints);
	say("passive hints alone");
	hints.ai_flags = RAI_PASSIVE;
	look_up(NULL, NULL, &hints);
	say("hints of all flags alone");
	hints.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY;
	look_up(NULL, NULL, &hints);
	say("service alone");
	look_up(NULL, service(0), NULL);
	TRY_CRASH(rdma_getaddrinfo(host(SERVER4), service(0), NULL, NULL));
	say("to free nothing");
	rdma_freeaddrinfo(NULL);
}

static void ep_info_addresses_in_hints(void)
{
	struct rdma_addrinfo hints = {
		.ai_src_addr = at(CLIENT4, 3),
		.ai_src_len = sizeof(struct sockaddr_in),
		.ai_port_space = RDMA_PS_TCP,
	};

	say("a source");
	look_up(host(SERVER4), service(0), &hints);
	say("a source and a destination, no node");
	hints.ai_dst_addr = at(SERVER4, 0);
	hints.ai_dst_len = sizeof(struct sockaddr_in);
	look_up(NULL, NULL, &hints);
	say("both and a node");
	look_up(host(SERVER4), service(1), &hints);
	say("both, passive");
	hints.ai_flags = RAI_PASSIVE;
	look_up(host(SERVER4), service(1), &hints);
}

/* --- Endpoints. --- */

static struct rdma_addrinfo *find(enum place place, int flags, int port_space)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = port_space };
	struct rdma_addrinfo *info;

	MUST(rdma_getaddrinfo(host(place), service(0), &hints, &info));
	return info;
}

/* ... from the client's address. */
static struct rdma_addrinfo *find_from_client(int port_space)
{
	struct rdma_addrinfo hints = {
		.ai_port_space = port_space,
		.ai_src_addr = at(CLIENT4, ANY_PORT),
		.ai_src_len = sizeof(struct sockaddr_in),
	};
	struct rdma_addrinfo *info;

	MUST(rdma_getaddrinfo(host(SERVER4), service(0), &hints, &info));
	return info;
}

static struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
}

static void show_ep(struct rdma_cm_id *id)
{
	show_addresses(id);
	show_qp(id);
	say("ps 0x%x qp type %d, pd %s, event %s", id->ps, id->qp_type, id->pd ? "yes" : "no",
	    id->event ? "yes" : "no");
}

static void accept_one(void)
{
	struct rdma_conn_param with = param();

	expect(server_events, CONNECT_REQUEST);
	make_qp(child);
	MUST(rdma_accept(child, &with));
	next(server_events);
	next(server_events);
	TRY(rdma_disconnect(child));
}

static void ep_active(void)
{
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_addrinfo *info;

	open_channels();
	server = make_id("server", server_events, RDMA_PS_TCP);
	server_listens(0);
	info = find_from_client(RDMA_PS_TCP);
	TRY(rdma_create_ep(&client, info, NULL, &attr));
	name_id("client", client);
	show_ep(client);
	say("qp type of the attributes %d", attr.qp_type);
	beside(accept_one);
	TRY(rdma_connect(client, NULL));
	TRY(rdma_disconnect(client));
	join();
	forget_id(client);
	rdma_destroy_ep(client);
	rdma_freeaddrinfo(info);
}

static void ep_active_without_qp(void)
{
	struct rdma_addrinfo *info = find_from_client(RDMA_PS_TCP);

	open_channels();
	TRY(rdma_create_ep(&client, info, NULL, NULL));
	name_id("client", client);
	show_ep(client);
	TRY(rdma_connect(client, NULL));
	rdma_freeaddrinfo(info);
}

static void take_established(void)
{
	next(client_events);
}

static void ep_passive(void)
{
	struct rdma_addrinfo *info = find(SERVER4, RAI_PASSIVE, RDMA_PS_TCP);
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_conn_param with = param();

	open_channels();
	TRY(rdma_create_ep(&server, info, NULL, &attr));
	name_id("server", server);
	show_ep(server);
	TRY(rdma_listen(server, 0));
	client = make_id("client", client_events, RDMA_PS_TCP);
	client_resolves();
	make_qp(client);
	MUST(rdma_connect(client, &with));
	TRY(rdma_get_request(server, &child));
	name_id("child", child);
	show_ep(child);
	beside(take_established);
	TRY(rdma_accept(child, &with));
	join();
	forget_id(child);
	rdma_destroy_ep(child);
	next(client_events);
	forget_id(server);
	rdma_destroy_ep(server);
	rdma_freeaddrinfo(info);
}

static void ep_passive_in_use(void)
{
	struct rdma_addrinfo *info = find(SERVER4, RAI_PASSIVE, RDMA_PS_TCP);
	struct rdma_cm_id *second = NULL;

	open_channels();
	TRY(rdma_create_ep(&server, info, NULL, NULL));
	name_id("server", server);
	TRY(rdma_create_ep(&second, info, NULL, NULL));
	say("an id: %s", second ? "yes" : "no");
	rdma_freeaddrinfo(info);
}

static void ep_ud(void)
{
	struct rdma_addrinfo *info = find_from_client(RDMA_PS_UDP);
	struct ibv_qp_init_attr attr = qp_attr();

	open_channels();
	if (!TRY(rdma_create_ep(&client, info, NULL, &attr))) {
		name_id("client", client);
		show_ep(client);
		TRY(rdma_connect(client, NULL));
		show_event(client_events, client->event);
	}
	rdma_freeaddrinfo(info);
}

static void try_ep(struct rdma_addrinfo *info)
{
	struct rdma_cm_id *id = NULL;

	TRY_CRASH(rdma_create_ep(&id, info, NULL, NULL));
	say("an id: %s", id ? "yes" : "no");
	rdma_freeaddrinfo(info);
}

static void ep_errors(void)
{
	struct rdma_addrinfo *info;

	say("no route");
	try_ep(find(UNROUTABLE4, 0, RDMA_PS_TCP));
	say("nobody there");
	try_ep(find(NOBODY4, 0, RDMA_PS_TCP));
	say("passive, not of this machine");
	try_ep(find(ELSEWHERE4, RAI_PASSIVE, RDMA_PS_TCP));
	say("no port space");
	info = find(SERVER4, RAI_PASSIVE, RDMA_PS_TCP);
	info->ai_port_space = 0;
	try_ep(info);
	say("no addresses");
	info = find(SERVER4, RAI_PASSIVE, RDMA_PS_TCP);
	info->ai_flags = 0;
	try_ep(info);
	say("nothing");
	try_ep(NULL);
}

const struct scenario ep_scenarios[] = {
	{ "ep-info-families", ep_info_families, "rdma_getaddrinfo(): IPv4, IPv6", 0 },
	{ "ep-info-kinds", ep_info_kinds, "rdma_getaddrinfo(): kinds of QPs, port spaces", 0 },
	{ "ep-info-family-ib", ep_info_family_ib, "rdma_getaddrinfo(): AF_IB in the hints", 0 },
	{ "ep-info-flags", ep_info_flags, "rdma_getaddrinfo(): flags, what is unknown", 0 },
	{ "ep-info-nulls", ep_info_nulls, "rdma_getaddrinfo(): NULLs", 0 },
	{ "ep-info-addresses", ep_info_addresses_in_hints,
	  "rdma_getaddrinfo(): addresses in the hints", 0 },
	{ "ep-active", ep_active, "rdma_create_ep(), connected", 0 },
	{ "ep-active-without-qp", ep_active_without_qp, "rdma_create_ep() without a QP", 0 },
	{ "ep-passive", ep_passive, "rdma_create_ep() to listen; QPs of its requests", 0 },
	{ "ep-passive-in-use", ep_passive_in_use, "two of the same address", 0 },
	{ "ep-ud", ep_ud, "datagrams", 0 },
	{ "ep-errors", ep_errors, "rdma_create_ep() of what cannot be", 0 },
	{ NULL, NULL, NULL, 0 },
};
