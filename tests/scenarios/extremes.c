/* SPDX-License-Identifier: BSD-2-Clause */
/* extremes.c - scenarios of private data of all lengths, and of QP numbers that are used twice. */
#include "scene.h"

/* A request with so much data, refused with as much or accepted with as much, for each length. */
static void lengths(enum rdma_port_space ps, const unsigned int *len, size_t num, bool accept)
{
	struct rdma_conn_param asked, answer;
	size_t i;
	int result;

	open_channels();
	server = make_id("server", server_events, ps);
	server_listens(0);
	for (i = 0; i < num; i++) {
		say("-- %u bytes", len[i]);
		client = make_id("client", client_events, ps);
		client_resolves();
		make_qp(client);
		asked = param_data(accept ? 0 : len[i]);
		answer = param_data(len[i]);
		if (!TRY(rdma_connect(client, &asked))) {
			next(server_events);
			if (accept) {
				make_qp(child);
				result = TRY(rdma_accept(child, &answer));
				next(client_events);
				if (!result && ps == RDMA_PS_TCP)
					next(server_events);
			} else {
				if (TRY(rdma_reject(child, counting, (uint8_t)len[i])))
					TRY(rdma_reject(child, NULL, 0));
				next(client_events);
			}
			DESTROY(child);
		}
		DESTROY(client);
	}
}

static void lengths_asked(void)
{
	static const unsigned int list[] = {1, 2, 4, 35, 36, 55, 56, 57, 92, 93, 147, 148};

	lengths(RDMA_PS_TCP, list, ARRAY_LEN(list), false);
}

static void lengths_accepted(void)
{
	static const unsigned int list[] = {0, 1, 3, 147, 148, 149, 195, 196};

	lengths(RDMA_PS_TCP, list, ARRAY_LEN(list), true);
}

static void lengths_datagram(void)
{
	static const unsigned int list[] = {0,	 1,   35,  36,	135, 136, 137,
					    179, 180, 181, 216, 219, 220, 255};

	lengths(RDMA_PS_UDP, list, ARRAY_LEN(list), false);
}

/* --- Numbers. --- */

/* A number that the peer knows of a connection that lives. */
static void numbers_stale(void)
{
	struct rdma_conn_param with = param();
	struct rdma_cm_id *first, *first_child, *second, *third;

	open_scene(RDMA_PS_TCP);
	first = client;
	server_listens(0);
	client_resolves();
	with.qp_num = own_qp_num(1);
	if (TRY(rdma_connect(client, &with)))
		return;
	next(server_events);
	first_child = child;
	with.qp_num = own_qp_num(2);
	TRY(rdma_accept(child, &with));
	next(client_events);
	TRY(rdma_establish(client));
	next(server_events);
	say("another with the same number");
	client = second = make_id("second", client_events, RDMA_PS_TCP);
	client_resolves();
	with.qp_num = own_qp_num(1);
	TRY(rdma_connect(second, &with));
	next(client_events);
	rest(client_events);
	rest(server_events);
	TRY(rdma_disconnect(first));
	rest(server_events);
	TRY(rdma_disconnect(first_child));
	rest(client_events);
	rest(server_events);
	say("and once more, when all is over");
	client = third = make_id("third", client_events, RDMA_PS_TCP);
	client_resolves();
	TRY(rdma_connect(third, &with));
	next(server_events);
	rest(client_events);
}

/* A number again while the first connection is in its timewait. */
static void numbers_timewait(void)
{
	struct rdma_conn_param with = param();
	struct rdma_cm_id *first, *second;

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	with.qp_num = own_qp_num(1);
	if (TRY(rdma_connect(client, &with)))
		return;
	next(server_events);
	with.qp_num = own_qp_num(2);
	TRY(rdma_accept(child, &with));
	next(client_events);
	TRY(rdma_establish(client));
	next(server_events);
	/*
	 * Made ready before, as timewait is half a second.  The request comes to a channel of its own:
	 * before or after that, who knows.
	 */
	MUST(rdma_migrate_id(server, make_server_channel("requests")));
	first = client;
	client = second = make_id("second", client_events, RDMA_PS_TCP);
	client_resolves();
	client = first;
	with.qp_num = own_qp_num(1);
	TRY(rdma_disconnect(client));
	next(server_events);
	TRY(rdma_disconnect(child));
	next(client_events);
	TRY(rdma_connect(second, &with));
	rest(client_events);
	next(server->channel);
	rest(server_events);
}

/* Both accepted, so that the numbers of both answers are the same. */
static void numbers_stale_answer(void)
{
	struct rdma_conn_param with = param();
	struct rdma_cm_id *first_child;

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	with.qp_num = own_qp_num(1);
	if (TRY(rdma_connect(client, &with)))
		return;
	next(server_events);
	first_child = child;
	with.qp_num = own_qp_num(3);
	TRY(rdma_accept(first_child, &with));
	next(client_events);
	TRY(rdma_establish(client));
	next(server_events);
	client = make_id("second", client_events, RDMA_PS_TCP);
	client_resolves();
	with.qp_num = own_qp_num(2);
	TRY(rdma_connect(client, &with));
	next(server_events);
	with.qp_num = own_qp_num(3);
	TRY(rdma_accept(child, &with));
	rest(client_events);
	rest(server_events);
}

const struct scenario extremes_scenarios[] = {
	{"lengths-asked", lengths_asked, "requests and refusals with so many bytes", 0},
	{"lengths-accepted", lengths_accepted, "accepted with so many bytes", 0},
	{"lengths-datagram", lengths_datagram, "datagrams: requests and refusals", 0},
	{"numbers-stale", numbers_stale, "the number of a connection that lives", 0},
	{"numbers-timewait", numbers_timewait, "the number of a connection in timewait", 0},
	{"numbers-stale-answer", numbers_stale_answer, "two answers with one number", 0},
	{NULL, NULL, NULL, 0},
};
