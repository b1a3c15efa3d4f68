#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2317,SC2015 # functions are called by name; A && B || C is meant
#
# ofi_matrix.sh [all | CELL...]: the provider ofi between two hosts: each transport, with the data over TCP ("none") and
# over each of libfabric's providers that need no card, and each operation. Without an argument a sample. CELL is
# TRANSPORT/FABRIC/OPERATION, as in a line about a failed one; each part may be a pattern: 'ib/*/ud'. A cell passes only if
# the data of both directions went the way that it should, and all bytes were right (ops.c). Each failed cell is a line
# with the reason; with an argument a table follows.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99
. "$abs_top_srcdir/tests/programs/hosts.sh" || exit 99

fabrics=(none net 'tcp;ofi_rxm' 'udp;ofi_rxd' sockets)

# NAME | transports | the kind and the operations of ops.c | what happens meanwhile
operations=(
	'send|roce ib iwarp|rc send|'
	'write|roce ib iwarp|rc write|'
	'read|roce ib iwarp|rc read|'
	'sleep|roce ib iwarp|rc sleep send write read|'
	'atomic|roce ib|rc atomic|'
	'imm|roce ib|rc imm|'
	'srq|roce ib iwarp|srq send|'
	'ud|roce ib|ud send imm|'
	'cm|roce ib iwarp|rc reject write|'
	'cm-ud|roce ib|ud reject send|'
	'killed|roce ib iwarp|rc send write|killed'
	'stopped|roce ib iwarp|rc send write|stopped'
	'cut|roce ib iwarp|rc send write read|cut'
)

# Each transport, each way and each operation.
sample='
	roce/net/srq roce/sockets/read roce/udp;ofi_rxd/atomic roce/net/cut
	ib/net/imm ib/tcp;ofi_rxm/ud ib/none/cm-ud ib/udp;ofi_rxd/killed
	iwarp/net/write iwarp/tcp;ofi_rxm/sleep iwarp/sockets/send iwarp/none/cm
'

chosen=("$@")
[ $# -gt 0 ] || IFS=$' \t\n' read -r -d '' -a chosen <<<"$sample"
[ "${1-}" != all ] || chosen=('*/*/*')
libfabric=1
[ -e "$copy/lib/polycm/ofi-carrier.so" ] || libfabric=
play_limit=	# ops has one itself
limit=120
ops=$abs_top_builddir/tests/programs/ops
[ ! -x "${ops%/*}/.libs/ops" ] || ops=${ops%/*}/.libs/ops
cp "$ops" "$work/" && ops=$work/ops && chmod go+rx "$ops" || exit 99

is_chosen() {
	local pattern

	for pattern in "${chosen[@]}"; do
		# shellcheck disable=SC2053 # a pattern
		[[ $1 != $pattern ]] || return 0
	done
	return 1
}

over() { grep -qsF "data goes over libfabric's $fabric " "$folder/$1.log"; }
known() { has_ended "$client" || not_there || { over client && over server; }; }
not_there() { grep -qsF 'no fabric of POLYCM_OFI_FABRIC' "$folder/client.log"; }
connected() { has_ended "$client" || grep -qs '^connected' "$folder/client.out"; }
has_ended() { ! kill -0 "$1" 2>/dev/null; }

# fails_with REASON...
fails_with() {
	printf '%s\n' "$*"
	[ -z "${VERBOSE-}" ] || tail -n 20 "$folder"/{client,server}.{out,log} >&2
	return 1
}

last() { tail -qn 1 "$folder/client.out" "$folder/server.out" | paste -sd'|' | sed 's/|/, server: /'; }

# ends STATUS: of the client, soon.
ends() {
	local status

	until_it "$limit" has_ended "$client" || { fails_with 'the client does not end'; return; }
	wait "$client" 2>/dev/null
	status=$?
	[ "$status" -eq "$1" ] || fails_with "the client ends with status $status instead of $1 ($(last))"
}

server_ends() {
	until_it "$limit" has_ended "$server" || { fails_with 'the server does not end'; return; }
	wait "$server" || fails_with "the server fails ($(last))"
}

meanwhile_() {
	kill -USR1 "$client" && ends 0 && server_ends || return
	! grep -qs '[1-9][0-9]* datagrams repeated' "$folder/client.out" || { fails_with "datagrams got lost ($(last))"; return; }
	! grep -hsE 'carrier .* fails' "$folder"/{client,server}.log
}

# The end of the TCP connection says it, whatever the carrier does.
meanwhile_killed() {
	kill -KILL "$server"
	wait "$server" 2>/dev/null
	ends 3 && grep -qsE '^(event: RDMA_CM_EVENT_DISCONNECTED|completion: (transport retry|Work Request Flushed))' "$folder/client.out" ||
		fails_with "it says something else ($(last))"
}

# Its peer waits, and whatever carries the data does not count as broken.
meanwhile_stopped() {
	kill -STOP "$server"
	sleep 3
	kill -CONT "$server"
	meanwhile_
}

# Shorter than the time-outs of a QP.
meanwhile_cut() {
	lose
	sleep 1
	deliver
	kill -USR1 "$client" && ends 0 && server_ends
}

run_cell() {
	local words

	read -r -a words <<<"$what"
	start "$folder" "${polycm_two[@]}" "$ops" serve "${words[0]}" || { fails_with 'the server does not listen'; return; }
	"${polycm_one[@]}" "$ops" ask "${address_two[0]}" "${words[@]}" >"$folder/client.out" 2>"$folder/client.log" </dev/null &
	client=$!
	started+=("$client")
	until_it "$limit" connected || { fails_with 'it does not connect'; return; }
	if [ "$fabric" != none ]; then
		until_it "$limit" known || { fails_with "no data goes over it$(over client && echo ' to the client')"; return; }
		! not_there || { echo 'not there'; return 2; }
	fi
	! has_ended "$client" || { ends 0; return; }
	"meanwhile_$event" || return
	[ "$fabric" != none ] || ! over client || fails_with 'data goes over libfabric'
}

cells_of() {
	local transport=$1 row name transports what event fabric cell began status folder client server reader

	trap - EXIT
	trap 'stop_started; exit 143' INT TERM HUP
	hosts
	for fabric in "${fabrics[@]}"; do
		play_settings=("POLYCM_OFI_FABRIC=$fabric")
		play "$transport"
		for row in "${operations[@]}"; do
			IFS='|' read -r name transports what event <<<"$row"
			cell=$transport/$fabric/$name
			[[ " $transports " = *" $transport "* ]] && is_chosen "$cell" || continue
			[ -n "$libfabric" ] || [ "$fabric" = none ] || { echo "missing $cell"; continue; }
			folder=$work/$transport-$name-${fabric//;/-} started=()
			mkdir -p "$folder"
			began=${EPOCHREALTIME/[.,]/}
			run_cell >"$folder/report"
			status=$?
			kill -KILL "${started[@]}" 2>/dev/null
			wait "${started[@]}" 2>/dev/null
			case $status in
			0) echo "passed $cell" ;;
			2) echo "missing $cell" ;;
			*) echo "FAILED: $cell: $(paste -sd' ' "$folder/report")" ;;
			esac
			[ -z "${VERBOSE-}" ] || echo "$cell: $(((${EPOCHREALTIME/[.,]/} - began) / 1000)) ms, $(last)"
		done
	done
	hosts_down
}

# state CELL: passed, missing, FAILED, or nothing if it did not run.
state() {
	local state

	for state in passed missing FAILED:; do
		! grep -qE "^$state $1(: |\$)" "$work"/*.report || echo "${state%:}"
	done
}

table() {
	local row name transports fabric transport state states

	printf '%-9s' ''
	printf '%-16s' "${fabrics[@]}"
	for row in "${operations[@]}"; do
		IFS='|' read -r name transports _ <<<"$row"
		printf '\n%-9s' "$name"
		for fabric in "${fabrics[@]}"; do
			states=''
			for transport in $transports; do
				state=$(state "$transport/$fabric/$name")
				[ "$state" = passed ] && states+=" $transport" || states+=" ${state:--}"
			done
			printf '%-16s' "${states# }"
		done
	done
	echo
}

workers=()
for transport in "${transports[@]}"; do
	cells_of "$transport" >"$work/$transport.report" &
	workers+=($!)
	started+=($!)
done
for worker in "${!workers[@]}"; do
	report=$work/${transports[worker]}.report
	wait "${workers[worker]}"
	status=$?
	grep -v '^passed' "$report"
	passed=$((passed + $(grep -c '^passed' "$report")))
	failed=$((failed + $(grep -c '^FAILED' "$report")))
	[ "$status" -eq 0 ] || exit "$status"
done
started=()
[ $# -eq 0 ] || table
finish
