#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A program of one's own: linked with -lpolycm first, linked with librdmacm and the library preloaded by hand,
# and started by polycm run. first.c is the program in README.md.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

: "${CC:=cc}"
need "${CC%% *}" rping
source=$abs_top_srcdir/tests/programs/first.c
folder=${library%/*}
ln -sf "$library" "$work/libpolycm.so"
ln -sf "$interposer" "$work/libpolycm-interpose.so"
export POLYCM_SIM_FABRIC=test-$$
[ -n "${POLYCM_PROVIDER_PATH-}" ] || export POLYCM_PROVIDER_PATH=$folder/polycm

check 'first.c is the program of README.md' eval \
	'diff <(sed -n "/^#include/,\$p" "$source") <(sed -n "/^#include <stdio.h>/,/^}/p" "$abs_top_srcdir/README.md")'
check 'it compiles with -lpolycm first' \
	$CC -Wall -Wextra -Werror -o "$work/first" "$source" -L"$work" -lpolycm -libverbs
check 'it compiles with -lrdmacm' \
	$CC -Wall -Wextra -Werror -o "$work/first-rdmacm" "$source" -lrdmacm -libverbs
chmod -R go+rX "$work"

first=(user env POLYCM_PROVIDER=sim timeout --foreground "$limit")

# Nobody listens: the reason is in the log. Then somebody does.
refused() {
	exits 1 "$@" && has "$work/err" 'no connection: Connection refused' 'nobody listens'
}
connects() {
	local status=1

	mkdir -p "$work/server"
	if start "$work/server" "${command[@]}" run --provider sim --log info rping -s -a 127.0.0.1 -p 7471; then
		exits 0 "$@" && counts "$work/out" 1 '^connected through sim0$'
		status=$?
	fi
	stop_started
	wait
	return "$status"
}

linked=("${first[@]}" env "LD_LIBRARY_PATH=$folder" POLYCM_LOG=warn "$work/first")
preloaded=("${first[@]}" env "LD_PRELOAD=$library" POLYCM_LOG=warn "$work/first-rdmacm")
started_by_run=(polycm run --provider sim --log warn "$work/first-rdmacm")
for way in linked preloaded started_by_run; do
	declare -n program=$way
	check "$way: refused" refused "${program[@]}"
	check "$way: connected" connects "${program[@]}"
done

binds_to_ours() {
	user env "LD_LIBRARY_PATH=$folder" LD_BIND_NOW=1 LD_DEBUG=bindings "$work/first" 2>&1 >/dev/null |
		grep -E "binding file $work/first .* symbol .(rdma|ibv)_" >"$work/bindings"
	counts "$work/bindings" 4 . && counts "$work/bindings" 4 "to [^ ]*/libpolycm.so.0 "
}
check 'every rdma_ call is bound to libpolycm' binds_to_ours

# Virtual time needs the library that takes the C library's place: without it one line says so, and what to do.
told_what_to_link() {
	exits 1 "$@" && has "$work/err" 'virtual time needs libpolycm-interpose' "'polycm run --clock virtual'" \
		"'pkg-config --libs polycm-sim'" && counts "$work/err" 1 'libpolycm-interpose'
}
for way in linked preloaded; do
	declare -n program=$way
	check "$way, virtual time without what it needs" eval 'POLYCM_SIM_CLOCK=virtual told_what_to_link "${program[@]}"'
done

# Behind librdmacm the library has polycm_sim_* alone.
cat >"$work/order.c" <<'end'
#include <rdma/rdma_cma.h>
#include <polycm/sim.h>
int main(void)
{
	struct polycm_sim_node *node;
	struct rdma_cm_id *id;
	if (polycm_sim_create(1) || polycm_sim_node_add("host", "roce", "10.0.0.1/24", &node))
		return 3;
	return rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) || rdma_destroy_id(id) || polycm_sim_destroy();
}
end
order=(user env POLYCM_PROVIDER=sim "LD_LIBRARY_PATH=$folder:${interposer%/*}" timeout --foreground "$limit")
check 'it compiles with -lrdmacm first' $CC -o "$work/behind" "$work/order.c" -I"$abs_top_srcdir/include" \
	-L"$work" -lrdmacm -lpolycm-interpose -lpolycm -libverbs
check 'it compiles with -lrdmacm last' $CC -o "$work/before" "$work/order.c" -I"$abs_top_srcdir/include" \
	-L"$work" -lpolycm-interpose -lpolycm -lrdmacm -libverbs
chmod -R go+rX "$work"
behind_is_told() {
	exits 3 "${order[@]}" "$work/behind" &&
		has "$work/err" "polycm_sim_create: the program's rdma_* calls are those of " \
			'/librdmacm.so.1: link it with -lpolycm before -lrdmacm' && counts "$work/err" 1 .
}
check 'a library behind librdmacm says so' behind_is_told
check 'a library before librdmacm works' exits 0 "${order[@]}" "$work/before"

# A program's own sanitizer sees what it does wrong with events and ids, though the library has none.
if ! readelf -d "$library" | grep -q 'NEEDED.*lib[a-z]*san' && $CC -g -fsanitize=address -o "$work/late" \
		"$abs_top_srcdir/tests/programs/late.c" -L"$work" -lpolycm-interpose -lpolycm -libverbs 2>/dev/null; then
	chmod -R go+rX "$work"
	sees_late() {
		user env "LD_LIBRARY_PATH=$folder" ASAN_OPTIONS=detect_leaks=0 POLYCM_PROVIDER=sim POLYCM_SIM_CLOCK=virtual \
			timeout --foreground "$limit" "$work/late" "$@" >"$work/out" 2>"$work/err"
		has "$work/err" 'heap-use-after-free'
	}
	check 'an event after its ack' sees_late event
	check 'an id after its end' sees_late id
fi

finish
