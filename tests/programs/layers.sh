#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Layers around the simulator: rping with calls that fail and events that are late, lost or changed, and with all of
# that written down.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99

need rping jq
export POLYCM_SIM_FABRIC=test-$$
cd "$work" || exit 99

# client STATUS PROVIDERS RULES: a server without layers, and a client with these, which ends with that status.
client() {
	local status=$1 providers=$2 rules=$3 result=1

	mkdir -p "$work/server"
	if start "$work/server" "${command[@]}" run --provider sim --log info -- rping -s -C 3 -v -V; then
		POLYCM_FAULT_RULES=$rules POLYCM_TRACE_FILE=$work/trace exits "$status" polycm run \
			--provider "$providers" --log info -- rping -c -a 127.0.0.1 -C 3 -v -V
		result=$?
		[ "$status" -ne 0 ] || wait "$server" || result=1
	fi
	stop_started
	wait
	return $result
}

pings() { client 0 "$@" && counts "$work/out" 3 '^ping data: rdma-ping-[0-9]: '; }
# traced FILTER: the filter of jq is true of one line at least.
traced() { jq -es "map(select($1)) | length > 0" "$work/trace" >/dev/null; }

check 'a trace has calls and events' eval 'pings "trace;sim" "" &&
	traced ".kind == \"call\" and .call == \"connect\" and .result == 0" &&
	traced ".kind == \"event\" and .event == \"CONNECT_RESPONSE\""'
check 'it can be drawn' eval 'exits 0 polycm timeline "$work/trace" && has "$work/out" "connect()" &&
	has "$work/out" "CONNECT_RESPONSE"'
check 'late events and calls do no harm' eval 'pings "trace;fault;sim" \
	"{ action = \"delay\"; message = \"events\"; delay = \"2 ms\"; },
	 { action = \"delay\"; message = \"connect\"; delay = \"1 ms\"; }" &&
	traced ".event == \"ROUTE_RESOLVED\" and .hold == 2000000" &&
	has "$work/err" "fault 2: connect comes late"'
check 'a call fails' eval 'client 255 "trace;fault;sim" \
	"{ action = \"fail\"; message = \"resolve_route\"; error = \"ENOBUFS\"; }" &&
	has "$work/err" "No buffer space available" && traced ".call == \"resolve_route\" and .result == -105"'
check 'an event becomes another' eval 'client 255 "fault;sim" \
	"{ action = \"change\"; message = \"ROUTE_RESOLVED\"; event = \"ROUTE_ERROR\"; status = \"ETIMEDOUT\"; }" &&
	has "$work/err" "ROUTE_ERROR, error -110"'

check 'a rule that never happened is told' eval 'POLYCM_LOG=warn pings "fault;sim" \
	"{ action = \"fail\"; message = \"migrate\"; },
	 { action = \"delay\"; message = \"connect\"; nth = 7; delay = \"1 ms\"; }" &&
	has "$work/err" "POLYCM_FAULT_RULES:1: fault 1 has never happened: nothing matched it" \
		"fault 2 has never happened: only 1 matched, and nth is 7"'

# refused RULE TEXT: it is, with that in the line that says so.
refused() {
	! POLYCM_FAULT_RULES=$1 polycm run --provider 'fault;sim' -- rping -c -a 127.0.0.1 -C 1 >"$work/out" 2>"$work/err" &&
		has "$work/err" "POLYCM_FAULT_RULES:1: $2"
}

check 'what needs a wire is refused' eval \
	'refused "{ action = \"duplicate\"; message = \"REQ\"; }" "action = \"duplicate\" needs a simulated wire" &&
	refused "{ action = \"lose\"; message = \"REQ\"; }" "message = \"REQ\" needs a simulated wire: here are calls and events; there are: create_id, bind"'
check 'a call that no layer sees' eval \
	'refused "{ action = \"fail\"; message = \"create_qp\"; }" \
	"message = \"create_qp\": only the simulator can let that fail; there are: create_id, bind, resolve_addr, " &&
	lacks "$work/err" "ESTABLISHED"'
check 'an event that is none' eval \
	'refused "{ action = \"change\"; message = \"REJECTED\"; event = \"UNREACHEABLE\"; }" \
	"event = \"UNREACHEABLE\": no such event; nearest: '"'UNREACHABLE'"'"'
check 'a call by its whole name' eval \
	'refused "{ action = \"fail\"; message = \"rdma_connect\"; }" \
	"message = \"rdma_connect\": no such call or event; nearest: '"'connect'"'"'
check 'mistakes are told' eval \
	'refused "{ action = \"fail\"; message = \"conect\"; }" "message = \"conect\": no such call or event; nearest: '"'connect'"'" &&
	refused "{ action = \"fail\"; message = \"ESTABLISHED\"; }" "events do not fail"'

printf 'faults = (\n  { action = "fail"; message = "bind"; error = "EACCES"; }\n);\n' >"$work/faults.cfg"
check 'polycm run --faults' eval 'exits 255 polycm run --faults faults.cfg --provider sim -- rping -s -a 127.0.0.1 -C 1 &&
	has "$work/err" "Permission denied"'
finish
