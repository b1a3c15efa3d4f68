/* SPDX-License-Identifier: BSD-2-Clause */
/* options.c - scenarios of rdma_set_option(): which are taken when, and what they do. */
#include "scene.h"

static int set_number(struct rdma_cm_id *id, int option, int value)
{
	return rdma_set_option(id, RDMA_OPTION_ID, option, &value, sizeof(value));
}

static int set_byte(struct rdma_cm_id *id, int option, uint8_t value)
{
	return rdma_set_option(id, RDMA_OPTION_ID, option, &value, sizeof(value));
}

/* All options in the state that the id is in. */
static void try_all(const char *state)
{
	say("-- %s", state);
	TRY(set_byte(client, RDMA_OPTION_ID_TOS, 32));
	TRY(set_number(client, RDMA_OPTION_ID_REUSEADDR, 1));
	TRY(set_number(client, RDMA_OPTION_ID_REUSEADDR, 0));
	TRY(set_number(client, RDMA_OPTION_ID_AFONLY, 1));
	TRY(set_number(client, RDMA_OPTION_ID_AFONLY, 0));
	TRY(set_byte(client, RDMA_OPTION_ID_ACK_TIMEOUT, 18));
}

static void option_states(void)
{
	open_scene(RDMA_PS_TCP);
	try_all("new");
	MUST(rdma_bind_addr(client, at(CLIENT4, 0)));
	try_all("bound");
	MUST(rdma_resolve_addr(client, NULL, at(SERVER4, 0), 2000));
	next(client_events);
	try_all("address resolved");
	MUST(rdma_resolve_route(client, 2000));
	next(client_events);
	try_all("route resolved");
}

static void option_states_listening(void)
{
	open_scene(RDMA_PS_TCP);
	MUST(rdma_bind_addr(client, at(CLIENT4, 0)));
	MUST(rdma_listen(client, 0));
	try_all("listening");
}

static void option_states_connected(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	try_all("established");
	client = child;
	try_all("established, the server's");
}

static void option_lengths(void)
{
	char value[8] = { 0 };

	open_scene(RDMA_PS_TCP);
	TRY(rdma_set_option(client, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, value, 0));
	TRY(rdma_set_option(client, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, value, 4));
	TRY(rdma_set_option(client, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, value, 1));
	TRY(rdma_set_option(client, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, value, 8));
	TRY(rdma_set_option(client, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, value, 3));
	TRY(rdma_set_option(client, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, value, 4));
	TRY(rdma_set_option(client, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, value, 0));
	TRY(rdma_set_option(client, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, value, 8));
}

static void option_unknown(void)
{
	int value = 1;

	open_scene(RDMA_PS_TCP);
	TRY(rdma_set_option(client, RDMA_OPTION_ID, 99, &value, sizeof(value)));
	TRY(rdma_set_option(client, RDMA_OPTION_ID, -1, &value, sizeof(value)));
	TRY(rdma_set_option(client, RDMA_OPTION_IB, 99, &value, sizeof(value)));
	TRY(rdma_set_option(client, 99, RDMA_OPTION_ID_TOS, &value, sizeof(value)));
}

static void option_ack_timeout_values(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(set_byte(client, RDMA_OPTION_ID_ACK_TIMEOUT, 0));
	TRY(set_byte(client, RDMA_OPTION_ID_ACK_TIMEOUT, 31));
	TRY(set_byte(client, RDMA_OPTION_ID_ACK_TIMEOUT, 32));
	TRY(set_byte(client, RDMA_OPTION_ID_ACK_TIMEOUT, 255));
}

static void option_ud(void)
{
	open_scene(RDMA_PS_UDP);
	TRY(set_byte(client, RDMA_OPTION_ID_TOS, 32));
	TRY(set_number(client, RDMA_OPTION_ID_REUSEADDR, 1));
	TRY(set_number(client, RDMA_OPTION_ID_AFONLY, 1));
	TRY(set_byte(client, RDMA_OPTION_ID_ACK_TIMEOUT, 18));
}

/* --- What they do. --- */

static void connect_and_show(void)
{
	struct rdma_conn_param with = param();

	server_listens(0);
	client_resolves();
	show_route(client);
	make_qp(client);
	MUST(rdma_connect(client, &with));
	next(server_events);
	show_route(child);
	make_qp(child);
	MUST(rdma_accept(child, &with));
	next(client_events);
	next(server_events);
	show_qp_attr(client);
	show_qp_attr(child);
}

static void option_tos(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(set_byte(client, RDMA_OPTION_ID_TOS, 104));
	connect_and_show();
}

static void option_tos_too_late(void)
{
	open_scene(RDMA_PS_TCP);
	client_resolves();
	TRY(set_byte(client, RDMA_OPTION_ID_TOS, 104));
	show_route(client);
}

static void option_tos_of_listener(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(set_byte(server, RDMA_OPTION_ID_TOS, 104));
	connect_and_show();
}

static void option_ack_timeout(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(set_byte(client, RDMA_OPTION_ID_ACK_TIMEOUT, 14));
	connect_and_show();
}

static void option_ack_timeout_infinite(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(set_byte(client, RDMA_OPTION_ID_ACK_TIMEOUT, 0));
	connect_and_show();
}

static void option_ack_timeout_of_listener(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(set_byte(server, RDMA_OPTION_ID_ACK_TIMEOUT, 12));
	connect_and_show();
}

static void option_ack_timeout_of_child(void)
{
	open_scene(RDMA_PS_TCP);
	request(NULL);
	TRY(set_byte(child, RDMA_OPTION_ID_ACK_TIMEOUT, 12));
	make_qp(child);
	MUST(rdma_accept(child, NULL));
	next(client_events);
	next(server_events);
	show_qp_attr(client);
	show_qp_attr(child);
}

static void option_ack_timeout_after_route(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	TRY(set_byte(client, RDMA_OPTION_ID_ACK_TIMEOUT, 14));
	make_qp(client);
	MUST(rdma_connect(client, &with));
	next(server_events);
	make_qp(child);
	MUST(rdma_accept(child, NULL));
	next(client_events);
	next(server_events);
	show_qp_attr(client);
	show_qp_attr(child);
}

/* A path of the program's own takes the place of rdma_resolve_route(). */
static void option_path(void)
{
	struct ibv_path_data path;

	open_scene(RDMA_PS_TCP);
	client_resolves();
	if (!client->route.num_paths) {
		say("no path to take");
		return;
	}
	memset(&path, 0, sizeof(path));
	path.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	path.path.dgid = client->route.path_rec->dgid;
	path.path.sgid = client->route.path_rec->sgid;
	path.path.reversible_numpath = 0x81;
	path.path.pkey = 0xffff;
	path.path.mtu = 0x80 | IBV_MTU_512;
	path.path.rate = 0x80 | IBV_RATE_10_GBPS;
	path.path.packetlifetime = 0x80 | 15;
	TRY(rdma_set_option(client, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)));
	DESTROY(client);
	client = make_id("client", client_events, RDMA_PS_TCP);
	client_finds();
	path.flags = IBV_PATH_FLAG_GMP;
	TRY(rdma_set_option(client, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)));
	path.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	TRY(rdma_set_option(client, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)));
	rest(client_events);
	show_route(client);
}

const struct scenario options_scenarios[] = {
	{ "option-states", option_states, "all of them, from new to route resolved", 0 },
	{ "option-states-listening", option_states_listening, "all of them, listening", 0 },
	{ "option-states-connected", option_states_connected, "all of them, established", 0 },
	{ "option-lengths", option_lengths, "wrong lengths", 0 },
	{ "option-unknown", option_unknown, "unknown levels and options", 0 },
	{ "option-ack-timeout-values", option_ack_timeout_values, "0, 31, 32, 255", 0 },
	{ "option-ud", option_ud, "on a UD id", 0 },
	{ "option-tos", option_tos, "TOS 104: route, both QPs", 0 },
	{ "option-tos-late", option_tos_too_late, "TOS after the route is resolved", 0 },
	{ "option-tos-listener", option_tos_of_listener, "TOS on the listener", 0 },
	{ "option-ack-timeout", option_ack_timeout, "client: route, both QPs", 0 },
	{ "option-ack-timeout-infinite", option_ack_timeout_infinite, "0", 0 },
	{ "option-ack-timeout-listener", option_ack_timeout_of_listener, "on the listener", 0 },
	{ "option-ack-timeout-child", option_ack_timeout_of_child, "on the request's id", 0 },
	{ "option-ack-timeout-late", option_ack_timeout_after_route, "after the route is resolved", 0 },
	{ "option-path", option_path, "a path of one's own", 0 },
	{ NULL, NULL, NULL, 0 },
};
