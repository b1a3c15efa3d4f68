#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# RDMA between two hosts with the provider ofi, beside plain TCP sockets on the same network and, if it is installed,
# libfabric's fi_pingpong, in turn: two network namespaces, made by an ordinary user. Needs perftest.
#
#	bench/hosts.sh [--build DIR] [--runs N] [--fabric LIST]
#
# fi_pingpong uses the first fabric of LIST (default: net): its rate is that of messages one after the other, there and
# back.
#
# Medians of the runs. A ratio says how many times as long it takes, or which part of the rate is left. As root the
# programs run with the best nice value, so that others on the machine count less. --fabric: POLYCM_OFI_FABRIC.

set -u
build=$PWD runs=5 fabric=
while [ $# -gt 0 ]; do
	case $1 in
	--build) build=${2:?} ;;
	--runs) runs=${2:?} ;;
	--fabric) fabric=${2:?} ;;
	*) sed -n '4,/^$/s/^# \{0,1\}//p' "$0"; exit 2 ;;
	esac
	shift 2
done
build=$(realpath "$build") || exit 2
[ -x "$build/bench/tcp" ] || { echo "bench/hosts.sh: no benchmarks in $build: start make bench there" >&2; exit 2; }
if [ -z "${abs_top_builddir-}" ]; then
	exec "$build/run" bash "$0" --build "$build" --runs "$runs" ${fabric:+--fabric "$fabric"}
fi
. "$abs_top_srcdir/tests/programs/lib.sh" || exit 1
. "$abs_top_srcdir/tests/programs/hosts.sh" || exit 1
need ib_send_lat
limit=60
[ -z "$fabric" ] || play_settings=("POLYCM_OFI_FABRIC=$fabric")
cp "$build/bench/tcp" "$work/" && chmod go+rx "$work/tcp" || exit 1
hosts
play roce
first=()
[ "$(id -u)" -ne 0 ] || first=(nice -n -20)

median() { sort -n | sed -n "$(((runs + 1) / 2))p"; }

# tcp [--sleep]: "MICROSECONDS MIB/S" of a plain socket.
tcp() {
	"${first[@]}" "${two[@]}" "$work/tcp" serve 24999 >/dev/null &
	server=$!
	listens two 24999 && "${first[@]}" "${one[@]}" "$work/tcp" ask "${address_two[0]}" 24999 "$@"
	wait "$server"
}

# perftest COLUMN PROGRAM ARGUMENT...: a figure of the client's last line.
perftest() {
	local column=$1

	shift
	"${first[@]}" "${polycm_two[@]}" "$@" -p 24998 >/dev/null 2>&1 &
	server=$!
	listens two 24998 && "${first[@]}" "${polycm_one[@]}" "$@" -p 24998 "${address_two[0]}" 2>/dev/null |
		awk -v column="$column" '/#bytes/ { getline; print $column }'
	wait "$server"
}

# libfabric COLUMN ARGUMENT...: a figure of fi_pingpong's line.
libfabric() {
	local column=$1 provider=${fabric%%,*}

	shift
	"${first[@]}" "${two[@]}" fi_pingpong -e rdm -p "${provider:-net}" -B 24997 "$@" >/dev/null 2>&1 &
	server=$!
	listens two 24997 && "${first[@]}" "${one[@]}" fi_pingpong -e rdm -p "${provider:-net}" -P 24997 "$@" \
		"${address_two[0]}" 2>/dev/null | awk -v column="$column" 'NR == 2 { print $column }'
	wait "$server"
}

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (a + 0 && b + 0) printf "%.2f", b / a; else print "-" }'; }

# rows: NAME, COLUMN of the yardstick's line, of perftest's, and its command; COLUMN of fi_pingpong's, and options.
rows=(
	'64 B SEND, one way, both poll (us)|1||6|ib_send_lat -s 64 -n 5000|7|-S 64 -I 5000'
	'64 B SEND, one way, both sleep (us)|1|--sleep|6|ib_send_lat -s 64 -n 2000 -e||'
	'64 KiB WRITE (MiB/s)|2||4|ib_write_bw -s 65536 -n 4000|6|-S 65536 -I 2000'
	'1 MiB WRITE (MiB/s)|2||4|ib_write_bw -s 1048576 -n 1000|6|-S 1048576 -I 300'
	'1 MiB READ (MiB/s)|2||4|ib_read_bw -s 1048576 -n 1000||'
	'1 MiB SEND (MiB/s)|2||4|ib_send_bw -s 1048576 -n 1000|6|-S 1048576 -I 300'
)
printf '%-38s %10s %10s %10s %13s %10s\n' '' RDMA TCP ratio libfabric ratio
for row in "${rows[@]}"; do
	IFS='|' read -r name column option figure program theirs options <<<"$row"
	: >"$work/tcp.figures" && : >"$work/rdma.figures" && : >"$work/libfabric.figures"
	for ((run = 0; run < runs; run++)); do
		tcp ${option:+"$option"} | cut -d' ' -f"$column" >>"$work/tcp.figures"
		# shellcheck disable=SC2086 # words
		perftest "$figure" $program >>"$work/rdma.figures"
		# shellcheck disable=SC2086
		[ -z "$theirs" ] || ! command -v fi_pingpong >/dev/null ||
			libfabric "$theirs" $options >>"$work/libfabric.figures"
	done
	a=$(median <"$work/tcp.figures") b=$(median <"$work/rdma.figures") c=$(median <"$work/libfabric.figures")
	# MB/s there, MiB/s here.
	[ "$theirs" != 6 ] || c=$(awk -v c="${c:-0}" 'BEGIN { if (c) printf "%.0f", c / 1.048576 }')
	printf '%-38s %10s %10s %10s %13s %10s\n' "$name" "${b:-failed}" "$a" "$(ratio "$a" "${b:-0}")" "${c:--}" \
		"$(ratio "${c:-0}" "${b:-0}")"
done
