#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The kernel's connections through librdmacm and through polycm, side by side: cmtime in a virtual machine, both
# libraries in turn, a row for each of its steps.
#
#	bench/kernel.sh [--build DIR] [--connections N] [--runs N] [--on roce|iwarp] [--clock instructions]
#
# Times are medians of the runs and the least of them, in microseconds for one connection, under software
# emulation: only the ratios say something. cmtime's client does a step for all connections before it goes on to
# the next. By this machine's clock they want an idle machine, and on any other the least says more than the
# median; with --clock instructions they are counts of instructions (of kernel and programs, 16 ns each) and repeat
# whatever the load.

set -u
build=$PWD connections=1000 runs=5 provider=roce clock= inside=
while [ $# -gt 0 ]; do
	case $1 in
	--build) build=${2:?} ;;
	--connections) connections=${2:?} ;;
	--runs) runs=${2:?} ;;
	--on) provider=${2:?} ;;
	--clock) [ "$2" = instructions ] && clock=--steady ;;
	--inside) inside=${2:?} ;;	# what the machine itself is started with
	*) sed -n '4,/^$/s/^# \{0,1\}//p' "$0"; exit 2 ;;
	esac
	shift 2
done
build=$(realpath "$build") || exit 2
self=$(realpath "$0")
library=$build/core/.libs/libpolycm.so.0
if [ ! -e "$library" ]; then
	echo "bench/kernel.sh: no library in $build: start it in a build folder, or name one with --build" >&2
	exit 2
fi

if [ -z "$inside" ]; then
	results=$(mktemp -d) || exit 1
	trap 'rm -rf "$results"' EXIT
	"${self%/bench/*}/tests/kernel/vm" ${clock:+"$clock"} --timeout 3000 --share "$results" -- "$self" --build "$build" \
		--connections "$connections" --runs "$runs" --on "$provider" --inside "$results"
	exit
fi

server_address=10.1.0.2
[ "$provider" = roce ] || server_address=10.2.0.2
path=
for name in ib roce iwarp; do
	path+=${path:+:}$build/providers/$name/.libs
done
preload=(env "LD_PRELOAD=$library" "POLYCM_PROVIDER=$provider" "POLYCM_PROVIDER_PATH=$path")

# once LIBRARY RUN: the client's table in $inside/LIBRARY.RUN.
once() {
	local command=() server turn status

	[ "$1" = librdmacm ] || command=("${preload[@]}")
	"${command[@]}" cmtime -b $server_address -c "$connections" >/dev/null 2>&1 &
	server=$!
	for ((turn = 0; turn < 300; turn++)); do
		[[ $(rdma resource show cm_id) != *'state LISTEN'* ]] || break
		sleep 0.2
	done
	"${command[@]}" timeout 600 cmtime -s $server_address -c "$connections" >"$inside/$1.$2" 2>&1
	status=$?
	kill $server
	wait $server
	[ "$status" -eq 0 ] && grep -q '^destroy' "$inside/$1.$2" && return
	echo "bench/kernel.sh: cmtime through $1 failed with status $status:" >&2
	tail -n 5 "$inside/$1.$2" >&2
	exit 1
}

# One to warm up each.
once librdmacm 0
once polycm 0
for ((run = 1; run <= runs; run++)); do
	once librdmacm $run
	once polycm $run
done
rm "$inside"/*.0

printf '%s, %s connections, %s runs, us for each connection: median, least\n' "$provider" "$connections" "$runs"
awk '
	FNR == 1 { split(FILENAME, part, "/"); split(part[length(part)], name, "."); library = name[1] }
	/^[a-z ]+: / {
		step = substr($0, 1, index($0, ":") - 1)
		sub(/ +$/, "", step)
		if (!(step in known)) { known[step] = 1; steps[++num] = step }
		time[library, step, ++count[library, step]] = $NF
		sum[library, FILENAME] += $NF
	}
	# The median; the least is in list[1] then.
	function median(library, step,    n, i, j, swap) {
		n = count[library, step]
		for (i = 1; i <= n; i++) list[i] = time[library, step, i] + 0
		for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++)
			if (list[j] < list[i]) { swap = list[i]; list[i] = list[j]; list[j] = swap }
		return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
	}
	function ratio(a, b) { return a ? b / a : 0 }
	END {
		for (key in sum) {
			split(key, part, SUBSEP)
			time[part[1], "all", ++count[part[1], "all"]] = sum[key]
		}
		steps[++num] = "all"
		printf "%-14s %19s %19s %13s\n", "", "librdmacm", "polycm", "ratio"
		for (i = 1; i <= num; i++) {
			a = median("librdmacm", steps[i]); least_a = list[1]
			b = median("polycm", steps[i]); least_b = list[1]
			printf "%-14s %10.1f %8.1f %10.1f %8.1f %8.2f %4.2f\n", steps[i], a, least_a, b, least_b,
				ratio(a, b), ratio(least_a, least_b)
		}
	}' "$inside"/*.*
