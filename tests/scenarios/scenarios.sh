#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Every scenario on the simulator, held against what librdmacm did on the kernel (tests/golden).
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need unshare ip
chosen=()
for transport in roce iwarp; do
	user env SCENARIO_PATIENCE=10 "$abs_top_srcdir/tests/scenarios/play" sim "$transport" \
		"$work/sim/$transport" -j 4 --slow "${chosen[@]}"
	case $? in
	0) ;;
	77) skip 'no network namespaces for this user' ;;
	*) exit 99 ;;
	esac
done
"$abs_top_srcdir/tests/scenarios/compare" --diffs "$work"
