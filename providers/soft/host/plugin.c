/* SPDX-License-Identifier: BSD-2-Clause */
/* host/plugin.c - see plugin.h. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lock_order.h"
#include "providers/common/write_error.h"
#include "providers/soft/cm/cma_internal.h"
#include "providers/soft/faults/fault.h"
#include "providers/soft/link/shm/shm.h"
#include "providers/soft/link/tap.h"
#include "providers/soft/nic/nic.h"
#include "providers/soft/shm/doorbell.h"
#include "providers/soft/trace/trace.h"
#include "providers/soft/watch/files.h"
#include "providers/soft/watch/pcap/pcap.h"
#include "providers/soft/watch/watch.h"
#include "plugin.h"
#include "start.h"

static int (*start)(void);
void (*sim_plugin_flush)(void);

/* Calls that need a fabric make the settings' one if a test has destroyed its own. */
static int ensure_up(void)
{
	int r = 0;

	if (sim_is_up())
		return 0;
	pthread_mutex_lock(&sim_setup_lock);
	if (!sim_is_up())
		r = start();
	pthread_mutex_unlock(&sim_setup_lock);
	return r;
}

/* The process ends with ids left: tell their peers, as a kernel does. */
static void at_exit(void)
{
	if (!sim_is_up() || sim_is_inherited() || sim_only_looked_at() ||
	    (!sim_cma_has_own() && !sim_tapped() && !sim_faults_on) || !sim_lock_within(SIM_MS(200)))
		return;
	sim_settle();
	sim_fault_log_missed();
	if (sim_cma_has_own())
		sim_cma_abandon_all();
	if (sim_plugin_flush)
		sim_plugin_flush();
	sim_pcap_close();
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

/* The core may need a timer while we post an event, which is done with the lock held. */
static bool lock_unless_held(void)
{
	if (sim_has_lock())
		return false;
	sim_lock();
	return true;
}

static void unlock_if(bool took)
{
	if (took)
		sim_unlock();
}

static int clock_timer_start(void *ctx, uint64_t deadline_ns, void (*fn)(void *arg), void *arg,
			     struct polycm_timer **ret_timer)
{
	struct polycm_timer *timer = sim_core->alloc(sizeof(*timer));
	bool took;
	int r;

	(void)ctx;
	if (!timer)
		return -ENOMEM;
	timer->fn = fn;
	timer->arg = arg;
	sim_timer_init(&timer->timer, clock_fire);
	took = lock_unless_held();
	r = sim_engine_need_thread();
	if (!r)
		sim_timer_arm(&timer->timer, deadline_ns);
	unlock_if(took);
	if (r < 0) {
		sim_core->free(timer);
		return r;
	}
	*ret_timer = timer;
	return 0;
}

static void clock_timer_cancel(void *ctx, struct polycm_timer *timer)
{
	bool took = lock_unless_held();

	(void)ctx;
	sim_timer_disarm(&timer->timer);
	unlock_if(took);
	sim_core->free(timer);
}

static void clock_timer_restart(void *ctx, struct polycm_timer *timer, uint64_t deadline_ns)
{
	bool took = lock_unless_held();

	(void)ctx;
	if (deadline_ns == SIM_NEVER)
		sim_timer_disarm(&timer->timer);
	else
		sim_timer_arm(&timer->timer, deadline_ns);
	unlock_if(took);
}

static bool clock_owns_fd(void *ctx, int fd, char *text, size_t size)
{
	bool owns;

	(void)ctx;
	sim_lock();
	owns = sim_nic_owns_fd(fd, text, size);
	sim_unlock();
	return owns;
}

static bool clock_is_virtual(void *ctx)
{
	return !sim_only_looked_at() && sim_clock_virtual(ctx);
}

static const struct polycm_clock sim_clock = {
	.size = sizeof(sim_clock),
	.now_ns = clock_now,
	.timer_start = clock_timer_start,
	.timer_cancel = clock_timer_cancel,
	.idle = sim_idle,
	.is_virtual = clock_is_virtual,
	.wait = sim_clock_wait,
	.spin = sim_clock_spin,
	.owns_fd = clock_owns_fd,
	.read_ns = sim_clock_read,
	.timer_restart = clock_timer_restart,
};

/* --- The provider's operations. --- */

static int init(struct polycm_module *module, void **ret_ctx)
{
	int r;

	sim_module = module;
	*ret_ctx = NULL;
	pthread_mutex_lock(&sim_setup_lock);
	r = start();
	if (r < 0)
		goto out;
	r = sim_time->install(&sim_clock, NULL);
	if (r < 0) {
		sim_core->log(POLYCM_LOG_ERROR, NULL, "another provider owns time: %s",
			      strerror(-r));
		sim_take_down();
		goto out;
	}
	if (!sim_only_looked_at())
		(void)sim_time->show(sim_is_virtual());	/* nothing before there was a clock */
	if (sim_files_watch_exit() || atexit(at_exit) || pthread_atfork(NULL, NULL, sim_cma_forked))
		sim_core->log(POLYCM_LOG_WARN, NULL, "no memory to watch for the process's end");
out:
	pthread_mutex_unlock(&sim_setup_lock);
	return r;
}

/* Usually the process ends.  What other threads may still use stays. */
static void fini(void *ctx)
{
	(void)ctx;
	/* The process may end inside a call that holds the lock. */
	if (!sim_lock_within(SIM_MS(200)))
		return;
	sim_unlock();
	pthread_mutex_lock(&sim_setup_lock);
	(void)sim_down(NULL, 0);
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
	r = sim_up_use();
	if (!r)
		r = sim_fabric_announce();
	pthread_mutex_unlock(&sim_setup_lock);
	return r;
}

/* Ours, or anybody's. */
static bool source_fits(const struct sockaddr *src)
{
	if (!src || src->sa_family == AF_UNSPEC)
		return true;
	return cma_is_ip(src) && (cma_is_any(src) || sim_own_node_of_address(src));
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
		node = sim_own_node_of_address(src);
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

static int inspect_device(void *ctx, const char *name, const struct polycm_report *to)
{
	int r;

	(void)ctx;
	sim_lock();
	r = sim_nic_inspect(name, to);
	sim_unlock();
	return r;
}

static int open_id(void *ctx, struct polycm_id *id, void *priv, const struct polycm_open *how)
{
	int r = ensure_up();

	if (r < 0)
		return r;
	if (sim_shm_pending()) {
		/* Maybe a change to our node, and nobody has looked: that takes no thread of ours. */
		sim_lock();
		sim_shm_receive();
		sim_unlock();
	}
	return sim_cma_ops.open(ctx, id, priv, how);
}

int sim_plugin_query(const struct polycm_core *core, int (*start_by_settings)(void),
		     struct polycm_ops *ret_ops)
{
	const struct polycm_clock_services *services;

	services = core->extension(POLYCM_CLOCK, POLYCM_CLOCK_VERSION);
	if (!services) {
		core->log(POLYCM_LOG_ERROR, NULL, "this libpolycm does not let providers own time");
		return -EOPNOTSUPP;
	}
	sim_core = core;
	LOCK_ORDER_SHARE(core);
	sim_time = services;
	sim_verbs_services = core->extension(POLYCM_VERBS, POLYCM_VERBS_VERSION);
	start = start_by_settings;
	*ret_ops = sim_cma_ops;
	ret_ops->init = init;
	ret_ops->fini = fini;
	ret_ops->enumerate = enumerate;
	ret_ops->match = match;
	ret_ops->open = open_id;
	ret_ops->inspect_device = inspect_device;
	return 0;
}
