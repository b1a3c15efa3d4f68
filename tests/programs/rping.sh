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

# A client cannot see a server of another user: it is told who is on the fabric.
alone() {
	polycm run --provider sim --transport "$1" --log warn timeout 20 rping -c -a 127.0.0.1 -C 1 \
		>"$work/out" 2>"$work/err" && return 1
	counts "$work/err" 1 'no process of this simulated network listens there' &&
	has "$work/err" "with the same fabric and transport share it, in the folder $runtime/polycm/default-$1"
}

for transport in roce ib iwarp; do
	check "rping on $transport without a server" alone "$transport"
done

# Nor can it one of another process under the virtual clock, where it is told that nobody else can be there.
check 'rping under the virtual clock' eval '
	exits 255 polycm run --clock virtual --log warn rping -c -a 127.0.0.1 -C 1 &&
	counts "$work/err" 1 "under the virtual clock this network is the process.s own, and other processes cannot be on it"'

pairs 20
finish
