# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# What the tests of this folder share; each sources it first. It gives them
#
#	$work		a folder that goes away at the end
#	polycm ARG...	the built command, as an ordinary user (also where the test runs as root)
#	user ARG...	any program as that user
#	check, finish	counting what passed and failed
#	pairs		a server and a client as two processes, again and again, on each transport
#
# Nothing here sleeps or polls: a server is ready when its log says that it listens. Everything that is
# started has a time limit and is ended when the test ends, whichever way that is.

set -u

: "${abs_top_builddir:?start it with ./run}"
transports=(roce ib iwarp)
limit=240	# seconds for one program: only what hangs takes that long, however loaded the machine is
work=$(mktemp -d) || exit 99
# Where simulated networks are; empty again when all programs have ended.
runtime=$(mktemp -d /dev/shm/polycm-test.XXXXXX 2>/dev/null || mktemp -d) || exit 99
passed=0 failed=0
started=()

stop_started() {
	[ ${#started[@]} -eq 0 ] || kill "${started[@]}" 2>/dev/null
	started=()
}

clean_up() {
	local status=$?

	trap - EXIT
	# A child that is ended before it has given up the traps it was forked with.
	[ "$BASHPID" = "$$" ] || exit "$status"
	stop_started
	wait
	rm -rf "$work" "$runtime"
	exit "$status"
}
trap clean_up EXIT
trap 'exit 143' INT TERM HUP

# Exit status 77: skipped. The reason is the line before the last one.
skip() {
	printf 'skipped: %s\n\n' "$*"
	exit 77
}

need() {
	local program

	for program; do
		command -v "$program" >/dev/null || skip "$program is not installed"
	done
}

# --- The user and the command. ---

as_user=()
if [ "$(id -u)" -eq 0 ]; then
	need setpriv
	as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups --)
	chown 65534:65534 "$work" "$runtime"
fi
export HOME=$work XDG_RUNTIME_DIR=$runtime

user() { "${as_user[@]}" "$@"; }

# A copy of what `make install' would install: that user may not be able to read the build tree, which may be in
# somebody's home. It is made everywhere, so that tests do the same wherever the checkout is.
copy=$work/copy
mkdir -p "$copy/bin" "$copy/lib/polycm" "$copy/share/polycm" &&
cp "$abs_top_builddir/tools/.libs/polycm" "$copy/bin/" &&
cp "$abs_top_builddir/core/.libs/libpolycm.so.0" "$copy/lib/" &&
cp "$abs_top_builddir/interpose/.libs/libpolycm-interpose.so.0" "$copy/lib/" &&
cp "$abs_top_builddir/sockets/.libs/libpolycm-sockets.so" "$copy/lib/" &&
{ [ ! -e "$abs_top_builddir/turn/.libs/libpolycm-turn.so" ] ||
	cp "$abs_top_builddir/turn/.libs/libpolycm-turn.so" "$copy/lib/"; } &&
{ [ ! -e "$abs_top_builddir/audit/.libs/libpolycm-audit.so" ] ||
	cp "$abs_top_builddir/audit/.libs/libpolycm-audit.so" "$copy/lib/"; } &&
cp "$abs_top_builddir"/providers/*/.libs/provider-*.so "$copy/lib/polycm/" &&
{ [ ! -e "$abs_top_builddir/providers/ofi/.libs/ofi-carrier.so" ] ||
	cp "$abs_top_builddir/providers/ofi/.libs/ofi-carrier.so" "$copy/lib/polycm/"; } &&
cp -R "$abs_top_srcdir/providers/sim/devices" "$copy/share/polycm/" &&
cp -R "$abs_top_srcdir/include" "$copy/" &&
chmod -R go+rX "$work" || exit 99
unset POLYCM_PROVIDER_PATH
library=$copy/lib/libpolycm.so.0 interposer=$copy/lib/libpolycm-interpose.so.0 command=$copy/bin/polycm
auditor=$copy/lib/libpolycm-audit.so

# Not through libtool's wrapper script, which takes longer than the command itself.
command=("${as_user[@]}" timeout --foreground -k 2 "$limit"
	 env "LD_LIBRARY_PATH=${library%/*}" "$command")
polycm() { "${command[@]}" "$@"; }

# need_turns [OPTION...]: several programs in one virtual time. What a run says of itself is in $work/probe.
need_turns() {
	[ -e "$copy/lib/libpolycm-turn.so" ] || skip 'libpolycm-turn is not built for this system'
	polycm run "$@" --on a true >"$work/probe" 2>&1 || ! grep -F 'syscall user dispatch' "$work/probe" ||
		skip 'the kernel has neither syscall user dispatch nor seccomp filters'
}

# --- Counting. ---

check() {
	local what=$1

	shift
	if "$@"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAILED: %s\n' "$what"
	fi
}

finish() {
	printf '%d passed, %d failed\n' "$passed" "$failed"
	[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
	exit
}

# has FILE TEXT...: each text is in the file.
has() {
	local file=$1 text

	shift
	for text; do
		grep -qF -e "$text" "$file" && continue
		printf 'not in the output: %s\n--\n' "$text"
		cat "$file"
		echo --
		return 1
	done
}

# lacks FILE TEXT
lacks() {
	! grep -nF -e "$2" "$1"
}

# counts FILE NUMBER REGEX: so many lines match.
counts() {
	local number

	number=$(grep -cE -e "$3" "$1")
	[ "$number" -eq "$2" ] && return
	printf '%s lines instead of %s match %s\n' "$number" "$2" "$3"
	return 1
}

# A line that systems without namespaces have at the beginning; need_turns has it in $work/probe.
strip_note() { sed -i '/^polycm: run: .*: the system allows no namespaces$/d' "$@"; }

# exits STATUS COMMAND...: it ends with that status; its output is in $work/out and $work/err.
exits() {
	local expected=$1 status

	shift
	"$@" >"$work/out" 2>"$work/err" </dev/null
	status=$?
	strip_note "$work/err"
	[ "$status" -eq "$expected" ] && return
	printf 'exit status %s instead of %s: %s\n' "$status" "$expected" "$*"
	head -n 50 "$work/out" "$work/err"
	return 1
}

# golden NAME FILE: the file is what NAME.golden has. UPDATE_GOLDEN=1 writes that anew.
golden() {
	local expected=$abs_top_srcdir/tests/programs/$1.golden

	if [ -n "${UPDATE_GOLDEN-}" ]; then
		cp "$2" "$expected"
		return
	fi
	diff -u "$expected" "$2"
}

# --- Several programs in one virtual time. ---

# run NAME STATUS ARG...: one run; $work/NAME.out is what it printed, $work/NAME.trace its trace, if it has one. The
# path is in the environment of programs: with names of one length, addresses on their stacks are the same.
run() {
	local name=$1 expected=$2 status options=(--log info --trace "$work/$1.trace")

	shift 2
	[ -z "$untraced" ] || options=(--log info)
	rm -f "$work/$name.trace"
	polycm run "${options[@]}" "$@" >"$work/$name.out" 2>&1
	status=$?
	# They are compared with runs that have no trace.
	sed -i '/^polycm: run: no program used the simulated network: /d' "$work/$name.out"
	strip_note "$work/$name.out"
	[ "$status" -eq "$expected" ] && return
	printf 'status is %d, not %d:\n' "$status" "$expected"
	cat "$work/$name.out"
	return 1
}
untraced=

# order_of NAME: the order of turns of that run, as a number; seconds_of NAME: its virtual time.
order_of() { sed -n 's/^polycm: run: virtual time .* order //p' "$work/$1.out"; }
seconds_of() { sed -n 's/^polycm: run: virtual time \([0-9]*\)\..*/\1/p' "$work/$1.out"; }

# alike NAME OTHER: two runs had the same output, order and trace, and the same capture, if that is in NAME.pcap.
alike() {
	local kind

	[ -n "$(order_of "$1")" ] || return
	for kind in out trace pcap; do
		[ ! -e "$work/$1.$kind" ] && [ ! -e "$work/$2.$kind" ] || cmp "$work/$1.$kind" "$work/$2.$kind" || return
	done
}

# same TIMES ARG...: so many runs that end well and are alike; "first" is the first of them.
same() {
	local times=$1 i

	shift
	run first 0 "$@" || return
	for ((i = 1; i < times; i++)); do
		run again 0 "$@" && alike first again || return
	done
}

# For the shell of a member: marks the folder of its run. marked_folders: those that are left of such runs. Others may
# run systems, too.
mark=': >"${LIBPOLYCM_TURN%/*}/test-'$$'" && echo marked'
marked_folders() { compgen -G "/dev/shm/polycm-system-*/shm/test-$$" || compgen -G "/tmp/polycm-system-*/shm/test-$$"; }

# --- Servers and clients. ---

# start FOLDER COMMAND...: starts a server, its log in FOLDER/server.log, and returns when it listens. Its
# process is $server, that which reads the log is $reader.
start() {
	local folder=$1 log line listens=

	shift
	exec {log}< <(exec "$@" 2>&1 >"$folder/server.out" </dev/null)
	server=$!
	started+=("$server")
	while IFS= read -r -t "$limit" -u "$log" line; do
		printf '%s\n' "$line"
		case $line in
		*"$listening"*)
			listens=1
			break
			;;
		esac
	done >"$folder/server.log"
	if [ -n "$server_stays" ]; then
		# Not grep -m, which goes on reading, and no pipeline, which ends with its first part.
		head -n "$server_stays" >/dev/null \
			< <(tee -a "$folder/server.log" <&"$log" | grep --line-buffered ': DISCONNECTED') &
	else
		cat <&"$log" >>"$folder/server.log" &
	fi
	reader=$!
	started+=("$reader")
	exec {log}<&-
	[ -n "$listens" ]
}
listening=listening
server_stays=	# of a server that never ends: after so many DISCONNECTED it is made to

# client_ends_well FOLDER COMMAND...: runs the client to its end; says so if it fails.
client_ends_well() {
	local folder=$1 client status

	"${@:2}" >"$folder/client.out" 2>"$folder/client.log" </dev/null &
	client=$!
	started+=("$client")
	wait "$client"
	status=$?
	[ "$status" -eq 0 ] && return
	printf 'the client ended with status %s\n' "$status"
	return 1
}

# pair FOLDER TRANSPORT FABRIC: runs ${server_command[@]} and ${client_command[@]}; both must end well. With
# ${pair_run[@]}, which takes the place of "polycm run" and its options, FOLDER alone counts.
pair_run=()
pair() {
	local folder=$1 status
	local run=("${pair_run[@]}")

	[ "${#run[@]}" -ne 0 ] ||
		run=("${command[@]}" run --provider sim --transport "$2" --fabric "$3" --log info --)
	if ! start "$folder" "${run[@]}" "${server_command[@]}"; then
		echo 'the server does not listen'
		stop_started
		return 1
	fi
	if ! client_ends_well "$folder" "${run[@]}" "${client_command[@]}"; then
		stop_started
		return 1
	fi
	if [ -n "$server_stays" ]; then
		wait "$reader"
		kill "$server"
	fi
	wait "$server"
	status=$?
	wait
	started=()
	[ "$status" -eq "$((server_stays ? 143 : 0))" ] && return
	printf 'the server ended with status %s\n' "$status"
	return 1
}

# rounds TRANSPORT NUMBER: pairs one after the other on one fabric. good FOLDER judges what they printed.
rounds() {
	local transport=$1 number=$2 folder=$work/$1 round

	mkdir -p "$folder"
	for ((round = 1; round <= number; round++)); do
		pair "$folder" "$transport" "test-$$-$transport" && good "$folder" && continue
		printf 'round %d of %d on %s\n' "$round" "$number" "$transport"
		tail -n 40 "$folder"/{server,client}.{out,log}
		return 1
	done
}

# pairs NUMBER: rounds on each transport at the same time.
pairs() {
	local number=$1 transport worker workers=()

	for transport in "${transports[@]}"; do
		(
			trap - EXIT
			trap 'stop_started; exit 143' INT TERM HUP
			rounds "$transport" "$number" >"$work/$transport.report" 2>&1
		) &
		workers+=($!)
		started+=($!)
	done
	for worker in "${!workers[@]}"; do
		transport=${transports[worker]}
		check "$number times on $transport" wait "${workers[worker]}"
		cat "$work/$transport.report"
	done
	started=()
	if [ -n "$server_stays" ]; then
		# A server that was killed could not; the next process there clears it away.
		for transport in "${transports[@]}"; do
			polycm run --transport "$transport" --fabric "test-$$-$transport" ibv_devices >/dev/null
		done
	fi
	check 'nothing is left of the simulated networks' nothing_left
}

nothing_left() {
	local left

	left=$(find "$runtime" -type f)
	[ -z "$left" ] && return
	printf '%s\n' "$left"
	return 1
}
