/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provider.c - the plugin "trace": a layer that writes down each call, when it
 * returns, and each event, when it is posted.
 */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "polycm/layer.h"
#include "providers/common/core.h"
#include "providers/common/events.h"
#include "providers/common/trace_line.h"
#include "providers/common/write_error.h"

#define FILE_SETTING "POLYCM_TRACE_FILE"

/* The layer's memory in an id. */
struct trace_id {
	const struct polycm_layer *layer;
	uint32_t number;		/* from 1 */
};

const struct polycm_core *sim_core;

static int file = -1;
static atomic_bool failed;		/* a line could not be written */
static atomic_uint last_number;

static const char *const event_names[] = { EVENT_TYPES(EVENT_NAME) };

static void begin_line(struct trace_line *line, const char *kind, const struct trace_id *self)
{
	trace_begin(line, sim_core->now_ns());
	trace_text(line, "kind", kind);
	trace_text(line, "node", program_invocation_short_name);
	trace_number(line, "id", self->number);
}

static void end_line(struct trace_line *line)
{
	int r = atomic_load(&failed) ? 0 : trace_end(line, file, write);

	if (r < 0 && !atomic_exchange(&failed, true))
		sim_files_failed("trace", sim_core->setting(FILE_SETTING), -r);
}

/* The line of a call that has returned.  The caller adds the call's arguments. */
static void begin_call(struct trace_line *line, const struct trace_id *self, const char *call,
		       uint64_t since, int result)
{
	uint64_t took = sim_core->now_ns() - since;

	begin_line(line, "call", self);
	trace_text(line, "call", call);
	trace_status(line, "result", result);
	if (took)
		trace_number(line, "took", took);
}

/* Make the call, then write its line, to which `tell' adds the arguments. */
#define CALL(op, params, args, tell)								\
static int op_##op params									\
{												\
	const struct trace_id *self = priv;							\
	uint64_t since = sim_core->now_ns();							\
	struct trace_line text, *line = &text;							\
	int result;										\
												\
	priv = self->layer->priv;								\
	result = self->layer->ops->op args;							\
	begin_call(line, self, #op, since, result);						\
	tell;											\
	end_line(line);										\
	return result;										\
}

static void tell_param(struct trace_line *line, const struct polycm_conn_param *param)
{
	trace_number(line, "qpn", param->qp_num);
	trace_number(line, "responder_resources", param->responder_resources);
	trace_number(line, "initiator_depth", param->initiator_depth);
	trace_number(line, "retry", param->retry_count);
	trace_number(line, "rnr_retry", param->rnr_retry_count);
	if (param->ece.vendor_id) {
		trace_number(line, "ece_vendor", param->ece.vendor_id);
		trace_number(line, "ece_options", param->ece.options);
	}
	trace_private_data(line, param->private_data, param->private_data_len);
}

static void tell_two(struct trace_line *line, const char *a, int a_value, const char *b, int b_value)
{
	trace_status(line, a, a_value);
	trace_status(line, b, b_value);
}

static void tell_resolve(struct trace_line *line, const struct sockaddr *src,
			 const struct sockaddr *dst, int timeout_ms)
{
	trace_address(line, "src", src);
	trace_address(line, "dst", dst);
	trace_status(line, "timeout_ms", timeout_ms);
}

static void tell_reject(struct trace_line *line, const void *data, uint8_t len, uint8_t reason)
{
	trace_number(line, "reason", reason);
	trace_private_data(line, data, len);
}

static void tell_join(struct trace_line *line, const struct polycm_multicast *mc)
{
	trace_address(line, "group", mc->addr);
	trace_number(line, "join_flags", mc->join_flags);
}

CALL(bind, (void *priv, const struct sockaddr *addr), (priv, addr),
	trace_address(line, "src", addr))
CALL(resolve_addr, (void *priv, const struct sockaddr *src, const struct sockaddr *dst,
		    int timeout_ms), (priv, src, dst, timeout_ms),
	tell_resolve(line, src, dst, timeout_ms))
CALL(resolve_route, (void *priv, int timeout_ms), (priv, timeout_ms),
	trace_status(line, "timeout_ms", timeout_ms))
CALL(listen, (void *priv, int backlog), (priv, backlog), trace_status(line, "backlog", backlog))
CALL(connect, (void *priv, const struct polycm_conn_param *param), (priv, param),
	tell_param(line, param))
CALL(accept, (void *priv, const struct polycm_conn_param *param), (priv, param),
	tell_param(line, param))
CALL(reject, (void *priv, const void *data, uint8_t len, uint8_t reason), (priv, data, len, reason),
	tell_reject(line, data, len, reason))
CALL(establish, (void *priv), (priv), (void)0)
CALL(disconnect, (void *priv), (priv), (void)0)
CALL(notify, (void *priv, enum ibv_event_type event), (priv, event),
	trace_status(line, "notified", (int)event))
CALL(set_option, (void *priv, int level, int optname, const void *optval, size_t optlen),
	(priv, level, optname, optval, optlen), tell_two(line, "level", level, "option", optname))
CALL(init_qp_attr, (void *priv, struct ibv_qp_attr *attr, int *ret_mask), (priv, attr, ret_mask),
	trace_status(line, "qp_state", (int)attr->qp_state))
CALL(query, (void *priv, struct polycm_route_info *ret_info), (priv, ret_info), (void)0)
CALL(join_multicast, (void *priv, const struct polycm_multicast *mc), (priv, mc),
	tell_join(line, mc))
CALL(leave_multicast, (void *priv, void *group), (priv, group), (void)0)
CALL(migrate, (void *priv, void *new_chan), (priv, new_chan), (void)0)

static int op_open(void *ctx, struct polycm_id *id, void *priv, const struct polycm_open *how)
{
	struct trace_id *self = priv;
	uint64_t since = sim_core->now_ns();
	struct trace_line line;
	int result;

	(void)ctx;
	result = self->layer->ops->open(self->layer->ctx, id, self->layer->priv, how);
	begin_call(&line, self, "create_id", since, result);
	trace_number(&line, "port_space", how->ps);
	end_line(&line);
	return result;
}

static void op_close(void *priv)
{
	const struct trace_id *self = priv;
	uint64_t since = sim_core->now_ns();
	struct trace_line line;

	self->layer->ops->close(self->layer->priv);
	begin_call(&line, self, "destroy_id", since, 0);
	end_line(&line);
}

static void op_begin(void *ctx, void *priv, const struct polycm_layer *layer)
{
	struct trace_id *self = priv;

	(void)ctx;
	self->layer = layer;
	self->number = atomic_fetch_add(&last_number, 1) + 1;
}

static void tell_event(struct trace_line *line, const struct polycm_event *event)
{
	if (event->is_ud) {
		trace_number(line, "qpn", event->param.ud.qp_num);
		/* In a multicast event private_data is the program's context. */
		if (!event->group)
			trace_private_data(line, event->param.ud.private_data,
				   event->param.ud.private_data_len);
		return;
	}
	if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST ||
	    event->type == RDMA_CM_EVENT_CONNECT_RESPONSE) {
		trace_number(line, "qpn", event->param.conn.qp_num);
		trace_number(line, "responder_resources", event->param.conn.responder_resources);
		trace_number(line, "initiator_depth", event->param.conn.initiator_depth);
	}
	trace_private_data(line, event->param.conn.private_data, event->param.conn.private_data_len);
}

/* The line is written first: once the event is posted, the program may act on it. */
static int op_event(void *priv, const struct polycm_event *event, uint64_t hold_ns)
{
	const struct trace_id *self = priv;
	struct trace_line line;

	begin_line(&line, "event", self);
	trace_text(&line, "event", event_names[event->type]);
	trace_status(&line, "status", event->status);
	if (hold_ns)
		trace_number(&line, "hold", hold_ns);
	tell_event(&line, event);
	end_line(&line);
	return self->layer->post(self->layer, event, hold_ns);
}

/* ------------------------------------------------------------------------
 * The plugin.
 */

static int init(struct polycm_module *module, void **ret_ctx)
{
	const char *path = sim_core->setting(FILE_SETTING);
	int r;

	(void)module;
	*ret_ctx = NULL;
	r = sim_files_watch_exit();
	if (!r)
		r = file = trace_file_open(path);
	if (r < 0)
		sim_core->log(POLYCM_LOG_ERROR, NULL, "%s=%s: %s", FILE_SETTING, path, strerror(-r));
	return r < 0 ? r : 0;
}

static void fini(void *ctx)
{
	(void)ctx;
	if (file >= 0)
		close(file);
	file = -1;
}

static const struct polycm_ops ops = {
	.size = sizeof(ops),
	.init = init,
	.fini = fini,
	.open = op_open,
	.bind = op_bind,
	.resolve_addr = op_resolve_addr,
	.resolve_route = op_resolve_route,
	.listen = op_listen,
	.connect = op_connect,
	.accept = op_accept,
	.reject = op_reject,
	.establish = op_establish,
	.disconnect = op_disconnect,
	.notify = op_notify,
	.set_option = op_set_option,
	.init_qp_attr = op_init_qp_attr,
	.query = op_query,
	.join_multicast = op_join_multicast,
	.leave_multicast = op_leave_multicast,
	.migrate = op_migrate,
	.close = op_close,
};

static const struct polycm_layer_ops layer_ops = {
	.size = sizeof(layer_ops),
	.begin = op_begin,
	.event = op_event,
};

static const struct polycm_option options[] = {
	{
		.size = sizeof(options[0]),
		.name = FILE_SETTING,
		.default_value = "-",
		.help = "File in which the layer trace writes calls and events, as in "
			"polycm-trace(5); -: standard error.",
	},
};

static const struct polycm_provider trace_provider = {
	.size = sizeof(trace_provider),
	.abi_minor = POLYCM_ABI_MINOR,
	.name = "trace",
	.version = PACKAGE_VERSION,
	.description = "layer: writes down each call and event",
	.ops = &ops,
	.layer = &layer_ops,
	.id_size = sizeof(struct trace_id),
	.options = options,
	.num_options = sizeof(options) / sizeof(options[0]),
};

__attribute__((visibility("default")))
int polycm_provider_query_v1(const struct polycm_core *core,
			     const struct polycm_provider **ret_provider)
{
	sim_core = core;
	*ret_provider = &trace_provider;
	return 0;
}
