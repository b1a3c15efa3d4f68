#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# polycm run and explore with a program on all nodes (--on all): one process with server and clients in several threads.
# Threads that begin at the same instant go on in an order that the seed decides, and a run repeats to the byte.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

: "${CC:=cc}"
need "${CC%% *}"
need_turns
cp "$abs_top_srcdir"/tests/programs/{threads.c,main_ends.c,member.h,explore.c,explore_two.h} "$work/"
check 'the programs compile' eval '$CC -O2 -Wall -Wextra -Werror -o "$work/threads" "$work/threads.c" \
	-lrdmacm -libverbs -pthread && $CC -DWITH_SIM -I"$abs_top_srcdir/include" -O2 -Wall -Wextra -Werror \
	-o "$work/own" "$work/threads.c" "$library" -lrdmacm -libverbs -pthread && $CC -O2 -Wall -Wextra -Werror -o "$work/client" "$work/explore.c" -lrdmacm &&
	$CC -O2 -Wall -Wextra -Werror -o "$work/main_ends" "$work/main_ends.c" -lrdmacm -pthread'
chmod -R go+rX "$work"
cd "$work" || exit 99
cat >two.scenario <<'END'
nodes = (
	{ name = "server"; devices = ( { transport = "roce"; addresses = "10.0.0.1/24"; } ); },
	{ name = "client"; devices = ( { transport = "roce"; addresses = "10.0.0.2/24"; } ); }
);
END
cat two.scenario - >programs.scenario <<'END'
programs = ( { node = "all"; command = "./threads 2 1"; } );
END

# repeats PROGRAM
repeats() {
	same 5 --seed 1 --scenario two.scenario --on all "$1" 8 3 &&
		counts first.out 24 'client [0-7] has number [0-9]*$'
}
check 'with a network of its own, as a test makes it' repeats ./own
# ends STATUS OPTION...: with or without a thread of the simulator.
ends() {
	local status=$1

	shift
	run ends "$status" "$@" ./main_ends ${status/#0} &&
		has ends.out 'main has ended' 'the last has ended' 'the process has ended'
}
for status in 0 3; do
	check "main() ends only its thread, the last one ends with $status" eval 'ends $status && ends $status --clock virtual &&
		ends $status --on all'
done
check 'what waits there for ever is told' eval 'run stuck 1 --on all ./own 0 1 &&
	has stuck.out "rdma_get_cm_event waits for what can never happen: " "errno 35"'
check 'eight clients at the same instant: each run is the same' repeats ./threads
other_order() {
	run other 0 --seed 2 --scenario two.scenario --on all ./threads 8 3 || return
	! cmp -s <(grep number first.out) <(grep number other.out) &&
		cmp <(grep -o 'client [0-9]' first.out | sort) <(grep -o 'client [0-9]' other.out | sort)
}
check 'another seed is another order of threads' other_order
sees_all() {
	export POLYCM_SIM_NODE=client
	run devices 0 --seed 1 --scenario two.scenario --on all ./threads 1 1
	local status=$?

	unset POLYCM_SIM_NODE
	return $status
}
check 'it sees the devices of all nodes, whatever node the environment names' sees_all
check 'the same in the list of programs' eval 'run file 0 --seed 1 --scenario programs.scenario &&
	counts file.out 2 "client [01] has number [01]$"'
finds() {
	exits 1 polycm explore --output found --seeds 1-20 --failures 1 --scenario two.scenario --on all ./client exit || return
	has out '1 of ' && seed=$(sed -n 's/^seed \([0-9]*\): all ended with exit status 5$/\1/p' out | head -1) || return
	exits 5 polycm run --scenario "found/seed-$seed.scenario" --on all ./client exit
}
check 'polycm explore finds the one fault' finds

# A process of its own, which shares the program's memory, stops all threads for it.
cat >leak.c <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *wait_for_ever(void *unused)
{
	pause();
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char *volatile memory = NULL;

	(void)argv;
	if (pthread_create(&thread, NULL, wait_for_ever, NULL))
		return 1;
	usleep(1000);
	/* Many: the address of one may be left in memory that is looked through. */
	for (int i = 0; argc > 1 && i < 100; i++)
		memory = malloc(77);
	memory = NULL;
	(void)memory;
	return 0;
}
END
leaks() {
	polycm run --log info --on all ./leak >one.out 2>&1 || { cat one.out; return 1; }
	! polycm run --on all ./leak x >one.out 2>&1 && has one.out 'SUMMARY: AddressSanitizer: ' 'byte(s) leaked in '
}
if $CC -g -fsanitize=address -o leak leak.c -pthread 2>/dev/null && { chmod go+rx leak; user ./leak 2>/dev/null; }; then
	check 'AddressSanitizer looks for leaks while a thread lives' leaks
	cp "$abs_top_srcdir/tests/programs/filter.c" . && $CC -O1 -o filter filter.c -pthread && chmod go+rx filter
	filtered() {
		local i plain=("${command[@]}")
		local command=("${as_user[@]}" ./filter sandbox dispatch "${plain[@]:${#as_user[@]}}")

		for i in 1 2 3 4 5 6 7 8 9 10; do
			leaks || return
		done
	}
	check 'also where a filter catches calls' filtered
fi
finish
