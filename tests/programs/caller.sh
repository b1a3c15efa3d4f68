#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Whoever starts polycm may ignore signals, have them blocked or have closed files, as nohup, services and runtimes do.
# Several programs start as usual nevertheless, and how they end is seen.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need nohup
need_turns
cd "$work" || exit 99

# by OPTION...: what starts polycm instead of what starts it otherwise. env sets signals, as nohup does.
ignores() { [ $((0x$(sed -n 's/^SigIgn:\t//p' "$2") >> ($1 - 1) & 1)) -eq 1 ]; }	# SIGNAL FILE
hangup=1 child=17

usual=("${command[@]::${#command[@]}-1}")
by() { command=("${usual[@]}" "$@" "$copy/bin/polycm"); }

signals=(sh -c 'sleep 1; grep -E "^Sig(Blk|Ign|Cgt)" /proc/self/status; exit 3')
check 'signals' eval 'run usual 3 --on a "${signals[@]}" && { counts "$work/usual.out" 1 "^SigIgn:	0*\$" || ! cat "$work/usual.out"; }'
for given in --ignore-signal --block-signal; do
	by env "$given"
	check "signals: $given" eval 'run given 3 --on a "${signals[@]}" && alike usual given'
done
# What it ignores besides is not told when it ends.
by env --ignore-signal=CHLD
check 'a child of one that ignores the ends of its children' eval 'run given 3 --on a "${signals[@]}" && alike usual given &&
	run given 0 --transport ib --verify --on a true'
check 'explore' eval 'exits 2 polycm explore --seeds 1-3 -- sh -c "exit 3" && has err "fails without faults, too: exit status 3" &&
	exits 2 polycm explore --seeds 1-3 --on a sh -c "exit 3" && has err "a ended with exit status 3"'
# The same for files that are closed.
closed() { "${usual[@]}" sh -c 'exec "$0" "$@" <&- >&- 2>&-' "$copy/bin/polycm" "$@"; }
for on in -- '--on a'; do
	# shellcheck disable=SC2086 # no words, or two
	check "closed files: explore $on" eval 'rm -rf polycm-explore && exits 2 closed explore --seeds 1-3 $on \
		sh -c "readlink /proc/self/fd/0; echo out; echo err >&2; exit 3" && counts polycm-explore/seed-1.out 1 "/dev/null$" &&
		counts polycm-explore/seed-1.out 1 "out$" && counts polycm-explore/seed-1.out 1 "err$"'
done
# One program is started as nothing were in between.
check 'one program' eval 'exits 0 polycm run grep SigIgn /proc/self/status && ignores $child out'

# It goes on without its terminal.
without_terminal=("${as_user[@]}" nohup env "LD_LIBRARY_PATH=${library%/*}" "$copy/bin/polycm")
run_outlives() {
	local launcher status

	listening=computes
	start . "${without_terminal[@]}" run --on a sh -c 'echo computes >&2; while :; do :; done' || return
	read -r launcher <"/proc/$server/task/$server/children"
	ignores $hangup "/proc/$server/status" && ignores $hangup "/proc/$launcher/status"
	status=$?
	kill -HUP "$server"
	kill -TERM "$server"
	wait "$server"
	[ $? -eq 143 ] && [ "$status" -eq 0 ]
}
check 'nohup: run' run_outlives
user mkfifo one two
explore_outlives() {
	"${without_terminal[@]}" explore --seeds 1 --timeout "$limit" -- \
		sh -c '[ -e again ] || { : >again; echo >one; read -r line <two; }' >out 2>&1 </dev/null &
	started=($!)
	read -r -t "$limit" <one
	kill -HUP "${started[0]}"
	timeout -k 2 "$limit" sh -c 'echo line >two' && wait "${started[0]}" && has out '1 seed, 0 failed'
}
check 'nohup: explore' explore_outlives
finish
