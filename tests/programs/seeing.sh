#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Traces and captures: each line of a trace is as polycm-trace(5) says, tshark decodes every packet of a capture,
# and both tell of the same messages at the same times.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need jq tshark rping
here=$abs_top_srcdir/tests/programs
seeing=$abs_top_builddir/tests/programs/seeing
[ ! -x "${seeing%/*}/.libs/seeing" ] || seeing=${seeing%/*}/.libs/seeing
export LD_LIBRARY_PATH=${library%/*}

# Not as root, which tshark warns of. It guesses what is in data: those guesses are off.
shark() {
	user tshark -n -r "$1" --disable-heuristic rpcrdma_iwarp --disable-heuristic smb_direct_iwarp \
		--disable-heuristic rpcrdma_infiniband \
		-o ip.check_checksum:TRUE -o udp.check_checksum:TRUE -o tcp.check_checksum:TRUE \
		-o tcp.relative_sequence_numbers:FALSE "${@:2}" 2>"$work/tshark.err"
}

# --- The trace alone. ---

fits_schema() {
	local bad

	bad=$(jq -nc -f "$here/trace-schema.jq" "$1") || return
	[ -z "$bad" ] && return
	printf 'not as polycm-trace(5) says:\n%s\n' "$bad"
	return 1
}

# Every kind and member is in the manual page.
is_documented() {
	local page=$abs_top_srcdir/man/polycm-trace.5 word words

	words=$(jq -r '.kind, keys[]' "$@" | sort -u) || return
	for word in $words; do
		grep -qE "^\.It (Cm|Va) (.* )?$word( |\$)" "$page" && continue
		printf 'not in %s: %s\n' "$page" "$word"
		return 1
	done
}

# --- The capture alone. ---

# No packet that tshark cannot decode, no error, no wrong checksum, and every one is of that protocol.
decodes() {
	local wrong='_ws.malformed || _ws.short || _ws.expert.severity == "Error" || ip.checksum.status == "Bad"'
	local bad

	wrong+=' || udp.checksum.status == "Bad" || tcp.checksum.status == "Bad"'
	bad=$(shark "$1" -Y "$wrong || !($2)")
	[ -z "$bad" ] && [ ! -s "$work/tshark.err" ] && return
	printf '%s\n' "$bad"
	cat "$work/tshark.err"
	return 1
}

# --- Both: lines "NANOSECONDS MESSAGE LOCAL REMOTE DATA". ---

# Of the InfiniBand CM as the trace has them.
trace_messages() {
	jq -r 'select(.kind == "send" and has("local") and .message != "FIN") |
		"\(.time) \(.message) \(.local) \(.remote) \(.private_data // "")"' "$1"
}

stripped() {
	local hex=$1

	while [ "${hex%00}" != "$hex" ]; do
		hex=${hex%00}
	done
	printf '%s' "$hex"
}

nanoseconds() { printf '%d' "$((10#${1/./}))"; }

names=([16]=REQ [17]=MRA [18]=REJ [19]=REP [20]=RTU [21]=DREQ [22]=DREP [23]=SIDR_REQ [24]=SIDR_REP)

mad_messages() {
	local time attribute local remote data mad

	shark "$1" -Y infiniband.mad -T fields -E separator='|' -E aggregator=/ -e frame.time_epoch \
		-e infiniband.mad.attributeid \
		-e infiniband.cm.req -e infiniband.cm.rep -e infiniband.cm.rep.remotecommid \
		-e infiniband.cm.rtu.localcommid -e infiniband.cm.rtu.remotecommid \
		-e infiniband.cm.rej.localcommid -e infiniband.cm.rej.remotecommid \
		-e infiniband.cm.dreq.localcommid -e infiniband.cm.dreq.remotecommid \
		-e infiniband.cm.drsp.localcommid -e infiniband.cm.drsp.remotecommid \
		-e infiniband.cm.req.ip_cm.private -e infiniband.cm.rep.private \
		-e infiniband.cm.rtu.private -e infiniband.cm.rej.private -e infiniband.cm.dreq.private \
		-e infiniband.cm.drsp.private -e infiniband.mad.data |
	while IFS='|' read -r time attribute req rep1 rep2 rtu1 rtu2 rej1 rej2 dreq1 dreq2 drep1 drep2 \
		reqdata repdata rtudata rejdata dreqdata drepdata mad; do
		local=${req:-${rep1:-${rtu1:-${rej1:-${dreq1:-${drep1:-0}}}}}}
		remote=${rep2:-${rtu2:-${rej2:-${dreq2:-${drep2:-0}}}}}
		data=${reqdata:-${repdata:-${rtudata:-${rejdata:-${dreqdata:-$drepdata}}}}}
		# Of SIDR tshark shows the bytes.
		mad=${mad//:/}
		case $((attribute)) in
		23) local=0x${mad:0:8} data=${mad:104} ;;
		24) remote=0x${mad:0:8} data=${mad:192} ;;
		esac
		printf '%s %s %d %d %s\n' "$(nanoseconds "$time")" "${names[attribute]}" "$local" "$remote" \
			"$(stripped "${data//:/}")"
	done
}

tcp_messages() {
	local time flags req rep reject revision data

	shark "$1" -T fields -E separator='|' -e frame.time_epoch -e tcp.flags -e iwarp_mpa.req -e iwarp_mpa.rep \
		-e iwarp_mpa.rej_flag -e iwarp_mpa.rev -e iwarp_mpa.privatedata |
	while IFS='|' read -r time flags req rep reject revision data; do
		data=${data//:/}
		[ "${revision:-0}" -lt 2 ] || data=${data:8}
		case $((flags & 0x16)):${req:+req}:${rep:+rep}:$reject in
		2::*) printf '%s SYN\n' "$(nanoseconds "$time")" ;;
		18::*) printf '%s SYN_ACK\n' "$(nanoseconds "$time")" ;;
		20::* | 4::*) printf '%s RST\n' "$(nanoseconds "$time")" ;;
		16:req:*) printf '%s MPA_REQ %s\n' "$(nanoseconds "$time")" "$data" ;;
		16::rep:1 | 16::rep:True) printf '%s MPA_REJ %s\n' "$(nanoseconds "$time")" "$data" ;;
		16::rep:*) printf '%s MPA_REP %s\n' "$(nanoseconds "$time")" "$data" ;;
		esac
	done
}

# The numbers of streams are not in TCP; the end of one side is told by the other's, too.
same_messages() {
	if [ "$1" = iwarp ]; then
		diff <(trace_messages "$2" |
			awk '{ print $1, $2 ($5 == "" && $2 !~ /^MPA/ ? "" : " " $5) }' | sed 's/ $//') \
			<(tcp_messages "$3" | sed 's/ $//')
	else
		diff <(trace_messages "$2") <(mad_messages "$3")
	fi
}

# "NANOSECONDS MESSAGE BYTES" of data: packets of one message are added up.
trace_data() {
	jq -r 'select(.kind == "send" and has("dst_qpn") and (.message |
		. == "SEND" or . == "WRITE" or . == "READ_REPLY")) | "\(.time) \(.message) \(.len)"' "$1"
}

add_up() {
	awk '{ key = $1 " " $2; if (key != last && last != "") { print last, sum; sum = 0 }
		last = key; sum += $3 } END { if (last != "") print last, sum }'
}

roce_data() {
	local time opcode len padding name

	shark "$1" -Y '!infiniband.mad' -T fields -E separator='|' -e frame.time_epoch -e infiniband.bth.opcode \
		-e data.len -e infiniband.bth.padcnt |
	while IFS='|' read -r time opcode len padding; do
		case $opcode in
		[0-5] | 22 | 23) name=SEND ;;
		[6-9] | 10 | 11) name=WRITE ;;
		1[3-6]) name=READ_REPLY ;;
		*) continue ;;
		esac
		printf '%s %s %s\n' "$(nanoseconds "$time")" "$name" "$((${len:-0} - padding))"
	done | add_up
}

# A segment of TCP may have several FPDUs in it.
iwarp_data() {
	local time opcodes lengths name i

	shark "$1" -Y iwarp_rdma -T fields -E separator='|' -E aggregator=' ' -e frame.time_epoch \
		-e iwarp_rdma.opcode -e iwarp_mpa.ulpdulength |
	while IFS='|' read -r time opcodes lengths; do
		read -ra opcodes <<<"$opcodes"
		read -ra lengths <<<"$lengths"
		for i in "${!opcodes[@]}"; do
			case $((opcodes[i])) in
			3 | 4) name=SEND header=18 ;;
			0) name=WRITE header=14 ;;
			2) name=READ_REPLY header=14 ;;
			*) continue ;;
			esac
			printf '%s %s %s\n' "$(nanoseconds "$time")" "$name" "$((lengths[i] - header))"
		done
	done | add_up
}

same_data() {
	if [ "$1" = iwarp ]; then
		# What TCP sends again is no message again.
		diff <(trace_data "$2" | awk '$2 != "SEND" || !seen[$3]++') <(iwarp_data "$3")
	else
		diff <(trace_data "$2") <(roce_data "$3")
	fi
}

# --- Situations. ---

layers=([0]='infiniband && udp.dstport == 4791' [1]='infiniband && erf' [2]='tcp')
situation() {
	local name=$1 transport=$2 i=$3 file=$work/$1-$2

	check "$name on $transport" exits 0 user "$seeing" "$name" "$transport" "$file.trace" "$file.pcap"
	check "the trace of $name on $transport" fits_schema "$file.trace"
	check "the capture of $name on $transport" decodes "$file.pcap" "${layers[i]}"
	check "the messages of $name on $transport" same_messages "$transport" "$file.trace" "$file.pcap"
	case $name in
	data | loss) check "the data of $name on $transport" same_data "$transport" "$file.trace" "$file.pcap" ;;
	esac
}
for i in "${!transports[@]}"; do
	for name in data reject refuse loss; do
		situation "$name" "${transports[i]}" "$i"
	done
done
situation sidr roce 0
situation sidr ib 1
check 'what the traces have is documented' is_documented "$work"/*.trace

# What tshark can check besides: FPDUs and sequence numbers of TCP are in order, and all is acknowledged.
no_tcp_trouble() {
	local bad

	bad=$(shark "$work/data-iwarp.pcap" -Y 'tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment ||
		tcp.analysis.out_of_order || tcp.analysis.retransmission || tcp.analysis.duplicate_ack')
	[ -z "$bad" ] && return
	printf '%s\n' "$bad"
	return 1
}
check 'the stream of iWARP has no gap' no_tcp_trouble
check 'a lost segment is one that is sent again' eval '
	[ "$(shark "$work/loss-iwarp.pcap" -Y tcp.analysis.retransmission | wc -l)" -eq 1 ]'

# --- Two processes, one trace and one capture. ---

seen_by_two() {
	local transport=$1 status=0 strange
	local run=("${command[@]}" run --transport "$transport" --fabric "seen-$$" --trace "$work/two.trace"
		   --pcap "$work/two.pcap" --log info --)

	rm -f "$work"/two.*
	start "$work" "${run[@]}" rping -s -a 127.0.0.1 -C 3 -v || return
	"${run[@]}" rping -c -a 127.0.0.1 -C 3 -v >"$work/out" 2>"$work/err" </dev/null
	status=$?
	wait "$server" && [ "$status" -eq 0 ] || return
	wait
	started=()
	fits_schema "$work/two.trace" && decodes "$work/two.pcap" "${layers[$2]}" || return
	# Both have written, and what one sends comes to the other.
	[ "$(jq -r .process "$work/two.trace" | sort -u | wc -l)" -eq 2 ] || return
	# Who ends first does not see the last ones. What it had read and not yet marked as read its host gets again.
	strange=$(comm -13 <(jq -r 'select(.kind == "send") | .packet' "$work/two.trace" | sort -u) \
			   <(jq -r 'select(.kind == "recv") | .packet' "$work/two.trace" | sort -u))
	[ -z "$strange" ] && return
	printf 'received, and not sent: packets %s\n' "$strange"
	cat "$work/two.trace"
	return 1
}
for i in "${!transports[@]}"; do
	transport=${transports[i]}
	check "rping on $transport, two processes" seen_by_two "$transport" "$i"
	if [ "$transport" = iwarp ]; then
		check 'as many FPDUs as messages' eval '
			[ "$(shark "$work/two.pcap" -Y iwarp_rdma | wc -l)" -ge "$(trace_data "$work/two.trace" | wc -l)" ]'
	else
		check "the messages of rping on $transport" eval '
			diff <(trace_messages "$work/two.trace" | cut -d " " -f 2- | sort) \
			     <(mad_messages "$work/two.pcap" | cut -d " " -f 2- | sort)'
	fi
done

# --- Two processes, of which one writes a capture: it has both directions. ---

# The trace tells the length of a message with each of its fragments.
same_sums() {
	diff <(trace_data "$work/all.trace" | sed -E 's/ (WRITE|READ_REPLY) .*/ \1 0/' | sums) \
	     <("$1" "$work/one.pcap" | sed -E 's/ (WRITE|READ_REPLY) .*/ \1 0/' | sums) &&
	diff <(printf '%s 180000\n' READ_REPLY WRITE) <("$1" "$work/one.pcap" | sums | grep -v SEND)
}
sums() { awk '{ sum[$2] += $3 } END { for (name in sum) print name, sum[name] }' | sort; }

seen_by_one() {
	local transport=$1 layer=$2 role=$3 status=0
	local run=("${command[@]}" run --transport "$transport" --fabric "seen-$$")
	local watch=(--trace "$work/one.trace" --pcap "$work/one.pcap" --) server_watch=() client_watch=()

	if [ "$role" = server ]; then server_watch=("${watch[@]}"); else client_watch=("${watch[@]}"); fi
	rm -f "$work"/one.*
	start "$work" "${run[@]}" --log info "${server_watch[@]}" rping -s -a 127.0.0.1 -C 3 -S 60000 || return
	"${run[@]}" "${client_watch[@]}" rping -c -a 127.0.0.1 -C 3 -S 60000 >"$work/out" 2>"$work/err" </dev/null
	status=$?
	wait "$server" && [ "$status" -eq 0 ] || return
	wait
	started=()
	decodes "$work/one.pcap" "$layer" || return
	# All that went out and all that came in; for a process that is gone its host answers, which is this process.
	jq -sc 'map(select(.kind == "send" or .kind == "recv") | .kind = "send") | unique_by(.packet)[]' \
		"$work/one.trace" >"$work/all.trace"
	if [ "$transport" = iwarp ]; then
		same_sums iwarp_data
	else
		diff <(trace_messages "$work/all.trace" | cut -d " " -f 2- | sort) \
		     <(mad_messages "$work/one.pcap" | cut -d " " -f 2- | sort) &&
		same_sums roce_data
	fi
}
for i in "${!transports[@]}"; do
	for role in server client; do
		for pull in on off; do
			check "the capture of a $role alone on ${transports[i]}, pull $pull" eval '
				(export POLYCM_SIM_PULL=$pull; seen_by_one "${transports[i]}" "${layers[i]}" "$role")'
		done
	done
done

finish
