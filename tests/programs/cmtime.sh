#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# cmtime: a hundred connections, each step of them for all at once.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need cmtime
server_command=(cmtime -c 100)
client_command=(cmtime -c 100 -s 127.0.0.1)

good() {
	local step

	# A line for each step with its total and largest time.
	for step in 'create id' 'bind addr' 'resolve addr' 'resolve route' 'create qp' connect disconnect \
		    destroy; do
		counts "$1/client.out" 1 "^$step +:" || return 1
	done
}

pairs 20
finish
