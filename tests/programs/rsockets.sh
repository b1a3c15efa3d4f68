#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# libpolycm's rsockets and librdmacm's, each as server and as client of the other: what goes over the wire is the
# same. And files with rcopy.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rstream riostream udpong rcopy
real=$copy/lib/librsockets-real.so
cp "$abs_top_builddir/tests/programs/.libs/librsockets-real.so" "$real" && chmod go+rX "$real" || exit 99

# A program with LIBRARY... loaded before libpolycm.
# shellcheck disable=SC2016
before='LD_PRELOAD="$1:$LD_PRELOAD"; shift; export LD_PRELOAD; exec "$@"'

# whose KIND PROGRAM...: into $whose.
whose() {
	local kind=$1

	shift
	whose=("$@")
	[ "$kind" = ours ] || whose=(bash -c "$before" _ "$real" "$@")
}

# What a real client is told at once, it may take for an end without data (rstream.sh): a polling one is ours.
streams=(
	'rstream -S 1500 -C 500 -I 5 -T b'
	'rstream -S 200000 -C 10 -I 3 -T b -T v'
	'rstream -S 65536 -C 10 -I 5 -T n'
	'riostream -S 65536 -C 1 -I 5 -T b -T v'
	'riostream -S 1000000 -C 2 -I 2 -T n'
)

# stream TRANSPORT SERVER CLIENT PROGRAM ARG...
stream() {
	local transport=$1 server_kind=$2 client_kind=$3 folder=$work/stream

	shift 3
	mkdir -p "$folder"
	whose "$server_kind" "$@" -b 127.0.0.1
	server_command=("${whose[@]}")
	whose "$client_kind" "$@" -s 127.0.0.1
	client_command=("${whose[@]}")
	pair "$folder" "$transport" "test-$$-$transport" && counts "$folder/client.out" 1 '^custom ' && return
	tail -n 20 "$folder"/{server,client}.{out,log}
	return 1
}

for transport in "${transports[@]}"; do
	for kinds in 'ours ours' 'ours real' 'real ours'; do
		for program in "${streams[@]}"; do
			# shellcheck disable=SC2086
			check "$program, server and client $kinds on $transport" stream "$transport" $kinds $program
		done
	done
done
# A client that polls for each message.
for transport in "${transports[@]}"; do
	check "polling on $transport" stream "$transport" real ours rstream -S 100000 -C 1 -I 20 -T a
	check "polling on $transport" stream "$transport" ours ours rstream -S 100000 -C 1 -I 20 -T a
done

# --- datagrams, as in udpong.sh ---

read -r address _ < <(hostname -I)
# Of the host, as those of udpong.sh, which may run at the same time.
port=$((10000 + $$ % 10000))

bound() {
	local hex

	printf -v hex ':%04X' "$1"
	until grep -q "$hex 00000000:0000" /proc/net/udp; do
		kill -0 "$server" 2>/dev/null || return
	done
}

# echoes TRANSPORT SERVER CLIENT
echoes() {
	local run=("${command[@]}" run --transport "$1" --fabric "test-$$-$1" --) status
	local args=(-p "$port" -T e -S 500 -C 1000)

	whose "$2" udpong -b "$address" "${args[@]}"
	"${run[@]}" "${whose[@]}" >"$work/server" 2>&1 </dev/null &
	server=$!
	started+=("$server")
	whose "$3" udpong -s "$address" "${args[@]}"
	bound "$port" && "${run[@]}" "${whose[@]}" >"$work/client" 2>&1 </dev/null
	status=$?
	stop_started
	wait "$server"
	[ "$status" -eq 0 ] && counts "$work/client" 1 '^custom ' && return
	cat "$work"/{server,client}
	return 1
}

# librdmacm's make an address handle without a GID on RoCE.
case ${address-} in
*.*)
	for kinds in 'ib ours ours' 'ib ours real' 'ib real ours' 'roce ours ours'; do
		port=$((port + 1))
		# shellcheck disable=SC2086
		check "udpong: $kinds" echoes $kinds
	done
	;;
esac

# Of datagrams over loopback the line of log says why not.
says_why() {
	"${command[@]}" run --transport roce --fabric "test-$$-roce" --log warn -- udpong -s 127.0.0.1 >"$work/client" 2>&1
	grep -q 'rconnect: No such device (it would be sent from loopback' "$work/client" && return
	cat "$work/client"
	return 1
}
check 'datagrams from loopback are refused with the reason' says_why

# --- rcopy ---

# copies TRANSPORT SERVER CLIENT
copies() {
	local run=("${command[@]}" run --transport "$1" --fabric "test-$$-$1" --log info --) status

	rm -f "$work/files/copy"
	port=$((port + 1))
	whose "$2" rcopy -p "$port"
	start "$work/files" "${run[@]}" "${whose[@]}" || return
	whose "$3" rcopy "$work/files/source" "127.0.0.1:$work/files/copy" -p "$port"
	"${run[@]}" "${whose[@]}" >"$work/client" 2>&1 </dev/null
	status=$?
	stop_started
	wait "$server"
	[ "$status" -eq 0 ] && cmp "$work/files/source" "$work/files/copy" && return
	cat "$work/client" "$work/files"/server.*
	return 1
}

mkdir "$work/files" && head -c 3000000 /dev/urandom >"$work/files/source" && chmod -R a+rwX "$work/files"
for kinds in 'roce ours ours' 'iwarp ours ours' 'ib ours real' 'ib real ours'; do
	# shellcheck disable=SC2086
	check "rcopy: $kinds" copies $kinds
done

# A server that was ended could not leave; the next process there clears that away.
for transport in "${transports[@]}"; do
	polycm run --transport "$transport" --fabric "test-$$-$transport" ibv_devices >/dev/null
done
check 'nothing is left of the simulated networks' nothing_left
finish
