#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# polycm timeline: diagrams of traces that lie here, their filters, pictures, and bad input.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need xmllint
here=$abs_top_srcdir/tests/programs
traces=(loss reject two three self late one third long host)
unset COLUMNS NO_COLOR
cp "$here"/timeline-*.trace "$work" && chmod a+r "$work"/*.trace
cd "$work" || exit 99

# draws TRACE[+TRACE...] [WIDTH [OPTION...]]
draws() {
	local names=() name

	for name in ${1//+/ }; do
		names+=("timeline-$name.trace")
	done
	exits 0 env COLUMNS="${2-80}" "${command[@]}" timeline "${@:3}" "${names[@]}" && [ ! -s "$work/err" ]
}
is_golden() {
	draws "$2" "${@:3}" && golden "timeline-$1" "$work/out"
}

# --- In the terminal. ---

for trace in "${traces[@]}"; do
	check "the trace $trace" is_golden "$trace" "$trace"
done
check 'a wide terminal' is_golden wide loss 120
check 'one connection of several' is_golden id three 80 --id 3
check 'two nodes of three' is_golden between three 80 --between a,c
check 'two processes of one host' is_golden host-two host 80 --between 'host, process 1,host, process 0'
check 'the same the other way round, with a blank' eval '
	draws host 80 --between "host, process 0, host, process 1" && diff "$here/timeline-host-two.golden" "$work/out"'
check 'both sides of a host that talks to itself' eval '
	draws self 80 --between "host, active,host, passive" && diff "$here/timeline-self.golden" "$work/out"'
check 'every timer' is_golden all reject 80 --all
check 'no data' eval '
	draws loss && has out SEND && draws loss 80 --cm && has out REQ RTU DREQ && ! grep -E "── (SEND|ACK)|(SEND|ACK).* ──" out'
check 'no line is wider than the terminal' eval '
	draws loss 100 && [ "$(LC_ALL=C.UTF-8 wc -L <"$work/out")" -le 100 ]'
check 'no colours in a file' eval '
	draws loss && ! grep -q "$(printf "\033")" "$work/out"'
check 'from standard input' eval '
	draws loss && cp out out.1 && polycm timeline - <timeline-loss.trace | diff - <(COLUMNS=80 cat out.1)'

# --- Several hosts, whose clocks have nothing in common. ---

# A number of a packet, of an id and of a QP is each host's own.
check 'two hosts' is_golden hosts alpha+beta 100
check 'two hosts in the other order' eval '
	draws beta+alpha 100 && diff <(sed 1d "$here/timeline-hosts.golden") <(sed 1d "$work/out")'
check 'one of two hosts' is_golden one-host alpha
check 'one connection of two hosts' eval 'draws alpha+beta 100 --id 1 && has out RTU "again: SEND" && ! grep "not traced" out'
check 'between two hosts' eval 'draws alpha+beta 100 --between alpha,beta && has out RTU "again: SEND" && ! grep 10.0.0.3 out'
sed 's/"alpha"/"box"/' timeline-alpha.trace >timeline-box1.trace
sed 's/"beta"/"box"/' timeline-beta.trace >timeline-box2.trace
check 'two hosts of one name' eval 'draws box1+box2 100 &&
	counts out 1 "  box \(10.0.0.1\), rping +box \(10.0.0.2\), rping +10.0.0.3, not traced$" &&
	diff <(sed 1d "$here/timeline-hosts.golden") <(sed 1d "$work/out")'
# Each process of a simulated network may have a trace of its own; their clock is one.
for number in 0 1 2; do
	grep "\"process\":$number" timeline-host.trace >"timeline-process$number.trace"
done
check 'three traces of one network' eval '
	draws process0+process2+process1 && diff <(sort "$here/timeline-host.golden") <(sort "$work/out")'

# host NAME NUMBER ADDRESS; clock TIME NODE NUMBER ROUND_TRIP OFFSET; packet KIND TIME NUMBER FROM TO MESSAGE
host() {
	printf '{"time":%s,"process":0,"kind":"host","node":"%s","host":"%s"}\n' 1000 "$1" "$2"
	printf '{"time":1000,"process":0,"kind":"address","node":"%s","action":"added","device":"ofi0","transport":"roce","address":"%s"}\n' "$1" "$3"
}
clock() {
	printf '{"time":%s,"process":0,"kind":"clock","node":"%s","host":"%s","round_trip":%s,"offset":%s}\n' "$@"
}
packet() {
	printf '{"kind":"%s","time":%s,"process":0,"packet":%s,"from":"%s","to":"%s","message":"%s"}\n' "$@" |
		sed 's/^{\("kind":"[a-z]*"\),\("time":[0-9]*\)/{\2,\1/'
}
# What the clocks say, and what is drawn when: is_drawn "LINES OF A" "LINES OF B" ROW...
is_drawn() {
	{ host a aa 10.0.0.1; eval "$1"; } >timeline-a.trace
	{ host b bb 10.0.0.2; eval "$2"; } >timeline-b.trace
	exits 0 env COLUMNS=80 "${command[@]}" timeline timeline-a.trace timeline-b.trace || return
	for row in "${@:3}"; do
		counts out 1 "^ *$row" || return
	done
}
to_b='packet send 1000 1 a 10.0.0.2 REQ; packet recv 3000 1 10.0.0.2 a REP'
from_b='packet recv 902000 1 10.0.0.1 b REQ; packet send 902100 1 b 10.0.0.1 REP'
check 'by one comparison of clocks' eval '
	is_drawn "clock 900 10.0.0.2 bb 100 900000; $to_b" "$from_b" "0 ns .*REQ" "1.100 µs .*REP" && [ ! -s err ]'
check 'by the comparison of the other host' eval '
	is_drawn "$to_b" "clock 900900 10.0.0.1 aa 100 -900000; $from_b" "0 ns .*REQ" "1.100 µs .*REP" && [ ! -s err ]'
check 'by the better comparison' eval '
	is_drawn "clock 900 10.0.0.2 bb 100 900000; $to_b" "clock 900900 10.0.0.1 aa 500 -900200; $from_b" "1.100 µs .*REP"'
check 'no message comes before it was sent' eval '
	is_drawn "clock 900 10.0.0.2 bb 9000 905000; $to_b" "$from_b" "0 ns .*REQ" "101 ns .*REP" && [ ! -s err ]'
check 'no answer comes before it was sent' eval '
	is_drawn "clock 900 10.0.0.2 bb 9000 895000; $to_b" "$from_b" "0 ns .*REQ" "1.999 µs .*REP" && [ ! -s err ]'
check 'by messages alone' eval 'is_drawn "$to_b" "$from_b" "0 ns .*REQ" "1.050 µs .*REP" && [ ! -s err ]'
check 'by messages in one direction' eval '
	is_drawn "packet send 1000 1 a 10.0.0.2 REQ" "packet recv 500 1 10.0.0.1 b REQ; packet send 600 9 b 10.0.0.1 REP" \
		"0 ns .*REQ" "101 ns .*REP" && [ ! -s err ]'
check 'a clock that is slower than the other' eval '
	is_drawn "clock 1000 10.0.0.2 bb 100 0; clock 2000001000 10.0.0.2 bb 100 -4000000; packet send 1000 1 a 10.0.0.2 REQ" \
		"packet send 998001000 1 b 10.0.0.1 REP" "0 ns .*REQ" "1 s .*REP" && [ ! -s err ]'
check 'messages that contradict each other' eval '
	is_drawn "packet send 1000 1 a 10.0.0.2 REQ; packet recv 1100 1 10.0.0.2 a REP" \
		"packet recv 500 1 10.0.0.1 b REQ; packet send 900 1 b 10.0.0.1 REP" "0 ns .*REQ" "250 ns .*REP" &&
	has err "s clock is known to 151 ns: what happens within"'
check 'hosts that do not know each other' eval '
	is_drawn "packet send 5000 1 a 10.0.0.7 REQ" "packet send 900000 1 b 10.0.0.7 RTU" "0 ns .*REQ" "895 µs .*RTU" &&
	has err "s clock shows: its first line is drawn beside" && counts out 1 "a, process 0 .* 10.0.0.7, not traced .* b, process 0"'
# Host b has no process any more: one of host a answers as its kernel would.
check 'a host that answers for the other' eval '
	is_drawn "clock 900 10.0.0.2 bb 100 900000; packet send 5000 1 a 10.0.0.2 REQ; packet recv 5100 1 a 10.0.0.2 REQ
		packet send 5200 2 10.0.0.2 a REJ; packet recv 5300 2 10.0.0.2 a REJ" \
		"packet send 901000 1 b 10.0.0.1 DREQ" "0 ns .*DREQ" "4 µs .*─ REQ ─*▶│" "4.200 µs .*│◀─* REJ -1 ──┤" &&
	counts out 1 " b, process 0 .* a, process 0 .* b, kernel$"'
for offset in '\"x\"' 1.5 9223372036854775807 -9223372036854775808 '{}'; do
	check "an offset that is none: $offset" eval '
		is_drawn "clock 900 10.0.0.2 bb 100 $offset; $to_b" "$from_b" "0 ns .*REQ" "1.050 µs .*REP"'
done
check 'a round trip that is none' eval '
	is_drawn "clock 900 10.0.0.2 bb -1 5; clock 900 a aa 1 1; clock 900 10.0.0.9 aa 1 1; $to_b" "$from_b" "0 ns .*REQ" "1.050 µs .*REP"'
check 'the same trace twice' eval 'exits 0 polycm timeline timeline-alpha.trace timeline-alpha.trace'

# --- Pictures. ---

is_picture() {
	local trace=$1 word

	exits 0 polycm timeline --svg "$work/$trace.svg" "timeline-$trace.trace" && [ ! -s "$work/out" ] &&
	xmllint --noout "$work/$trace.svg" || return
	for word in "${@:2}"; do
		xmllint --xpath 'string(/)' "$work/$trace.svg" | grep -qF "$word" && continue
		printf 'not in the picture: %s\n' "$word"
		return 1
	done
	# Self-contained: nothing is fetched, nothing runs.
	! grep -qE 'href|<script|url\(|@import' "$work/$trace.svg"
}
check 'a picture with a loss' is_picture loss client server 'sim1 roce 10.0.0.2' 'REQ "hello, server"' \
	'again: REQ "hello, server"' 'lose REQ (rule 1)' '+ 4.608 s' 'timer retransmit fired' \
	'id 1: CONNECT_REQUEST' TIMEWAIT_EXIT
check 'each lost message has its cross' eval '
	[ "$(grep -c "class=\"cross\"" "$work/loss.svg")" -eq "$(grep -c "\"action\":\"lose\"" timeline-loss.trace)" ]'
check 'a picture with three nodes' is_picture three a b c
check 'a picture with late messages' is_picture late REQ
check 'a picture of one process of two' is_picture one 'server, not traced' \
	'5 messages with an open end: the process there was not traced.'
check 'what goes to a process that is not traced is not lost' eval '
	[ "$(grep -c "class=\"cross\"" "$work/one.svg")" -eq 3 ]'
check 'names are what they are, not XML' is_picture names 'a<b' 'c&"d'
check 'a picture on standard output' eval '
	exits 0 polycm timeline --svg - timeline-loss.trace && diff "$work/out" "$work/loss.svg"'
check 'a picture that cannot be written' eval '
	exits 1 polycm timeline --svg /nowhere/x.svg timeline-loss.trace && has "$work/err" "/nowhere/x.svg: No such file"'

# --- Bad input: one line that says where, or a note. ---

# complains STATUS TEXT TRACE-TEXT OPTION...
complains() {
	local status=$1 text=$2

	printf '%s' "$3" >"$work/bad.trace"
	exits "$status" polycm timeline "${@:4}" "$work/bad.trace" &&
	counts "$work/err" 1 . && has "$work/err" "$text"
}
good=$(grep -m1 '"kind":"state"' timeline-loss.trace)
nl='
'
check 'no JSON' complains 1 'bad.trace:2: no JSON: ' "$good${nl}nonsense$nl$good$nl"
check 'another JSON' complains 1 'bad.trace:1: no line of a trace: it is no JSON object' "[1, 2]$nl"
check 'no time' complains 1 'bad.trace:1: no line of a trace: it has no time' "{\"kind\":\"state\"}$nl"
check 'a time that is none' complains 1 'bad.trace:1: no line of a trace' \
	"{\"time\":\"noon\",\"kind\":\"state\"}$nl"
check 'a time that is too large' complains 1 'bad.trace:1: ' "{\"time\":99999999999999999999,\"kind\":\"x\"}$nl"
check 'a negative time' complains 1 'bad.trace:1: ' "{\"time\":-1,\"kind\":\"state\"}$nl"
check 'a line without what it is' complains 1 'bad.trace:1: a line of kind event without "event"' \
	"{\"time\":1,\"kind\":\"event\",\"event\":7}$nl"
check 'members of the wrong type' eval '
	exits 0 polycm timeline timeline-types.trace && [ ! -s "$work/err" ]'
check 'a status that is no errno' eval '
	printf "%s\n" "{\"time\":1,\"kind\":\"event\",\"node\":\"a\",\"event\":\"REJECTED\",\"status\":-9223372036854775808}" \
		>bad.trace && exits 0 polycm timeline bad.trace && has "$work/out" "REJECTED, status -9223372036854775808"'
check 'a line that is cut off' complains 0 'bad.trace: the last line is cut off and left out' \
	"$good$nl${good:0:40}"
check 'a kind that nobody knows' complains 0 'bad.trace: 1 lines of kinds that this version does not know' \
	"$good$nl{\"time\":5,\"kind\":\"dance\"}$nl"
check 'an empty trace' complains 1 'nothing happens in this trace' ''
check 'deep nonsense' complains 1 'bad.trace:1: no JSON: ' "$(head -c 100000 /dev/zero | tr '\0' '[')$nl"
check 'binary nonsense' eval 'exits 1 polycm timeline /bin/sh && counts "$work/err" 1 .'
check 'no such file' eval 'exits 1 polycm timeline /nowhere/x && has "$work/err" "/nowhere/x: No such file"'
check 'a folder' eval 'exits 1 polycm timeline / && has "$work/err" "Is a directory"'
check 'an id that is not there' complains 1 'no line is about the id 99' "$good$nl" --id 99
check 'a node that is not there' complains 1 "no node is named 'x'; there are: client" "$good$nl" --between client,x
check 'which nodes there are' eval 'exits 1 polycm timeline --between a,server timeline-loss.trace &&
	has "$work/err" "no node is named '"'a'; there are: client, server"'"'
check 'which columns there are' eval 'exits 1 polycm timeline --between "host, process 1,x" timeline-host.trace &&
	has "$work/err" "is not two columns with a comma between; there are: host, process 0; host, process 1; host, process 2"'
# All processes tell what happens to a node; it is shown where somebody is on it, or once.
changes='{"time":1,"process":3,"kind":"state","node":"a","of":"id","id":1,"state":"LISTEN","was":"IDLE"}
{"time":5,"process":4,"kind":"state","node":"b","of":"id","id":1,"state":"LISTEN","was":"IDLE"}
{"time":7,"process":3,"kind":"node","node":"b","what":"crash","for":0}
{"time":7,"process":4,"kind":"node","node":"b","what":"crash","for":0}
{"time":8,"process":3,"kind":"node","node":"c","what":"crash","for":0}
{"time":8,"process":4,"kind":"node","node":"c","what":"crash","for":0}
'
check 'what happens to a node' eval '
	printf %s "$changes" >changes.trace && exits 0 polycm timeline changes.trace && counts out 2 "crash" &&
	has out "a, process 3" "b, process 4" "           c  " && ! grep -E "a, process 4|b, process 3|c, process 4" out'
# Columns have the names of programs. What a rule of one does to a node that another is on is shown there, and what it
# does to a message beside the one who sends, although the other node's name begins alike.
programs='{"time":0,"process":0,"kind":"process","program":"rping"}
{"time":0,"process":1,"kind":"process","program":"ucmatose"}
{"time":1,"process":0,"kind":"state","node":"ab","of":"id","id":1,"state":"LISTEN","was":"IDLE"}
{"time":2,"process":1,"kind":"state","node":"a","of":"id","id":1,"state":"CONNECT","was":"IDLE"}
{"time":3,"process":1,"kind":"fault","rule":1,"action":"freeze","node":"ab"}
{"time":4,"process":1,"kind":"fault","rule":2,"action":"lose","what":"REQ","from":"a","to":"ab"}
'
by_program() {
	printf %s "$programs" >programs.trace && exits 0 polycm timeline programs.trace && [ ! -s err ] &&
		counts out 1 '^ +a, ucmatose +ab, rping$' &&
		counts out 1 '  freeze \(rule 1\) ↯  │$' && counts out 1 '│ ↯ lose REQ \(rule 2\)' &&
		exits 0 polycm timeline --between 'ab, rping,a, ucmatose' programs.trace &&
		has out 'freeze'
}
check 'columns by program' by_program
# A process goes on as another program; the name of one may be part of the other's.
names='{"time":0,"process":0,"kind":"process","program":"rping-server"}
{"time":1,"process":0,"kind":"process","program":"rping"}
{"time":2,"process":0,"kind":"process","program":"ping"}
{"time":3,"process":0,"kind":"process","program":"rping"}
{"time":4,"process":0,"kind":"state","node":"a","of":"id","id":1,"state":"LISTEN","was":"IDLE"}
'
by_programs() {
	printf %s "$names" >names.trace && exits 0 polycm timeline names.trace &&
		counts out 1 'a, rping-server, then rping, then ping$'
}
check 'a column by several programs' by_programs
check 'an id that is no number' complains 2 "'x' is no number of an id" "$good$nl" --id x
check 'one node only' complains 2 "'a' is not two nodes or columns" "$good$nl" --between a
check 'no trace' eval 'exits 2 polycm timeline && has "$work/err" "no trace is given"'
check 'a second trace that is missing' eval '
	exits 1 polycm timeline timeline-loss.trace b && has "$work/err" "b: No such file"'
check 'a second trace that is none' eval '
	printf "%s\n" "[1]" >bad.trace && exits 1 polycm timeline timeline-loss.trace bad.trace && has err "bad.trace:1: no line"'
check 'a second trace that is cut off' eval '
	printf "%s\n%s" "$good" "${good:0:40}" >bad.trace && exits 0 polycm timeline timeline-loss.trace bad.trace &&
	counts err 1 . && has err "bad.trace: the last line is cut off"'

# Cut anywhere, it ends with an error or a note, never with a signal.
survives() {
	local size

	for ((size = 0; size < 3000; size += 61)); do
		head -c "$size" timeline-loss.trace >"$work/cut.trace"
		polycm timeline "$work/cut.trace" >/dev/null 2>&1
		[ $? -le 1 ] || return
	done
}
check 'a trace cut anywhere' survives
survives_beside() {
	local size

	for ((size = 0; size < 2600; size += 61)); do
		head -c "$size" timeline-beta.trace >"$work/cut.trace"
		polycm timeline timeline-alpha.trace "$work/cut.trace" >/dev/null 2>&1
		[ $? -le 1 ] || return
	done
}
check 'one of two traces cut anywhere' survives_beside

# The number of a process is given again, and the next one counts its packets from 1 again.
again() {
	local time=0 line

	for line in '"kind":"process","program":"one"' \
		'"kind":"send","packet":1,"from":"a","to":"b","message":"REP","local":1,"remote":2' \
		'"kind":"process","program":"two"' \
		'"kind":"send","packet":1,"from":"a","to":"b","message":"REQ","local":3,"remote":0' \
		'"kind":"recv","packet":1,"from":"a","to":"b","message":"REQ","local":3,"remote":0'; do
		printf '{"time":%d,"process":0,%s}\n' "$((time++))" "$line"
	done
}
reused() {
	again >"$work/reused.trace"
	exits 0 polycm timeline "$work/reused.trace" && has out ' REQ ' && lacks out 'copy'
}
check 'the number of a process is given again' reused

many() {
	local i

	for ((i = 0; i < 600; i++)); do
		printf '{"time":%d,"kind":"event","node":"a","id":1,"event":"X","status":0}\n' "$i"
	done
}
check 'many rows get a note' complains 0 '600 rows; --cm, --id N or --between A,B shows fewer' "$(many)$nl"

finish
