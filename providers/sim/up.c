/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * up.c - starts and stops the simulator.
 *
 * It starts when the core initialises it, and runs until the process ends or a
 * test destroys the fabric (control.c).  The next call that needs a fabric
 * starts it again.
 */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "polycm/sim.h"
#include "providers/soft/cm/cma_internal.h"
#include "providers/soft/link/link.h"
#include "providers/soft/nic/nic.h"
#include "providers/soft/trace/trace.h"
#include "providers/soft/watch/files.h"
#include "providers/soft/watch/pcap/pcap.h"
#include "providers/soft/watch/watch.h"
#include "explore.h"
#include "fabric_open.h"
#include "handles.h"
#include "provider.h"
#include "scenario.h"

pthread_mutex_t sim_setup_lock = PTHREAD_MUTEX_INITIALIZER;

static atomic_bool up;
static atomic_bool looked_at;	/* only: see sim_up_use() */

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

#define MAX_CM_DELAY_US 1000000u

/* Programs have races that they win on a host with a card, where these steps take so long. */
#define REAL_CM_DELAY_US 200u

static int cm_delay_setting(enum sim_clock clock, uint64_t *ret_delay)
{
	const char *text = sim_core->setting("POLYCM_SIM_CM_DELAY");
	unsigned long us = clock == SIM_CLOCK_REAL ? REAL_CM_DELAY_US : 0;
	char *end;

	if (text && *text) {
		us = strtoul(text, &end, 10);
		if (*end || *text == '-' || us > MAX_CM_DELAY_US) {
			sim_core->log(POLYCM_LOG_ERROR, NULL,
				      "POLYCM_SIM_CM_DELAY=%s: not a number of microseconds up to %u",
				      text, MAX_CM_DELAY_US);
			return -EINVAL;
		}
	}
	*ret_delay = SIM_US(us);
	return 0;
}

static enum sim_clock clock_setting(void)
{
	const char *text = sim_core->setting("POLYCM_SIM_CLOCK");

	return text && *text == 'v' ? SIM_CLOCK_VIRTUAL : SIM_CLOCK_REAL;
}

/* ------------------------------------------------------------------------
 * Up and down.
 */

static int bring_up(enum sim_clock clock, uint64_t seed, int (*open_fabric)(void))
{
	uint64_t delay;
	int r;

	r = cm_delay_setting(clock, &delay);
	if (!r)
		r = sim_engine_start(clock, seed);
	if (r < 0)
		return r;
	sim_lock();
	sim_nic_start();
	sim_cma_start(delay);
	sim_explore_fabric();
	r = open_fabric();
	if (r < 0)
		goto err_fabric;
	sim_unlock();
	r = sim_only_looked_at() ? 0 : sim_time->show(clock == SIM_CLOCK_VIRTUAL);
	if (r < 0) {
		sim_take_down();
		return r;
	}
	atomic_store(&up, true);
	return 0;

err_fabric:
	sim_cma_stop();
	sim_nic_stop();
	sim_unlock();
	sim_engine_stop();
	return r;
}

int sim_up_private(uint64_t seed)
{
	int r = bring_up(SIM_CLOCK_VIRTUAL, sim_explore_seed(seed), sim_fabric_begin);

	if (!r)
		(void)sim_files_open();		/* a test goes on without them */
	return r;
}

bool sim_is_up(void)
{
	return atomic_load(&up);
}

/* Take back all devices, which closes what the core has open on them. */
static void remove_devices(void)
{
	struct polycm_device *core;

	for (struct sim_node *node = sim_first_node(); node; node = node->next) {
		for (struct sim_device *device = node->devices; device; device = device->next) {
			sim_lock();
			core = device->core;
			device->core = NULL;
			sim_unlock();
			/* Without the lock: it closes the core's verbs context. */
			if (core)
				sim_core->device_remove(core);
		}
	}
}

void sim_take_down(void)
{
	atomic_store(&up, false);
	atomic_store(&looked_at, false);
	sim_lock();
	sim_handles_renew();
	sim_cma_stop();
	sim_nic_stop();
	sim_pcap_close();
	sim_fabric_close();
	sim_trace_close();
	sim_unlock();
	(void)sim_time->show(false);
	sim_engine_stop();
}

/* The scenario file of the fabric that is being made; NULL: none. */
static const char *scenario;
static struct sim_scenario_head head;

static int open_fabric(void)
{
	int r;

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
	enum sim_clock clock = clock_setting();
	uint64_t seed;
	int r;

	r = seed_setting(&seed);
	if (!r)
		r = read_head(sim_core->setting("POLYCM_SIM_SCENARIO"), &clock, &seed);
	if (!r)
		r = sim_explore_open(seed);
	if (r)
		return r;
	atomic_store(&looked_at, sim_verbs_services && POLYCM_HAS(sim_verbs_services, only_looked_at) &&
				 sim_verbs_services->only_looked_at());
	sim_explore_listening = true;
	r = bring_up(clock, seed, open_fabric);
	sim_explore_listening = false;
	if (r || sim_only_looked_at())
		return r;
	r = sim_files_open();
	if (r)
		sim_take_down();
	return r;
}

bool sim_only_looked_at(void)
{
	return atomic_load_explicit(&looked_at, memory_order_relaxed);
}

int sim_up_use(void)
{
	int r;

	if (!sim_only_looked_at() || sim_verbs_services->only_looked_at())
		return 0;
	atomic_store(&looked_at, false);
	r = sim_time->show(sim_is_virtual());
	if (!r)
		r = sim_files_open();
	if (r)
		sim_take_down();
	return r;
}

/* A test's fabric: virtual time, whatever the environment says, and only the file's nodes. */
static int open_test_fabric(void)
{
	int r;

	r = sim_fabric_begin();
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
	r = bring_up(SIM_CLOCK_VIRTUAL, sim_explore_seed(seed), open_test_fabric);
	scenario = NULL;
	if (!r)
		(void)sim_files_open();
	return r;
}

void sim_count_live(struct polycm_sim_counts *ret_counts)
{
	sim_lock();
	sim_nic_counts(ret_counts);
	ret_counts->ids = sim_cma_live_ids();
	ret_counts->packets = sim_link_under_way();
	for (struct sim_node *node = sim_first_node(); node; node = node->next)
		ret_counts->ports += sim_ports_bound(node);
	sim_unlock();
}

/* What is left keeps the fabric from ending: "2 ids, 1 CQ".  0 or -EBUSY. */
static int check_left(const struct polycm_sim_counts *c, char *ret_why, size_t why_size)
{
	const struct {
		const char *name;
		unsigned int count;
	} left[] = {
		{ "rdma_cm_id", c->ids }, { "QP", c->qps }, { "CQ", c->cqs }, { "SRQ", c->srqs },
		{ "MR", c->mrs }, { "MW", c->mws }, { "AH", c->ahs },
		{ "TD", c->tds }, { "DM", c->dms }, { "XRC domain", c->xrcds },
		{ "completion channel", c->comp_channels }, { "context", c->contexts },
	};
	unsigned int sum = 0;
	size_t len = 0;

	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
		sum += left[i].count;
		if (left[i].count && len < why_size)
			len += (size_t)snprintf(ret_why + len, why_size - len, "%s%u %s%s",
						len ? ", " : "", left[i].count, left[i].name,
						left[i].count > 1 ? "s" : "");
	}
	return sum ? -EBUSY : 0;
}

static void finish(void)
{
	sim_lock();
	if (!sim_only_looked_at())
		sim_fault_log_missed();
	sim_unlock();
	sim_take_down();
}

/* Contexts, PDs and XRC domains may be the core's own: it closes them with their devices. */
int sim_down(char *ret_why, size_t why_size)
{
	struct polycm_sim_counts c;
	int r;

	if (!sim_is_up())
		return 0;
	sim_count_live(&c);
	c.contexts = c.xrcds = 0;
	r = check_left(&c, ret_why, why_size);
	if (r < 0)
		return r;
	remove_devices();
	sim_count_live(&c);
	if (c.contexts) {
		(void)sim_fabric_announce();	/* EBUSY is the error that matters */
		return check_left(&c, ret_why, why_size);
	}
	finish();
	return 0;
}

void sim_down_forced(void)
{
	if (!sim_is_up())
		return;
	remove_devices();
	finish();
}
