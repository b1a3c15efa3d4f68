/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/stubs.c - in place of operations that a provider lacks, so that callers need not
 * check for NULL.
 */
#include "config.h"

#include "plugin_internal.h"

#include <errno.h>

#include "core/base/why.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

static int stub_init(struct polycm_module *module, void **ret_ctx)
{
	*ret_ctx = NULL;
	return 0;
}

static int stub_channel_open(void *ctx, void *chan, int *ret_fd)
{
	*ret_fd = -1;
	return 0;
}

static int stub_channel_read(void *chan)
{
	return 0;
}

/* A provider without migrate() keeps nothing of channels. */
static int stub_migrate(void *priv, void *new_chan)
{
	return 0;
}

static void stub_void(void *object)
{
}

static void stub_inspect(void *priv, const struct polycm_report *to)
{
}

/* Those that a provider may lack, and that say so. */
#define UNSUPPORTED(STUB)                                                                          \
	STUB(bind, void *priv, const struct sockaddr *addr)                                        \
	STUB(resolve_addr, void *priv, const struct sockaddr *src, const struct sockaddr *dst,     \
	     int timeout)                                                                          \
	STUB(resolve_route, void *priv, int timeout_ms)                                            \
	STUB(listen, void *priv, int backlog)                                                      \
	STUB(connect, void *priv, const struct polycm_conn_param *param)                           \
	STUB(accept, void *priv, const struct polycm_conn_param *param)                            \
	STUB(reject, void *priv, const void *data, uint8_t len, uint8_t reason)                    \
	STUB(establish, void *priv)                                                                \
	STUB(disconnect, void *priv)                                                               \
	STUB(notify, void *priv, enum ibv_event_type event)                                        \
	STUB(set_option, void *priv, int level, int optname, const void *optval, size_t optlen)    \
	STUB(init_qp_attr, void *priv, struct ibv_qp_attr *attr, int *ret_mask)                    \
	STUB(query, void *priv, struct polycm_route_info *ret_info)                                \
	STUB(join_multicast, void *priv, const struct polycm_multicast *mc)                        \
	STUB(leave_multicast, void *priv, void *group)                                             \
	STUB(inspect_device, void *ctx, const char *name, const struct polycm_report *to)

#define FUNCTION(slot, ...)                                                                        \
	static int stub_##slot(__VA_ARGS__)                                                        \
	{                                                                                          \
		return polycm_fail(-EOPNOTSUPP, "the provider has no operation " #slot);           \
	}
UNSUPPORTED(FUNCTION)

#pragma GCC diagnostic pop

#define MEMBER(slot, ...) .slot = stub_##slot,

const struct polycm_ops polycm_stub_ops = {
	.size = sizeof(polycm_stub_ops),
	.init = stub_init,
	.fini = stub_void,
	.channel_open = stub_channel_open,
	.channel_read = stub_channel_read,
	.channel_close = stub_void,
	.migrate = stub_migrate,
	.inspect = stub_inspect,
	UNSUPPORTED(MEMBER)
};
