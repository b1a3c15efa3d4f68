/* SPDX-License-Identifier: BSD-2-Clause */
/* devices.c - scenarios of rdma_get_devices(), and of the verbs contexts of ids. */
#include "scene.h"

static bool is_listed(struct ibv_context *const *list, const struct ibv_context *verbs)
{
	for (; *list; list++) {
		if (*list == verbs)
			return true;
	}
	return false;
}

static void devices_list(void)
{
	struct ibv_context **list, **again;
	int num = -1, i;

	list = TRY_PTR(rdma_get_devices(&num));
	if (!list)
		return;
	for (i = 0; list[i]; i++)
		;
	say("count %s, %s", i == num ? "right" : "wrong", num ? "some" : "none");
	again = TRY_PTR(rdma_get_devices(NULL));
	for (i = 0; again && again[i] && again[i] == list[i]; i++)
		;
	say("%s", i == num ? "the same again" : "others");
	rdma_free_devices(list);
	if (again)
		rdma_free_devices(again);
}

static void devices_of_ids(void)
{
	struct ibv_context **list;
	struct ibv_context *verbs;
	struct ibv_device_attr attr;
	struct rdma_cm_id *other;

	open_scene(RDMA_PS_TCP);
	other = make_id("other", client_events, RDMA_PS_TCP);
	client_finds();
	list = rdma_get_devices(NULL);
	if (!list)
		end_failed("rdma_get_devices");
	say("the client's %s listed", is_listed(list, client->verbs) ? "is" : "is not");
	rdma_free_devices(list);
	verbs = client->verbs;
	TRY(ibv_query_device(verbs, &attr));
	MUST(rdma_bind_addr(other, at(CLIENT4, 3)));
	say("another id of the address: %s context, %s PD", other->verbs == verbs ? "same" : "other",
	    other->pd == client->pd ? "same" : "other");
	MUST(rdma_destroy_id(client));
	forget_id(client);
	TRY(ibv_query_device(verbs, &attr));
	say("node type %s, transport %s", verbs->device->node_type == IBV_NODE_CA ? "CA" : "RNIC",
	    verbs->device->transport_type == IBV_TRANSPORT_IB ? "InfiniBand" : "iWARP");
}

/* What programs look at before they use a port. */
static void devices_port(void)
{
	struct ibv_port_attr port;

	open_scene(RDMA_PS_TCP);
	client_finds();
	say("port %u", client->port_num);
	TRY(ibv_query_port(client->verbs, client->port_num, &port));
	say("state %s, link layer %u", ibv_port_state_str(port.state), port.link_layer);
	say("GIDs %s, pkeys %s", port.gid_tbl_len ? "yes" : "no", port.pkey_tbl_len ? "yes" : "no");
}

/* A child's context is its listener's device, also of a wildcard listener. */
static void devices_of_child(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	MUST(rdma_bind_addr(server, at(ANY4, 0)));
	MUST(rdma_listen(server, 0));
	say("the listener's %s", server->verbs ? "yes" : "no");
	client_resolves();
	make_qp(client);
	TRY(rdma_connect(client, &with));
	expect(server_events, CONNECT_REQUEST);
	show_addresses(child);
	show_addresses(server);
	say("pd %s, port %u", child->pd ? "yes" : "no", child->port_num);
}

static void devices_without_device(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(rdma_bind_addr(server, at(NODEVICE4, 0)));
	show_addresses(server);
	TRY(rdma_resolve_addr(client, at(NODEVICE4, 0), at(SERVER4, 0), 2000));
	rest(client_events);
	show_addresses(client);
}

const struct scenario devices_scenarios[] = {
	{ "devices-list", devices_list, "rdma_get_devices(), twice", 0 },
	{ "devices-of-ids", devices_of_ids, "contexts and PDs of ids", 0 },
	{ "devices-port", devices_port, "the port that an id is on", 0 },
	{ "devices-of-child", devices_of_child, "through a wildcard listener", 0 },
	{ "devices-none", devices_without_device, "an interface without an RDMA device", 0 },
	{ NULL, NULL, NULL, 0 },
};
