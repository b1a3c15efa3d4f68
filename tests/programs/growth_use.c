/* SPDX-License-Identifier: BSD-2-Clause */
/* growth_use.c - a bind and a refused address over the provider of growth_plugin.c: "PORT STATUS". */
#include <arpa/inet.h>
#include <stdio.h>

#include <rdma/rdma_cma.h>

int main(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	addr.sin_addr.s_addr = htonl(0x0a090909);
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		return 1;
	if (rdma_bind_addr(id, (struct sockaddr *)&addr))
		return 2;
	printf("%d ", ntohs(rdma_get_src_port(id)));
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000) ||
	    rdma_get_cm_event(channel, &event))
		return 3;
	printf("%d\n", event->event == RDMA_CM_EVENT_ADDR_ERROR ? event->status : 1);
	if (rdma_ack_cm_event(event) || rdma_destroy_id(id))
		return 4;
	rdma_destroy_event_channel(channel);
	return 0;
}
