#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# cmtime: a hundred connections, then a thousand, each step of them for all at once.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need cmtime ibv_devices
server_command=(cmtime -c 100)
client_command=(cmtime -c 100 -s 127.0.0.1)
server_stays=100

good() {
	local step

	# A line for each step with its times.
	for step in 'create id' 'resolve addr' 'resolve route' 'create qp' connect disconnect destroy; do
		counts "$1/client.out" 1 "^$step *: +[0-9.]+ " || return 1
	done
	for step in CONNECT_REQUEST ESTABLISHED DISCONNECTED; do
		counts "$1/server.log" "$server_stays" ": $step" || return 1
	done
}

pairs 20

server_command[2]=1000 client_command[2]=1000
server_stays=1000
pairs 2
finish
