#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What docs/time.md promises of several programs in one virtual time: each row of its table names a test, which is run
# several times, alone and on a busy machine, after other processes, with and without a trace. Each test is in the table.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

: "${CC:=cc}"
need "${CC%% *}"
need_turns
unpromised=
! grep -qF 'allows no namespaces' "$work/probe" || unpromised=' ids objects ports host '
! polycm run --log info --on a true 2>&1 | grep -qF 'time stamp counter cannot' || unpromised+=' counter '
cp "$abs_top_srcdir"/tests/programs/{promises.c,threads.c,member.h} "$work/"
check 'the programs compile' eval '$CC -O2 -Wall -Wextra -Werror -o "$work/promises" "$work/promises.c" -pthread &&
	$CC -O2 -Wall -Wextra -Werror -o "$work/threads" "$work/threads.c" -lrdmacm -libverbs -pthread'
chmod -R go+rX "$work"
cd "$work" || exit 99
cat >lossy.scenario <<'END'
nodes = (
	{ name = "server"; devices = ( { transport = "roce"; addresses = "10.0.0.1/24"; } ); },
	{ name = "client"; devices = ( { transport = "roce"; addresses = "10.0.0.2/24"; } ); }
);
links = ( { between = [ "server", "client" ]; latency = "20 us"; jitter = "15 us"; loss = 0.05; } );
END

# The system of a test, as arguments of polycm run.
system_of() {
	case $1 in
	output)
		status=3
		system=(--on a bash -c 'for i in 1 2 3 4 5; do echo $i; sleep 0.1; echo $i >&2; done; exit 3'
			--on b bash -c 'for i in 1 2 3 4 5; do echo $i; sleep 0.1; done')
		;;
	connections) system=(--scenario lossy.scenario --pcap pcap --on all ./threads 3 3) ;;
	*) system=(--on a ./promises "$1" --on b ./promises "$1") ;;
	esac
}

# once NAME
once() {
	rm -f pcap "$1.pcap"
	run "$1" "$status" --seed 5 "${system[@]}" || return
	[ ! -e pcap ] || mv pcap "$1.pcap"
}
busy() {
	local loop result

	(trap - EXIT; while :; do :; done) &
	loop=$!
	once "$1"
	result=$?
	kill $loop
	wait $loop 2>/dev/null
	return $result
}

# promise NAME: the number of turns is compared, too, so nothing may be different that takes a call.
promise() {
	local system status=0 untraced=

	system_of "$1"
	once first && once again && busy under || return
	grep -qvE '^polycm: ' first.out && alike first again && alike first under || { cat first.out; return 1; }
	# Without a trace the environment is shorter, so the stack is elsewhere; names of files depend on that.
	[[ $1 == addresses || $1 == random ]] && return
	rm -f first.trace
	untraced=1
	once bare && alike first bare
}

table=$(sed -n '/^| the same in each run | test |$/,/^$/s/^| .* | `\([a-z]*\)` |$/\1/p' "$abs_top_srcdir/docs/time.md")
check 'the table and the tests are the same' \
	diff <(sort <<<"$table") <({ ./promises; echo output; echo connections; } | sort)
for name in $table; do
	[[ $unpromised == *" $name "* ]] || check "$name" promise "$name"
done
finish
