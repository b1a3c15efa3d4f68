#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# ./demo tells of every step of a connection, in order, on both sides.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rping
check './demo passes' exits 0 bash "$abs_top_srcdir/demo" --build "$abs_top_builddir"
cp "$work/out" "$work/account"
check 'nothing on standard error' eval '[ ! -s "$work/err" ] || { cat "$work/err"; false; }'
check 'its verdict is its last line' eval 'tail -n 1 "$work/account" | has /dev/stdin "PASSED: "'

# steps TRANSPORT SIDE: the events of one side, in order.
steps() {
	sed -n "/^$1\$/,/^\$/p" "$work/account" | sed -nE "s/^ +[0-9.]+  $2 +([A-Z]{3}[A-Z_]+).*/\\1/p" |
		tr '\n' ' '
}
follows() {
	local seen

	seen=$(steps "$1" "$2")
	[[ $seen =~ ^$3\ $ ]] && return
	printf '%s\n' "$seen"
	return 1
}
for transport in RoCE InfiniBand iWARP; do
	# rping does not wait for the end of its connection, so whether it sees that is a race.
	check "the client on $transport" follows "$transport" client \
		'ADDR_RESOLVED ROUTE_RESOLVED ESTABLISHED( DISCONNECTED)?'
	check "the server on $transport" follows "$transport" server \
		'CONNECT_REQUEST ESTABLISHED DISCONNECTED'
done

# Two hosts, where namespaces can be made.
if ! grep -q '^  not shown: ' "$work/account"; then
	check 'the client on another host' follows 'Two hosts' client 'ADDR_RESOLVED ROUTE_RESOLVED ESTABLISHED( DISCONNECTED)?'
	check 'the server on its host' follows 'Two hosts' server 'CONNECT_REQUEST ESTABLISHED DISCONNECTED'
fi

# The lengths that a program sees are those of the rules.
lengths() {
	sed -n "/^$1\$/,/^\$/p" "$work/account" >"$work/part"
	has "$work/part" "${@:2}"
}
check 'lengths on RoCE' lengths RoCE 'rdma_connect data, RDMA_PS_TCP  56 bytes, peer sees 56' \
	'private data 56 bytes' 'private data 196 bytes'
check 'lengths on InfiniBand' lengths InfiniBand 'private data 56 bytes' 'private data 196 bytes'
check 'lengths on iWARP' lengths iWARP 'rdma_connect data, RDMA_PS_TCP  251 bytes, exact length' \
	'private data 0 bytes'

check './demo without a build says what is wrong' eval \
	'exits 1 bash "$abs_top_srcdir/demo" --build "$work/nowhere" && [ -s "$work/err" ]'

finish
