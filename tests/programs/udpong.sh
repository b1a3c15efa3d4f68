#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# udpong over datagram rsockets on InfiniBand, echoing: no datagram is lost there. Those of its other tests may be, as
# on a device, and then it depends on time-outs that librdmacm before 63 loses.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need udpong
limit=60
fabric=test-$$-ib
# Not loopback's: udpong follows the PD that an id bound to that has not.
read -r address _ < <(hostname -I)
case ${address-} in
*.*) ;;
*) skip 'the host has no IPv4 address but loopback' ;;
esac

# Its server says nothing when it is bound, and a client that comes earlier is lost (see above).
bound() {
	local hex

	printf -v hex ':%04X' "$1"
	until grep -q "$hex 00000000:0000" /proc/net/udp; do
		kill -0 "$server" 2>/dev/null || return
	done
}

# echoes PORT SIZE COUNT
echoes() {
	local run=("${command[@]}" run --transport ib --fabric "$fabric" --) args=(-p "$1" -T e -S "$2" -C "$3") status

	"${run[@]}" udpong -b "$address" "${args[@]}" >"$work/server" 2>&1 </dev/null &
	server=$!
	started+=("$server")
	bound "$1" && "${run[@]}" udpong -s "$address" "${args[@]}" >"$work/client" 2>&1 </dev/null
	status=$?
	stop_started
	wait "$server"
	[ "$status" -eq 0 ] && counts "$work/client" 1 '^custom ' && return
	cat "$work"/{server,client}
	return 1
}

port=$((20000 + $$ % 20000))
for size in 16 64 1500; do
	check "echo of $size bytes" echoes "$((port++))" "$size" 1000
done
polycm run --transport ib --fabric "$fabric" ibv_devices >/dev/null
check 'nothing is left of the simulated network' nothing_left
finish
