#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Processes on the nodes of one scenario: each has its node's device, addresses and port numbers, and all have
# the same file.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rping ibv_devices

# scenario TRANSPORT: three nodes that play it.
scenario() {
	local name number=0

	echo 'nodes = ('
	for name in a b c; do
		number=$((number + 1))
		printf '  { name = "%s"; devices = ( { transport = "%s"; addresses = [ "10.0.0.%d/24" ]; } ); }%s\n' \
			"$name" "$1" "$number" "$([ $name = c ] || echo ,)"
	done
	echo ');'
}

# on NODE COMMAND...: a process on that node.
on() { polycm run --fabric "test-$$" --scenario "$file" --node "$1" --log info -- "${@:2}"; }

# One server on each of two nodes, on the same port number; clients on the third find both.
meet() {
	local -a servers=()
	local node number run

	file=$work/$1.cfg
	scenario "$1" >"$file"
	for node in b c; do
		mkdir -p "$work/$1-$node"
		run=("${command[@]}" run --fabric "test-$$" --scenario "$file" --node "$node" --log info --)
		start "$work/$1-$node" "${run[@]}" rping -s -C 3 -v -V || return
		servers+=("$server")
	done
	other_file || return
	for number in 2 3; do
		exits 0 on a rping -c -a "10.0.0.$number" -C 3 -v -V || return
		counts "$work/out" 3 '^ping data: rdma-ping-[0-9]: ' || return
	done
	for server in "${servers[@]}"; do
		wait "$server" || return
	done
	for node in b c; do
		counts "$work/$1-$node/server.out" 3 '^server ping data: rdma-ping-[0-9]: ' || return
	done
	wait
	started=()
}

# Not the file that those who are there have.
other_file() {
	local good=$file

	file=$work/other.cfg
	{ cat "$good" && echo '# one more line'; } >"$file"
	exits 19 on a rping -c -a 10.0.0.2 -C 1 || return	# ENODEV
	file=$good
	has "$work/err" 'other.cfg: processes with another scenario file are on this fabric'
}

devices_of() {
	file=$work/roce.cfg
	exits 0 on "$1" ibv_devices && counts "$work/out" 1 '^    sim' && has "$work/out" "$2"
}

for transport in "${transports[@]}"; do
	check "nodes meet on $transport" meet "$transport"
done
check 'the first node has the first device' devices_of a sim0
check 'the last node has the last device' devices_of c sim2
check 'a node has no address of another' eval 'exits 255 on a rping -s -a 10.0.0.2 -C 1 &&
	has "$work/err" "Cannot assign requested address"'
check 'a node that the file does not have' eval 'exits 2 on d rping -c -a 10.0.0.2 -C 1 && has "$work/err" \
	"POLYCM_SIM_NODE=d: the scenario has no node of that name; there are: a, b, c"'
check 'a node without a scenario' eval 'exits 2 polycm run --node a rping -s -C 1 &&
	has "$work/err" "--node a: there is no scenario that could have that node: give --scenario FILE"'
check 'nothing is left of the simulated networks' nothing_left
finish
