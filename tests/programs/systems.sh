#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The programs of scenario files: when each begins, which ends are good, and whether programs agree.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rping
need_turns
cd "$work" || exit 99

# programs GROUP...: a scenario file with two nodes and these programs.
programs() {
	local group

	cat <<-'END'
		nodes = (
			{ name = "server"; devices = ( { transport = "roce"; addresses = "10.0.0.1/24"; } ); },
			{ name = "client"; devices = ( { transport = "roce"; addresses = "10.0.0.2/24"; } ); }
		);
		programs = (
	END
	for group; do
		[ "$group" = "$1" ] || echo ,
		printf '{ %s }' "$group"
	done
	echo ');'
}
# runs NAME STATUS GROUP...: a run of them, and once more, which must be the same.
runs() {
	local name=$1 status=$2 i

	shift 2
	programs "$@" >"$name.scenario"
	for i in out again; do
		polycm run --log error --scenario "$name.scenario" >"$name.$i" 2>&1
		[ $? -eq "$status" ] && strip_note "$name.$i" && continue
		printf 'status is not %d:\n' "$status"
		cat "$name.$i"
		return 1
	done
	cmp "$name.out" "$name.again"
}

# A time of day is as long after the beginning of the year, in seconds and hundredths.
clock='command = "date +%s.%N"'
# at NAME LABEL: when it printed that.
at() { sed -n "s/^\[$2\] 1767225\(6[0-9]*\.[0-9][0-9]\)[0-9]*$/\1/p" "$1.out"; }

# --- Who begins when. ---

order() {
	runs order 0 "node = \"server\"; $clock; name = \"first\";" "node = \"server\"; $clock; name = \"second\";" \
		"node = \"client\"; $clock; name = \"time\"; after = \"0.5 s\";" "node = \"client\"; $clock; name = \"third\";" &&
		[ "$(at order first) $(at order second) $(at order time) $(at order third)" = '600.00 601.00 600.50 602.00' ]
}
check 'in order, and at a time' order
waits='command = "sh -c '\''date +%s.%N; sleep 3; date +%s.%N'\''"'
ended() {
	runs ended 0 "node = \"client\"; $clock; after = \"server ended\";" "node = \"server\"; $waits;" &&
		[ "$(at ended client)" = 603.00 ]
}
check 'when another has ended' ended
# The shell does not wait before its child does.
first_wait() {
	runs wait 0 "node = \"client\"; $clock; after = \"it\";" "node = \"server\"; name = \"it\"; $waits; after = \"1 s\";" &&
		[ "$(at wait client)" = 601.00 ] && [ "$(grep -n client wait.out | cut -d : -f 1)" -eq 2 ]
}
check 'when another waits' first_wait
all() {
	runs all 0 "node = \"client\"; name = \"last\"; $clock; after = \"all\";" "node = \"server\"; $waits;" \
		"node = \"client\"; command = \"sleep 7\";" "node = \"server\"; name = \"d\"; command = \"sleep inf\"; daemon = true;" &&
		[ "$(at all last)" = 668.00 ]
}
check 'when all others have ended' all
# Between two programs nobody uses the network.
whole_trace() {
	local pair='rping -s -a 10.0.0.1 -C 1 & rping -c -a 10.0.0.1 -C 1; wait'

	programs "node = \"server\"; name = \"one\"; command = [ \"sh\", \"-c\", \"$pair\" ];" \
		"node = \"server\"; name = \"two\"; command = [ \"sh\", \"-c\", \"$pair\" ]; after = \"one ended\";" >trace.scenario
	rm -f trace none
	exits 0 polycm run --trace trace --scenario trace.scenario &&
		[ "$(grep -c '"state":"LISTEN"' trace)" -eq 2 ] || return
	exits 0 polycm run --trace none --on a true && [ ! -e none ] && counts err 1 . &&
		has err 'polycm: run: no program used the simulated network: there is no --trace' || return
	user touch none
	exits 0 polycm run --verify --trace none --pcap other --on a true && [ ! -e none ] &&
		counts err 1 'run: no program used the simulated network: there is no --trace and no --pcap$' || return
	exits 127 polycm run --trace none --on a ./nowhere && lacks err 'no program used'
}
check 'a trace is of the whole run' whole_trace
# One that others read meanwhile is written as what programs print: more of it than a pipe holds waits for the reader.
read_trace() {
	local client='node = "client"; command = "rping -c -a 10.0.0.1 -C 100";'

	runs piped 0 'node = "server"; command = [ "sh", "-c",
		"POLYCM_SIM_TRACE=- rping -s -a 10.0.0.1 -C 100 2>&1 | { sleep 5; tail -n 1; }" ];' "$client" &&
		has piped.out '"state":"DESTROYING"' || return
	runs shown 0 'node = "server"; command = [ "sh", "-c", "POLYCM_SIM_TRACE=- rping -s -a 10.0.0.1 -C 100; echo ended" ];' \
		"$client" && has shown.out '"state":"DESTROYING"' && [ "$(tail -n 1 shown.out)" = '[server] ended' ]
}
check 'a trace that is read meanwhile' read_trace
check 'a server, clients, and a last one' runs rping 0 \
	'node = "server"; command = "rping -s -P -a 10.0.0.1"; daemon = true;' \
	'node = "client"; name = "one"; command = "rping -c -a 10.0.0.1 -C 2 -v"; after = "server";' \
	'node = "client"; name = "two"; command = [ "rping", "-c", "-a", "10.0.0.1", "-C", "2" ]; after = "one ended";' \
	'node = "client"; name = "last"; command = "rping -c -a 10.0.0.1 -C 1"; after = "all";'
check 'one that never begins' eval 'runs never 75 "node = \"server\"; command = \"rping -s -a 10.0.0.1 -C 1\";" \
	"node = \"client\"; command = \"true\"; after = \"server ended\";" &&
	has never.out "polycm: run: client has not begun: it begins after \"server ended\"" \
		"polycm: error: server: rping, process 1, thread 1, waits for what can never happen: "
	lacks never.out "error: client"'
check 'one that is called as threads of polycm are' eval 'cp "$(command -v rping)" polycm-rping && chmod go+rx polycm-rping &&
	runs called 75 "node = \"server\"; command = \"./polycm-rping -s -a 10.0.0.1 -C 1\";" &&
	counts called.out 2 "^polycm: error: server: .*polycm-rping, process 1, thread [12], waits for what can never happen: "'
check 'one that begins after the limit' eval 'runs beyond 75 "node = \"server\"; command = \"date\"; after = \"120 min\";" \
	"node = \"client\"; command = \"sleep inf\";" && lacks beyond.out "error: server" &&
	has beyond.out "run: server has not begun: it begins at 7200 s, after the limit of virtual time (--until)" \
		"error: client: sleep, process 2, thread 1, waits longer than the limit"'
check 'a last one that waits for ever' eval 'runs stuck 75 "node = \"server\"; command = \"true\";" \
	"node = \"client\"; name = \"last\"; command = \"rping -s -a 10.0.0.2 -C 1\"; after = \"all\";" &&
	has stuck.out "polycm: last, the last program, did not end"'

# A file without nodes has those that its programs name.
unnamed() {
	local message=$1 node=$2

	shift 2
	programs "node = \"server\"; command = \"rping -s -a 10.0.0.1 -C 1\";" \
		"node = \"client\"; $1 = \"rping -c -a 10.0.0.1 -C 1\";" "node = \"all\"; command = \"ibv_devinfo\";" |
		sed '/^nodes/,/^);/d' >unnamed.scenario
	echo "faults = ( { action = \"lose\"; message = \"$message\"; nth = 1; from = \"$node\"; } );" >>unnamed.scenario
}
check 'a file without nodes' eval 'unnamed REQ client command && exits 0 polycm run --log info --scenario unnamed.scenario &&
	grep -q "run: virtual time [4-9]" err && counts out 2 "^\[all\] hca_id:" && exits 0 polycm run --transport iwarp --verify --scenario unnamed.scenario &&
	exits 0 polycm explore --seeds 1-3 --failures 0 --scenario unnamed.scenario'
check 'and a fault that they all see' eval 'unnamed DREQ client command && exits 2 polycm explore --scenario unnamed.scenario &&
	has err "unnamed.scenario fails with the faults of the file alone, too"'
check 'and mistakes' eval 'unnamed REQ nobody command && exits 2 polycm run --scenario unnamed.scenario &&
	has err "error: unnamed.scenario:5: from = \"nobody\": expected the name of a node: server, client" &&
	unnamed REQ client comand && exits 2 polycm run --scenario unnamed.scenario && counts err 1 . &&
	has err "error: unnamed.scenario:3: a program has no member '"'comand'"'" &&
	exits 2 polycm explore --scenario unnamed.scenario && has err "error: unnamed.scenario:3: a program has no member"'

# A program that ends first does not know what others will send.
missed() {
	{
		programs 'node = "client"; name = "short"; command = "ibv_devinfo";' \
			'node = "server"; command = "rping -s -a 10.0.0.1 -C 1";' \
			'node = "client"; command = "rping -c -a 10.0.0.1 -C 1"; after = "server";'
		printf 'faults = ( { action = "delay"; message = "DREQ"; delay = "1 ms"; },
			{ action = "lose"; message = "DREQ"; nth = 9; } );'
	} >missed.scenario
	exits 0 polycm run --log warn --scenario missed.scenario && lacks err 'fault rule 1 ' &&
		counts err 1 'fault rule 2 \(lose DREQ\) has never happened: only 1 matched, and nth is 9$'
}
check 'a rule that never happens is told of by who knows it' missed

# --- Ends. ---

exits_with() { echo "node = \"client\"; name = \"$1\"; command = \"sh -c 'exit $2'\"; $3"; }
check 'statuses that are expected' runs expected 0 "$(exits_with a 3 'expect = [ 0, 3 ];')" "$(exits_with b 1 'expect = 1;')" \
	'node = "server"; command = [ "sh", "-c", "kill -9 $$" ]; expect = 137;'
check 'and others' eval 'runs status 3 "$(exits_with a 3 "expect = [ 0, 4 ];")" "$(exits_with b 4 "")" &&
	has status.out "polycm: a ended with exit status 3, at 0." "polycm: b ended with exit status 4, at 1."'
check 'success that is not expected' eval 'runs success 1 "$(exits_with a 0 "expect = 1;")" &&
	has success.out "polycm: a ended with exit status 0, at 0."'
check 'a daemon that dies' eval 'runs daemon 9 "$(exits_with d 9 "daemon = true;")" "node = \"server\"; command = \"sleep 3\";" &&
	has daemon.out "polycm: d, a daemon, ended with exit status 9 before the others, at 0."'
check 'a last program that fails' eval 'runs last 5 "$(exits_with z 5 "after = \"all\";")" "node = \"server\"; command = \"true\";" &&
	has last.out "polycm: z, the last program, ended with exit status 5, at 60."'
says() { echo "node = \"client\"; name = \"$1\"; command = [ \"printf\", \"$2\" ]; agree = true;"; }
check 'they agree' runs agree 0 "$(says a 'x\\ny')" "$(says b 'x\\ny')" "$(says c 'x\\ny')" 'node = "server"; command = "echo z";'
check 'they disagree' eval 'runs disagree 1 "$(says a "x\\\\ny")" "$(says b "x\\\\nz")" "$(says c x)" &&
	has disagree.out "polycm: a and b disagree: line 2 of what they printed: y | z" \
		"polycm: a and c disagree: line 2 of what they printed: y | (nothing)"'

# --- What a program that ends has sent. ---

# late MESSAGE TRANSPORT SETTING SECONDS: the client's message arrives so long after it left; the client ends before.
late() {
	local pair='command = "rping -c -a 10.0.0.1 -C 1"'

	{ programs 'node = "server"; command = "rping -s -a 10.0.0.1 -C 1";' "node = \"client\"; $pair;" | sed "s/roce/$2/"
	  echo "$3"; } >late.scenario
	rm -f late.trace
	exits 0 polycm run --trace late.trace --scenario late.scenario || return
	awk -F '[:,]' -v message="$1" -v seconds="$4" '
		index($0, "\"message\":\"" message "\"") && index($0, "\"from\":\"client\"") {
			at[index($0, "\"kind\":\"recv\"") > 0] = $2
			packet[index($0, "\"kind\":\"recv\"") > 0] = $8
		}
		/"state":"DISCONNECT"|"event":"DISCONNECTED"/ && /"node":"server"/ && !(1 in at) { early = 1 }
		END {
			took = (at[1] - at[0]) / 1e9
			exit early || packet[0] != packet[1] || took < seconds || took > seconds + 0.001
		}' late.trace && return
	grep "$1" late.trace
	return 1
}
delay='faults = ( { from = "client"; message = "DREQ"; action = "delay"; delay = "3 s"; } );'
latency='links = ( { latency = "200 ms"; } );'
check 'a late DREQ comes after its sender has ended' late DREQ roce "$delay" 3
check 'and over a slow link' late DREQ roce "$latency" 0.2
check 'and what ends a TCP connection' late FIN iwarp "$latency" 0.2
check 'and comes again if it is lost' late FIN iwarp \
	'faults = ( { from = "client"; message = "FIN"; action = "lose"; times = 1; } );' 0.2

# --- Ways of failing under faults. ---

# found GROUP PROGRAM...: some of twelve seeds fail; the results are in the folder found.
failures=1
found() {
	local group=$1

	shift
	rm -rf found
	{ programs "$@"; echo "explore = { lateness = 0; duplication = 0; reordering = 0; $group };"; } >found.scenario
	exits 1 polycm explore --output found --seeds 1-12 --failures "$failures" --jobs 1 --scenario found.scenario
}
# One page has all about it.
page() { has "$(sed -n 's/^  page: //p' out | head -n 1)" '## Faults' '    programs = ' '## The network before' "$@"; }
# The first of them fails again.
again() {
	local scenario

	scenario=$(sed -n 's/^  replay: polycm run --scenario //p' out | head -n 1)
	exits "$1" polycm run --scenario "$scenario"
}
rejects='messages = [ "REQ", "REP" ]; loss = 0; rejection = 0.5; reasons = "consumer_defined";'
requests='messages = "REQ"; loss = 0; rejection = 0.5;'
client='command = "rping -c -a 10.0.0.1 -C 1"'
# Serves one client after the other, until one goes wrong.
once='command = [ "sh", "-c", "while rping -s -a 10.0.0.1 -C 1; do :; done; '
check 'a daemon dies' eval 'found "$rejects" "node = \"server\"; ${once}exit 7\" ]; daemon = true;" \
	"node = \"client\"; command = \"sh -c '\''rping -c -a 10.0.0.1 -C 1; sleep 9; exit 0'\''\"; after = \"server\";" &&
	has out ": server, a daemon, ended with exit status 7 before the others" " are needed:" &&
	page "s of virtual time." "server:" "client:" "polycm run:" "polycm: server, a daemon, ended" && again 7'
check 'the last program is not served' eval 'found "$rejects" "node = \"server\"; ${once}sleep inf\" ]; daemon = true;" \
	"node = \"client\"; $client; after = \"server\"; expect = [ 0, 255 ];" \
	"node = \"client\"; name = \"last\"; $client; after = \"all\";" &&
	has out ": not served any more: last ended with exit status 255" " are needed:" && again 255'
check 'no fault when the last program runs' eval '
	{ programs "node = \"server\"; command = \"rping -s -P -a 10.0.0.1\"; daemon = true;" \
		"node = \"client\"; $client; expect = [ 0, 255 ];" "node = \"client\"; name = \"last\"; $client; after = \"all\";"
	  echo "explore = { messages = \"REQ\"; rejection = 1.0; most = 100; };"; } >calm.scenario
	exits 0 polycm explore --seeds 1-4 --scenario calm.scenario && lacks out " 0 with faults"'
tells='command = [ "sh", "-c", "rping -c -a 10.0.0.1 -C 1 && echo served || echo refused" ]; agree = true'
check 'programs disagree' eval 'found "$requests" "node = \"server\"; command = \"rping -s -P -a 10.0.0.1\"; daemon = true;" \
	"node = \"client\"; name = \"one\"; $tells;" "node = \"client\"; name = \"two\"; $tells;" &&
	has out ": one and two disagree: line 1 of what they printed: " " are needed:"'
check 'a status that is not expected' eval 'found "$requests" "node = \"server\"; command = \"rping -s -P -a 10.0.0.1\"; daemon = true;" \
	"node = \"client\"; $client;" && has out ": client ended with exit status 255" " are needed:"'

check 'a wait without end' eval 'found "messages = \"DREQ\"; loss = 0.5;" \
	"node = \"server\"; command = \"rping -s -a 10.0.0.1 -C 1\";" "node = \"client\"; $client;" && lacks out "#" &&
	has out ": server: rping, process 1, thread 1, waits for ever: " "action = \"lose\"; message = \"DREQ\"; from = \"client\"" &&
	page "## Who waits for what" "- server: rping, process 1, thread 1: "'
# The reason of a REJ, which the client prints, makes no other failure.
failures=4
family() {
	found 'messages = "REQ"; loss = 0; rejection = 0.7;' \
		'node = "server"; command = "rping -s -P -a 10.0.0.1"; daemon = true;' "node = \"client\"; $client;" &&
		has out ', 4 failed by 1 cause, ' '  3 more seeds fail like it: ' &&
		[ "$(sed -n 's/.*reason = //p' found/*.scenario | sort -u | wc -l)" -gt 1 ]
}
check 'a family' family
# Nor does the name of the program that it met.
names() {
	local line='{ rping -c -a 10.0.0.1 -C 1 >/dev/null 2>&1 || { echo \"$name failed\"; exit 3; }; }'

	found 'messages = "REQ"; loss = 0; rejection = 0.4;' \
		'node = "server"; command = [ "sh", "-c", "exec rping -s -P -a 10.0.0.1 >/dev/null 2>&1" ]; daemon = true;' \
		'node = "client"; name = "one"; command = "echo begins";' 'node = "client"; name = "two"; command = "echo begins";' \
		"node = \"client\"; name = \"load\"; command = [ \"sh\", \"-c\", \"for name in one two; do $line; done\" ];" &&
		has out ', 4 failed by 1 cause, ' && grep -hE '^\[load\] (one|two) failed' found/*.out &&
		lacks out 'none of'
}
check 'a family with names' names

# Each seed reads it from where it is; the third line is what they fail with.
input() {
	printf '1\n2\n3\n' >lines && { read -r line && polycm explore --seeds 1-9 --failures 1 --jobs 2 --shrink-runs 0 \
		--scenario input.scenario --on all sh -c 'read a; [ "$a" = 2 ] || exit 4; rping -s -a 10.0.0.1 -C 1 & sleep 1
		rping -c -a 10.0.0.1 -C 1 || { read a; exit "$a"; }'; } <lines >out 2>err
	[ $? -eq 1 ] && has out 'ended with exit status 3' " < $work/lines"
}
check 'standard input' eval 'programs "node = \"client\"; command = \"true\";" | sed "/^programs/,\$d" >input.scenario
	echo "explore = { messages = \"REQ\"; rejection = 0.9; preemptions = 0; };" >>input.scenario; input'
check 'no standard input' eval 'polycm run --on all sh -c "read x || echo none" <&- >out 2>err && has out none && lacks err rror'
# It fails if it is held up.
cat >last.pl <<'END'
use Time::HiRes qw(time);
my $begin = time;
select undef, undef, undef, 0.0001 for 1 .. 99;
exit(time > $begin + 0.05);
END
check 'the last program comes on time' eval 'programs "node = \"server\"; command = \"sleep 1\";" \
	"node = \"client\"; name = \"last\"; after = \"all\"; command = \"perl last.pl\";" >late.scenario &&
	exits 0 polycm explore --scenario late.scenario --seeds 1-40 --failures 0'
# All others wait for their turn.
check 'a program that computes' eval 'exits 2 polycm explore --output found --timeout 1 --seeds 1 --on server sleep 9 \
	--on client bash -c "while :; do :; done" && has err "does not end: bash computes" && lacks err "waits in"'

# --- Mistakes. ---

wrong() {
	local text=$1

	shift
	programs "$@" >wrong.scenario
	exits 2 polycm run --scenario wrong.scenario && has err "$text"
}
check 'a node that is not there' wrong 'wrong.scenario:6: node = "c": expected "all" or the name of a node: server, client' \
	'node = "c"; command = "true";'
check 'who waits for each other' wrong 'these programs wait for each other' 'node = "server"; command = "true"; after = "client";' \
	'node = "client"; command = "true"; after = "server";'
programs >none.scenario
check 'no programs' eval 'exits 2 polycm run --scenario none.scenario &&
	has err "run: no command is given, and none.scenario has no programs"'
check 'no command' eval 'exits 2 polycm run && has err "run: no command is given"'
check 'somebody to kill who is not there' eval 'programs "node = \"server\"; command = \"true\";" \
	"node = \"client\"; name = \"one\"; command = \"true\";" >killed.scenario &&
	exits 2 polycm run --kill serve@3 --scenario killed.scenario && counts err 1 . &&
	has err "run: --kill serve@3: no program has that name or runs on a node of that name; there are: server, client, one" &&
	exits 2 polycm run --kill serve@3 --on a true --on b true --on a true && has err "; there are: a, b" &&
	exits 2 polycm run --kill server --on server true && has err "run: --kill server: expected NODE@N"'
units() {
	local time

	for time in 5400 5400s '90 min' 1.5h '5400000 ms'; do
		exits 75 polycm run --until "$time" --on a sleep inf --on b sleep 2h &&
			has err 'the limit of 5400 s of virtual time' || return
	done
	for time in '' 0 -1 s '1 day' 5ss 1e6h; do
		exits 2 polycm run --until "$time" --on a true && has err "run: --until: '$time' is no time such as" || return
	done
}
check 'units of --until' units
check 'programs beside a command' eval 'exits 0 polycm run --scenario killed.scenario true && counts err 1 . &&
	has err "run: the programs of killed.scenario are not started, since a command is given: without it they are" &&
	exits 0 polycm run --scenario killed.scenario --node client true && counts err 0 . &&
	exits 0 polycm run --scenario killed.scenario --on client true && counts err 0 .'
# once TEXT COMMAND...: what can be read once only is refused, and not read.
once() {
	local text=$1 status

	shift
	"$@" >out 2>err < <(cat calm.scenario)
	status=$?
	[ "$status" -eq 2 ] && has err "$text: a pipe can be read only once: give a file" && counts err 1 .
}
for option in scenario faults; do
	check "a pipe as --$option" eval 'once "--$option /dev/stdin" polycm run "--$option" /dev/stdin true &&
		once "--$option /dev/stdin" polycm run "--$option" /dev/stdin --on server true'
done
check 'a scenario at standard input' eval 'polycm run --scenario /dev/stdin --on server true <calm.scenario >out 2>err
	[ $? -eq 2 ] && has err "--scenario /dev/stdin: programs may have another standard input: give the file"'
check 'a pipe with programs' once '--scenario /dev/stdin' polycm run --scenario /dev/stdin
check 'explore: a pipe' eval 'once "--scenario /dev/stdin" polycm explore --scenario /dev/stdin --on server true &&
	once "--scenario /dev/stdin" polycm explore --scenario /dev/stdin true'
check 'a pipe in the environment' eval 'user mkfifo never && POLYCM_SIM_SCENARIO=never once POLYCM_SIM_SCENARIO=never polycm run true &&
	POLYCM_SIM_SCENARIO=never once POLYCM_SIM_SCENARIO=never polycm run --on server true &&
	POLYCM_FAULT_SCENARIO=never once POLYCM_FAULT_SCENARIO=never polycm explore --on server true'
check 'a command of its own' eval 'programs "node = \"server\"; command = \"false\";" >other.scenario &&
	exits 0 polycm run --scenario other.scenario --on server echo other && has out "other"'
finish
