#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The order of turns of some systems, as it was recorded: a change of libpolycm, the simulator or libpolycm-turn that
# changes it has to have a reason, since seeds and replays of users change with it. UPDATE_GOLDEN=1 records it anew.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rping dpkg-query
need_turns
! grep -F 'allows no namespaces' "$work/probe" || skip 'recorded with namespaces: paths and ids of processes differ'
# Other programs and C libraries make other calls, and so do sanitizers and checks of locks.
versions="$(getconf GNU_LIBC_VERSION)$(dpkg-query -W -f ', ${Package} ${Version}' bash coreutils rdmacm-utils)"
recorded=$(sed -n 1p "$abs_top_srcdir/tests/programs/orders.golden")
[ "$versions" = "$recorded" ] || [ -n "${UPDATE_GOLDEN-}" ] || skip "recorded with $recorded; here are $versions"
! grep -qE '^(SANITIZER_CFLAGS|LOCK_ORDER_CPPFLAGS) = .' "$abs_top_builddir/Makefile" ||
	skip 'recorded without sanitizers and without checks of the order of locks'

# Programs open files of their language, and a shell asks who its user is where nothing tells its SHELL.
export LC_ALL=C SHELL=/bin/sh
unset BASH_ENV ENV
cd "$work" || exit 99
for transport in "${transports[@]}"; do
	cat >"lossy-$transport.scenario" <<-END
		nodes = (
			{ name = "server"; devices = ( { transport = "$transport"; addresses = "10.0.0.1/24"; } ); },
			{ name = "client"; devices = ( { transport = "$transport"; addresses = "10.0.0.2/24"; } ); }
		);
		links = ( { between = [ "server", "client" ]; latency = "20 us"; jitter = "15 us"; loss = 0.05; } );
	END
done
echo "$versions" >orders
# order NAME ARG...
order() {
	local name=$1

	shift
	run one 0 "$@" || return
	printf '%s:%s\n' "$name" "$(sed -n 's/^polycm: run: virtual time/ virtual time/p' one.out)" >>orders
}
for transport in "${transports[@]}"; do
	on=(--seed 7 --transport "$transport" --on server)
	lossy=(--seed 7 --scenario "lossy-$transport.scenario" --on server)
	check "rping on $transport" order "rping, $transport" \
		"${on[@]}" rping -s -a 10.0.0.1 -C 3 --on client rping -c -a 10.0.0.1 -C 3
	check "rping on $transport with losses" order "rping, $transport, losses" \
		"${lossy[@]}" rping -s -a 10.0.0.1 -C 3 --on client rping -c -a 10.0.0.1 -C 3
	check "ucmatose on $transport with losses" order "ucmatose, $transport, losses" \
		"${lossy[@]}" ucmatose -c 4 --on client ucmatose -c 4 -s 10.0.0.1
	check "rdma_server on $transport" order "rdma_server, $transport" \
		"${on[@]}" rdma_server --on client rdma_client -s 10.0.0.1
	check "cmtime on $transport" order "cmtime, $transport" \
		--seed 7 --transport "$transport" --daemon server cmtime -c 10 --on client cmtime -c 10 -s 10.0.0.1
done
for transport in roce ib; do
	check "udaddy on $transport" order "udaddy, $transport" \
		--seed 7 --transport "$transport" --on server udaddy --on client udaddy -s 10.0.0.1
done
check 'three clients' order 'rping, three clients' --seed 7 --daemon server rping -s -P -a 10.0.0.1 \
	--on a rping -c -a 10.0.0.1 -C 2 --on b rping -c -a 10.0.0.1 -C 2 --on c rping -c -a 10.0.0.1 -C 2
check 'processes' order 'children, pipes and signals' --seed 7 --on a bash -c '
	for i in 1 2 3; do (sleep $((4 - i)); echo $i) & done; seq 5000 | tail -n 1; wait
	trap "exit 0" TERM; (sleep 1; kill $$) & while :; do sleep 10; done'
check 'they are as recorded' golden orders orders
finish
