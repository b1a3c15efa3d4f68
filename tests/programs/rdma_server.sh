#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# rdma_server and rdma_client: endpoints (rdma_create_ep, rdma_get_request) on synchronous ids.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rdma_server rdma_client
server_command=(rdma_server)
client_command=(rdma_client)

good() {
	counts "$1/server.out" 1 '^rdma_server: end 0$' &&
	counts "$1/client.out" 1 '^rdma_client: end 0$'
}

pairs 20
finish
