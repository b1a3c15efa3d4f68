#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Traces and captures are the same, byte for byte, in two runs, and in two builds (debug and release, gcc and
# clang): OTHER_BUILDS names build folders in which `make check-traces' was run, for the second run.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

# These programs run as whoever started the test, whose own the other folder is not.
mkdir -m 700 "$work/own" && export XDG_RUNTIME_DIR=$work/own || exit 99
part=''	# of what is seen at the same time
situations=(handshake data reject refuse loss sidr)

# What a program of that build is, without libtool's script around it.
program() {
	local program=$1/${2%/*}/.libs/${2##*/}

	[ -x "$program" ] || program=$1/$2
	printf '%s' "$program"
}

# in_build BUILD PROGRAM ARG...
in_build() {
	local build=$1 program transport path=''

	for transport in ib roce iwarp sim fault trace; do
		path+=:$build/providers/$transport/.libs
	done
	program=$(program "$build" "$2")
	shift 2
	abs_top_builddir=$build LD_LIBRARY_PATH=$build/core/.libs:$build/interpose/.libs POLYCM_PROVIDER_PATH=${path#:} \
		"$program" "$@" >"$work/out$part" 2>&1 && return
	cat "$work/out$part"
	return 1
}

# see BUILD FOLDER: all situations, seen with the programs of that build.
see() {
	local build=$1 folder=$2 situation transport

	mkdir -p "$folder" || return
	for transport in "${transports[@]}"; do
		for situation in "${situations[@]}"; do
			[ "$situation-$transport" != sidr-iwarp ] || continue
			in_build "$build" tests/programs/seeing "$situation" "$transport" \
				"$folder/$situation-$transport.trace" \
				"$folder/$situation-$transport.pcap" || return
		done
	done
	see_all_tests "$build" "$folder"
}

# Two halves at the same time.
see_all_tests() {
	local half

	see_tests "$1" "$2" 1 &
	half=$!
	see_tests "$1" "$2" 0 || { wait "$half"; return 1; }
	wait "$half"
}

# see_tests BUILD FOLDER PART: the tests of the exported calls, whose many files are kept as sums. Not those with
# threads that act at the same time (clocks, forks, rsocket_threads), nor in real time (no_thread, timers_real,
# without_device), nor over UDP sockets, whose ports the host chooses (rsocket_dgram), nor what tells its peer an
# address (rsocket_iomap), nor what has a trace of its own (look).
see_tests() {
	local build=$1 folder=$2 part=$3 source name number=0

	for source in "$abs_top_srcdir"/tests/api/test_*.c; do
		number=$((number + 1))
		[ $((number % 2)) -eq "$part" ] || continue
		name=${source##*/}
		name=${name%.c}
		case $name in
		test_clocks|test_forks|test_look|test_no_thread|test_rsocket_dgram|test_rsocket_iomap|\
		test_rsocket_threads|test_timers_real|test_without_device) continue ;;
		esac
		mkdir "$work/seen$part" || return
		POLYCM_SIM_TRACE=$work/seen$part/trace POLYCM_SIM_PCAP=$work/seen$part/pcap \
			in_build "$build" "tests/api/$name" || return
		(cd "$work/seen$part" && find . -type f | LC_ALL=C sort | xargs -r sha256sum) >"$folder/$name"
		rm -r "$work/seen$part"
	done
}

check 'a run' see "$abs_top_builddir" "$work/first"
check 'there is something in it' eval '[ "$(cat "$work"/first/*.trace | wc -l)" -gt 500 ]'
check 'and in that of tests' eval '[ "$(cat "$work"/first/test_* | wc -l)" -gt 1000 ]'
for build in ${OTHER_BUILDS-"$abs_top_builddir"}; do
	check "again, in $build" see "$build" "$work/other"
	check "$build sees the same" diff -r "$work/first" "$work/other"
	rm -rf "$work/other"
done
finish
