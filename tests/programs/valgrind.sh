#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Under valgrind: a program's use of an event, an id or a CQ after its end is found, and tests of all parts of the library and
# the simulator find none of ours, nor a leak.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need valgrind
[ -n "${CC-}" ] || CC=cc
! grep -q '^#define POLYCM_SANITIZED' "$abs_top_builddir/config.h" || skip 'the library has a sanitizer'
grep -q '^#define HAVE_VALGRIND_VALGRIND_H' "$abs_top_builddir/config.h" || skip 'valgrind.h was not there when polycm was built'
ln -sf "$library" "$work/libpolycm.so"
ln -sf "$interposer" "$work/libpolycm-interpose.so"
valgrind=(valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect
	  --errors-for-leak-kinds=definite,indirect --child-silent-after-fork=yes)

check 'the program compiles' $CC -g -o "$work/late" "$abs_top_srcdir/tests/programs/late.c" -L"$work" \
	-Wl,--no-as-needed -lpolycm-interpose -lpolycm -libverbs
chmod -R go+rX "$work"
sees_late() {
	user env "LD_LIBRARY_PATH=${library%/*}" POLYCM_PROVIDER=sim POLYCM_SIM_CLOCK=virtual \
		timeout --foreground "$limit" "${valgrind[@]}" "$work/late" "$@" >"$work/out" 2>"$work/err"
	has "$work/err" 'Invalid read of size 4' "free'd"
}
check 'an event after its ack' sees_late event
check 'an id after its end' sees_late id
check 'a CQ after its end' sees_late cq

clean() {
	local program=$abs_top_builddir/$1

	[ ! -x "${program%/*}/.libs/${program##*/}" ] || program=${program%/*}/.libs/${program##*/}
	[ -x "$program" ] || { echo "$program is not built"; return 1; }
	LD_LIBRARY_PATH=$abs_top_builddir/core/.libs:$abs_top_builddir/interpose/.libs \
		POLYCM_PROVIDER_PATH=$copy/lib/polycm \
		timeout --foreground "$limit" "${valgrind[@]}" "$program" >"$work/out" 2>&1 && return
	tail -n 40 "$work/out"
	return 1
}
for test in unit/test_plugins unit/test_rdma_event unit/test_layers unit/test_kernel_calls \
		unit/test_nic_rc unit/test_mad unit/test_mpa api/test_connect api/test_data api/test_files; do
	check "$test" clean "tests/$test"
done
finish
