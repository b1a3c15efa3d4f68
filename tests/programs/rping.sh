#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# rping: Send/Recv, RDMA Read and RDMA Write between two processes, the data compared.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rping
server_command=(rping -s -a 127.0.0.1 -C 10 -v -V)
client_command=(rping -c -a 127.0.0.1 -C 10 -v -V)

good() {
	counts "$1/server.out" 10 '^server ping data: rdma-ping-[0-9]: ' &&
	counts "$1/client.out" 10 '^ping data: rdma-ping-[0-9]: ' &&
	# What the server read from the client and what the client got back.
	diff <(sed 's/^server //' "$1/server.out") "$1/client.out"
}

pairs 20
finish
