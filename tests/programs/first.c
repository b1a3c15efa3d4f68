/* SPDX-License-Identifier: BSD-2-Clause */
/* The first program of README.md: one connection, and why there was none. */
#include <stdio.h>
#include <rdma/rdma_cma.h>
int main(void)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *to;
	struct ibv_qp_init_attr qp = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct rdma_cm_id *id;
	if (rdma_getaddrinfo("127.0.0.1", "7471", &hints, &to) ||
	    rdma_create_ep(&id, to, NULL, &qp) || rdma_connect(id, NULL))
		return perror("no connection"), 1;
	return printf("connected through %s\n", id->verbs->device->name) < 0 || rdma_disconnect(id);
}
