#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# mckey: one process sends to a group, two receive. iWARP has no groups: no QP for them, as on a device.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need mckey hostname
# Nothing leads to a group from a loopback address.
hostname -I | grep -qE '[0-9]+\.[0-9]+' || skip 'this host has no IPv4 address of its own'
command_line=(mckey -m 239.1.2.3 -C 10 -S 1000)
# The line of a receiver that is ready.
listening=': MULTICAST_JOIN'

# pair FOLDER TRANSPORT FABRIC: a sender and, in spite of the name, two receivers.
pair() {
	local folder=$1 receiver status receivers=()
	local run=("${command[@]}" run --provider sim --transport "$2" --fabric "$3" --log info --)

	for receiver in 1 2; do
		mkdir -p "$folder/$receiver"
		if ! start "$folder/$receiver" "${run[@]}" "${command_line[@]}"; then
			echo "receiver $receiver does not join"
			stop_started
			return 1
		fi
		receivers+=("$server")
	done
	"${run[@]}" "${command_line[@]}" -s >"$folder/client.out" 2>"$folder/client.log" </dev/null
	status=$?
	for receiver in "${receivers[@]}"; do
		wait "$receiver" || status=$?
	done
	wait
	started=()
	cat "$folder"/[12]/server.out >"$folder/server.out"
	cat "$folder"/[12]/server.log >"$folder/server.log"
	[ "$status" -eq 0 ] && return
	printf 'one of them ended with status %s\n' "$status"
	return 1
}

good() {
	counts "$1/client.out" 1 '^data transfers complete$' &&
	counts "$1/client.out" 1 '^return status 0$' &&
	counts "$1/server.out" 2 '^data transfers complete$' &&
	counts "$1/server.out" 2 '^return status 0$'
}

refused() {
	exits 255 polycm run --provider sim --transport iwarp --fabric "test-$$-none" \
		"${command_line[@]}" &&
	has "$work/err" 'unable to create QP: Operation not supported'
}

check 'iWARP has no groups' refused
transports=(roce ib)
# A sender sleeps three seconds before it begins.
pairs 2
finish
