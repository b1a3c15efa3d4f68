#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# /sys as programs find it under `polycm run': by commands, shells, Python and C, the same as ibv_devinfo says;
# counters that grow; nothing of it left behind. A program that only looks truncates no trace.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rping ibv_devinfo ls cat find
class=/sys/class/infiniband

run() { polycm run --fabric "test-$$" "${options[@]}" -- "$@"; }
options=(--provider sim)

# prints TEXT COMMAND...: under polycm run, all that it prints.
prints() {
	local expected=$1 text

	shift
	text=$(run "$@" 2>&1) || { printf 'failed: %s\n%s\n' "$*" "$text"; return 1; }
	[ "$text" = "$expected" ] && return
	printf '%s:\n%s\ninstead of\n%s\n' "$*" "$text" "$expected"
	return 1
}

# --- Commands and shells. ---

commands_list_and_read() {
	prints sim0 ls $class &&
	exits 0 run ls -lR $class/ /sys/class/infiniband_verbs/ &&
	has "$work/out" 'sim0 -> ../../devices/pciffff:00/ffff:00:00.0/infiniband/sim0' \
		'uverbs0 -> ../../devices/pciffff:00/ffff:00:00.0/infiniband_verbs/uverbs0' &&
	[ ! -s "$work/err" ] &&
	exits 0 run ls -R $class/sim0/ && has "$work/out" ports/1/gid_attrs/types: port_xmit_data &&
	exits 0 run ls $class/sim0/device/ && has "$work/out" numa_node infiniband_verbs net &&
	prints '4: ACTIVE' cat $class/sim0/ports/1/state &&
	prints '100 Gb/sec (4X EDR)' head -n 1 $class/sim0/ports/1/rate &&
	exits 0 run find $class/sim0/ports/ -name state && has "$work/out" $class/sim0/ports/1/state &&
	exits 1 run cat $class/sim0/nothing && has "$work/err" 'No such file'
}

# The shell is its argument.
shell_goes_there() {
	prints "$class/sim0/ports/1/lid $class/sim0/ports/1/lid_mask_count" \
		"$1" -c "echo $class/*/ports/[0-9]/lid*" &&
	prints "$class/sim0 1: CA 0xffff" "$1" -c \
		"cd $class/sim0 && echo \$(pwd) \$(cat node_type) \$(cat ports/1/pkeys/0)" &&
	prints yes "$1" -c "[ -d $class/sim0/ports ] && [ -r $class/sim0/fw_ver ] && [ ! -e $class/sim1 ] && echo yes"
}

python_reads() {
	user python3 -c '' 2>/dev/null || return 0
	prints "['sim0'] True 4: ACTIVE $class/sim0/ports/1 sim0" python3 -c "
import glob, os
print(os.listdir('$class'), os.path.exists('$class/sim0/ports'), open('$class/sim0/ports/1/state').read().strip(),
      glob.glob('$class/*/ports/*')[0], [e.name for e in os.scandir('$class')][0])"
}

ib_tools() {
	command -v ibstatus >/dev/null || return 0
	exits 0 run ibstatus && has "$work/out" "Infiniband device 'sim0' port 1 status:" '4: ACTIVE' &&
	exits 0 run ibstat && has "$work/out" "CA 'sim0'" 'State: Active' 'Rate: 100'
}

# --- The same as the verbs. ---

# field NAME: of ibv_devinfo's first device.
field() { sed -n "s/^[[:space:]]*$1:[[:space:]]*//p" "$work/devinfo" | head -n 1; }

as_ibv_devinfo() {
	run ibv_devinfo -v >"$work/devinfo" 2>"$work/err" || return
	prints "$(field node_guid)" cat $class/sim0/node_guid &&
	prints "$(field sys_image_guid)" cat $class/sim0/sys_image_guid &&
	prints "$(field fw_ver)" cat $class/sim0/fw_ver &&
	prints "$(field board_id)" cat $class/sim0/board_id &&
	prints "4: $(field state | sed 's/PORT_\([A-Z]*\).*/\1/')" cat $class/sim0/ports/1/state &&
	prints "$(field port_cap_flags)" cat $class/sim0/ports/1/cap_mask &&
	prints "$(field link_layer)" cat $class/sim0/ports/1/link_layer
}

two_devices() {
	cat >"$work/two.cfg" <<'END'
nodes = (
  { name = "a"; devices = ( { transport = "roce"; addresses = [ "10.0.0.1/24" ]; },
                            { transport = "ib"; addresses = [ "10.0.1.1/24" ]; } ); },
  { name = "b"; devices = ( { transport = "iwarp"; addresses = [ "10.0.2.1/24" ]; } ); }
);
END
	options=(--scenario "$work/two.cfg" --node a)
	prints $'sim0\nsim1' ls $class &&
	prints $'Ethernet\nInfiniBand' sh -c "cat $class/*/ports/1/link_layer" &&
	prints $'sim0\nsim1' sh -c 'cat /sys/class/infiniband_verbs/uverbs*/ibdev' &&
	prints 'eth0' cat $class/sim0/ports/1/gid_attrs/ndevs/1 &&
	options=(--scenario "$work/two.cfg" --node b) &&
	prints sim2 ls $class && prints '4: RNIC' cat $class/sim2/node_type
}

# --- What happens. ---

# ask COMMAND: of the shell that stays on the fabric.
ask() {
	printf '%s\n' "$1" >&"${shell[1]}"
	read -r -t "$limit" -u "${shell[0]}" answer
}

counters_grow() {
	local sent received counters=$class/sim0/ports/1/counters

	coproc shell { run bash 2>&1; }
	started+=("$shell_PID")
	ask "echo $class/*" && [ "$answer" = $class/sim0 ] || return
	ask "cat $counters/port_xmit_packets" && [ "$answer" = 0 ] || return
	start "$work" "${command[@]}" run --fabric "test-$$" --provider sim --log info -- rping -s -C 5 || return
	run rping -c -a 127.0.0.1 -C 5 >/dev/null || return
	wait "$server" || return
	ask "cat $counters/port_xmit_packets" && sent=$answer &&
	ask "cat $counters/port_rcv_packets" && received=$answer &&
	ask "cat $class/sim0/ports/1/hw_counters/rdma_sends" || return
	# Both ends are on the device, so what was sent was received, but for an answer to an end that has just left:
	# of two that disconnect, each may send one.
	[ "$sent" -gt 30 ] && [ "$received" -le "$sent" ] && [ "$received" -ge $((sent - 2)) ] &&
		[ "$answer" -ge 10 ] || {
		printf 'sent %s, received %s, %s sends\n' "$sent" "$received" "$answer"
		return 1
	}
	ask "echo \$(($(date +%s) - \$(date +%s) < 60))" && [ "$answer" = 1 ] || return
	exec {shell[1]}>&-
	wait "$shell_PID"
	started=()
}

looking_changes_nothing() {
	local trace=$work/kept.trace

	options=(--clock virtual --provider sim --trace "$trace")
	user sh -c "echo kept >'$trace'" || return
	prints $'sim0\nkept' sh -c "ls $class; cat '$trace'" &&
	has "$trace" kept || return
	exits 0 run ibv_devinfo && lacks "$trace" kept
}

# The folders of programs that were killed are removed by the next one.
nothing_is_left() {
	local left pid

	options=(--provider sim)
	run bash -c "echo $class/* \$\$; kill -KILL \$\$" >"$work/out" 2>&1
	read -r left pid _ <"$work/out" && [ "$left" = $class/sim0 ] || return
	prints sim0 ls $class || return
	# Others may be there: tests that run beside this one have theirs.
	left=$(find /dev/shm /tmp -maxdepth 1 -name "polycm-sysfs-*-$pid-*" -user "$(user id -u)" 2>/dev/null)
	[ -z "$left" ] && return
	printf 'left: %s\n' "$left"
	return 1
}

# What has such a name and was not made by polycm may be anybody's: another user may have moved it there.
others_folders_stay() {
	options=(--provider sim)
	# shellcheck disable=SC2016 # for that shell
	prints sim0 sh -c 'theirs=/dev/shm/polycm-sysfs-$(id -u)-$(stat -Lc %i /proc/self/ns/pid)-1-1-theirs
		mkdir -m 755 "$theirs" "$theirs/file" && ls '"$class"' && rmdir "$theirs/file" "$theirs"'
}

# What is not simulated is the host's.
without_simulation() {
	options=()
	[ ! -e $class ] || return 0
	exits 2 polycm run -- ls $class
}

check 'ls, cat, find' commands_list_and_read
for shell in sh bash dash; do
	command -v $shell >/dev/null || continue
	check "$shell" shell_goes_there $shell
done
unset shell
check Python python_reads
check 'ibstatus and ibstat' ib_tools
check 'the same as ibv_devinfo' as_ibv_devinfo
check 'two devices, two nodes' two_devices
options=(--provider sim)
check 'counters grow' counters_grow
check 'looking changes nothing' looking_changes_nothing
check 'nothing is left' nothing_is_left
check "others' folders stay" others_folders_stay
check 'without simulation' without_simulation
finish
