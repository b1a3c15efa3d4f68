#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# polycm run with several programs that read the processor's time stamp counter: each run is the same.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

[ -e "$copy/lib/libpolycm-turn.so" ] || skip 'libpolycm-turn is not built for this system'
polycm run --log info --on a true >"$work/probe" 2>&1 || ! grep -F 'syscall user dispatch' "$work/probe" ||
	skip 'the kernel has no syscall user dispatch'
: "${CC:=cc}"

# run NAME STATUS ARG...: one run, its output in NAME.out, its trace in NAME.trace, where it has one.
run() {
	local name=$1 status=$2

	shift 2
	rm -f "$work/$name.trace"
	polycm run --log info --trace "$work/$name.trace" "$@" >"$work/$name.out" 2>&1
	[ $? -eq "$status" ] && return
	printf 'status is not %d:\n' "$status"
	cat "$work/$name.out"
	return 1
}
# same TIMES ARG...: output, trace, virtual time and order of turns.
same() {
	local times=$1 i

	shift
	run first 0 "$@" && grep -q '^polycm: run: virtual time .* order ' "$work/first.out" || return
	for ((i = 1; i < times; i++)); do
		run again 0 "$@" && cmp "$work/first.out" "$work/again.out" &&
			{ [ ! -e "$work/first.trace" ] || cmp "$work/first.trace" "$work/again.trace"; } || return
	done
}

compiles() { $CC -O1 -Wall -Wextra -o "$work/$1" "$abs_top_srcdir/tests/programs/$1.c" -pthread && chmod go+rx "$work/$1"; }
check 'the members compile' eval 'compiles counter'
chmod go+rwx "$work"
cd "$work" || exit 99

# --- The counter, and signals of instructions. ---

for case in handlers deaths control; do
	check "on Linux: $case" eval 'exits 0 "$work/counter" "$case" && has out ok'
done
for case in handlers deaths; do
	check "signals: $case" eval 'same 2 --on a "$work/counter" "$case" && has "$work/first.out" "[a] ok"'
done
if ! grep -qF 'time stamp counter' "$work/probe"; then
	check 'the time stamp counter' eval 'same 3 --on a "$work/counter" reads && has "$work/first.out" "[a] ok"'
	check 'a program that asks for it to fault' eval 'same 2 --on a "$work/counter" control && has "$work/first.out" "[a] ok"'
	! command -v ib_send_lat >/dev/null || grep -qF 'TCP' "$work/probe" || check 'ib_send_lat' eval '
		same 2 --on server ib_send_lat -n 100 --on client ib_send_lat -n 100 server && lacks "$work/first.out" "  inf " nan'
fi
finish
