#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Every scenario on the simulator, held against what librdmacm did on the kernel (tests/golden).

set -u
here=${abs_top_srcdir:?start it with ./run}/tests/scenarios
results=${abs_top_builddir:?}/tests/scenarios/results	# stays, for the table of ./check --kernel
rm -rf "$results"
mkdir -p "$results" || exit 99
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
trap 'kill "${players[@]}" 2>/dev/null; wait; exit 143' INT TERM HUP

# Where processes of a simulated network meet.
export HOME=$work XDG_RUNTIME_DIR=$work/runtime SCENARIO_PATIENCE=10
mkdir -m 700 "$XDG_RUNTIME_DIR" || exit 99

# Exit status 77: skipped. The reason is the line before the last one.
skip() {
	printf 'skipped: %s\n\n' "$*"
	exit 77
}

for program in unshare ip; do
	command -v "$program" >/dev/null || skip "$program is not installed"
done

# Those with several processes wait in real time, all others take none.
players=()
for transport in roce iwarp ib; do
	"$here/play" sim "$transport" "$results/sim/$transport" -j 16 --slow &
	players+=($!)
done
for player in "${players[@]}"; do
	wait "$player"
	case $? in
	0) ;;
	77) skip 'no network namespaces for this user' ;;
	*) exit 99 ;;
	esac
done
"$here/compare" --diffs "$results"
result=$?

# docs/fidelity.md tells people what the lists tell compare: each scenario of a list is in a table there, and no other.
listed=$(awk '!/^#/ && NF { print $1 }' "$here/open" "$here/ib" "$here/apart" | sort -u)
told=$(sed -n '/^| `/s/^| \([^|]*\)|.*/\1/p' "$abs_top_srcdir/docs/fidelity.md" | grep -o '`[a-z0-9-]*`' | tr -d '`' | sort -u)
if [ "$listed" != "$told" ]; then
	echo 'FAILED: docs/fidelity.md (>) and the lists of tests/scenarios (<) name different scenarios:'
	diff <(echo "$listed") <(echo "$told")
	result=1
fi
exit "$result"
