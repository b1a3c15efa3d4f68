#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Links and faults between two hosts, with the provider ofi: `polycm run --scenario FILE' at host one, which applies to
# what that host sends.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99
. "$abs_top_srcdir/tests/programs/hosts.sh" || exit 99

play_limit=60
need rping
steps=$abs_top_builddir/tests/programs/steps
[ ! -x "${steps%/*}/.libs/steps" ] || steps=${steps%/*}/.libs/steps
cp "$steps" "$work/" && steps=$work/steps && chmod go+rx "$steps" "$work" || exit 99
hosts

folder=$work/effects
mkdir "$folder" && chmod go+rx "$folder" || exit 99

# scenario TRANSPORT TEXT: what host one has from now on.
scenario() {
	printf '%s\n' "$2" >"$folder/file.cfg" && chmod go+r "$folder/file.cfg"
	play "$1"
	polycm_one=("${polycm_one[@]:0:${#polycm_one[@]}-1}" --scenario "$folder/file.cfg" --)
}

# pings TRANSPORT TEXT: rping, which checks all data, ends well with that.
pings() {
	scenario "$@"
	server_command=(rping -s -C 10 -V) client_command=(rping -c -C 10 -V -a "${address_two[0]}")
	apart "$folder" && return
	tail -n 10 "$folder"/{server,client}.{out,log}
	stop_started
	return 1
}

# steps_log TRANSPORT TEXT STEP...: at host one, alone.
steps_log() {
	scenario "${@:1:2}"
	"${polycm_one[@]}" "$steps" "to=${address_two[0]}" "${@:3}" >"$folder/out" 2>&1
}

rejects() {
	steps_log roce 'faults = ( { action = "reject"; message = "REQ"; reason = "consumer_defined"; } );' \
		resolve ADDR_RESOLVED route ROUTE_RESOLVED connect REJECTED:28 && return
	cat "$folder/out"
	return 1
}

refuses() {
	! steps_log roce 'nodes = ( { name = "a"; devices = ( { addresses = "10.0.0.1/24"; } ); } );' resolve ADDR_RESOLVED &&
		has "$folder/out" 'file.cfg:1: ' 'nodes'
}

check 'a request is rejected by rule' rejects
check 'a message of data is lost' pings ib 'faults = ( { action = "lose"; message = "SEND"; nth = 2; } );'
check 'a link loses' pings iwarp 'links = ( { loss = 0.1; } );'
check 'a link is slow' pings roce 'links = ( { latency = "5 ms"; jitter = "5 ms"; bandwidth = "100 Mbit/s"; } );'
check 'a scenario with nodes is refused' refuses
finish
