/* SPDX-License-Identifier: BSD-2-Clause */
/* cm_fake.c - see cm_fake.h */
#include "cm_fake.h"

#include "core/base/clock.h"

struct fake fakes[2];
const struct polycm_clock *beta_clock;

static const struct { const char *name; uint8_t net; } identities[] = {
	{ "acme", 10 },
	{ "beta", 20 },
};

static const char *const op_names[NUM_OPS] = {
	"open", "bind", "resolve_addr", "resolve_route", "listen", "connect", "accept", "reject",
	"establish", "disconnect", "notify", "set_option", NULL, NULL, "join", "leave", "migrate",
	"close", "stop", "free", "channel_open", "channel_read", "channel_close",
};

/* Count, write down, and tell what to return. */
static int called(struct fake *fake, enum fake_op op)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* the trace */
	size_t len;

	__atomic_add_fetch(&fake->calls[op], 1, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&lock);
	len = strlen(fake->trace);
	if (op_names[op])
		snprintf(fake->trace + len, sizeof(fake->trace) - len, "%s%s", len ? " " : "",
			 op_names[op]);
	pthread_mutex_unlock(&lock);
	return fake->fail[op];
}

static struct fake *fake_of(void *priv)
{
	return ((struct fake_id *)priv)->fake;
}

static int id_called(void *priv, enum fake_op op)
{
	return called(fake_of(priv), op);
}

/* ------------------------------------------------------------------------
 * The operations.
 */

static int op_init(struct polycm_module *module, void **ret_ctx)
{
	struct fake *fake = &fakes[strcmp(module->name, identities[0].name) != 0];

	fake->module = module;
	*ret_ctx = fake;
	return beta_clock && fake != fakes ? polycm_clock_install(beta_clock, NULL) : 0;
}

static int op_enumerate(void *ctx)
{
	static struct polycm_verbs_device vdevs[2];
	struct fake *fake = ctx;
	struct polycm_verbs_device *vdev = &vdevs[fake - fakes];
	struct polycm_device_info info = {
		.size = sizeof(info),
		.name = fake == fakes ? "acme0" : "beta0",
		.transport = fake->module->name,
		.verbs = vdev,
	};

	if (fake->device || fake->absent)
		return 0;
	vdev->verbs = &fake_verbs_table;
	vdev->device.node_type = IBV_NODE_CA;
	vdev->device.transport_type = IBV_TRANSPORT_IB;
	snprintf(vdev->device.name, sizeof(vdev->device.name), "%s", info.name);
	return polycm_device_add(fake->module, &info, &fake->device);
}

static bool carries(const struct fake *fake, const struct sockaddr *addr)
{
	struct sockaddr_in in;
	uint32_t ip;

	if (!addr || addr->sa_family != AF_INET)
		return true;
	memcpy(&in, addr, sizeof(in));
	ip = ntohl(in.sin_addr.s_addr);
	return !ip || ip >> 24 == 127 || ip >> 24 == fake->net;
}

static int op_match(void *ctx, const struct sockaddr *src, const struct sockaddr *dst)
{
	struct fake *fake = ctx;

	return !fake->absent && carries(fake, src) && carries(fake, dst) ? 0 : -ENODEV;
}

static int op_channel_open(void *ctx, void *chan, int *ret_fd)
{
	struct fake *fake = ctx;

	*(struct fake **)chan = fake;
	*ret_fd = fake->pull_fd;
	fake->channels++;
	return called(fake, OP_CHANNEL_OPEN);
}

static int op_channel_read(void *chan)
{
	struct fake *fake = *(struct fake **)chan;
	uint64_t count;
	int err = called(fake, OP_CHANNEL_READ);

	if (read(fake->pull_fd, &count, sizeof(count)) == sizeof(count) && fake->pulled_id)
		assert_int_equal(polycm_post_event(fake->pulled_id, &fake->pulled), 0);
	return err;
}

static void op_channel_close(void *chan)
{
	struct fake *fake = *(struct fake **)chan;

	fake->channels--;
	called(fake, OP_CHANNEL_CLOSE);
}

static int op_open(void *ctx, struct polycm_id *id, void *priv, const struct polycm_open *how)
{
	struct fake *fake = ctx;
	struct fake_id *self = priv;

	assert_int_equal((uintptr_t)priv % 16, 0);
	assert_null(self->fake);
	self->fake = fake;
	self->id = id;
	self->chan = how->channel_priv;
	assert_ptr_equal(*(struct fake **)how->channel_priv, fake);
	fake->last = self;
	__atomic_add_fetch(&fake->ids, 1, __ATOMIC_SEQ_CST);
	return called(fake, OP_OPEN);
}

static void take_port(struct fake *fake, struct sockaddr_storage *addr)
{
	struct sockaddr_in *in = (struct sockaddr_in *)addr;

	if (in->sin_family == AF_INET && !in->sin_port)
		in->sin_port = htons(fake->next_port++);
}

static int op_bind(void *priv, const struct sockaddr *addr)
{
	struct fake_id *self = priv;
	int err = id_called(priv, OP_BIND);

	if (err)
		return err;
	if (self->bound)
		return -EINVAL;
	memset(&self->fake->last_bind, 0, sizeof(self->fake->last_bind));
	memcpy(&self->fake->last_bind, addr, sizeof(struct sockaddr_in));
	memcpy(&self->src, addr, sizeof(struct sockaddr_in));
	take_port(self->fake, &self->src);
	self->bound = true;
	self->on_device = ((const struct sockaddr_in *)(const void *)addr)->sin_addr.s_addr != 0;
	return 0;
}

static int op_resolve_addr(void *priv, const struct sockaddr *src, const struct sockaddr *dst,
			   int timeout_ms)
{
	struct fake_id *self = priv;
	struct sockaddr_in *in = (struct sockaddr_in *)&self->src;
	int err = id_called(priv, OP_RESOLVE_ADDR);

	(void)src;
	(void)timeout_ms;
	if (err)
		return err;
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl((uint32_t)self->fake->net << 24 | 1);
	take_port(self->fake, &self->src);
	memcpy(&self->dst, dst, sizeof(struct sockaddr_in));
	self->bound = true;
	if (self->fake->quiet)
		return 0;
	self->on_device = true;
	return post(&self->id->pub, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

static int op_resolve_route(void *priv, int timeout_ms)
{
	struct fake_id *self = priv;
	int err = id_called(priv, OP_RESOLVE_ROUTE);

	if (!err && !timeout_ms)
		err = -EINVAL;
	if (err || self->fake->quiet)
		return err;
	return post(&self->id->pub, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

static int op_listen(void *priv, int backlog)
{
	fake_of(priv)->backlog = backlog;
	return id_called(priv, OP_LISTEN);
}

static void keep_data(struct fake *fake, const void *data, uint8_t len)
{
	memset(fake->data, 0, sizeof(fake->data));
	if (len)
		memcpy(fake->data, data, len);
	else
		assert_null(data);
}

static int op_connect(void *priv, const struct polycm_conn_param *param)
{
	fake_of(priv)->param = *param;
	keep_data(fake_of(priv), param->private_data, param->private_data_len);
	return id_called(priv, OP_CONNECT);
}

static int op_accept(void *priv, const struct polycm_conn_param *param)
{
	fake_of(priv)->param = *param;
	keep_data(fake_of(priv), param->private_data, param->private_data_len);
	return id_called(priv, OP_ACCEPT);
}

static int op_reject(void *priv, const void *data, uint8_t len, uint8_t reason)
{
	keep_data(fake_of(priv), data, len);
	fake_of(priv)->reason = reason;
	return id_called(priv, OP_REJECT);
}

static int op_establish(void *priv)
{
	int err = id_called(priv, OP_ESTABLISH);

	if (err)
		polycm_core_table.why("the fake does not want to");
	return err;
}

static int op_disconnect(void *priv)
{
	return id_called(priv, OP_DISCONNECT);
}

static int op_notify(void *priv, enum ibv_event_type event)
{
	fake_of(priv)->notified = event;
	return id_called(priv, OP_NOTIFY);
}

static int op_set_option(void *priv, int level, int optname, const void *optval, size_t optlen)
{
	(void)level;
	(void)optname;
	(void)optlen;
	fake_of(priv)->option_value = *(const uint8_t *)optval;
	if (fake_of(priv)->option_event)
		assert_int_equal(post(&((struct fake_id *)priv)->id->pub,
				      fake_of(priv)->option_event, 0), 0);
	return id_called(priv, OP_SET_OPTION);
}

static int op_init_qp_attr(void *priv, struct ibv_qp_attr *attr, int *ret_mask)
{
	const struct fake_id *self = priv;

	attr->max_dest_rd_atomic = 7;
	attr->max_rd_atomic = 6;
	*ret_mask = IBV_QP_STATE;
	if (attr->qp_state == IBV_QPS_INIT) {
		attr->qp_access_flags = self->fake->access_flags;
		attr->pkey_index = 3;
		attr->port_num = self->fake->qp_port;
		*ret_mask |= IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	}
	if (attr->qp_state == IBV_QPS_RTR)
		*ret_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | 1 << 21;
	if (attr->qp_state == IBV_QPS_RTS)
		*ret_mask |= IBV_QP_MAX_QP_RD_ATOMIC;
	return id_called(priv, OP_INIT_QP_ATTR);
}

static int op_query(void *priv, struct polycm_route_info *ret_info)
{
	struct fake_id *self = priv;

	ret_info->src = self->src;
	ret_info->dst = self->dst;
	if (self->on_device && !self->fake->no_device) {
		ret_info->device = self->fake->device;
		ret_info->port_num = 1;
		ret_info->pkey = htons(0xffff);
		ret_info->sgid.raw[15] = 1;
		ret_info->dgid.raw[15] = 2;
		ret_info->num_paths = 1;
		ret_info->path[0].packet_life_time = 16;
	}
	return id_called(priv, OP_QUERY);
}

static int op_join(void *priv, const struct polycm_multicast *mc)
{
	const struct fake_id *self = priv;
	struct polycm_event event = {
		.size = sizeof(event), .type = self->fake->join_event, .is_ud = true,
		.group = mc->group,
	};

	((struct fake_id *)priv)->group = mc->group;
	self->fake->join_flags = mc->join_flags;
	if (event.type)
		assert_int_equal(polycm_post_event(self->id, &event), 0);
	return id_called(priv, OP_JOIN);
}

static int op_leave(void *priv, void *group)
{
	assert_non_null(group);
	return id_called(priv, OP_LEAVE);
}

static int op_migrate(void *priv, void *new_chan)
{
	((struct fake_id *)priv)->chan = new_chan;
	assert_ptr_equal(*(struct fake **)new_chan, fake_of(priv));
	return id_called(priv, OP_MIGRATE);
}

static void op_close(void *priv)
{
	id_called(priv, OP_CLOSE);
}

static void op_stop(void *priv)
{
	/* The core takes nothing more for this id. */
	assert_int_equal(post(&((struct fake_id *)priv)->id->pub, RDMA_CM_EVENT_DISCONNECTED, 0),
			 -ECANCELED);
	if (fake_of(priv)->in_stop) {
		void (*in_stop)(struct polycm_id *id) = fake_of(priv)->in_stop;

		fake_of(priv)->in_stop = NULL;
		in_stop(((struct fake_id *)priv)->id);
	}
	if (fake_of(priv)->stop_joins) {
		assert_int_equal(pthread_join(*fake_of(priv)->stop_joins, NULL), 0);
		fake_of(priv)->stop_joins = NULL;
	}
	id_called(priv, OP_STOP);
}

static void op_inspect(void *priv, const struct polycm_report *to)
{
	if (fake_of(priv)->inspect)
		fake_of(priv)->inspect(to);
}

static void op_free(void *priv)
{
	id_called(priv, OP_FREE);
	__atomic_sub_fetch(&fake_of(priv)->ids, 1, __ATOMIC_SEQ_CST);
}

static const struct polycm_ops ops = {
	.size = sizeof(ops),
	.init = op_init,
	.enumerate = op_enumerate,
	.match = op_match,
	.channel_open = op_channel_open,
	.channel_read = op_channel_read,
	.channel_close = op_channel_close,
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
	.join_multicast = op_join,
	.leave_multicast = op_leave,
	.migrate = op_migrate,
	.inspect = op_inspect,
	.close = op_close,
	.stop = op_stop,
	.free = op_free,
};

/* ------------------------------------------------------------------------
 * The providers.
 */

static const struct polycm_transport acme_rules = {
	.size = sizeof(acme_rules),
	.shape = POLYCM_RULES_SHAPE,
	.name = "acme",
	.description = "everything that the IB CM has",
	.protocol = POLYCM_PROTO_IB_CM,
	.services = POLYCM_SVC_UD | POLYCM_SVC_MULTICAST | POLYCM_SVC_ECE | POLYCM_SVC_ESTABLISH,
	.max_retry_count = 7,
	.max_rnr_retry_count = 7,
	.reject_domain = POLYCM_REJECT_REASON,
	.consumer_reject_status = 28,
};

static const struct polycm_transport beta_rules = {
	.size = sizeof(beta_rules),
	.shape = POLYCM_RULES_SHAPE,
	.name = "beta",
	.description = "devices that move their QPs",
	.protocol = POLYCM_PROTO_MPA,
	.flags = POLYCM_T_DEVICE_MOVES_QP,
	.mpa_revision = 2,
	.max_retry_count = 3,
	.max_rnr_retry_count = 3,
	.reject_domain = POLYCM_REJECT_ERRNO,
	.consumer_reject_status = -ECONNREFUSED,
};

static const struct polycm_provider providers[] = {
	{
		.size = sizeof(providers[0]),
		.abi_minor = POLYCM_ABI_MINOR,
		.name = "acme",
		.version = "1",
		.description = "a test's",
		.transport = &acme_rules,
		.ops = &ops,
		.id_size = sizeof(struct fake_id),
		.channel_size = sizeof(void *),
	},
	{
		.size = sizeof(providers[1]),
		.abi_minor = POLYCM_ABI_MINOR,
		.name = "beta",
		.version = "1",
		.description = "a test's",
		.transport = &beta_rules,
		.ops = &ops,
		.id_size = sizeof(struct fake_id),
		.channel_size = sizeof(void *),
	},
};

int fakes_start(unsigned int num)
{
	for (unsigned int i = 0; i < num; i++)
		if (polycm_registry_add_static(&providers[i]))
			return -1;
	return 0;
}

int fakes_reset(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fakes); i++) {
		struct polycm_module *module = fakes[i].module;
		struct polycm_device *device = fakes[i].device;

		memset(&fakes[i], 0, sizeof(fakes[i]));
		fakes[i].name = identities[i].name;
		fakes[i].net = identities[i].net;
		fakes[i].next_port = 40000;
		fakes[i].pull_fd = -1;
		fakes[i].module = module;
		fakes[i].device = device;
	}
	fake_verbs = (struct fake_verbs){ .contexts = fake_verbs.contexts, .pds = fake_verbs.pds };
	return 0;
}

int fakes_check(void **state)
{
	struct polycm_live_counts live;

	(void)state;
	polycm_live_counts(&live);
	assert_int_equal(live.ids, 0);
	assert_int_equal(live.channels, 0);
	assert_int_equal(live.events, 0);
	for (size_t i = 0; i < ARRAY_SIZE(fakes); i++) {
		assert_int_equal(fakes[i].ids, 0);
		assert_int_equal(fakes[i].channels, 0);
	}
	assert_int_equal(fake_verbs.qps, 0);
	assert_int_equal(fake_verbs.cqs, 0);
	assert_int_equal(fake_verbs.srqs, 0);
	assert_int_equal(fake_verbs.channels, 0);
	assert_int_equal(fake_verbs.attached, 0);
	/* The default PD of a device stays. */
	assert_true(fake_verbs.pds <= (int)ARRAY_SIZE(fakes));
	return 0;
}

/* ------------------------------------------------------------------------
 * What tests do all the time.
 */

struct sockaddr *addr4(const char *text, uint16_t port)
{
	static struct sockaddr_in ring[8];
	static unsigned int next;
	struct sockaddr_in *in = &ring[next++ % ARRAY_SIZE(ring)];

	memset(in, 0, sizeof(*in));
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	assert_int_equal(inet_pton(AF_INET, text, &in->sin_addr), 1);
	return (struct sockaddr *)in;
}

int post_conn(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status,
	      const struct rdma_conn_param *conn, const struct polycm_ece *ece)
{
	struct polycm_event event = { .size = sizeof(event), .type = type, .status = status };

	if (conn)
		event.param.conn = *conn;
	if (ece)
		event.ece = *ece;
	return polycm_post_event((struct polycm_id *)(void *)id, &event);
}

int post(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status)
{
	return post_conn(id, type, status, NULL, NULL);
}

int post_request(struct fake *fake, struct polycm_id *listener, const struct rdma_conn_param *conn,
		 struct polycm_id **ret_child)
{
	struct polycm_event event = {
		.size = sizeof(event), .type = RDMA_CM_EVENT_CONNECT_REQUEST,
	};
	struct fake_id *self;
	void *priv;
	int err;

	err = polycm_child_create(listener, &event.child, &priv);
	if (err)
		return err;
	self = priv;
	self->fake = fake;
	self->id = event.child;
	self->bound = true;
	self->on_device = true;
	memcpy(&self->src, addr4(fake->net == 10 ? "10.0.0.1" : "20.0.0.1", 7471),
	       sizeof(struct sockaddr_in));
	memcpy(&self->dst, addr4(fake->net == 10 ? "10.0.0.2" : "20.0.0.2", 50000),
	       sizeof(struct sockaddr_in));
	if (conn)
		event.param.conn = *conn;
	event.ece = fake->request_ece;

	err = polycm_post_event(listener, &event);
	if (err) {
		polycm_child_destroy(event.child);
		return err;
	}
	__atomic_add_fetch(&fake->ids, 1, __ATOMIC_SEQ_CST);
	if (ret_child)
		*ret_child = event.child;
	return 0;
}

struct rdma_cm_event *next_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
				 int status)
{
	struct rdma_cm_event *event;

	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	assert_string_equal(rdma_event_str(event->event), rdma_event_str(type));
	assert_int_equal(event->status, status);
	return event;
}

void expect_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type, int status)
{
	assert_int_equal(rdma_ack_cm_event(next_event(channel, type, status)), 0);
}

void expect_no_event(struct rdma_event_channel *channel)
{
	int flags = fcntl(channel->fd, F_GETFL);
	struct rdma_cm_event *event;

	assert_int_equal(fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
	assert_errno(rdma_get_cm_event(channel, &event), EAGAIN);
	assert_int_equal(fcntl(channel->fd, F_SETFL, flags), 0);
}

struct rdma_cm_id *new_id(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = NULL;

	assert_int_equal(rdma_create_id(channel, &id, &fakes, RDMA_PS_TCP), 0);
	assert_non_null(id);
	return id;
}

struct rdma_cm_id *resolved_id(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = new_id(channel);

	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.0.2", 7471), 100), 0);
	if (channel)
		expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(id, 100), 0);
	if (channel)
		expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return id;
}

void create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 5, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = id->qp_type,
	};

	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	assert_non_null(id->qp);
}

struct rdma_cm_id *qp_id(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = resolved_id(channel);

	create_qp(id);
	return id;
}

struct rdma_cm_id *listening_id(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = new_id(channel);

	assert_int_equal(rdma_bind_addr(id, addr4("0.0.0.0", 7471)), 0);
	assert_int_equal(rdma_listen(id, 0), 0);
	return id;
}

struct rdma_cm_id *requested_id(struct rdma_cm_id *listener)
{
	const struct rdma_conn_param conn = { .responder_resources = 5, .initiator_depth = 3 };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	assert_int_equal(post_request(fakes, (struct polycm_id *)(void *)listener, &conn, NULL), 0);
	event = next_event(listener->channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_ptr_equal(event->listen_id, listener);
	id = event->id;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	return id;
}
