#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# guide.sh [PREFIX]: docs/testing-your-program.md in an empty folder, from top to bottom. A display with a file's
# name becomes that file, one of the shell runs, and one of text behind it is what that printed. Without PREFIX
# against the build tree, with it against what is installed there.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need make pkg-config
guide=$abs_top_srcdir/docs/testing-your-program.md
prefix=${1-}
mkdir "$work/bin" "$work/lib" "$work/guide" || exit 99

# The .pc files of the build tree say where things will be; here is where they are.
if [ -n "$prefix" ]; then
	library=$(find "$prefix/lib" -name libpolycm.so) && [ -n "$library" ] || exit 99
	include=$prefix/include pc=${library%/*}/pkgconfig
	printf '#!/bin/sh\nexec "%s" "$@"\n' "$prefix/bin/polycm" >"$work/bin/polycm"
else
	include=$copy/include pc=$abs_top_builddir
	ln -s "$library" "$work/lib/libpolycm.so"
	ln -s "$interposer" "$work/lib/libpolycm-interpose.so"
	printf '#!/bin/sh\nexec "%s" "$@"\n' "${command[${#command[@]} - 1]}" >"$work/bin/polycm"
fi
libdir=$work/lib
[ -z "$prefix" ] || libdir=${library%/*}
for name in polycm polycm-sim; do
	sed "s|^libdir=.*|libdir=$libdir|; s|^includedir=.*|includedir=$include|" "$pc/$name.pc" >"$work/lib/$name.pc" ||
		exit 99
done
chmod +x "$work/bin/polycm"
[ "$(id -u)" -ne 0 ] || chown 65534:65534 "$work/guide"
chmod -R go+rX "$work"

environment=(
	"PATH=$work/bin:$PATH" "PKG_CONFIG_PATH=$work/lib:${PKG_CONFIG_PATH-}" "LD_LIBRARY_PATH=${library%/*}"
	MAKEFLAGS= MAKELEVEL= LC_ALL=C.UTF-8 "CC=${CC:-cc}"
)

# displays FOLDER: each of the page as a file NUMBER.KIND there, named ones as NUMBER.file with the name in NUMBER.name.
displays() {
	awk -v folder="$1" '
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
		inside { print >out }' "$guide"
}

# Old releases of cmocka do not say the name of the group.
plain() { sed -E 's/^(\[=+\]) tests: /\1 /' "$1"; }

# runs NUMBER: that display of the shell; what comes behind it is its output.
runs() {
	local script=$1 expected

	expected=$(printf '%s/%02d.text' "${script%/*}" $((10#$(basename "$script" .sh) + 1)))
	(cd "$work/guide" && user env "${environment[@]}" timeout --foreground "$limit" bash -c ". '$script'" \
		>"$work/printed" 2>&1 </dev/null) || { cat "$work/printed"; return 1; }
	[ ! -e "$expected" ] || diff -u "$expected" <(plain "$work/printed")
}

mkdir "$work/displays" && displays "$work/displays" && chmod -R go+rX "$work" || exit 99
for name in "$work"/displays/*.name; do
	user cp "${name%.name}.file" "$work/guide/$(cat "$name")" || exit 99
done
for script in "$work"/displays/*.sh; do
	check "$(head -n 1 "$script")" runs "$script"
done

# Nothing in it is left out: a display is a file, a command, or what a command printed.
others() {
	local display before

	for display in "$work"/displays/*.text; do
		before=$(printf '%s/%02d.sh' "$work/displays" $((10#$(basename "$display" .text) - 1)))
		[ -e "$before" ] || { echo "no command before ${display##*/}"; return 1; }
	done
	[ -z "$(find "$work/displays" -type f ! -name '*.file' ! -name '*.name' ! -name '*.sh' ! -name '*.text')" ]
}
check 'each display was tried' others
finish
