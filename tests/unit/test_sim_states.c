/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sim_states.c - every operation in every state, on every transport:
 * what the kernel's RDMA CM answers.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include <infiniband/sa.h>

#include "sim_world.h"

enum state {
	S_IDLE,
	S_BOUND,		/* to an address of a device */
	S_ADDR_QUERY,
	S_ADDR_RESOLVED,
	S_ROUTE_QUERY,
	S_ROUTE_RESOLVED,
	S_CONNECTING,		/* not answered yet */
	S_REQUEST,		/* a child, not answered yet */
	S_ESTABLISHED,		/* the active side */
	S_DISCONNECTED,		/* the active side, by the peer */
	S_REJECTED,
	S_LISTEN,		/* on a device */
	S_LISTEN_ANY,
	STATES
};

/* One letter for each operation, in the order of `operations' below. */
struct row {
	const char *name;
	const char *ib, *iwarp;
};

#define SAME(text) text, text

/*
 * 0: succeeds, E: EINVAL, C: EISCONN.
 *
 * bind, resolve_addr, resolve_route, listen
 *     connect, accept, reject, establish
 *         disconnect, notify, join_multicast
 *             reuse on, reuse off, afonly, TOS, ACK time-out, IB path
 *                 init_qp_attr
 */
static const struct row rows[STATES] = {
	[S_IDLE] =	     { "idle",		 SAME("00E0" "EEEE" "EEE" "00000E" "E") },
	[S_BOUND] =	     { "bound",		 SAME("E0E0" "EEEE" "EEE" "0E000E" "0") },
	[S_ADDR_QUERY] =     { "addr query",	 SAME("EEEE" "EEEE" "EEE" "0EE00E" "E") },
	[S_ADDR_RESOLVED] =  { "addr resolved",	 SAME("EE0E" "EEEE" "EEE" "0EE000" "0") },
	[S_ROUTE_QUERY] =    { "route query",	 SAME("EEEE" "EEEE" "EEE" "0EE00E" "0") },
	[S_ROUTE_RESOLVED] = { "route resolved", SAME("EEEE" "0EEE" "EEE" "0EE00E" "0") },
	[S_CONNECTING] =     { "connecting",	 "EEEE" "EE0E" "0EE" "0EE00E" "0",
						 "EEEE" "EEEE" "00E" "0EE00E" "0" },
	[S_REQUEST] =	     { "request",	 "EEEE" "E00E" "0EE" "0EE00E" "0",
						 "EEEE" "E00E" "00E" "0EE00E" "0" },
	[S_ESTABLISHED] =    { "established",	 "EEEE" "EEEE" "0CE" "0EE00E" "0",
						 "EEEE" "EEEE" "00E" "0EE00E" "0" },
	[S_DISCONNECTED] =   { "disconnected",	 "EEEE" "EEEE" "0EE" "0EE00E" "E",
						 "EEEE" "EEEE" "00E" "0EE00E" "0" },
	[S_REJECTED] =	     { "rejected",	 "EEEE" "EEEE" "0EE" "0EE00E" "E",
						 "EEEE" "EEEE" "00E" "0EE00E" "0" },
	[S_LISTEN] =	     { "listen",	 "EEEE" "EEEE" "0EE" "EEE00E" "E",
						 "EEEE" "EEEE" "E0E" "EEE00E" "E" },
	[S_LISTEN_ANY] =     { "listen any",	 SAME("EEEE" "EEEE" "EEE" "EEE00E" "E") },
};

struct scene {
	struct polycm_id *subject;
	struct polycm_id *listener, *active, *child;
	struct ibv_qp *client_qp, *server_qp;
};

/* --- The operations, on the scene's subject. --- */

static int do_bind(struct scene *s)
{
	return world_bind(s->subject, CLIENT, 6001);
}

static int do_resolve_addr(struct scene *s)
{
	return world_resolve_addr(s->subject, SERVER, 1000);
}

static int do_resolve_route(struct scene *s)
{
	return sim_cma_ops.resolve_route(&s->subject->sim, 1000);
}

static int do_listen(struct scene *s)
{
	return world_listen(s->subject);
}

static int do_connect(struct scene *s)
{
	return world_connect(s->subject, NULL, 0, s->client_qp);
}

static int do_accept(struct scene *s)
{
	return world_accept(s->subject, NULL, 0, s->server_qp);
}

static int do_reject(struct scene *s)
{
	return sim_cma_ops.reject(&s->subject->sim, "no", 2, 0);
}

static int do_establish(struct scene *s)
{
	return sim_cma_ops.establish(&s->subject->sim);
}

static int do_disconnect(struct scene *s)
{
	return sim_cma_ops.disconnect(&s->subject->sim);
}

static int do_notify(struct scene *s)
{
	return sim_cma_ops.notify(&s->subject->sim, IBV_EVENT_COMM_EST);
}

static int do_join(struct scene *s)
{
	union sim_sockaddr group = world_address("239.0.0.1", 0);
	struct polycm_multicast mc = { .size = sizeof(mc), .group = s, .addr = &group.sa };

	return sim_cma_ops.join_multicast(&s->subject->sim, &mc);
}

static int do_reuse(struct scene *s)
{
	return world_set_int(s->subject, RDMA_OPTION_ID_REUSEADDR, 1);
}

static int do_no_reuse(struct scene *s)
{
	return world_set_int(s->subject, RDMA_OPTION_ID_REUSEADDR, 0);
}

static int do_afonly(struct scene *s)
{
	return world_set_int(s->subject, RDMA_OPTION_ID_AFONLY, 1);
}

static int do_tos(struct scene *s)
{
	uint8_t tos = 0x20;

	return sim_cma_ops.set_option(&s->subject->sim, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1);
}

static int do_ack_timeout(struct scene *s)
{
	uint8_t value = 14;

	return sim_cma_ops.set_option(&s->subject->sim, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
				      &value, 1);
}

static int do_path(struct scene *s)
{
	struct ibv_path_data data = {
		.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL,
	};

	return sim_cma_ops.set_option(&s->subject->sim, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &data,
				      sizeof(data));
}

static int do_init_qp_attr(struct scene *s)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	return sim_cma_ops.init_qp_attr(&s->subject->sim, &attr, &mask);
}

static const struct {
	const char *name;
	int (*call)(struct scene *s);
} operations[] = {
	{ "bind", do_bind },
	{ "resolve_addr", do_resolve_addr },
	{ "resolve_route", do_resolve_route },
	{ "listen", do_listen },
	{ "connect", do_connect },
	{ "accept", do_accept },
	{ "reject", do_reject },
	{ "establish", do_establish },
	{ "disconnect", do_disconnect },
	{ "notify", do_notify },
	{ "join_multicast", do_join },
	{ "reuse on", do_reuse },
	{ "reuse off", do_no_reuse },
	{ "afonly", do_afonly },
	{ "TOS", do_tos },
	{ "ACK time-out", do_ack_timeout },
	{ "IB path", do_path },
	{ "init_qp_attr", do_init_qp_attr },
};

/* --- Into a state. --- */

static void connecting(struct scene *s)
{
	s->active = world_resolved(RDMA_PS_TCP);
	assert_int_equal(world_connect(s->active, NULL, 0, s->client_qp), 0);
	s->child = world_request(s->listener);
}

static void established(struct scene *s)
{
	connecting(s);
	assert_int_equal(world_accept(s->child, NULL, 0, s->server_qp), 0);
	if (world.transport == IWARP) {
		world_expect(s->active, RDMA_CM_EVENT_ESTABLISHED, 0);
	} else {
		world_expect(s->active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		assert_int_equal(sim_cma_ops.establish(&s->active->sim), 0);
	}
	world_expect(s->child, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static struct polycm_id *bring(struct scene *s, enum state state)
{
	struct polycm_id *id;

	switch (state) {
	case S_CONNECTING:
	case S_REQUEST:
		connecting(s);
		return state == S_REQUEST ? s->child : s->active;
	case S_ESTABLISHED:
		established(s);
		return s->active;
	case S_DISCONNECTED:
		established(s);
		assert_int_equal(sim_cma_ops.disconnect(&s->child->sim), 0);
		world_expect(s->active, RDMA_CM_EVENT_DISCONNECTED, 0);
		return s->active;
	case S_REJECTED:
		connecting(s);
		assert_int_equal(sim_cma_ops.reject(&s->child->sim, NULL, 0, 0), 0);
		world_expect(s->active, RDMA_CM_EVENT_REJECTED,
			     world.rules->consumer_reject_status);
		return s->active;
	case S_LISTEN:
		return s->listener;
	case S_ROUTE_RESOLVED:
		return world_resolved(RDMA_PS_TCP);
	default:
		break;
	}

	id = world_id(RDMA_PS_TCP);
	switch (state) {
	case S_BOUND:
		assert_int_equal(world_bind(id, CLIENT, 6000), 0);
		break;
	case S_LISTEN_ANY:
		assert_int_equal(world_bind(id, "0.0.0.0", 6000), 0);
		assert_int_equal(world_listen(id), 0);
		break;
	case S_ADDR_QUERY:
		assert_int_equal(world_resolve_addr(id, SERVER, 1000), 0);
		break;
	case S_ADDR_RESOLVED:
	case S_ROUTE_QUERY:
		assert_int_equal(world_resolve_addr(id, SERVER, 1000), 0);
		world_expect(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		if (state == S_ROUTE_QUERY)
			assert_int_equal(sim_cma_ops.resolve_route(&id->sim, 1000), 0);
		break;
	default:
		break;
	}
	return id;
}

static int errno_of(char letter)
{
	return letter == 'E' ? -EINVAL : letter == 'C' ? -EISCONN : 0;
}

static void one_call(enum state state, size_t op, char letter)
{
	struct scene s = { 0 };
	int r;

	s.listener = world_listener(RDMA_PS_TCP);
	s.client_qp = world_qp(&world.client);
	s.server_qp = world_qp(&world.server);
	s.subject = bring(&s, state);
	r = operations[op].call(&s);
	if (r != errno_of(letter))
		fail_msg("%s, %s: %s returns %d instead of %d", world_names[world.transport],
			 rows[state].name, operations[op].name, r, errno_of(letter));

	if (s.subject != s.active && s.subject != s.child && s.subject != s.listener)
		world_destroy(s.subject);
	if (s.child)
		world_destroy(s.child);
	if (s.active)
		world_destroy(s.active);
	world_destroy(s.listener);
	world_destroy_qp(s.client_qp);
	world_destroy_qp(s.server_qp);
}

static void every_call_in_every_state(enum world_transport transport)
{
	world_open(transport);
	for (enum state state = 0; state < STATES; state++) {
		const char *letters = transport == IWARP ? rows[state].iwarp : rows[state].ib;

		assert_int_equal(strlen(letters), ARRAY_SIZE(operations));
		for (size_t op = 0; op < ARRAY_SIZE(operations); op++)
			one_call(state, op, letters[op]);
	}
	world_close();
}

static void on_roce(void **state)
{
	(void)state;
	every_call_in_every_state(ROCE);
}

static void on_ib(void **state)
{
	(void)state;
	every_call_in_every_state(IB);
}

static void on_iwarp(void **state)
{
	(void)state;
	every_call_in_every_state(IWARP);
}

/* --- Options: lengths, names, values. --- */

static void options_are_checked(void **state)
{
	static const struct {
		int level, name;
		size_t len;
		int result;
	} cases[] = {
		{ RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 4, -EINVAL },
		{ RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 0, -EINVAL },
		{ RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1, -EINVAL },
		{ RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 8, -EINVAL },
		{ RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 4, -EINVAL },
		{ RDMA_OPTION_ID, 4, 4, -ENOSYS },
		{ RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 0, -EINVAL },
		{ RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, sizeof(struct ibv_path_data) + 1, -EINVAL },
		{ RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, sizeof(struct ibv_path_data), -EINVAL },
		{ RDMA_OPTION_IB, 2, 4, -ENOSYS },
		{ 7, 0, 4, -ENOSYS },
	};
	uint8_t value[sizeof(struct ibv_path_data) + 1] = { 0 };
	struct polycm_id *id, *ud;

	(void)state;
	world_open(ROCE);
	id = world_id(RDMA_PS_TCP);
	assert_int_equal(world_resolve_addr(id, SERVER, 1000), 0);
	world_expect(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(sim_cma_ops.set_option(&id->sim, cases[i].level, cases[i].name,
							value, cases[i].len), cases[i].result);
	world_destroy(id);

	/* An ACK time-out is for connections. */
	ud = world_id(RDMA_PS_UDP);
	assert_int_equal(sim_cma_ops.set_option(&ud->sim, RDMA_OPTION_ID,
						RDMA_OPTION_ID_ACK_TIMEOUT, value, 1), -EINVAL);
	world_destroy(ud);
	world_close();
}

/* What a listener on a device knows of its QPs is the Q_Key of datagrams. */
static void listeners_tell_their_qkey(void **state)
{
	static const enum rdma_port_space spaces[] = { RDMA_PS_TCP, RDMA_PS_UDP };
	struct ibv_qp_attr attr;
	struct polycm_id *id;
	int mask;

	(void)state;
	for (enum world_transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (size_t i = 0; i < ARRAY_SIZE(spaces); i++) {
			world_open(t);
			id = world_listener(spaces[i]);
			attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR };
			if (t == IWARP || spaces[i] == RDMA_PS_TCP) {
				assert_int_equal(sim_cma_ops.init_qp_attr(&id->sim, &attr, &mask),
						 -EINVAL);
			} else {
				assert_int_equal(sim_cma_ops.init_qp_attr(&id->sim, &attr, &mask), 0);
				assert_int_equal(mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
						 IBV_QP_PORT | IBV_QP_QKEY);
				assert_int_equal(attr.qkey, RDMA_UDP_QKEY);
			}
			world_destroy(id);
			world_close();
		}
	}
}

/* A path of the program's own: ROUTE_RESOLVED at once, with its values. */
static void option_path_resolves(void **state)
{
	struct ibv_path_data data[2] = {
		{ .flags = IBV_PATH_FLAG_PRIMARY },
		{
			.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
				 IBV_PATH_FLAG_BIDIRECTIONAL,
			.path = { .mtu = 2 << 6 | IBV_MTU_512, .packetlifetime = 2 << 6 | 11,
				  .rate = 2 << 6 | IBV_RATE_5_GBPS, .qosclass_sl = htons(0xf003),
				  .flowlabel_hoplimit = htonl(0xf1234507), .tclass = 0x60 },
		},
	};
	struct polycm_route_info info;
	struct polycm_id *id;
	uint64_t before;

	(void)state;
	for (enum world_transport t = ROCE; t <= IB; t++) {
		world_open(t);
		id = world_id(RDMA_PS_TCP);
		assert_int_equal(world_resolve_addr(id, SERVER, 1000), 0);
		world_expect(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		before = world_now();
		assert_int_equal(sim_cma_ops.set_option(&id->sim, RDMA_OPTION_IB,
							RDMA_OPTION_IB_PATH, data, sizeof(data)),
				 0);
		world_expect(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		assert_int_equal(world_now(), before);
		info = world_query(id);
		assert_int_equal(info.num_paths, 1);
		assert_int_equal(info.path[0].mtu, IBV_MTU_512);
		assert_int_equal(info.path[0].packet_life_time, 11);
		assert_int_equal(info.path[0].rate, IBV_RATE_5_GBPS);
		assert_int_equal(info.path[0].sl, 3);
		assert_int_equal(info.path[0].hop_limit, 7);
		assert_int_equal(ntohl(info.path[0].flow_label), 0x12345);
		assert_int_equal(info.path[0].traffic_class, 0x60);
		world_destroy(id);
		world_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_roce),
		cmocka_unit_test(on_ib),
		cmocka_unit_test(on_iwarp),
		cmocka_unit_test(options_are_checked),
		cmocka_unit_test(listeners_tell_their_qkey),
		cmocka_unit_test(option_path_resolves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
