#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# make install into DESTDIR, the tree moved elsewhere: the command, the library and the plugins find each other.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rping make
unset POLYCM_PROVIDER_PATH MAKEFLAGS MFLAGS
staged=$work/staged moved=$work/moved

installs() {
	make -C "$abs_top_builddir" install DESTDIR="$staged" >"$work/log" 2>&1 && return
	tail -n 40 "$work/log"
	return 1
}
check 'make install' installs

# The prefix, wherever configure put it.
prefix=$(cd "$staged" && find . -path '*/bin/polycm') prefix=${prefix%/bin/polycm}
mkdir "$moved" && mv "$staged/$prefix" "$moved/there" || exit 99
rm -rf "$staged"
chmod -R go+rX "$work"
installed=$moved/there/bin/polycm
command=("${as_user[@]}" timeout --foreground -k 2 "$limit" "$installed")

lists() {
	local file

	for file in bin/polycm include/polycm/{kernel,polycm,provider,sim}.h share/man/man1/polycm.1 \
		    share/man/man3/polycm_sim.3 share/man/man5/polycm-{scenario,trace}.5 share/man/man7/polycm{,-provider}.7; do
		[ -e "$moved/there/$file" ] || { echo "not installed: $file"; return 1; }
	done
	for file in $(sed -n 's/.*\](\(docs\/[^)#]*\).*/\1/p' "$abs_top_srcdir/README.md"); do
		[ -e "$moved/there/share/doc/polycm/$file" ] || { echo "README leads to $file"; return 1; }
	done
	[ -z "$(find "$moved" -name 'provider-*.la')" ]
}
check 'what is installed' lists

# Each call of <polycm/sim.h> has a page, and the page has the call.
has_pages() {
	local call page=$moved/there/share/man/man3 number=0

	for call in $(grep -oE '\<polycm_sim_[a-z_]+\(' "$moved/there/include/polycm/sim.h" | tr -d '(' | sort -u); do
		grep -q "^\.Fn $call\>" "$page/polycm_sim.3" || continue
		[ "$(cat "$page/$call.3")" = '.so man3/polycm_sim.3' ] || { echo "no page of $call"; return 1; }
		number=$((number + 1))
	done
	[ "$number" -ge 20 ]
}
check 'each call of the simulator has its page' has_pages

finds_its_own() {
	exits 0 polycm info && has "$work/out" "$moved/there/lib" &&
	counts "$work/out" 7 "$moved/there/.*/provider-[a-z]*\.so$" &&
	lacks "$work/out" "$abs_top_builddir"
}
check 'it finds its own library and plugins' finds_its_own

finds_devices() {
	exits 0 polycm run --device rxe "$installed" info && has "$work/out" "looks like  $moved/there/share/polycm/devices/rxe"
}
check 'it finds its own devices' finds_devices

listening='listening'
server_command=(rping -s -a 127.0.0.1 -C 3 -v -V)
client_command=(rping -c -a 127.0.0.1 -C 3 -v -V)
connects() {
	mkdir -p "$work/pair"
	pair "$work/pair" roce "test-$$" && counts "$work/pair/client.out" 3 '^ping data: '
}
check 'rping connects' connects

# The guide for people who test their own programs, read where polycm is installed.
follows_guide() { "$abs_top_srcdir/tests/programs/guide.sh" "$moved/there"; }
check 'a test is written as the guide says' follows_guide
# So is the one for vendors.
follows_vendors_guide() { "$abs_top_srcdir/tests/programs/vendor.sh" "$moved/there"; }
check 'a provider is written as the guide says' follows_vendors_guide

uninstalls() {
	make -C "$abs_top_builddir" install uninstall DESTDIR="$staged" >"$work/log" 2>&1 &&
	[ -z "$(find "$staged" ! -type d)" ]
}
check 'make uninstall leaves nothing' uninstalls

finish
