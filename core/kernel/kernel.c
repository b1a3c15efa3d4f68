/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel/kernel.c - the client of the kernel's RDMA CM as providers get it:
 * its operations, and the start and the end of a provider over it.
 */
#include "config.h"
#include "internal.h"

#include <stdlib.h>

#include "core/base/abi.h"
#include "core/plugin/op.h"
#include "core/plugin/transport.h"

static const struct polycm_abi_struct setup_struct =
	POLYCM_ABI_STRUCT("polycm_kernel_setup", struct polycm_kernel_setup, claims);

static const struct polycm_kernel_setup by_rules = { .size = sizeof(by_rules) };

static int init(struct polycm_module *module, const struct polycm_kernel_setup *setup,
		void **ret_ctx)
{
	struct polycm_kernel_setup copy;
	struct kernel_context *context;
	char why[200];

	if (!setup)
		setup = &by_rules;
	if (polycm_abi_check(&setup_struct, setup->size, module->desc.abi_minor, why, sizeof(why))) {
		polycm_misuse(module, "init", "%s", why);
		return -EINVAL;
	}
	if (!module->desc.transport) {
		polycm_log(POLYCM_LOG_ERROR, "provider %s is over the kernel and has no rules",
			   module->name);
		return -EINVAL;
	}
	polycm_abi_copy(&copy, sizeof(copy), setup);

	context = calloc(1, sizeof(*context));
	if (!context)
		return -ENOMEM;
	context->module = module;
	context->transport = module->desc.transport;
	context->claims = copy.claims;
	kernel_context_add(context);
	*ret_ctx = context;
	return 0;
}

static int init_by_rules(struct polycm_module *module, void **ret_ctx)
{
	return init(module, &by_rules, ret_ctx);
}

static void inspect(void *priv, const struct polycm_report *to)
{
	const struct kernel_id *id = priv;

	to->put(to, "kernel id", "%u", id->number);
}

enum polycm_kind kernel_kind(const void *priv)
{
	const struct kernel_id *id = priv;
	const struct sockaddr ib = { .sa_family = AF_IB };

	return polycm_transport_kind(id->ps, id->qp_type, id->ib ? &ib : NULL);
}

/* Where the kernel refuses a call because the transport lacks something: it returns only an errno. */
int kernel_explain(const struct kernel_id *id, int err, uint32_t service, const char *what)
{
	const struct polycm_transport *rules;

	if (err >= 0)
		return err;
	rules = polycm_id_transport(id->core);
	if (!rules || rules->services & service)
		return err;
	return polycm_fail(err, "%s has no %s", rules->name, what);
}

int kernel_explain_kind(const struct kernel_id *id, int err)
{
	if (err >= 0)
		return err;
	switch (kernel_kind(id)) {
	case POLYCM_KIND_UD:
		return kernel_explain(id, err, POLYCM_SVC_UD, "datagrams (UD)");
	case POLYCM_KIND_RC_AF_IB:
	case POLYCM_KIND_UD_AF_IB:
		return kernel_explain(id, err, POLYCM_SVC_AF_IB, "addresses of family AF_IB");
	default:
		return err;
	}
}

const struct polycm_ops polycm_kernel_ops = {
	.size = sizeof(polycm_kernel_ops),
	.init = init_by_rules,
	.fini = kernel_context_remove,
	.enumerate = kernel_devices_enumerate,
	.match = kernel_op_match,
	.channel_open = kernel_op_channel_open,
	.channel_read = kernel_op_channel_read,
	.channel_close = kernel_op_channel_close,
	.open = kernel_op_open,
	.bind = kernel_op_bind,
	.resolve_addr = kernel_op_resolve_addr,
	.resolve_route = kernel_op_resolve_route,
	.listen = kernel_op_listen,
	.connect = kernel_op_connect,
	.accept = kernel_op_accept,
	.reject = kernel_op_reject,
	.establish = kernel_op_establish,
	.disconnect = kernel_op_disconnect,
	.notify = kernel_op_notify,
	.set_option = kernel_op_set_option,
	.init_qp_attr = kernel_op_init_qp_attr,
	.query = kernel_op_query,
	.join_multicast = kernel_op_join_multicast,
	.leave_multicast = kernel_op_leave_multicast,
	.migrate = kernel_op_migrate,
	.inspect = inspect,
	.close = kernel_op_close,
	.stop = kernel_op_stop,
	.free = kernel_op_free,
};

const struct polycm_kernel polycm_kernel_table = {
	.size = sizeof(polycm_kernel_table),
	.ops = &polycm_kernel_ops,
	.init = init,
	.kind = kernel_kind,
};

const uint32_t polycm_kernel_id_size = sizeof(struct kernel_id);
const uint32_t polycm_kernel_channel_size = sizeof(struct kernel_channel);
