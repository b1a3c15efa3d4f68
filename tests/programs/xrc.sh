#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# XRC: rdma_xserver and rdma_xclient, whose ids are XRC targets and initiators. iWARP has no XRC.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rdma_xserver rdma_xclient
transports=(roce ib)
server_command=(rdma_xserver -c x)
client_command=(rdma_xclient -c x)

good() {
	counts "$1/server.out" 1 '^rdma_xserver: end 0$' &&
	counts "$1/client.out" 1 '^rdma_xclient: end 0$' &&
	lacks "$1/client.log" 'completes with'
}

pairs 3
finish
