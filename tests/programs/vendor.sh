#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# vendor.sh [PREFIX]: somebody writes a provider with what is installed alone. docs/writing-a-provider.md from top to
# bottom in an empty folder, which builds examples/acme there; then real programs between two processes on it.
# Without PREFIX against the build tree, with it against what is installed there.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99
. "$abs_top_srcdir/tests/programs/prefix.sh" || exit 99

need make pkg-config rping ucmatose
page=$abs_top_srcdir/docs/writing-a-provider.md
mkdir "$work/guide" || exit 99
if [ -n "$prefix" ]; then
	page=$docdir/docs/writing-a-provider.md
else
	mkdir -p "$docdir/examples" && cp -R "$abs_top_srcdir/examples/acme" "$docdir/examples/" &&
		chmod -R go+rX "$work" || exit 99
fi
environment+=("POLYCM_SIM_FABRIC=test-$$")
follows "$page" "$work/guide"
acme=$work/guide/acme

# On acmesock, as the user who built it.
pair_run=("${as_user[@]}" env "${environment[@]}" "POLYCM_PROVIDER_PATH=$acme" timeout --foreground -k 2 "$limit"
	  polycm run --provider acmesock --log info --)
on() {
	mkdir -p "$work/pair" && pair "$work/pair" && return
	tail -n 40 "$work"/pair/{server,client}.{out,log}
	return 1
}

server_command=(rping -s -a 127.0.0.1 -C 20 -v -V -S 4000) client_command=(rping -c -a 127.0.0.1 -C 20 -v -V -S 4000)
check 'rping' eval 'on && counts "$work/pair/client.out" 20 "^ping data: "'
server_command=(ucmatose -C 10 -c 8 -S 1024 -b 127.0.0.1) client_command=(ucmatose -s 127.0.0.1 -C 10 -c 8 -S 1024)
check 'ucmatose' eval 'on && has "$work/pair/client.out" "return status 0" && has "$work/pair/server.out" "return status 0"'

check 'nothing is exported but the query' eval \
	'[ "$(nm -D --defined-only "$acme/provider-acmesock.so" | awk "{ print \$3 }")" = polycm_provider_query_v1 ]'
check 'the simulator does not play a protocol that it does not know' eval \
	'! "${as_user[@]}" env "${environment[@]}" "POLYCM_PROVIDER_PATH=$acme" polycm run --provider sim \
		--transport acmesock -- ucmatose >"$work/out" 2>"$work/err" && has "$work/err" "its protocol"'

# The guide's table has each operation of the header, in its order.
tabled() { sed -n '/^## The operations/,/^## What happens after/s/^| `\([a-z_]*\)` |.*/\1/p' "$page"; }
operations() { sed -n '/^struct polycm_ops {/,/^};/s/^\t[a-z].*(\*\([a-z_]*\))(.*/\1/p' "$include/polycm/provider.h"; }
check 'each operation is in the table' eval \
	'[ -n "$(operations)" ] && diff -u <(operations) <(tabled)'

# Where the header says that an operation waits, the guide says so, too.
waits_in_header() {
	awk '/^ \* Operation / { on = 1; next }
		on && /^ \*$/ { exit }
		on && /^ \* [a-z]/ { split(substr($0, 4, 16), name, " "); split(substr($0, 39, 6), waits, " ")
			print name[1], waits[1] != "no" }' "$include/polycm/provider.h"
}
waits_in_guide() {
	awk -F ' *[|] *' '/^## The operations/ { on = 1 }
		/^## For support/ { exit }
		on && $2 ~ /^`/ { gsub("`", "", $2); print $2, $4 != "no" }' "$page"
}
check 'the table and the header agree on what waits' diff -u <(waits_in_header) <(waits_in_guide)
finish
