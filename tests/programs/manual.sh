#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The examples of the manual pages in C: each compiles, runs, and prints what the page says. The comments
# "example NAME" and "output of NAME" stand before the displays.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

: "${CC:=cc}"
need "${CC%% *}"
folder=${library%/*}
ln -sf "$library" "$work/libpolycm.so"
ln -sf "$interposer" "$work/libpolycm-interpose.so"
[ -n "${POLYCM_PROVIDER_PATH-}" ] || export POLYCM_PROVIDER_PATH=$folder/polycm

# display PAGE COMMENT: the display behind that comment, as it is shown.
display() {
	awk -v comment=".\\\\\" $2" '
		$0 == comment { wanted = 1; next }
		wanted && /^\.Bd / { inside = 1; wanted = 0; next }
		/^\.Ed$/ { inside = 0 }
		inside' "$1" | sed 's/^\\&//; s/\\e/\\/g'
}

example() {
	local page=$1 name=$2

	display "$page" "example $name" >"$work/$name.c"
	display "$page" "output of $name" >"$work/$name.expected"
	[ -s "$work/$name.c" ] && [ -s "$work/$name.expected" ] &&
		$CC -std=gnu11 -Wall -Wextra -Werror -I"$abs_top_srcdir/include" -o "$work/$name" "$work/$name.c" \
			-L"$work" -Wl,--no-as-needed -lpolycm-interpose -lpolycm -libverbs || return
	chmod -R go+rX "$work"
	exits 0 user env -C "$work" POLYCM_PROVIDER=sim LD_LIBRARY_PATH="$folder" timeout --foreground "$limit" \
		"$work/$name" &&
		diff -u "$work/$name.expected" "$work/out"
}

for page in "$abs_top_srcdir"/man/*.3; do
	while read -r name; do
		check "${page##*/}: $name" example "$page" "$name"
	done < <(sed -n 's/^\.\\" example //p' "$page")
done

calls_without_text() {
	local call

	for call in $(grep -oE '\bpolycm_sim_[a-z_]+\(' "$abs_top_srcdir/include/polycm/sim.h" | sort -u); do
		grep -qE "^\.Fn ${call%(} " "$abs_top_srcdir/man/polycm_sim.3" || echo "$call)"
	done
}
check 'each call of <polycm/sim.h> is in its page' eval \
	'calls_without_text >"$work/lacks"; cat "$work/lacks"; [ ! -s "$work/lacks" ]'

calls_without_example() {
	local call

	for call in $(grep -oE '\bpolycm_sim_[a-z_]+\(' "$abs_top_srcdir/include/polycm/sim.h" | sort -u); do
		grep -qF "$call" "$work"/*.c || echo "$call)"
	done
}
check 'and in one of its examples' eval \
	'calls_without_example >"$work/lacks"; cat "$work/lacks"; [ ! -s "$work/lacks" ]'
finish
