/* SPDX-License-Identifier: BSD-2-Clause */
/* cm/layers.c - see layers.h. */
#include "config.h"
#include "id_internal.h"

#include <errno.h>

#include "core/base/abi.h"
#include "core/plugin/layers.h"
#include "core/plugin/op.h"
#include "ret.h"

#define MAX_LAYERS 16u

struct frame {
	struct polycm_layer pub;	/* first; what is below */
	struct polycm_module *layer;
	unsigned int index;
	bool begun;
	_Alignas(16) unsigned char area[];
};

unsigned int polycm_num_layers;
static struct polycm_module *layers[MAX_LAYERS];
static size_t offsets[MAX_LAYERS + 1] = { 0 };	/* of the frames, and of what comes after them */

static struct frame *frame_of(struct polycm_id *id, unsigned int index)
{
	return (struct frame *)(void *)(id->priv + offsets[index]);
}

/* Which of several over the kernel the id is with may change. */
static const struct polycm_module *module_of(const void *base)
{
	const unsigned char *priv = (const unsigned char *)base - offsets[polycm_num_layers];

	return ((const struct polycm_id *)(const void *)(priv - offsetof(struct polycm_id, priv)))
		->module;
}

/* ------------------------------------------------------------------------
 * Operations: one of a layer, or what is below it where it has none; at the
 * end the provider's.
 */

#define AS_IT_IS(module, op, result) result
#define BOTH(...) BOTH_AND(int, polycm_op_result, __VA_ARGS__)
#define BOTH_VOID(...) BOTH_AND(void, AS_IT_IS, __VA_ARGS__)

#define BOTH_AND(type, check, op, params, ...)							\
static type layer_##op params									\
{												\
	struct frame *frame = priv;								\
	const struct polycm_layer *below = &frame->pub;						\
												\
	if (frame->layer->ops.op) {								\
		priv = frame->area;								\
		return check(frame->layer, #op, frame->layer->ops.op(__VA_ARGS__));		\
	}											\
	priv = below->priv;									\
	return below->ops->op(__VA_ARGS__);							\
}												\
static type base_##op params									\
{												\
	return check(module_of(priv), #op, module_of(priv)->base.op(__VA_ARGS__));		\
}

BOTH(bind, (void *priv, const struct sockaddr *addr), priv, addr)
BOTH(resolve_addr, (void *priv, const struct sockaddr *src, const struct sockaddr *dst,
		    int timeout_ms), priv, src, dst, timeout_ms)
BOTH(resolve_route, (void *priv, int timeout_ms), priv, timeout_ms)
BOTH(listen, (void *priv, int backlog), priv, backlog)
BOTH(connect, (void *priv, const struct polycm_conn_param *param), priv, param)
BOTH(accept, (void *priv, const struct polycm_conn_param *param), priv, param)
BOTH(reject, (void *priv, const void *data, uint8_t len, uint8_t reason), priv, data, len,
	reason)
BOTH(establish, (void *priv), priv)
BOTH(disconnect, (void *priv), priv)
BOTH(notify, (void *priv, enum ibv_event_type event), priv, event)
BOTH(set_option, (void *priv, int level, int optname, const void *optval, size_t optlen),
	priv, level, optname, optval, optlen)
BOTH(init_qp_attr, (void *priv, struct ibv_qp_attr *attr, int *ret_mask), priv, attr, ret_mask)
BOTH(query, (void *priv, struct polycm_route_info *ret_info), priv, ret_info)
BOTH(join_multicast, (void *priv, const struct polycm_multicast *mc), priv, mc)
BOTH(leave_multicast, (void *priv, void *group), priv, group)
BOTH(migrate, (void *priv, void *new_chan), priv, new_chan)
BOTH_VOID(inspect, (void *priv, const struct polycm_report *to), priv, to)
BOTH_VOID(close, (void *priv), priv)
BOTH_VOID(stop, (void *priv), priv)
BOTH_VOID(free, (void *priv), priv)

static int layer_open(void *ctx, struct polycm_id *id, void *priv, const struct polycm_open *how)
{
	struct frame *frame = priv;
	const struct polycm_layer *below = &frame->pub;

	(void)ctx;
	if (frame->layer->ops.open)
		return POLYCM_OP(frame->layer, open, frame->layer->ctx, id, frame->area, how);
	return below->ops->open(below->ctx, id, below->priv, how);
}

static int base_open(void *ctx, struct polycm_id *id, void *priv, const struct polycm_open *how)
{
	(void)ctx;
	return polycm_op_result(id->module, "open",
				id->module->base.open(id->module->ctx, id, priv, how));
}

/* What the core calls: an id begins with its open(), and ends with its free(). */
static int enter_open(void *ctx, struct polycm_id *id, void *priv, const struct polycm_open *how)
{
	polycm_layers_begin(id);
	return layer_open(ctx, id, priv, how);
}

static void enter_free(void *priv)
{
	struct frame *outermost = priv;
	struct polycm_id *id = outermost->pub.id;

	layer_free(priv);
	polycm_layers_end(id);
}

#define ID_OPS(prefix)										\
	.size = sizeof(struct polycm_ops),							\
	.bind = prefix##_bind,									\
	.resolve_addr = prefix##_resolve_addr,							\
	.resolve_route = prefix##_resolve_route,						\
	.listen = prefix##_listen,								\
	.connect = prefix##_connect,								\
	.accept = prefix##_accept,								\
	.reject = prefix##_reject,								\
	.establish = prefix##_establish,							\
	.disconnect = prefix##_disconnect,							\
	.notify = prefix##_notify,								\
	.set_option = prefix##_set_option,							\
	.init_qp_attr = prefix##_init_qp_attr,							\
	.query = prefix##_query,								\
	.join_multicast = prefix##_join_multicast,						\
	.leave_multicast = prefix##_leave_multicast,						\
	.migrate = prefix##_migrate,								\
	.inspect = prefix##_inspect,								\
	.close = prefix##_close,								\
	.stop = prefix##_stop,									\
	.open = prefix##_open,									\
	.free = prefix##_free

static const struct polycm_ops layer_ops = { ID_OPS(layer) };
static const struct polycm_ops base_ops = { ID_OPS(base) };

void polycm_layers_wrap(struct polycm_module *module)
{
	struct polycm_ops wrapped = layer_ops;

	if (!polycm_num_layers)
		return;
	module->base = module->ops;
	wrapped.init = module->ops.init;
	wrapped.fini = module->ops.fini;
	wrapped.enumerate = module->ops.enumerate;
	wrapped.match = module->ops.match;
	wrapped.inspect_device = module->ops.inspect_device;
	wrapped.channel_open = module->ops.channel_open;
	wrapped.channel_read = module->ops.channel_read;
	wrapped.channel_close = module->ops.channel_close;
	wrapped.open = enter_open;
	wrapped.free = enter_free;
	module->ops = wrapped;
}

/* ------------------------------------------------------------------------
 * Events.
 */

static int hand_up(const struct polycm_layer *layer, const struct polycm_event *event,
		   uint64_t hold_ns);

static int deliver(struct frame *frame, const struct polycm_event *event, uint64_t hold_ns)
{
	if (!frame->layer->layer.event)
		return hand_up(&frame->pub, event, hold_ns);
	return polycm_op_result(frame->layer, "event",
				frame->layer->layer.event(frame->area, event, hold_ns));
}

static int hand_up(const struct polycm_layer *layer, const struct polycm_event *event,
		   uint64_t hold_ns)
{
	const struct frame *frame = (const struct frame *)(const void *)layer;
	struct polycm_event copy;
	bool *posted = NULL;
	int err;

	event = polycm_event_checked(frame->layer, event, &copy);
	if (!event)
		return -EINVAL;
	if (frame->index)
		return deliver(frame_of(layer->id, frame->index - 1), event, hold_ns);
	if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST)
		posted = event->child->request_posted;
	err = polycm_post(layer->id, event, hold_ns, POLYCM_BY_PROVIDER);
	if (!err && posted)
		*posted = true;
	return err;
}

int polycm_layers_post(struct polycm_id *id, const struct polycm_event *event)
{
	struct frame *innermost = frame_of(id, polycm_num_layers - 1);
	bool is_request, posted = false;
	struct polycm_event copy;
	int err;

	event = polycm_event_checked(id->module, event, &copy);
	if (!event)
		return -EINVAL;
	/* Opened by none of ours. */
	if (!innermost->begun)
		return polycm_post(id, event, 0, POLYCM_BY_PROVIDER);
	polycm_answer(id, event->type);
	is_request = event->type == RDMA_CM_EVENT_CONNECT_REQUEST;
	if (is_request)
		event->child->request_posted = &posted;
	err = deliver(innermost, event, 0);
	if (!is_request || posted)
		return err;
	/* A request that a layer drops is the provider's to end. */
	event->child->request_posted = NULL;
	return err ? err : -ENOMEM;
}

/* ------------------------------------------------------------------------
 * Layers and their frames.
 */

static size_t rounded(size_t size)
{
	return (size + 15) & ~(size_t)15;
}

int polycm_layers_add(struct polycm_module *layer)
{
	unsigned int i = polycm_num_layers;

	if (i == MAX_LAYERS)
		return -E2BIG;
	layers[i] = layer;
	offsets[i + 1] = offsets[i] + rounded(sizeof(struct frame) + layer->desc.id_size);
	polycm_num_layers++;
	return 0;
}

struct polycm_module *polycm_layer(unsigned int i)
{
	return layers[i];
}

size_t polycm_layers_size(void)
{
	return offsets[polycm_num_layers];
}

void polycm_layers_begin(struct polycm_id *id)
{
	for (unsigned int i = 0; i < polycm_num_layers; i++) {
		struct frame *frame = frame_of(id, i);
		bool last = i + 1 == polycm_num_layers;

		frame->pub = (struct polycm_layer){
			.size = sizeof(frame->pub),
			.id = id,
			.ops = last ? &base_ops : &layer_ops,
			.ctx = last ? id->module->ctx : layers[i + 1]->ctx,
			.priv = id->priv + offsets[i + 1],
			.post = hand_up,
		};
		frame->layer = layers[i];
		frame->index = i;
	}
	for (unsigned int i = 0; i < polycm_num_layers; i++) {
		struct frame *frame = frame_of(id, i);

		if (frame->layer->layer.begin)
			frame->layer->layer.begin(frame->layer->ctx, frame->area, &frame->pub);
		frame->begun = true;
	}
}

void polycm_layers_end(struct polycm_id *id)
{
	for (unsigned int i = 0; i < polycm_num_layers; i++) {
		struct frame *frame = frame_of(id, i);

		if (frame->begun && frame->layer->layer.end)
			frame->layer->layer.end(frame->area);
		frame->begun = false;
	}
}
