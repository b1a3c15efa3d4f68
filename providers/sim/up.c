/* SPDX-License-Identifier: BSD-2-Clause */
/* up.c - starts the simulator: as the settings say, or with the fabric of a test. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "providers/soft/host/host.h"
#include "providers/soft/watch/files.h"
#include "explore.h"
#include "fabric_open.h"
#include "provider.h"

#define CM_DELAY "POLYCM_SIM_CM_DELAY"
#define TRACE "POLYCM_SIM_TRACE"
#define CAPTURE "POLYCM_SIM_PCAP"

/* ------------------------------------------------------------------------
 * What the settings say.
 */

static int seed_setting(uint64_t *ret_seed)
{
	const char *text = sim_core->setting("POLYCM_SIM_SEED");
	char *end;

	if (!text || !*text)
		text = "1";
	errno = 0;
	*ret_seed = strtoull(text, &end, 0);
	if (errno || *end || *text == '-') {
		sim_core->log(POLYCM_LOG_ERROR, NULL, "POLYCM_SIM_SEED=%s: not a number", text);
		return -EINVAL;
	}
	return 0;
}

static enum sim_clock clock_setting(void)
{
	const char *text = sim_core->setting("POLYCM_SIM_CLOCK");

	return text && *text == 'v' ? SIM_CLOCK_VIRTUAL : SIM_CLOCK_REAL;
}

/* ------------------------------------------------------------------------
 * Up.
 */

static int test_fabric(void)
{
	sim_explore_fabric();
	return sim_fabric_begin();
}

/* A test's fabric: virtual time, whatever the environment says. */
static int start_private(uint64_t seed, int (*open_fabric)(void))
{
	struct sim_start how = {
		.clock = SIM_CLOCK_VIRTUAL,
		.seed = sim_explore_seed(seed),
		.open_fabric = open_fabric,
	};
	int r;

	r = sim_start_cm_delay(CM_DELAY, how.clock, &how.cm_delay);
	if (!r)
		r = sim_start(&how);
	if (!r)
		(void)sim_files_open(TRACE, CAPTURE);		/* a test goes on without them */
	return r;
}

int sim_up_private(uint64_t seed)
{
	return start_private(seed, test_fabric);
}

/* The scenario file of the fabric that is being made; NULL: none. */
static const char *scenario;
static struct sim_scenario_head head;

static int open_fabric(void)
{
	int r;

	sim_explore_fabric();
	if (!scenario)
		return sim_fabric_open_default();
	if (head.has_nodes)
		return sim_fabric_open_scenario(scenario);
	r = sim_fabric_open_default();
	if (r < 0)
		return r;
	r = sim_scenario_build(scenario, NULL, 0);
	if (r < 0)
		sim_fabric_close();
	return r;
}

/* The environment's settings take precedence over the file's. */
static int read_head(const char *path, enum sim_clock *clock, uint64_t *seed)
{
	int r;

	scenario = path && *path ? path : NULL;
	if (!scenario)
		return 0;
	r = sim_scenario_peek(scenario, &head);
	if (r < 0)
		return r;
	if (head.has_clock && !getenv("POLYCM_SIM_CLOCK"))
		*clock = head.clock;
	if (head.has_seed && !getenv("POLYCM_SIM_SEED"))
		*seed = head.seed;
	return 0;
}

int sim_up_default(void)
{
	struct sim_start how = {
		.clock = clock_setting(),
		.open_fabric = open_fabric,
		.trace = TRACE,
		.capture = CAPTURE,
	};
	int r;

	r = seed_setting(&how.seed);
	if (!r)
		r = read_head(sim_core->setting("POLYCM_SIM_SCENARIO"), &how.clock, &how.seed);
	if (!r)
		r = sim_explore_open(how.seed);
	if (!r)
		r = sim_start_cm_delay(CM_DELAY, how.clock, &how.cm_delay);
	if (r)
		return r;
	sim_explore_listening = true;
	r = sim_start_by_settings(&how);
	sim_explore_listening = false;
	return r;
}

/* Only the file's nodes. */
static int open_test_fabric(void)
{
	int r;

	r = test_fabric();
	if (!r)
		r = sim_scenario_build(scenario, NULL, 0);
	if (r < 0)
		sim_fabric_close();
	return r;
}

int sim_up_scenario(const char *path, const struct sim_scenario_head *of)
{
	uint64_t seed = of->has_seed ? of->seed : 1;
	int r;

	if (of->has_clock && of->clock == SIM_CLOCK_REAL) {
		sim_core->log(POLYCM_LOG_WARN, NULL, "%s: a test's fabric has virtual time", path);
		return -EINVAL;
	}
	scenario = path;
	r = start_private(seed, open_test_fabric);
	scenario = NULL;
	return r;
}

