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

# --- Devices that look like others. ---

# What ibv_devinfo printed, without what a simulated device cannot do.
plain() { sed -e 's/[[:blank:]]//g' "$1" | grep -v -e '^#' -e '_cap_flags:' -e '^max_msg_sz:' -e '_sge:64$'; }

# looks_like NAME FILE [WHERE]
looks_like() {
	exits 0 polycm run --device "$1" --fabric "test-$$" ibv_devinfo -v &&
	! plain "$2" | grep -vxFf <(plain "$work/out") &&
	exits 0 polycm run --device "$1" --fabric "test-$$" "${command[@]:${#as_user[@]}}" info &&
	counts "$work/out" 1 "^    looks like +${3-$2}\$"
}
names=()
for file in "$copy"/share/polycm/devices/*; do
	names+=("${file##*/}")
	check "a device that looks like ${file##*/}" looks_like "${file##*/}" "$file"
done

printf 'hca_id: card0\nphys_port_cnt: 1\nmax_qp_wr: 7\nport: 1\nmax_mtu: 4096 (5)\nactive_mtu: 1024 (3)\nlink_layer: Ethernet\n' \
	>"$work/card"
chmod go+r "$work/card"
check 'a file of the user' looks_like "$work/card" "$work/card"
check 'what it leaves out' has "$work/out" '    not given there  fw_ver, atomic_cap, ' ', max_sge, ' ', active_width'

# A folder has a copy of the device's in /sys, too: what is constant is read from there, and which counters there are.
mkdir -p "$work"/folder/sysfs/ports/1/{hw_counters,gids} && cp "$work/card" "$work/folder/ibv_devinfo" &&
echo MT4119 >"$work/folder/sysfs/hca_type" && echo 7 >"$work/folder/sysfs/other" && ln -s /etc/passwd "$work/folder/sysfs/link" &&
echo 55 | tee "$work"/folder/sysfs/ports/1/{state,gids/99,hw_counters/{duplicate_request,rx_icrc_encapsulated}} >/dev/null &&
chmod -R go+rX "$work/folder" || exit 99
check 'a folder of the user' looks_like "$work/folder" "$work/card" "$work/folder"
# shellcheck disable=SC2016
check 'its copy of /sys' eval 'exits 0 polycm run --device "$work/folder" bash -c "
	cd /sys/class/infiniband/card0 && echo *; cat hca_type other ports/1/state; cd ports/1/hw_counters; echo *; cat *
	[ ! -e rcvd_pkts ] && [ ! -e ../gids/99 ] && [ -e ../counters/symbol_error ] && [ ! -e ../../../link ]" &&
	diff - "$work/out" <<-EOS
		board_id device fw_ver hca_type hw_rev node_desc node_guid node_type other ports subsystem sys_image_guid uevent
		MT4119
		7
		4: ACTIVE
		duplicate_request rx_icrc_encapsulated
		0
		0
	EOS'
rm "$work/folder/ibv_devinfo"
says() {
	exits "$1" "${@:3}" && counts "$work/err" 1 '^polycm: ' && has "$work/err" "$2"
}
check 'a name that does not exist' says 2 "POLYCM_SIM_DEVICE=card: no device has that name (a file's has a slash); there are: ${names[*]}" \
	polycm run --device card true
check 'the transport of another device' says 2 'POLYCM_SIM_TRANSPORT=iwarp: the transport of POLYCM_SIM_DEVICE is roce' \
	polycm run --device rxe --transport iwarp true
check 'a folder without the file' says 2 'the folder has no file ibv_devinfo' polycm run --device "$work/folder" true
check 'no name' says 2 '--device: no device is named' polycm run --device '' true
cat >"$work/scenario" <<'EOS'
nodes = ( { name = "a"; devices = ( { device = "rxe"; addresses = "10.0.0.1/24"; },
	{ device = "siw"; addresses = "10.0.1.1/24"; } ); } );
EOS
chmod go+r "$work/scenario"
check 'devices of a scenario' eval 'exits 0 polycm run --scenario "$work/scenario" ibv_devices &&
	has "$work/out" "    rxe0 " "    siw0 "'
sed -i 's/"siw"/"ssiw"/' "$work/scenario"
check 'a wrong name in a scenario' says 2 '"ssiw": no device has that name' polycm run --scenario "$work/scenario" true
sed -i 's/"ssiw"/"siw"; transport = "ib"/' "$work/scenario"
check 'a wrong transport in a scenario' says 2 'the transport is not that of the device' polycm run --scenario "$work/scenario" true
cat >"$work/scenario" <<'EOS'
nodes = ( { name = "a"; devices = ( { device = "connectx-6"; addresses = "10.0.0.1/24"; } ); },
	{ name = "b"; devices = ( { device = "e810-roce"; addresses = "10.0.0.2/24"; } ); } );
EOS
check 'cards on two kinds of link' eval '
	! polycm run --scenario "$work/scenario" --clock virtual --node a --log warn rping -c -a 10.0.0.2 -C 1 >"$work/out" 2>"$work/err" &&
	counts "$work/err" 1 "irdma0 has that address, but is on Ethernet, and mlx5_0 is on InfiniBand: nothing joins the two"'

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
