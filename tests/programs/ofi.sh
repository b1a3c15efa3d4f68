#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Programs on two hosts, with the provider ofi: a sample, on each transport. More: ofi_failures.sh, and `more -p ofi'.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99
. "$abs_top_srcdir/tests/programs/hosts.sh" || exit 99


play_limit=60
need rping ucmatose udaddy rdma_server rdma_client
steps=$abs_top_builddir/tests/programs/steps
[ ! -x "${steps%/*}/.libs/steps" ] || steps=${steps%/*}/.libs/steps
cp "$steps" "$work/" && steps=$work/steps && chmod go+rx "$steps" || exit 99
hosts

# runs NAME [PORT]: ${server_command[@]} and ${client_command[@]} end well.
runs() {
	local folder=$work/$transport

	apart "$folder" ${2+"$2"} >"$folder/why" && return
	printf '%s on %s: %s\n' "$1" "$transport" "$(cat "$folder/why")"
	tail -n 20 "$folder"/{server,client}.{out,log}
	return 1
}

# By IPv4 and by IPv6, and by an address that a listener on all of them has, too.
run_rping() {
	local address

	for address in "${address_two[@]}"; do
		server_command=(rping -s -C 3 -v -V) client_command=(rping -c -a "$address" -C 3 -v -V)
		# Its listener on all addresses is one of IPv4, unless it is told otherwise.
		[ "$address" != "${address_two[1]}" ] || server_command+=(-a "$address")
		runs "rping at $address" && counts "$work/$transport/client.out" 3 '^ping data: rdma-ping-[0-9]: ' || return
	done
}

run_ucmatose() {
	server_command=(ucmatose -c 5) client_command=(ucmatose -c 5 -s "${address_two[0]}")
	runs ucmatose && counts "$work/$transport/client.out" 1 '^return status 0$'
}

run_udaddy() {
	server_command=(udaddy -c 2) client_command=(udaddy -c 2 -s "${address_two[0]}")
	[ "$transport" = iwarp ] || runs udaddy && counts "$work/$transport/client.out" 1 '^return status 0$'
}

run_rdma_client() {
	server_command=(rdma_server) client_command=(rdma_client -s "${address_two[0]}")
	runs rdma_client && counts "$work/$transport/client.out" 1 '^rdma_client: end 0$'
}

# It connects twice, and does not wait until the server listens again.
run_ib_send_bw() {
	local try

	command -v ib_send_bw >/dev/null || return 0
	server_command=(ib_send_bw -R -n 50) client_command=(ib_send_bw -R -n 50 "${address_two[0]}")
	for try in 1 2 3 4 5; do
		runs ib_send_bw >"$work/$transport/report" && return
		stop_started
		grep -qE 'rdma_connect: Connection refused|REJECTED; error: 8|produce a report' "$work/$transport"/*.log || break
	done
	cat "$work/$transport/report"
	return 1
}

# QPs whose numbers the programs tell each other by TCP: found by GID on RoCE, by LID on InfiniBand.
run_pingpong() {
	local options=(-p "$((gate + 10))" -n 100) program

	[ "$transport" = iwarp ] || ! command -v ibv_rc_pingpong >/dev/null && return
	[ "$transport" = ib ] || options+=(-g 0)
	for program in ibv_rc_pingpong ibv_ud_pingpong; do
		server_command=("$program" "${options[@]}") client_command=("$program" "${options[@]}" "${address_two[0]}")
		runs "$program" "$((gate + 10))" || return
	done
}

# Nobody on the host, and then somebody who listens at another port, and who serves others meanwhile.
run_refused() {
	local folder=$work/$transport asks=("${polycm_one[@]}" "$steps" "to=${address_two[0]}") refusal=(connect REJECTED:8)

	# rdma_connect() itself says so, and steps with it.
	[ "$transport" != iwarp ] || refusal=(connect)
	asks+=(port=7000 resolve ADDR_RESOLVED route ROUTE_RESOLVED "${refusal[@]}")
	refused() {
		local expected=0

		[ "$transport" != iwarp ] || expected=1
		"${asks[@]}" >"$folder/out" 2>&1
		[ $? -eq $expected ] && has "$folder/out" 'nobody listens on that port' && return
		cat "$folder/out"
		return 1
	}
	refused && start "$folder" "${polycm_two[@]}" "$steps" listen accept DISCONNECTED && refused &&
	"${polycm_one[@]}" "$steps" "to=${address_two[0]}" reach disconnect DISCONNECTED >"$folder/out" 2>&1 &&
	wait "$server"
}

# Two processes of one host, and a client of both.
run_two_servers() {
	local folder=$work/$transport first status

	mkdir -p "$folder/first"
	start "$folder/first" "${polycm_two[@]}" "$steps" port=7001 listen accept DISCONNECTED || return
	first=$server
	start "$folder" "${polycm_two[@]}" "$steps" port=7002 listen accept DISCONNECTED || return
	"${polycm_one[@]}" "$steps" "to=${address_two[0]}" port=7001 reach port=7002 reach disconnect DISCONNECTED \
		>"$folder/out" 2>&1
	status=$?
	wait "$first" "$server" && return "$status"
}

on_transport() {
	local step

	trap - EXIT
	trap 'stop_started; exit 143' INT TERM HUP
	mkdir -p "$work/$transport"
	for step in rping ucmatose udaddy rdma_client ib_send_bw pingpong refused two_servers; do
		SECONDS=0
		if ! "run_$step"; then
			printf '%s failed on %s\n' "$step" "$transport"
			stop_started
			return 1
		fi
		[ -z "${VERBOSE-}" ] || echo "$step on $transport: $SECONDS s"
		started=()
	done
}

workers=()
for transport in "${transports[@]}"; do
	gate=$((14791 + ${#workers[@]}))
	play "$transport" "$gate"
	on_transport >"$work/$transport.report" 2>&1 &
	workers+=($!)
	started+=($!)
done
for worker in "${!workers[@]}"; do
	check "programs on ${transports[worker]}" wait "${workers[worker]}"
	cat "$work/${transports[worker]}.report"
done
started=()
nothing_there() {
	local process left

	left=$(find "$runtime" ! -type d)
	for process in /proc/[0-9]*; do
		case $(readlink "$process/ns/net") in
		"$(readlink "/proc/$pid_one/ns/net")" | "$(readlink "/proc/$pid_two/ns/net")")
			[ "${process#/proc/}" = "$pid_one" ] || [ "${process#/proc/}" = "$pid_two" ] ||
				left+=" $(tr '\0' ' ' <"$process/cmdline")"
			;;
		esac
	done
	[ -z "$left" ] && return
	printf 'left: %s\n' "$left"
	return 1
}
check 'nothing is left' nothing_there
finish
