#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# ibv_devices and ibv_devinfo see a simulated device as a real one of its transport, and programs that find no
# device are told what to do.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need ibv_devices ibv_devinfo

on() { polycm run --transport "$1" --fabric "test-$$" "${@:2}"; }

# field NAME VALUE: a line of ibv_devinfo.
field() {
	awk -F: -v name="$1" -v value="$2" '
		{ key = $1; gsub(/[ \t]/, "", key); text = substr($0, index($0, ":") + 1); gsub(/^[ \t]+/, "", text) }
		key == name { seen = text; if (text ~ value) found = 1 }
		END { if (!found) printf "%s is \"%s\", not %s\n", name, seen, value; exit !found }' "$work/out"
}

devices_of() {
	exits 0 on "$1" ibv_devices &&
	counts "$work/out" 1 '^    sim0[[:blank:]]+[0-9a-f]{16}$'
}

devinfo_of() {
	exits 0 on "$1" ibv_devinfo -v &&
	counts "$work/out" 1 '^hca_id:' &&
	field hca_id '^sim0$' &&
	field phys_port_cnt '^1$' &&
	field state '^PORT_ACTIVE' &&
	field max_qp_rd_atom '^[1-9]' &&
	field max_qp_init_rd_atom '^[1-9]' || return
	case $1 in
	ib)
		field transport '^InfiniBand \(0\)$' && field link_layer '^InfiniBand$' &&
		field port_lid '^[1-9]' && field 'GID[0]' '^fe80:'
		;;
	roce)
		field transport '^InfiniBand \(0\)$' && field link_layer '^Ethernet$' &&
		field port_lid '^0$' && counts "$work/out" 1 'GID.*::ffff:127\.0\.0\.1, RoCE v2$'
		;;
	iwarp)
		field transport '^iWARP \(1\)$' && field link_layer '^Ethernet$' && lacks "$work/out" 'RoCE'
		;;
	esac
}

info_of() {
	exits 0 on "$1" "${command[@]:${#as_user[@]}}" info &&
	has "$work/out" "  sim0  provider sim, transport $1, node GUID " 'port 1  active, ' 'yes, 1 device' &&
	lacks "$work/out" 'none'
}

for transport in "${transports[@]}"; do
	check "ibv_devices on $transport" devices_of "$transport"
	check "ibv_devinfo -v on $transport" devinfo_of "$transport"
	check "polycm info on $transport" info_of "$transport"
done

# --- Without a device. ---

hint() {
	exits "$1" polycm run "${@:2}" && has "$work/err" 'POLYCM_PROVIDER=sim'
}
# rping's exit status is an errno, here ENODEV.
check 'rping without a device' hint 19 rping -s -a 127.0.0.1
check 'a provider that does not exist, by the environment' eval '
	POLYCM_PROVIDER=simm exits 19 polycm run rping -s -a 127.0.0.1 &&
	has "$work/err" "simm" "ib" "iwarp" "roce" "sim"'
check 'a transport that does not exist, by the environment' eval '
	POLYCM_PROVIDER=sim POLYCM_SIM_TRANSPORT=rocky exits 19 polycm run rping -s -a 127.0.0.1 &&
	has "$work/err" "rocky"'
check 'without polycm nothing changes' eval '! user ibv_devinfo -d sim0 >/dev/null 2>&1'

finish
