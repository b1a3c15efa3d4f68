#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The public headers and their macros compile in each standard of C and C++, with the warnings that programs
# have; and a test in C++ adds faults and runs.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
include=$abs_top_srcdir/include
folder=${library%/*}
ln -sf "$library" "$work/libpolycm.so"
ln -sf "$interposer" "$work/libpolycm-interpose.so"
[ -n "${POLYCM_PROVIDER_PATH-}" ] || export POLYCM_PROVIDER_PATH=$folder/polycm

# Each header twice and alone, then all of them and all macros with arguments in one program.
for header in "$include"/polycm/*.h; do
	name=${header##*/}
	printf '#include <polycm/%s>\n#include <polycm/%s>\nint polycm_test_unit;\n' "$name" "$name" \
		>"$work/${name%.h}.unit.cc"
	[ "$name" != sim_cxx.h ] || continue
	cp "$work/${name%.h}.unit.cc" "$work/${name%.h}.unit.c"
	printf '#include <polycm/%s>\n' "$name" >>"$work/all.h"
done
cat >"$work/use.c" <<'END'
#include <string.h>

#include "all.h"
#include <rdma/rdma_cma.h>

/* A table of another side that ends with post_event(). */
static int has(void)
{
	struct polycm_core core;
	const struct polycm_core *theirs = &core;

	memset(&core, 0, sizeof(core));
	core.size = (uint32_t)offsetof(struct polycm_core, child_create);
	return POLYCM_HAS(theirs, post_event) && !POLYCM_HAS(theirs, child_create) && !POLYCM_HAS(&core, free);
}

int main(void)
{
	struct polycm_sim_node *node;
	struct polycm_sim_fault *fault;
	struct rdma_cm_id *id;
	unsigned int hits = 0;

	if (!has() || polycm_sim_create(1) || polycm_sim_node_add("a", "roce", "10.0.0.1/24", &node) ||
	    polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_FAIL,
						  .message = "create_id", .nth = 2, .error = 24),
				 &fault) ||
	    polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE, .from = node), NULL))
		return 1;
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) || rdma_destroy_id(id) ||
	    !rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return 2;
	return polycm_sim_fault_hits(fault, &hits) || hits != 1 || polycm_sim_destroy();
}
END
ln -s use.c "$work/use.cc"

compile() { "$1" -std="$2" "${warnings[@]}" -I"$include" "${@:3}"; }

# What a header includes does not depend on the standard: the first that the compiler knows is enough.
alone() {
	local file

	for file in "$work"/*.unit."$3"; do
		compile "$1" "$2" -fsyntax-only "$file" || return
	done
}

program() { compile "$1" "$2" -o "$work/use" "$work/use.$3" -L"$work" -Wl,--no-as-needed -lpolycm-interpose -lpolycm; }

# standards COMPILER SUFFIX STANDARD...
standards() {
	local compiler=$1 suffix=$2 standard known=

	shift 2
	command -v "$compiler" >/dev/null || return 0
	for standard; do
		"$compiler" -std="$standard" -fsyntax-only -x "${suffix/cc/c++}" /dev/null 2>/dev/null || continue
		[ -n "$known" ] || check "$compiler, each header alone" alone "$compiler" "$standard" "$suffix"
		known=1
		check "$compiler -std=$standard" program "$compiler" "$standard" "$suffix"
	done
}

# glibc's headers of C99 lack what libibverbs' need, so gnu99.
for compiler in gcc clang; do
	standards "$compiler" c gnu99 gnu11 gnu17 gnu2x
done
for compiler in g++ clang++; do
	standards "$compiler" cc c++11 c++14 c++17 c++20 c++23 gnu++11 gnu++20
	[ -x "$work/use" ] || continue
	chmod -R go+rX "$work"
	check "the program of $compiler runs" exits 0 user env -C "$work" POLYCM_PROVIDER=sim \
		LD_LIBRARY_PATH="$folder" timeout --foreground "$limit" "$work/use"
	rm -f "$work/use"
done

long_headers() { wc -l "$include"/polycm/*.h | awk '$1 > 500 && $2 != "total" { print; long = 1 } END { exit !long }'; }
check 'no header is long' eval '! long_headers'

# facts HEADER STRUCT: the table in the header's comment has each operation of the struct, in its order.
facts() {
	local header=$include/polycm/$1

	diff -u <(sed -n "/^struct $2 {/,/^};/s/^\t[a-z][^(]*(\*\([a-z_]*\))(.*/\1/p" "$header") \
		<(sed -n '/^ \* Operation /,/^ \*$/s/^ \* \([a-z_][a-z_]*\) .*/\1/p' "$header")
}
check 'facts of each operation' facts provider.h polycm_ops
check 'facts of each operation of a layer' facts layer.h polycm_layer_ops
check 'facts of each operation of a clock' facts clock.h polycm_clock

macros_without_use() {
	grep -ohE '^#define POLYCM_[A-Z_]+\(' "$include"/polycm/*.h | sed 's/.* //; s/($//' | sort -u |
		while read -r macro; do
			grep -q "$macro(" "$work/use.c" || echo "$macro()"
		done
}
check 'each macro with arguments is in the program' eval \
	'macros_without_use >"$work/lacks"; cat "$work/lacks"; [ ! -s "$work/lacks" ]'

finish
