#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Two hosts whose clocks differ by a day each write a trace, and polycm timeline draws them as one.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99
. "$abs_top_srcdir/tests/programs/hosts.sh" || exit 99

play_limit=60
here=$abs_top_srcdir/tests/programs
day=86400
need rping jq
hosts
# Where the kernel has no time namespaces, both clocks are the same.
later=(unshare -T --monotonic="$day" --boottime="$day" --fork --)
if "${two[@]}" "${later[@]}" true 2>/dev/null; then
	two+=("${later[@]}")
else
	day=0
fi
cd "$work" || exit 99

# comes TEXT...: each of them is drawn after the one before it, and below it.
comes() {
	local text row=0 next

	for text; do
		next=$(tail -n "+$((row + 1))" out | grep -nm1 -e "$text") && row=$((row + ${next%%:*})) && continue
		printf 'not drawn, or too early: %s\n' "$text"
		cat out
		return 1
	done
}

# What a trace says of the other clock is at most half a round trip wrong: is_measured TRACE SECONDS
is_measured() {
	jq -e -n --argjson ahead "$2" '[inputs | select(.kind == "clock")] | length > 0 and
		all((.offset - $ahead * 1000000000 | fabs) <= .round_trip / 2 + 1)' "$1" >/dev/null && return
	grep '"clock"' "$1"
	return 1
}

runs() {
	local trace

	play "$1"
	user mkdir "$work/$1"
	server_command=(env "POLYCM_OFI_TRACE=$work/$1/two.trace" rping -s -C 2)
	client_command=(env "POLYCM_OFI_TRACE=$work/$1/one.trace" rping -c -a "${address_two[0]}" -C 2)
	apart "$work/$1" || { head -n 20 "$work/$1"/{server,client}.{log,out}; return 1; }
	for trace in one two; do
		jq -nc -f "$here/trace-schema.jq" "$1/$trace.trace" >bad || return
		[ ! -s bad ] || { cat bad; return 1; }
	done
	is_measured "$1/one.trace" "$day" && is_measured "$1/two.trace" "-$day"
}

# In causal order, on both sides.
is_drawn() {
	local name=$1 requests

	exits 0 env COLUMNS=100 "${command[@]}" timeline "$1/one.trace" "$1/two.trace" || return
	[ ! -s err ] || { cat err; return 1; }
	shift
	comes "$@" || return
	# One column each, and one of the client's kernel if the last message comes too late for the client.
	counts out 1 '10\.99\.0\.1.*, rping +.*10\.99\.0\.2.*, rping( .*kernel)?$' || return
	requests=$(grep -cE -e "├(──|┄┄) (REQ|MPA_REQ)( |$)" out)
	[ "$requests" -eq 1 ] || { cat out; return 1; }
	# In the clock of either of them.
	cp out first && exits 0 env COLUMNS=100 "${command[@]}" timeline "$name/two.trace" "$name/one.trace" &&
		comes "$@"
}

for transport in "${transports[@]}"; do
	check "two traces on $transport" runs "$transport"
	if [ "$transport" = iwarp ]; then
		order=(LISTEN ' ROUTE_RESOLVED' '[ ─]SYN ' '[ ─]SYN_ACK ' '[ ─]MPA_REQ ' CONNECT_REQUEST '[ ─]MPA_REP ' 'CONNECT_RESPONSE\|ESTABLISHED' SEND)
	else
		order=(LISTEN ' ROUTE_RESOLVED' ' REQ ' REQ_RCVD CONNECT_REQUEST ' REP ' CONNECT_RESPONSE ' RTU ' 'id 2: ESTABLISHED' ' DREQ ')
	fi
	check "one drawing on $transport" is_drawn "$transport" "${order[@]}"
done

# Where no program runs, the sender answers in place of that host's kernel: both ends of the packet are its own.
is_answered() {
	play roce
	"${polycm_one[@]}" env "POLYCM_OFI_TRACE=$work/roce/alone.trace" rping -c -a "${address_two[0]}" -C 1 \
		>alone.log 2>&1 && return 1
	exits 0 env COLUMNS=100 "${command[@]}" timeline roce/alone.trace && [ ! -s err ] &&
	counts out 1 ', rping .*  10.99.0.2, not traced$' &&
	# In one line, or in two where the machine is slow.
	counts out 1 '├── REQ ─*▶│$|├┄┄ REQ \[1\] ┄*│$' &&
	counts out 1 '│◀─* REJ 8, nobody listens ──┤$' && ! grep 'open end' out && return
	cat alone.log out roce/alone.trace
	return 1
}
check 'a host on which no program runs' is_answered
finish
