/* SPDX-License-Identifier: BSD-2-Clause */
/* Scenario files: what a good one makes, and what is said about bad ones. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "link_world.h"
#include "providers/common/scenario_read.h"
#include "providers/soft/fabric/build.h"
#include "providers/soft/wire/mad.h"
#include "providers/sim/explore.h"
#include "providers/sim/scenario.h"
#include "tests/cmocka_all.h"

#define NODE(name, address)                                                                        \
	"{ name = \"" name "\"; devices = ( { addresses = \"" address "\"; } ); }"

/* libconfig 1.5 loses the text that it is reading when it meets an error there. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig\n";
}

static int close_all(void **state)
{
	sim_fake_close(state);
	assert_false(sim_shape_on);
	assert_false(sim_faults_on);
	return 0;
}

static int build(const char *text)
{
	return sim_scenario_build("test.cfg", text, strlen(text));
}

/* ------------------------------------------------------------------------
 * Good ones.
 */

static const char whole[] =
	"# a comment\n"
	"seed = 7;\n"
	"clock = \"virtual\";\n"
	"nodes = (\n"
	"	{ name = \"server\";\n"
	"	  devices = (\n"
	"		{ transport = \"ib\"; addresses = [\"10.0.0.1/24\", \"fd00::1/64\"];\n"
	"		  limits = { max_qp = 4; max_sge = 3; }; },\n"
	"		{ addresses = \"10.1.0.1/24\"; }\n"
	"	  ); },\n"
	"	" NODE("client", "10.1.0.2/24") "\n"
	");\n"
	"links = (\n"
	"	{ latency = \"2 ms\"; },\n"
	"	{ between = [\"server\", \"client\"]; latency = \"1.5 us\";\n"
	"	  bandwidth = \"8 kbit/s\"; },\n"
	"	{ between = [\"client\", \"*\"]; loss = 0.25; duplication = 1; }\n"
	");\n"
	"faults = (\n"
	"	{ action = \"lose\"; from = \"client\"; to = \"server\"; message = \"req\"; nth = 2;\n"
	"	  times = 3; after = \"1 ms\"; until = \"1 min\"; probability = 0.5; },\n"
	"	{ action = \"reject\"; message = \"REQ\"; reason = \"invalid_service_id\"; },\n"
	"	{ action = \"fail\"; message = \"create_qp\"; error = \"EMFILE\"; },\n"
	"	{ action = \"port_down\"; on = \"server\"; device = \"sim1\"; after = \"3 s\";\n"
	"	  delay = \"10 ns\"; }\n"
	");\n";

static void test_nodes(void **state)
{
	const struct sim_device *device;
	const struct sim_node *server;

	(void)state;
	assert_int_equal(build(whole), 0);
	server = sim_node_by_name("server");
	assert_non_null(server);
	assert_ptr_equal(server, sim_first_node());
	assert_int_equal(server->num_addresses, 3);
	device = server->devices;
	assert_string_equal(device->rules->name, "ib");
	assert_int_equal(device->attr.max_qp, 4);
	assert_int_equal(device->attr.max_sge, 3);
	assert_string_equal(device->next->rules->name, "roce");
	assert_string_equal(device->next->vdev.device.name, "sim1");
	assert_string_equal(sim_node_by_name("client")->devices->vdev.device.name, "sim2");
	assert_int_equal(sim_fake_log_count(POLYCM_LOG_ERROR), 0);
}

static void test_faults(void **state)
{
	const struct sim_node *server, *client;
	unsigned int hits;

	(void)state;
	assert_int_equal(build(whole), 0);
	server = sim_node_by_name("server");
	client = sim_node_by_name("client");
	assert_int_equal(sim_fault_call(client, SIM_CALL_CREATE_QP), -EMFILE);
	assert_int_equal(sim_fault_call(client, SIM_CALL_CREATE_CQ), 0);
	for (uint32_t number = 1; number <= 4; number++)
		assert_int_equal(sim_fault_hits(number, &hits), 0);
	assert_int_equal(sim_fault_hits(5, &hits), -ENOENT);
	sim_unlock();
	assert_int_equal(sim_advance(UINT64_C(3000000005)), 0);
	assert_int_equal(server->devices->next->ports[0].state, IBV_PORT_DOWN);
	assert_int_equal(server->devices->ports[0].state, IBV_PORT_ACTIVE);
	assert_int_equal(sim_advance(5), 0);
	sim_lock();
	assert_int_equal(server->devices->next->ports[0].state, IBV_PORT_ACTIVE);
}

/* How long a packet of four bytes takes. */
static uint64_t arrived_at;

static void note_time(const struct sim_packet *packet)
{
	(void)packet;
	arrived_at = sim_now();
}

static uint64_t takes(const char *from, const char *to)
{
	uint64_t start = sim_now();
	struct sim_port *a = &sim_node_by_name(from)->devices->ports[0];
	struct sim_port *b = &sim_node_by_name(to)->devices->ports[0];

	sim_link_set_handler(SIM_PACKET_UD, note_time);
	assert_int_equal(sim_link_send(a, b, 0, SIM_PACKET_UD, "abcd", 4, NULL, 0, 0), 0);
	sim_unlock();
	assert_int_equal(sim_advance(SIM_MS(1000)), 0);
	sim_lock();
	sim_link_set_handler(SIM_PACKET_UD, NULL);
	return arrived_at - start;
}

/* There is no such byte in the message that it turns out to be. */
static void test_explored_bytes(void **state)
{
#define CORRUPT(nth, offset)                                                                       \
	"{ action = \"corrupt\"; message = \"REQ\"; from = \"a\"; nth = " #nth                       \
	"; offset = " #offset "; value = 16; }"
	static const char text[] =
		"nodes = ( " NODE("a", "10.0.0.1/24") ", " NODE("b", "10.0.0.2/24") " );"
		"explore = { faults = ( " CORRUPT(1, 255) ", " CORRUPT(2, 256) ", "
		CORRUPT(3, 2147483647) " ); };";
	const struct sim_port *from, *to;
	struct sim_fate fate;

	(void)state;
	sim_explore_listening = true;
	assert_int_equal(build(text), 0);
	sim_explore_fabric();
	from = &sim_node_by_name("a")->devices->ports[0];
	to = &sim_node_by_name("b")->devices->ports[0];
	for (unsigned int nth = 1; nth <= 3; nth++) {
		sim_fault_ask_packet(from, to, SIM_MSG_REQ, CM_MAD_SIZE, &fate);
		assert_int_equal(fate.corrupted, nth == 1);
		assert_int_equal(fate.offset, nth == 1 ? 255 : 0);
	}
	assert_int_equal(build("explore = { faults = (); };"), 0);
	sim_explore_listening = false;
	sim_fault_explorer = NULL;
}

static void test_links(void **state)
{
	(void)state;
	assert_int_equal(build("nodes = (" NODE("a", "10.0.0.1/24") "," NODE("b", "10.0.0.2/24") ");"
			       "links = ( { latency = \"2 ms\"; },"
			       "{ between = [\"a\", \"b\"]; latency = \"1.5 us\";"
			       "  bandwidth = \"64 kbit/s\"; },"
			       "{ between = [\"b\", \"b\"]; });"), 0);
	assert_int_equal(takes("a", "a"), SIM_MS(2));
	assert_int_equal(takes("a", "b"), 1500 + SIM_US(500));
	assert_int_equal(takes("b", "b"), 1000);
}

/* Only faults: for whatever fabric there is. */
static void test_without_nodes(void **state)
{
	const char *const words[] = { "lose", "LOSE", "Lose" };
	struct sim_device *device;
	struct sim_node *node;
	char text[128];

	(void)state;
	assert_int_equal(sim_node_add("host", &node), 0);
	assert_int_equal(sim_device_add(node, "sim0", &sim_fake_roce, &device), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(words); i++) {
		snprintf(text, sizeof(text), "faults = ({ action = \"%s\"; message = \"REQ\"; });",
			 words[i]);
		assert_int_equal(build(text), 0);
	}
	assert_int_equal(build("faults = ({ action = \"crash\"; after = \"1 s\"; });"), 0);
	assert_true(sim_faults_on);
	assert_int_equal(build(""), 0);
	assert_int_equal(build("nodes = (); links = (); faults = ();"), 0);
}

static void test_times(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;		/* 0: wrong */
	} rows[] = {
		{ "1 ns", 1 }, { "5us", 5000 }, { "1.5 us", 1500 }, { "0.000000001 s", 1 },
		{ "2 min", UINT64_C(120000000000) }, { "4000 s", UINT64_C(4000000000000) },
		{ "1.5 ns", 0 }, { "0.0000000001 s", 0 }, { "5", 0 }, { "us", 0 }, { "", 0 },
		{ "-1 s", 0 }, { " 1 s", 0 }, { "1 s ", 0 }, { "1 S", 0 }, { "1 sec", 0 },
		{ "1. s", 0 }, { ".5 s", 0 }, { "1e3 s", 0 }, { "18446744073709551616 ns", 0 },
		{ "18446744073709552 us", 0 },
	};
	char text[200];

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		int r;

		close_all(state);
		sim_fake_open(state);
		snprintf(text, sizeof(text), "nodes = (" NODE("a", "10.0.0.1/24") ");"
			 "links = ({ latency = \"%s\"; });", rows[i].text);
		r = build(text);
		assert_int_equal(r, rows[i].ns ? 0 : -EINVAL);
		if (!r && rows[i].ns < SIM_MS(1000))
			assert_int_equal(takes("a", "a"), rows[i].ns);
	}
}

/* ------------------------------------------------------------------------
 * Bad ones.
 */

#define AB "nodes = (" NODE("a", "10.0.0.1/24") ",\n" NODE("b", "10.0.0.2/24") ");\n"

static const struct {
	const char *text, *line;
} bad_files[] = {
	/* Syntax. */
	{ "nodes = (", "test.cfg:1: expected a value, found the end of the file: a bracket of line 1 "
		       "is not closed" },
	{ "seed = 1;\nclock = ;", "test.cfg:2: expected a value for 'clock', found ';'" },
	{ "clock = virtual;", "test.cfg:1: expected a value for 'clock' (text stands in quotes), found "
			      "'virtual'" },
	{ "seed = 1;\nnodes ( );", "test.cfg:2: expected '=' after 'nodes', found '('" },
	{ "# (((((((((((((((((((((((((((\nseed 1;", "test.cfg:2: expected '=' after 'seed', found '1'" },
	{ "/* } \n } */ nodes = ( { name = \"}\" }\n{ name = \"b\"; } );",
	  "test.cfg:3: expected ',' or ')', found '{'" },
	{ "nodes = ( { name = \"a\"; ) );", "test.cfg:1: expected a member or '}', found ')'" },
	{ "nodes = (\n{ name = \"a;\n}\n);", "test.cfg:2: the text in quotes that begins here does not "
						 "end" },
	{ "seed = 1;\nfaults = [\n{ action = \"lose\"; } ];",
	  "test.cfg:2: faults = [ ... ]: expected a list of groups: ( { ... }, { ... } )" },
	{ "links = [ 5, { } ]", "test.cfg:1: links = [ ... ]: expected a list of groups: "
				"( { ... }, { ... } )" },
	{ "nodes = ( { name = \"a\"; devices = [ { addresses = \"10.0.0.1/24\"; } ]; } );",
	  "test.cfg:1: devices = [ ... ]: expected a list of groups: ( { ... }, { ... } )" },
	{ "nodes = (\n[ { name = \"a\"; } ] );",
	  "test.cfg:2: [ ... ]: expected a list of groups: ( { ... }, { ... } )" },
	{ "links = ( { between = [ [ \"a\", \"b\" ] ]; } );",
	  "test.cfg:1: between = [ ... ]: expected a list: ( ... ), since brackets are inside of it" },
	{ "faults = [ {", "test.cfg:1: faults = [ ... ]: expected a list of groups: "
			  "( { ... }, { ... } )" },
	{ "faults = [ ];",
	  "test.cfg:1: faults = [ ... ]: expected a list of groups: ( { ... }, { ... } )" },
	{ "seed = 1; }", "test.cfg:1: expected the name of a member, such as nodes, found '}'" },
	{ "\"seed\" = 1;", "test.cfg:1: expected the name of a member, such as nodes, found \"seed\"" },
	{ "links = ( { between = [ \"a\" \"b\", 5 ]; } );",
	  "test.cfg:1: mismatched element type in array" },
	{ "seed = 1;\nseed = 2;", "test.cfg:2: duplicate setting name" },
	{ "seed = 1;\n  @include \"/etc/passwd\"\n",
	  "test.cfg:2: @include: a scenario is one file" },
	{ "nodes = ((((((((((((((((((", "test.cfg:1: too many brackets inside of each other" },
	/* The top. */
	{ "\nseeds = 1;", "test.cfg:2: a scenario has no member 'seeds'; nearest: 'seed'" },
	{ "seed = \"1\";",
	  "test.cfg:1: seed = \"1\": expected a number from 0 to 9223372036854775807" },
	{ "seed = -1;",
	  "test.cfg:1: seed = -1: expected a number from 0 to 9223372036854775807" },
	{ "clock = \"fast\";",
	  "test.cfg:1: clock = \"fast\": expected \"virtual\" or \"real\"" },
	{ "nodes = { };",
	  "test.cfg:1: nodes = { ... }: expected a list of groups: ( { ... }, { ... } )" },
	{ "links = ( { },\n5 );", "test.cfg:2: links: element 2 is 5: expected a group: { ... }" },
	{ "faults = true;",
	  "test.cfg:1: faults = true: expected a list of groups: ( { ... }, { ... } )" },
	/* Nodes. */
	{ "nodes = (\n{ });", "test.cfg:2: a node needs a name" },
	{ "nodes = ( { name = 5; } );",
	  "test.cfg:1: name = 5: expected text in \"quotes\"" },
	{ "nodes = ( { name = \"a\"; } );", "test.cfg:1: node \"a\" needs devices" },
	{ "nodes = ( { name = \"a\"; devices = (); } );",
	  "test.cfg:1: node \"a\" needs devices" },
	{ "nodes = ( { name = \"a\"; device = (); } );",
	  "test.cfg:1: a node has no member 'device'; nearest: 'devices'" },
	{ "nodes = ( { name = \"a\"; devices = ( { } ); } );",
	  "test.cfg:1: a device needs addresses" },
	{ "nodes = ( { name = \"a\"; devices = ( { addresses = []; } ); } );",
	  "test.cfg:1: a device needs addresses" },
	{ "nodes = ( { name = \"a\"; devices = ( { addresses = 7; } ); } );",
	  "test.cfg:1: addresses = 7: expected an address such as \"10.0.0.1/24\"" },
	{ "nodes = ( { name = \"a\"; devices = (\n{ transport = \"token-ring\";\n"
	  "addresses = \"10.0.0.1/24\"; } ); } );",
	  "test.cfg:2: no installed provider has the rules of transport \"token-ring\"" },
	{ "nodes = ( { name = \"a\"; devices = ( { addresses = \"10.0.0.300\"; } ); } );",
	  "test.cfg:1: addresses = \"10.0.0.300\": no address as in 10.0.0.1/24 or fd00::1/64" },
	{ "nodes = ( { name = \"a\"; devices = ( { addresses = \"10.0.0.1/24\"; } );\n"
	  "routes = ( { to = \"10.0.0.9/32\"; } ); } );",
	  "test.cfg:2: a route needs `to' and `source'" },
	{ "nodes = ( { name = \"a\"; devices = ( { addresses = \"10.0.0.1/24\"; } );\n"
	  "routes = ( { to = \"10.0.0.9/33\"; source = \"10.0.0.1\"; } ); } );",
	  "test.cfg:2: route to \"10.0.0.9/33\": no addresses as in 10.0.0.0/8 or fd00::/64" },
	{ "nodes = ( { name = \"a\"; devices = ( { addresses = \"10.0.0.1/24\"; } );\n"
	  "routes = ( { to = \"10.0.0.9/32\"; source = \"10.0.0.2\"; } ); } );",
	  "test.cfg:2: route to \"10.0.0.9/32\": its source is no address of the node" },
	{ "nodes = ( { name = \"a\"; devices = ( { addresses = \"10.0.0.1/24\"; } );\n"
	  "routes = ( { to = \"fd00::/64\"; source = \"10.0.0.1\"; } ); } );",
	  "test.cfg:2: route to \"fd00::/64\": its source is of another address family" },
	{ "nodes = ( { name = \"a\"; devices = ( { addresses = \"10.0.0.1/24\"; } );\n"
	  "interfaces = ( { name = \"x\"; } ); } );",
	  "test.cfg:2: an interface needs a name and an address" },
	{ "nodes = ( { name = \"a\"; devices = ( { addresses = \"10.0.0.1/24\"; } );\n"
	  "interfaces = ( { name = \"x\"; address = \"10.0.0.1/8\"; } ); } );",
	  "test.cfg:2: interface \"x\": a node has that address" },
	{ "nodes = (" NODE("a", "10.0.0.1/24") ",\n" NODE("a", "10.0.0.2/24") ");",
	  "test.cfg:2: name = \"a\": the name is taken" },
	{ "nodes = (" NODE("a", "10.0.0.1/24") ",\n" NODE("b", "10.0.0.1/24") ");",
	  "test.cfg:2: addresses = \"10.0.0.1/24\": a node has that address" },
	{ "nodes = ( { name = \"a\"; devices = ( { addresses = \"10.0.0.1/24\";\n"
	  "limits = { max_qps = 1; }; } ); } );",
	  "test.cfg:2: limits has no member 'max_qps'; nearest: 'max_qp'" },
	/* Links. */
	{ AB "links = ( { latency = 5; } );",
	  "test.cfg:3: latency = 5: expected a time such as \"5 us\" (ns, us, ms, s, min)" },
	{ AB "links = ( {\nlatency = \"5 parsecs\"; } );",
	  "test.cfg:4: latency = \"5 parsecs\": expected a time such as \"5 us\" "
	  "(ns, us, ms, s, min)" },
	{ AB "links = ( { bandwidth = \"10 Gb\"; } );",
	  "test.cfg:3: bandwidth = \"10 Gb\": expected a rate such as \"10 Gbit/s\" "
	  "(bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s)" },
	{ AB "links = ( { loss = 1.5; } );",
	  "test.cfg:3: loss = 1.5: expected a number from 0 to 1" },
	{ AB "links = ( { between = [\"a\", \"c\"]; } );",
	  "test.cfg:3: \"c\": expected the name of a node: a, b" },
	{ AB "links = ( { between = [\"a\"]; } );",
	  "test.cfg:3: between = [ ... ]: expected two nodes: [ \"a\", \"b\" ]" },
	{ AB "links = ( { between = \"a\"; } );",
	  "test.cfg:3: between = \"a\": expected two nodes: [ \"a\", \"b\" ]" },
	{ AB "links = ( { latencies = \"5 us\"; } );",
	  "test.cfg:3: a link has no member 'latencies'; nearest: 'latency'" },
	{ AB "links = ( { latency = \"5000000000 s\"; } );",
	  "test.cfg:3: this link: a latency or jitter of more than 73 years" },
	/* Faults. */
	{ AB "faults = ( { message = \"REQ\"; } );",
	  "test.cfg:3: a fault needs an action, such as \"lose\"" },
	{ AB "faults = ( { action = \"loose\"; } );",
	  "test.cfg:3: action = \"loose\": no such action; nearest: 'lose'" },
	{ AB "faults = ( { action = \"lose\";\nmessage = \"REK\"; } );",
	  "test.cfg:4: this fault: there is no message, call or lookup 'REK'; nearest: 'REQ'" },
	{ AB "faults = ( { action = \"lose\"; message = \"REQUEST\"; } );",
	  "test.cfg:3: this fault: there is no message, call or lookup 'REQUEST'; nearest: 'REQ'" },
	{ AB "faults = ( { action = \"lose\"; message = \"tcpp\"; } );",
	  "test.cfg:3: this fault: there is no message, call or lookup 'tcpp'; nearest: 'tcp'" },
	{ "explore = { messages = [ \"REQ\", \"REPLY\" ]; };",
	  "test.cfg:1: messages: there is no message 'REPLY'; nearest: 'REP'" },
#define DATA_NAMES "SEND, WRITE, READ, READ_REPLY, ATOMIC, ACK, NAK, RNR_NAK, UD"
#define TCP_NAMES "TCP_SYN, TCP_SYN_ACK, TCP_ACK, TCP_DATA, TCP_FIN, TCP_RST"
#define MESSAGE_NAMES "REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP, MPA_REQ, MPA_REP, "   \
		      "MPA_REJ, FIN, RST, " DATA_NAMES ", " TCP_NAMES
#define GROUP_NAMES "and the groups cm, data, tcp, any"
	{ AB "faults = ( { action = \"lose\"; message = \"whatever\"; } );",
	  "test.cfg:3: this fault: there is no message, call or lookup 'whatever'; there are: "
	  MESSAGE_NAMES ", create_id, bind, resolve_addr, resolve_route, listen, connect, accept, "
	  "reject, disconnect, create_qp, create_cq, reg_mr, alloc_pd, create_srq, join_multicast, "
	  "path, neighbour, " GROUP_NAMES },
	{ "explore = { messages = [ \"connect\" ]; };",
	  "test.cfg:1: messages: 'connect' is a call, and no message; there are: " MESSAGE_NAMES
	  ", " GROUP_NAMES },
	{ "explore = { messages = \"path\"; };",
	  "test.cfg:1: messages: 'path' is a lookup, and no message; there are: " MESSAGE_NAMES
	  ", " GROUP_NAMES },
	{ "explore = { data = { messages = \"REP\"; }; };",
	  "test.cfg:1: messages: there is no message of data 'REP'; there are: " DATA_NAMES
	  ", and the groups data, any" },
	{ AB "faults = ( { action = \"lose\"; form = \"a\"; } );",
	  "test.cfg:3: a fault has no member 'form'; nearest: 'from'" },
	{ AB "faults = ( { action = \"lose\"; from = \"c\"; } );",
	  "test.cfg:3: from = \"c\": expected the name of a node: a, b" },
	{ AB "faults = ( { action = \"crash\"; on = \"c\"; } );",
	  "test.cfg:3: on = \"c\": expected the name of a node: a, b" },
	{ AB "faults = ( { action = \"crash\"; } );",
	  "test.cfg:3: this fault: crash needs a node that it happens to" },
	{ AB "faults = ( { action = \"lose\"; nth = -1; } );",
	  "test.cfg:3: nth = -1: expected a number from 0 to 4294967295" },
	{ AB "faults = ( { action = \"lose\"; probability = 0; } );",
	  "test.cfg:3: probability = 0: a fault that never happens" },
	{ AB "faults = ( { action = \"delay\"; delay = 5; } );",
	  "test.cfg:3: delay = 5: expected a time such as \"5 us\" (ns, us, ms, s, min)" },
	{ AB "faults = ( { action = \"reject\"; reason = \"because\"; } );",
	  "test.cfg:3: reason = \"because\": expected a REJ's reason, such as 8 or "
	  "\"invalid_service_id\"; there are: "
	  "no_qp, no_resources, timeout, unsupported, invalid_comm_id, "
	  "invalid_comm_instance, invalid_service_id, invalid_transport_type, stale_conn, "
	  "invalid_gid, invalid_lid, invalid_sl, invalid_traffic_class, invalid_hop_limit, "
	  "invalid_packet_rate, invalid_alt_gid, invalid_alt_lid, port_redirect, "
	  "invalid_mtu, insufficient_resp_resources, consumer_defined, invalid_rnr_retry, "
	  "duplicate_local_comm_id, invalid_class_version, invalid_flow_label, "
	  "vendor_option_not_supported" },
	{ AB "faults = ( { action = \"reject\"; reason = \"stale_con\"; } );",
	  "test.cfg:3: reason = \"stale_con\": expected a REJ's reason, such as 8 or "
	  "\"invalid_service_id\"; nearest: 'stale_conn'" },
	{ AB "faults = ( { action = \"reject\"; reason = 0; } );",
	  "test.cfg:3: reason = 0: expected a REJ's reason, such as 8 or "
	  "\"invalid_service_id\"" },
	{ AB "faults = ( { action = \"fail\"; message = \"bind\"; error = \"EWHAT\"; } );",
	  "test.cfg:3: error = \"EWHAT\": expected an errno, such as \"ENOMEM\"; there are: "
	  "EACCES, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, EALREADY, EBADF, "
	  "EBUSY, ECONNABORTED, ECONNREFUSED, ECONNRESET, EEXIST, EFAULT, EHOSTUNREACH, "
	  "EINTR, EINVAL, EIO, EISCONN, EMFILE, EMSGSIZE, ENETDOWN, ENETUNREACH, ENFILE, "
	  "ENOBUFS, ENODATA, ENODEV, ENOENT, ENOMEM, ENOSPC, ENOSYS, ENOTCONN, ENXIO, "
	  "EOPNOTSUPP, EPERM, EPROTO, EPROTONOSUPPORT, ETIMEDOUT" },
	{ AB "faults = ( { action = \"fail\"; message = \"bind\"; error = 5000; } );",
	  "test.cfg:3: this fault: 5000 is no errno" },
	{ AB "faults = ( { action = \"corrupt\"; value = 256; } );",
	  "test.cfg:3: value = 256: expected a byte, 0 to 255" },
	{ AB "faults = ( { action = \"reject\"; message = \"RTU\"; reason = 8; } );",
	  "test.cfg:3: this fault: reject is for REQ, REP, MPA_REQ, SEND, WRITE, READ, ATOMIC, "
	  "TCP_SYN, TCP_SYN_ACK and TCP_DATA, not for 'RTU'" },
};

static void test_bad_files(void **state)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(bad_files); i++) {
		close_all(state);
		sim_fake_open(state);
		assert_int_equal(build(bad_files[i].text), -EINVAL);
		assert_string_equal(sim_fake_log(POLYCM_LOG_ERROR), bad_files[i].line);
		assert_int_equal(sim_fake_log_count(POLYCM_LOG_ERROR), 1);
	}
}

/* Whatever stands in a file, the line about it is one line. */
static void test_strange_texts(void **state)
{
	(void)state;
	assert_int_equal(build("clock = \"a\\nb\\x1bc\";"), -EINVAL);
	assert_string_equal(sim_fake_log(POLYCM_LOG_ERROR),
			    "test.cfg:1: clock = \"a?b?c\": expected \"virtual\" or \"real\"");
	assert_int_equal(sim_scenario_build("test.cfg", "seed\0 = 1;", 10), -EINVAL);
	assert_string_equal(sim_fake_log(POLYCM_LOG_ERROR), "test.cfg: not a text file");
}

/* ------------------------------------------------------------------------
 * Files.
 */

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void test_trailing_comma(void **state)
{
	static const struct {
		const char *text, *why;
	} files[] = {
		{ "nodes = (\n5,\n);", "expected a value after ',', found ')'" },
		{ "a = 1;\n\nb = [ 5, ];", "expected a value after ',', found ']'" },
	};
	unsigned int line = 0;
	char why[200];

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		assert_true(scenario_syntax(files[i].text, false, &line, why, sizeof(why)));
		assert_false(scenario_syntax(files[i].text, true, &line, why, sizeof(why)));
		assert_string_equal(why, files[i].why);
		assert_int_equal(line, 3);
	}
	assert_true(scenario_syntax("a = ( { b = 1, }, 5 );", true, &line, why, sizeof(why)));
}

static void test_files(void **state)
{
	struct sim_scenario_head head;
	char path[512], line[600];

	(void)state;
	sim_fake_make_runtime_dir();
	snprintf(path, sizeof(path), "%s", sim_fake_path("test.cfg"));
	assert_int_equal(sim_scenario_peek(path, &head), -ENOENT);
	snprintf(line, sizeof(line), "%s: No such file or directory", path);
	assert_string_equal(sim_fake_log(POLYCM_LOG_ERROR), line);

	write_file(path, whole);
	assert_int_equal(sim_scenario_peek(path, &head), 0);
	assert_true(head.has_seed && head.has_clock && head.has_nodes);
	assert_int_equal(head.seed, 7);
	assert_int_equal(head.clock, SIM_CLOCK_VIRTUAL);
	assert_int_equal(sim_scenario_build(path, NULL, 0), 0);

	write_file(path, "clock = \"real\"; nodes = ();");
	assert_int_equal(sim_scenario_peek(path, &head), 0);
	assert_false(head.has_seed || head.has_nodes);
	assert_int_equal(head.clock, SIM_CLOCK_REAL);

	write_file(path, "seed = x;");
	assert_int_equal(sim_scenario_peek(path, &head), -EINVAL);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(sim_scenario_peek(path, &head), -EISDIR);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(sim_scenario_peek("/dev/zero", &head), -EFBIG);
	sim_fake_remove_runtime_dir();
}

#define test(f) cmocka_unit_test_setup_teardown(f, sim_fake_open, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_nodes),
		test(test_faults),
		test(test_explored_bytes),
		test(test_links),
		test(test_without_nodes),
		test(test_times),
		test(test_bad_files),
		test(test_strange_texts),
		test(test_trailing_comma),
		test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
