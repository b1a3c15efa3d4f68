#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Programs with sanitizers run under polycm run and polycm explore: without a report where they have no bug, and
# with one where they have.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

grep -q '^#define POLYCM_SANITIZED 1' "$abs_top_builddir/config.h" && skip 'polycm itself has a sanitizer'
unset ASAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS
cp "$abs_top_srcdir/tests/programs/sanitized.c" "$work/"
cd "$work" || exit 99

# build COMPILER SANITIZER
build() { "$1" -O1 -g -Wall -Wextra "-fsanitize=$2" -o "$1-$2" sanitized.c -lrdmacm -libverbs -pthread 2>build.err; }

quiet() { exits 0 polycm "$@" && has out done && lacks err 'Sanitizer'; }

# finds WORDS COMMAND...: the bug is reported.
finds() {
	local words=$1

	shift
	polycm "$@" >out 2>err
	[ $? -ne 0 ] && has err "$words"
}

tried=0
for compiler in gcc clang; do
	command -v "$compiler" >/dev/null || continue
	for sanitizer in address thread undefined; do
		build "$compiler" "$sanitizer" || continue
		chmod -R go+rX .
		program=./$compiler-$sanitizer
		tried=$((tried + 1))
		for clock in virtual real; do
			check "$program, $clock time" quiet run --provider sim --clock "$clock" -- "$program"
		done
		[ "$sanitizer" = thread ] ||
			check "$program started by a shell" quiet run --clock virtual -- sh -c "$program; exit \$?"
		check "$program, explored" exits 0 polycm explore --seeds 1-2 --jobs 1 --timeout 200 -- "$program" show
		[ "$sanitizer" != address ] ||
			check "$program with an overflow" finds 'heap-buffer-overflow' run --provider sim -- "$program" overflow
		[ "$sanitizer" != thread ] ||
			check "$program with a race" finds 'data race' run --provider sim -- "$program" race
	done
done
[ "$tried" -gt 0 ] || skip 'no compiler here has a sanitizer'

# The runtime is found by the program's name, too, and stands before the library and what was preloaded.
first() {
	LD_PRELOAD=libm.so.6 PATH=$work:$PATH exits 0 polycm run --clock virtual -- gcc-address show &&
		counts out 1 '^libasan\.so[.0-9]*:[^:]*/libpolycm-interpose\.so[.0-9]*:[^:]*/libpolycm\.so[.0-9]*:libm\.so\.6$'
}
[ ! -x gcc-address ] || check 'the runtime comes first' first

finish
