#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# polycm explore on a program with a bug that shows only when an answer is late: it is found, and of all that went
# wrong just the one fault is left that it takes. A program without the bug passes under every seed.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

: "${CC:=cc}"
need "${CC%% *}"
cp "$abs_top_srcdir"/tests/programs/explore{.c,_two.h} "$work/"
check 'the program compiles' $CC -O2 -Wall -Wextra -Werror -o "$work/client" "$work/explore.c" -lrdmacm
check 'with a fabric of its own, too' $CC -O2 -Wall -Wextra -Werror -DWITH_SIM -I"$abs_top_srcdir/include" \
	-o "$work/own" "$work/explore.c" "$library" -lrdmacm
cp "$abs_top_srcdir/tests/programs/explore_data.c" "$work/"
check 'with data, too' $CC -O2 -Wall -Wextra -Werror -o "$work/data" "$work/explore_data.c" -lrdmacm -libverbs
cp "$abs_top_srcdir/tests/programs/stuck.c" "$work/"
check 'with threads, too' $CC -O2 -Wall -Wextra -Werror -o "$work/stuck" "$work/stuck.c" -lrdmacm -pthread
chmod -R go+rX "$work"
cd "$work" || exit 99
cat >two.scenario <<'END'
nodes = (
	{ name = "server"; devices = ( { transport = "roce"; addresses = "10.0.0.1/24"; } ); },
	{ name = "client"; devices = ( { transport = "roce"; addresses = "10.0.0.2/24"; } ); }
);
END

# explore STATUS OPTION... -- COMMAND...
explore() {
	local status=$1

	shift
	exits "$status" polycm explore --output found --jobs 2 "$@"
}

check 'a program without the bug' eval 'explore 0 --seeds 1-100 --scenario two.scenario -- ./client good &&
	has out "100 seeds, 0 failed, " && ! has out " 0 with faults" >tmp && [ ! -s err ] && [ ! -e found ]'
check 'a program in which nothing can go wrong' eval 'explore 0 --seeds 1-3 -- true &&
	has out "3 seeds, 0 failed, 0 with faults" && has err "nothing went wrong in any run: either true connects nothing"'

# finds WORDS COMMAND...: every failure is told with these words and with one fault, which fails again.
finds() {
	local words=$1 status seed

	shift
	rm -rf found
	explore 1 --seeds 1-60 --failures 3 --scenario two.scenario -- "$@" || return
	seed=$(sed -n "s/^seed \([0-9]*\): $words\$/\1/p" out | head -1)
	[ -n "$seed" ] || { cat out; return 1; }
	! grep ' faults are needed' out | grep -v '^  1 of ' || return
	[ "$(grep -c "^seed [0-9]*: $words\$" out)" -eq "$(grep -c '^  1 of [0-9]* faults are needed' out)" ] || return
	[ -s "found/seed-$seed.scenario" ] && [ -e "found/seed-$seed.out" ] || return
	polycm run --scenario "found/seed-$seed.scenario" -- "$@" >/dev/null 2>&1
	status=$?
	[ "$status" -ne 0 ]
}
check 'a crash' finds 'signal 6 (Aborted)' ./client crash
check 'an exit status' finds 'exit status 5' ./client exit

# Failures of one cause are one report, which has all their seeds; each can be repeated. They end alike, but a lost REQ,
# a lost REP and a late one are three causes.
causes() {
	local seed fault

	rm -rf found
	explore 1 --seeds 1-60 --failures 0 --scenario two.scenario -- ./client exit || return
	for fault in '"lose"; message = "REQ"' '"lose"; message = "REP"' '"delay"; message = "REP"'; do
		counts out 1 "^    \\{ action = $fault" || return
	done
	counts out 3 '^seed [0-9]*: exit status 5$' && has out ' failed by 3 causes, ' || return
	[ "$(($(sed -n 's/^  \([0-9]*\) more seeds* fails* like it: .*/\1/p' out | paste -sd +)))" -eq \
		"$(($(sed -n 's/^60 seeds, \([0-9]*\) failed.*/\1/p' out) - 3))" ] || return
	for seed in $(sed -n 's/^  [0-9]* more seeds* fails* like it: //p' out | tr -d ,.); do
		[ -e "found/seed-$seed.out" ] || return
		polycm run --scenario "found/seed-$seed.scenario" -- ./client exit >/dev/null 2>&1
		[ $? -eq 5 ] || return
	done
}
check 'failures by their causes' causes
# All about it is on one page: the faults, the scenario, the network before, what the program printed.
page() {
	local page

	page=$(sed -n 's/^  page: //p' out | head -1)
	has "$page" '# exit status 5' ' like it.' ' faults are needed:' '    { action = "' \
		'    polycm run --scenario found/seed-' '    nodes = (' '## The network before the failure' ── \
		'## Last lines of what was printed'
}
check 'a page about it' page
ladder() {
	local trace

	trace=$(sed -n 's/^  ladder: polycm timeline --cm //p' out | head -1)
	exits 0 polycm timeline --cm "$trace" && has out ── "lose RE"
}
check 'a ladder of it' ladder
# The same seeds fail with the same faults, whatever the number of jobs.
twice() {
	rm -rf found
	explore 1 --seeds 1-40 --failures 0 --scenario two.scenario -- ./client exit && grep -v ' seeds, ' out >one &&
		explore 1 --seeds 1-40 --failures 0 --jobs 1 --scenario two.scenario -- ./client exit &&
		grep -v ' seeds, ' out >two && [ -s one ] && cmp one two
}
check 'each time the same' twice

hangs() {
	rm -rf found
	explore 1 --seeds 1-60 --failures 1 --timeout 2 --scenario two.scenario -- ./client hang &&
		has out ': does not end: client computes' '  1 of ' '  ladder: polycm timeline --cm '
}
check 'a program that hangs' hangs
# A wait that nothing can end is no exit status, and no signal, whatever the program makes of it.
waits() {
	rm -rf found
	explore 1 --seeds 1-100 --failures 1 --jobs 1 --scenario crash.scenario -- ./data "$1" &&
		has out ': poll waits for ever: event channel on descriptor ' '(listens, and nobody asks)' '  1 of ' &&
		! grep -E ': (exit status|signal)' out
}
echo 'int main() { for (;;) pause(); }' | $CC -include unistd.h -x c -o sleeper - && chmod a+rx sleeper
check 'a program that sleeps' eval 'explore 2 --seeds 1 --timeout 0.2 -- ./sleeper &&
	has err "fails without faults, too: does not end: sleeper waits in "'

own() {
	rm -rf found
	explore 1 --seeds 1-60 --failures 1 --jobs 1 -- ./own own && has out 'fabric = 2' '  1 of ' ': signal 6 (Aborted)' ||
		return
	polycm run --scenario found/seed-*.scenario -- ./own own >/dev/null 2>&1
	[ $? -eq 134 ]
}
check 'a fabric of its own' own

# Bounds: where only RTUs are lost, the client is never late, and nothing else happens.
{
	cat two.scenario
	echo 'explore = { messages = [ "RTU" ]; loss = 0.5; lateness = 0; duplication = 0; reordering = 0; };'
} >rtu.scenario
check 'bounds' eval 'explore 0 --seeds 1-40 --scenario rtu.scenario -- ./client crash'
{
	cat two.scenario
	echo 'explore = { messages = [ "REQ" ]; rejection = 1.0; loss = 0; most = 20; };'
} >reject.scenario
check 'rejections' eval 'explore 0 --seeds 1-10 --scenario reject.scenario -- ./client crash &&
	has out "9 with faults"'
# rejected NAME REASONS: with these reasons, and no other.
rejected() {
	sed "s/reject/&/; s/rejection = 1.0;/& $1/" reject.scenario >reasons.scenario
	rm -rf found
	explore 1 --seeds 1-20 --failures 0 --scenario reasons.scenario -- ./client reason || return
	sed -n 's/^seed [0-9]*: exit status //p' out | sort -n | tr '\n' ' ' >reasons
	[ "$(cat reasons)" = "$2" ]
}
check 'reasons of rejections' rejected '' '3 8 10 28 '
check 'some reasons' rejected 'reasons = [ "stale_conn", "invalid_service_id" ];' '8 10 '
check 'one reason' rejected 'reasons = 26;' '26 '
check 'what was logged is kept' grep -q '^polycm: warn: .*REJECTED: REJ 26' found/seed-1.out
check 'a reason is repeated' eval 'polycm run --scenario found/seed-1.scenario -- ./client reason >/dev/null 2>&1
	[ $? -eq 26 ]'
sed 's/rejection = 1.0;/& reasons = "because";/' reject.scenario >reasons.scenario
check 'a bad reason' eval 'explore 2 --scenario reasons.scenario -- true && has err "expected a REJ"'

# Nodes and data, within bounds: bounded NAME GROUP leaves nothing else that may go wrong.
bounded() {
	{
		cat two.scenario
		echo "explore = { loss = 0; lateness = 0; duplication = 0; reordering = 0; $2 };"
	} >"$1.scenario"
}
# one_fault NAME ARGUMENT STATUS ACTION...: such a run fails, and each of these faults alone repeats one.
one_fault() {
	local name=$1 argument=$2 status=$3 action seed

	rm -rf found
	explore 1 --seeds 1-100 --failures 0 --scenario "$name.scenario" -- ./data "$argument" || return
	! grep ' faults are needed' out | grep -v '^  1 of ' || return
	for action in "${@:4}"; do
		has out "{ action = \"$action\"; " || return
	done
	seed=$(sed -n 's/^seed \([0-9]*\): .*/\1/p' out | head -1)
	polycm run --scenario "found/seed-$seed.scenario" -- ./data "$argument" >/dev/null 2>&1
	[ $? -eq "$status" ]
}
for action in port_down freeze crash remove_device; do
	bounded $action "nodes = { ${action/remove_device/removal} = 0.3; delay = \"2000 s\"; };"
	check "a node's $action" one_fault $action last 6 $action
done
check 'a wait without end' waits wait
check 'a wait without end, and abort()' waits abort
bounded rejected 'data = { rejection = 0.3; };'
check 'completions with errors' eval 'one_fault rejected status 29 reject && has out "reason = 1" "reason = 2" "reason = 3" \
	": exit status 29" ": exit status 30" ": exit status 31"'
bounded corrupted 'data = { corruption = 0.5; loss = 0.1; };'
check 'no corrupt data arrives' eval 'explore 0 --seeds 1-40 --scenario corrupted.scenario -- ./data bytes &&
	! has out " 0 with faults" >tmp'
# A time after which faults end: then a last client is served, which it is not always without one.
bounded ever 'nodes = { port_down = 0.3; freeze = 0.3; delay = "300 s"; }; data = { loss = 0.2; most = 30; };'
bounded until 'until = "60 s"; nodes = { port_down = 0.3; freeze = 0.3; delay = "300 s"; }; data = { loss = 0.2; most = 30; };'
check 'a last client, and faults for ever' eval 'explore 1 --seeds 1-40 --scenario ever.scenario -- ./data last'
check 'a last client after all faults' eval 'explore 0 --seeds 1-100 --scenario until.scenario -- ./data last &&
	! has out " 0 with faults" >tmp'
# The faults of nodes and data on a fabric that the program makes, too.
echo 'explore = { loss = 0; lateness = 0; duplication = 0; reordering = 0; nodes = { freeze = 0.3; }; };' >own.scenario
own_nodes() {
	rm -rf found
	explore 1 --seeds 1-60 --failures 1 --jobs 1 --scenario own.scenario -- ./own own &&
		has out 'fabric = 2' 'action = "freeze"' '  1 of ' || return
	polycm run --scenario found/seed-*.scenario -- ./own own >/dev/null 2>&1
	[ $? -eq 134 ]
}
check 'nodes of a fabric of its own' own_nodes
sed 's/freeze/flood/' own.scenario >wrong.scenario
check 'a bad chance of nodes' eval 'explore 2 --scenario wrong.scenario -- true && has err "nodes has no member"'

check 'a program that always fails' eval 'explore 2 --seeds 1-9 -- ./client always && [ ! -s out ] &&
	has err "fails without faults, too: exit status 4"'
{ cat two.scenario; echo 'faults = ( { action = "reject"; message = "REQ"; reason = "consumer_defined"; } );'; } >rejected.scenario
check 'a file with faults under which it fails' eval 'explore 2 --seeds 1-9 --scenario rejected.scenario -- ./client reason &&
	has err "fails with the faults of the file alone, too: exit status 28"'
check 'a program that is not there' eval 'rm -rf found; explore 127 --seeds 1 -- ./nothing && [ ! -s out ] && [ ! -e found ] &&
	has err "polycm: ./nothing: No such file or directory" && counts err 1 .'
check 'a program that is in no folder' eval 'PATH=/usr/bin:/bin explore 127 --seeds 1 -- nothing && counts err 1 . &&
	has err "polycm: nothing: No such file or directory"'
check 'a program that cannot be executed' eval 'explore 126 --seeds 1 -- ./two.scenario && counts err 1 . &&
	has err "polycm: ./two.scenario: Permission denied"'
check 'a folder is no program' eval 'explore 126 --seeds 1 -- ./ && has err "polycm: ./: Is a directory"'

mkdir swept && chmod a+rwx swept
check 'what cannot be read is not told as not written' eval '
	TMPDIR=$work/swept explore 2 --seeds 1-3 -- sh -c "find $work/swept -type f -delete; exit 3" &&
	has err "cannot read" && lacks err "cannot write" && lacks err "what it printed is in"'

# A signal ends what runs, too, and leaves nothing behind.
mkfifo began && mkdir temporary && chmod a+rwx temporary began
interrupted() {
	local program status

	TMPDIR=$work/temporary "${command[@]}" explore --output found --jobs 2 -- \
		sh -c 'echo $$ >began; exec sleep 1000' >out 2>err </dev/null &
	started=($!)
	read -r -t "$limit" program <>began
	kill -TERM "${started[0]}"
	wait "${started[0]}"
	status=$?
	started=()
	[ "$status" -eq 1 ] && has err 'polycm: interrupted' && [ ! -e "/proc/$program" ] && [ -z "$(ls temporary)" ]
}
check 'interrupted' interrupted

# What was found until then is shown.  The second failure says that the first one is known.
mkfifo failed && chmod a+rwx failed
interrupted_late() {
	local status line

	rm -rf found
	"${command[@]}" explore --output found --jobs 1 --seeds 1-100000 --failures 0 --scenario two.scenario -- \
		sh -c './client exit || { echo >failed; exit 5; }' >out 2>err </dev/null &
	started=($!)
	exec 9<>failed
	read -r -t "$limit" -u 9 line && read -r -t "$limit" -u 9 line
	kill -INT "${started[0]}"
	wait "${started[0]}"
	status=$?
	started=()
	exec 9>&-
	[ "$status" -eq 1 ] && has out ': exit status 5' '  not shortened: the scenario file has all of its ' interrupted \
		'  replay: polycm run --scenario found/seed-' || return
	polycm run --scenario "$(ls found/seed-*.scenario | head -n 1)" -- ./client exit >/dev/null 2>&1
	[ $? -eq 5 ]
}
check 'interrupted after failures' interrupted_late

# What an earlier exploration has left in the folder is no trace of this one.
stale() {
	local trace

	explore 1 --seeds 1-60 --failures 1 --scenario two.scenario -- ./client crash || return
	trace=$(sed -n 's/^  ladder: polycm timeline --cm //p' out | head -1)
	[ -s "$trace" ] && echo stale >"$trace.2" || return
	explore 1 --seeds 1-60 --failures 1 --scenario two.scenario -- ./client crash || return
	grep -q "^  ladder: .*${trace##*/}\$" out && [ ! -e "$trace.2" ]
}
check 'traces of an earlier exploration' stale
# Nor is anything else, but for what is not ours and what an exploration that did not begin would remove.
cleared() {
	mkdir -p found && touch found/seed-7777777.out found/seed-7777777.scenario found/seed-7777777.trace.2 found/seed-1.mine ||
		return
	[ -z "${as_user[*]}" ] || chown -R 65534:65534 found
	explore 2 --seeds 1-9 -- ./client always && [ -e found/seed-7777777.out ] || return
	explore 0 --seeds 1-3 --scenario two.scenario -- ./client good && [ "$(ls found)" = seed-1.mine ] && rm -r found
}
check 'what an earlier exploration has left' cleared
# With more jobs than one, others may fail while the last of them does.
stops() {
	rm -rf found
	explore 1 --seeds 1-200 --failures 2 --jobs 1 --scenario two.scenario -- ./client crash &&
		has out ', 2 failed by ' 'stopped after --failures 2; --failures 0 tries all seeds'
}
check 'so many failures' stops

# Of two threads that wait, the one that is to blame is named, whichever learns of it first.
{
	cat two.scenario
	echo 'explore = { messages = [ "REQ" ]; loss = 0.7; lateness = 0; duplication = 0; reordering = 0; most = 40; };'
} >stuck.scenario
blames() {
	for _ in 1 2 3 4 5; do
		rm -rf found
		explore 1 --seeds 1-60 --failures 1 --jobs 1 --shrink-runs 1 --scenario stuck.scenario -- ./stuck &&
			has out ': rdma_get_cm_event waits for ever: sim sim1 10.0.0.2:# > 10.0.0.1:7471' \
				'are left, perhaps more than are needed: ' || return
		grep -hF ' waits for what can never happen: ' found/seed-*.out >waits
		counts waits 2 . && counts waits 1 ': sim sim0 10\.0\.0\.1:7471 .*listens, and nobody asks' || return
	done
}
check 'the thread that is to blame' blames

# Of a program that does well: its own failure would be told instead.
cut_short() {
	(trap '' XFSZ; ulimit -f 1; exits 74 polycm run --scenario two.scenario --clock virtual "$1" cut -- ./client good) &&
	has err "$2 $work/cut ends here: File too large" && has out 'the program cleans up' && rm cut
}
check 'a trace on a full disk' cut_short --trace 'the trace'
check 'a capture on a full disk' cut_short --pcap 'the capture'

layer_cut_short() {
	(trap '' XFSZ; ulimit -f 1; POLYCM_TRACE_FILE=$work/cut exits 74 polycm run --provider 'trace;sim' \
		--scenario two.scenario --clock virtual -- ./client good) &&
	has err "the trace $work/cut ends here: File too large" && rm cut
}
check 'a trace of the layer on a full disk' layer_cut_short
# The first seed under which something goes wrong and the program does well.
record_cut_short() {
	local seed

	for seed in $(seq 20); do
		rm -f cut
		POLYCM_SIM_EXPLORE=$work/cut exits 0 polycm run --scenario two.scenario --clock virtual --seed "$seed" -- \
			./client good || return
		[ ! -s cut ] || break
	done
	[ -s cut ] || return
	head -c 1024 /dev/zero | tr '\0' '#' >cut
	(trap '' XFSZ; ulimit -f 1; POLYCM_SIM_EXPLORE=$work/cut exits 74 polycm run --scenario two.scenario \
		--clock virtual --seed "$seed" -- ./client good) &&
	has err "the record of the exploration $work/cut ends here: File too large" && rm cut
}
check 'a record of an exploration on a full disk' record_cut_short

# What is found is written whole, or that it is not is said; the trace is the first that is too long.
found_cut_short() {
	rm -rf found
	(trap '' XFSZ; ulimit -f 2; explore 74 --seeds 1-60 --failures 1 --scenario two.scenario -- ./client crash) &&
		has err "polycm: the trace $work/found/seed-" ".trace ends here: File too large" &&
		has out 'not all of what was found could be written to found' && lacks out 'ladder: ' &&
		lacks out 'scenario files and what'
}
check 'a trace of an exploration on a full disk' found_cut_short

# A scenario file is whole, or what is wrong with it is said.
{
	sed '$d' two.scenario | sed '$s/$/,/'
	for i in $(seq 20); do
		printf '{ name = "idle%s"; devices = ( { transport = "roce"; addresses = "10.0.1.%s/24"; } ); }%s\n' \
			"$i" "$i" "$([ "$i" = 20 ] || echo ,)"
	done
	echo ');'
} >big.scenario
scenario_cut_short() {
	rm -rf found
	(trap '' XFSZ; ulimit -f 1; explore 74 --seeds 1-20 --failures 1 --scenario big.scenario -- ./client crash)
	has err 'seed-' '.scenario: File too large' && [ -z "$(ls found/*.scenario 2>/dev/null)" ]
}
check 'a scenario file on a full disk' scenario_cut_short
check 'no folder for what is found' eval 'exits 2 polycm explore --output "$work/no/where" -- touch "$work/ran" &&
	has err "--output $work/no/where: No such file or directory" && [ ! -e ran ]'
check 'no folder but a file' eval 'touch file && exits 2 polycm explore --output file -- touch "$work/ran" &&
	has err "--output file: Not a directory" && [ ! -e ran ]'
check 'no command' eval 'explore 2 --seeds 1-9 && has err "no command is given"'
check 'bad seeds' eval 'explore 2 --seeds 9-1 -- true && has err "is not like 1-10000"'
check 'a bad time limit' eval 'explore 2 --timeout 0 -- true && has err "--timeout: "'
echo 'explore = { los = 1; };' >wrong.scenario
bad_scenario() { explore 2 --scenario wrong.scenario -- true && has err "explore has no member 'los'; nearest: 'loss'"; }
check 'a bad scenario' bad_scenario
finish
