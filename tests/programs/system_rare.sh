#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# polycm run with several programs: what few programs do, and system calls that few make. Each run is the same, also
# where a seccomp filter catches the calls, and nothing waits in the kernel.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

: "${CC:=cc}"
need "${CC%% *}"
need_turns
for member in system_signals system_moves system_timers; do
	check "$member compiles" $CC -O1 -Wall -Wextra -o "$work/$member" "$abs_top_srcdir/tests/programs/$member.c" -pthread
	chmod go+rx "$work/$member"
done
cd "$work" || exit 99

# seeds ARG...: as it is on Linux, and the same again, with each seed.
seeds() {
	local seed

	for seed in 1 2 3; do
		same 2 --seed "$seed" --on a "$@" && has first.out '[a] ok' || return
	done
}
# cases PROGRAM CASE...
cases() {
	local program=$1 case

	shift
	for case; do
		check "$program: $case" seeds "./$program" "$case"
	done
}
cases system_signals stacks stops stops_itself of_parents of_terminals
cases system_moves files pages flags requests
cases system_timers copies inherited sent overruns processor
random='head -c 8 /dev/urandom | od -x; head -c 8 </dev/urandom | od -x; exec 7</dev/random; head -c 8 <&7 | od -x; echo ok'
check 'random numbers, inherited' seeds sh -c "$random"
jobs='set -m; sleep 5 & sleep 1; kill -STOP %1; sleep 1; jobs; kill -CONT %1; wait; date +%s; sleep 9 & kill -TSTP %1; sleep 1; jobs
	bg %1; wait; date +%s; echo ok'
check 'jobs of a shell' eval 'seeds bash -c "$jobs" && has first.out "[a] [1]+  Stopped " "[a] 1767225605" "[a] 1767225615"'
finish
