# SPDX-License-Identifier: BSD-2-Clause
# Reads a trace and prints each line that is not as polycm-trace(5) has it.

def is_number: type == "number" and . == floor and . >= 0;
def is_hex: type == "string" and test("^([0-9a-f]{2})*$");
def is_address: type == "string" and test("^([0-9.]+|\\[[0-9a-f:.]+\\]):[0-9]+$");

def numbers: ["time", "process", "packet", "id", "local", "remote", "qpn", "dst_qpn", "srqn", "psn",
	"len", "imm", "qkey", "rnr_timer", "responder_resources", "initiator_depth", "retry",
	"rnr_retry", "ack_delay", "service_timeout", "ece_vendor", "ece_options", "revision", "ird",
	"ord", "child", "private_data_len", "until", "rule", "for", "round_trip"];
def texts: ["kind", "node", "from", "to", "message", "service", "event", "of", "state", "was", "timer",
	"action", "what", "device", "transport", "address", "port", "answers", "rejected", "program"];
def timers: ["resolve_addr", "resolve_route", "join_multicast", "retransmit", "timewait", "syn",
	"mpa_request", "mpa_reply", "ack", "rnr"];

def fits($name): . as $value |
	if numbers | index($name) then $value | is_number
	elif texts | index($name) then $value | type == "string"
	elif $name == "status" then $value | type == "number"
	elif $name == "reason" then $value | is_number or type == "string"
	elif $name == "offset" then type == "number" and . == floor
	elif $name == "host" then is_hex and length == 32
	elif $name == "private_data" then $value | is_hex
	elif $name == "src" or $name == "dst" then $value | is_address
	else false end;

# What a line of each kind must have.
def needed: {
	address: ["node", "action", "device", "transport", "address"],
	process: ["process", "program"],
	host: ["node", "host"],
	clock: ["node", "host", "round_trip", "offset"],
	state: ["node", "of", "state", "was"],
	event: ["node", "id", "event", "status"],
	send: ["packet", "from", "to", "message"],
	recv: ["packet", "from", "to", "message"],
	timer: ["node", "timer", "action"],
	fault: ["rule", "action"],
	node: ["node", "what"],
	port: ["node", "port", "state"],
	device: ["node", "device", "what"],
	mac: ["node", "address"]
};

def is_good: . as $line | type == "object" and
	(keys_unsorted[0] == "time") and
	(keys_unsorted[if has("process") then 2 else 1 end] == "kind") and
	(needed[$line.kind] != null) and
	all(needed[$line.kind][]; in($line)) and
	all(to_entries[]; .key as $key | .value | fits($key)) and
	(if .kind == "timer" then (timers | index($line.timer)) and
		(["armed", "fired", "ended"] | index($line.action)) and
		(has("until") == ($line.action == "armed")) and (has("id") or has("qpn"))
	 elif .kind == "state" then (["id", "cm", "qp"] | index($line.of)) and
		has(if $line.of == "qp" then "qpn" else "id" end) and $line.state != $line.was
	 elif .kind == "clock" or (has("offset") | not) then true
	 else .offset >= 0 end);

inputs | select(is_good | not)
