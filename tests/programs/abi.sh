#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What the library and the plugins show to the dynamic linker, held against the librdmacm and libibverbs that
# are installed: programs bind by name and version.

library=$abs_top_builddir/core/.libs/libpolycm.so.0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

check() {
	local what=$1

	shift
	if "$@"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED: $what"
	fi
}

# exports FILE: "NAME VERSION" of every function that it defines for others; the version is empty for the base.
exports() {
	readelf --dyn-syms --wide "$1" | awk '$4 == "FUNC" && $7 != "UND" && $5 == "GLOBAL" {
		n = split($8, part, /@+/)
		print part[1], (n > 1 ? part[2] : "")
	}' | sort
}

installed() {
	ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'
}

is_empty() {
	[ ! -s "$1" ] || { cat "$1"; false; }
}

exports "$library" >"$work/ours"
exports "$(installed librdmacm.so.1)" | grep '^rdma_.* RDMACM_' >"$work/librdmacm"
exports "$(installed libibverbs.so.1)" | grep ' IBVERBS_1' >"$work/libibverbs"
grep '^rdma_' "$work/ours" >"$work/rdma"
grep '^_\?ibv_.* .' "$work/ours" >"$work/ibv"

check 'librdmacm has calls to compare with' [ -s "$work/librdmacm" ]
check 'there are calls of ours' [ -s "$work/rdma" ]
comm -23 "$work/librdmacm" "$work/rdma" >"$work/missing"
check 'every rdma_* call of librdmacm is there under its version' is_empty "$work/missing"
comm -23 "$work/ibv" "$work/libibverbs" >"$work/extra"
check 'every ibv_* call of ours is one of libibverbs, under its version' is_empty "$work/extra"
grep -v '^rdma_\|^_\?ibv_.* .' "$work/ours" | grep -v '^polycm_.* POLYCM_0$' | grep -v '^ibv_query_gid_type $' >"$work/other"
check 'nothing else is exported but polycm_* in POLYCM_0' is_empty "$work/other"

# A program that links nothing else of RDMA finds real devices only if the library brings libibverbs along.
check 'the library needs libibverbs' grep -q 'NEEDED.*\[libibverbs\.so\.1\]' <(readelf --dynamic "$library")

for plugin in "$abs_top_builddir"/providers/*/.libs/provider-*.so; do
	exports "$plugin" | grep -v '^polycm_provider_query_v1 ' >"$work/plugin"
	check "${plugin##*/} exports its query function alone" is_empty "$work/plugin"
	readelf --dyn-syms --wide "$plugin" | awk '$7 == "UND" && $8 ~ /^(polycm_|rdma_)/ { print $8 }' >"$work/plugin"
	check "${plugin##*/} needs nothing of the library" is_empty "$work/plugin"
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
