#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# ucmatose: ten connections at once, then a hundred, ten messages on each, in both directions.
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

server_command[2]=100 client_command[2]=100
pairs 3

# Over addresses of AF_IB, which InfiniBand alone has: by the GID of the host's device.
if command -v ibv_devinfo >/dev/null; then
	transports=(ib)
	gid=$(polycm run --provider sim --transport ib --fabric "test-$$-ib" -- ibv_devinfo -v |
	      sed -n 's/^[[:space:]]*GID\[[[:space:]]*0\]:[[:space:]]*\([0-9a-f:]*\).*/\1/p' | head -n 1)
	server_command=(ucmatose -f gid -P ib -b "$gid" -c 10 -C 10 -S 1000)
	client_command=(ucmatose -f gid -P ib -s "$gid" -c 10 -C 10 -S 1000)
	pairs 5
fi
finish
