#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# udaddy: datagrams between two processes, resolved by SIDR. iWARP has none: no QP, as on a device.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need udaddy ibv_devices
server_command=(udaddy -b 127.0.0.1 -c 3 -C 10 -S 1000)
client_command=(udaddy -s 127.0.0.1 -c 3 -C 10 -S 1000)

good() {
	local end

	for end in server client; do
		counts "$1/$end.out" 1 '^data transfers complete$' &&
		counts "$1/$end.out" 1 '^test complete$' &&
		counts "$1/$end.out" 1 '^return status 0$' || return 1
	done
}

refused() {
	exits 255 polycm run --provider sim --transport iwarp --fabric "test-$$-none" \
		udaddy -s 127.0.0.1 &&
	has "$work/err" 'unable to create QP: Operation not supported' &&
	has "$work/out" 'return status -1'
}

check 'iWARP has no datagrams' refused
transports=(roce ib)
pairs 10
finish
