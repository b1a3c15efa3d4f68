/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch/pcap/pcap_mad.c - messages of the InfiniBand CM in the capture: BTH and DETH to
 * QP 1 in front of the 256 bytes.
 *
 * The addresses are those of the id that a message belongs to; an answer that
 * belongs to none has those of the request that it answers.
 */
#include "config.h"

#include "providers/soft/cm/ibcm.h"
#include "providers/soft/fabric/gids.h"
#include "pcap_internal.h"

#define OP_UD_SEND_ONLY 0x64u
#define GSI_QPN 1u
#define GSI_QKEY 0x80010000u
#define NUM_REQUESTS 64u

/* Who sent the last requests that came in. */
static struct request {
	uint32_t comm_id;
	union ibv_gid sender, receiver;
} requests[NUM_REQUESTS];
static unsigned int next_request;

static uint32_t psns;

static const struct request *request_of(uint32_t comm_id)
{
	for (unsigned int i = 0; i < NUM_REQUESTS; i++)
		if (requests[i].comm_id == comm_id)
			return &requests[i];
	return NULL;
}

static void path_of(const struct sim_packet *packet, struct sim_wire_path *ret_path)
{
	const struct request *request;
	const struct ibcm *cm = NULL, *peer = NULL;
	uint32_t local, remote;
	struct cm_msg msg;

	sim_wire_default_path(packet->from, packet->to, ret_path);
	if (cm_decode(packet->data, packet->len, &msg) < 0)
		return;
	cm_msg_ids(&msg, &local, &remote);
	if (local)
		cm = ibcm_find_local(local);
	if (remote && packet->from_slot != sim_self_slot())
		peer = ibcm_find_local(remote);
	request = remote ? request_of(remote) : NULL;
	if (msg.attr_id == CM_REQ) {
		ret_path->sgid = msg.req.primary.local_gid;
		ret_path->dgid = msg.req.primary.remote_gid;
	} else if (cm && cm->id->port == packet->from) {
		ret_path->sgid = cm->id->sgid;
		ret_path->dgid = cm->id->dgid;
	} else if (peer && peer->id->port == packet->to) {
		ret_path->sgid = peer->id->dgid;
		ret_path->dgid = peer->id->sgid;
	} else if (request) {
		ret_path->sgid = request->receiver;
		ret_path->dgid = request->sender;
	}
}

void sim_pcap_mad_sent(const struct sim_packet *packet)
{
	uint8_t header[SIM_TRANSPORT_MAX], *at;
	struct iovec data = { .iov_base = (void *)(uintptr_t)packet->data, .iov_len = packet->len };
	struct sim_wire_path path;

	path_of(packet, &path);
	at = sim_wire_bth(header, OP_UD_SEND_ONLY, 0, GSI_QPN, false, psns++);
	at = put32(at, GSI_QKEY);
	at = put32(at, GSI_QPN);
	sim_wire_write(&path, header, (size_t)(at - header), &data, 1, packet->len);
}

/* Remember whom an answer goes to. */
void sim_pcap_mad_received(const struct sim_packet *packet)
{
	struct request request = { .comm_id = 0 };
	struct cma_hdr_info info;
	struct cm_msg msg;

	if (cm_decode(packet->data, packet->len, &msg) < 0)
		return;
	if (msg.attr_id == CM_REQ) {
		request.comm_id = msg.req.local_comm_id;
		request.sender = msg.req.primary.local_gid;
		request.receiver = msg.req.primary.remote_gid;
	} else if (msg.attr_id == CM_SIDR_REQ &&
		   !cma_hdr_decode(msg.sidr_req.private_data, sizeof(msg.sidr_req.private_data),
				   &info) &&
		   packet->from->device->rules->link_layer != IBV_LINK_LAYER_INFINIBAND) {
		request.comm_id = msg.sidr_req.request_id;
		sim_gid_of_address(&info.src, &request.sender);
		sim_gid_of_address(&info.dst, &request.receiver);
	} else {
		return;
	}
	requests[next_request++ % NUM_REQUESTS] = request;
}
