#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Preemptions: polycm explore holds threads of several programs up, as a busy machine does, finds what fails by that
# alone, and shortens it to what is needed; a scenario file with the preemptions repeats it.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rping ib_send_bw
need_turns
: "${CC:=cc}"
cat >"$work/calm.scenario" <<'END'
nodes = (
	{ name = "server"; devices = ( { transport = "roce"; addresses = "10.0.0.1/24"; } ); },
	{ name = "client"; devices = ( { transport = "roce"; addresses = "10.0.0.2/24"; } ); }
);
explore = { loss = 0.0; duplication = 0.0; reordering = 0.0; lateness = 0.0; };
END

# with GROUP...: the scenario with that in it.
with() {
	cat "$work/calm.scenario" >"$work/with.scenario"
	printf '%s\n' "$@" >>"$work/with.scenario"
}

# explored SEEDS ARG...: finds a failure, which goes into $work/found, and the replay into $replay.
explored() {
	local seeds=$1

	shift
	polycm explore --seeds "$seeds" --failures 0 --output "$work/results" "$@" >"$work/found" 2>&1
	[ $? -eq 1 ] || { cat "$work/found"; return 1; }
	replay=$(sed -n 's/^  replay: polycm //p' "$work/found" | head -1)
}

# repeats TIMES STATUS: the replay, with one order.
repeats() {
	local i order first=

	for ((i = 0; i < $1; i++)); do
		eval "polycm ${replay/run/run --log info}" >"$work/replay.out" 2>&1
		[ $? -eq "$2" ] || { cat "$work/replay.out"; return 1; }
		order=$(sed -n 's/^polycm: run: virtual time .* order //p' "$work/replay.out")
		: "${first:=$order}"
		[ -n "$order" ] && [ "$order" = "$first" ] || return
	done
}

check 'the member compiles' $CC -O1 -Wall -Wextra -o "$work/member" "$abs_top_srcdir/tests/programs/preempt.c" -pthread
for case in spins locks; do
	check "a member: $case" polycm run --on a "$work/member" "$case"
done

# --- Two locks in two orders: nothing fails unless a thread is held up between them. ---
check 'two locks end well' polycm run --on a "$work/member" lock_orders
check 'their order is found' explored 1-40 --on a "$work/member" lock_orders
check 'by one preemption' grep -Eq '^  1 of [0-9]+ faults and preemptions are needed:$' "$work/found"
check 'before a lock' grep -Fq 'before = "lock"; }' "$work/found"
check 'and repeats' repeats 5 75

# --- perftest's server listens a second time; a client that comes before that is refused. ---
pair=(--on server ib_send_bw -R -F -n 5 --on client ib_send_bw -R -F -n 5 10.0.0.1)
check 'ib_send_bw ends well' polycm run --scenario "$work/calm.scenario" "${pair[@]}"
check 'its race is found in 20 seeds' explored 1-20 --scenario "$work/calm.scenario" "${pair[@]}"
check 'by one preemption' grep -Eq '^  1 of [0-9]+ faults and preemptions are needed:$' "$work/found"
check 'and repeats' repeats 5 75
check 'its ladder has the reject' eval 'polycm timeline --cm "$work"/results/seed-*.trace | grep -q REJ'

# --- A client that comes before its server listens is refused, and then the server waits. ---
early=(--on server rping -s -a 10.0.0.1 -C 1 --on client rping -c -a 10.0.0.1 -C 1)
check 'a client that comes too early' explored 1-60 --scenario "$work/calm.scenario" --shrink-runs 20 "${early[@]}"
check 'with few runs, too, by one preemption' grep -Eq '^  1 of [0-9]+ faults and preemptions are needed:$' "$work/found"
check 'how it ended is told with who waits' grep -q 'waits for ever: .*; before that client ended with exit status 255$' "$work/found"

# --- Nothing that only watches changes the order. ---
order() {
	polycm run --log info --scenario "$work/with.scenario" "$@" 2>&1 | sed -n 's/.* order //p'
}
with 'preemptions = ( { process = 2; thread = 1; call = 100; delay = "2 ms"; } );'
rping=(--on server rping -s -a 10.0.0.1 -C 3 --on client rping -c -a 10.0.0.1 -C 3)
plain=$(order "${rping[@]}")
check 'there is an order' [ -n "$plain" ]
check 'a trace does not change it' [ "$(order --trace "$work/t" "${rping[@]}")" = "$plain" ]
with ''
check 'a preemption does' [ "$(order "${rping[@]}")" != "$plain" ]

# --- They are chosen among the places before the last programs, which nothing holds up. ---
# points PROGRAM...: so many places polycm explore chooses from.
points() {
	local IFS=,

	with "programs = ( { node = \"server\"; command = \"rping -s -P -a 10.0.0.1\"; daemon = true; }, $* );"
	rm -f "$work/record"
	POLYCM_RUN_RECORD=$work/record polycm run --scenario "$work/with.scenario" >"$work/out" 2>&1
	sed -n 's/^points //p' "$work/record"
}
client='{ node = "client"; command = "rping -c -a 10.0.0.1 -C 5"; }'
last='{ node = "client"; name = "last"; command = "rping -c -a 10.0.0.1 -C 5"; after = "all"; }'
before_last=$(points "$client")
check 'not among those of the last ones' eval '[ "$before_last" -gt 100 ] && [ "$(points "$client" "$last")" -eq "$before_last" ]'

# --- None, if the scenario says so; and what is no preemption. ---
sed -i 's/ lateness = 0.0;/ lateness = 0.0; preemptions = 0;/' "$work/calm.scenario"
check 'none are chosen' exits 0 polycm explore --seeds 1-20 --scenario "$work/calm.scenario" --output "$work/results" "${pair[@]}"
for wrong in '{ thread = 1; call = 1; delay = "1 ms"; }' '{ process = 0; thread = 1; call = 1; delay = "1 ms"; }' \
	'{ process = 1; thread = 1; call = 1; delay = "soon"; }' '{ process = 1; thread = 1; call = 1; }' \
	'{ process = 1; thread = 1; call = -1; delay = "1 ms"; }' \
	'{ process = 1; thread = 1; delay = "1 ms"; }'; do
	with "preemptions = ( $wrong );"
	check "refused: $wrong" eval 'exits 2 polycm run --scenario "$work/with.scenario" --on server true &&
		grep -q "with.scenario:6: a preemption needs" "$work/err"'
done
finish
