/* SPDX-License-Identifier: BSD-2-Clause */
/* test_multicast.c - joining and leaving groups. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "steps.h"

#define GROUP "239.1.2.3"
#define KERNEL_ENOTSUPP 524

/* A pair for datagrams whose ids are bound to their devices. */
static void open_bound(struct pair *pair, enum transport transport)
{
	pair_open(pair, transport, RDMA_PS_UDP);
	assert_int_equal(rdma_bind_addr(pair->client, step_sa(CLIENT_ADDRESS, 0)), 0);
}

static void join(struct rdma_cm_id *id, const char *group)
{
	assert_int_equal(rdma_join_multicast(id, step_sa(group, 0), NULL), 0);
	pair_take(id->channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
}

/* --- The event. --- */

static const struct mgid_case {
	enum transport transport;
	const char *group;
	uint8_t mgid[16];
} mgids[] = {
	{ ROCE, "239.1.2.3", { [10] = 0xff, 0xff, 239, 1, 2, 3 } },
	{ ROCE, "224.0.0.7", { [10] = 0xff, 0xff, 224, 0, 0, 7 } },
	/* RDMA_PS_UDP has a signature of its own: 4001 and 6001. */
	{ IB, "239.1.2.3", { 0xff, 0x12, 0x40, 0x01, 0xff, 0xff, [12] = 0x0f, 1, 2, 3 } },
	{ IB, "224.0.0.7", { 0xff, 0x12, 0x40, 0x01, 0xff, 0xff, [12] = 0, 0, 0, 7 } },
	{ IB, "ff12::1234", { 0xff, 0x12, 0x60, 0x01, 0xff, 0xff, [14] = 0x12, 0x34 } },
	{ IB, "ff12:a01b::9", { 0xff, 0x12, 0xa0, 0x1b, [15] = 9 } },
};

static void the_event_says_where_to_send(void **state)
{
	static int context;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(mgids); i++) {
		const struct mgid_case *c = &mgids[i];
		struct rdma_cm_event *event;
		struct pair pair;

		print_message("%s, %s\n", transport_name[c->transport], c->group);
		open_bound(&pair, c->transport);
		assert_int_equal(rdma_join_multicast(pair.client, step_sa(c->group, 0), &context), 0);
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
		assert_ptr_equal(event->id, pair.client);
		assert_null(event->listen_id);
		assert_ptr_equal(event->param.ud.private_data, &context);
		assert_int_equal(event->param.ud.private_data_len, 0);
		assert_int_equal(event->param.ud.qp_num, 0xffffff);
		assert_int_equal(event->param.ud.qkey, RDMA_UDP_QKEY);
		assert_int_equal(event->param.ud.ah_attr.is_global, 1);
		assert_int_equal(event->param.ud.ah_attr.port_num, 1);
		assert_memory_equal(&event->param.ud.ah_attr.grh.dgid, c->mgid, 16);
		if (c->transport == IB)
			assert_true(event->param.ud.ah_attr.dlid >= 0xc000);
		else
			assert_int_equal(event->param.ud.ah_attr.grh.hop_limit, 64);
		rdma_ack_cm_event(event);
		assert_int_equal(rdma_leave_multicast(pair.client, step_sa(c->group, 0)), 0);
		pair_close(&pair);
	}
}

/* --- When, and who. --- */

static void joins_bound_and_resolved_ids(void **state)
{
	static const enum { IDLE, BOUND, ANY, RESOLVED, ROUTED } states[] = {
		IDLE, BOUND, ANY, RESOLVED, ROUTED,
	};

	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (size_t i = 0; i < ARRAY_LEN(states); i++) {
			bool good = states[i] == BOUND || states[i] == RESOLVED;
			struct pair pair;

			pair_open(&pair, t, RDMA_PS_UDP);
			if (states[i] == BOUND)
				assert_int_equal(rdma_bind_addr(pair.client,
								step_sa(CLIENT_ADDRESS, 0)), 0);
			if (states[i] == ANY)
				assert_int_equal(rdma_bind_addr(pair.client, step_sa("0.0.0.0", 0)),
						 0);
			if (states[i] == RESOLVED) {
				assert_int_equal(rdma_resolve_addr(pair.client, NULL,
								   step_sa(SERVER_ADDRESS, 1), 2000),
						 0);
				pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
			}
			if (states[i] == ROUTED)
				pair_resolve(&pair);
			if (good && t != IWARP)
				join(pair.client, GROUP);
			else
				assert_errno(rdma_join_multicast(pair.client, step_sa(GROUP, 0),
								 NULL), good ? ENOSYS : EINVAL);
			pair_none(pair.client_channel);
			pair_close(&pair);
		}
	}
}

static void connections_have_no_groups(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		step_open(&pair, t, STEP_ADDR_RESOLVED);
		assert_errno(rdma_join_multicast(pair.client, step_sa(GROUP, 0), NULL), EINVAL);
		pair_close(&pair);
	}
}

static const struct address_case {
	enum transport transport;
	const char *group;
	int error;
} addresses[] = {
	{ ROCE, "0.0.0.0", EINVAL },
	{ ROCE, "::", EINVAL },
	{ ROCE, "ff12::1", KERNEL_ENOTSUPP },	/* IPv6 over RoCE v2 */
	{ IB, "0.0.0.0", 0 },			/* the subnet administrator chooses */
};

static void addresses_that_are_no_groups(void **state)
{
	struct sockaddr_storage bad;

	(void)state;
	memset(&bad, 0, sizeof(bad));
	bad.ss_family = AF_UNIX;
	for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
		const struct address_case *c = &addresses[i];
		struct pair pair;

		open_bound(&pair, c->transport);
		if (c->error)
			assert_errno(rdma_join_multicast(pair.client, step_sa(c->group, 0), NULL),
				     c->error);
		else
			join(pair.client, c->group);
		assert_errno(rdma_join_multicast(pair.client, (struct sockaddr *)&bad, NULL), EINVAL);
		pair_close(&pair);
	}
}

static const struct ex_case {
	uint32_t comp_mask, join_flags;
	int error;
} exs[] = {
	{ 3, RDMA_MC_JOIN_FLAG_FULLMEMBER, 0 },
	{ 3, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, 0 },
	{ 3, RDMA_MC_JOIN_FLAG_RESERVED, EINVAL },
	{ 0, 0, EINVAL },
	{ RDMA_CM_JOIN_MC_ATTR_ADDRESS, 0, EINVAL },
	{ RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS, 0, EINVAL },
	{ 3 | RDMA_CM_JOIN_MC_ATTR_RESERVED, 0, EOPNOTSUPP },
};

static void join_ex_checks_its_masks(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(exs); i++) {
		struct rdma_cm_join_mc_attr_ex attr = {
			.comp_mask = exs[i].comp_mask,
			.join_flags = exs[i].join_flags,
			.addr = step_sa(GROUP, 0),
		};
		struct pair pair;

		open_bound(&pair, ROCE);
		if (exs[i].error) {
			assert_errno(rdma_join_multicast_ex(pair.client, &attr, NULL), exs[i].error);
		} else {
			assert_int_equal(rdma_join_multicast_ex(pair.client, &attr, NULL), 0);
			pair_take(pair.client_channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
		}
		pair_close(&pair);
	}
}

/* --- Leaving. --- */

static void leaves_what_it_joined(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct pair pair;

		open_bound(&pair, t);
		assert_errno(rdma_leave_multicast(pair.client, step_sa(GROUP, 0)), EADDRNOTAVAIL);
		join(pair.client, GROUP);
		join(pair.client, "239.9.9.9");
		assert_errno(rdma_leave_multicast(pair.client, step_sa("239.9.9.8", 0)),
			     EADDRNOTAVAIL);
		assert_int_equal(rdma_leave_multicast(pair.client, step_sa(GROUP, 0)), 0);
		assert_errno(rdma_leave_multicast(pair.client, step_sa(GROUP, 0)), EADDRNOTAVAIL);
		join(pair.client, GROUP);
		assert_int_equal(rdma_leave_multicast(pair.client, step_sa(GROUP, 0)), 0);
		/* 239.9.9.9 goes with the id. */
		pair_close(&pair);
	}
}

static void leaving_drops_the_event_that_nobody_took(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		for (int advance = 0; advance < 2; advance++) {
			struct pair pair;

			open_bound(&pair, t);
			assert_int_equal(rdma_join_multicast(pair.client, step_sa(GROUP, 0), NULL),
					 0);
			if (advance)
				assert_int_equal(polycm_sim_advance(1000000), 0);
			assert_int_equal(rdma_leave_multicast(pair.client, step_sa(GROUP, 0)), 0);
			assert_int_equal(polycm_sim_advance(1000000), 0);
			pair_none(pair.client_channel);
			pair_close(&pair);
		}
	}
}

struct leaver {
	struct rdma_cm_id *id;
	atomic_bool done;
	int result;
};

static void *leave(void *arg)
{
	struct leaver *leaver = arg;

	leaver->result = rdma_leave_multicast(leaver->id, step_sa(GROUP, 0));
	atomic_store(&leaver->done, true);
	return NULL;
}

static void leaving_waits_for_acks(void **state)
{
	struct rdma_cm_event *event;
	struct leaver leaver = { 0 };
	pthread_t thread;
	struct pair pair;

	(void)state;
	open_bound(&pair, ROCE);
	assert_int_equal(rdma_join_multicast(pair.client, step_sa(GROUP, 0), NULL), 0);
	event = pair_expect(pair.client_channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	leaver.id = pair.client;
	assert_int_equal(pthread_create(&thread, NULL, leave, &leaver), 0);
	for (int i = 0; i < 2000; i++) {
		assert_false(atomic_load(&leaver.done));
		sched_yield();
	}
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(leaver.result, 0);
	pair_close(&pair);
}

static void a_synchronous_id_waits(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_cm_id *id;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_UDP);
		assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP), 0);
		assert_int_equal(rdma_bind_addr(id, step_sa(CLIENT_ADDRESS, 0)), 0);
		assert_int_equal(rdma_join_multicast(id, step_sa(GROUP, 0), &pair), 0);
		assert_non_null(id->event);
		assert_int_equal(id->event->event, RDMA_CM_EVENT_MULTICAST_JOIN);
		assert_ptr_equal(id->event->param.ud.private_data, &pair);
		assert_int_equal(rdma_leave_multicast(id, step_sa(GROUP, 0)), 0);
		assert_int_equal(rdma_destroy_id(id), 0);
		pair_close(&pair);
	}
}

/* --- Datagrams. --- */

struct receiver {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint8_t buffer[64];
};

static void post_receive(struct receiver *r)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)r->buffer, .length = sizeof(r->buffer), .lkey = r->mr->lkey,
	};
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(r->id->qp, &wr, &bad), 0);
}

static void receiver_open(struct receiver *r, struct pair *pair, const char *address)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_UD,
	};

	memset(r->buffer, 0, sizeof(r->buffer));
	assert_int_equal(rdma_create_id(pair->client_channel, &r->id, r, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_bind_addr(r->id, step_sa(address, 0)), 0);
	assert_int_equal(rdma_create_qp(r->id, NULL, &attr), 0);
	r->mr = ibv_reg_mr(r->id->pd, r->buffer, sizeof(r->buffer), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(r->mr);
	post_receive(r);
}

static void receiver_close(struct receiver *r)
{
	rdma_destroy_qp(r->id);
	assert_int_equal(ibv_dereg_mr(r->mr), 0);
	assert_int_equal(rdma_destroy_id(r->id), 0);
}

/* Joins; *ret_ah, *ret_qkey: how to send there. */
static void join_as(struct receiver *r, uint32_t flags, struct ibv_ah **ret_ah,
		    uint32_t *ret_qkey)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = flags,
		.addr = step_sa(GROUP, 0),
	};
	struct rdma_cm_event *event;

	assert_int_equal(rdma_join_multicast_ex(r->id, &attr, NULL), 0);
	event = pair_expect(r->id->channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	*ret_ah = ibv_create_ah(r->id->pd, &event->param.ud.ah_attr);
	assert_non_null(*ret_ah);
	*ret_qkey = event->param.ud.qkey;
	rdma_ack_cm_event(event);
}

static void send_to(struct receiver *r, struct ibv_ah *ah, uint32_t qkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)r->buffer, .length = 8, .lkey = r->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = 0xffffff, .remote_qkey = qkey },
	}, *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_send(r->id->qp, &wr, &bad), 0);
	assert_int_equal(rdma_get_send_comp(r->id, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(polycm_sim_advance(1000000), 0);
}

static bool received(struct receiver *r)
{
	struct ibv_wc wc;

	if (!ibv_poll_cq(r->id->recv_cq, 1, &wc))
		return false;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 48);
	post_receive(r);
	return true;
}

static void members_get_what_is_sent(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct receiver sender, near, far;
		struct ibv_ah *ah, *near_ah, *far_ah;
		struct pair pair;
		uint32_t qkey;

		pair_open(&pair, t, RDMA_PS_UDP);
		receiver_open(&sender, &pair, CLIENT_ADDRESS);
		receiver_open(&near, &pair, CLIENT_ADDRESS);
		receiver_open(&far, &pair, SERVER_ADDRESS);
		join_as(&near, RDMA_MC_JOIN_FLAG_FULLMEMBER, &near_ah, &qkey);
		join_as(&far, RDMA_MC_JOIN_FLAG_FULLMEMBER, &far_ah, &qkey);
		join_as(&sender, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, &ah, &qkey);
		assert_int_equal(qkey, RDMA_UDP_QKEY);

		send_to(&sender, ah, qkey);
		assert_true(received(&near));
		assert_true(received(&far));
		assert_false(received(&sender));	/* who only sends is not in it */
		send_to(&far, far_ah, qkey);
		assert_true(received(&near));
		assert_true(received(&far));
		send_to(&sender, ah, qkey + 1);
		assert_false(received(&near));
		/* Left: by the call, and with the QP. */
		assert_int_equal(rdma_leave_multicast(near.id, step_sa(GROUP, 0)), 0);
		send_to(&sender, ah, qkey);
		assert_false(received(&near));
		assert_true(received(&far));

		assert_int_equal(ibv_destroy_ah(ah), 0);
		assert_int_equal(ibv_destroy_ah(near_ah), 0);
		assert_int_equal(ibv_destroy_ah(far_ah), 0);
		receiver_close(&far);
		receiver_close(&near);
		receiver_close(&sender);
		pair_close(&pair);
	}
}

/* A QP that the program attached itself. */
static void a_group_that_is_full(void **state)
{
	struct polycm_sim_limits limits = { .size = sizeof(limits), .max_mcast_grp = 1 };
	struct polycm_sim_device *device;
	struct rdma_cm_event *event;
	struct pair pair;

	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		pair_open(&pair, t, RDMA_PS_UDP);
		assert_int_equal(polycm_sim_device_find(pair.client_node, NULL, &device), 0);
		assert_int_equal(polycm_sim_device_limit(device, &limits), 0);
		assert_int_equal(rdma_bind_addr(pair.client, step_sa(CLIENT_ADDRESS, 0)), 0);
		pair_client_qp(&pair);
		join(pair.client, GROUP);
		/* The device refuses: that is how joining ends, and how it is left. */
		assert_int_equal(rdma_join_multicast(pair.client, step_sa("239.3.3.3", 0), &pair),
				 0);
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_MULTICAST_ERROR, -1);
		assert_ptr_equal(event->param.ud.private_data, &pair);
		rdma_ack_cm_event(event);
		assert_int_equal(rdma_leave_multicast(pair.client, step_sa("239.3.3.3", 0)), 0);
		assert_int_equal(rdma_leave_multicast(pair.client, step_sa(GROUP, 0)), 0);
		join(pair.client, "239.3.3.3");
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_event_says_where_to_send),
		cmocka_unit_test(joins_bound_and_resolved_ids),
		cmocka_unit_test(connections_have_no_groups),
		cmocka_unit_test(addresses_that_are_no_groups),
		cmocka_unit_test(join_ex_checks_its_masks),
		cmocka_unit_test(leaves_what_it_joined),
		cmocka_unit_test(leaving_drops_the_event_that_nobody_took),
		cmocka_unit_test(leaving_waits_for_acks),
		cmocka_unit_test(a_synchronous_id_waits),
		cmocka_unit_test(members_get_what_is_sent),
		cmocka_unit_test(a_group_that_is_full),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
