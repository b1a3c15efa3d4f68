/* SPDX-License-Identifier: BSD-2-Clause */
/* late.c - looks at an event after its ack, or with an argument at an id after its end. */
#include <arpa/inet.h>
#include <stdio.h>

#include <rdma/rdma_cma.h>

int main(int argc, char *argv[])
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(7471) };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	(void)argv;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000) ||
	    rdma_get_cm_event(channel, &event) || rdma_ack_cm_event(event)) {
		perror("no event");
		return 1;
	}
	if (argc == 1)
		printf("status %d\n", event->status);
	rdma_destroy_id(id);
	if (argc > 1)
		printf("port space %d\n", (int)id->ps);
	rdma_destroy_event_channel(channel);
	return 0;
}
