/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * no_devices.c - see no_devices.h.  Compiled once into each such plugin.
 *
 * The two pointers are set by the query, before any operation runs, and stay.
 */
#include <errno.h>
#include <stdatomic.h>

#include "no_devices.h"

static const struct polycm_core *host;
static const char *provider_name;

void no_devices_setup(const struct polycm_core *core, const char *name)
{
	host = core;
	provider_name = name;
}

static int no_devices_init(struct polycm_module *module, void **ret_ctx)
{
	(void)module;
	*ret_ctx = NULL;
	return 0;
}

static void no_devices_fini(void *ctx)
{
	(void)ctx;
}

/* Asked each time a program wants devices; said once. */
static int no_devices_enumerate(void *ctx)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	(void)ctx;
	if (!atomic_flag_test_and_set(&said))
		host->log(POLYCM_LOG_INFO, NULL, "provider %s has no devices: its path to the "
			  "kernel's RDMA CM is not built in this version", provider_name);
	return 0;
}

static int no_devices_match(void *ctx, const struct sockaddr *src, const struct sockaddr *dst)
{
	(void)ctx;
	(void)src;
	(void)dst;
	return -ENODEV;
}

static int no_devices_open(void *ctx, struct polycm_id *id, void *priv,
			   const struct polycm_open *how)
{
	(void)ctx;
	(void)id;
	(void)priv;
	(void)how;
	return -ENODEV;
}

static int no_devices_query(void *priv, struct polycm_route_info *ret_info)
{
	(void)priv;
	(void)ret_info;
	return -ENODEV;
}

/* open() fails, so there is nothing to end. */
static void no_devices_end(void *priv)
{
	(void)priv;
}

const struct polycm_ops no_devices_ops = {
	.size = sizeof(no_devices_ops),
	.init = no_devices_init,
	.fini = no_devices_fini,
	.enumerate = no_devices_enumerate,
	.match = no_devices_match,
	.open = no_devices_open,
	.query = no_devices_query,
	.close = no_devices_end,
	.stop = no_devices_end,
	.free = no_devices_end,
};
