#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# polycm run with several programs where the kernel has no syscall user dispatch: a seccomp filter catches their system
# calls, and each run is the same as with user dispatch, to the byte and in its order of turns.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

: "${CC:=cc}"
need rping ucmatose "${CC%% *}"
need_turns
check 'the sandbox compiles' $CC -O1 -Wall -Wextra -o "$work/filter" "$abs_top_srcdir/tests/programs/filter.c" -pthread
chmod go+rx "$work/filter"
for member in system system_children; do
	check "$member compiles" $CC -O1 -Wall -Wextra -o "$work/$member" "$abs_top_srcdir/tests/programs/$member.c" -pthread -lm
	chmod go+rx "$work/$member"
done
"$work/filter" sandbox dispatch true || skip 'the kernel has no seccomp filters'
cd "$work" || exit 99
plain=("${command[@]}")
# without CALL,...: from now on for polycm.
without() { command=("${as_user[@]}" "$work/filter" sandbox "$1" "${plain[@]:${#as_user[@]}}"); }

# both ARG...: by both ways, the filter's also without what came in Linux 5.3.
both() {
	command=("${plain[@]}")
	run one 0 "$@" || return
	without dispatch,pidfd
	run two 0 "$@" && alike one two
}

check 'rping' both --on server rping -s -a 10.0.0.1 -C 3 -v --on client rping -c -a 10.0.0.1 -C 3 -v
check 'ucmatose on iWARP' both --transport iwarp --on server ucmatose -c 4 --on client ucmatose -c 4 -s 10.0.0.1
for case in 'system join' 'system first_ends' 'system restart' 'system timers' 'system_children kills' 'system_children spawn'; do
	check "$case" eval 'both --on a "$work/"$case && counts two.out 1 "^ok$"'
done
check 'children, pipes, exec and signals' eval 'both --on a bash -c "
	for i in 1 2 3; do (sleep \$((4 - i)); echo child \$i) & done; seq 50000 | tail -n 1; wait
	/there/is/no/such; trap \"echo signal; exit 0\" TERM; (sleep 1; kill \$\$) & while :; do sleep 10; done" &&
	has two.out "child 1" "signal"'
check 'an empty environment' eval 'both --on a sh -c "(sleep 2; echo late) | env -i /bin/cat" && counts two.out 1 "^late$"'
check 'one program after the other' both --on a sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	/usr/bin/env true; timeout 5 true; done'
for case in thread last_thread; do
	check "exec in a thread: $case" eval 'both --on a "$work/filter" "$case" --on b sleep 3 &&
		has two.out "[a] 1767225602" "[a] ok"'
done
# The programs stay loaded there, and are forked for each run.
explores() {
	cat >two.scenario <<-'END'
		nodes = (
			{ name = "server"; devices = ( { transport = "roce"; addresses = "10.0.0.1/24"; } ); },
			{ name = "client"; devices = ( { transport = "roce"; addresses = "10.0.0.2/24"; } ); }
		);
		explore = { messages = "REQ"; rejection = 0.5; };
	END
	exits 1 polycm explore --seeds 1-6 --failures 0 --shrink-runs 0 --scenario two.scenario --output "$1" \
		--daemon server rping -s -P -a 10.0.0.1 --on client sh -c 'rping -c -a 10.0.0.1 -C 1' &&
		cat "$1"/seed-*.out >"$1.outputs" && [ -s "$1.outputs" ]
}
check 'explore' eval 'command=("${plain[@]}"); explores by_dispatch && without dispatch && explores by_filter &&
	cmp by_dispatch.outputs by_filter.outputs'

# --- What the filter cannot do, and what sandboxes do not allow. ---

static() {
	run static 0 --on a sh -c 'echo $("$0"/static); "$0"/static; echo $?' "$work" --on b sleep 1 &&
		has static.out '[a] 126' &&
		counts static.out 1 "^polycm: a: $work/static is not started: it would run in real time"
}
without dispatch
! echo 'int main(void) { return 0; }' | $CC -static -o static -x c - 2>/dev/null || { chmod go+rx static; check 'a static program' static; }
without dispatch,ptrace
check 'no tracing' run untraced 0 --on server rping -s -a 10.0.0.1 -C 1 --on client rping -c -a 10.0.0.1 -C 1
check 'exec without it' eval 'run untraced 126 --on a sh -c "/bin/true; /bin/true" &&
	counts untraced.out 1 "^polycm: a: /bin/true is not started: .*polycm must trace it"'
for calls in dispatch,seccomp prctl,seccomp; do
	without "$calls"
	check "neither: $calls" eval 'run neither 1 --on a true && has neither.out \
		"polycm: this program cannot be run in virtual time: the kernel, or the sandbox of a container, allows neither"'
done
finish
