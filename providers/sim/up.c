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
 * Up and down.
 */

static int bring_up(enum sim_clock clock, uint64_t seed, int (*open_fabric)(void))
{
	int r;

	r = sim_engine_start(clock, seed);
	if (r < 0)
		return r;
	sim_lock();
	sim_nic_start();
	sim_cma_start();
	sim_explore_fabric();
	r = open_fabric();
	if (r < 0)
		goto err_fabric;
	sim_unlock();
	r = sim_time->show(clock == SIM_CLOCK_VIRTUAL);
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
	r = sim_scenario_build(scenario);
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
	sim_explore_listen(true);
	r = bring_up(clock, seed, open_fabric);
	sim_explore_listen(false);
	if (r)
		return r;
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
		r = sim_scenario_build(scenario);
	if (r < 0)
		sim_fabric_close();
	return r;
}

int sim_up_scenario(const char *path)
{
	uint64_t seed = 1;
	int r;

	r = sim_scenario_peek(path, &head);
	if (r < 0)
		return r;
	if (head.has_clock && head.clock == SIM_CLOCK_REAL) {
		sim_core->log(POLYCM_LOG_WARN, NULL, "%s: a test's fabric has virtual time", path);
		return -EINVAL;
	}
	if (head.has_seed)
		seed = head.seed;
	scenario = path;
	r = bring_up(SIM_CLOCK_VIRTUAL, sim_explore_seed(seed), open_test_fabric);
	scenario = NULL;
	if (!r)
		(void)sim_files_open();
	return r;
}

void sim_count_live(struct polycm_sim_counts *ret_counts)
{
	struct sim_nic_counts nic;

	memset(ret_counts, 0, sizeof(*ret_counts));
	sim_lock();
	sim_nic_counts(&nic);
	ret_counts->ids = sim_cma_live_ids();
	ret_counts->packets = sim_link_under_way();
	for (struct sim_node *node = sim_first_node(); node; node = node->next)
		ret_counts->ports += sim_ports_bound(node);
	sim_unlock();
	ret_counts->contexts = nic.contexts;
	ret_counts->pds = nic.pds;
	ret_counts->mrs = nic.mrs;
	ret_counts->comp_channels = nic.channels;
	ret_counts->cqs = nic.cqs;
	ret_counts->srqs = nic.srqs;
	ret_counts->qps = nic.qps;
	ret_counts->ahs = nic.ahs;
	ret_counts->mws = nic.mws;
}

/* "2 ids, 1 CQ"; counts that are 0 are left out. */
static int refuse_busy(const struct polycm_sim_counts *c, char *ret_why, size_t why_size)
{
	const struct {
		const char *name;
		unsigned int count;
	} left[] = {
		{ "rdma_cm_id", c->ids }, { "QP", c->qps }, { "CQ", c->cqs }, { "SRQ", c->srqs },
		{ "MR", c->mrs }, { "MW", c->mws }, { "AH", c->ahs },
		{ "completion channel", c->comp_channels }, { "context", c->contexts },
	};
	size_t len = 0;

	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]) && len < why_size; i++)
		if (left[i].count)
			len += (size_t)snprintf(ret_why + len, why_size - len, "%s%u %s%s",
						len ? ", " : "", left[i].count, left[i].name,
						left[i].count > 1 ? "s" : "");
	return -EBUSY;
}

static void finish(void)
{
	sim_lock();
	sim_fault_log_missed();
	sim_unlock();
	sim_take_down();
}

/* Contexts and PDs may be the core's own: it closes them with their devices. */
int sim_down(char *ret_why, size_t why_size)
{
	struct polycm_sim_counts c;

	if (!sim_is_up())
		return 0;
	sim_count_live(&c);
	c.contexts = 0;
	if (c.ids || c.mrs || c.mws || c.comp_channels || c.cqs || c.srqs || c.qps || c.ahs)
		return refuse_busy(&c, ret_why, why_size);
	remove_devices();
	sim_count_live(&c);
	if (c.contexts) {
		(void)sim_fabric_announce();	/* EBUSY is the error that matters */
		return refuse_busy(&c, ret_why, why_size);
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
