#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The polycm command: options of polycm run, exit statuses, what polycm info shows.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

run() { polycm run "$@"; }

# --- What it says. ---

help_is() {
	exits 0 polycm help "$@" && golden "help${1:+-$1}" "$work/out"
}
check 'polycm help' help_is
check 'polycm help run' help_is run
check 'polycm help explore' help_is explore
check 'polycm help info' help_is info
check 'polycm help timeline' help_is timeline
check 'polycm run --help' eval 'exits 0 run --help && golden help-run "$work/out"'
check 'polycm info --help' eval 'exits 0 polycm info --help && golden help-info "$work/out"'
check 'polycm --version' eval 'exits 0 polycm --version && counts "$work/out" 1 "^polycm [0-9]+\.[0-9]+\.[0-9]+$"'

# One line on standard error, status 2, nothing else.
complains() {
	local line=$1

	shift
	exits 2 "$@" && [ ! -s "$work/out" ] && counts "$work/err" 1 . && has "$work/err" "$line"
}
check 'no arguments' eval 'exits 2 polycm && [ ! -s "$work/out" ] && has "$work/err" "usage: polycm COMMAND"'
check 'an unknown subcommand' complains "'dance' is no polycm command" polycm dance
check 'help for an unknown subcommand' complains "'dance' is no polycm command" polycm help dance
check 'an unknown option of run' complains "unrecognized option '--dance'" run --dance true
check 'an option with a slip' complains "unrecognized option '--trase'; nearest: '--trace'" run --trase=x true
check 'an unknown option of explore' complains "unrecognized option '--sead'; nearest: '--seeds'" \
	polycm explore --sead 1 true
check 'an unknown option of timeline' complains "unrecognized option '--betwen'; nearest: '--between'" \
	polycm timeline --betwen a,b
check 'an unknown letter' complains "invalid option -- 'x'" run -x true
check 'an option that takes no value' complains "option '--cm' takes no value" polycm timeline --cm=1 x
check 'the beginning of two options' complains "option '--s' is ambiguous" run --s 1 true
check 'an option without its value' complains "option '--log' requires an argument" run --log
check 'an unknown option of info' complains "unrecognized option '--dance'" polycm info --dance
check 'too many arguments for info' complains 'too many arguments' polycm info ib roce
check 'no command to run' complains 'no command is given' run --provider sim

check 'an unknown provider' complains "no provider 'simm'; installed: fault, ib, iwarp, ofi, roce, sim, trace" \
	run --provider simm true
check 'an unknown provider in a list' complains "no provider 'rose'" run --provider ib,rose true
check 'an empty name in a list' complains "no provider ''" run --provider ib, true
check 'an unknown provider to leave out' complains "no provider 'simm'" run --provider ^simm true
check 'an unknown transport' complains "no transport 'rocky'; installed: ib, iwarp, roce" \
	run --transport rocky true
check 'an empty transport' complains "no transport ''" run --transport '' true
check 'a seed that is no number' complains "'12x' is no number" run --seed 12x true
check 'a negative seed' complains "'-1' is no number" run --seed -1 true
check 'a seed that is too large' complains "'18446744073709551616' is no number" \
	run --seed 18446744073709551616 true
check 'an unknown clock' complains "'sundial' is not one of" run --clock sundial true
check 'an unknown log level' complains \
	"'loud' is not one of error|warn|info|debug|trace" run --log loud true
check 'a prefix of a log level' complains "'inf' is not one of" run --log inf true
check 'a fabric that would be a path' complains "'../x' is no name" run --fabric ../x true
check 'a fabric without a name' complains "'' is no name" run --fabric '' true
check 'a trace without a file' complains 'no file is named' run --trace '' true
check 'a trace in a folder that is not there' complains \
	'--trace: /nowhere/trace: No such file or directory' run --trace /nowhere/trace true
check 'a folder as a trace' complains '--trace: /: Is a directory' run --trace / true
check 'a capture on standard output' complains '--pcap: a capture needs a file' run --pcap - true
check 'a capture in a folder that is not there' complains \
	'--pcap: /nowhere/p: No such file or directory' run --pcap /nowhere/p true
check 'a trace is not made before the program runs' eval '
	exits 0 run --trace "$work/trace" true && [ ! -e "$work/trace" ]'
check 'a simulator that is left out' complains \
	'--seed is for the simulator, which --provider roce leaves out' run --provider roce --seed 1 true
check 'a provider that cannot be used, with the reason' eval '
	echo nonsense >"$work/provider-acme.so" &&
	POLYCM_PROVIDER_PATH=$work complains "$work/provider-acme.so: " run --provider acme true'

# --- What it sets. ---

# The environment of a program, without what the shell or timeout put there.
environment() { run "$@" env | grep -E '^(POLYCM_|LD_PRELOAD=)' | LC_ALL=C sort; }

sets() {
	local expected=$1

	shift
	environment "$@" | grep -v -e ^LD_PRELOAD= -e ^POLYCM_PROVIDER_PATH= | diff <(printf '%s' "$expected") -
}
check 'nothing but LD_PRELOAD by itself' sets ''
check 'each option its variable' sets 'POLYCM_LOG=info
POLYCM_PROVIDER=ib,sim
POLYCM_SIM_CLOCK=real
POLYCM_SIM_FABRIC=a-1.b
POLYCM_SIM_PCAP=/dev/null
POLYCM_SIM_SEED=0x2a
POLYCM_SIM_TRACE=/dev/null
POLYCM_SIM_TRANSPORT=iwarp
' --provider ib,sim --transport iwarp --seed 0x2a --clock real --fabric a-1.b --trace /dev/null --pcap /dev/null --log info
check 'an option of the simulator means the simulator' sets 'POLYCM_PROVIDER=sim
POLYCM_SIM_TRANSPORT=ib
' --transport=ib
check 'blanks between names do not matter' sets 'POLYCM_PROVIDER=ib , sim
POLYCM_SIM_SEED=7
' --provider 'ib , sim' --seed 7
check 'POLYCM_PROVIDER stays as it is' eval "POLYCM_PROVIDER=roce sets 'POLYCM_PROVIDER=roce
POLYCM_SIM_TRANSPORT=ib
' --transport ib"
check '--provider comes before POLYCM_PROVIDER' eval "POLYCM_PROVIDER=roce sets 'POLYCM_PROVIDER=sim
' --provider sim"

preloads() {
	environment "${@:2}" | grep ^LD_PRELOAD= >"$work/preload"
	printf 'LD_PRELOAD=%s\n' "$1" | diff - "$work/preload"
}
check 'LD_PRELOAD is the library' preloads "$library"
check 'what LD_PRELOAD held comes behind' eval \
	'LD_PRELOAD=libm.so.6 preloads "$library:libm.so.6"'
check 'LD_PRELOAD names the library once' preloads "$library" "${command[@]:${#as_user[@]}}" run
check 'where it simulates, waits are taken over, too' preloads "$interposer:$library" --provider sim
check 'by any option of the simulator' preloads "$interposer:$library" --seed 7
check 'not by another provider' preloads "$library" --provider roce
check 'and once' preloads "$interposer:$library" --provider sim "${command[@]:${#as_user[@]}}" run

# What the dynamic linker asks comes first, too, and valgrind is told of it.
audits() {
	run "${@:3}" env | grep -E "^$1=" >"$work/audit"
	printf '%s=%s\n' "$1" "$2" | diff - "$work/audit"
}
if [ -e "$auditor" ]; then
	check 'LD_AUDIT is the auditor' audits LD_AUDIT "$auditor"
	check 'LD_AUDIT names it once' audits LD_AUDIT "$auditor" "${command[@]:${#as_user[@]}}" run
	check 'what LD_AUDIT held comes behind' eval \
		'LD_AUDIT=/nowhere/audit.so audits LD_AUDIT "$auditor:/nowhere/audit.so" 2>"$work/err"'
	check 'room for static TLS' audits GLIBC_TUNABLES glibc.rtld.optional_static_tls=4096
	check 'room for static TLS behind other tunables' eval \
		'GLIBC_TUNABLES=glibc.malloc.check=0 audits GLIBC_TUNABLES glibc.malloc.check=0:glibc.rtld.optional_static_tls=4096'
	check 'more room for static TLS' eval 'GLIBC_TUNABLES=glibc.rtld.optional_static_tls=9999 audits GLIBC_TUNABLES \
		glibc.rtld.optional_static_tls=9999'
	check 'an option of valgrind' audits VALGRIND_OPTS --run-libc-freeres=no
	check 'an option of valgrind, once' audits VALGRIND_OPTS --run-libc-freeres=no "${command[@]:${#as_user[@]}}" run
	check 'and behind others' eval 'VALGRIND_OPTS=-q audits VALGRIND_OPTS "-q --run-libc-freeres=no"'
	without_auditor() {
		mv "$auditor" "$auditor.away"
		run env | grep -E '^(LD_AUDIT|VALGRIND_OPTS|GLIBC_TUNABLES)='
		local status=$?
		mv "$auditor.away" "$auditor"
		[ "$status" -eq 1 ]
	}
	check 'where there is none, nothing' without_auditor
fi

# --- What becomes of the program. ---

check 'its exit status' exits 7 run sh -c 'exit 7'
check 'its arguments, also those that look like options' eval \
	'exits 0 run --log error -- echo --log " a  b" && [ "$(cat "$work/out")" = "--log  a  b" ]'
check 'options after the command are its own' eval \
	'exits 0 run echo --provider x && [ "$(cat "$work/out")" = "--provider x" ]'
check 'a program that is not there' eval 'exits 127 run "$work/nowhere" &&
	has "$work/err" "polycm: $work/nowhere: No such file or directory"'
check 'a program that cannot be executed' eval 'exits 126 run /etc/passwd &&
	has "$work/err" "polycm: /etc/passwd: Permission denied"'
check 'a folder is no program' exits 126 run /

# A file of faults is read before the program starts.
echo 'faults = ( { action = "fail"; message = "dance"; } );' >"$work/wrong.faults"
chmod a+r "$work/wrong.faults"
check 'a wrong file of faults' complains 'wrong.faults:1: message = "dance": no such call or event' \
	run --faults "$work/wrong.faults" touch "$work/ran"
check 'a wrong file of faults over the kernel' complains 'wrong.faults:1: ' \
	run --provider roce --faults "$work/wrong.faults" touch "$work/ran"

# Nothing can be preloaded into a static program, and into a script whose interpreter is one.
says_static() {
	exits 0 run "$1" && counts "$work/err" 1 . && has "$work/err" "polycm: $2 is linked statically, so that polycm is not in it"
}
for kind in static static-pie; do
	echo 'int main(void) { return 0; }' | ${CC:-cc} "-$kind" -fPIE -x c -o "$work/$kind" - 2>/dev/null || continue
	printf '#! \t%s -x\n' "$work/$kind" >"$work/by-$kind"
	printf '#!%s' "$work/by-$kind" >"$work/by-by-$kind"
	chmod a+rx "$work"/{,by-,by-by-}$kind
	check "a program that is $kind" says_static "$work/$kind" "$work/$kind"
	check "a script for it ($kind)" says_static "$work/by-$kind" "$work/by-$kind: its interpreter $work/$kind"
	check "a script for a script for it ($kind)" says_static "$work/by-by-$kind" \
		"$work/by-by-$kind: its interpreter $work/$kind"
done
if [ -e "$work/static" ]; then
	check 'a static program, explored' eval 'exits 0 polycm explore --seeds 1 --output "$work/found" "$work/static" &&
		has "$work/err" "polycm: $work/static is linked statically"'
fi
check 'a script and a dynamic linker are not static' eval 'printf "#!/bin/sh\ntrue\n" >"$work/script" &&
	chmod a+rx "$work/script" && exits 0 run "$work/script" && [ ! -s "$work/err" ] &&
	printf "#!/nowhere/sh\n" >"$work/script" && exits 127 run "$work/script" && counts "$work/err" 1 . &&
	exits 0 run "$(ldd "$(type -P true)" | grep -o "/[^ ]*ld-[^ ]*" | head -1)" --version && [ ! -s "$work/err" ]'

# --- info. ---

info_is() {
	local name=$1

	shift
	exits 0 polycm info "$@" || return
	# What differs from one place and release to the next.
	sed -e "s#$abs_top_builddir#BUILD#g; s#${library%/lib/*}#PREFIX#g" \
	    -e 's#polycm [0-9][0-9.]*, .*#polycm VERSION, LIBRARY#' \
	    -e 's#  [0-9][0-9]*\.[0-9]*\.[0-9]*  #  X.Y.Z  #' \
	    -e 's#  [^ ]*/provider-#  FOLDER/provider-#' "$work/out" >"$work/plain"
	golden "$name" "$work/plain"
}
check 'polycm info without a device' info_is info
check 'polycm info ib' info_is info-ib ib
check 'polycm info roce' info_is info-roce roce
check 'polycm info iwarp' info_is info-iwarp iwarp
check 'polycm info --config' info_is info-config --config
check 'polycm info of an unknown provider' eval 'exits 1 polycm info acme &&
	has "$work/err" "there is no provider '"'acme'"'"'
check 'polycm info of a provider that cannot be used' eval '
	POLYCM_PROVIDER_PATH=$work exits 1 polycm info acme &&
	has "$work/out" "$work/provider-acme.so" "cannot be used: "'
check 'polycm info beside a provider that cannot be used' eval '
	POLYCM_PROVIDER_PATH=$work exits 0 polycm info &&
	has "$work/out" "$work/provider-acme.so" "RDMA_PS_TCP"'
check 'polycm info --config of one provider' eval '
	exits 0 polycm info --config sim && counts "$work/out" 13 "^POLYCM_" && counts "$work/out" 13 "^POLYCM_SIM_"'
check 'polycm info --config of an unknown provider' eval 'exits 1 polycm info --config acme &&
	has "$work/err" "there is no provider '"'acme'"'"'
info_with() { (export "$1"; shift; exits 0 polycm info "$@"); }
check 'polycm info names the folder in which processes meet' eval '
	info_with POLYCM_PROVIDER=sim && has "$work/out" "  $runtime/polycm/default-roce" &&
	info_with POLYCM_PROVIDER=sim sim && has "$work/out" "processes meet in  $runtime/polycm/default-roce"'
check 'polycm info names no folder where time is virtual' eval '
	(export POLYCM_PROVIDER=sim; info_with POLYCM_SIM_CLOCK=virtual && lacks "$work/out" "Shared network")'
# One bad setting: one line of log that names it, no device, and status 1.
fails_of() {
	local line=$1

	shift
	export "${@:?}"
	exits 1 polycm info sim && counts "$work/err" 1 . && has "$work/err" "polycm: error: $line" &&
		has "$work/out" 'cannot start: ' &&
		exits 1 polycm info && has "$work/out" 'cannot start: '
}
bad_setting() { (fails_of "$@" POLYCM_PROVIDER=sim); }
check 'a bad seed' bad_setting 'POLYCM_SIM_SEED=x: not a number' POLYCM_SIM_SEED=x
for text in -1 fast 5us 1000001 99999999999999999999; do
	check "POLYCM_SIM_CM_DELAY=$text" bad_setting "POLYCM_SIM_CM_DELAY=$text: not a number of microseconds" \
		"POLYCM_SIM_CM_DELAY=$text"
done
check 'no device' bad_setting 'POLYCM_SIM_DEVICE=/nowhere: No such file or directory' POLYCM_SIM_DEVICE=/nowhere
check 'a file that is no device' bad_setting 'POLYCM_SIM_DEVICE=/dev/null: no line begins with hca_id:' \
	POLYCM_SIM_DEVICE=/dev/null
check 'a bad clock' bad_setting 'POLYCM_SIM_CLOCK=sundial is not one of real|virtual' POLYCM_SIM_CLOCK=sundial
check 'a bad transport' bad_setting 'POLYCM_SIM_TRANSPORT=x: ' POLYCM_SIM_TRANSPORT=x
check 'a bad fabric' bad_setting 'POLYCM_SIM_FABRIC=../x: no name' POLYCM_SIM_FABRIC=../x
check 'a bad trace' bad_setting 'POLYCM_SIM_TRACE=/nowhere/x: No such file or directory' POLYCM_SIM_TRACE=/nowhere/x
check 'a program with a bad setting' eval 'exits 1 run --provider sim env POLYCM_SIM_CLOCK=x ibv_devices &&
	has "$work/err" "POLYCM_SIM_CLOCK=x is not one of real|virtual" && counts "$work/err" 1 "^polycm: "'
check 'polycm info of a missing provider by name' eval 'POLYCM_PROVIDER=nosuch exits 1 polycm info &&
	counts "$work/err" 1 "^polycm: error: POLYCM_PROVIDER=nosuch"'
check 'an unknown setting is told, once' eval 'POLYCM_SIM_SEDE=1 exits 0 run --provider sim ibv_devices &&
	counts "$work/err" 1 . && has "$work/err" "unknown setting POLYCM_SIM_SEDE: did you mean POLYCM_SIM_SEED?"'
# What is set and does nothing is told at warn; what is in use, or empty, is not.
idle() {
	local line=$1

	shift
	# There may be a device, or none.
	POLYCM_LOG=warn env "$@" "${command[@]}" run ibv_devices >"$work/out" 2>"$work/err" </dev/null
	counts "$work/err" 1 '^polycm: ' && has "$work/err" "$line"
}
check 'a setting of a layer that is not there' idle \
	'POLYCM_FAULT_RULES has no effect: fault is not used with POLYCM_PROVIDER=sim' \
	POLYCM_PROVIDER=sim POLYCM_FAULT_RULES='{}'
check 'a setting of a provider that is not used' idle \
	'POLYCM_SIM_TRACE has no effect: sim is not used with POLYCM_PROVIDER=roce' \
	POLYCM_PROVIDER=roce POLYCM_SIM_TRACE=x POLYCM_SIM_SEED=
check 'a setting of one that is not used unless asked' idle \
	'POLYCM_SIM_SEED has no effect: sim is not used with POLYCM_PROVIDER=(not set)' POLYCM_SIM_SEED=1
check 'a node without a scenario' idle 'POLYCM_SIM_NODE has no effect: without POLYCM_SIM_SCENARIO there is' \
	POLYCM_PROVIDER=sim POLYCM_SIM_NODE=client
check 'a folder of providers that is not there' idle 'no providers from folder /nowhere: No such file' \
	POLYCM_PROVIDER=sim POLYCM_PROVIDER_PATH=/nowhere
check 'settings that are in use' eval 'POLYCM_LOG=warn POLYCM_PROVIDER="trace;sim" POLYCM_SIM_SEED=2 \
	POLYCM_TRACE_FILE=- exits 0 polycm run ibv_devices && lacks "$work/err" "no effect"'
check 'where a setting comes from' eval '
	POLYCM_LOG=warn exits 0 polycm info --config &&
	has "$work/out" "POLYCM_LOG=warn" "from the environment; default: error"'
check 'output that cannot be written' eval '! polycm info >/dev/full 2>"$work/err" &&
	has "$work/err" "cannot write the output"'

# --- Every setting is in the manual and in the README. ---

documented() {
	local setting settings

	settings=$(polycm info --config | grep -oE '^POLYCM_[A-Z_]+')
	[ -n "$settings" ] || return
	for setting in $settings; do
		grep -q "^\.It Ev $setting\$" "$abs_top_srcdir/man/polycm.7" || echo "polycm.7 lacks $setting"
		grep -q "\`$setting\`" "$abs_top_srcdir/README.md" || echo "README.md lacks $setting"
	done
	# Constants of headers are no settings, nor are the titles of pages.
	for setting in $(sed '/^\.Dt /d' "$abs_top_srcdir"/man/*.[0-9] "$abs_top_srcdir/README.md" |
			 grep -oE '\bPOLYCM_[A-Z_]+' | sort -u); do
		grep -qx "$setting" <<<"$settings" || grep -qrw "$setting" "$abs_top_srcdir/include/polycm" ||
			echo "there is no setting $setting"
	done
}
check 'the manual has every setting and no other' eval \
	'documented >"$work/lacks"; sort -u "$work/lacks"; [ ! -s "$work/lacks" ]'

finish
