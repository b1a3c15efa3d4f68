#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Data between two processes on the simulator, measured by perftest, beside UCX on shared memory (ucx_perftest),
# in turn. Both poll. Needs perftest; without UCX its columns are empty.
#
#	bench/peers.sh [--build DIR] [--runs N] [--transport NAME]
#
# DIR is where polycm is built. Medians of the runs. A ratio above 1 says that the simulator is so many times as fast
# as UCX. Large blocks are written from one buffer to one buffer, which are in the cache. As root the programs run
# with the best nice value, so that others on the machine count less. memcpy and the time of a cache line are in what
# bench/latency and bench/memory print (`make bench && ./run bench/memory').

set -u
build=$PWD runs=5 transport=roce
while [ $# -gt 0 ]; do
	case $1 in
	--build) build=${2:?} ;;
	--runs) runs=${2:?} ;;
	--transport) transport=${2:?} ;;
	*) sed -n '4,/^$/s/^# \{0,1\}//p' "$0"; exit 2 ;;
	esac
	shift 2
done
build=$(realpath "$build") || exit 2
[ -x "$build/tools/polycm" ] || { echo "bench/peers.sh: polycm is not built in $build: give --build DIR" >&2; exit 2; }
if [ -z "${abs_top_builddir-}" ]; then
	exec "$build/run" bash "$0" --build "$build" --runs "$runs" --transport "$transport"
fi
. "$abs_top_srcdir/tests/programs/lib.sh" || exit 1
need ib_send_lat ib_send_bw
first=()
[ "$(id -u)" -ne 0 ] || first=(nice -n -20)
run=("$build/tools/polycm" run --transport "$transport" --fabric "peers-$$" --)
port=$((21000 + $$ % 5000))

# Of the runs that have a figure.
median() { sort -n | awk '{ figure[NR] = $1 } END { if (NR) print figure[int((NR + 1) / 2)] }'; }

# serves PORT: waits until somebody listens there.
serves() {
	local hex

	printf -v hex ':%04X 0*:0000 0A ' "$1"
	until cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q "$hex"; do
		kill -0 "$server" 2>/dev/null || return
		sleep 0.05
	done
}

# figure COLUMN SERVER... --- CLIENT...: the column of the client's last line of figures.
figure() {
	local column=$1 serve=()

	shift
	while [ "$1" != --- ]; do
		serve+=("$1")
		shift
	done
	shift
	"${first[@]}" timeout 120 "${serve[@]}" >/dev/null 2>&1 &
	server=$!
	serves "$port" && "${first[@]}" timeout 120 "$@" 2>/dev/null |
		awk -v column="$column" '$1 ~ /^[0-9]+$/ { figure = $column } END { if (figure != "") print figure }'
	wait "$server"
	port=$((port + 1))
}

# perftest COLUMN PROGRAM ARGUMENT...
perftest() { figure "$1" "${run[@]}" "${@:2}" -p "$port" --- "${run[@]}" "${@:2}" -p "$port" 127.0.0.1; }

# ucx COLUMN ARGUMENT...
ucx() {
	local all=(env UCX_TLS=posix,cma UCX_LOG_LEVEL=fatal ucx_perftest -f -p "$port")

	figure "$1" "${all[@]}" --- "${all[@]}" "${@:2}" 127.0.0.1
}

# How many times as fast: of times, and of rates.
faster() {
	awk -v kind="$1" -v ours="${2:-0}" -v theirs="${3:-0}" 'BEGIN {
		if (!(ours + 0) || !(theirs + 0)) print "-"
		else printf "%.2f", kind == "us" ? theirs / ours : ours / theirs }'
}

# What is measured, its unit; the column of perftest and its command; that of ucx_perftest, its divisor, its arguments.
rows=(
	'SEND 8 B, one way|us|6|ib_send_lat -s 8 -n 100000|4|1|-t ucp_am_lat -s 8 -n 200000'
	'SEND 8 B|M/s|5|ib_send_bw -s 8 -n 500000|8|1000000|-t tag_bw -s 8 -n 1000000'
	'WRITE 8 B, memory is polled|us|6|ib_write_lat -s 8 -n 100000|4|1|-t ucp_put_lat -s 8 -n 200000'
	'WRITE 8 B, no shared mappings|us|6|env POLYCM_SIM_DIRECT=calls ib_write_lat -s 8 -n 20000|4|1|-t ucp_put_lat -s 8 -n 200000'
	'READ 8 B|us|6|ib_read_lat -s 8 -n 100000|4|1|-t ucp_get -s 8 -n 200000 -O 1'
	'fetch-and-add|us|6|ib_atomic_lat -A FETCH_AND_ADD -n 100000|4|1|-t ucp_fadd -s 8 -n 200000 -O 1'
	'WRITE 64 KiB|MiB/s|4|ib_write_bw -s 65536 -n 20000|6|1|-t ucp_put_bw -s 65536 -n 20000'
	'WRITE 64 KiB, UCX: messages|MiB/s|4|ib_write_bw -s 65536 -n 20000|6|1|-t tag_bw -s 65536 -n 20000'
	'SEND 64 KiB|MiB/s|4|ib_send_bw -s 65536 -n 20000|6|1|-t tag_bw -s 65536 -n 20000'
	'WRITE 1 MiB|MiB/s|4|ib_write_bw -s 1048576 -n 2000|6|1|-t ucp_put_bw -s 1048576 -n 2000'
	'READ 1 MiB|MiB/s|4|ib_read_bw -s 1048576 -n 2000|6|1|-t ucp_get -s 1048576 -n 2000'
	'SEND 1 MiB|MiB/s|4|ib_send_bw -s 1048576 -n 2000|6|1|-t tag_bw -s 1048576 -n 2000'
)
printf '%-30s %6s %12s %12s %8s\n' '' '' "$transport" UCX ratio
for row in "${rows[@]}"; do
	IFS='|' read -r name unit column program theirs divisor options <<<"$row"
	: >"$work/ours" && : >"$work/theirs"
	for ((i = 0; i < runs; i++)); do
		# shellcheck disable=SC2086 # words
		perftest "$column" $program >>"$work/ours"
		# shellcheck disable=SC2086
		! command -v ucx_perftest >/dev/null ||
			ucx "$theirs" $options | awk -v by="$divisor" '{ print $1 / by }' >>"$work/theirs"
	done
	a=$(median <"$work/ours") b=$(median <"$work/theirs")
	printf '%-30s %6s %12s %12s %8s\n' "$name" "$unit" "${a:-failed}" "${b:--}" "$(faster "$unit" "${a:-0}" "${b:-0}")"
done
