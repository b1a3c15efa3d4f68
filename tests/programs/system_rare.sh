#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# polycm run with several programs: what few programs do, and system calls that few make. Each run is the same, also
# where a seccomp filter catches the calls, and nothing waits in the kernel.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

: "${CC:=cc}"
need "${CC%% *}"
need_turns
for member in system_signals system_moves system_timers system_limits; do
	check "$member compiles" $CC -O1 -Wall -Wextra -o "$work/$member" "$abs_top_srcdir/tests/programs/$member.c" -pthread
	chmod go+rx "$work/$member"
done
cd "$work" || exit 99

plain=("${command[@]}")
check 'the sandbox compiles' $CC -O1 -Wall -Wextra -o filter "$abs_top_srcdir/tests/programs/filter.c" -pthread
chmod go+rx filter
filtered=("${as_user[@]}" "$work/filter" sandbox dispatch "${plain[@]:${#as_user[@]}}")
"$work/filter" sandbox dispatch true || filtered=("${plain[@]}")
# seeds ARG...: as it is on Linux, the same again with each seed, and by a filter.
seeds() {
	local seed

	for seed in 1 2 3; do
		same 2 --seed "$seed" --on a "$@" && counts first.out 1 '^ok$' || return
	done
	command=("${filtered[@]}")
	run filter 0 --seed 3 --on a "$@"
	command=("${plain[@]}")
	counts filter.out 1 '^ok$' && alike first filter
}
# cases PROGRAM CASE...
cases() {
	local program=$1 case

	shift
	for case; do
		check "$program: $case" seeds "./$program" "$case"
	done
}
cases system_signals stacks small stops stops_itself of_parents of_terminals
cases system_moves files pages flags requests several
check 'close() does not linger in real time' eval 'run lingers 0 --on a ./system_moves lingers && lacks lingers.out "real time"'
cases system_timers copies inherited sent overruns processor clocks
! grep -qF TCP "$work/probe" && cases system_limits shares
cases system_limits restarts clones owners circle refused
check 'what is refused is told' has first.out 'polycm: a: system_limits wants to set the machine' \
	'polycm: a: system_limits wants to trace a process' 'polycm: a: system_limits asks for a namespace of process ids' \
	'polycm: a: system_limits asks for io_uring'
# What traces is told so, and ends.
for tracer in 'strace -f' 'gdb -nx -batch -ex run'; do
	! command -v "${tracer%% *}" >traced.out ||
		check "${tracer%% *}" eval 'run traced 1 --on a $tracer true --on b sleep 1 &&
			counts traced.out 1 "^polycm: a: ${tracer%% *} wants to trace a process .ptrace., which is refused"'
done
# Where libpolycm-turn is not to be found a program is told to be outside, and not taken for a member.
hidden() {
	user cp -R "$copy" hidden && user mkdir there || return
	command=("${plain[@]//$copy/$work/hidden}")
	run hidden 0 --on a sh -c 'mv hidden there/; sleep 0.01; mv there/hidden .; echo ok' &&
		counts hidden.out 1 '^ok$' && has hidden.out "/sleep cannot see polycm's files where it begins"
}
check 'what a program needs is hidden from it' hidden
command=("${plain[@]}")
if [ "$(id -u)" -eq 0 ]; then
	command=("${plain[@]:${#as_user[@]}}")
	check 'root gives up its rights' eval 'same 2 --on a ./system_limits drops && counts first.out 1 "^ok$"'
	command=("${plain[@]}")
fi
random='head -c 8 /dev/urandom | od -x; head -c 8 </dev/urandom | od -x; exec 7</dev/random; head -c 8 <&7 | od -x; echo ok'
check 'random numbers, inherited' seeds sh -c "$random"
jobs='set -m; sleep 5 & sleep 1; kill -STOP %1; sleep 1; jobs; kill -CONT %1; wait; date +%s; sleep 9 & kill -TSTP %1; sleep 1; jobs
	bg %1; wait; date +%s; echo ok'
check 'jobs of a shell' eval 'seeds bash -c "$jobs" && has first.out "[1]+  Stopped " 1767225605 1767225615'
finish
