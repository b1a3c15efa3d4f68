/* SPDX-License-Identifier: BSD-2-Clause */
/* timeouts.c - scenarios of waiting in vain: for an answer, for a program, for an address. */
#include "scene.h"

static bool on_iwarp(const struct rdma_cm_id *id)
{
	return id->verbs && id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

/* --- The connection. --- */

static void timeout_no_answer(void)
{
	struct rdma_conn_param with = param();
	uint64_t start;

	open_scene(RDMA_PS_TCP);
	request(NULL);
	start = now_ms();
	next(client_events);
	show_lapse("that", start, on_iwarp(client) ? 10000 : 995328);
	pass_ms(500);
	show_qp(client);
	say("and now an answer");
	make_qp(child);
	pass_ms(500);
	start = now_ms();
	if (TRY(rdma_accept(child, &with)))
		return;
	next(server_events);
	show_lapse("that", start, 65536);
	rest(client_events);
	show_qp(child);
}

static void late_accept(unsigned int ms)
{
	struct rdma_conn_param with = param_data(3);
	bool accepts;

	open_scene(RDMA_PS_TCP);
	request(NULL);
	pass_ms(on_iwarp(client) && ms < 10000 ? 3000 : ms);
	make_qp(child);
	accepts = !TRY(rdma_accept(child, &with));
	next(client_events);
	if (accepts)
		next(server_events);
	rest(client_events);
	rest(server_events);
	show_qp(client);
	show_qp(child);
}

static void timeout_late_accept(void)
{
	late_accept(7000);
}

static void timeout_later_accept(void)
{
	late_accept(16000);
}

static void timeout_late_reject(void)
{
	open_scene(RDMA_PS_TCP);
	request(NULL);
	pass_ms(16000);
	TRY(rdma_reject(child, counting, 3));
	next(client_events);
	rest(client_events);
}

static void timeout_event_not_taken(void)
{
	uint64_t start;

	open_scene(RDMA_PS_TCP);
	accepted(NULL);
	start = now_ms();
	next(server_events);
	show_lapse("that", start, on_iwarp(client) ? 0 : 994816);
	show_qp(child);
	say("and now the client looks");
	rest(client_events);
	show_qp(client);
	rest(server_events);
}

static void timeout_event_taken_late(void)
{
	open_scene(RDMA_PS_TCP);
	accepted(NULL);
	pass_ms(6000);
	next(client_events);
	next(server_events);
	show_qp(client);
	rest(client_events);
	rest(server_events);
}

static void timeout_datagram(void)
{
	struct rdma_conn_param with = param();
	uint64_t start;

	open_scene(RDMA_PS_UDP);
	request(NULL);
	start = now_ms();
	next(client_events);
	show_lapse("that", start, 65536);
	say("and now an answer");
	make_qp(child);
	TRY(rdma_accept(child, &with));
	rest(client_events);
	rest(server_events);
}

/* --- Addresses. --- */

static void resolve_nobody(enum place place, int timeout_ms)
{
	uint64_t start;

	open_scene(RDMA_PS_TCP);
	start = now_ms();
	TRY(rdma_resolve_addr(client, NULL, at(place, 0), timeout_ms));
	next(client_events);
	show_lapse("that", start, (unsigned int)timeout_ms);
	show_addresses(client);
}

static void timeout_resolve_0(void)
{
	resolve_nobody(NOBODY4, 0);
}

static void timeout_resolve_1(void)
{
	resolve_nobody(NOBODY4, 1);
}

static void timeout_resolve_500(void)
{
	resolve_nobody(NOBODY4, 500);
}

static void timeout_resolve_5000(void)
{
	resolve_nobody(NOBODY4, 5000);
}

static void timeout_resolve_30000(void)
{
	resolve_nobody(NOBODY4, 30000);
}

static void timeout_resolve_ipv6(void)
{
	resolve_nobody(NOBODY6, 1500);
}

/* The neighbour is known by then. */
static void timeout_resolve_0_known(void)
{
	struct rdma_cm_id *other;

	open_scene(RDMA_PS_TCP);
	client_finds();
	other = make_id("other", client_events, RDMA_PS_TCP);
	TRY(rdma_resolve_addr(other, at(CLIENT4, ANY_PORT), at(SERVER4, 1), 0));
	next(client_events);
	other = make_id("another", client_events, RDMA_PS_TCP);
	TRY(rdma_resolve_addr(other, at(CLIENT4, ANY_PORT), at(SERVER4, 1), -1));
	next(client_events);
	TRY(rdma_resolve_route(other, 1));
	next(client_events);
}

/* Several wait at once, the shortest first. */
static void timeout_resolve_several(void)
{
	struct rdma_cm_id *other;

	open_scene(RDMA_PS_TCP);
	other = make_id("other", client_events, RDMA_PS_TCP);
	TRY(rdma_resolve_addr(client, NULL, at(NOBODY4, 0), 3000));
	TRY(rdma_resolve_addr(other, NULL, at(NOBODY4, 1), 1000));
	next(client_events);
	next(client_events);
	rest(client_events);
}

const struct scenario timeouts_scenarios[] = {
	{ "timeout-no-answer", timeout_no_answer, "the server never answers a request", SLOW },
	{ "timeout-late-accept", timeout_late_accept, "an answer after 7 s, on iWARP 3 s", 0 },
	{ "timeout-later-accept", timeout_later_accept, "an answer after 16 s", SLOW },
	{ "timeout-late-reject", timeout_late_reject, "a refusal after 16 s", SLOW },
	{ "timeout-event-not-taken", timeout_event_not_taken,
	  "accepted, but the client does not look", SLOW },
	{ "timeout-event-taken-late", timeout_event_taken_late, "the client looks after 6 s", 0 },
	{ "timeout-datagram", timeout_datagram, "RDMA_PS_UDP: the server never answers", SLOW },
	{ "timeout-resolve-0", timeout_resolve_0, "nobody has the address, 0 ms", 0 },
	{ "timeout-resolve-1", timeout_resolve_1, "nobody has the address, 1 ms", 0 },
	{ "timeout-resolve-500", timeout_resolve_500, "nobody has the address, 500 ms", 0 },
	{ "timeout-resolve-5000", timeout_resolve_5000, "nobody has the address, 5 s", 0 },
	{ "timeout-resolve-30000", timeout_resolve_30000, "nobody has the address, 30 s", SLOW },
	{ "timeout-resolve-ipv6", timeout_resolve_ipv6, "nobody has the address, IPv6", 0 },
	{ "timeout-resolve-0-known", timeout_resolve_0_known, "a known neighbour, 0 and -1 ms", 0 },
	{ "timeout-resolve-several", timeout_resolve_several, "two wait for the same nobody", 0 },
	{ NULL, NULL, NULL, 0 },
};
