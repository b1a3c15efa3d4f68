/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/open.c - see open.h. */
#include "config.h"

#include <errno.h>

#include "providers/soft/effects/effects.h"
#include "providers/soft/fabric/numbers.h"
#include "providers/soft/host/host.h"
#include "addresses.h"
#include "carry.h"
#include "clock.h"
#include "gate.h"
#include "host.h"
#include "io.h"
#include "load.h"
#include "open.h"
#include "route.h"
#include "self.h"
#include "session.h"

#define CATCH_UP_TURNS 16u
#define DEVICE_NAME "ofi0"

/* What link/shm and host.c do in a child of fork(). */
static void (*forked_before)(void), (*after_fork_before)(void);

/* Packets may come in from now on. */
static int need(void)
{
	int r = ofi_io_start();

	if (!r) {
		r = ofi_gate_open();
		if (r < 0)
			return sim_refuse(r, "TCP port %u of this host cannot be used", ofi_self.gate);
	}
	if (!r)
		ofi_addresses_watch();
	return r;
}

/* What leads to other hosts is the parent's. */
static void forked(void)
{
	ofi_load_forget();
	ofi_io_forget();
	ofi_gate_forget();
	ofi_addresses_forget();
	ofi_clock_stop();
	ofi_sessions_forget();
	ofi_peers_stop();
	ofi_hosts_forget();
	sim_fetch_on(false);
	if (forked_before)
		forked_before();
}

static void set_forked(void)
{
	if (sim_engine_hooks.forked == forked)
		return;
	forked_before = sim_engine_hooks.forked;
	sim_engine_hooks.forked = forked;
}

static void after_fork(void)
{
	if (after_fork_before)
		after_fork_before();
	/* Who joins again sets it again; the child may have children, too. */
	set_forked();
	ofi_self_renew();
}

static void fetch(void)
{
	ofi_io_fetch();
	ofi_load_fetch();
}

static void idle(void)
{
	ofi_io_idle();
	ofi_load_idle();
}

static void catch_up(void)
{
	bool some = true;

	for (unsigned int i = 0; i < CATCH_UP_TURNS && some; i++) {
		some = ofi_io_poll();
		some |= ofi_carry_poll();
	}
}

static void set_hooks(void)
{
	set_forked();
	after_fork_before = sim_engine_hooks.after_fork;
	sim_engine_hooks.after_fork = after_fork;
	sim_engine_hooks.fetch = fetch;
	sim_engine_hooks.idle = idle;
	sim_engine_hooks.catch_up = catch_up;
	sim_engine_hooks.need = need;
}

static int add_self(void)
{
	struct sim_node *node;
	int r;

	sim_host_may_use = ofi_self_may_use;
	r = sim_host_add(ofi_self.name, DEVICE_NAME, ofi_self.transport, NULL);
	if (r < 0)
		return r;
	node = sim_first_node();
	ofi_self.device = node->devices;
	ofi_self_number(ofi_self.device);
	sim_set_home_node(node);
	return 0;
}

static int read_effects(void)
{
	const char *path = sim_core->setting("POLYCM_OFI_SCENARIO");

	return path && *path ? sim_effects_read(path) : 0;
}

int ofi_open(void)
{
	char name[SIM_FABRIC_NAME_MAX];
	int r;

	r = ofi_self_read();
	if (!r)
		r = ofi_load_read();
	if (r < 0)
		goto err_drop;
	ofi_self_fabric(name, sizeof(name));
	r = sim_host_join(name);
	if (r < 0)
		goto err_drop;
	r = sim_fabric_begin();
	if (!r)
		r = add_self();
	if (r < 0)
		goto err_close;
	sim_numbers_scatter();
	r = read_effects();
	if (r < 0)
		goto err_close;
	set_hooks();
	ofi_hosts_start();
	ofi_route_start();
	if (!ofi_self.key)
		sim_core->log(POLYCM_LOG_INFO, NULL, "POLYCM_OFI_KEY is unset: every host that reaches "
			      "TCP port %u can connect", ofi_self.gate);
	return 0;

err_close:
	sim_fabric_close();
err_drop:
	ofi_self_drop();
	return r;
}

void ofi_flush(void)
{
	ofi_sessions_flush();
}

void ofi_close(void)
{
	sim_engine_hooks.need = NULL;
	sim_fetch_on(false);
	ofi_load_stop();
	ofi_sessions_flush();
	ofi_gate_close();
	ofi_addresses_close();
	ofi_clock_stop();
	ofi_sessions_stop();
	ofi_peers_stop();
	ofi_hosts_stop();
	ofi_route_stop();
	ofi_io_stop();
	ofi_self_drop();
}
