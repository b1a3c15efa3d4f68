#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The sources stand in rooms, and include only what is in lower ones (tools/rooms).
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

check 'each include leads down' "$abs_top_srcdir/tools/rooms"

check 'each symbol leads down' "$abs_top_srcdir/tools/rooms" --symbols "$abs_top_builddir"

# finds LINE FILE WORDS: with that line in that file it says so.
finds() {
	rm -rf "$work/tree" && mkdir "$work/tree" &&
		cp -R "$abs_top_srcdir"/{include,core,interpose,turn,audit,sockets,providers,tools,bench} "$work/tree/" &&
		mkdir -p "$work/tree/${2%/*}" && printf '%s\n' "$1" >>"$work/tree/$2" || return 1
	"$abs_top_srcdir/tools/rooms" "$work/tree" >"$work/found" && { echo 'nothing was found'; return 1; }
	has "$work/found" "$3"
}
check 'an include that leads up' finds '#include "core/cm/id.h"' core/base/log.c \
	'includes core/cm/id.h, of a room above its own'
check 'a provider that looks into the core' finds '#  include "core/base/log.h"' providers/roce/rules.h \
	'includes core/base/log.h, of another library'
check 'the same inside the simulator' finds '#include "providers/soft/nic/nic.h"' providers/soft/link/link.c \
	'includes providers/soft/nic/nic.h, of a room above its own'

# A function of core/cm that core/base calls.
finds_symbol() {
	mkdir -p "$work/built/core/base/.libs" "$work/built/core/cm/.libs" "$work/built/providers" &&
		echo 'void up(void); void down(void); void down(void) { up(); }' |
			${CC:-cc} -x c -c -o "$work/built/core/base/.libs/log.o" - &&
		echo 'void up(void); void up(void) { }' | ${CC:-cc} -x c -c -o "$work/built/core/cm/.libs/id.o" - ||
		return 1
	"$abs_top_srcdir/tools/rooms" --symbols "$work/built" >"$work/found" && { echo 'nothing was found'; return 1; }
	has "$work/found" 'core/base/.libs/log.o: uses up of core/cm/.libs/id.o, of a room above its own'
}
check 'a symbol that leads up' finds_symbol
check 'a folder that is no room' finds '' core/attic/new.c 'core/attic is no room'
finish
