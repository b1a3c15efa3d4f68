#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# polycm run --verify: a system is run twice with the same seed, and the first turn or call that differs is named.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rping
need_turns
: "${CC:=cc}"
check 'the member compiles' $CC -O1 -Wall -Wextra -I"$abs_top_srcdir" -o "$work/member" "$abs_top_srcdir/tests/programs/verify.c" -pthread
chmod go+rx "$work/member"

# verify STATUS ARG...: what it says goes into $work/err, what programs print into $work/out.
verify() {
	local status=$1

	shift
	rm -f "$work/file"
	exits "$status" polycm run --verify "$@"
}
# The number of the order, as a run without it has.
order() { sed -n "s/^polycm: run: $1.* order //p" "$work/err"; }

# --- Runs that are the same. ---

rping=(--on server rping -s -a 10.0.0.1 -C 3 -v --on client rping -c -a 10.0.0.1 -C 3 -v)
same() {
	verify 0 --trace "$work/t" "${rping[@]}" && counts "$work/out" 3 "^.server. server ping data: " &&
		has "$work/err" 'polycm: run: the second run is the same: ' && mv "$work/t" "$work/verified" || return
	verified=$(order 'the second run is the same')
	exits 0 polycm run --log info --trace "$work/t" "${rping[@]}" && cmp "$work/t" "$work/verified" &&
		[ "$(order 'virtual time')" = "$verified" ]
}
check 'both are the same, and as without it' same
check 'programs that end badly' eval 'verify 3 --on a sh -c "exit 3" && has "$work/err" "the second run is the same"'
check 'programs that wait for ever' eval 'verify 75 --on server rping -s -a 10.0.0.1 &&
	has "$work/err" "the second run is the same" && counts "$work/err" 1 "nobody can go on"'
check 'a program that is killed' eval 'verify 137 --kill a@3 --on a sh -c "sleep 5; exit 3" &&
	has "$work/err" "the second run is the same"'
check 'what is kept of the first run is not inherited by the second' eval 'verify 0 --trace "$work/t" \
	--pcap "$work/p" --on server rping -s -a 10.0.0.1 -C 1 --on client rping -c -a 10.0.0.1 -C 1 --on other ls /proc/self/fd &&
	has "$work/err" "the second run is the same" && [ -s "$work/t" ] && [ -s "$work/p" ]'
check 'the result of posix_spawn() is its own' eval 'verify 0 --on a "$work/member" spawn - &&
	counts "$work/out" 1 "^ok$"'

# --- Runs that are not. ---

# Without namespaces the first that differs are the ids of processes.
differs() { grep -qF 'allows no namespaces' "$work/probe" || check "$@"; }
thread='a: .*/member, process 1, thread 2,'
told() { grep -Eq "^polycm: run: the $1 run, turn [0-9]+, [0-9.]+ s: $2$" "$work/err"; }
# In the second run, whose file is longer, and then in what may be the cause of it.
call() {
	verify 76 --on a "$work/member" call "$work/file" && counts "$work/out" 1 '^ok$' &&
		told first "$thread clock_nanosleep\(.*\) = 0" && told second "$thread socket\(1, 1, 0\) = [0-9]+" &&
		told first "$thread read\([0-9]+, 0x[0-9a-f]+, 64\) of \"$work/file\" = 0" &&
		told second "$thread read\([0-9]+, 0x[0-9a-f]+, 64\) of \"$work/file\" = 1 \(data [0-9a-f]{8}\)" || return
	has "$work/err" "run: the first call that has another result, which may be the cause:" || return
	turn=$(sed -n 's/.* differs from the first in turn \([0-9]*\):$/\1/p' "$work/err")
	grep -q "^polycm: run: the second run, turn $turn, 0.001[0-9]* s: .* socket(" "$work/err"
}
differs 'one more call' call
check 'one more call after more than is kept' eval 'verify 76 --on a "$work/member" late "$work/file" &&
	grep -Eq "$thread socket\(1, 1, 0\) = [0-9]+$" "$work/err" && counts "$work/out" 1 "^ok$" &&
	[ "$(wc -c <"$work/file")" -eq 4 ]'
check 'another exit status' eval 'verify 76 --on a "$work/member" status "$work/file" &&
	has "$work/err" "polycm: run: a ends with exit status 0 in the first run, and ends with exit status 1 in the second"'
check 'other output' eval 'verify 76 --on a cat /proc/uptime /proc/sys/kernel/random/uuid &&
	has "$work/err" "polycm: run: a does not print the same, line " && lacks "$work/err" "differs from the first in turn"'
differs 'what a file has' eval 'verify 76 --on a cat /proc/sys/kernel/random/uuid &&
	told second "a: cat, process 1, thread 1, read\(.*\) of \"/proc/sys/kernel/random/uuid\" = 37 \(data [0-9a-f]{8}\)"'
differs 'memory of a file' eval 'verify 76 --on a "$work/member" memory "$work/file" &&
	has "$work/err" "a does not print the same, line 1 on standard output: " "all calls before that have the same results: "'
# What is left is the trace of the run whose output was shown.
traced() {
	cat >"$work/pings" <<-'END'
		echo x >>"$1"
		exec rping -c -a 10.0.0.1 -C $(wc -l <"$1") -v
	END
	verify 76 --trace "$work/t" --on server rping -s -a 10.0.0.1 --on client sh "$work/pings" "$work/file" &&
		counts "$work/out" 1 '^.client. ping data' && has "$work/err" "run: --trace differs, in line " || return
	mv "$work/t" "$work/verified"
	rm -f "$work/file"
	exits 0 polycm run --trace "$work/t" --on server rping -s -a 10.0.0.1 --on client sh "$work/pings" "$work/file" &&
		cmp "$work/t" "$work/verified"
}
check 'another trace' traced
captured() {
	verify 76 --pcap "$work/p" --on server rping -s -a 10.0.0.1 --on client sh "$work/pings" "$work/file" &&
		grep -Eq "run: --pcap differs, in byte [0-9]+$" "$work/err"
}
check 'another capture' captured
check 'what a terminal would not print' eval 'verify 76 --on a sh -c "printf \"\\033[1m\\001\"; cat /proc/sys/kernel/random/uuid" &&
	has "$work/err" "line 1 on standard output: ?[1m?" && ! grep -q "[[:cntrl:]]" "$work/err"'

# --- There is nothing to compare. ---

check 'a member that forgets turns' eval 'verify 0 --on a "$work/member" forget - &&
	has "$work/err" "the second run is the same"'
# The first run makes the scenario wrong.
unmade() {
	cat >"$work/pings.cfg" <<-'END'
		nodes = ( { name = "server"; devices = ( { transport = "roce"; addresses = "10.0.0.1/24"; } ); },
			{ name = "client"; devices = ( { transport = "roce"; addresses = "10.0.0.2/24"; } ); } );
	END
	chmod 666 "$work/pings.cfg"
	verify 1 --scenario "$work/pings.cfg" --trace "$work/t" --on server rping -s -a 10.0.0.1 -C 1 --on client \
		sh -c 'echo "preemptions = ( 1 );" >>"$0"; exec rping -c -a 10.0.0.1 -C 1' "$work/pings.cfg" &&
		[ -s "$work/t" ] && lacks "$work/err" 'the same' &&
		has "$work/err" 'a preemption needs' 'the second run did not end as a run: the two are not compared'
}
check 'a second run that cannot be made' unmade
# stopped RUN TEXT: in that run.
stopped() {
	local pid

	rm -f "$work/file" "$work/fifo"
	mkfifo -m 666 "$work/fifo"
	# Not in a shell, which would not pass the signal on.
	"${command[@]}" run --verify --on a sh -c 'echo x >>"$0"; [ "$(wc -l <"$0")" -lt "$2" ] || { echo >"$1"; while :; do :; done; }' \
		"$work/file" "$work/fifo" "$1" >"$work/out" 2>"$work/err" &
	pid=$!
	cat "$work/fifo" >/dev/null
	kill -TERM "$pid"
	wait "$pid"
	[ $? -eq 143 ] && has "$work/err" "$2" && lacks "$work/err" 'the second run is'
}
check 'a first run that is stopped' stopped 1 'polycm: run: the first run did not end as a run: nothing is compared'
check 'a second run that is stopped' stopped 2 'polycm: run: interrupted: the two runs are not compared'

# --- What cannot be promised is told once. ---

unspaced() {
	user unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_pid_namespaces && exec "$@"' sh \
		env "LD_LIBRARY_PATH=${library%/*}" timeout --foreground -k 2 60 "$copy/bin/polycm" run --verify \
		--on a true >"$work/unspaced" 2>&1 && counts "$work/unspaced" 1 'allows no namespaces$'
}
! user unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_pid_namespaces' 2>/dev/null || check 'no namespaces' unspaced
check 'random addresses' eval 'user "$work/member" random env "LD_LIBRARY_PATH=${library%/*}" timeout -k 2 60 \
	"$copy/bin/polycm" run --verify --on a true --on b true >"$work/random" 2>&1 &&
	counts "$work/random" 1 "^polycm: run: addresses of memory are not the same in each run: "'
check 'for several programs only' eval 'exits 2 polycm run --verify true &&
	has "$work/err" "--kill, --until, --verify and --own-files are for programs behind --on"'
check 'not for explore' eval 'POLYCM_SIM_EXPLORE="$work/record" exits 2 polycm run --verify --on a true &&
	has "$work/err" "run: --verify is not for polycm explore"'
finish
