#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Which library the dynamic linker takes each call of librdmacm from, in programs and in the libraries that they
# need: always from libpolycm.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rping readelf
sed -n 's/^\([a-z].*\) RDMACM_.*/\1/p' "$abs_top_srcdir/tests/programs/librdmacm-exports.golden" | sort >"$work/exports"

# All is bound at the start, and an unknown option ends the program.
bound() {
	local program

	program=$(command -v "$1")
	readelf --dyn-syms --wide "$program" | awk '$7 == "UND" { sub(/@.*/, "", $8); print $8 }' | sort -u |
		comm -12 - "$work/exports" >"$work/references"
	polycm run --provider sim -- env LD_BIND_NOW=1 LD_DEBUG=bindings "$program" '-?' >"$work/out" 2>&1
	# FROM TO NAME; a name stands between a grave accent and an apostrophe.
	sed -n "s/.*binding file \(.*\) \[[0-9]*\] to \(.*\) \[[0-9]*\]: .*symbol .\([^ ']*\)'.*/\1 \2 \3/p" "$work/out" |
		awk 'NR == FNR { export[$1]; next } $3 in export' "$work/exports" - >"$work/bindings"
	awk -v library="$library" '$2 != library' "$work/bindings" >"$work/elsewhere"
	awk -v program="$program" '$1 == program { print $3 }' "$work/bindings" | sort -u >"$work/ours"
	[ -s "$work/references" ] && diff "$work/references" "$work/ours" &&
		! grep . "$work/elsewhere"
}

for program in cmtime ib_send_bw mckey rcopy rdma_client rdma_server rdma_xclient rdma_xserver riostream rping rstream \
		ucmatose udaddy udpong; do
	! command -v "$program" >/dev/null || check "$program" bound "$program"
done
finish
