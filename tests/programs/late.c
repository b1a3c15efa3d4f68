/* SPDX-License-Identifier: BSD-2-Clause */
/* late.c event|id|cq - reads an event after its ack, or an id or a CQ after its end. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <rdma/rdma_cma.h>

int main(int argc, char *argv[])
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(7471) };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	const char *what = argc > 1 ? argv[1] : "";
	struct ibv_cq *cq;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000) ||
	    rdma_get_cm_event(channel, &event) || rdma_ack_cm_event(event)) {
		perror("no event");
		return 1;
	}
	if (!strcmp(what, "event"))
		printf("status %d\n", event->status);
	cq = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
	if (!cq || ibv_destroy_cq(cq)) {
		perror("no CQ");
		return 1;
	}
	if (!strcmp(what, "cq"))
		printf("capacity %d\n", cq->cqe);
	rdma_destroy_id(id);
	if (!strcmp(what, "id"))
		printf("port space %d\n", (int)id->ps);
	rdma_destroy_event_channel(channel);
	return 0;
}
