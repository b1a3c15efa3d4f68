/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel/explain.c - the kernel says whether a call succeeds.  Where it fails
 * because of what the transport does not have, the operations here say so in
 * words.
 */
#include "config.h"
#include "internal.h"

static int explain(const struct kernel_id *id, int err, uint32_t service, const char *what)
{
	const struct polycm_transport *rules;

	if (err >= 0)
		return err;
	rules = polycm_id_transport(id->core);
	if (!rules || rules->services & service)
		return err;
	return polycm_fail(err, "%s has no %s", rules->name, what);
}

/* The kinds of ids that not every transport has. */
static int explain_kind(const struct kernel_id *id, int err)
{
	if (err >= 0)
		return err;
	switch (kernel_kind(id)) {
	case POLYCM_KIND_UD:
		return explain(id, err, POLYCM_SVC_UD, "datagrams (UD)");
	case POLYCM_KIND_RC_AF_IB:
	case POLYCM_KIND_UD_AF_IB:
		return explain(id, err, POLYCM_SVC_AF_IB, "addresses of family AF_IB");
	default:
		return err;
	}
}

int kernel_explained_resolve_route(void *priv, int timeout_ms)
{
	return explain_kind(priv, kernel_op_resolve_route(priv, timeout_ms));
}

int kernel_explained_connect(void *priv, const struct polycm_conn_param *param)
{
	return explain_kind(priv, kernel_op_connect(priv, param));
}

int kernel_explained_accept(void *priv, const struct polycm_conn_param *param)
{
	return explain_kind(priv, kernel_op_accept(priv, param));
}

int kernel_explained_establish(void *priv)
{
	return explain(priv, kernel_op_establish(priv), POLYCM_SVC_ESTABLISH,
		       "RTU: the device ends the handshake by itself");
}

int kernel_explained_join_multicast(void *priv, const struct polycm_multicast *mc)
{
	return explain(priv, kernel_op_join_multicast(priv, mc), POLYCM_SVC_MULTICAST, "multicast");
}
