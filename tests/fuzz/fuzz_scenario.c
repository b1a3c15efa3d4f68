/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_scenario.c - bytes as a scenario file: it makes a fabric, or is refused
 * with exactly one line; either way it all goes again, after some time in which
 * its rules at times have done what they say.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "providers/soft/host/host.h"
#include "fuzz.h"
#include "providers/soft/faults/fault.h"
#include "providers/soft/link/shape.h"
#include "providers/sim/scenario.h"
#include "tests/cmocka_all.h"
#include "tests/unit/sim_fake.h"

/* libconfig 1.5 loses the text that it is reading when it meets an error there. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig\n";
}

const char fuzz_name[] = "scenario";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int r;

	sim_fake_init();
	assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, 1), 0);
	sim_lock();
	assert_int_equal(sim_fabric_begin(), 0);
	r = sim_scenario_build("fuzz.cfg", (const char *)data, size);
	assert_int_equal(sim_fake_log_count(POLYCM_LOG_ERROR), r < 0);
	assert_true(r < 0 || !strchr(sim_fake_log(POLYCM_LOG_ERROR), '\n'));
	if (!r) {
		sim_unlock();
		assert_int_equal(sim_advance(SIM_MS(100)), 0);
		sim_lock();
	}
	sim_fabric_close();
	assert_false(sim_faults_on || sim_shape_on);
	sim_unlock();
	sim_engine_stop();
	return 0;
}

#define NODE(name, address)                                                                        \
	"{ name = \"" name "\"; devices = ( { addresses = \"" address "\"; } ); }"
#define TWO "nodes = (" NODE("a", "10.0.0.1/24") "," NODE("b", "fd00::2/64") ");\n"

void fuzz_seeds(void (*put)(const char *name, const uint8_t *data, size_t size))
{
	static const struct {
		const char *name, *text;
	} seeds[] = {
		{ "empty", " " },
		{ "head", "seed = 7; clock = \"virtual\";" },
		{ "lose", "faults = ( { action = \"lose\"; message = \"REQ\"; nth = 1; } );" },
		{ "nodes", TWO },
		{ "devices", "nodes = ( { name = \"a\"; devices = ( { transport = \"ib\";\n"
		  "addresses = [ \"10.0.0.1/24\", \"fd00::1/64\" ];\n"
		  "limits = { max_qp = 4; max_sge = 3; };\n"
		  "}, { transport = \"iwarp\"; addresses = ( \"10.1.0.1/24\" ); } ); } );" },
		{ "links", TWO "links = ( { latency = \"2 ms\"; jitter = \"1.5 us\"; },\n"
		  "{ between = [ \"a\", \"b\" ]; bandwidth = \"10 Gbit/s\"; loss = 0.01; },\n"
		  "{ between = [ \"b\", \"*\" ]; duplication = 1; reordering = 0.5; } );" },
		{ "packets", TWO "faults = ( { action = \"delay\"; delay = \"1 ms\"; from = \"a\"; },\n"
		  "{ action = \"duplicate\"; count = 3; to = \"b\"; times = 2; },\n"
		  "{ action = \"reorder\"; message = \"REP\"; probability = 0.5; },\n"
		  "{ action = \"corrupt\"; message = \"REQ\"; offset = 24; value = 1; },\n"
		  "{ action = \"reject\"; message = \"REQ\"; reason = \"stale_conn\"; } );" },
		{ "calls", TWO "faults = ( { action = \"fail\"; message = \"create_qp\"; },\n"
		  "{ action = \"fail\"; message = \"bind\"; error = \"EADDRINUSE\"; nth = 2; },\n"
		  "{ action = \"answer_late\"; message = \"path\"; delay = \"1 s\"; },\n"
		  "{ action = \"answer_never\"; message = \"neighbour\"; until = \"1 min\"; } );" },
		{ "actions", TWO "faults = ( { action = \"freeze\"; on = \"a\"; delay = \"1 ms\"; },\n"
		  "{ action = \"crash\"; on = \"b\"; after = \"20 ms\"; },\n"
		  "{ action = \"port_down\"; on = \"a\"; device = \"sim0\"; after = \"2 ms\"; },\n"
		  "{ action = \"port_up\"; on = \"a\"; after = \"3 ms\"; },\n"
		  "{ action = \"full_backlog\"; on = \"a\"; } );" },
		{ "changes", TWO "faults = ( { action = \"change_address\"; on = \"a\";\n"
		  "address = \"10.0.0.1\"; new_address = \"10.0.0.9/24\"; },\n"
		  "{ action = \"change_mac\"; on = \"b\"; address = \"fd00::2\"; after = \"1 ms\"; },\n"
		  "{ action = \"remove_device\"; on = \"b\"; after = \"2 ms\"; } );" },
		{ "wrong_member", "nodse = ();" },
		{ "wrong_unit", "links = ( { latency = \"5 parsecs\"; } );" },
		{ "wrong_node", "faults = ( { action = \"lose\"; from = \"c\"; } );" },
		{ "unclosed", "nodes = ( { name = \"a\"; devices = ( {" },
		{ "include", "@include \"/dev/stdin\"\n" },
		{ "deep", "a = ((((((((((((((((((((((((((((((((((((((" },
		{ "numbers", "seed = 0xffffffffffffffffffff; x = 1e999; y = -0x8000000000000000L;" },
		{ "text", "clock = \"a\" \"\\x01\\n\\\\\" \"b\"; # c\n// d\n/* e" },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(seeds); i++)
		put(seeds[i].name, (const uint8_t *)seeds[i].text, strlen(seeds[i].text));
}
