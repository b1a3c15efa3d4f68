# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2034 # what the tests use
#
# Two hosts for tests of the provider ofi: network namespaces of one user namespace, joined by a cable (a veth pair),
# made by an ordinary user. Tests source it after lib.sh, and call
#
#	hosts			makes host one and host two, or skips the test; a subshell may have its own
#	hosts_down		ends them, which a subshell has to do itself
#	on HOST COMMAND...	runs a command there
#	play TRANSPORT [PORT]	sets ${polycm_one[@]} and ${polycm_two[@]}, in front of a command: it runs there with
#				polycm, with ofi playing that transport, and the gate at that TCP port; not longer
#				than $play_limit; if that is empty, as the process that it is started as
#	apart FOLDER [PORT]	runs ${server_command[@]} on host two and ${client_command[@]} on host one, as pair in
#				lib.sh; the server is ready when it listens: by its log, or at that TCP port
#	lose, deliver		what either host sends gets lost from now on, without a word; or arrives again
#	unplug, plug		the cable, which both see
#	listens HOST PORT	returns when a TCP port is listened on there
#	until_it SECONDS COMMAND...	returns when the command succeeds, or fails after so long
#
# ${address_one[0]} is IPv4, ${address_one[1]} IPv6, ${address_one[2]} another IPv4; the same for two.
# ${one[@]} and ${two[@]} in front of a command run it there and become its process.
#
# When the shell that made them ends, so do both, whichever way that is: they wait for the end of a FIFO that it has open.

address_one=(10.99.0.1 fd99::1 10.99.0.101)
address_two=(10.99.0.2 fd99::2 10.99.0.102)
one=() two=() polycm_one=() polycm_two=()
pid_one='' pid_two='' hosts_fifo='' hosts_hold=

# On host one; becomes that which keeps it. Each says that it is there, and waits.
hosts_keep='
set -e
ip link set lo up
exec {second}< <(exec unshare -n sh -c "echo up; exec cat \"\$0\" >/dev/null" "$1")
two=$!
read -r _ <&"$second"
exec {second}<&-
# With other numbers at both ends Linux does not wait up to a second before it tells that the link is up.
ip link add eth0 index 10 type veth peer name eth0 netns "$two" index 20
configure() {
	[ ! -d /proc/sys/net/ipv6 ] || echo 1 >/proc/sys/net/ipv6/conf/eth0/keep_addr_on_down
	ip link set lo up
	ip addr add "$1/24" dev eth0
	ip -6 addr add "$2/64" dev eth0 nodad || echo "no IPv6" >&2
	ip addr add "$3/24" dev eth0
	ip link set eth0 up
}
configure "${@:2:3}"
nsenter -n -t "$two" bash -c "set -e; $(declare -f configure); configure \"\$@\"" "$0" "${@:5:3}"
for host in $$ "$two"; do
	until nsenter -n -t "$host" ip -br link show dev eth0 | grep -q " UP "; do sleep 0.02; done
done
echo "$two"
exec cat "$1" >/dev/null
'

hosts() {
	local up

	need ip unshare nsenter mkfifo
	hosts_fifo=$(mktemp -u "$work/hold.XXXXXX")
	mkfifo "$hosts_fifo" && exec {hosts_hold}<>"$hosts_fifo" || exit 99
	exec {up}< <(exec {hosts_hold}>&-
		exec "${as_user[@]}" unshare -Urn bash -c "$hosts_keep" "$0" "$hosts_fifo" "${address_one[@]}" \
			"${address_two[@]}" 2>"$hosts_fifo.err")
	pid_one=$!
	[ "$BASHPID" != "$$" ] || trap hosts_clean_up EXIT
	if ! read -r pid_two <&"$up"; then
		skip "two hosts cannot be made of network namespaces: $(head -n 1 "$hosts_fifo.err")"
	fi
	exec {up}<&-
	one=("${as_user[@]}" nsenter --preserve-credentials -U -n -t "$pid_one" --)
	two=("${as_user[@]}" nsenter --preserve-credentials -U -n -t "$pid_two" --)
}

hosts_down() {
	[ -z "$pid_two" ] || kill "$pid_two" 2>/dev/null
	[ -z "$pid_one" ] || kill "$pid_one" 2>/dev/null
	exec {hosts_hold}>&-
}

hosts_clean_up() {
	local status=$?

	[ "$BASHPID" != "$$" ] || hosts_down
	(exit "$status")
	clean_up
}

on() {
	local -n host=$1

	"${host[@]}" "${@:2}"
}

play_settings=()	# more of the environment: NAME=VALUE
play_limit=$limit
play() {
	local with=(${play_limit:+timeout --foreground -k 2 "$play_limit"} env "LD_LIBRARY_PATH=${library%/*}" "POLYCM_OFI_TRANSPORT=$1" "POLYCM_OFI_PORT=${2-14791}"
		    "${play_settings[@]}" "$copy/bin/polycm" run --provider ofi --log "${OFI_LOG-info}" --)

	polycm_one=("${one[@]}" "${with[@]}")
	polycm_two=("${two[@]}" "${with[@]}")
}

# Frames for another card's address are not taken in: needs no module of the kernel, and no firewall.
lose() {
	local address

	for address in "${address_two[@]}"; do
		on one ip neigh replace "$address" lladdr 02:00:00:00:00:01 nud permanent dev eth0
	done
	for address in "${address_one[@]}"; do
		on two ip neigh replace "$address" lladdr 02:00:00:00:00:01 nud permanent dev eth0
	done
}

deliver() {
	local address

	for address in "${address_two[@]}"; do
		on one ip neigh del "$address" dev eth0
	done
	for address in "${address_one[@]}"; do
		on two ip neigh del "$address" dev eth0
	done
}

unplug() { on one ip link set eth0 down; }
plug() { on one ip link set eth0 up; }

listens() {
	local -n pid=pid_$1
	local entry

	printf -v entry ':%04X [0-9A-F:]* 0A ' "$2"
	until grep -qs "$entry" "/proc/$pid/net/tcp" "/proc/$pid/net/tcp6"; do
		# With both at once, kill succeeds if one of them is there.
		kill -0 "$pid" 2>/dev/null && kill -0 "${server:-$pid}" 2>/dev/null || return
		read -r -t 0.02 _ <>"$hosts_fifo"
	done
	true
}

until_it() {
	local end=$((SECONDS + $1))

	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return
		read -r -t 0.05 _ <>"$hosts_fifo"
	done
	true
}

apart() {
	local folder=$1 port=${2-} status

	if [ -n "$port" ]; then
		"${polycm_two[@]}" "${server_command[@]}" >"$folder/server.out" 2>"$folder/server.log" </dev/null &
		server=$! reader=$!
		started+=("$server")
		listens two "$port"
	else
		start "$folder" "${polycm_two[@]}" "${server_command[@]}"
	fi || { echo 'the server does not listen'; return 1; }
	client_ends_well "$folder" "${polycm_one[@]}" "${client_command[@]}" || return 1
	[ -z "$server_stays" ] || kill "$server"
	wait "$server"
	status=$?
	wait "$reader"
	[ "$status" -eq "$((server_stays ? 143 : 0))" ] && return
	printf 'the server ended with status %s\n' "$status"
	return 1
}
