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

# Over hardware, too, a client that got no processor between the last message and the end finds both at once, and
# ends with status 16 as if the message had not come. So more than half of the rounds must go well; that a call waits until
# the peer has what was posted is for tests/unit/test_nic_threads.
folder=$work/iwarp
fabric=test-$$-iwarp
mkdir -p "$folder"
well=0 starved=0
for ((round = 1; round <= 10; round++)); do
	if pair "$folder" iwarp "$fabric" >"$work/report"; then
		good "$folder" || break
		well=$((well + 1))
	elif grep -q 'the client ended with status 16' "$work/report"; then
		starved=$((starved + 1))
	else
		cat "$work/report"
		break
	fi
done
[ "$round" -gt 10 ] || tail -n 40 "$folder"/{server,client}.{out,log}
check 'each round ends' test "$((well + starved))" -eq 10
check 'most go well' test "$well" -gt "$starved"
# A server that was ended could not leave; the next process there clears that away.
polycm run --transport iwarp --fabric "$fabric" ibv_devices >/dev/null
check 'nothing is left of the simulated network' nothing_left
finish
