/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.c - implements <polycm/sim.h>: a test makes a private fabric in virtual
 * time, moves time, and asks what is left.
 */
#include "config.h"

#include "providers/common/write_error.h"
#include "providers/soft/watch/watch.h"
#include "control.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/nic/nic.h"
#include "providers/soft/shm/segment.h"
#include "providers/soft/trace/trace.h"
#include "providers/soft/watch/files.h"
#include "providers/soft/watch/pcap/pcap.h"
#include "provider.h"
#include "scenario.h"

int control_refuse(const char *call, const char *what, const char *why)
{
	sim_core->log(POLYCM_LOG_ERROR, NULL, "%s: %s%s%s", call, what, *what ? ": " : "", why);
	return -EINVAL;
}

int control_null(const char *call, const char *argument)
{
	return control_refuse(call, argument, "NULL is no argument");
}

void control_begin(void)
{
	pthread_mutex_lock(&sim_setup_lock);
	sim_lock();
}

int control_needs_own_fabric(const char *call)
{
	return sim_is_up() && !sim_fabric_is_shared() ? 0 :
	       control_refuse(call, "", "the fabric is not a test's; polycm_sim_create() makes one");
}

int control_needs_fabric(const char *call)
{
	return sim_is_up() ? 0 : control_refuse(call, "", "there is no fabric");
}

void control_end(void)
{
	sim_unlock();
	pthread_mutex_unlock(&sim_setup_lock);
}

int control_number(const char *call, enum sim_handle_kind kind, const void *handle,
		   uint32_t *ret_number)
{
	static const char *const arguments[] = {
		[SIM_HANDLE_NODE] = "node",
		[SIM_HANDLE_DEVICE] = "device",
		[SIM_HANDLE_FAULT] = "fault",
	};
	int r;

	if (!handle)
		return control_null(call, arguments[kind]);
	r = sim_handle_number(kind, handle, ret_number);
	if (r < 0)
		control_refuse(call, "", r == -ENOENT ? "the fabric of the handle was destroyed" :
							"no such handle");
	return r;
}

int control_node(const char *call, const struct polycm_sim_node *handle,
		 struct sim_node **ret_node)
{
	uint32_t number;
	int r = control_number(call, SIM_HANDLE_NODE, handle, &number);

	if (r < 0)
		return r;
	*ret_node = sim_node_by_number(number);
	return *ret_node ? 0 : control_refuse(call, "", "no such handle");
}

int control_device(const char *call, const struct polycm_sim_device *handle,
		   struct sim_device **ret_device)
{
	uint32_t number;
	int r = control_number(call, SIM_HANDLE_DEVICE, handle, &number);

	if (r < 0)
		return r;
	*ret_device = sim_device_by_number(number);
	return *ret_device ? 0 : control_refuse(call, "", "no such handle");
}

/* ------------------------------------------------------------------------
 * The fabric.
 */

/* Setup lock held. */
static int drop(const char *call)
{
	char why[200];
	int r = sim_down(why, sizeof(why));

	if (r < 0)
		control_refuse(call, "the fabric is in use", why);
	return r;
}

static int create(uint64_t seed)
{
	int r;

	pthread_mutex_lock(&sim_setup_lock);
	r = drop("polycm_sim_create");
	if (!r)
		r = sim_up_private(seed);
	pthread_mutex_unlock(&sim_setup_lock);
	return r;
}

static int load(const char *path)
{
	struct sim_scenario_head head;
	int r;

	if (!path)
		return control_null("polycm_sim_load", "path");
	/* A wrong path is the usual mistake: it must not cost the fabric that is there. */
	r = sim_scenario_peek(path, &head);
	if (r < 0)
		return r;
	pthread_mutex_lock(&sim_setup_lock);
	r = drop("polycm_sim_load");
	if (!r)
		r = sim_up_scenario(path, &head);
	pthread_mutex_unlock(&sim_setup_lock);
	return r;
}

static int destroy(void)
{
	int r;

	pthread_mutex_lock(&sim_setup_lock);
	r = drop("polycm_sim_destroy");
	if (!r)
		r = sim_files_status();
	pthread_mutex_unlock(&sim_setup_lock);
	return r;
}

static int reset(void)
{
	int r;

	pthread_mutex_lock(&sim_setup_lock);
	sim_down_forced();
	r = sim_files_status();
	pthread_mutex_unlock(&sim_setup_lock);
	return r;
}

/* ------------------------------------------------------------------------
 * Time.
 */

static int now(uint64_t *ret_ns)
{
	if (!ret_ns)
		return control_null("polycm_sim_now", "ret_ns");
	*ret_ns = sim_now();
	return 0;
}

static int needs_virtual(const char *call)
{
	if (sim_is_virtual())
		return 0;
	return control_refuse(call, "", "the fabric's time is real");
}

static int advance(uint64_t ns)
{
	int r = needs_virtual("polycm_sim_advance");

	return r < 0 ? r : sim_advance(ns);
}

static int run(uint64_t limit_ns, bool (*done)(void *arg), void *arg)
{
	int r = needs_virtual(done ? "polycm_sim_run_until_event" : "polycm_sim_run");

	return r < 0 ? r : sim_run(limit_ns, done, arg);
}

/* ------------------------------------------------------------------------
 * Seeing.
 */

static int trace(const char *path)
{
	int r = 0;

	sim_lock();
	if (path)
		r = sim_trace_open(path);
	else
		sim_trace_close();
	sim_unlock();
	if (r < 0)
		control_refuse("polycm_sim_trace", path, strerror(-r));
	return r;
}

static int pcap(const char *path)
{
	int r = 0;

	sim_lock();
	if (path) {
		r = sim_pcap_open(path);
	} else {
		sim_pcap_close();
		sim_segment_set_capture(0);
	}
	sim_unlock();
	if (r < 0)
		control_refuse("polycm_sim_pcap", path, strerror(-r));
	return r;
}

static int live(struct polycm_sim_counts *counts)
{
	struct polycm_sim_counts c;
	size_t size;

	if (!counts || counts->size < sizeof(counts->size))
		return control_refuse("polycm_sim_live", "", "the size of the counts is not set");
	size = counts->size;
	sim_count_live(&c);
	c.size = size;
	memcpy(counts, &c, size < sizeof(c) ? size : sizeof(c));
	return 0;
}

static void left(void (*add)(void *arg, const char *kind, const void *handle, const char *text),
		 void *arg)
{
	sim_lock();
	sim_nic_each(add, arg);
	sim_unlock();
}

const struct polycm_sim_ops sim_control_ops = {
	.size = sizeof(sim_control_ops),
	.create = create,
	.destroy = destroy,
	.node_add = control_node_add,
	.node_add_address = control_node_add_address,
	.node_use = control_node_use,
	.now = now,
	.advance = advance,
	.trace = trace,
	.live = live,
	.load = load,
	.node_find = control_node_find,
	.device_add = control_device_add,
	.device_add_address = control_device_add_address,
	.device_find = control_device_find,
	.device_limit = control_device_limit,
	.link_set = control_link_set,
	.run = run,
	.fault_add = control_fault_add,
	.fault_remove = control_fault_remove,
	.fault_hits = control_fault_hits,
	.pcap = pcap,
	.left = left,
	.reset = reset,
};
