#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A process is killed: its host does what it would have done, no more. What a fault lost before is lost, and what
# a fault loses now, too; who asks the host about an id that is gone gets an answer at once.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need jq mkfifo
dies=$abs_top_builddir/tests/programs/dies
[ ! -x "${dies%/*}/.libs/dies" ] || dies=${dies%/*}/.libs/dies
cp "$dies" "$work/" && dies=$work/dies && chmod -R go+rX "$work" || exit 99
export POLYCM_SIM_FABRIC=test-$$
cd "$work" || exit 99
echo 'faults = ( { action = "lose"; message = "DREQ"; nth = 1; } );' >lose.cfg
mkfifo gone && chmod go+r gone && mkdir server || exit 99

# came MESSAGE TIMES: so often the server's id got it.
came() {
	local number

	number=$(jq -r "select(.kind == \"recv\" and .message == \"$1\" and .id) | .message" trace | wc -l)
	[ "$number" -eq "$2" ] && return
	printf '%s came %s times instead of %s\n' "$1" "$number" "$2"
	cat trace
	return 1
}

# killed TRANSPORT HOW DREQS DREPS SERVER_OPTIONS CLIENT_OPTIONS: what the server got then.
killed() {
	local transport=$1 how=$2 dreqs=$3 dreps=$4 result=1

	# shellcheck disable=SC2086 # options are words
	if start server "${command[@]}" run --transport "$transport" $5 --trace "$work/trace" --log info \
		"$dies" serve gone; then
		exits 137 polycm run --transport "$transport" $6 -- "$dies" ask "$how"
		result=$?
		: >gone
		wait "$server" || result=1
	fi
	stop_started
	wait
	[ "$result" -eq 0 ] && came DREQ "$dreqs" && came DREP "$dreps" && return
	cat server/server.log
	return 1
}

loses='--scenario lose.cfg'
for transport in roce ib; do
	check "$transport: connected" killed $transport '' 1 0 '' ''
	check "$transport: disconnected, and the DREQ lost" killed $transport d 0 1 '' "$loses"
	check "$transport: disconnected and destroyed, and the DREQ lost" killed $transport dx 0 1 '' "$loses"
	check "$transport: destroyed, and the DREQ lost" killed $transport x 0 1 '' "$loses"
	check "$transport: connected, and its host's DREQ lost" killed $transport '' 0 1 "$loses" ''
done
check 'nothing is left of the simulated networks' nothing_left
finish
