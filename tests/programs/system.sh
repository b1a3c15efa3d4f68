#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# polycm run with several programs (--on, --daemon): unmodified programs, each a process, in one virtual time. The same
# seed gives the same run: output, trace, statuses and the order of turns. Nobody waits for ever unseen, and nothing is
# left behind.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rping ucmatose udaddy udpong rdma_server cmtime rcopy mckey ibv_rc_pingpong
need_turns
# Where the system allows no namespaces, a message says that process ids, paths and ports differ.
pid='$$' shared='ls -d /dev/shm/*'
! grep -qF 'allows no namespaces' "$work/probe" || pid=no shared=:
cat >"$work/lossy.scenario" <<'END'
nodes = (
	{ name = "server"; devices = ( { transport = "roce"; addresses = "10.0.0.1/24"; } ); },
	{ name = "client"; devices = ( { transport = "roce"; addresses = "10.0.0.2/24"; } ); }
);
links = ( { between = [ "server", "client" ]; latency = "20 us"; jitter = "15 us"; loss = 0.05; } );
END
cat >"$work/deaf.scenario" <<'END'
nodes = (
	{ name = "server"; devices = ( { transport = "roce"; addresses = "10.0.0.1/24"; } ); },
	{ name = "client"; devices = ( { transport = "roce"; addresses = "10.0.0.2/24"; } ); }
);
faults = ( { action = "lose"; message = "REQ"; times = 5; } );
END
: "${CC:=cc}"

for transport in "${transports[@]}"; do
	on=(--transport "$transport" --on server)
	check "rping on $transport" eval 'same 3 "${on[@]}" rping -s -a 10.0.0.1 -C 3 -v --on client rping -c -a 10.0.0.1 -C 3 -v &&
		counts "$work/first.out" 3 "^.server. server ping data: rdma-ping-" &&
		counts "$work/first.out" 3 "^.client. ping data: rdma-ping-"'
	check "ucmatose on $transport" same 2 "${on[@]}" ucmatose -c 4 --on client ucmatose -c 4 -s 10.0.0.1
	check "rdma_server on $transport" eval 'same 2 "${on[@]}" rdma_server --on client rdma_client -s 10.0.0.1 &&
		has "$work/first.out" "[client] rdma_client: end 0" "[server] rdma_server: end 0"'
	check "cmtime on $transport" same 2 --transport "$transport" --daemon server cmtime -c 10 \
		--on client cmtime -c 10 -s 10.0.0.1
	check "rcopy on $transport" eval 'same 2 --transport "$transport" --daemon server rcopy \
		--on client rcopy "$work/lossy.scenario" "10.0.0.1:$work/copied" && cmp "$work/lossy.scenario" "$work/copied"'
done
for transport in roce ib; do
	check "udaddy on $transport" same 2 --transport "$transport" --on server udaddy --on client udaddy -s 10.0.0.1
	check "mckey on $transport" same 2 --transport "$transport" --on one mckey -m 239.1.1.1 -b 10.0.0.1 \
		--on two mckey -m 239.1.1.1 -b 10.0.0.2 --on sender mckey -s -m 239.1.1.1 -b 10.0.0.3
done
check 'three clients of a server' same 3 --daemon server rping -s -P -a 10.0.0.1 \
	--on a rping -c -a 10.0.0.1 -C 2 --on b rping -c -a 10.0.0.1 -C 2 --on c rping -c -a 10.0.0.1 -C 2
# The server has told the client something that can wait, and nothing else: that does not hold up what is sent again.
{ sed '/^faults/d' "$work/deaf.scenario"
  echo 'faults = ( { action = "lose"; message = "RTU"; nth = 1; }, { action = "lose"; message = "READ"; nth = 1; } );'
} >"$work/again.scenario"
check 'a READ is sent again' same 2 --scenario "$work/again.scenario" --until 60 \
	--on server rping -s -a 10.0.0.1 -C 1 --on client rping -c -a 10.0.0.1 -C 1
# The server takes the DREP for the client, which has ended.
check 'a timeline has one column for each' eval 'run drawn 0 --seed 7 --on server rping -s -a 10.0.0.1 -C 1 \
	--on client rping -c -a 10.0.0.1 -C 1 && exits 0 polycm timeline --cm "$work/drawn.trace" &&
	[ "$(head -n 1 "$work/out" | tr -s " ")" = " client, rping server, rping" ] && has "$work/out" "DREP ──┤"'
# A scenario without nodes has those of the command line.
faults=(--scenario "$work/faults.scenario" --on server rping -s -a 10.0.0.1 -C 1 --on client rping -c -a 10.0.0.1 -C 1)
echo 'faults = ( { action = "lose"; message = "REQ"; nth = 1; from = "client"; } )' >"$work/faults.scenario"
check 'a scenario that has only faults' eval 'same 2 "${faults[@]}" &&
	[ "$(seconds_of first)" -ge 5 ]'
check 'explore: a scenario that has only faults' eval 'cd "$work" && exits 0 polycm explore --seeds 1-2 "${faults[@]}"'
echo 'faults = ( { action = "lose"; message = "REQ"; from = "nobody"; } );' >"$work/nobody.scenario"
check 'which name another node' eval 'run nobody 2 --scenario "$work/nobody.scenario" --on server true --on client true &&
	has "$work/nobody.out" "error: $work/nobody.scenario:1: from = \"nobody\": expected the name of a node: server, client" &&
	exits 2 polycm explore --seeds 1-2 --scenario "$work/nobody.scenario" --on server true --on client true &&
	has err "error: $work/nobody.scenario:1: from = "'
sed -i 's/= "nobody"/= "client"; nth = 9/' "$work/nobody.scenario"
check 'a rule of theirs that never happens' eval 'run nobody 0 --log warn --scenario "$work/nobody.scenario" \
	--on server true --on client ibv_devinfo && has "$work/nobody.out" "$work/nobody.scenario:1: fault rule 1 (lose REQ"'
check 'a lossy network' same 3 --scenario "$work/lossy.scenario" \
	--on server rping -s -a 10.0.0.1 -C 5 -v --on client rping -c -a 10.0.0.1 -C 5 -v

# --- Time, and the seed. ---

two=(--on server rping -s -a 10.0.0.1 -C 2 -v --on client rping -c -a 10.0.0.1 -C 2 -v)
# What is counted, and what has happened, holds for those that come when all others have left.
sed 's/times = 5/nth = 1/' "$work/deaf.scenario" >"$work/first.scenario"
check 'the network stays while nobody is on it' eval 'same 2 --scenario "$work/first.scenario" --on server sh -c "for i in 1 2; do
	rping -s -a 10.0.0.1 -C 1 & sleep 0.1; rping -c -a 10.0.0.1 -C 1; wait; done" && [ "$(seconds_of first)" -lt 9 ]'
# Nine time-outs of a lost REQ take 38 s or more, which nobody waits for.
lost() {
	local before=$SECONDS

	run lost 0 --scenario "$work/deaf.scenario" "${two[@]}" && [ "$(seconds_of lost)" -ge 20 ] &&
		[ $((SECONDS - before)) -lt "$(seconds_of lost)" ]
}
check 'time-outs take no time' lost
seeds() {
	run one 0 --seed 1 "${two[@]}" && run two 0 --seed 2 "${two[@]}" && [ "$(order_of one)" != "$(order_of two)" ]
}
check 'another seed, another order' seeds
apart() {
	local i pids=()

	run alone 0 "${two[@]}" || return
	for i in 1 2 3; do
		run "beside$i" 0 "${two[@]}" &
		pids+=($!)
	done
	wait "${pids[@]}"
	for i in 1 2 3; do
		[ "$(order_of alone)" = "$(order_of "beside$i")" ] || return
	done
}
check 'systems side by side' apart

# --- Ends. ---

check 'two that wait for each other compile' $CC -O1 -Wall -Wextra -o "$work/connected" \
	"$abs_top_srcdir/tests/programs/connected.c" -lrdmacm -libverbs
# At once, though each looks now and then whether the other lives.
check 'nobody listens' eval 'run nobody 255 --on a true --on b rping -c -a 10.0.0.1 -C 1 &&
	has "$work/nobody.out" "no process on node a of this simulated network listens there" &&
	lacks "$work/nobody.out" "in the folder"'
check 'two wait for each other' eval 'run stuck 75 --on a "$work/connected" --on b "$work/connected" 10.0.0.1 &&
	has "$work/stuck.out" "polycm: run: nobody can go on, at 1." "polycm: error: b: $work/connected, process "'
# A name that is misspelt is a node of its own.
nodes='polycm: run: nodes: server (10.0.0.1), serevr (10.0.0.2), client (10.0.0.3)'
check 'the nodes, where nobody can go on' eval 'polycm run --on server true --on serevr "$work/connected" --on client true >"$work/nodes.out" 2>&1
	has "$work/nodes.out" "polycm: run: nobody can go on, at 2." "$nodes" "polycm: error: serevr: "'
check 'the nodes, at that level of log' eval 'run nodes 0 --on server true --on serevr true --on client true &&
	counts "$work/nodes.out" 1 nodes && has "$work/nodes.out" "$nodes" &&
	polycm run --verify --log info --scenario "$work/lossy.scenario" --on server true --on all true >"$work/nodes.out" 2>&1 &&
	counts "$work/nodes.out" 1 "^polycm: run: nodes: server .10.0.0.1., client .10.0.0.2.$"'
check 'no nodes, where one is as good as none' eval 'polycm run --on a "$work/connected" >"$work/nodes.out" 2>&1
	has "$work/nodes.out" "nobody can go on" && lacks "$work/nodes.out" nodes'
# That is why it sees its end.
check 'one sees the end of the other' eval 'run end 7 --on a "$work/connected" \
	--on b sh -c "$work/connected 10.0.0.1 & sleep 2; kill -9 \$!; wait" && has "$work/end.out" "polycm: a ended with exit status 7, at 3."'
# Those that poll go on until the limit, but rarely.
check 'the limit of virtual time' eval 'run limit 75 --until 5 --on a sh -c "sleep 2; sleep 10" && has "$work/limit.out" \
	"polycm: run: the limit of 5 s of virtual time (--until) is reached; the last thing happened at 2." \
	", waits longer than the limit of virtual time: the end of a sleep" && lacks "$work/limit.out" "can never happen"'
check 'the limit ends who never waits' eval 'run busy 75 --until 0.1 --on a sh -c "yes | cat >/dev/null" &&
	has "$work/busy.out" "the limit of 0.1 s of virtual time"'
check 'and who reads the end of a pipe again and again' eval 'run ends 75 --until 20 --on a sh -c "true | while :; do read -r x; done" &&
	has "$work/ends.out" "sh, process 1, thread 1, waits longer than the limit of virtual time: "'
check 'who waits for ever is told soon beside a program that ticks' eval 'run ticks 75 --daemon a \
	perl -e "select undef, undef, undef, 0.001 for 1 .. 1e8" --on b perl -e "pipe A, B; sysread A, \$x, 1" &&
	has "$work/ticks.out" "b: perl, process 2, thread 1, waits longer than the limit of virtual time: data on descriptor" &&
	[ "$(sed -n "s/^polycm: run: virtual time .* s, \([0-9]*\) turns, .*/\1/p" "$work/ticks.out")" -lt 400000 ]'
cat >"$work/asks.c" <<'END'
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>
int main(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	alarm(100);
	while (rdma_get_cm_event(channel, &event))
		;
	return 1;
}
END
check 'who asks for an event again and again lets time go on' eval '$CC -o "$work/asks" "$work/asks.c" -lrdmacm &&
	chmod go+rx "$work/asks" && run asks 142 --on a "$work/asks" &&
	[ "$(sed -n "s/^polycm: run: virtual time .* s, \([0-9]*\) turns, .*/\1/p" "$work/asks.out")" -lt 20000 ]'
check 'a timer does not make polls cheaper' eval 'run alarm 142 --on a perl -e "alarm 3000; select undef, undef, undef, 0 while 1" &&
	[ "$(sed -n "s/^polycm: run: virtual time .* s, \([0-9]*\) turns, .*/\1/p" "$work/alarm.out")" -lt 400000 ]'
check 'a program polls in vain' eval 'run polls 75 --on a mckey -m 239.1.1.1 -b 10.0.0.1 &&
	[ "$(sed -n "s/^polycm: run: virtual time .* s, \([0-9]*\) turns, .*/\1/p" "$work/polls.out")" -lt 100000 ]'
check 'nobody can go on' eval 'run stuck 75 --on server rping -s -a 10.0.0.1 -C 1 &&
	has "$work/stuck.out" "polycm: run: nobody can go on, at " \
		"polycm: error: server: rping, process 1, thread 1, waits for what can never happen: "'
check 'the first status that is not 0' eval 'run status 3 --on a true --on b sh -c "exit 3" --on c false'
check 'a member is killed' eval 'run killed 137 --on a sh -c "kill -9 \$\$" --on b true &&
	has "$work/killed.out" "polycm: a is killed by signal 9 (Killed) at 0."'
check 'the server is killed, and the client told' eval 'run orphan 0 --scenario "$work/deaf.scenario" \
	--daemon server rping -s -P -a 10.0.0.1 --on client rping -c -a 10.0.0.1 -C 2'
# The server dies before each of many turns: the client is told, whenever that is, and in the same way again.
kills() {
	local turn i

	for turn in 0 3 13 34 89; do
		for i in kill again; do
			polycm run --log info --kill "$1@$turn" "${two[@]}" 2>&1 |
				sed 's|/dev/shm/polycm-system-[^/]*/shm/run|/dev/shm/run|' >"$work/$i.out"
		done
		has "$work/kill.out" 'polycm: run: virtual time' && cmp "$work/kill.out" "$work/again.out" || return
	done
}
check 'the server is killed at any turn' kills server
check 'the client is killed at any turn' kills client
check 'a turn that never comes' eval 'run never 0 --kill a@100000 --on a true && has "$work/never.out" \
	"polycm: run: --kill a@100000: there were only " " turns, and nobody was killed"'
as_it_is() {
	printf '1\n2\n3' >"$work/input" && {
		read -r line && polycm run --verify --on all sh -c 'cat; printf "\0\t"; echo told >&2; printf end'
	} <"$work/input" >"$work/out" 2>"$work/err" &&
		[ "$line" = 1 ] && printf '2\n3\0\tend' | cmp - "$work/out" && counts "$work/err" 1 '^told$'
}
check 'a single program reads and prints as it does' as_it_is
check 'output that cannot be written' eval 'polycm run --on a echo x 2>"$work/full.err" >/dev/full
	[ $? -eq 74 ] && has "$work/full.err" "polycm: cannot write the output: No space left on device"'
# closed OUT ERR STATUS COMMAND...: standard output or error is closed, or both.
closed() {
	local status expected=$3
	local run=(polycm run "${@:4}")

	case $1$2 in
	closed) "${run[@]}" >&- 2>"$work/full.err" ;;
	outclosed) "${run[@]}" >"$work/out" 2>&- ;;
	closedclosed) "${run[@]}" >&- 2>&- ;;
	esac
	status=$?
	[ "$status" -eq "$expected" ] && return
	echo "status $status"
	return 1
}
check 'closed output' eval 'closed closed "" 74 --on a echo x && has "$work/full.err" "polycm: cannot write the output: Bad file descriptor"'
check 'closed output of a program that prints nothing' closed closed '' 0 --on a true --on b true
check 'closed error' eval 'closed out closed 74 --on all sh -c "echo x; echo y >&2" && has "$work/out" x && ! grep y "$work/out" &&
	closed out closed 74 --on a sh -c "echo y >&2" --on b true'
check 'closed output and error' eval 'closed closed closed 74 --on all echo x && closed closed closed 3 --on all sh -c "echo x; exit 3"'
piped() {
	local pipe line

	rm -f "$work/pipe"
	mkfifo "$work/pipe" && exec {pipe}<>"$work/pipe" && echo hello >&"$pipe" || return
	polycm run --on all cat <&"$pipe" >"$work/out" 2>&1 && read -r line <&"$pipe" && [ "$line" = hello ] &&
		strip_note "$work/out" && counts "$work/out" 1 '' && has "$work/out" 'polycm: run: standard input is a pipe, which is not read: give a file (<FILE)' ||
		return
	polycm run --on all cat <&"$pipe" >"$work/out" 2>&1 && strip_note "$work/out" && [ ! -s "$work/out" ] || return
	exec {pipe}<&-
}
check 'a pipe at standard input' piped
check 'a daemon ends too early' eval 'run early 1 --daemon a true --on b sleep 5 &&
	has "$work/early.out" "polycm: a, a daemon, ended before the others, at 0."'
check 'children, pipes and signals' eval 'same 3 --on a bash -c "
	for i in 1 2 3; do (sleep \$((4 - i)); echo child \$i) & done; seq 50000 | tail -n 1; wait
	trap \"echo signal; exit 0\" TERM; (sleep 1; kill \$\$) & while :; do sleep 10; done" &&
	[ "$(grep -v "^polycm:" "$work/first.out" | tr "\n" " ")" = "50000 child 3 child 2 child 1 signal " ]'
for member in system system_children system_pointers; do
	check "$member compiles" $CC -O1 -Wall -Wextra -o "$work/$member" "$abs_top_srcdir/tests/programs/$member.c" -pthread -lm
	chmod go+rx "$work/$member"
done
check 'the wild one compiles' $CC -O1 -Wall -Wextra -o "$work/wild" "$abs_top_srcdir/tests/programs/system_wild.c"
check 'the member of a network compiles' $CC -O1 -Wall -Wextra -o "$work/net" "$abs_top_srcdir/tests/programs/system_net.c"
chmod go+rx "$work/net"
# cases PROGRAM CASE...
cases() {
	local program=$1 case

	shift
	for case; do
		check "$program: $case" eval 'same 2 --on a "$work/$program" "$case" && counts "$work/first.out" 1 "^ok$"'
	done
}
cases system join first_ends owner_dies suspend restart stream timers busy locks logs rounding time_left ticks watch queues
cases system_children kills groups spawn
cases system_pointers pointers shrunk
check 'too many processes' eval 'same 2 --on a "$work/system_children" many && counts "$work/first.out" 1 "^ok$" &&
	counts "$work/first.out" 1 "^polycm: a: system_children cannot start a process: all programs together may have 64 at a time$"'
check 'its own handler and filter' eval 'same 2 --on a "$work/system" caught && counts "$work/first.out" 1 "^ok$" &&
	has "$work/first.out" "polycm: a: system sets a handler for SIGSYS, which is never called" &&
	counts "$work/first.out" 1 "^polycm: a: system asks for a seccomp filter, which is not installed"'
check 'a handler for each signal is not told of' eval 'same 2 --on a "$work/system" handles_all &&
	lacks "$work/first.out" SIGSYS && counts "$work/first.out" 1 "^ok$"'
check 'a FIFO' eval 'rm -f "$work/fifo"; user mkfifo "$work/fifo"
	same 3 --on a sh -c "echo through it >$work/fifo" --on b cat "$work/fifo" && has "$work/first.out" "[b] through it"'
check 'a stopped process' eval 'same 3 --on a bash -c "(sleep 1; date +%s) & sleep 0.5; kill -STOP \$!; sleep 5
	kill -CONT \$!; wait" && counts "$work/first.out" 1 "^1767225605$"'
check 'a process that nobody continues' eval 'run stopped 75 --on a bash -c "sleep inf & kill -STOP \$!; wait" \
	--on b bash -c "kill -STOP \$\$" && counts "$work/stopped.out" 2 \
	"^polycm: error: [ab]: bash, process [23], thread 1, waits for what can never happen: to be continued .SIGCONT., since its process is stopped" &&
	has "$work/stopped.out" "since it was started" && lacks "$work/stopped.out" "since 1844"'
cat >"$work/device.cc" <<'END'
#include <cstdio>
#include <random>
int main()
{
	std::random_device device, urandom("/dev/urandom");
	for (int i = 0; i < 3; i++)
		std::printf("%u %u\n", device(), urandom());
}
END
if command -v "${CXX:=c++}" >/dev/null; then
	check 'random numbers of C++' eval '$CXX -o "$work/device" "$work/device.cc" && chmod go+rx "$work/device" &&
		same 3 --on a "$work/device" && [ "$(sort -u "$work/first.out" | grep -Evc "^polycm:")" -eq 3 ]'
else
	echo "left out, there is no C++ compiler: random numbers of C++"
fi
check 'an empty environment' eval 'same 2 --on a sh -c "(sleep 2; echo late) | env -i /bin/cat" &&
	counts "$work/first.out" 1 "^late$"'
check 'timers' eval 'same 2 --on a sh -c "timeout 5 sleep 100; echo ended with \$?; date +%s" --on b sleep 3 &&
	has "$work/first.out" "ended with 124" "1767225605"'
check 'the time of day' eval 'same 2 --on a date +%s.%N --on b date && has "$work/first.out" "[b] Thu Jan  1 "'
check 'usage of the processor' eval 'same 2 --on a bash -c "time sleep 1; times" && has "$work/first.out" "user	0m1.000s"'
check 'random numbers' eval 'same 2 --on a sh -c "head -c 8 /dev/urandom | od -x; mktemp -u; echo $pid"'

# --- The network, where the system allows namespaces. ---

if ! grep -qF 'TCP' "$work/probe"; then
	check 'ports that the kernel chooses' same 3 --on a "$work/net" ports --on b "$work/net" ports
	check 'a connection over TCP, by name' eval 'same 2 --on one "$work/net" serve --on two "$work/net" connect one &&
		has "$work/first.out" "[one] from ::ffff:10.0.0.2 to one"'
	check 'a connection over TCP, by address' eval 'same 2 --scenario "$work/lossy.scenario" \
		--on client "$work/net" serve --on server "$work/net" connect 10.0.0.2 &&
		has "$work/first.out" "[client] from ::ffff:10.0.0.1 to client"'
	check 'small messages over TCP' same 3 --on one "$work/net" answer --on two "$work/net" ask one
	check 'a burst of messages over TCP' same 3 --on one "$work/net" collect --on two "$work/net" burst one
	check 'refused connections over TCP' same 2 --on one "$work/net" refused 10.0.0.2 --on two true
	check 'a look at all of a message over TCP' same 3 --on one "$work/net" parts --on two "$work/net" peek one
	check 'more connections than the backlog has room for' same 3 --on one "$work/net" late --on two "$work/net" early one
	check 'datagrams' eval 'same 3 --on one "$work/net" echo --on two "$work/net" datagrams 10.0.0.1 &&
		counts "$work/first.out" 4 "^.one. from ::ffff:10.0.0.2 32768$" &&
		counts "$work/first.out" 4 "^.one. from ::ffff:10.0.0.2 7400$"'
	check 'datagram rsockets' eval 'same 3 --transport ib --daemon one udpong -b 10.0.0.1 -T e -S 64 -C 10 \
		--on two udpong -s 10.0.0.1 -T e -S 64 -C 10 && counts "$work/first.out" 1 "^.two. custom "'
	check 'loopback' eval 'same 2 --on one "$work/net" serve --on two "$work/net" connect 127.0.0.1 &&
		has "$work/first.out" "[one] from ::ffff:127.0.0.1 to one"'
	check 'numbers of System V objects' same 3 --on a ipcmk -M 100 -Q -S 1
	# As by a kernel without IPv6.
	cat >"$work/no6.c" <<-'END'
		#include <linux/rtnetlink.h>
		#include <stdlib.h>
		#include <sys/socket.h>
		#include <sys/syscall.h>
		#include <unistd.h>
		ssize_t send(int fd, const void *bytes, size_t len, int flags)
		{
			const struct nlmsghdr *header = bytes;
			struct ifaddrmsg *message = NLMSG_DATA(header);
			if (header->nlmsg_type == RTM_NEWADDR && message->ifa_family == AF_INET6)
				*(getenv("WRONG6") ? &message->ifa_prefixlen : &message->ifa_family) =
					getenv("WRONG6") ? 200 : AF_IPX;
			return syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
		}
	END
	sed 's/"10.0.0.\([12]\)\/24"/[ "fd00::\1\/64", "10.0.0.\1\/24", "fd00::1\1\/64" ]/; /^links/d' "$work/lossy.scenario" >"$work/six.scenario"
	check 'errors of datagrams' eval 'same 2 --scenario "$work/six.scenario" \
		--on client "$work/net" errors 10.0.0.2 $(! grep -q . /proc/net/if_inet6 || echo fd00::2)'
	# The kernel finishes an IPv6 address later, the more so where many are made.
	side_by_side() {
		local i pids=()

		for i in {1..30}; do
			polycm run --scenario "$work/six.scenario" --on client "$work/net" errors fd00::1 fd00::2 \
				>"$work/errors$i.out" 2>&1 &
			pids+=($!)
		done
		for i in {1..30}; do
			wait "${pids[i - 1]}" || { cat "$work/errors$i.out"; return 1; }
		done
	}
	! grep -q . /proc/net/if_inet6 || check 'IPv6 addresses of systems side by side' side_by_side
	check 'without IPv6' eval '$CC -D_GNU_SOURCE -shared -fPIC -o "$work/no6.so" "$work/no6.c" && chmod go+rx "$work/no6.so" &&
		LD_PRELOAD=$work/no6.so run six 0 --scenario "$work/six.scenario" --on client "$work/net" serve \
			--on server "$work/net" connect 10.0.0.2 && has "$work/six.out" "[client] from ::ffff:10.0.0.1 to client" &&
		counts "$work/six.out" 1 "^polycm: run: no IPv6 addresses for TCP and UDP: Operation not supported$"'
	check 'a wrong IPv6 address' eval 'WRONG6=1 LD_PRELOAD=$work/no6.so run wrong6 0 \
		--scenario "$work/six.scenario" --on client true &&
		has "$work/wrong6.out" "no network of its own: Invalid argument"'
	check 'nothing outside' eval 'run outside 1 --on a "$work/net" connect 192.0.2.1 && has "$work/outside.out" "errno 101"'
	check 'TCP beside RDMA' eval 'same 3 --on one ibv_rc_pingpong -g 3 -n 20 --on two ibv_rc_pingpong -g 3 -n 20 one &&
		has "$work/first.out" "[two]   remote address: LID 0x0000, QPN"'
fi
# --- Programs that have no turns. ---

cat >"$work/outside.c" <<'END'
#include <signal.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char c;
	while (argc > 1 && *argv[1] == 's') kill(getppid(), SIGTERM), usleep(10000);
	if (argc > 1 && !fork()) for (;;) pause();
	while (read(0, &c, 1) == 1) if (write(1, &c, 1) != 1) return 1;
	return 5;
}
END
left_without() {
	timeout -k 2 60 cat "$work/alive" &
	user unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_pid_namespaces && exec "$@"' sh \
		env "LD_LIBRARY_PATH=${library%/*}" timeout --foreground -k 2 60 "$copy/bin/polycm" run \
		--on a sh -c "exec $work/static leave" 9>"$work/alive" >"$work/outside.out" 2>&1
	[ $? -eq 5 ] && wait $!
}
outside() {
	# No program, though it looks like one.
	cp "$work/static" "$work/broken" && printf '\001' | dd of="$work/broken" bs=1 seek=16 conv=notrunc status=none || return
	told='is linked statically: it runs in real time, and so does what it starts'
	check 'a static program among members' eval 'run outside 0 --on a sh -c "
		echo \$(echo read | $work/static); (sleep 0.1; echo late) | $work/static; echo \$?" --on b sleep 2 &&
		has "$work/outside.out" "[a] read" "[a] late" "[a] 5" &&
		counts "$work/outside.out" 1 "^polycm: a: $work/static $told$"'
	check 'a static program in place of a member' eval 'run outside 5 --on a sh -c "exec $work/static"'
	check 'a script of a static program' eval 'printf "#!$work/static\n" >"$work/script"; chmod +x "$work/script"
		run outside 5 --on a sh -c "\"$work/script\"" && has "$work/outside.out" "$told"'
	! command -v valgrind >"$work/outside.out" || check 'valgrind, and what it runs' eval 'run outside 3 \
		--on a valgrind -q sh -c "exit 3" --on b sleep 2 && counts "$work/outside.out" 1 "^polycm: a: .*/memcheck[^ ]* $told$"'
	check 'a program that cannot be read' eval 'cp "$work/static" "$work/unreadable"; chmod 111 "$work/unreadable"
		user test -r "$work/unreadable" || {
		run outside 5 --on a sh -c "exec $work/unreadable" </dev/null && has "$work/outside.out" "unreadable cannot be read" &&
			run outside 126 --on a "$work/unreadable"; }'
	check 'one that cannot be started' eval 'same 2 --on a "$work/system_children" broken "$work/broken" &&
		counts "$work/first.out" 1 "^ok$" && lacks "$work/first.out" "$told"'
	check 'a static program by posix_spawn' eval 'run outside 0 --on a "$work/system_children" outside "$work/static" &&
		has "$work/outside.out" "$told"'
	check 'a static program that nobody ends' eval 'run outside 75 --until 0.1 --on a sh -c "sleep 100 | $work/static" &&
		has "$work/outside.out" "the limit of 0.1 s of virtual time (--until) is reached"'
	check 'a static program on the command line' eval 'run static 126 --on a "$work/static" &&
		has "$work/static.out" "is linked statically: its time cannot be virtual"'
	check 'a signal of a static program' eval 'run outside 0 --on a "$work/system" signalled "$work/static" &&
		counts "$work/outside.out" 1 "^ok$"'
	check 'what a static program leaves' eval 'rm -f "$work/alive"; user mkfifo "$work/alive"
		timeout -k 2 60 cat "$work/alive" & run outside 5 --on a sh -c "exec $work/static leave" 9>"$work/alive" && wait $!'
	! user unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_pid_namespaces' 2>/dev/null ||
		check 'what it leaves without namespaces' left_without
	check 'explore: a static program' eval 'cd "$work" && exits 126 polycm explore --seeds 1 --on b true --on a "$work/static" &&
		has err "fails without faults, too: exit status 126"'
	check 'a script of one there' eval 'run static 126 --on b true --on a "$work/script" &&
		has "$work/static.out" "script is linked statically: its time cannot be virtual"'
}
if $CC -static -o "$work/static" "$work/outside.c" 2>/dev/null; then
	chmod go+rx "$work/static"
	# Where a filter catches system calls, they are not started (system_filter.sh).
	polycm run --on a sh -c "$work/static" >"$work/outside.out" 2>&1
	grep -q 'is not started: it would run in real time' "$work/outside.out" || outside
fi

# --- Faults by seed. ---

explored() {
	cd "$work" && exits 1 polycm explore --seeds 1-12 --failures 0 --scenario "$work/explored.scenario" \
		--daemon server rping -s -P -a 10.0.0.1 --on client rping -c -a 10.0.0.1 -C 1 &&
		has out "12 seeds, " " of " "replay: polycm run --scenario polycm-explore/seed-"
}
cat >"$work/explored.scenario" <<'END'
nodes = (
	{ name = "server"; devices = ( { transport = "roce"; addresses = "10.0.0.1/24"; } ); },
	{ name = "client"; devices = ( { transport = "roce"; addresses = "10.0.0.2/24"; } ); }
);
explore = { messages = [ "REQ", "REP", "RTU", "DREQ" ]; rejection = 0.5; };
END
check 'explore' explored
# The program that does not end is told, not what launched it; and what it did until then is shown.
loops() {
	rm -rf "$work/polycm-explore"
	cd "$work" && exits 1 polycm explore --seeds 1-40 --failures 1 --timeout 3 --shrink-runs 1 --jobs 1 \
		--scenario "$work/explored.scenario" --daemon server rping -s -P -a 10.0.0.1 \
		--on client sh -c "rping -c -a 10.0.0.1 -C 1 || while :; do :; done" &&
		has out ": does not end: sh computes" "  ladder: polycm timeline --cm polycm-explore/seed-" &&
		exits 0 polycm timeline --cm polycm-explore/seed-*.trace && has out REQ
}
check 'explore: a program that loops' loops
check 'explore: no such program' eval 'cd "$work" && exits 127 polycm explore --seeds 1 --on a true --on b /there/is/no/such &&
	has err "polycm: /there/is/no/such: No such file or directory"'
check 'an option behind a node' eval '! polycm run --on a true --on b --seed 7 true 2>err &&
	has err "polycm: --seed is no command: options come before the first --on or --daemon"'

# Each seed is as in a run of its own: order, output, process ids, random numbers, environment.
pair=(--daemon server rping -s -P -a 10.0.0.1 --on client rping -c -a 10.0.0.1 -C 1)
members=(--on client sh -c "head -c 8 /dev/urandom | od -x; mktemp -u; (echo $pid; $shared); env | grep -c ^POLYCM; sleep 1"
	--on server mktemp -u)
# again MEMBER...; more: members of the group explore.  Only of a seed that is shown there are stacks.
without_stacks() { grep -v '^polycm:     at ' "$1"; }
again() {
	local seed num=0

	rm -rf "$work/polycm-explore"
	cd "$work" && sed "s/^explore = {/& preemptions = 0; ${more-}/" explored.scenario >calm.scenario || return
	(export POLYCM_LOG=info && exits 1 polycm explore --seeds 1-12 --failures 0 --shrink-runs 0 --jobs 1 \
		--scenario calm.scenario "${pair[@]}" "$@") || return
	for seed in polycm-explore/seed-*.out; do
		seed=${seed##*-} seed=${seed%.out}
		(export POLYCM_LOG=info POLYCM_SIM_SEED=$seed POLYCM_SIM_CLOCK=virtual &&
			polycm run --scenario "polycm-explore/seed-$seed.scenario" "${pair[@]}" "$@") >alone.out 2>&1
		[ -n "$(order_of alone)" ] && cmp <(without_stacks alone.out) <(without_stacks "polycm-explore/seed-$seed.out") || return
		num=$((num + 1))
	done
	[ "$num" -ge 2 ]
}
check 'explore repeats runs' again "${members[@]}"
# Also where the process that a node's fault begins with ends at once.
check 'explore repeats faults of nodes' eval 'more="nodes = { freeze = 0.3; port_down = 0.2; delay = \"1 s\"; };" again'
check 'explore: faults until a time' eval 'more="until = \"60 s\";" again'
# Connections over TCP are forgotten from run to run, so that there is one after the other in the same processes.
if ! grep -qF 'TCP' "$work/probe"; then
	check 'explore repeats runs with TCP' again --on server "$work/net" ports --on server "$work/net" answer \
		--on client "$work/net" ask server
	# The dynamic linker tells what it loads: twelve runs of two programs need less.
	loaded_once() {
		rm -f loads.*
		(export LD_DEBUG=files LD_DEBUG_OUTPUT=$work/loads
		 exits 0 polycm explore --seeds 1-12 --jobs 1 --on a "$work/net" serve --on b "$work/net" connect a) || return
		[ "$(cat loads.* | grep -c 'libc\.so\.6.*generating link map')" -lt 24 ]
	}
	check 'in programs that are loaded once' loaded_once
fi

check 'explore leaves nothing for the next run' eval 'cd "$work" &&
	exits 0 polycm explore --seeds 1-6 --jobs 1 --on a "$work/system_children" traces --on b true'
# The launcher neither crashes nor waits for ever.
scribbled() {
	local seed status

	for seed in 1 4 18 25 30 129 231 240; do
		polycm run --until 20 --on a "$work/wild" "$seed" --on b sleep 5 >"$work/wild.out" 2>&1
		status=$?
		[ "$status" -ne 139 ] && continue
		echo "seed $seed: status $status"
		return 1
	done
}
check 'programs that write here and there' scribbled
check 'a program that writes anywhere' eval 'run wild 1 --on a "$work/wild" --on b sleep 5 &&
	has "$work/wild.out" "polycm: error: a program has written into the memory by which polycm runs it"'

# Explored programs look up all of their functions at the start; one that lacks a function it never calls runs, too.
lacking() {
	cd "$work" && echo 'int missing(void) { return 0; }' | $CC -x c -shared -fPIC -o libmissing.so - &&
		echo 'int missing(void); int main(int argc, char **argv) { (void)argv; return argc > 1 ? missing() : 0; }' |
		$CC -x c -o lacks - -Wl,-z,lazy -L. -lmissing -Wl,-rpath,"$work" &&
		$CC -x c -shared -fPIC -o libmissing.so /dev/null && chmod go+rx lacks libmissing.so || return
	! LD_BIND_NOW=1 ./lacks 2>/dev/null && exits 0 polycm explore --seeds 1-2 --on a ./lacks --on b true || return
	rm libmissing.so
	exits 2 polycm explore --seeds 1-2 --on a ./lacks --on b true && has err "the system fails without faults, too: a ended with exit status 127" &&
		strip_note polycm-explore/seed-1.out && [ "$(wc -l <polycm-explore/seed-1.out)" -eq 2 ]
}
check 'explore a program that lacks a function' lacking

# --- Mistakes. ---

check 'no such program' eval 'run none 127 --on a /there/is/no/such --on b true'
check 'no command' eval 'run usage 2 --on a --on b true && has "$work/usage.out" "run: --on a: no command is given"'
check 'an option behind a node' eval 'run usage 2 --on a --seed 3 true && has "$work/usage.out" "put other options in front"'
check 'only daemons' eval 'run usage 2 --daemon a true && has "$work/usage.out" "put one that ends behind --on"'
check 'another provider' eval 'run usage 2 --provider roce --on a true &&
	has "$work/usage.out" "polycm: run: --on needs the simulator: leave --provider roce out"'
check 'names that nodes cannot have' eval 'run usage 2 --on "a b" true && has "$work/usage.out" "that is no name of a node" &&
	run usage 2 --on a true --daemon -b true && has "$work/usage.out" "run: --daemon '"'-b'"': that is no name of a node"'
check 'the real clock' eval 'run usage 2 --clock real --on a true && has "$work/usage.out" "run in virtual time"'
check 'a node that the scenario does not have' eval 'run usage 2 --scenario "$work/lossy.scenario" --on other true &&
	has "$work/usage.out" "polycm: run: --on other: the scenario has no node of that name; there are: server, client"'
check 'a node that the scenario of the environment does not have' eval \
	'POLYCM_SIM_SCENARIO=$work/lossy.scenario run usage 2 --on other true &&
		has "$work/usage.out" "run: --on other: the scenario has no node of that name; there are: server, client"'
check 'explore: a node that the scenario does not have' eval 'cd "$work" && rm -rf polycm-explore &&
	exits 2 polycm explore --seeds 1-2 --scenario "$work/lossy.scenario" --on server true --daemon other true &&
	has err "run: --daemon other: the scenario has no node of that name; there are: server, client" &&
	[ ! -e polycm-explore ] &&
	POLYCM_SIM_SCENARIO=$work/lossy.scenario exits 2 polycm explore --seeds 1-2 --on other true &&
	has err "run: --on other: the scenario has no node of that name; there are: server, client" && [ ! -e polycm-explore ]'
# stopped SIGNAL: while one member waits, and the other computes.
stopped() {
	listening=computes
	start "$work" "${as_user[@]}" env "LD_LIBRARY_PATH=${library%/*}" "$copy/bin/polycm" run \
		--on a sh -c "$mark; exec sleep inf" --on b sh -c "echo computes >&2; while :; do :; done" || return
	kill -s "$1" "$server"
	wait "$server"
	wait
	started=()
	has "$work/server.out" '[a] marked'
}
# The folder of a launcher that was killed. Another system beside may remove it before.
check 'the next run removes what was left' eval 'stopped KILL && run next 0 --on a true && ! marked_folders'
# Without namespaces, which would end all of them: the children of a member end when nobody gives them a turn.
unspaced() {
	rm -f "$work/alive"
	user mkfifo "$work/alive" || return
	user unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_pid_namespaces && exec "$@"' sh \
		timeout --foreground -s KILL 1 env "LD_LIBRARY_PATH=${library%/*}" "$copy/bin/polycm" run \
		--on a sh -c "(while :; do sleep inf; done) & wait" --on b sh -c "while :; do :; done" \
		9>"$work/alive" >"$work/unspaced.out" 2>&1 &
	# Until nobody has it open.
	timeout -k 2 60 cat "$work/alive" && has "$work/unspaced.out" "allows no namespaces"
}
! user unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_pid_namespaces' 2>/dev/null ||
	check 'nothing is left of a launcher that was killed' unspaced
check 'stopped by SIGINT' eval 'stopped INT && ! marked_folders'
check 'stopped by SIGTERM' eval 'stopped TERM && ! marked_folders'
finish
