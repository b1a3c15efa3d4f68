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

# --- The capture alone: tshark decodes it once, into a line for each packet. ---

frame_fields=(frame.time_epoch frame.protocols udp.dstport _ws.malformed _ws.short _ws.expert.severity
	      ip.checksum.status udp.checksum.status tcp.checksum.status)
infiniband_fields=(infiniband.mad.attributeid
	infiniband.cm.req infiniband.cm.rep infiniband.cm.rep.remotecommid
	infiniband.cm.rtu.localcommid infiniband.cm.rtu.remotecommid
	infiniband.cm.rej.localcommid infiniband.cm.rej.remotecommid
	infiniband.cm.dreq.localcommid infiniband.cm.dreq.remotecommid
	infiniband.cm.drsp.localcommid infiniband.cm.drsp.remotecommid
	infiniband.cm.req.ip_cm.private infiniband.cm.rep.private infiniband.cm.rtu.private
	infiniband.cm.rej.private infiniband.cm.dreq.private infiniband.cm.drsp.private infiniband.mad.data
	infiniband.bth.opcode data.len infiniband.bth.padcnt)
iwarp_fields=(tcp.flags iwarp_mpa.req iwarp_mpa.rep iwarp_mpa.rej_flag iwarp_mpa.rev iwarp_mpa.privatedata
	      iwarp_rdma.opcode iwarp_mpa.ulpdulength)

# dissect TRANSPORT CAPTURE: leaves lines "TIME|PROTOCOLS|...|AND THE TRANSPORT'S FIELDS" in CAPTURE.fields.
dissect() {
	local fields=("${frame_fields[@]}")

	if [ "$1" = iwarp ]; then fields+=("${iwarp_fields[@]}"); else fields+=("${infiniband_fields[@]}"); fi
	shark "$2" -T fields -E separator='|' -E aggregator=' ' "${fields[@]/#/-e}" >"$2.fields" &&
		[ ! -s "$work/tshark.err" ] && return
	cat "$work/tshark.err"
	return 1
}

# No packet that tshark cannot decode, no error, no wrong checksum, and every one is of that transport.
decodes() {
	dissect "$1" "$2" && [ -s "$2.fields" ] || return
	awk -F '|' -v transport="$1" '
		{ right = transport == "iwarp" ? $2 ~ /:tcp/ : $2 ~ /:infiniband/ }
		transport == "roce" && $3 != 4791 || transport == "ib" && $2 !~ /^erf:/ { right = 0 }
		!right || $4 || $5 || $6 ~ /8388608/ || $7 == "0" || $8 == "0" || $9 == "0" { print; wrong = 1 }
		END { exit wrong }' "$2.fields"
}

# fields CAPTURE: without those of the frame but its time.
fields() { cut -d '|' -f 1,10- "$1.fields"; }

# --- Both: lines "NANOSECONDS MESSAGE LOCAL REMOTE DATA". ---

# Of the InfiniBand CM as the trace has them.
trace_messages() {
	jq -r 'select(.kind == "send" and has("local") and .message != "FIN") |
		"\(.time) \(.message) \(.local) \(.remote) \(.private_data // "")"' "$1"
}

# These leave what they give in REPLY, since there are many packets.
stripped() {
	REPLY=$1
	while [ "${REPLY%00}" != "$REPLY" ]; do
		REPLY=${REPLY%00}
	done
}

nanoseconds() { REPLY=$((10#${1/./})); }

names=([16]=REQ [17]=MRA [18]=REJ [19]=REP [20]=RTU [21]=DREQ [22]=DREP [23]=SIDR_REQ [24]=SIDR_REP)

mad_messages() {
	local time attribute local remote data mad

	fields "$1" | while IFS='|' read -r time attribute req rep1 rep2 rtu1 rtu2 rej1 rej2 dreq1 dreq2 drep1 drep2 \
		reqdata repdata rtudata rejdata dreqdata drepdata mad _; do
		[ -n "$attribute" ] || continue
		local=${req:-${rep1:-${rtu1:-${rej1:-${dreq1:-${drep1:-0}}}}}}
		remote=${rep2:-${rtu2:-${rej2:-${dreq2:-${drep2:-0}}}}}
		data=${reqdata:-${repdata:-${rtudata:-${rejdata:-${dreqdata:-$drepdata}}}}}
		# Of SIDR tshark shows the bytes.
		mad=${mad//:/}
		case $((attribute)) in
		23) local=0x${mad:0:8} data=${mad:104} ;;
		24) remote=0x${mad:0:8} data=${mad:192} ;;
		esac
		nanoseconds "$time"
		printf '%s %s %d %d ' "$REPLY" "${names[attribute]}" "$local" "$remote"
		stripped "${data//:/}"
		printf '%s\n' "$REPLY"
	done
}

tcp_messages() {
	local time flags req rep reject revision data

	fields "$1" | while IFS='|' read -r time flags req rep reject revision data _; do
		data=${data//:/}
		[ "${revision:-0}" -lt 2 ] || data=${data:8}
		nanoseconds "$time"
		case $((flags & 0x16)):${req:+req}:${rep:+rep}:$reject in
		2::*) printf '%s SYN\n' "$REPLY" ;;
		18::*) printf '%s SYN_ACK\n' "$REPLY" ;;
		20::* | 4::*) printf '%s RST\n' "$REPLY" ;;
		16:req:*) printf '%s MPA_REQ %s\n' "$REPLY" "$data" ;;
		16::rep:1 | 16::rep:True) printf '%s MPA_REJ %s\n' "$REPLY" "$data" ;;
		16::rep:*) printf '%s MPA_REP %s\n' "$REPLY" "$data" ;;
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

infiniband_data() {
	local time attribute opcode len padding name

	fields "$1" | cut -d '|' -f 1,2,21- | while IFS='|' read -r time attribute opcode len padding; do
		case $attribute:$opcode in
		:[0-5] | :22 | :23) name=SEND ;;
		:[6-9] | :10 | :11) name=WRITE ;;
		:1[3-6]) name=READ_REPLY ;;
		*) continue ;;
		esac
		nanoseconds "$time"
		printf '%s %s %s\n' "$REPLY" "$name" "$((${len:-0} - padding))"
	done | add_up
}

# A segment of TCP may have several FPDUs in it.
iwarp_data() {
	local time opcodes lengths name i

	fields "$1" | cut -d '|' -f 1,8,9 | while IFS='|' read -r time opcodes lengths; do
		read -ra opcodes <<<"$opcodes"
		read -ra lengths <<<"$lengths"
		nanoseconds "$time"
		for i in "${!opcodes[@]}"; do
			case $((opcodes[i])) in
			3 | 4) name=SEND header=18 ;;
			0) name=WRITE header=14 ;;
			2) name=READ_REPLY header=14 ;;
			*) continue ;;
			esac
			printf '%s %s %s\n' "$REPLY" "$name" "$((lengths[i] - header))"
		done
	done | add_up
}

same_data() {
	if [ "$1" = iwarp ]; then
		# What TCP sends again is no message again.
		diff <(trace_data "$2" | awk '$2 != "SEND" || !seen[$3]++') <(iwarp_data "$3")
	else
		diff <(trace_data "$2") <(infiniband_data "$3")
	fi
}

# --- Situations. ---

situation() {
	local name=$1 transport=$2 file=$work/$1-$2

	check "$name on $transport" exits 0 user "$seeing" "$name" "$transport" "$file.trace" "$file.pcap"
	check "the trace of $name on $transport" fits_schema "$file.trace"
	check "the capture of $name on $transport" decodes "$transport" "$file.pcap"
	check "the messages of $name on $transport" same_messages "$transport" "$file.trace" "$file.pcap"
	case $name in
	data | loss) check "the data of $name on $transport" same_data "$transport" "$file.trace" "$file.pcap" ;;
	esac
}
for transport in "${transports[@]}"; do
	for name in data reject refuse loss; do
		situation "$name" "$transport"
	done
done
situation sidr roce
situation sidr ib
# damaged TRANSPORT OFFSET: a capture with another byte there does not pass, which passes without it.
damaged() {
	local file=$work/damaged.pcap

	cp "$work/data-$1.pcap" "$file" && decodes "$1" "$file" && printf '\377' | dd of="$file" bs=1 seek="$2" conv=notrunc status=none || return
	! decodes "$1" "$file" >/dev/null 2>&1
}
check 'a wrong checksum of IP is seen, over UDP' damaged roce 62
check 'over TCP, too' damaged iwarp 62
check 'a packet that is cut is seen' damaged ib 32
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
	fits_schema "$work/two.trace" && decodes "$transport" "$work/two.pcap" || return
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
for transport in "${transports[@]}"; do
	check "rping on $transport, two processes" seen_by_two "$transport"
	if [ "$transport" = iwarp ]; then
		check 'as many FPDUs as messages' eval '
			[ "$(fields "$work/two.pcap" | cut -d "|" -f 8 | grep -c .)" -ge "$(trace_data "$work/two.trace" | wc -l)" ]'
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
	local transport=$1 role=$2 status=0
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
	decodes "$transport" "$work/one.pcap" || return
	# All that went out and all that came in; for a process that is gone its host answers, which is this process.
	jq -sc 'map(select(.kind == "send" or .kind == "recv") | .kind = "send") | unique_by(.packet)[]' \
		"$work/one.trace" >"$work/all.trace"
	if [ "$transport" = iwarp ]; then
		same_sums iwarp_data
	else
		diff <(trace_messages "$work/all.trace" | cut -d " " -f 2- | sort) \
		     <(mad_messages "$work/one.pcap" | cut -d " " -f 2- | sort) &&
		same_sums infiniband_data
	fi
}
for transport in "${transports[@]}"; do
	for role in server client; do
		for pull in on off; do
			check "the capture of a $role alone on $transport, pull $pull" eval '
				(export POLYCM_SIM_PULL=$pull; seen_by_one "$transport" "$role")'
		done
	done
done

finish
