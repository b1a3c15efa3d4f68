#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A program with an event loop of its own under the virtual clock: half an hour of its time takes none of ours,
# in whichever way it waits. No wait may reach the C library, and each run does the same.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

: "${CC:=cc}"
need "${CC%% *}"
source=$abs_top_srcdir/tests/programs
check 'the program compiles' $CC -O2 -Wall -Wextra -Werror -o "$work/waits" "$source/waits.c" -lrdmacm -pthread
check 'as a fortified one, too' \
	$CC -O2 -D_FORTIFY_SOURCE=2 -Wall -Wextra -Werror -o "$work/fortified" "$source/waits.c" -lrdmacm -pthread
check 'the counter compiles' $CC -O2 -Wall -shared -fPIC -o "$work/count.so" "$source/count_waits.c" -ldl
chmod -R go+rX "$work"

# runs PROGRAM WAY TRANSPORT NAME: its trace and output are kept under that name.
runs() {
	exits 0 user env "LD_PRELOAD=$interposer:$library:$work/count.so" POLYCM_PROVIDER=sim POLYCM_SIM_CLOCK=virtual \
		"POLYCM_SIM_TRANSPORT=$3" "POLYCM_SIM_TRACE=$work/$4.trace" \
		${POLYCM_PROVIDER_PATH:+"POLYCM_PROVIDER_PATH=$POLYCM_PROVIDER_PATH"} \
		timeout --foreground "$limit" "$work/$1" "$2" && mv "$work/out" "$work/$4" &&
		mv "$work/err" "$work/$4.err"
}

expected='client: RDMA_CM_EVENT_ADDR_RESOLVED
client: RDMA_CM_EVENT_ROUTE_RESOLVED
server: RDMA_CM_EVENT_CONNECT_REQUEST'

# As it should be: half an hour passed, and none of it really.
is_well() {
	local name=$1

	[ "$(head -3 "$work/$name")" = "$expected" ] &&
		counts "$work/$name" 30 '^client: still there$' &&
		counts "$work/$name" 1 '^server: RDMA_CM_EVENT_DISCONNECTED$' &&
		counts "$work/$name" 1 '^client: RDMA_CM_EVENT_DISCONNECTED$' &&
		counts "$work/$name" 1 '^took 180[2-4]\.[0-9]{9} s$' &&
		[ "$(cat "$work/$name.err")" = "${2-real waits: 0}" ]
}

same_twice() {
	runs "$1" "$2" "$3" one && is_well one && runs "$1" "$2" "$3" two && is_well two &&
		cmp "$work/one" "$work/two" && [ -s "$work/one.trace" ] && cmp "$work/one.trace" "$work/two.trace"
}

for transport in "${transports[@]}"; do
	for way in poll select epoll nested busy deadline condition; do
		check "$way, $transport" same_twice waits "$way" "$transport"
	done
done
check 'fortified' same_twice fortified poll roce
check 'spin' same_twice waits spin roce

# Threads take turns at printing, so each thread's lines alone are looked at.
two_threads() {
	runs waits threads "$1" three && is_well three
}
for transport in "${transports[@]}"; do
	check "threads, $transport" two_threads "$transport"
done

never() {
	runs waits never roce never &&
		has "$work/never.err" 'poll: Resource deadlock avoided' \
			'poll waits for what can never happen: event channel on descriptor' 'real waits: 0'
}
check 'a wait for what cannot come' never

finish
