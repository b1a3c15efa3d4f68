#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# rstream over rsockets on iWARP, polling: the server closes right after its last message, which the client
# must have seen by then.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rstream
server_command=(rstream -b 127.0.0.1 -T a -S 1000000 -C 1 -I 20)
client_command=(rstream -s 127.0.0.1 -T a -S 1000000 -C 1 -I 20)

good() {
	counts "$1/server.out" 1 '^custom .* 20 ' &&
	counts "$1/client.out" 1 '^custom .* 20 '
}

transports=(iwarp)
pairs 10
finish
