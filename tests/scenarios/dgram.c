/* SPDX-License-Identifier: BSD-2-Clause */
/* dgram.c - scenarios of datagrams: messages, groups, and other port spaces and QP types. */

#include "scene_data.h"

static struct rdma_ud_param peer_of_client;

static bool datagram_pair(void)
{
	struct rdma_conn_param with = param();
	struct rdma_cm_event *event;

	open_scene(RDMA_PS_UDP);
	request(NULL);
	make_qp(child);
	MUST(rdma_accept(child, &with));
	event = next(client_events);
	if (!event || event->event != RDMA_CM_EVENT_ESTABLISHED)
		return false;
	peer_of_client = event->param.ud;
	return true;
}

/* Behind the header, which not all devices fill. */
static void show_message(struct rdma_cm_id *id)
{
	say("%s",
	    memcmp(memory(id) + MEMORY / 2 + 40, counting, 10) ? "other bytes" : "the same bytes");
}

static void dgram_send(void)
{
	if (!datagram_pair())
		return;
	TRY(post_recv(child, 11, 1000));
	TRY(post_recv(child, 12, 40 + 9));
	TRY(post_recv(child, 13, 1000));
	TRY(post_datagram(client, 1, 10, &peer_of_client, peer_of_client.qkey));
	sent(client, 1);
	received(child, 1);
	show_message(child);
	say("a Q_Key that is not the peer's");
	TRY(post_datagram(client, 2, 10, &peer_of_client, 0x999));
	sent(client, 1);
	completions_rest(child);
	say("no buffer is large enough");
	TRY(post_datagram(client, 3, 10, &peer_of_client, peer_of_client.qkey));
	sent(client, 1);
	completions_rest(child);
	show_qp(child);
	TRY(post_datagram(client, 4, 10, &peer_of_client, peer_of_client.qkey));
	sent(client, 1);
	completions_rest(child);
}

/* --- Groups. --- */

static void group_message(void)
{
	struct rdma_cm_event *event;
	struct rdma_ud_param group;

	open_scene(RDMA_PS_UDP);
	MUST(rdma_bind_addr(client, at(CLIENT4, 0)));
	MUST(rdma_bind_addr(server, at(SERVER4, 1)));
	make_qp(client);
	make_qp(server);
	if (TRY(rdma_join_multicast(client, at(MULTICAST4, ANY_PORT), NULL)))
		return;
	event = next(client_events);
	group = event->param.ud;
	TRY(rdma_join_multicast(server, at(MULTICAST4, ANY_PORT), &group));
	next(server_events);
	TRY(post_recv(server, 11, 1000));
	TRY(post_recv(server, 12, 1000));
	TRY(post_datagram(client, 1, 10, &group, group.qkey));
	sent(client, 1);
	received(server, 1);
	show_message(server);
	TRY(rdma_leave_multicast(server, at(MULTICAST4, ANY_PORT)));
	TRY(post_datagram(client, 2, 10, &group, group.qkey));
	sent(client, 1);
	completions_rest(server);
	TRY(rdma_join_multicast(server, at(MULTICAST4, ANY_PORT), NULL));
	next(server_events);
	TRY(post_datagram(client, 3, 10, &group, group.qkey));
	sent(client, 1);
	completions_rest(server);
}

/* --- Other port spaces and types. --- */

static void space(enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
		.sq_sig_all = 1,
	};
	struct rdma_addrinfo hints = {.ai_port_space = (int)ps, .ai_qp_type = (int)type}, *info,
			     *listen_info;
	struct rdma_conn_param with = param_data(20);

	open_channels();
	hints.ai_flags = RAI_PASSIVE;
	if (TRY(rdma_getaddrinfo(host(SERVER4), service(0), &hints, &listen_info)))
		return;
	hints.ai_flags = 0;
	MUST(rdma_getaddrinfo(host(SERVER4), service(0), &hints, &info));
	if (TRY(rdma_create_ep(&server, listen_info, NULL, NULL)))
		return;
	name_id("server", server);
	TRY(rdma_migrate_id(server, server_events));
	TRY(rdma_listen(server, 0));
	if (TRY(rdma_create_ep(&client, info, NULL, NULL)))
		return;
	name_id("client", client);
	TRY(rdma_migrate_id(client, client_events));
	say("ps 0x%x qp type %d", client->ps, client->qp_type);
	if (TRY(rdma_create_qp(client, NULL, &attr)))
		return;
	if (TRY(rdma_connect(client, &with)))
		return;
	next(server_events);
	say("child ps 0x%x qp type %d", child->ps, child->qp_type);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	rest(client_events);
	rest(server_events);
	show_qp_attr(client);
	show_qp_attr(child);
	rdma_freeaddrinfo(info);
	rdma_freeaddrinfo(listen_info);
	TRY(rdma_disconnect(client));
	rest(server_events);
	rest(client_events);
}

static void space_ib_uc(void)
{
	space(RDMA_PS_IB, IBV_QPT_UC);
}

const struct scenario dgram_scenarios[] = {
	{"dgram-send", dgram_send, "messages, a wrong Q_Key, too small a buffer", 0},
	{"group-message", group_message, "a message to a group", 0},
	{"space-ib-uc", space_ib_uc, "RDMA_PS_IB, UC", 0},
	{NULL, NULL, NULL, 0},
};
