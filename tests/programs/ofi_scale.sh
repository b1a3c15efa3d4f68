#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# ofi_scale.sh [peers[=NUMBER]] [connections[=NUMBER]] [kills[=NUMBER]]: the provider ofi with many. Without an argument
# a sample of each; by hand: ofi_scale.sh peers=1000 connections=10000 kills=100. What took how long is printed with
# VERBOSE=1. On the transports $SCALE_TRANSPORTS (default: roce ib iwarp).
#
#	peers		so many processes of other hosts are connected to a server (ofi_swarm.c): some ask and ping, some
#			close in the middle, never read, or send what means nothing. A client comes again and again
#			meanwhile; at the end the server has no descriptors and no memory of them
#	connections	one process of each host has so many connections with the other at the same time
#	kills		so often a client or a server is killed at any time; the next pair works at once
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99
. "$abs_top_srcdir/tests/programs/hosts.sh" || exit 99

need rping cmtime
IFS=' ' read -r -a transports <<<"${SCALE_TRANSPORTS-${transports[*]}}"
tests=("$@")
[ $# -gt 0 ] || tests=(peers=64 connections=200 kills=6)
play_limit=
for program in steps ofi_swarm; do
	built=$abs_top_builddir/tests/programs/$program
	[ ! -x "${built%/*}/.libs/$program" ] || built=${built%/*}/.libs/$program
	cp "$built" "$work/" && chmod go+rx "$work/$program" || exit 99
done
steps=$work/steps swarm=$work/ofi_swarm
hosts

say() { [ -z "${VERBOSE-}" ] || printf '%s: %s\n' "$transport" "$*"; }
milliseconds() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }

descriptors() { find "/proc/$1/fd" -mindepth 1 | wc -l; }
memory() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }

# settled PID NUMBER: it has no more descriptors than that, soon.
settled() {
	local try

	for ((try = 0; try < 200; try++)); do
		[ "$(descriptors "$1")" -gt "$2" ] || return 0
		sleep 0.05
	done
	printf 'after ten seconds the server has %s descriptors instead of %s\n' "$(descriptors "$1")" "$2"
	ls -l "/proc/$1/fd" | tail -n 5
	return 1
}

# An honest client, again and again until $folder/over is there: counts in $folder/rounds, the longest ms in $folder/longest.
honest() {
	local rounds=0 longest=0 began took

	until [ -e "$folder/over" ]; do
		began=$(milliseconds)
		if ! timeout 60 "${polycm_one[@]}" rping -c -a "${address_two[0]}" -C 20 -V >"$folder/honest.out" 2>"$folder/honest.log"; then
			echo "the honest client failed in round $rounds"
			tail -n 20 "$folder"/honest.{out,log}
			return 1
		fi
		took=$(($(milliseconds) - began))
		[ "$took" -le "$longest" ] || longest=$took
		rounds=$((rounds + 1))
	done
	echo "$rounds rounds, the longest $longest ms" >"$folder/rounds"
}

test_peers() {
	local number=$1 seconds=$(($1 < 500 ? 2 : 15)) rules before during memories=() roles round client swarmed most

	# Whoever looks for a host says the rules of its transport to it.
	"${one[@]}" "$swarm" rules "${address_one[2]}" "$gate" >"$folder/rules" 2>"$folder/rules.err" &
	started+=($!)
	round=$!
	listens one "$gate" || return
	"${polycm_two[@]}" "$steps" "to=${address_one[2]}" resolve=2000 event >"$folder/asks.out" 2>"$folder/asks.log"
	wait "$round" || { echo 'no rules'; return 1; }
	rules=$(cat "$folder/rules")

	start "$folder" "${polycm_two[@]}" rping -s -P -a "${address_two[0]}" || return
	timeout 60 "${polycm_one[@]}" rping -c -a "${address_two[0]}" -C 3 -V >"$folder/first.out" 2>"$folder/first.log" ||
		{ cat "$folder"/first.{out,log}; return 1; }
	settled "$server" 64 || return
	sleep 0.5
	before=$(descriptors "$server")
	memories=("$(memory "$server")")
	# First without those that never read.
	for roles in 0123467 0123467 01234567; do
		rm -f "$folder/over"
		honest & client=$!
		started+=("$client")
		"${one[@]}" "$swarm" "$transport" "$rules" "${address_two[0]}" "$gate" "$number" \
			"$((number < 500 ? 4 : 8))" "$seconds" "$roles" >"$folder/swarm.out" 2>&1 &
		swarmed=$!
		started+=("$swarmed")
		until grep -qs 'all there' "$folder/swarm.out" || ! kill -0 "$swarmed" 2>/dev/null; do sleep 0.05; done
		during=$(descriptors "$server")
		wait "$swarmed" || { echo 'the swarm is not served'; tail -n 20 "$folder/swarm.out"; return 1; }
		: >"$folder/over"
		wait "$client" || return
		settled "$server" "$before" || return
		memories+=("$(memory "$server")")
		say "$number peers: $(tr '\n' ';' <"$folder/swarm.out") the honest client: $(cat "$folder/rounds")," \
			"descriptors $before, $during, $(descriptors "$server"), KiB ${memories[*]}"
	done
	kill -0 "$server" || return
	# The first time it gets what it then reuses.
	most=$(awk '/^VmHWM/ { print $2 }' "/proc/$server/status")
	say "KiB at most: $most"
	[ "${memories[2]}" -le $((memories[1] + memories[1] / 10 + 1024)) ] && [ "$most" -le 400000 ] ||
		{ echo "memory grows: ${memories[*]}, at most $most KiB"; return 1; }
	kill "$server"
	wait "$server"
	started=()
}

test_connections() {
	local began

	began=$(milliseconds)
	server_command=(cmtime -c "$1") client_command=(cmtime -c "$1" -s "${address_two[0]}") server_stays=$1
	limit=600 apart "$folder" >"$folder/why" || { cat "$folder/why"; tail -n 20 "$folder"/*.out "$folder"/*.log; return 1; }
	counts "$folder/client.log" "$1" ': ESTABLISHED' || return
	say "$1 connections: $(($(milliseconds) - began)) ms: $(tail -n 8 "$folder/client.out" | tr -s ' \n' ' ;')"
}

serve_pings() {
	mkdir -p "$folder/server"
	start "$folder/server" "${polycm_two[@]}" rping -s -P -a "${address_two[0]}"
}
nothing_on_hosts() {
	local left

	"${polycm_one[@]}" ibv_devices >/dev/null 2>&1
	"${polycm_two[@]}" ibv_devices >/dev/null 2>&1
	left=$(find "$runtime" ! -type d)
	[ -z "$left" ] && return
	printf 'left: %s\n' "$left"
	return 1
}

test_kills() {
	local number=$1 round client who delay began took slowest_end=0 slowest_next=0 kills=(0 0)

	serve_pings || return
	for ((round = 1; round <= number; round++)); do
		"${polycm_one[@]}" rping -c -a "${address_two[0]}" -C 1000000 >"$folder/client.out" 2>"$folder/client.log" </dev/null &
		client=$!
		started+=("$client")
		delay=$((RANDOM % 800))
		[ $((round % 4)) -ne 0 ] || delay=$((RANDOM % 150))	# also while it starts and connects
		read -r -t "$((delay / 1000)).$(printf %03d $((delay % 1000)))" _ <>"$hosts_fifo"
		who=$((RANDOM % 2))
		kills[who]=$((kills[who] + 1))
		began=$(milliseconds)
		if [ "$who" -eq 0 ]; then
			kill -9 "$client"
			wait "$client" 2>/dev/null
		else
			kill -9 "$server"
			wait "$server" 2>/dev/null
			while kill -0 "$client" 2>/dev/null; do
				[ $(($(milliseconds) - began)) -lt 30000 ] || break
				# rping itself waits for its CQ's thread then, if rdma_connect() failed, as on iWARP.
				! grep -q '^connect error' "$folder/client.log" || kill "$client" 2>/dev/null
				read -r -t 0.02 _ <>"$hosts_fifo"
			done
			if kill -0 "$client" 2>/dev/null; then
				printf 'round %d: the client still runs 30 s after its server was killed, %d ms after it was started\n' \
					"$round" "$delay"
				tail -n 20 "$folder"/client.{out,log}
				return 1
			fi
			wait "$client" 2>/dev/null
			took=$(($(milliseconds) - began))
			[ "$took" -le "$slowest_end" ] || slowest_end=$took
			started=()
			serve_pings || { echo "round $round: the next server does not listen"; cat "$folder/server/server.log"; return 1; }
		fi
		# rping's server ends itself when a request is given up, as that of a client is that was killed.
		while kill -0 "$server" 2>/dev/null && grep -q '^cma event' "$folder/server/server.log"; do
			read -r -t 0.02 _ <>"$hosts_fifo"
		done
		if ! kill -0 "$server" 2>/dev/null; then
			wait "$server" 2>/dev/null
			serve_pings || { echo "round $round: the next server does not listen"; cat "$folder/server/server.log"; return 1; }
		fi
		began=$(milliseconds)
		if ! timeout 60 "${polycm_one[@]}" rping -c -a "${address_two[0]}" -C 3 -V >"$folder/next.out" 2>"$folder/next.log"; then
			printf 'round %d: the next pair fails; %s was killed after %d ms\n' "$round" "$who" "$delay"
			tail -n 20 "$folder"/next.{out,log} "$folder/server/server.log"
			return 1
		fi
		took=$(($(milliseconds) - began))
		[ "$took" -le "$slowest_next" ] || slowest_next=$took
	done
	kill -9 "$server"
	wait "$server" 2>/dev/null
	started=()
	say "${kills[0]} clients and ${kills[1]} servers killed: a client ended after $slowest_end ms at most, the next one" \
		"took $slowest_next ms at most"
	nothing_on_hosts
}

on_transport() {
	local test began status=0

	trap - EXIT
	trap 'stop_started; exit 143' INT TERM HUP
	for test in "${tests[@]}"; do
		folder=$work/$transport-${test%=*}
		mkdir -p "$folder"
		"test_${test%=*}" "${test#*=}" && continue
		echo "FAILED: $test on $transport"
		stop_started
		status=1
	done
	return $status
}

gate=14791
for transport in "${transports[@]}"; do
	gate=$((gate + 1))
	play "$transport" "$gate"
	check "${tests[*]} on $transport" on_transport
done
finish
