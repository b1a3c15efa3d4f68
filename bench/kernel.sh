#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The kernel's connections through librdmacm and through polycm, side by side: cmtime in a virtual machine, both
# libraries in turn, a row for each of its steps.
#
#	bench/kernel.sh [--build DIR] [--connections N] [--runs N] [--on roce|iwarp]
#
# Times are medians of the runs, in microseconds for one connection, under software emulation: only the ratios
# say something. cmtime's client does a step for all connections before it goes on to the next.

set -u
build=$PWD connections=1000 runs=5 provider=roce inside=
while [ $# -gt 0 ]; do
	case $1 in
	--build) build=${2:?} ;;
	--connections) connections=${2:?} ;;
	--runs) runs=${2:?} ;;
	--on) provider=${2:?} ;;
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
	"${self%/bench/*}/tests/kernel/vm" --timeout 3000 --share "$results" -- "$self" --build "$build" \
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

printf '%s, %s connections, median of %s runs, us for each connection\n' "$provider" "$connections" "$runs"
awk '
	FNR == 1 { split(FILENAME, part, "/"); split(part[length(part)], name, "."); library = name[1] }
	/^[a-z ]+: / {
		step = substr($0, 1, index($0, ":") - 1)
		sub(/ +$/, "", step)
		if (!(step in known)) { known[step] = 1; steps[++num] = step }
		time[library, step, ++count[library, step]] = $NF
		sum[library, FILENAME] += $NF
	}
	function median(library, step,    n, i, j, list, swap) {
		n = count[library, step]
		for (i = 1; i <= n; i++) list[i] = time[library, step, i] + 0
		for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++)
			if (list[j] < list[i]) { swap = list[i]; list[i] = list[j]; list[j] = swap }
		return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
	}
	END {
		for (key in sum) {
			split(key, part, SUBSEP)
			time[part[1], "all", ++count[part[1], "all"]] = sum[key]
		}
		steps[++num] = "all"
		printf "%-14s %12s %12s %8s\n", "", "librdmacm", "polycm", "ratio"
		for (i = 1; i <= num; i++) {
			a = median("librdmacm", steps[i])
			b = median("polycm", steps[i])
			printf "%-14s %12.1f %12.1f %8.2f\n", steps[i], a, b, a ? b / a : 0
		}
	}' "$inside"/*.*
