/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hardware.c - see hardware.h.
 *
 * The kernel says whether a call succeeds.  Where it fails because of what the
 * transport does not have, the wrappers here say so in words.
 *
 * All is set by the query, before any operation runs, and stays.
 */
#include <errno.h>
#include <string.h>

#include "hardware.h"
#include "polycm/kernel.h"

static const struct polycm_core *host;
static const struct polycm_kernel *kernel;
static const struct polycm_transport *transport;

static int hardware_init(struct polycm_module *module, void **ret_ctx)
{
	const struct polycm_kernel_setup setup = { .size = sizeof(setup) };

	return kernel->init(module, &setup, ret_ctx);
}

static int explain(int err, uint32_t service, const char *what)
{
	if (err < 0 && !(transport->services & service))
		host->why("%s has no %s", transport->name, what);
	return err;
}

/* The kinds of ids that not every transport has. */
static int explain_kind(int err, const void *priv)
{
	if (err >= 0)
		return err;
	switch (kernel->kind(priv)) {
	case POLYCM_KIND_UD:
		return explain(err, POLYCM_SVC_UD, "datagrams (UD)");
	case POLYCM_KIND_RC_AF_IB:
	case POLYCM_KIND_UD_AF_IB:
		return explain(err, POLYCM_SVC_AF_IB, "addresses of family AF_IB");
	default:
		return err;
	}
}

static int hardware_resolve_route(void *priv, int timeout_ms)
{
	return explain_kind(kernel->ops->resolve_route(priv, timeout_ms), priv);
}

static int hardware_connect(void *priv, const struct polycm_conn_param *param)
{
	return explain_kind(kernel->ops->connect(priv, param), priv);
}

static int hardware_accept(void *priv, const struct polycm_conn_param *param)
{
	return explain_kind(kernel->ops->accept(priv, param), priv);
}

static int hardware_establish(void *priv)
{
	return explain(kernel->ops->establish(priv), POLYCM_SVC_ESTABLISH,
		       "RTU: the device ends the handshake by itself");
}

static int hardware_join_multicast(void *priv, const struct polycm_multicast *mc)
{
	return explain(kernel->ops->join_multicast(priv, mc), POLYCM_SVC_MULTICAST, "multicast");
}

static const struct polycm_ops ops = {
	.size = sizeof(ops),
	.init = hardware_init,
	.resolve_route = hardware_resolve_route,
	.connect = hardware_connect,
	.accept = hardware_accept,
	.establish = hardware_establish,
	.join_multicast = hardware_join_multicast,
};

static bool has_kernel(const struct polycm_core *core)
{
	return core->size >= offsetof(struct polycm_core, extension) + sizeof(core->extension) &&
	       core->extension;
}

int hardware_setup(const struct polycm_core *core, struct polycm_provider *provider)
{
	host = core;
	kernel = has_kernel(core) ? core->extension(POLYCM_KERNEL, POLYCM_KERNEL_VERSION) : NULL;
	if (!kernel || kernel->size < sizeof(*kernel))
		return -EOPNOTSUPP;
	transport = provider->transport;

	provider->ops = &ops;
	provider->flags |= POLYCM_PROVIDER_KERNEL;
	return 0;
}
