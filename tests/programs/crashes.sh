#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A program's own handler is called for SIGSEGV and its like wherever libpolycm finds that memory is bad: in the
# program's thread or in one of its own, whatever locks it holds.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

: "${CC:=cc}"
need "${CC%% *}"
cp "$abs_top_srcdir"/tests/programs/{crashes.c,member.h} "$work/"
check 'the program compiles' eval '$CC -O2 -Wall -Wextra -Werror -o "$work/crashes" "$work/crashes.c" -libverbs'
chmod -R go+rX "$work"
cd "$work" || exit 99
# With a latency, what a program sends is not there before it waits.
cat >links.scenario <<'END'
nodes = ( { name = "a"; devices = ( { transport = "roce"; addresses = "10.0.0.1/24"; } ); } );
links = ( { latency = "1 ms"; } );
END

# handles SIGNAL OPTION... -- WHERE: its handler is called.
handles() {
	local signal=$1 options=()

	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	exits "$((100 + $(kill -l "$signal")))" polycm run --scenario links.scenario "${options[@]}" ./crashes "$2" "$signal"
}

for clock in real virtual; do
	check "in a call, $clock time" handles SEGV --clock "$clock" -- call
	for where in poll event spin; do
		for signal in SEGV BUS; do
			check "SIG$signal when a message comes ($where), $clock time" handles "$signal" --clock "$clock" -- "$where"
		done
	done
done
signals=(ABRT SEGV)
[ "$(uname -m)" != x86_64 ] || signals+=(FPE ILL TRAP)
for signal in "${signals[@]}"; do
	check "SIG$signal in malloc() for a timer" handles "$signal" --clock virtual -- timer
done
check 'the thread of the NIC takes no signals but these' eval \
	'exits 0 polycm run --clock real --scenario links.scenario ./crashes threads && has out "1 threads take no signal"'

if [ -e "$copy/lib/libpolycm-turn.so" ] && polycm run --on a true >"$work/probe" 2>&1; then
	for signal in SEGV BUS; do
		check "SIG$signal in a system" handles "$signal" --on all -- event
	done
fi
finish
