/* SPDX-License-Identifier: BSD-2-Clause */
/* provider.c - the plugin "fault": a layer whose operations and events ask the rules. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "providers/common/core.h"
#include "fault.h"
#include "lock_order.h"

#define SCENARIO "POLYCM_FAULT_SCENARIO"
#define RULES "POLYCM_FAULT_RULES"
#define SEED "POLYCM_FAULT_SEED"

/* The layer's memory in an id. */
struct fault_id {
	const struct polycm_layer *layer;
};

static bool asked(enum fault_what what)
{
	return fault_asked >> what & 1;
}

/* Before a call is passed to the layer below: the error that it fails with, or 0. */
static int ask_call(const struct fault_id *self, enum fault_what what, struct fault_effect *ret_effect)
{
	*ret_effect = (struct fault_effect){ .error = 0 };
	if (!asked(what))
		return 0;
	fault_rules_ask(self->layer->id, what, ret_effect);
	if (ret_effect->delay_ns)
		sim_core->sleep(ret_effect->delay_ns);
	if (ret_effect->error)
		sim_core->why("a fault of POLYCM_FAULT_RULES or POLYCM_FAULT_SCENARIO");
	return ret_effect->error;
}

#define CALL(op, params, ...)									\
static int op_##op params									\
{												\
	const struct fault_id *self = priv;							\
	struct fault_effect effect;									\
	int err = ask_call(self, FAULT_##op, &effect);						\
												\
	priv = self->layer->priv;								\
	return err ? err : self->layer->ops->op(__VA_ARGS__);					\
}

CALL(bind, (void *priv, const struct sockaddr *addr), priv, addr)
CALL(resolve_addr, (void *priv, const struct sockaddr *src, const struct sockaddr *dst,
		    int timeout_ms), priv, src, dst, timeout_ms)
CALL(resolve_route, (void *priv, int timeout_ms), priv, timeout_ms)
CALL(listen, (void *priv, int backlog), priv, backlog)
CALL(connect, (void *priv, const struct polycm_conn_param *param), priv, param)
CALL(accept, (void *priv, const struct polycm_conn_param *param), priv, param)
CALL(establish, (void *priv), priv)
CALL(disconnect, (void *priv), priv)
CALL(notify, (void *priv, enum ibv_event_type event), priv, event)
CALL(set_option, (void *priv, int level, int optname, const void *optval, size_t optlen),
	priv, level, optname, optval, optlen)
CALL(init_qp_attr, (void *priv, struct ibv_qp_attr *attr, int *ret_mask), priv, attr, ret_mask)
CALL(query, (void *priv, struct polycm_route_info *ret_info), priv, ret_info)
CALL(join_multicast, (void *priv, const struct polycm_multicast *mc), priv, mc)
CALL(leave_multicast, (void *priv, void *group), priv, group)
CALL(migrate, (void *priv, void *new_chan), priv, new_chan)

static int op_open(void *ctx, struct polycm_id *id, void *priv, const struct polycm_open *how)
{
	const struct polycm_layer *layer = ((struct fault_id *)priv)->layer;
	struct fault_effect effect;
	int err = ask_call(priv, FAULT_create_id, &effect);

	(void)ctx;
	return err ? err : layer->ops->open(layer->ctx, id, layer->priv, how);
}

static int op_reject(void *priv, const void *data, uint8_t len, uint8_t reason)
{
	const struct polycm_layer *layer = ((struct fault_id *)priv)->layer;
	struct fault_effect effect;
	int err = ask_call(priv, FAULT_reject, &effect);

	if (err)
		return err;
	if (effect.change && effect.change->has_status)
		reason = effect.change->reason;
	if (effect.change && effect.change->has_data) {
		len = effect.change->data_len;
		data = len ? effect.change->data : NULL;
	}
	return layer->ops->reject(layer->priv, data, len, reason);
}

static void op_begin(void *ctx, void *priv, const struct polycm_layer *layer)
{
	(void)ctx;
	((struct fault_id *)priv)->layer = layer;
}

static void change(struct polycm_event *event, const struct fault_rule *rule)
{
	if (rule->has_type || rule->has_status)
		event->why = NULL;
	if (rule->has_type)
		event->type = rule->type;
	if (rule->has_status)
		event->status = rule->status;
	if (!rule->has_data)
		return;
	if (event->is_ud) {
		event->param.ud.private_data = rule->data;
		event->param.ud.private_data_len = rule->data_len;
	} else {
		event->param.conn.private_data = rule->data;
		event->param.conn.private_data_len = rule->data_len;
	}
}

static int op_event(void *priv, const struct polycm_event *event, uint64_t hold_ns)
{
	const struct polycm_layer *layer = ((struct fault_id *)priv)->layer;
	struct fault_effect effect = { .error = 0 };
	struct polycm_event copy;

	if (!asked(fault_of_event(event->type)))
		return layer->post(layer, event, hold_ns);
	fault_rules_ask(layer->id, fault_of_event(event->type), &effect);
	if (effect.lost)
		return 0;
	if (effect.change) {
		copy = *event;
		copy.size = sizeof(copy);
		change(&copy, effect.change);
		event = &copy;
	}
	if (__builtin_add_overflow(hold_ns, effect.delay_ns, &hold_ns))
		hold_ns = UINT64_MAX;
	return layer->post(layer, event, hold_ns);
}

/* ------------------------------------------------------------------------
 * The plugin.
 */

static int init(struct polycm_module *module, void **ret_ctx)
{
	const char *path = sim_core->setting(SCENARIO), *rules = sim_core->setting(RULES);
	const char *seed = sim_core->setting(SEED);
	char *end;
	int r;

	(void)module;
	*ret_ctx = NULL;
	errno = 0;
	fault_rules_start(strtoull(seed, &end, 0));
	if (errno || !*seed || *end || *seed == '-') {
		sim_core->log(POLYCM_LOG_ERROR, NULL, "%s=%s: expected a number", SEED, seed);
		return -EINVAL;
	}
	r = *path ? fault_read(path, NULL) : 0;
	if (!r && *rules)
		r = fault_read(RULES, rules);
	if (!r && !fault_asked)
		sim_core->log(POLYCM_LOG_WARN, NULL, "the layer fault has no rules: %s or %s gives "
			      "them", RULES, SCENARIO);
	return r;
}

static void fini(void *ctx)
{
	(void)ctx;
	fault_rules_end();
}

static const struct polycm_ops ops = {
	.size = sizeof(ops),
	.init = init,
	.fini = fini,
	.open = op_open,
#define X(op) .op = op_##op,
	FAULT_CALLS(X)
#undef X
};

static const struct polycm_layer_ops layer_ops = {
	.size = sizeof(layer_ops),
	.begin = op_begin,
	.event = op_event,
};

static const struct polycm_option options[] = {
	{
		.size = sizeof(options[0]),
		.name = SCENARIO,
		.default_value = "",
		.help = "Scenario file with a list of faults, as in polycm-scenario(5).",
	},
	{
		.size = sizeof(options[0]),
		.name = RULES,
		.default_value = "",
		.help = "More rules, as text: { action = \"fail\"; message = \"connect\"; }",
	},
	{
		.size = sizeof(options[0]),
		.name = SEED,
		.default_value = "1",
		.help = "Seed of the random numbers of rules with a probability.",
	},
};

static const struct polycm_provider fault_provider = {
	.size = sizeof(fault_provider),
	.abi_minor = POLYCM_ABI_MINOR,
	.name = "fault",
	.version = PACKAGE_VERSION,
	.description = "layer: lets calls fail and events be late, lost or changed",
	.ops = &ops,
	.layer = &layer_ops,
	.id_size = sizeof(struct fault_id),
	.options = options,
	.num_options = sizeof(options) / sizeof(options[0]),
};

__attribute__((visibility("default")))
int polycm_provider_query_v1(const struct polycm_core *core,
			     const struct polycm_provider **ret_provider)
{
	sim_core = core;
	LOCK_ORDER_SHARE(core);
	*ret_provider = &fault_provider;
	return 0;
}
