#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The ABI grows: plugins built with older and newer headers than the core works with them, or are refused for the true
# reason; and the same with a core that is newer than the plugins. growth.awk makes the headers.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need awk gcc
here=$abs_top_srcdir/tests/programs

# --- Headers, plugins and cores. ---

headers() {
	local header

	mkdir -p "$work/$1/include/polycm" || return
	for header in "$abs_top_srcdir"/include/polycm/*.h; do
		awk -v to="$1" -f "$here/growth.awk" "$header" >"$work/$1/include/polycm/${header##*/}" || return
	done
}
check 'headers of this version' headers this
check 'headers of a newer version' headers newer
check 'headers with a member less' headers older
check 'headers with more room in the rules' headers rooms
# Each struct that crosses the border begins with its size, but for these, which never change.
without_size() {
	awk '/^struct polycm_[a-z_]* \{$/ { name = $2; getline; if ($2 != "size;") print name }' \
		"$abs_top_srcdir"/include/polycm/*[^x].h | LC_ALL=C sort
}
check 'structs without a size' diff -u <(printf '%s\n' polycm_ece polycm_verbs_device) <(without_size)
sized() { cat "$work/$1"/include/polycm/*.h | grep -cE "$2"; }
check 'all others grow' [ "$(sized this '^	(uint32_t|size_t) size;')" -eq "$(sized newer '[ *]newer(;|\))')" ]
check 'this version is the one of the tree' diff -r "$work/this/include/polycm" "$abs_top_srcdir/include/polycm" \
	--exclude='*.inc'

# plugin VERSION FOLDER [OPTION...]: provider-grow.so, provider-wrap.so and provider-card.so, with that version's headers.
plugin() {
	local version=$1 folder=$2 name

	shift 2
	mkdir -p "$work/$folder" || return
	for name in grow wrap card; do
		gcc -std=gnu11 -O1 -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden "$@" \
			"-DNAME=\"$name\"" "-DIS_$name" -I"$work/$version/include" \
			-o "$work/$folder/provider-$name.so" "$here/growth_plugin.c" || return
	done
}
check 'a plugin' plugin this plugin-this
check 'a newer plugin' plugin newer plugin-newer
check 'a newer plugin with a flag' plugin newer plugin-flag -DFLAG=POLYCM_PROVIDER_NEWER
check 'a plugin with a member less' plugin older plugin-older -DOLDER
check 'a plugin with more room in its rules' plugin rooms plugin-rooms

# mixed LAYER PROVIDERS FOLDER: of two versions.
mixed() {
	mkdir -p "$work/$3" && cp "$work/$2"/provider-{grow,card}.so "$work/$1/provider-wrap.so" "$work/$3"
}
check 'a layer of this version around a newer plugin' mixed plugin-this plugin-newer layer-this
check 'a newer layer around a plugin of this version' mixed plugin-newer plugin-this layer-newer

# The rules of RoCE and the layer that writes down, built with newer headers: one source, another version.
newer_of_the_tree() {
	mkdir -p "$work/tree-newer" || return
	gcc -std=gnu11 -D_GNU_SOURCE -O1 -fPIC -shared -fvisibility=hidden -I"$work/newer/include" \
		-I"$abs_top_builddir" -I"$abs_top_srcdir/include" -I"$abs_top_srcdir" \
		-o "$work/tree-newer/provider-roce.so" "$abs_top_srcdir"/providers/roce/*.c \
		"$abs_top_srcdir/providers/common/ib_rules.c"
}
check 'provider-roce of a newer version' newer_of_the_tree

newer_core() {
	local sources=() source objects=$work/objects

	mkdir -p "$work/core-newer" "$objects" || return
	while read -r source; do
		sources+=("$source")
	done < <(cd "$abs_top_srcdir" && find core -name '*.c' | LC_ALL=C sort)
	printf '%s\n' "${sources[@]}" | xargs -P 2 -I{} sh -c \
		'gcc -std=gnu11 -D_GNU_SOURCE -DPOLYCM_LIBDIR=\"/nowhere\" -DPOLYCM_PKGLIBDIR=\"/nowhere\" \
			-O0 -fPIC -fvisibility=hidden -I"$1/newer/include" -I"$2" -I"$3/include" -I"$3" \
			-c -o "$1/objects/$(echo "$4" | tr / _).o" "$3/$4"' \
		sh "$work" "$abs_top_builddir" "$abs_top_srcdir" {} || return
	gcc -shared -o "$work/core-newer/libpolycm.so.0" "$objects"/*.o -Wl,-soname,libpolycm.so.0 \
		-Wl,--version-script="$abs_top_srcdir/core/libpolycm.map" -Wl,-z,nodelete \
		-Wl,--no-as-needed -libverbs -lltdl -lpthread -ldl
}
check 'a newer core' newer_core

ln -sf "$library" "$work/libpolycm.so"
check 'the program' gcc -std=gnu11 -Wall -o "$work/use" "$here/growth_use.c" -L"$work" -lpolycm

# --- Together. ---

chmod -R go+rX "$work"
core_this=${library%/*} core_newer=$work/core-newer

# uses CORE PLUGINS PROVIDERS: the program's status, output and log are in $work/out.
uses() {
	POLYCM_LOG=error POLYCM_PROVIDER=$3 POLYCM_PROVIDER_PATH=$work/$2 LD_LIBRARY_PATH=$1 \
		user timeout --foreground "$limit" "$work/use" >"$work/out" 2>&1
}

# works CORE PLUGINS: alone, beside the other provider and behind the layer, with not a line of log.
works() {
	uses "$1" "$2" grow && [ "$(cat "$work/out")" = '4711 -113' ] &&
		uses "$1" "$2" card,grow && [ "$(cat "$work/out")" = '4711 -113' ] &&
		POLYCM_GROW_STATUS=101 uses "$1" "$2" 'wrap;grow' && [ "$(cat "$work/out")" = '4711 -100' ] && return
	cat "$work/out"
	return 1
}

# refused CORE PLUGINS REASON
refused() {
	! uses "$1" "$2" grow && has "$work/out" "provider-grow.so: $3" || return
	! uses "$1" "$2" 'wrap;grow' && has "$work/out" "provider-wrap.so: $3"
}

check 'of the same version' works "$core_this" plugin-this
check 'a newer plugin' works "$core_this" plugin-newer
check 'a layer of the same version around a newer plugin' works "$core_this" layer-this
check 'a newer layer around a plugin of the same version' works "$core_this" layer-newer
check 'a flag that the core does not know' refused "$core_this" plugin-flag \
	'its flag 1 << 3 is not known (it was built for version 1.1 of the provider ABI, this is 1.0)'
check 'a member less' refused "$core_this" plugin-older 'its description has 80 bytes, version 1.0 has 88'
another_shape() {
	! uses "$core_this" plugin-rooms grow &&
		has "$work/out" 'provider-grow.so: its struct of transport rules is of another shape, 0x904 in place of 0x804'
}
check 'more room in the rules' another_shape

check 'an older plugin' works "$core_newer" plugin-this
check 'both newer' works "$core_newer" plugin-newer
check 'an older layer around a newer plugin' works "$core_newer" layer-this
check 'a newer layer around an older plugin' works "$core_newer" layer-newer
check 'a flag that the core knows' works "$core_newer" plugin-flag
check 'a member less than any version had' refused "$core_newer" plugin-older \
	'its description has 80 bytes, version 1.0 has 88 (it was built for version 1.0 of the provider ABI, this is 1.1)'

# simulates CORE PLUGINS VERSION: a test of that version's headers, on the simulator as it is built.
simulates() {
	local folder=$1 path=$2 version=$3

	cat >"$work/sim.c" <<'END'
#include <polycm/sim.h>
#include <rdma/rdma_cma.h>

int main(void)
{
	struct polycm_sim_limits limits = { .size = sizeof(limits), .max_qp = 1 };
	struct polycm_sim_link link = { .size = sizeof(link), .loss = 0.5 };
	struct polycm_sim_counts counts = { .size = sizeof(counts) };
	struct polycm_sim_node *node;
	struct rdma_cm_id *id;

	return polycm_sim_create(1) || polycm_sim_node_add("a", "roce", "10.0.0.1/24", &node) ||
	       polycm_sim_device_add(node, "roce", "10.0.1.1/24", &limits, NULL) ||
	       polycm_sim_link_set(NULL, NULL, &link) ||
	       polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE), NULL) ||
	       rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) || polycm_sim_live(&counts) || counts.ids != 1 ||
	       rdma_destroy_id(id) || polycm_sim_destroy();
}
END
	ln -sf "$interposer" "$work/libpolycm-interpose.so"
	gcc -std=gnu11 -I"$work/$version/include" -o "$work/sim" "$work/sim.c" -L"$work" \
		-Wl,--no-as-needed -lpolycm-interpose -lpolycm && chmod go+rx "$work/sim" &&
		POLYCM_LOG=warn POLYCM_PROVIDER=sim POLYCM_PROVIDER_PATH=$path \
			LD_LIBRARY_PATH=$folder:$core_this exits 0 user timeout --foreground "$limit" "$work/sim" &&
		counts "$work/out" 0 ''
}
check 'the simulator over a newer core' simulates "$core_newer" "$core_this/polycm" this
check 'a test of a newer version' simulates "$core_this" "$core_this/polycm" newer
check 'rules of a newer plugin' simulates "$core_this" "$work/tree-newer:$core_this/polycm" this

finish
