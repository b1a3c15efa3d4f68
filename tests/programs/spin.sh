#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# polycm run with several programs, of which some look at memory, without any call, until another one writes there, or
# read the processor's time stamp counter: they end, and each run is the same.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need_turns --log info
: "${CC:=cc}"

compiles() { $CC -O1 -Wall -Wextra -o "$work/$1" "$abs_top_srcdir/tests/programs/$1.c" -pthread && chmod go+rx "$work/$1"; }
check 'the members compile' eval 'compiles spin && compiles counter'
chmod go+rwx "$work"
cd "$work" || exit 99

# --- Memory. ---

check 'two processes and a file' eval 'same 20 --on a sh -c "rm -f shared; exec ./spin ask shared" \
	--on b ./spin answer shared && has "$work/first.out" "[a] ok" "[b] ok"'
for case in calls locks numbers signals programs; do
	check "threads: $case" eval 'same 2 --on a "$work/spin" "$case" && counts "$work/first.out" 1 "^ok$"'
done
# It is asked in vain, at other places in each run.
check 'a program that computes' same 2 --on a "$work/spin" computes --on b sleep 1
check 'a wait without end' eval 'run for_ever 75 --until 2 --on a "$work/spin" for_ever --on b true &&
	has "$work/for_ever.out" "polycm: run: the limit of 2 s of virtual time (--until) is reached; the last thing happened at " \
		", thread 1, waits longer than the limit of virtual time: memory that another thread is to write, in a loop at 0x"'
if command -v ib_write_lat >/dev/null && ! grep -qF 'TCP' "$work/probe"; then
	check 'ib_write_lat' same 3 --on server ib_write_lat -n 50 --on client ib_write_lat -n 50 server
	check 'ib_write_bw' same 2 --on server ib_write_bw -n 50 --on client ib_write_bw -n 50 server
fi
! command -v riostream >/dev/null ||
	check 'riostream' same 3 --on server riostream -S 64 -C 1 -I 20 --on client riostream -s 10.0.0.1 -S 64 -C 1 -I 20

# --- The counter, and signals of instructions. ---

for case in handlers deaths control; do
	check "on Linux: $case" eval 'exits 0 "$work/counter" "$case" && has out ok'
done
for case in handlers deaths; do
	check "signals: $case" eval 'same 2 --on a "$work/counter" "$case" && counts "$work/first.out" 1 "^ok$"'
done
if ! grep -qF 'time stamp counter' "$work/probe"; then
	check 'the time stamp counter' eval 'same 3 --on a "$work/counter" reads && counts "$work/first.out" 1 "^ok$"'
	grep -qF 'allows no namespaces' "$work/probe" || check 'and its rate' eval 'run rate 0 --on a sh -c "
		sed -n \"s/.*cpu MHz.*: //p; s/^model name.* @ /@ /p\" /proc/cpuinfo" &&
		[ "$(grep -v "^polycm:" "$work/rate.out" | sed "s/^@ 1.00GHz$/1000.000/" | sort -u)" = 1000.000 ]'
	check 'a program that asks for it to fault' eval 'same 2 --on a "$work/counter" control && counts "$work/first.out" 1 "^ok$"'
	! command -v ib_send_lat >/dev/null || grep -qF 'TCP' "$work/probe" || check 'ib_send_lat' eval '
		same 2 --on server ib_send_lat -n 100 --on client ib_send_lat -n 100 server && lacks "$work/first.out" "  inf " nan'
fi
finish
