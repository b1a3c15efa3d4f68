/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provider.c - the plugin "sim": its descriptor and settings, and the
 * simulator as a whole going up and down.
 *
 * It goes up when the core initialises it and stays up until the process ends
 * or a test replaces the fabric (control.c); then it comes back with the next
 * call that needs it.
 */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cm/cma_internal.h"
#include "nic/nic.h"
#include "polycm/sim.h"
#include "provider.h"
#include "trace.h"

pthread_mutex_t sim_setup_lock = PTHREAD_MUTEX_INITIALIZER;

static atomic_bool up;

/* --- Settings. --- */

static const struct polycm_option options[] = {
	{
		.size = sizeof(struct polycm_option),
		.name = "POLYCM_SIM_TRANSPORT",
		.default_value = "roce",
		.help = "Transport that the simulated device of this host plays: roce, ib, iwarp, "
			"or one that another plugin has the rules of.",
	},
	{
		.size = sizeof(struct polycm_option),
		.name = "POLYCM_SIM_SEED",
		.default_value = "1",
		.help = "Seed of the simulator's random numbers.",
	},
	{
		.size = sizeof(struct polycm_option),
		.name = "POLYCM_SIM_CLOCK",
		.default_value = "real",
		.choices = "real|virtual",
		.help = "Whether simulated time is real, or moves only while the program waits; "
			"virtual time is the process's own, and so is its fabric then.",
	},
	{
		.size = sizeof(struct polycm_option),
		.name = "POLYCM_SIM_FABRIC",
		.default_value = "default",
		.help = "Name of the simulated fabric on which processes of one user meet.",
	},
	{
		.size = sizeof(struct polycm_option),
		.name = "POLYCM_SIM_PULL",
		.default_value = "on",
		.choices = "on|off",
		.help = "Whether large messages are read out of the sending process's memory, where "
			"the system allows that; off: they are copied through shared memory.",
	},
	{
		.size = sizeof(struct polycm_option),
		.name = "POLYCM_SIM_TRACE",
		.default_value = "",
		.help = "File for a trace of what happens, one JSON object per line; - for standard "
			"error.",
	},
};

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

static int open_trace(void)
{
	const char *path = sim_core->setting("POLYCM_SIM_TRACE");
	int r;

	if (!path || !*path)
		return 0;
	sim_lock();
	r = sim_trace_open(path);
	sim_unlock();
	if (r < 0)
		sim_core->log(POLYCM_LOG_ERROR, NULL, "POLYCM_SIM_TRACE=%s: %s", path,
			      strerror(-r));
	return r;
}

/* --- Up and down. --- */

static int bring_up(enum sim_clock clock, uint64_t seed, int (*open_fabric)(void))
{
	int r;

	r = sim_engine_start(clock, seed);
	if (r < 0)
		return r;
	sim_lock();
	r = sim_nic_start();
	if (r < 0)
		goto err_nic;
	r = sim_cma_start();
	if (r < 0)
		goto err_cma;
	r = open_fabric();
	if (r < 0)
		goto err_fabric;
	sim_unlock();
	atomic_store(&up, true);
	return 0;

err_fabric:
	sim_cma_stop();
err_cma:
	sim_nic_stop();
err_nic:
	sim_unlock();
	sim_engine_stop();
	return r;
}

int sim_up_private(uint64_t seed)
{
	return bring_up(SIM_CLOCK_VIRTUAL, seed, sim_fabric_open_private);
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

static void take_down(void)
{
	atomic_store(&up, false);
	sim_lock();
	sim_cma_stop();
	sim_nic_stop();
	sim_fabric_close();
	sim_trace_close();
	sim_unlock();
	sim_engine_stop();
}

int sim_up_default(void)
{
	uint64_t seed;
	int r;

	r = seed_setting(&seed);
	if (!r)
		r = bring_up(clock_setting(), seed, sim_fabric_open_default);
	if (r)
		return r;
	r = open_trace();
	if (r)
		take_down();
	return r;
}

void sim_count_live(struct polycm_sim_counts *ret_counts)
{
	struct sim_nic_counts nic;

	memset(ret_counts, 0, sizeof(*ret_counts));
	sim_lock();
	sim_nic_counts(&nic);
	ret_counts->ids = sim_cma_live_ids();
	sim_unlock();
	ret_counts->contexts = nic.contexts;
	ret_counts->pds = nic.pds;
	ret_counts->mrs = nic.mrs;
	ret_counts->comp_channels = nic.channels;
	ret_counts->cqs = nic.cqs;
	ret_counts->srqs = nic.srqs;
	ret_counts->qps = nic.qps;
	ret_counts->ahs = nic.ahs;
}

/* Contexts and PDs may be the core's own, which go with their devices. */
int sim_down(void)
{
	struct polycm_sim_counts c;

	if (!sim_is_up())
		return 0;
	sim_count_live(&c);
	if (c.ids || c.mrs || c.comp_channels || c.cqs || c.srqs || c.qps || c.ahs)
		return -EBUSY;
	remove_devices();
	sim_count_live(&c);
	if (c.contexts) {
		(void)sim_fabric_announce();	/* the error to tell is the other one */
		return -EBUSY;
	}
	take_down();
	return 0;
}

/* For the calls that need a fabric: after a test dropped its own. */
static int ensure_up(void)
{
	int r = 0;

	if (sim_is_up())
		return 0;
	pthread_mutex_lock(&sim_setup_lock);
	if (!sim_is_up())
		r = sim_up_default();
	pthread_mutex_unlock(&sim_setup_lock);
	return r;
}

/* The process ends with ids left: their peers learn it, as from a kernel. */
static void at_exit(void)
{
	if (!sim_is_up() || !sim_cma_has_own() || !sim_lock_within(SIM_MS(200)))
		return;
	sim_cma_abandon_all();
	sim_trace_close();
	sim_unlock();
}

/* --- Time for the core. --- */

struct polycm_timer {
	struct sim_timer timer;
	void (*fn)(void *arg);
	void *arg;
};

static uint64_t clock_now(void *ctx)
{
	(void)ctx;
	return sim_now();
}

/* With the engine's lock held. */
static void clock_fire(struct sim_timer *timer)
{
	struct polycm_timer *theirs = (struct polycm_timer *)((char *)timer -
							      offsetof(struct polycm_timer, timer));

	theirs->fn(theirs->arg);
}

static int clock_timer_start(void *ctx, uint64_t deadline_ns, void (*fn)(void *arg), void *arg,
			     struct polycm_timer **ret_timer)
{
	struct polycm_timer *timer = sim_core->alloc(sizeof(*timer));

	(void)ctx;
	if (!timer)
		return -ENOMEM;
	timer->fn = fn;
	timer->arg = arg;
	sim_lock();
	sim_timer_init(&timer->timer, clock_fire);
	sim_timer_arm(&timer->timer, deadline_ns);
	sim_unlock();
	*ret_timer = timer;
	return 0;
}

static void clock_timer_cancel(void *ctx, struct polycm_timer *timer)
{
	(void)ctx;
	sim_lock();
	sim_timer_disarm(&timer->timer);
	sim_unlock();
	sim_core->free(timer);
}

static const struct polycm_clock sim_clock = {
	.size = sizeof(sim_clock),
	.now_ns = clock_now,
	.timer_start = clock_timer_start,
	.timer_cancel = clock_timer_cancel,
	.idle = sim_idle,
};

/* --- The provider's operations. --- */

static int init(struct polycm_module *module, void **ret_ctx)
{
	int r;

	sim_module = module;
	*ret_ctx = NULL;
	pthread_mutex_lock(&sim_setup_lock);
	r = sim_up_default();
	if (r < 0)
		goto out;
	r = sim_core->clock_install(&sim_clock, NULL);
	if (r < 0) {
		sim_core->log(POLYCM_LOG_ERROR, NULL, "another provider owns time: %s",
			      strerror(-r));
		take_down();
		goto out;
	}
	if (atexit(at_exit) || pthread_atfork(NULL, NULL, sim_cma_forked))
		sim_core->log(POLYCM_LOG_WARN, NULL, "no memory to watch for the process's end");
out:
	pthread_mutex_unlock(&sim_setup_lock);
	return r;
}

/* As a rule the process ends.  What threads of the program may still use stays. */
static void fini(void *ctx)
{
	(void)ctx;
	pthread_mutex_lock(&sim_setup_lock);
	(void)sim_down();
	pthread_mutex_unlock(&sim_setup_lock);
}

static int enumerate(void *ctx)
{
	int r;

	(void)ctx;
	r = ensure_up();
	if (r < 0)
		return r;
	pthread_mutex_lock(&sim_setup_lock);
	r = sim_fabric_announce();
	pthread_mutex_unlock(&sim_setup_lock);
	return r;
}

/* Ours, or anybody's. */
static bool source_fits(const struct sockaddr *src)
{
	if (!src || src->sa_family == AF_UNSPEC)
		return true;
	return cma_is_ip(src) && (cma_is_any(src) || sim_node_of_address(src));
}

static bool destination_fits(const struct sockaddr *src, const struct sockaddr *dst)
{
	struct sim_node *node = NULL;
	struct sim_address *address;

	if (!dst || dst->sa_family == AF_UNSPEC)
		return true;
	if (!cma_is_ip(dst))
		return false;
	if (cma_is_any(dst) || sim_node_of_address(dst))
		return true;
	if (src && cma_is_ip(src) && !cma_is_any(src))
		node = sim_node_of_address(src);
	if (!node)
		node = sim_current_node();
	return sim_node_route(node, dst, &address) == 0;
}

static int match(void *ctx, const struct sockaddr *src, const struct sockaddr *dst)
{
	int r;

	(void)ctx;
	r = ensure_up();
	if (r < 0)
		return -ENODEV;
	sim_lock();
	if (!sim_current_node() || !source_fits(src) || !destination_fits(src, dst))
		r = -ENODEV;
	sim_unlock();
	return r;
}

static int open_id(void *ctx, struct polycm_id *id, void *priv, const struct polycm_open *how)
{
	int r = ensure_up();

	return r < 0 ? r : sim_cma_ops.open(ctx, id, priv, how);
}

static const void *extension(const char *name, unsigned int version)
{
	return !strcmp(name, "sim") && version == 1 ? &sim_control_ops : NULL;
}

__attribute__((visibility("default")))
int polycm_provider_query_v1(const struct polycm_core *core,
			     const struct polycm_provider **ret_provider)
{
	static struct polycm_ops ops;
	static struct polycm_provider provider = {
		.size = sizeof(provider),
		.abi_minor = POLYCM_ABI_MINOR,
		.name = "sim",
		.version = PACKAGE_VERSION,
		.description = "Simulated devices: no RDMA hardware, no kernel module, no root",
		.ops = &ops,
		.id_size = sizeof(struct sim_id),
		.options = options,
		.num_options = sizeof(options) / sizeof(options[0]),
		.extension = extension,
		.flags = POLYCM_PROVIDER_ON_REQUEST,
	};

	sim_core = core;
	ops = sim_cma_ops;
	ops.init = init;
	ops.fini = fini;
	ops.enumerate = enumerate;
	ops.match = match;
	ops.open = open_id;
	*ret_provider = &provider;
	return 0;
}
