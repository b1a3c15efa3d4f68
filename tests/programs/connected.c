/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connected.c - for system.sh: connected [ADDRESS], two that connect, and then each waits for
 * the other's end.
 */
#include <rdma/rdma_cma.h>

#include "member.h"

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *to;
	struct rdma_cm_id *id, *listener;
	struct rdma_cm_event *event;

	hints.ai_flags = argc > 1 ? 0 : RAI_PASSIVE;
	CHECK(!rdma_getaddrinfo(argc > 1 ? argv[1] : NULL, "7471", &hints, &to));
	CHECK(!rdma_create_ep(argc > 1 ? &id : &listener, to, NULL, &attr));
	if (argc == 1)
		CHECK(!rdma_listen(listener, 1) && !rdma_get_request(listener, &id));
	CHECK(argc > 1 ? !rdma_connect(id, NULL) : !rdma_accept(id, NULL));
	puts("connected");
	fflush(stdout);
	CHECK(!rdma_get_cm_event(id->channel, &event) && event->event == RDMA_CM_EVENT_DISCONNECTED);
	return 7;
}
