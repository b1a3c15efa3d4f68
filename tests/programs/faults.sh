#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# An unmodified program on a fabric where things go wrong: rping with a scenario file that has nothing but faults.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rping
export POLYCM_SIM_FABRIC=test-$$
# `polycm run' finds a scenario by its absolute path, wherever the program goes.
cd "$work" || exit 99

# scenario NAME FAULT...: a file with these faults.
scenario() {
	local name=$1 fault

	shift
	{
		echo 'faults = ('
		for fault; do
			printf '  { %s },\n' "$fault"
		done | sed '$ s/,$//'
		echo ');'
	} >"$work/$name.cfg"
}

# client STATUS SCENARIO TRANSPORT: a server, and a client with the faults, which ends with that status.
client() {
	local status=$1 scenario=$2 transport=$3 result=1

	mkdir -p "$work/server"
	if start "$work/server" "${command[@]}" run --transport "$transport" --log info -- rping -s -C 3 -v -V; then
		exits "$status" polycm run --scenario "$scenario.cfg" --transport "$transport" --trace "$work/trace" \
			--log warn -- rping -c -a 127.0.0.1 -C 3 -v -V
		result=$?
		[ "$status" -ne 0 ] || wait "$server" || result=1
	fi
	stop_started
	wait
	return $result
}

pings() { client 0 "$@" && counts "$work/out" 3 '^ping data: rdma-ping-[0-9]: '; }
# so_often NUMBER ACTION: that happened.
so_often() { counts "$work/trace" "$1" '"kind":"fault".*"action":"'"$2"'"'; }

scenario lose 'action = "lose"; message = "REQ"; nth = 1;'
check 'a lost request is repeated' eval 'pings lose roce && so_often 1 lose'

scenario reject 'action = "reject"; message = "REQ"; reason = "consumer_defined";'
check 'a rejected client sees the reason' eval 'client 255 reject roce && so_often 1 reject &&
	has "$work/err" "REJECTED"'

scenario late 'action = "delay"; message = "any"; times = 20; delay = "2 ms";' \
	'action = "duplicate"; message = "cm"; count = 2;'
check 'late and doubled messages do no harm' eval 'pings late roce'

scenario fail 'action = "fail"; message = "create_qp"; error = "EMFILE";'
for transport in "${transports[@]}"; do
	check "a call fails on $transport" eval 'client 255 fail $transport && has "$work/err" "Too many open files"'
done

sed -n '/^.Sh EXAMPLES/,/^.Ed/ { /^[^.A-Z]/p; }' "$abs_top_srcdir/man/polycm-scenario.5" | sed '1,/^seed/ { /^seed/!d; }' \
	>example.cfg
check "the manual's example" eval 'has example.cfg "port_down" && exits 0 polycm run --scenario example.cfg true'

# The client's process sees the message, and the server's loses its device.
removed() {
	local status

	{
		echo 'nodes = ( { name = "a"; devices = ( { addresses = "10.0.0.1/24"; } ); },'
		echo '          { name = "b"; devices = ( { addresses = "10.0.0.2/24"; } ); } );'
		echo 'faults = ( { action = "remove_device"; on = "b"; message = "REQ"; nth = 1; } );'
	} >removed.cfg
	mkdir -p server
	start "$work/server" "${command[@]}" run --scenario removed.cfg --node b --log info -- \
		rping -s -a 10.0.0.2 -C 1 -v || return
	polycm run --scenario removed.cfg --node a -- rping -c -a 10.0.0.2 -C 1 >out 2>&1 &
	started+=($!)
	wait "$server"
	status=$?
	wait "$reader"
	stop_started
	wait
	[ "$status" -ne 0 ] && has server/server.log 'DEVICE_REMOVAL'
}
check 'what happens to a node happens in its processes' removed

# A rule that did nothing is told, with its line.
scenario never 'action = "lose"; message = "DREQ"; nth = 9;'
missed() {
	POLYCM_LOG=warn exits 0 polycm run --scenario never.cfg -- "$@" &&
		has "$work/err" 'never.cfg:2: fault rule 1 (lose DREQ) has never happened' && counts "$work/err" 1 'never'
}
check 'a fault that never happened' missed ibv_devinfo
# Errors come from the command, before the program starts.
refused() {
	exits 2 polycm run --scenario "$1" -- touch "$work/started" && [ ! -e "$work/started" ] &&
		has "$work/err" "$2" && counts "$work/err" 1 .
}
scenario unknown 'action = "lose"; message = "REK";'
check 'an unknown message' refused unknown.cfg \
	"unknown.cfg:2: this fault: there is no message, call or lookup 'REK'; nearest: 'REQ'"
echo 'seed = ;' >syntax.cfg
check 'a syntax error' refused syntax.cfg "syntax.cfg:1: expected a value for 'seed', found ';'"
check 'a file that is not there' refused none.cfg 'none.cfg: No such file or directory'
check 'a folder' refused . 'Is a directory'
finish
