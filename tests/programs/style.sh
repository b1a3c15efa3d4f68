#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The style that no compiler checks (tools/check-style).
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

check 'all sources' "$abs_top_srcdir/tools/check-style" "$abs_top_srcdir"

# finds LINE WORDS: with that line at the end of a source it says so.
finds() {
	rm -rf "$work/tree" && mkdir -p "$work/tree"/{core,interpose,turn,audit,providers,include,tests,tools,bench} &&
		{ cat "$abs_top_srcdir/core/base/addr.h"; printf '%s\n' "$1"; } >"$work/tree/core/addr.h" || return 1
	"$abs_top_srcdir/tools/check-style" "$work/tree" >"$work/found" && { echo 'nothing was found'; return 1; }
	has "$work/found" "$2"
}
check 'blanks at the end of a line' finds 'int a; ' 'blanks at the end of the line'
check 'a long line' finds "/* $(printf '%0102d' 0) */" 'longer than 100 columns'
check 'blanks in place of a tab' finds '        int a;' 'indented with blanks'
finish
