# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# For tests that play somebody who has polycm installed; sourced after lib.sh, with PREFIX as $1, or empty for
# the build tree. It gives them $environment, in which polycm, pkg-config and the compiler find what is there,
# $include, $libdir, $docdir, and
#
#	displays PAGE FOLDER	the displays of a page as files
#	follows PAGE FOLDER	each display in FOLDER is tried, in their order

prefix=${1-}
mkdir "$work/bin" "$work/pc" || exit 99

# The .pc files say where things will be; here is where they are.
if [ -n "$prefix" ]; then
	library=$(find "$prefix/lib" -name libpolycm.so) && [ -n "$library" ] || exit 99
	include=$prefix/include pc=${library%/*}/pkgconfig
	printf '#!/bin/sh\nexec "%s" "$@"\n' "$prefix/bin/polycm" >"$work/bin/polycm"
else
	include=$copy/include pc=$abs_top_builddir
	ln -s libpolycm.so.0 "${library%/*}/libpolycm.so" || exit 99
	ln -s libpolycm-interpose.so.0 "${library%/*}/libpolycm-interpose.so" || exit 99
	printf '#!/bin/sh\nexec "%s" "$@"\n' "${command[${#command[@]} - 1]}" >"$work/bin/polycm"
fi
libdir=${library%/*} docdir=$work/doc
[ -z "$prefix" ] || docdir=$prefix/share/doc/polycm
for name in polycm polycm-sim; do
	sed "s|^libdir=.*|libdir=$libdir|; s|^includedir=.*|includedir=$include|; s|^docdir=.*|docdir=$docdir|" "$pc/$name.pc" >"$work/pc/$name.pc" ||
		exit 99
done
chmod +x "$work/bin/polycm"
chmod -R go+rX "$work"

environment=(
	"PATH=$work/bin:$PATH" "PKG_CONFIG_PATH=$work/pc:${PKG_CONFIG_PATH-}" "LD_LIBRARY_PATH=$libdir"
	MAKEFLAGS= MAKELEVEL= LC_ALL=C.UTF-8 "CC=${CC:-cc}"
)

# displays PAGE FOLDER: each of the page as a file NUMBER.KIND there, named ones as NUMBER.file with the name in
# NUMBER.name.
displays() {
	awk -v folder="$2" '
		!inside && /^```/ {
			inside = 1
			kind = $2 ? "file" : substr($1, 4)
			where = sprintf("%s/%02d.", folder, ++number)
			out = where kind
			printf "" >out
			if ($2)
				print $2 >(where "name")
			next
		}
		/^```$/ { inside = 0; close(out); next }
		inside { print >out }' "$1"
}

# Old releases of cmocka do not say the name of the group; and a line says where there are no namespaces.
plain() { sed -E 's/^(\[=+\]) tests: /\1 /; /: the system allows no namespaces$/d' "$1"; }

# runs FOLDER SCRIPT: that display of the shell; what comes behind it is its output.
runs() {
	local folder=$1 script=$2 expected

	expected=$(printf '%s/%02d.text' "${script%/*}" $((10#$(basename "$script" .sh) + 1)))
	(cd "$folder" && user env "${environment[@]}" timeout --foreground "$limit" bash -c ". '$script'" \
		>"$work/printed" 2>&1 </dev/null) || { cat "$work/printed"; return 1; }
	[ ! -e "$expected" ] || diff -u "$expected" <(plain "$work/printed")
}

# Nothing is left out: a display is a file, a command, or what a command printed.
others() {
	local display before

	for display in "$work"/displays/*.text; do
		[ -e "$display" ] || continue
		before=$(printf '%s/%02d.sh' "$work/displays" $((10#$(basename "$display" .text) - 1)))
		[ -e "$before" ] || { echo "no command before ${display##*/}"; return 1; }
	done
	[ -z "$(find "$work/displays" -type f ! -name '*.file' ! -name '*.name' ! -name '*.sh' ! -name '*.text')" ]
}

# follows PAGE FOLDER: a display with a file's name becomes that file in the folder, one of the shell runs there,
# and one of text behind it is what that printed.
follows() {
	local name script

	[ "$(id -u)" -ne 0 ] || chown -R 65534:65534 "$2"
	mkdir "$work/displays" && displays "$1" "$work/displays" && chmod -R go+rX "$work" || exit 99
	for name in "$work"/displays/*.name; do
		[ ! -e "$name" ] || user cp "${name%.name}.file" "$2/$(cat "$name")" || exit 99
	done
	for script in "$work"/displays/*.sh; do
		check "$(head -n 1 "$script")" runs "$2" "$script"
	done
	check 'each display was tried' others
}
