#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# starved.sh [STEP]: two processes, of which one lacks memory, a descriptor, a mapping, a thread or room on the
# disk once: its n-th such call fails, for every STEP-th n (11). Whatever it makes of it, both
# end in time and without a crash, and whoever comes afterwards is served. 1 tries every n, in some minutes.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

step=${1-11}
patience=60	# seconds for a run, which takes some only where a message has to be repeated
ends=$abs_top_builddir/tests/programs/ends
[ ! -x "${ends%/*}/.libs/ends" ] || ends=${ends%/*}/.libs/ends
cp "$ends" "$abs_top_builddir/tests/nth/.libs/libnth.so" "$work/" && ends=$work/ends && chmod -R go+rX "$work" || exit 99

# starve N FOLDER: ${starving[@]} in front of a command makes its n-th call fail; FOLDER has what happened.
starve() {
	rm -rf "$2" && mkdir "$2" && : >"$2/report" && chmod 666 "$2/report" || exit 99
	starving=("${as_user[@]}" env "LD_LIBRARY_PATH=${library%/*}" POLYCM_PROVIDER=sim POLYCM_LOG=info
		  "POLYCM_SIM_TRANSPORT=$transport" "POLYCM_SIM_FABRIC=$fabric" "NTH_FAIL=$1"
		  "NTH_REPORT=$2/report" "LD_PRELOAD=$work/libnth.so $library")
}
was_starved() { grep -q ' failed ' "$1/report"; }

# ended WHO FOLDER STATUS: not by a time limit (124, 137) or another signal. 255 is the programs' own.
ended() {
	[ "$3" -lt 124 ] || [ "$3" -gt 192 ] && return
	printf '%s on %s: status %s after: %s\n' "$1" "$transport" "$3" "$(grep -m1 ' failed ' "$2/report")"
	tail -n 5 "$2"/*.log
	return 1
}

healthy() {
	timeout --foreground -k 2 "$patience" "${command[@]}" run --provider sim --transport "$transport" \
		--fabric "$fabric" -- "$@"
}

# Clients that starve, one after the other, each of a server that lacks nothing. A client that never asked leaves
# it to the next.
clients() {
	local folder=$work/$transport-client n good=0

	mkdir "$folder"
	server=
	for ((n = 1; ; n += step)); do
		starve "$n" "$folder/n"
		[ -n "$server" ] && kill -0 "$server" 2>/dev/null || serve "$folder" || return
		timeout --foreground -k 2 "$patience" "${starving[@]}" "$ends" ask >"$folder/n/err.log" 2>&1 </dev/null
		ended "client $n" "$folder/n" $? || return
		was_starved "$folder/n" || break
		good=$((good + 1))
	done
	# One that was asked just now may still be on its way out.
	while kill -0 "$server" 2>/dev/null; do
		healthy "$ends" ask >"$folder/last" 2>&1 && break
		ended 'the last client' "$folder/n" $? || return
	done
	wait "$server" "$reader"
	started=()
	[ "$good" -gt $((40 / step)) ]
}

serve() {
	[ -z "$server" ] || wait "$server" "$reader"
	start "$1" timeout --foreground -k 2 "$limit" "${command[@]}" run --provider sim --transport "$transport" \
		--fabric "$fabric" --log info -- "$ends" serve
}

# Servers that starve, each with clients that lack nothing: one that finds it listening is served, or told that it
# is not.
servers() {
	local folder=$work/$transport-server server n good=0 status

	mkdir "$folder"
	for ((n = 1; ; n += step)); do
		starve "$n" "$folder/n"
		timeout --foreground -k 2 "$patience" "${starving[@]}" "$ends" serve \
			>"$folder/n/out.log" 2>"$folder/n/err.log" </dev/null &
		server=$!
		started=("$server")
		while kill -0 "$server" 2>/dev/null; do
			healthy "$ends" ask >"$folder/n/client.log" 2>&1 && break
			ended "client of server $n" "$folder/n" $? || return
		done
		wait "$server"
		status=$?
		started=()
		ended "server $n" "$folder/n" "$status" || return
		was_starved "$folder/n" || break
		good=$((good + 1))
	done
	[ "$good" -gt $((40 / step)) ]
}

for transport in "${transports[@]}"; do
	fabric=starved-$$-$transport
	check "clients starve on $transport" clients
	check "servers starve on $transport" servers
	stop_started
	healthy ibv_devices >/dev/null		# clears away what was killed
done
check 'nothing is left of the simulated networks' nothing_left
finish
