#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# TCP connections of programs over the simulated network (tcp = true in a scenario): latency, bandwidth, losses, cuts and
# resets, and how they look to a program.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

: "${CC:=cc}"
need "${CC%% *}"
need_turns
! grep -qE 'no namespaces|no network of its own' "$work/probe" || skip 'the system allows no network of its own'
cp "$abs_top_srcdir"/tests/programs/{tcp.c,member.h} "$work/"
check 'the program compiles' eval '$CC -O2 -Wall -Wextra -Werror -pthread -o "$work/tcp" "$work/tcp.c"'
chmod -R go+rX "$work"
cd "$work" || exit 99

# scenario TEXT...: of two nodes with IPv4 and IPv6 addresses, and those lines.
scenario() {
	cat >scenario <<'END'
tcp = true;
nodes = (
	{ name = "server"; devices = ( { transport = "roce"; addresses = [ "10.0.0.1/24", "fd00::1/64" ]; } ); },
	{ name = "client"; devices = ( { transport = "roce"; addresses = [ "10.0.0.2/24", "fd00::2/64" ]; } ); }
);
END
	printf '%s\n' "$@" >>scenario
}
slow='links = ( { latency = "10 ms"; } );'

# run MODE...: a server, which serves until the client has ended.
server=serve
run() {
	polycm run --seed 3 --scenario scenario --trace trace --daemon server ./tcp "$server" --on client ./tcp "$@" >out 2>&1
}
# prints "TEXT"... -- MODE...: in the client's or the server's output
prints() {
	local texts=()

	while [ "$1" != -- ]; do
		texts+=("$1")
		shift
	done
	shift
	run "$@" || { cat out; return 1; }
	has out "${texts[@]}"
}

scenario "$slow"
check 'both ends have the addresses and ports of each other; all takes its time' prints \
	'[server] accept: 10.0.0.2 port 32768, which is 10.0.0.2 port 32768, at 10.0.0.1 port 5000' \
	'[client] connect: done, 20 ms' '[client] at 10.0.0.2 port 32768, to 10.0.0.1 port 5000' \
	'[client] message 0: 40 ms' '[client] message 1: 160 ms' '[client] end: 280 ms' -- talk 10.0.0.1 2
server=serve6
check 'IPv6' prints '[server] accept: fd00::2 port 32768' '[client] at fd00::2 port 32768, to fd00::1 port 5000' \
	'[client] message 0: 40 ms' -- talk fd00::1
check 'IPv4 in addresses of IPv6' prints '[server] accept: ::ffff:10.0.0.2 port' \
	'[client] at ::ffff:10.0.0.2 port 32768, to ::ffff:10.0.0.1 port 5000' '[client] message 0: 40 ms' -- \
	talk ::ffff:10.0.0.1
server=serve
check 'an event loop' prints 'loop: connected, 20 ms' 'loop: answer, 40 ms' -- loop
check 'signals and time-outs during connect()' prints 'without SA_RESTART: Interrupted system call, 5 ms' \
	'with SA_RESTART: Success' 'with SO_SNDTIMEO: Operation now in progress' -- interrupted
check 'a receiver that does not read stops the sender' prints '[client] filled' -- fill
check 'connect() that its program gives up' prints '[client] given up' -- given_up
# Four socket connect again; those that were closed before they were connected the server never has.
check 'closed before it was connected' counts out 5 'accept: '
check 'little room for names, and addresses of another family' prints '[client] odd' -- odd
check 'connect() without a descriptor left' prints '[client] full' -- full
check '300 connections at once' prints '[client] many: 300' -- many
server=serve_late
check 'a client that has gone before accept() had it has its port' prints '[client] at 10.0.0.2 port 32768' \
	'[server] accept: 10.0.0.2 port 32768, which is 10.0.0.2 port 32768' -- go
server=serve
server=reset
check 'a long message that is cut' prints 'block: part of it, then Connection reset by peer' -- block
server=close
check 'a long message to nobody' prints 'gone: ' -- gone
server=serve
killed() {
	! run die && has out 'client is killed by signal 9'
}
check 'a program that is killed' killed
refused() {
	server=sleep
	polycm run --scenario scenario --daemon server sleep 1000 --on client ./tcp talk --on client ./tcp loop >out 2>&1
	has out 'connect: Connection refused, 20 ms' 'loop: Connection refused, 20 ms'
}
check 'nobody listens' refused
server=serve
local_ones() {
	polycm run --scenario scenario --daemon client ./tcp serve --on client ./tcp talk 10.0.0.2 1 \
		--on client ./tcp talk 127.0.0.1 1 >out 2>&1
	counts out 2 'connect: done, 0 ms' && counts out 2 'message 0: 0 ms'
}
check 'connections within a node are not carried' local_ones
without() {
	sed -i 's/tcp = true/tcp = false/' scenario
	prints 'connect: done, 0 ms' -- talk
}
check 'nor are others without tcp = true' without

scenario 'links = ( { latency = "1 ms"; bandwidth = "8 Mbit/s"; } );'
check 'a megabyte there and back at 8 Mbit/s' prints '[client] bulk: 10' -- bulk
scenario "$slow" 'faults = ( { action = "lose"; message = "TCP_SYN"; nth = 1; times = 2; } );'
check 'two SYNs are lost' prints 'connect: done, 3020 ms' -- talk
# Each repetition has a line; nothing happens where connections are carried, so that is no column.
timeline() {
	polycm timeline trace >out 2>err && [ ! -s err ] && counts trace 3 '"send","packet":1,' && counts trace 1 '"recv","packet":1,' &&
		counts out 1 '^ +client +server$' && counts out 1 '├── TCP_SYN ─+✗' && counts out 1 'again: TCP_SYN ─+✗' &&
		counts out 1 'again: TCP_SYN \[1\]' && counts out 2 '↯ lose TCP_SYN' && lacks out network
}
check 'a timeline of it' timeline
scenario "$slow" 'faults = ( { action = "lose"; message = "TCP_DATA"; from = "server"; nth = 2; times = 2; } );'
check 'an answer is lost twice' prints 'message 0: 40 ms' 'message 1: 760 ms' 'message 2: 880 ms' -- talk
scenario "$slow" 'faults = ( { action = "delay"; message = "tcp"; from = "client"; nth = 4; delay = "1 s"; } );'
check 'a message is late' prints 'message 0: 40 ms' 'message 1: 1160 ms' -- talk
scenario "$slow" 'faults = ( { action = "reject"; message = "TCP_SYN"; } );'
check 'a connection is refused by a fault' prints 'connect: Connection refused, 20 ms' -- talk
scenario "$slow" 'faults = ( { action = "reject"; message = "TCP_DATA"; from = "client"; nth = 2; } );'
check 'a connection is reset: both ends are told' prints 'message 0: 40 ms' \
	'message 1: Connection reset by peer' 'served: Connection reset by peer' -- talk
scenario "$slow" 'faults = ( { action = "port_down"; on = "server"; after = "1.1 s"; delay = "5 s"; } );'
check 'a port is down for a while' prints 'message 0: 40 ms' 'message 1: 6' -- talk
scenario "$slow" 'faults = ( { action = "crash"; on = "server"; after = "500 ms"; } );'
check 'a node that is gone' prints 'connect: Connection timed out, 127000 ms' -- talk
scenario "$slow" 'faults = ( { action = "crash"; on = "server"; after = "1.1 s"; } );'
check 'a node that goes' prints 'message 0: 40 ms' 'message 1: Connection timed out, 924' -- talk
scenario "$slow" 'faults = ( { action = "lose"; message = "TCP_DATA"; from = "server"; nth = 2; times = 100; } );'
gives_up() {
	! run talk && has out 'message 0: 40 ms' 'served: Connection timed out, 925' 'nobody can go on' 'error: client: '
}
check 'a server that gives up, of which its client learns nothing' gives_up
scenario "$slow" 'faults = ( { action = "reject"; message = "TCP_SYN"; reason = 8; } );'
refuses() {
	! run talk && has out 'scenario:7: this fault: a TCP connection is reset without a reason: leave it out'
}
check 'a reset has no reason' refuses

cat >three.scenario <<'END'
tcp = true;
nodes = (
	{ name = "a"; devices = ( { transport = "roce"; addresses = "10.0.0.1/24"; } ); },
	{ name = "b"; devices = ( { transport = "roce"; addresses = "10.0.0.2/24"; } ); },
	{ name = "c"; devices = ( { transport = "roce"; addresses = "10.0.0.3/24"; } ); }
);
links = ( { latency = "10 ms"; } );
faults = (
	{ action = "crash"; on = "b"; after = "100 ms"; },
	{ action = "lose"; message = "TCP_DATA"; nth = 1000; }
);
END
no_program() {
	polycm run --scenario three.scenario --log warn --daemon c sleep 2000 --on c ./tcp talk --on c ./tcp talk 10.0.0.2 >out 2>&1
	has out 'connect: Connection refused, 20 ms' 'connect: Connection timed out, 127000 ms' \
		'three.scenario:10: fault rule 2 (lose TCP_DATA) has never happened'
}
check 'nodes without programs; and a fault that never was is told' no_program

# What has no effect is told before the run, once.
cat >none.scenario <<'END'
faults = (
	{ action = "lose"; message = "REQ"; },
	{ action = "lose"; message = "TCP_DATA"; nth = 3; },
	{ action = "delay"; message = "tcp";
	  delay = "1 ms"; }
);
END
never() {
	counts "$1" 1 'none.scenario:3: fault rule 2 \(lose TCP_DATA\) can never happen: TCP connections go over the links' &&
		counts "$1" 1 'none.scenario:4: fault rule 3 \(delay tcp\) can never happen: .* with .tcp = true. only$' &&
		counts "$1" 2 'can never happen'
}
without_effect() {
	exits 0 polycm run --scenario none.scenario --on a true --on b true && never err &&
		exits 0 polycm run --scenario none.scenario true && never err &&
		exits 0 polycm explore --seeds 1-3 --scenario none.scenario --on a true --on b true && never err &&
		exits 0 polycm explore --seeds 1-3 --scenario none.scenario true && never err || return
	sed -i '1i tcp = true;' none.scenario
	exits 0 polycm run --scenario none.scenario --on a true --on b true && lacks err none.scenario &&
		exits 0 polycm run --scenario none.scenario true &&
		counts err 1 'none.scenario:1: tcp = true has no effect: it is for programs behind --on' &&
		exits 0 polycm explore --seeds 1-3 --scenario none.scenario true && counts err 1 'none.scenario'
}
check 'tcp = true and rules about TCP that have no effect' without_effect

scenario 'links = ( { latency = "1 ms"; jitter = "2 ms"; loss = 0.2; } );'
repeats() {
	local i

	run talk 10.0.0.1 20 && mv out first && mv trace first.trace || { cat out; return 1; }
	for i in 1 2 3 4 5; do
		run talk 10.0.0.1 20 && cmp out first && cmp trace first.trace || return
	done
	counts first.trace 1 '"kind":"send".*"TCP_SYN"' && has first.trace '"action":"lose","what":"TCP_DATA"' &&
		polycm run --verify --scenario scenario --daemon server ./tcp serve --on client ./tcp bulk >out 2>&1 &&
		has out 'the second run is the same'
}
check 'losses and jitter: each run is the same' repeats

scenario "$slow" 'explore = { messages = "tcp"; loss = 0; lateness = 0; rejection = 0.3; preemptions = 0; };' \
	'programs = ( { node = "server"; command = "./tcp serve"; daemon = true; },' \
	'	{ node = "client"; command = "./tcp bulk"; } );'
explores() {
	polycm explore --scenario scenario --seeds 1-20 --output found >out 2>&1
	[ $? -eq 1 ] && has out 'message = "TCP_' || { cat out; return 1; }
	! polycm run --scenario "$(sed -n 's/^  replay: .* //p' out | head -1)" >again 2>&1 || return
	has again 'ended with exit status 1'
}
check 'polycm explore finds a reset, which the replay repeats' explores

cat >stuck.scenario <<'END'
tcp = true;
links = ( { latency = "10 ms"; } );
END
stuck() {
	! polycm run --scenario stuck.scenario --on server ./tcp serve --on client ./tcp talk 10.0.0.1 1 >out 2>&1 &&
		has out 'message 0: 40 ms' 'nobody can go on' 'error: server: ' && ! grep -F 'error: network: ' out
}
check 'who carries connections is not among those that wait for ever' stuck
finish
