/* SPDX-License-Identifier: BSD-2-Clause */
/* sockets.c - scenarios of listeners in several port spaces: over iWARP all are TCP sockets. */
#include "scene.h"

struct claim {
	enum place place;
	enum rdma_port_space ps;
	bool reuse, only;
};

static void set_flag(struct rdma_cm_id *id, int option)
{
	int yes = 1;

	MUST(rdma_set_option(id, RDMA_OPTION_ID, option, &yes, sizeof(yes)));
}

/* Bound and listening on port 0; the first failure is shown. */
static void claim(struct rdma_cm_id *id, const struct claim *claim)
{
	if (claim->reuse)
		set_flag(id, RDMA_OPTION_ID_REUSEADDR);
	if (claim->only)
		set_flag(id, RDMA_OPTION_ID_AFONLY);
	say("%s, space 0x%x%s%s", address_text(at(claim->place, 0)), (unsigned int)claim->ps,
	    claim->reuse ? ", reuse" : "", claim->only ? ", one family" : "");
	if (!TRY(rdma_bind_addr(id, at(claim->place, 0))))
		TRY(rdma_listen(id, 0));
}

/* Each pair: one listens, then the other; both gone before the next pair. */
static void pair(const struct claim *one, const struct claim *two)
{
	struct rdma_cm_id *first = make_id("first", server_events, one->ps);
	struct rdma_cm_id *second = make_id("second", server_events, two->ps);

	say("--");
	claim(first, one);
	claim(second, two);
	MUST(rdma_destroy_id(first));
	MUST(rdma_destroy_id(second));
	forget_id(first);
	forget_id(second);
}

static void each_pair(const enum place *firsts, size_t num_firsts, const enum place *seconds,
		      size_t num_seconds)
{
	struct claim one = { .ps = RDMA_PS_TCP }, two = { .ps = RDMA_PS_UDP };

	open_channels();
	for (size_t i = 0; i < num_firsts; i++) {
		for (size_t j = 0; j < num_seconds; j++) {
			one.place = firsts[i];
			two.place = seconds[j];
			pair(&one, &two);
		}
	}
}

static const enum place all[] = { SERVER4, CLIENT4, SERVER6, ANY4, ANY6, LOOPBACK4, LOOPBACK6 };

static void socket_after_address(void)
{
	static const enum place firsts[] = { SERVER4, SERVER6 };

	each_pair(firsts, ARRAY_LEN(firsts), all, ARRAY_LEN(all));
}

static void socket_after_any(void)
{
	static const enum place firsts[] = { ANY4, ANY6 };

	each_pair(firsts, ARRAY_LEN(firsts), all, ARRAY_LEN(all));
}

static void socket_after_loopback(void)
{
	static const enum place firsts[] = { LOOPBACK4, LOOPBACK6 };

	each_pair(firsts, ARRAY_LEN(firsts), all, ARRAY_LEN(all));
}

/* On a device of the other transport, whose listeners are sockets if these are not. */
static void socket_of_other(void)
{
	static const enum place firsts[] = { OTHER4, ANY4 }, seconds[] = { ANY4, ANY6, OTHER4 };

	each_pair(firsts, ARRAY_LEN(firsts), seconds, ARRAY_LEN(seconds));
}

static void socket_one_family(void)
{
	static const struct claim list[][2] = {
		{ { ANY4, RDMA_PS_TCP, false, true }, { ANY6, RDMA_PS_UDP, false, true } },
		{ { ANY6, RDMA_PS_TCP, false, true }, { ANY4, RDMA_PS_UDP, false, true } },
		{ { ANY6, RDMA_PS_TCP, false, true }, { SERVER4, RDMA_PS_UDP, false, false } },
		{ { SERVER4, RDMA_PS_TCP, false, false }, { ANY6, RDMA_PS_UDP, false, true } },
		{ { ANY6, RDMA_PS_TCP, false, true }, { SERVER6, RDMA_PS_UDP, false, true } },
		{ { ANY6, RDMA_PS_TCP, false, true }, { ANY6, RDMA_PS_UDP, false, false } },
		/* In one port space. */
		{ { ANY4, RDMA_PS_TCP, false, true }, { ANY6, RDMA_PS_TCP, false, true } },
		{ { ANY6, RDMA_PS_TCP, false, true }, { SERVER4, RDMA_PS_TCP, false, true } },
		{ { SERVER4, RDMA_PS_TCP, false, false }, { SERVER6, RDMA_PS_TCP, false, false } },
	};

	open_channels();
	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		pair(&list[i][0], &list[i][1]);
}

/* What the port space says comes before what the socket says. */
static void socket_reuse(void)
{
	static const struct claim list[][3] = {
		{ { SERVER4, RDMA_PS_TCP, false, false },
		  { SERVER4, RDMA_PS_UDP, true, false },
		  { ANY4, RDMA_PS_UDP, true, false } },
		{ { ANY4, RDMA_PS_TCP, false, false },
		  { SERVER4, RDMA_PS_UDP, true, false },
		  { SERVER4, RDMA_PS_UDP, true, false } },
		{ { ANY4, RDMA_PS_TCP, true, false },
		  { SERVER4, RDMA_PS_UDP, true, false },
		  { SERVER6, RDMA_PS_UDP, true, false } },
	};
	struct rdma_cm_id *ids[3];

	open_channels();
	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		say("--");
		for (size_t j = 0; j < 3; j++) {
			ids[j] = make_id("one", server_events, list[i][j].ps);
			if (list[i][j].reuse)
				set_flag(ids[j], RDMA_OPTION_ID_REUSEADDR);
			say("%s, space 0x%x%s", address_text(at(list[i][j].place, 0)),
			    (unsigned int)list[i][j].ps, list[i][j].reuse ? ", reuse" : "");
			TRY(rdma_bind_addr(ids[j], at(list[i][j].place, 0)));
		}
		for (size_t j = 0; j < 3; j++)
			TRY(rdma_listen(ids[j], 0));
		/* One that failed may listen once nothing is in its way. */
		MUST(rdma_destroy_id(ids[0]));
		forget_id(ids[0]);
		for (size_t j = 1; j < 3; j++)
			TRY(rdma_listen(ids[j], 0));
		for (size_t j = 1; j < 3; j++) {
			MUST(rdma_destroy_id(ids[j]));
			forget_id(ids[j]);
		}
	}
}

/* A client's socket is bound to its port, too. */
static void client_beside(const struct claim *listener)
{
	struct rdma_conn_param with = param();
	struct rdma_cm_id *beside = make_id("beside", server_events, listener->ps);

	say("-- beside");
	claim(beside, listener);
	client = make_id("client", client_events, RDMA_PS_TCP);
	TRY(rdma_resolve_addr(client, at(CLIENT4, 0), at(SERVER4, 1), 2000));
	expect(client_events, ADDR_RESOLVED);
	MUST(rdma_resolve_route(client, 2000));
	expect(client_events, ROUTE_RESOLVED);
	make_qp(client);
	if (!TRY(rdma_connect(client, &with)))
		next(client_events);
	rdma_destroy_qp(client);
	DESTROY(client);
	client = NULL;
	MUST(rdma_destroy_id(beside));
	forget_id(beside);
}

static void socket_of_client(void)
{
	static const struct claim list[] = {
		{ CLIENT4, RDMA_PS_UDP, false, false }, { SERVER4, RDMA_PS_UDP, false, false },
		{ ANY4, RDMA_PS_UDP, false, false },	{ ANY6, RDMA_PS_UDP, false, false },
		{ ANY6, RDMA_PS_UDP, false, true },	{ CLIENT6, RDMA_PS_UDP, false, false },
	};

	open_channels();
	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		client_beside(&list[i]);
}

/* Two clients' sockets: from one address and port to one listener. */
static void socket_of_clients(void)
{
	static const enum rdma_port_space spaces[] = { RDMA_PS_TCP, RDMA_PS_IB };
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
		client = make_id("client", client_events, spaces[i]);
		TRY(rdma_resolve_addr(client, at(CLIENT4, 3), at(SERVER4, 0), 2000));
		expect(client_events, ADDR_RESOLVED);
		MUST(rdma_resolve_route(client, 2000));
		expect(client_events, ROUTE_RESOLVED);
		make_qp(client);
		if (!TRY(rdma_connect(client, &with)))
			rest(server_events);
	}
}

/* A connection's socket is in no listener's way, its client's neither. */
static void socket_of_connection(void)
{
	struct claim late = { SERVER4, RDMA_PS_UDP, false, false };

	open_scene(RDMA_PS_TCP);
	established();
	MUST(rdma_destroy_id(server));
	forget_id(server);
	claim(make_id("late", server_events, late.ps), &late);
	late.place = ANY4;
	late.ps = RDMA_PS_IB;
	claim(make_id("later", server_events, late.ps), &late);
}

const struct scenario sockets_scenarios[] = {
	{ "socket-after-address", socket_after_address, "listeners beside one of an address", 0 },
	{ "socket-after-any", socket_after_any, "listeners beside a wildcard's", 0 },
	{ "socket-after-loopback", socket_after_loopback, "listeners beside one of loopback", 0 },
	{ "socket-of-other", socket_of_other, "listeners beside one of another device", 0 },
	{ "socket-one-family", socket_one_family, "those that are for one family", 0 },
	{ "socket-reuse", socket_reuse, "REUSEADDR, whose errno comes first", 0 },
	{ "socket-of-client", socket_of_client, "a client's port is a listener's elsewhere", 0 },
	{ "socket-of-clients", socket_of_clients, "two clients from one port, two spaces", 0 },
	{ "socket-of-connection", socket_of_connection, "a connection's port, to listen again", 0 },
	{ NULL, NULL, NULL, 0 },
};
