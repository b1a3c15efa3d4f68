#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The locks of the sources, of include/lock_order.h and of docs/design.md are the same, in the same order.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

sed -n 's/^\tLOCK(\([a-z_]*\),.*/\1/p' "$abs_top_srcdir/include/lock_order.h" >"$work/checked"
sed -n '/^## 11/,$s/^| [0-9]* | `\([a-z_]*\)` |.*/\1/p' "$abs_top_srcdir/docs/design.md" >"$work/described"
check 'the table of docs/design.md has the locks of lock_order.h' diff "$work/checked" "$work/described"

lock='(pthread_(mutex|rwlock|spinlock)_t|struct polycm_latch) [a-z_]*(;| =)'
(cd "$abs_top_srcdir" && grep -rhoE --include='*.[ch]' "$lock" core interpose providers) |
	sed -E 's/(;| =)$//; s/.* //' | sort -u >"$work/declared"
sort "$work/checked" >"$work/sorted"
check 'lock_order.h has the locks of the sources' diff "$work/sorted" "$work/declared"
finish
