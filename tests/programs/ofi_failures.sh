#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# ofi_failures.sh [TEST]...: what programs on two hosts see when a process is killed or stopped, when the cable is cut,
# when nobody answers, or somebody who is not wanted. Each transport has its two hosts, and all tests one after the other.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99
. "$abs_top_srcdir/tests/programs/hosts.sh" || exit 99

all=(killed killed_while_connecting stopped stopped_member one_after_another cut_shortly cut_long cut_idle cut_under_way
     unplugged another_transport port_taken keys nobody_there later forked fork_keeps_nothing)
[ $# -eq 0 ] || all=("$@")

play_limit=	# steps has one itself
steps=$abs_top_builddir/tests/programs/steps
[ ! -x "${steps%/*}/.libs/steps" ] || steps=${steps%/*}/.libs/steps
cp "$steps" "$work/" && steps=$work/steps && chmod go+rx "$steps" || exit 99
need mkfifo

# The ends: what they printed is in $folder/NAME.out, and what polycm did in NAME.log.
serve() {
	mkdir -p "$folder/$1" &&
	start "$folder/$1" "${polycm_two[@]}" "$steps" "${@:2}" || return
	ln -sf "$1/server.out" "$folder/$1.out"
}
ask() {
	"${polycm_one[@]}" "$steps" "to=${address_two[0]}" "${@:2}" >"$folder/$1.out" 2>"$folder/$1.log" </dev/null &
	client=$!
	started+=("$client")
}
asked() {
	ask "$@"
	wait "$client"
}

# fifo NAME...: for steps that wait there. at NAME returns when one does, which then goes on.
fifo() {
	rm -f "${@/#/$folder/}"
	mkfifo -m 644 "${@/#/$folder/}"
}
at() { timeout 60 sh -c ': >"$0"' "$folder/$1" || { echo "nobody came to $1"; return 1; }; }

# killed PROCESS: and its shell does not say so.
killed() {
	kill -9 "$1"
	wait "$1" 2>/dev/null
	true
}

# took NAME WHAT MIN MAX: what came last, an event or a completion that begins so, came after so many ms.
took() {
	local ms

	ms=$(sed -n "s/^$2.*, \([0-9]*\) ms\$/\1/p" "$folder/$1.out" | tail -n 1)
	[ -n "$ms" ] && [ "$ms" -ge "$3" ] && [ "$ms" -le "$4" ] && return
	printf '%s: %s after %s ms, expected %s to %s\n' "$1" "$2" "${ms:-no}" "$3" "$4"
	return 1
}
slow=3000	# ms, for what comes at once on a machine that has other things to do

# Time-outs of QPs: 67 ms, at most 8 of them.
short=(ack=14 retry=7)
gone='transport retry counter exceeded'

# Its host's kernel tells at once; QPs find out by themselves, and those of iWARP with the stream.
test_killed() {
	fifo accepted connected
	serve server listen accept at="$folder/accepted" recv wc=success || return
	ask client "${short[@]}" reach at="$folder/connected" DISCONNECTED write wc="$gone_or_flushed"
	at accepted && at connected && killed "$server" && wait "$client" && took client DISCONNECTED 0 "$slow"
}

# One has been asked, and one waits for an answer.
test_killed_while_connecting() {
	local answer=REJECTED:28

	[ "$transport" != iwarp ] || answer=REJECTED:-104
	fifo asked answered
	serve server listen CONNECT_REQUEST at="$folder/asked" event || return
	ask client resolve ADDR_RESOLVED route ROUTE_RESOLVED connect "$answer"
	at asked && killed "$server" && wait "$client" && took client "${answer%:*}" 0 "$slow" || return

	serve server listen CONNECT_REQUEST at="$folder/asked" at="$folder/answered" answer event || return
	ask client resolve ADDR_RESOLVED route ROUTE_RESOLVED connect event
	at asked && killed "$client" && sleep 0.1 && at answered || return
	# There is no event before it answers, and then that fails, or it is told.
	SECONDS=0
	wait "$server"
	[ "$SECONDS" -le 3 ] && grep -E '^(rdma_create_qp|rdma_accept|REJECTED|DISCONNECTED|CONNECT_ERROR)' "$folder/server.out"
}

# The server has not closed its end of the first one's connection when the second one comes, which has other numbers.
test_one_after_another() {
	serve server listen accept DISCONNECTED accept DISCONNECTED || return
	asked client reach && asked client reach && wait "$server"
}

# Its host answers as its card would: whoever waits goes on waiting, however long its time-outs are.
test_stopped() {
	fifo connected stopped
	serve server listen accept DISCONNECTED || return
	ask client "${short[@]}" reach at="$folder/connected" at="$folder/stopped" write wc=success read wc=success disconnect DISCONNECTED
	at connected || return
	kill -STOP "$server"
	at stopped
	sleep 1.5
	kill -CONT "$server"
	wait "$client" "$server"
}

# It may be that one to which a connection comes first.
test_stopped_member() {
	local other

	fifo never
	serve other port=7001 listen at="$folder/never" || return
	other=$server
	for _ in 1 2 3 4 5; do
		serve server listen accept DISCONNECTED || return
		kill -STOP "$other"
		asked client reach disconnect DISCONNECTED || return
		kill -CONT "$other"
		wait "$server" || return
	done
	killed "$other"
}

# TCP repeats what got lost, and nothing else counts.
test_cut_shortly() {
	fifo connected cut
	serve server listen accept DISCONNECTED || return
	ask client "${short[@]}" reach at="$folder/connected" at="$folder/cut" write wc=success disconnect DISCONNECTED
	at connected && lose && at cut && sleep 0.5 && deliver && wait "$client" "$server"
}

# The QP gives up, and the connection ends when its DREQs get no answer; a new one is made when the cable is back.
test_cut_long() {
	fifo connected cut again
	serve server listen accept accept DISCONNECTED || return
	ask client ack=14 retry=1 reach at="$folder/connected" at="$folder/cut" write wc="$gone" \
		at="$folder/again" reach disconnect DISCONNECTED
	[ "$transport" != iwarp ] || { killed "$client"; killed "$server"; return; }
	at connected && lose && at cut && at again && deliver && wait "$client" "$server"
}

# The stream ends meanwhile, and another one takes its place.
test_cut_idle() {
	fifo connected back
	serve server listen accept DISCONNECTED || return
	ask client reach at="$folder/connected" at="$folder/back" write wc=success read wc=success disconnect DISCONNECTED
	at connected && lose && sleep 6 && deliver && at back && wait "$client" "$server" && took client DISCONNECTED 0 "$slow"
}

# TCP would repeat it ever less often, and for as long as the cut was after it.
test_cut_under_way() {
	fifo connected cut back
	serve server listen accept DISCONNECTED || return
	ask client ack=19 reach at="$folder/connected" at="$folder/cut" write at="$folder/back" wc=success disconnect DISCONNECTED
	at connected && lose && at cut && sleep 13 && deliver && at back && wait "$client" "$server" || return
	# On iWARP the QP asks as rarely as TCP, so on a slow machine it may be that late.
	[ "$transport" = iwarp ] || took client wc 0 5000
}

test_unplugged() {
	fifo connected back
	serve server listen accept DISCONNECTED || return
	ask client reach at="$folder/connected" at="$folder/back" write wc=success disconnect DISCONNECTED
	at connected && unplug && sleep 1 && plug && at back && wait "$client" "$server"
}

test_another_transport() {
	local other=roce

	[ "$transport" != roce ] || other=ib
	serve server listen accept DISCONNECTED || return
	play "$other"
	asked client resolve ADDR_ERROR:-19
	status=$?
	play "$transport"
	[ "$status" -eq 0 ] && has "$folder/client.log" 'POLYCM_OFI_TRANSPORT must be the same' &&
		lacks "$folder/client.log" '(0)' || return
	# Others are served. When the server has ended, its log has been written to its end.
	asked client reach disconnect DISCONNECTED && wait "$server" && wait "$reader" &&
		has "$folder/server/server.log" 'POLYCM_OFI_TRANSPORT must be the same'
}

# By programs of the same user with another transport: the log says why, and not that an RDMA port is taken.
test_port_taken() {
	local other=roce status

	[ "$transport" != roce ] || other=ib
	serve server listen accept DISCONNECTED || return
	play "$other"
	"${polycm_two[@]}" "$steps" listen >"$folder/other.out" 2>"$folder/other.log" </dev/null
	status=$?
	play "$transport"
	[ "$status" -ne 0 ] && has "$folder/other.log" "or another transport's: set POLYCM_OFI_PORT" &&
		has "$folder/other.log" '(TCP port 14791 of this host cannot be used)' || return
	asked client reach disconnect DISCONNECTED && wait "$server"
}

# with KEY COMMAND...: the setting of who is started.
with() {
	local status

	play_settings=(${1:+"POLYCM_OFI_KEY=$folder/$1"})
	play "$transport"
	"${@:2}"
	status=$?
	play_settings=()
	play "$transport"
	return "$status"
}
test_keys() {
	local key

	for key in key other; do
		echo "the $key" >"$folder/$key" && chmod 600 "$folder/$key" &&
			{ [ ${#as_user[@]} -eq 0 ] || chown 65534 "$folder/$key"; } || return
	done
	with key serve server listen accept DISCONNECTED || return
	for key in other ''; do
		with "$key" asked client resolve ADDR_ERROR:-19 &&
			has "$folder/client.log" 'POLYCM_OFI_KEY must name a file with the same key' || return
	done
	with key asked client reach disconnect DISCONNECTED && wait "$server"
}

# No host, with less and with more patience than ARP has, and no way to one.
test_nobody_there() {
	asked client to=10.99.0.77 resolve=700 ADDR_ERROR:-110 && took client ADDR_ERROR 600 "$slow" || return
	asked client to=10.99.0.77 resolve=4500 ADDR_ERROR:-110 && took client ADDR_ERROR 4300 $((4500 + slow)) || return
	asked client to=203.0.113.1 resolve && { echo 'there is a way to it'; return 1; }
	has "$folder/client.out" 'Network is unreachable' || return
	# A host without a program of polycm rejects, as one on which nobody listens; the log tells them apart.
	asked client reach
	has "$folder/client.log" "host ${address_two[0]} refuses TCP port 14791: no polycm program listens there"
}

# Addresses of either host that are there later than the program, and a host that is.
test_later() {
	fifo started absent
	serve server listen accept accept DISCONNECTED || return
	ask client to=10.99.0.50 resolve=300 ADDR_ERROR:-110 at="$folder/absent" reach \
		to=10.99.0.51 bind destroy "to=${address_two[0]}" reach disconnect DISCONNECTED
	at absent &&
	on two ip addr add 10.99.0.50/24 dev eth0 && on one ip addr add 10.99.0.51/24 dev eth0 &&
	wait "$client" && wait "$server"
}

# Parent and child serve, each at its own port.
test_forked() {
	fifo listens
	serve server port=7001 listen fork accept DISCONNECTED destroy child port=7002 listen at="$folder/listens" \
		accept DISCONNECTED || return
	at listens &&
	asked client port=7001 reach disconnect DISCONNECTED port=7002 reach disconnect DISCONNECTED &&
	wait "$server"
}

# A child that does nothing does not keep the parent's connections open.
test_fork_keeps_nothing() {
	fifo connected waits
	serve server listen accept fork recv wc=success child at="$folder/waits" || return
	ask client reach at="$folder/connected" DISCONNECTED
	at connected && grep -q "^at .*waits" <(tail -n +1 -f --pid="$server" "$folder/server/server.out") || return
	killed "$server"
	wait "$client" && took client DISCONNECTED 0 "$slow" && at waits
}

on_transport() {
	local test folder began status=0

	trap - EXIT
	trap 'stop_started; exit 143' INT TERM HUP
	hosts
	play "$transport"
	gone_or_flushed=$gone
	[ "$transport" != iwarp ] || gone_or_flushed='Work Request Flushed Error'
	for test in "${all[@]}"; do
		folder=$work/$transport-$test
		mkdir "$folder" && { [ ${#as_user[@]} -eq 0 ] || chown 65534 "$folder"; } || exit 99
		started=()
		began=$EPOCHSECONDS
		if "test_$test" >"$folder/report" 2>&1; then
			echo "passed $test"
		else
			echo "FAILED: $test on $transport"
			(cd "$folder" && tail -n +1 report ./*.out ./*.log ./*/*.log)
			status=1
			kill -CONT "${started[@]}" 2>/dev/null
			deliver 2>/dev/null
		fi
		stop_started
		[ -z "${VERBOSE-}" ] || echo "$test on $transport: $((EPOCHSECONDS - began)) s"
	done
	"${polycm_one[@]}" ibv_devices >/dev/null 2>&1
	"${polycm_two[@]}" ibv_devices >/dev/null 2>&1
	hosts_down
	exit $status
}

workers=()
for transport in "${transports[@]}"; do
	on_transport >"$work/$transport.report" 2>&1 &
	workers+=($!)
	started+=($!)
done
for worker in "${!workers[@]}"; do
	transport=${transports[worker]}
	wait "${workers[worker]}"
	status=$?
	grep -v '^passed' "$work/$transport.report"
	passed=$((passed + $(grep -c '^passed' "$work/$transport.report")))
	failed=$((failed + $(grep -c '^FAILED' "$work/$transport.report")))
	[ "$status" -le 1 ] || exit "$status"
done
started=()
check 'nothing is left' nothing_left
finish
