/* SPDX-License-Identifier: BSD-2-Clause */
/* tests/unit/idle_ops.h - the operations that each provider needs, of one that no id ever uses. */
#ifndef TESTS_UNIT_IDLE_OPS_H
#define TESTS_UNIT_IDLE_OPS_H

#include <errno.h>

#include "polycm/provider.h"

static int match(void *ctx, const struct sockaddr *src, const struct sockaddr *dst)
{
	(void)ctx;
	(void)src;
	(void)dst;
	return -ENODEV;
}

static int open_id(void *ctx, struct polycm_id *id, void *priv, const struct polycm_open *how)
{
	(void)ctx;
	(void)id;
	(void)priv;
	(void)how;
	return 0;
}

static void end(void *priv)
{
	(void)priv;
}

#endif
