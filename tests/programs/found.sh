#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# docs/found.md: the command of each bug shows it, with the same order of turns each time.
# shellcheck disable=SC2015,SC2317 # called by check
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rping ucmatose udaddy rcopy cmtime
need_turns
# Some of these bugs depend on what is in memory that was given back.
unset GLIBC_TUNABLES "${!MALLOC_@}"
page=$abs_top_srcdir/docs/found.md

# The displays of the page: base (the nodes), and for the N-th bug N.part (what comes behind them) and N.command.
# What polls for ever is ended sooner, and files are the test's.
awk -v work="$work" '
	/^```$/ { inside = !inside; next }
	inside { print > (work "/base") }
	/^## / { bugs++; print substr($0, 4) > (work "/" bugs ".title") }
	!bugs || !/^    / { next }
	{ sub(/^    /, ""); gsub("/tmp/rcopy", work "/rcopy"); gsub("two[.]scenario", work "/two.scenario") }
	/^polycm run / { sub(/--on server udaddy/, "--until 70 &"); print > (work "/" bugs ".command"); next }
	{ print > (work "/" bugs ".part") }' "$page"

# The program, what the run ends with, and a text that it prints.  Valkey has no package.
programs=(rping ucmatose udaddy rping rping ib_read_bw ucmatose ucmatose rcopy cmtime qperf qemu-system-x86_64 valkey
	ibv_srq_pingpong ibv_srq_pingpong ibv_xsrq_pingpong ibv_rc_pingpong ib_send_lat fi_pingpong fi_pingpong
	fi_pingpong ucx_perftest qperf)
statuses=(75 75 75 255 255 75 75 75 16 139 1 139 - 75 75 75 75 75 75 75 1 75 1)
texts=('server: rping, ' 'client: ucmatose, ' 'server: udaddy, ' 'rdma_create_qp: Invalid argument' 'server, a daemon, ended'
	'no id of rdma_create_id' 'client: ucmatose, ' 'client: ucmatose, ' 'order ' 'server, a daemon, is killed by signal 11'
	'failed to receive RDMA CM TCP IPv4 server port: timed out' 'rdma_accept not event established' -
	"0/52: Couldn't read remote address" 'server: ibv_srq_pingpong, ' 'server: ibv_xsrq_pingpong, '
	'client: ibv_rc_pingpong, ' 'server: ib_send_lat, ' 'server: fi_pingpong, ' ' terminated with signal 11 '
	'double free detected' 'server: ucx_perftest, ' 'failed to receive port: timed out')

# shows N
shows() {
	local words i

	cat "$work/base" "$work/$1.part" >"$work/two.scenario"
	chmod a+r "$work/two.scenario"
	read -ra words <"$work/$1.command"
	for i in 1 2; do
		polycm run --log info "${words[@]:2}" >"$work/$1.out.$i" 2>&1
		[ $? -eq "${statuses[$1 - 1]}" ] && grep -qF "${texts[$1 - 1]}" "$work/$1.out.$i" || {
			printf 'expected status %d and: %s\n' "${statuses[$1 - 1]}" "${texts[$1 - 1]}"
			cat "$work/$1.out.$i"
			return 1
		}
	done
	cmp <(sed -n 's/.* order //p' "$work/$1.out.1") <(sed -n 's/.* order //p' "$work/$1.out.2")
}

for ((n = 1; n <= ${#statuses[@]}; n++)); do
	program=${programs[n - 1]}
	if [ "$program" = valkey ] || ! command -v "$program" >/dev/null; then
		echo "left out, $program is not installed: $(cat "$work/$n.title")"
	elif grep -qE "no namespaces|no network of its own" "$work/probe" &&
	     grep -qE '^tcp =|/dev/tcp/|qperf|fi_pingpong' "$work/$n".{part,command}; then
		echo "left out, there is no TCP: $(cat "$work/$n.title")"
	else
		check "$(cat "$work/$n.title")" shows "$n"
	fi
done
check 'all of them' test ! -e "$work/$n.title"
finish
