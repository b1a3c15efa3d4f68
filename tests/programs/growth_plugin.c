/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * growth_plugin.c - three plugins, to be built with any version of the headers.
 * What a newer version adds they fill in with what must not be followed.
 *
 * grow (-DIS_grow) carries what has to do with 10.9.9.9: a bind takes port 4711
 * in place of 0, and an address is refused with the errno of POLYCM_GROW_STATUS.
 * wrap is a layer that adds 1 to the status.  card is over the kernel and claims
 * no device; and it owns time, in which no timer ever fires.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <polycm/clock.h>
#include <polycm/kernel.h>
#include <polycm/layer.h>
#include <polycm/provider.h>
#include <polycm/verbs.h>

#ifdef POLYCM_PROVIDER_NEWER
static int trap(void *priv)
{
	(void)priv;
	__builtin_trap();
}
#define NEWER(value) .newer = (value),
#else
#define NEWER(value)
#endif

#ifndef FLAG
#define FLAG 0
#endif

static const struct polycm_core *core;

#ifdef IS_wrap

static void begin(void *ctx, void *priv, const struct polycm_layer *below)
{
	(void)ctx;
	*(const struct polycm_layer **)priv = below;
}

static int event(void *priv, const struct polycm_event *posted, uint64_t hold_ns)
{
	const struct polycm_layer *below = *(const struct polycm_layer **)priv;
	struct polycm_event copy;

	/* The core's may be shorter than ours, or longer. */
	memset(&copy, 0, sizeof(copy));
	memcpy(&copy, posted, posted->size < sizeof(copy) ? posted->size : sizeof(copy));
	copy.size = sizeof(copy);
	copy.status++;
#ifndef OLDER
	return below->post(below, &copy, hold_ns);
#else
	(void)below;
	(void)hold_ns;
	return 0;
#endif
}

static const struct polycm_layer_ops layer = {
	.size = sizeof(layer),
	.begin = begin,
	.event = event,
	NEWER(trap)
};

#endif
#ifdef IS_card

static uint64_t now_ns(void *ctx)
{
	const struct polycm_clock_services *services = ctx;

	return services->real_ns(CLOCK_MONOTONIC);
}

static int timer_start(void *ctx, uint64_t deadline_ns, void (*fn)(void *arg), void *arg,
		       struct polycm_timer **ret_timer)
{
	(void)ctx;
	(void)deadline_ns;
	(void)fn;
	(void)arg;
	*ret_timer = malloc(1);
	return *ret_timer ? 0 : -ENOMEM;
}

static void timer_cancel(void *ctx, struct polycm_timer *timer)
{
	(void)ctx;
	free(timer);
}

static const struct polycm_clock owned = {
	.size = sizeof(owned),
	.now_ns = now_ns,
	.timer_start = timer_start,
	.timer_cancel = timer_cancel,
	NEWER((void *)1)
};

static bool claims(const struct polycm_kernel_device *device)
{
	(void)device;
	return false;
}

static int init(struct polycm_module *module, void **ret_ctx)
{
	const struct polycm_kernel *kernel = core->extension(POLYCM_KERNEL, POLYCM_KERNEL_VERSION);
	const struct polycm_clock_services *services =
		core->extension(POLYCM_CLOCK, POLYCM_CLOCK_VERSION);
	const struct polycm_kernel_setup setup = {
		.size = sizeof(setup), .claims = claims, NEWER((void *)1)
	};
	int r = services->install(&owned, (void *)(uintptr_t)services);

	return r ? r : kernel->init(module, &setup, ret_ctx);
}

static const struct polycm_ops ops = { .size = sizeof(ops), .init = init, NEWER(trap) };

#endif
#ifdef IS_grow

static struct ibv_context *open_device(struct ibv_device *device)
{
	(void)device;
	return NULL;
}

static int close_device(struct ibv_context *context)
{
	(void)context;
	return 0;
}

static const struct polycm_verbs verbs = {
	.size = sizeof(verbs),
	.open_device = open_device,
	.close_device = close_device,
	NEWER((void *)1)
};
static struct polycm_verbs_device device = {
	.device = { .name = "grow0", .dev_name = "grow0", .ibdev_path = "/nowhere/grow0" },
	.verbs = &verbs,
};

struct grow_id {
	struct polycm_id *id;
	struct sockaddr_in addr;
};

static int init(struct polycm_module *module, void **ret_ctx)
{
	*ret_ctx = module;
	return 0;
}

/* Nobody opens it: it is there because without a device there are no ids. */
static int enumerate(void *ctx)
{
	const struct polycm_device_info info = {
		.size = sizeof(info),
		.name = "grow0",
		.transport = "grow-wire",
		.verbs = &device,
		NEWER((void *)1)
	};
	int r = core->device_add(ctx, &info, NULL);

	return r == -EEXIST ? 0 : r;
}

static int is_ours(const struct sockaddr *addr)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)addr;

	return addr && addr->sa_family == AF_INET && ntohl(in->sin_addr.s_addr) == 0x0a090909;
}

static int match(void *ctx, const struct sockaddr *src, const struct sockaddr *dst)
{
	(void)ctx;
	return is_ours(src) || is_ours(dst) ? 0 : -ENODEV;
}

static int open_id(void *ctx, struct polycm_id *id, void *priv, const struct polycm_open *how)
{
	struct grow_id *self = priv;

	(void)ctx;
	self->id = id;
	return how->ps == RDMA_PS_TCP ? 0 : -EINVAL;
}

static int bind_id(void *priv, const struct sockaddr *addr)
{
	struct grow_id *self = priv;

	memcpy(&self->addr, addr, sizeof(self->addr));
	if (!self->addr.sin_port)
		self->addr.sin_port = htons(4711);
	return 0;
}

static int resolve_addr(void *priv, const struct sockaddr *src, const struct sockaddr *dst,
			int timeout_ms)
{
	const struct grow_id *self = priv;
	const struct polycm_event answer = {
		.size = sizeof(answer),
		.type = RDMA_CM_EVENT_ADDR_ERROR,
		.status = -atoi(core->setting("POLYCM_GROW_STATUS")),
		NEWER((void *)1)
	};

	(void)src;
	(void)dst;
	(void)timeout_ms;
	return core->post_event(self->id, &answer);
}

/* As the newest version that it knows has it, and no more than there is room for. */
static int query(void *priv, struct polycm_route_info *ret_info)
{
	const struct grow_id *self = priv;
	struct polycm_route_info info;
	uint32_t room = ret_info->size;

	memset(&info, 0, sizeof(info));
	memcpy(&info.src, &self->addr, sizeof(self->addr));
	info.size = room;
#ifdef POLYCM_PROVIDER_NEWER
	if (POLYCM_HAS(ret_info, newer))
		info.newer = NULL;
#endif
	memcpy(ret_info, &info, room < sizeof(info) ? room : sizeof(info));
	return 0;
}

static void end_id(void *priv)
{
	(void)priv;
}

static const struct polycm_ops ops = {
	.size = sizeof(ops),
	.init = init,
	.enumerate = enumerate,
	.match = match,
	.open = open_id,
	.bind = bind_id,
	.resolve_addr = resolve_addr,
	.query = query,
	.close = end_id,
	.stop = end_id,
#ifndef OLDER
	.free = end_id,
#endif
	NEWER(trap)
};

/* Two: the second stands where the size of the first says. */
static const struct polycm_option options[] = {
	{
		.size = sizeof(options[0]),
		.name = "POLYCM_GROW_COLOR",
		.default_value = "red",
#ifndef OLDER
		.help = "Nothing.",
#endif
		NEWER((void *)1)
	},
	{
		.size = sizeof(options[0]),
		.name = "POLYCM_GROW_STATUS",
		.default_value = "113",
#ifndef OLDER
		.help = "What addresses are refused with.",
#endif
		NEWER((void *)1)
	},
};

#endif
#ifndef IS_wrap

static const struct polycm_transport rules = {
	.size = sizeof(rules),
	.shape = POLYCM_RULES_SHAPE,
	.name = NAME "-wire",
	.description = "a test's",
	.protocol = POLYCM_PROTO_MPA,
	.flags = POLYCM_T_DEVICE_MOVES_QP,
	.limit = {
		[POLYCM_KIND_RC] = { 50, 60, 70 },
#ifdef POLYCM_PROVIDER_NEWER
		[POLYCM_KIND_NEWER] = { 10, 10, 10 },
#endif
	},
	.capacity = {
		[POLYCM_KIND_RC] = { 50, 60, 70 },
#ifdef POLYCM_PROVIDER_NEWER
		[POLYCM_KIND_NEWER] = { 20, 20, 20 },
#endif
	},
	.reject_domain = POLYCM_REJECT_ERRNO,
	.mpa_revision = 2,
	.max_responder_resources = 3,
	NEWER((void *)1)
};

#endif

static const struct polycm_provider provider = {
	.size = sizeof(provider),
	.abi_minor = POLYCM_ABI_MINOR,
	.name = NAME,
	.version = "1",
	.description = "a test's",
	.id_size = 64,
#ifdef IS_wrap
	.layer = &layer,
	.flags = FLAG,
#else
#ifdef IS_grow
	.num_options = sizeof(options) / sizeof(options[0]),
	.options = options,
	.flags = FLAG,
#else
	.flags = FLAG | POLYCM_PROVIDER_KERNEL,
#endif
	.transport = &rules,
	.ops = &ops,
#endif
	NEWER((void *)1)
};

__attribute__((visibility("default")))
int polycm_provider_query_v1(const struct polycm_core *host,
			     const struct polycm_provider **ret_provider)
{
	core = host;
#ifdef POLYCM_PROVIDER_NEWER
	/* There only if the core is of that version, too; it has nothing in it. */
	if (POLYCM_HAS(core, newer) != (core->abi_minor >= 1) ||
	    (POLYCM_HAS(core, newer) && core->newer))
		return -EPROTO;
#endif
	*ret_provider = &provider;
	return 0;
}
