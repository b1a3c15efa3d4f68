#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Files of a system's own: polycm run --own-files and polycm explore leave what programs change in files to nobody.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rping
need perl
need_turns --own-files
! grep -E 'no overlay|needs namespaces|no mounts' "$work/probe" || skip 'the system allows no overlay for this user'
# With characters that mount options treat as their own.
here="$work/here: a,b\\c"
user mkdir "$here" "$here/folder" "$here/home" "$here/tmp" && cd "$here" || exit 99
user sh -c 'echo base >state; echo old >folder/old'
export HOME=$here/home own=polycm-own.$$

# --- One run. ---

# What a program does to files, and what it sees of that; its status is 3 if it found what another run left.
cat >"$work/changes" <<'END'
[ "$(cat state)" = base ] && [ -e folder/old ] || exit 3
for folder in . "$HOME" "${TMPDIR:-/tmp}" /tmp /var/tmp; do
	[ ! -e "$folder/$own" ] || exit 3
	echo own >"$folder/polycm-$$"
	[ "$(cat "$folder/polycm-$$")" = own ] || exit 4
	mv "$folder/polycm-$$" "$folder/$own" || exit 4
	[ "$folder" != /tmp ] && [ "$folder" != "${TMPDIR:-/tmp}" ] || rm "$folder/$own"
done
echo changed >>state && rm -r folder && mkdir folder && ls -A folder && cat state
END
chmod go+r "$work/changes"
# as_before: nothing is left of it.
as_before() {
	[ "$(cat state)" = base ] && [ "$(ls folder)" = old ] && [ ! -e $own ] && [ ! -e home/$own ] &&
		[ ! -e tmp/$own ] && [ ! -e /tmp/$own ] && [ ! -e /var/tmp/$own ]
}
check 'what a program changes goes with the run' eval 'exits 0 polycm run --own-files --on a sh "$work/changes" &&
	printf "base\nchanged\n" | cmp - "$work/out" && as_before'
check 'two runs are the same' eval 'exits 0 polycm run --own-files --verify --on a sh "$work/changes" && as_before'
check 'folders inside others' eval 'TMPDIR=$here/tmp exits 0 polycm run --own-files --on a sh "$work/changes" && as_before'
check 'the working folder is /' eval '(cd / && exits 0 polycm run --own-files --on a sh -c "echo own >\"$here/home/own\"" &&
	[ ! -e "$here/home/own" ])'
check 'what polycm writes is kept' eval 'exits 0 polycm run --own-files --trace trace --pcap pcap \
	--on server rping -s -a 10.0.0.1 -C 1 --on client rping -c -a 10.0.0.1 -C 1 && [ -s trace ] && [ -s pcap ]'
check 'who may not write still may not' eval 'user mkdir locked && chmod 555 locked && chown 0 locked 2>/dev/null; (cd locked &&
	user test -w . || exits 1 polycm run --own-files --on a sh -c "echo x >new || exit 1" && [ ! -e new ])'
check 'modes and times of folders' eval 'user chmod 1777 tmp; (cd tmp && stat -c "%a %u %Y" . >"$work/stat" &&
	exits 0 polycm run --own-files --on a stat -c "%a %u %Y" . && cmp "$work/stat" "$work/out")'
mounted() {
	user unshare -Urm sh -c 'mount -t tmpfs tmpfs folder && echo mounted >folder/file && exec "$@"' sh \
		env "LD_LIBRARY_PATH=${library%/*}" "$copy/bin/polycm" run --own-files --on a sh -c \
		'cat folder/file; echo own >folder/file; echo own >state' >"$work/out" 2>"$work/err" </dev/null &&
		[ "$(cat "$work/out")" = mounted ] && as_before
}
# A folder of its own on what is mounted, and a file of polycm's there.
mounted_home() {
	user unshare -Urm sh -c 'mount -t tmpfs tmpfs home && "$@" && [ -s home/trace ] && [ ! -e home/own ]' sh \
		env "LD_LIBRARY_PATH=${library%/*}" "$copy/bin/polycm" run --own-files --trace home/trace \
		--on server sh -c ': >home/own; exec rping -s -a 10.0.0.1 -C 1' --on client rping -c -a 10.0.0.1 -C 1 \
		>"$work/out" 2>&1 </dev/null || { cat "$work/out"; return 1; }
}
if user unshare -Urm true 2>/dev/null; then
	check 'what is mounted below a folder is seen' mounted
	check 'a folder that is mounted below another' mounted_home
fi
gone() {
	user mkdir gone && (cd gone && user rmdir ../gone && ! polycm run --own-files --on a true 2>"$work/err") &&
		has "$work/err" 'polycm: run: --own-files: the working folder: No such file or directory'
}
check 'a working folder that is gone' gone
check 'without the option files stay' eval 'exits 0 polycm run --on a sh -c "echo kept >kept; mkdir made" &&
	[ "$(cat kept)" = kept ] && [ -d made ]'
check 'it is for programs behind --on' eval 'exits 2 polycm run --own-files true && has "$work/err" "behind --on"'

# --- Many. ---

# Each fails that finds a file or a socket of another, also of one that runs at the same time.
cat >"$work/server" <<'END'
sh "$1" || exit
perl -MIO::Socket::UNIX -e 'exit !IO::Socket::UNIX->new(Local => "socket", Listen => 1)' || exit 5
exec rping -s -P -a 10.0.0.1
END
cat >"$work/two.scenario" <<'END'
nodes = (
	{ name = "server"; devices = ( { transport = "roce"; addresses = "10.0.0.1/24"; } ); },
	{ name = "client"; devices = ( { transport = "roce"; addresses = "10.0.0.2/24"; } ); }
);
explore = { loss = 0.0; lateness = 0.0; duplication = 0.0; reordering = 0.0; preemptions = 0; };
END
chmod go+r "$work/server" "$work/two.scenario"
rm -f socket
# explores STATUS OPTION...
explores() {
	local status=$1

	shift
	exits "$status" polycm explore --scenario "$work/two.scenario" --seeds 1-12 --jobs 3 "$@" \
		--daemon server sh "$work/server" "$work/changes" --on client sh -c 'sleep 1; exec rping -c -a 10.0.0.1 -C 1'
}
check 'explore: each seed finds files as they were' eval 'explores 0 --own-files && as_before && [ ! -e socket ]'
# Also one that finds the time of a folder changed.
check 'explore: and folders' eval 'user mkdir folder/inner && touch -d @1700000000 folder/inner home &&
	exits 0 polycm explore --own-files --seeds 1-4 \
	--scenario "$work/two.scenario" --on server sh -c "
	[ \$(stat -c %Y folder/inner) = 1700000000 ] && [ \$(stat -c %Y home) = 1700000000 ] || exit 3
	: >folder/inner/new; rm folder/inner/new; : >home/new; rm home/new" && rmdir folder/inner'
check 'explore: without it, all see what others leave' eval 'explores 1 &&
	has "$work/out" "server, a daemon, ended with exit status 3"'
rm -f "/var/tmp/$own"
user sh -c 'echo base >state; rm -rf folder socket $own home/$own; mkdir folder; echo old >folder/old'
check 'explore: how a run is repeated' eval 'exits 1 polycm explore --own-files --seeds 1-60 --failures 1 \
	--shrink-runs 0 --jobs 2 --output found --on server sh -c ": >\$own; exec rping -s -a 10.0.0.1 -C 1" \
	--on client rping -c -a 10.0.0.1 -C 1 && as_before && ls found/seed-*.md >/dev/null &&
	has "$work/out" "  replay: polycm run --own-files --scenario found/seed-"'
finish
