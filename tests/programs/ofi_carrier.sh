#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Programs on two hosts whose data goes over libfabric: POLYCM_OFI_FABRIC with providers that need no hardware. It
# changes there from TCP while they run, and back when it works no more. Without libfabric the test is skipped.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99
. "$abs_top_srcdir/tests/programs/hosts.sh" || exit 99

need rping
[ -e "$copy/lib/polycm/ofi-carrier.so" ] || skip 'built without libfabric'
hosts
play_limit=

over_both() {
	grep -qsF "libfabric's $fabric " "$folder/client.log" && grep -qsF "libfabric's $fabric " "$folder/server.log"
}
not_there() { grep -qsF "no fabric of POLYCM_OFI_FABRIC" "$folder/client.log"; }
known() { over_both || not_there; }
pings() { grep -cs '^ping data: ' "$folder/client.out"; }
pinged() { [ "$(pings)" -ge "$1" ]; }

# A server and a client that go on until somebody ends them: $client, $server.
start_rping() {
	start "$folder" "${polycm_two[@]}" rping -s -V -S 9000 || return
	"${polycm_one[@]}" stdbuf -oL rping -c -a "${address_two[0]}" -V -v -S 9000 >"$folder/client.out" \
		2>"$folder/client.log" </dev/null &
	client=$!
	started+=("$client")
	until_it 30 known && return
	echo 'nothing is said of the fabric'
	failed
}

failed() {
	kill -KILL "$client" "$server" 2>/dev/null
	tail -n 20 "$folder"/{server,client}.{out,log} | cut -c1-160
	return 1
}

# A signal does what it does without libfabric, whose libraries set actions of their own.
ends_by_signal() {
	local status

	kill -TERM "$client"
	wait "$client" 2>/dev/null
	status=$?
	[ "$status" = 143 ] || { echo "SIGTERM ends the client with status $status"; return 1; }
}

# Data goes on, checked by both, after the change.
run_change() {
	local seen

	seen=$(pings)
	until_it 30 pinged $((seen + 20)) || { echo 'nothing arrives'; return 1; }
	ends_by_signal || return
	until_it 20 server_ended || { echo 'the server does not notice'; return 1; }
	wait "$server"
	lacks "$folder/client.log" 'carrier' && lacks "$folder/server.log" 'carrier' &&
		lacks "$folder/client.out" 'data mismatch' && lacks "$folder/client.log" ' refused: '
}

# The other process is killed: the end of the stream says it, whatever the carrier does.
run_kill() {
	kill -KILL "$server"
	wait "$server" 2>/dev/null
	until_it 20 ended || { echo 'the client does not notice'; return 1; }
	wait "$client" 2>/dev/null
	true
}
server_ended() { ! kill -0 "$server" 2>/dev/null; }
ended() { ! kill -0 "$client" 2>/dev/null; }

on_fabric() {
	local step

	folder=$work/$number
	for step in change kill; do
		rm -rf "$folder"
		mkdir -p "$folder"
		started=()
		start_rping || return
		if not_there; then
			printf 'not there: %s\n' "$fabric"
			kill -KILL "$client" "$server" 2>/dev/null
			wait "$client" "$server" 2>/dev/null
			return
		fi
		"run_$step" && continue
		printf '%s failed over %s\n' "$step" "$fabric"
		failed
		return
	done
}

number=0
for fabric in net 'tcp;ofi_rxm' 'udp;ofi_rxd'; do
	play_settings=("POLYCM_OFI_FABRIC=$fabric")
	play roce $((14791 + number))
	number=$((number + 1))
	check "data over $fabric" on_fabric
done

# A name that is none, on one host: TCP, and a line that says so.
folder=$work/none fabric=nothing
mkdir -p "$folder"
play_settings=("POLYCM_OFI_FABRIC=$fabric")
play roce 14799
no_fabric() {
	local status

	start_rping || return
	not_there || { echo 'it is there'; return 1; }
	seen=$(pings)
	until_it 30 pinged $((seen + 20))
	status=$?
	ends_by_signal || return
	until_it 20 server_ended || return
	wait "$server"
	return "$status"
}
check 'a fabric that is not there' no_fabric
finish
