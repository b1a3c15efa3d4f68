#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# polycm run with several programs, one of which is killed before one of the first 200 turns: the run ends, whenever
# that is, it does the same again, and nothing is left. KILL_STEP=1: each of these turns, not only some.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rping
need_turns
two=(--on server rping -s -a 10.0.0.1 -C 12 -v --on client rping -c -a 10.0.0.1 -C 12 -v --on other sh -c "$mark")
user mkfifo "$work/alive" || exit 99

# What it printed, and its status. All that the run starts inherits the FIFO, which ends when they have.
killed() {
	timeout -k 2 60 cat "$work/alive" &
	started=($!)
	polycm run --log info --kill "$2@$3" "${two[@]}" 9>"$work/alive" >"$work/$1.all" 2>&1
	echo "status $?" >>"$work/$1.all"
	wait "${started[0]}" || { echo 'a process is left'; return 1; }
	started=()
	# Where there are no namespaces.
	sed 's|/dev/shm/polycm-system-[^/]*/shm/|/dev/shm/|' "$work/$1.all" >"$work/$1.out"
	has "$work/$1.out" 'polycm: run: virtual time ' '[other] marked'
}

each() {
	local turn

	for ((turn = 0; turn < 200; turn += ${KILL_STEP:-17})); do
		killed once "$1" "$turn" && killed again "$1" "$turn" && cmp "$work/once.out" "$work/again.out" || {
			echo "$1 at turn $turn"
			return 1
		}
	done
}
check 'the server is killed at any turn' each server
check 'the client is killed at any turn' each client
check 'nothing is left of the simulated networks' nothing_left
check 'no folder of a run is left' eval '! marked_folders'
finish
