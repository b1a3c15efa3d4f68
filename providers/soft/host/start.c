/* SPDX-License-Identifier: BSD-2-Clause */
/* host/start.c - see start.h. */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "providers/soft/cm/cma_internal.h"
#include "providers/soft/faults/fault.h"
#include "providers/soft/link/link.h"
#include "providers/soft/nic/nic.h"
#include "providers/soft/trace/trace.h"
#include "providers/soft/watch/files.h"
#include "providers/soft/watch/pcap/pcap.h"
#include "providers/soft/watch/watch.h"
#include "host.h"
#include "start.h"

pthread_mutex_t sim_setup_lock = PTHREAD_MUTEX_INITIALIZER;
void (*sim_stopping)(void);

static atomic_bool up;
static const char *trace, *capture;	/* settings */
static atomic_bool looked_at;	/* only: see sim_up_use() */

bool sim_is_up(void)
{
	return atomic_load(&up);
}

int sim_start(const struct sim_start *how)
{
	int r;

	r = sim_engine_start(how->clock, how->seed);
	if (r < 0)
		return r;
	sim_lock();
	sim_nic_start();
	sim_cma_start(how->cm_delay);
	r = how->open_fabric();
	if (r < 0)
		goto err_fabric;
	sim_unlock();
	r = sim_only_looked_at() ? 0 : sim_time->show(how->clock == SIM_CLOCK_VIRTUAL);
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

int sim_start_by_settings(const struct sim_start *how)
{
	int r;

	atomic_store(&looked_at, sim_verbs_services && POLYCM_HAS(sim_verbs_services, only_looked_at) &&
				 sim_verbs_services->only_looked_at());
	trace = how->trace;
	capture = how->capture;
	r = sim_start(how);
	if (r || sim_only_looked_at())
		return r;
	r = sim_files_open(trace, capture);
	if (r)
		sim_take_down();
	return r;
}

#define MAX_CM_DELAY_US 1000000u

/* Programs have races that they win on a host with a card, where these steps take so long. */
#define REAL_CM_DELAY_US 200u

int sim_start_cm_delay(const char *setting, enum sim_clock clock, uint64_t *ret_delay)
{
	const char *text = sim_core->setting(setting);
	unsigned long us = clock == SIM_CLOCK_REAL ? REAL_CM_DELAY_US : 0;
	char *end;

	if (text && *text) {
		us = strtoul(text, &end, 10);
		if (*end || *text == '-' || us > MAX_CM_DELAY_US) {
			sim_core->log(POLYCM_LOG_ERROR, NULL,
				      "%s=%s: not a number of microseconds up to %u", setting, text,
				      MAX_CM_DELAY_US);
			return -EINVAL;
		}
	}
	*ret_delay = SIM_US(us);
	return 0;
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
		r = sim_files_open(trace, capture);
	if (r)
		sim_take_down();
	return r;
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
	if (sim_stopping)
		sim_stopping();
	sim_cma_stop();
	sim_nic_stop();
	sim_pcap_close();
	sim_fabric_close();
	sim_trace_close();
	sim_unlock();
	(void)sim_time->show(false);
	sim_engine_stop();
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
