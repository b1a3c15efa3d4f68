#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# ib_send_bw on iWARP, waiting for events: the client posts as long as the server has written it credits, which it
# looks for between two posts and not while it waits for a completion. Where the server gets no processor in time the
# client waits for ever, on hardware too: so more than half of the rounds must go well. That a call waits until the peer
# has what was posted is for tests/unit/test_nic_threads.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need ib_send_bw
limit=30	# without the credits it would wait for ever, and so would the server
command=("${command[@]/#240/$limit}")
server_command=(ib_send_bw -R -e -n 100)
client_command=(ib_send_bw -R -e -n 100 127.0.0.1)
transports=(iwarp)
fabric=test-$$-iwarp
mkdir -p "$work/iwarp"

# A round counts if the client was not refused: it connects twice, and does not wait until the server listens again.
good=0 refused=0 starved=0
while [ $((good + starved)) -lt 5 ] && [ "$refused" -lt 50 ]; do
	if pair "$work/iwarp" iwarp "$fabric" >"$work/report"; then
		counts "$work/iwarp/client.out" 1 '^ *65536 +100 ' || break
		good=$((good + 1))
	elif grep -q 'rdma_connect: Connection refused' "$work/iwarp/client.log"; then
		refused=$((refused + 1))
	elif grep -q 'ended with status 124' "$work/report" ||
			grep -q 'Did not get Message' "$work/iwarp"/{server,client}.{out,log}; then
		starved=$((starved + 1))
	else
		cat "$work/report" "$work"/iwarp/{server,client}.{out,log}
		break
	fi
done
check 'it sends all messages, mostly' test "$good" -ge 3
# A server that was killed could not leave; the next process there clears that away.
polycm run --transport iwarp --fabric "$fabric" ibv_devices >/dev/null
check 'nothing is left of the simulated network' nothing_left
finish
