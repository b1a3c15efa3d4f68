#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The test on the first screen of README.md: it compiles as it stands, passes, and prints the ladder that stands there.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

: "${CC:=cc}"
need "${CC%% *}"
readme=$abs_top_srcdir/README.md
ln -sf "$library" "$work/libpolycm.so"
ln -sf "$interposer" "$work/libpolycm-interpose.so"

# display KIND: the first one of that kind.
display() {
	awk -v begin="\`\`\`$1" '$0 == begin { inside = 1; next } inside && /^```$/ { exit } inside' "$readme"
}
display c >"$work/lost.c"
display text >"$work/expected"
check 'there is a test' [ -s "$work/lost.c" ]
check 'it compiles' $CC -Wall -Wextra -Werror -I"$copy/include" -o "$work/lost" "$work/lost.c" -L"$work" \
	-Wl,--no-as-needed -lpolycm-interpose -lpolycm -libverbs
chmod -R go+rX "$work"
check 'it passes' exits 0 user env POLYCM_PROVIDER=sim POLYCM_SIM_TRACE="$work/trace" \
	LD_LIBRARY_PATH="${library%/*}" timeout --foreground "$limit" "$work/lost"
prints_the_ladder() {
	exits 0 polycm timeline --cm "$work/trace" && [ -s "$work/out" ] && diff -u "$work/expected" "$work/out"
}
check 'and its ladder is the one that is shown' prints_the_ladder
finish
