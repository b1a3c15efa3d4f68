#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The recorded sequences on the simulator, held against what librdmacm did on the kernel.

set -u
here=${abs_top_srcdir:?start it with ./run}/tests/sequences
golden=$abs_top_srcdir/tests/golden/sequences
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 143' INT TERM HUP

for host in mixed roce iwarp; do
	[ -e "$golden/$host.txt" ] || continue
	"$here/play" sim "$host" "$work/sim/$host" "$(sed -n 's/^== //p' "$golden/$host.txt" | tr '\n' ' ')" -j 4 || exit 99
done
"$here/compare" --diffs "$golden" "$work/sim"
