#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# One process with a server and many clients in threads, in virtual time: `polycm run --clock virtual', where time looks
# at what the threads do, and `polycm run --on all', where one thread runs at a time. Both in turn; elapsed time, the
# least of the runs, and how many traces differ.
#
#	bench/threads.sh [--build DIR] [--runs N] [CLIENTS...]

set -u
build=$PWD runs=3
while [ $# -gt 0 ]; do
	case $1 in
	--build) build=${2:?} ;;
	--runs) runs=${2:?} ;;
	[0-9]*) break ;;
	*) sed -n '4,/^$/s/^# \{0,1\}//p' "$0"; exit 2 ;;
	esac
	shift 2
done
[ $# -gt 0 ] || set -- 1 4 16 48
build=$(realpath "$build") && self=$(realpath "$0") || exit 2
if [ ! -x "$build/run" ] || [ ! -x "$build/tools/polycm" ]; then
	echo "bench/threads.sh: no build in $build: start it in a build folder, or name one with --build" >&2
	exit 2
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
${CC:-cc} -O2 -o "$work/threads" "${self%/bench/*}/tests/programs/threads.c" -lrdmacm -libverbs -pthread || exit 1
cat >"$work/two.scenario" <<'END'
nodes = (
	{ name = "server"; devices = ( { transport = "roce"; addresses = "10.0.0.1/24"; } ); },
	{ name = "client"; devices = ( { transport = "roce"; addresses = "10.0.0.2/24"; } ); }
);
END

# once NAME ARGUMENT...: microseconds, with the trace's hash in NAME.traces.
once() {
	local name=$1 began=${EPOCHREALTIME/./} ended

	shift
	"$build/run" "$build/tools/polycm" run --scenario "$work/two.scenario" --trace "$work/trace" "$@" >"$work/out" 2>&1 ||
		{ cat "$work/out" >&2; exit 1; }
	ended=${EPOCHREALTIME/./}
	echo "$((ended - began))" >>"$work/$name.times"
	md5sum <"$work/trace" >>"$work/$name.traces"
}
least() { sort -n "$work/$1.times" | head -1; }
traces() { sort -u "$work/$1.traces" | wc -l; }

printf '%8s %22s %22s %8s\n' clients '--clock virtual' '--on all' ratio
for clients; do
	rm -f "$work"/*.times "$work"/*.traces
	for ((i = 0; i < runs; i++)); do
		once looks --clock virtual "$work/threads" "$clients" 20
		once turns --on all "$work/threads" "$clients" 20
	done
	printf '%8d %8d ms, %d traces %8d ms, %d traces %8s\n' "$clients" $(($(least looks) / 1000)) "$(traces looks)" \
		$(($(least turns) / 1000)) "$(traces turns)" \
		"$(awk -v a="$(least looks)" -v b="$(least turns)" 'BEGIN { printf "%.1f", a / b }')"
done
