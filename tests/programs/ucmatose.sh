#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# ucmatose: ten connections at once, ten messages on each, in both directions.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need ucmatose
server_command=(ucmatose -c 10 -C 10 -S 1000)
client_command=(ucmatose -c 10 -C 10 -S 1000 -s 127.0.0.1)

good() {
	counts "$1/server.out" 1 '^test complete$' &&
	counts "$1/server.out" 1 '^return status 0$' &&
	counts "$1/client.out" 1 '^test complete$' &&
	counts "$1/client.out" 1 '^return status 0$' &&
	lacks "$1/client.out" 'bad' &&
	lacks "$1/server.out" 'bad'
}

pairs 20
finish
