#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Where threads of several programs wait for ever is shown with their stacks, by polycm run and in the page of polycm
# explore; whatever is left of a stack, the run ends.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rping
grep -q '^#define HAVE_LIBDW 1' "$abs_top_builddir/config.h" || skip 'polycm is built without libdw'
need_turns
: "${CC:=cc}"
build() { $CC -O1 -fno-optimize-sibling-calls -Wall -Wextra "$@" -pthread && chmod go+rx "$work"/*; }
check 'the member compiles' build -g -o "$work/member" "$abs_top_srcdir/tests/programs/stacks.c"
check 'and without lines' build -g0 -o "$work/plain" "$abs_top_srcdir/tests/programs/stacks.c"
check 'the member of preempt.sh compiles' build -g -o "$work/locks" "$abs_top_srcdir/tests/programs/preempt.c"

# The functions of a thread, one a line; what is left out are the C library's.
stack() {
	awk -v "who=process 1, thread $1," '/^polycm: error: / { shown = index($0, who); next }
		shown && sub(/^polycm:     at /, "")' "$work/err"
}
locks() {
	exits 75 polycm run --on a "$work/$1" locks && lacks "$work/err" libpolycm-turn &&
		stack 1 | grep -Eq "^take_both \($2\)$" && stack 1 | tail -1 | grep -Eq "^main \($2\)$" &&
		stack 2 | grep -Eq "^take_both \($2\)$" && stack 2 | tail -1 | grep -Eq "^in_another_order \($2\)$" &&
		! stack 1 | head -1 | grep -Eq "$2" && cp "$work/err" "$work/again" &&
		exits 75 polycm run --on a "$work/$1" locks && cmp "$work/err" "$work/again"
}
check 'two locks in two orders' locks member 'stacks.c:[0-9]+'
check 'by functions alone' locks plain plain
check 'a stripped program' eval 'strip -o "$work/stripped" "$work/plain" && chmod go+rx "$work/stripped" &&
	exits 75 polycm run --on a "$work/stripped" locks && stack 2 | grep -Eq "^stripped\+0x[0-9a-f]+$"'
check 'a deep stack' eval 'exits 75 polycm run --on a "$work/member" deep && [ "$(stack 1 | tail -1)" = ... ] &&
	[ "$(stack 1 | wc -l)" -eq 11 ] && stack 1 | grep -q "^go_down (stacks.c:"'
check 'a stack that is none' eval 'exits 75 polycm run --on a "$work/member" wrecked &&
	has "$work/err" "process 1, thread 2, waits for what can never happen: a signal" &&
	stack 1 | tail -1 | grep -q "^main (stacks.c:"'
check 'a library of the program' eval 'exits 75 polycm run --on server rping -s -a 10.0.0.1 &&
	stack 2 | head -1 | grep -q "^rdma_get_cm_event (" &&
	has "$work/err" "thread 2, waits for what can never happen: an event of connection management, as by rdma_get_cm_event"'

printf '#include <rdma/rdma_cma.h>\nint main(void) { struct ibv_cq *cq; void *of; return ibv_get_cq_event(%s, &cq, &of); }\n' \
	'ibv_create_comp_channel(*rdma_get_devices(0))' >"$work/channel.c"
check 'an event of a completion channel' eval 'build -g -o "$work/channel" "$work/channel.c" -lrdmacm -libverbs &&
	exits 75 polycm run --on a "$work/channel" && ! stack 1 | grep -q "^syscall" && stack 1 | tail -1 | grep -q "^main (" &&
	has "$work/err" "never happen: an event of a completion channel, by ibv_get_cq_event"'

# In the page, but neither in the line of a seed nor among the last lines; and one cause is one family.
page() {
	polycm explore --seeds 1-40 --failures 2 --output "$work/results" --on a "$work/locks" lock_orders >"$work/found" 2>&1
	[ $? -eq 1 ] && counts "$work/found" 1 '^seed [0-9]+: ' && lacks "$work/found" preempt.c || return
	set -- "$work"/results/seed-*.md
	counts "$1" 1 '^      at second_first \(preempt.c:[0-9]+\)$' && counts "$1" 1 '^      at lock_orders \(preempt.c:' &&
		lacks "$1" 'polycm:     at '
}
check 'the page of polycm explore' page
finish
