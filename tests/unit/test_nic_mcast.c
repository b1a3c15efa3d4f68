/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups: who gets a datagram, who may attach, and how much a device has room for. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>

#include "providers/soft/fabric/groups.h"
#include "nic_pair.h"

#define QKEY 0x11112222u
#define MLID 0xc001u

static struct ibv_ah *ah;
static union ibv_gid mgid;
static uint16_t mlid;

static union ibv_gid gid(const char *text)
{
	union ibv_gid gid;

	assert_int_equal(inet_pton(AF_INET6, text, gid.raw), 1);
	return gid;
}

static void open_group(enum pair_transport transport)
{
	struct ibv_ah_attr attr = { .port_num = 1, .is_global = 1 };

	pair_open(transport);
	mgid = gid(transport == PAIR_IB ? "ff12:4001:ffff::1:2" : "::ffff:239.1.2.3");
	mlid = transport == PAIR_IB ? MLID : 0;
	attr.dlid = mlid;
	attr.grh.dgid = mgid;
	attr.grh.sgid_index = transport == PAIR_IB ? 0 : 3;
	attr.grh.hop_limit = 7;
	attr.grh.traffic_class = 0x28;
	ah = sim_verbs.create_ah(a.pd, &attr);
	assert_non_null(ah);
	a.qp = pair_ud_qp(&a, QKEY);
	b.qp = pair_ud_qp(&b, QKEY);
}

static void close_group(void)
{
	uint32_t cursor = 0;
	unsigned int slot;

	assert_int_equal(sim_verbs.destroy_ah(ah), 0);
	sim_lock();
	assert_null(sim_group_next(&mgid, &cursor, &slot));
	sim_unlock();
	pair_close();
}

static int attach(struct ibv_qp *qp)
{
	return sim_verbs.attach_mcast(qp, &mgid, mlid);
}

static int detach(struct ibv_qp *qp)
{
	return sim_verbs.detach_mcast(qp, &mgid, mlid);
}

static void post_receive(struct pair_side *side, struct ibv_qp *qp, uint64_t wr_id, size_t offset)
{
	struct ibv_qp *ours = side->qp;

	side->qp = qp;
	assert_int_equal(pair_recv(side, wr_id, offset, 200), 0);
	side->qp = ours;
}

static void send_to(uint32_t qpn, uint32_t qkey)
{
	struct ibv_sge sge = pair_sge(&a, 0, 100);
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = qkey },
	};

	assert_int_equal(pair_post(&a, &wr), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
}

static const enum pair_transport transports[] = { PAIR_ROCE, PAIR_IB };

/* At two nodes, two QPs each; the sender's own are not passed over. */
static void everyone_in_the_group_gets_it(void **state)
{
	(void)state;
	for (size_t t = 0; t < ARRAY_SIZE(transports); t++) {
		struct ibv_qp *other_a, *other_b, *outsider, *qps[4];
		struct pair_side *sides[] = { &a, &a, &b, &b };

		open_group(transports[t]);
		other_a = pair_ud_qp(&a, QKEY);
		other_b = pair_ud_qp(&b, QKEY);
		outsider = pair_ud_qp(&b, QKEY);
		post_receive(&b, outsider, 99, 4000);
		memcpy(qps, (struct ibv_qp *[]){ a.qp, other_a, b.qp, other_b }, sizeof(qps));
		for (size_t i = 0; i < ARRAY_SIZE(qps); i++) {
			assert_int_equal(attach(qps[i]), 0);
			post_receive(sides[i], qps[i], 10 + i, 1000 * (i + 1));
		}
		pair_fill(&a, 0, 100, 3);
		send_to(SIM_MULTICAST_QPN, QKEY);
		for (size_t i = 0; i < ARRAY_SIZE(qps); i++) {
			struct ibv_wc wc = pair_expect(sides[i], 10 + i, IBV_WC_SUCCESS);

			assert_int_equal(wc.byte_len, 140);
			assert_int_equal(wc.qp_num, qps[i]->qp_num);
			assert_int_equal(wc.src_qp, a.qp->qp_num);
			assert_true(wc.wc_flags & IBV_WC_GRH);
			pair_check(sides[i], 1000 * (i + 1) + 40, 100, 3);
		}
		pair_none(&a, SIM_MS(1));
		pair_none(&b, SIM_MS(1));
		for (size_t i = 0; i < ARRAY_SIZE(qps); i++)
			assert_int_equal(detach(qps[i]), 0);
		assert_int_equal(sim_verbs.destroy_qp(other_a), 0);
		assert_int_equal(sim_verbs.destroy_qp(other_b), 0);
		assert_int_equal(sim_verbs.destroy_qp(outsider), 0);
		close_group();
	}
}

static void the_header_names_the_group(void **state)
{
	static const uint8_t v4[8] = { 10, 0, 0, 1, 239, 1, 2, 3 };

	(void)state;
	for (size_t t = 0; t < ARRAY_SIZE(transports); t++) {
		open_group(transports[t]);
		assert_int_equal(attach(b.qp), 0);
		assert_int_equal(pair_recv(&b, 5, 0, 200), 0);
		send_to(SIM_MULTICAST_QPN, QKEY);
		pair_expect(&b, 5, IBV_WC_SUCCESS);
		if (transports[t] == PAIR_IB) {
			assert_int_equal(b.buf[0], 0x62);
			assert_int_equal(b.buf[1], 0x80);
			assert_int_equal(b.buf[7], 7);
			assert_memory_equal(b.buf + 24, mgid.raw, 16);
		} else {
			assert_int_equal(b.buf[20], 0x45);
			assert_int_equal(b.buf[21], 0x28);
			assert_int_equal(b.buf[28], 7);
			assert_memory_equal(b.buf + 32, v4, 8);
		}
		assert_int_equal(detach(b.qp), 0);
		close_group();
	}
}

static void what_nobody_gets(void **state)
{
	struct ibv_ah_attr attr = { .port_num = 1, .is_global = 1, .grh.sgid_index = 3 };
	struct ibv_ah *groups;

	(void)state;
	open_group(PAIR_ROCE);
	assert_int_equal(pair_recv(&b, 5, 0, 200), 0);
	send_to(SIM_MULTICAST_QPN, QKEY);	/* not in the group */
	assert_int_equal(attach(b.qp), 0);
	send_to(SIM_MULTICAST_QPN, QKEY + 1);
	send_to(b.qp->qp_num, QKEY);		/* its address is a group's, its QP number is not */
	/* And the other way round. */
	groups = ah;
	attr.grh.dgid = b.device->ports[0].gids[3].gid;
	ah = sim_verbs.create_ah(a.pd, &attr);
	assert_non_null(ah);
	send_to(SIM_MULTICAST_QPN, QKEY);
	assert_int_equal(sim_verbs.destroy_ah(ah), 0);
	ah = groups;
	assert_int_equal(detach(b.qp), 0);
	send_to(SIM_MULTICAST_QPN, QKEY);
	pair_none(&b, SIM_MS(1));
	close_group();
}

static void groups_do_not_reach_other_kinds_of_links(void **state)
{
	struct sim_port *found;
	uint32_t cursor = 0;
	unsigned int slot;

	(void)state;
	open_group(PAIR_IB);
	/* On RoCE groups may have such GIDs, too. */
	assert_int_equal(attach(b.qp), 0);
	sim_lock();
	found = sim_group_next(&mgid, &cursor, &slot);
	assert_ptr_equal(found, &b.device->ports[0]);
	assert_int_equal(slot, sim_self_slot());
	assert_null(sim_group_next(&mgid, &cursor, &slot));
	sim_unlock();
	assert_int_equal(detach(b.qp), 0);
	close_group();
}

static void who_may_attach(void **state)
{
	static const struct {
		enum pair_transport transport;
		const char *gid;
		uint16_t lid;
		int err;
	} cases[] = {
		{ PAIR_ROCE, "::ffff:224.0.0.1", 0, 0 },
		{ PAIR_ROCE, "::ffff:239.255.255.255", 0, 0 },
		{ PAIR_ROCE, "::ffff:223.0.0.1", 0, EINVAL },
		{ PAIR_ROCE, "::ffff:240.0.0.1", 0, EINVAL },
		{ PAIR_ROCE, "ff0e::ffff:239.1.1.1", 5, 0 },
		{ PAIR_ROCE, "fe80::1", 0, EINVAL },
		{ PAIR_IB, "ff12:401b:ffff::1", 0xc000, 0 },
		{ PAIR_IB, "ff12:401b:ffff::1", 0xfffe, 0 },
		{ PAIR_IB, "ff12:401b:ffff::1", 0xffff, EINVAL },
		{ PAIR_IB, "ff12:401b:ffff::1", 0xbfff, EINVAL },
		{ PAIR_IB, "fe80::1", 0xc000, EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		union ibv_gid group = gid(cases[i].gid);
		int err;

		open_group(cases[i].transport);
		err = sim_verbs.attach_mcast(b.qp, &group, cases[i].lid);
		if (err != cases[i].err)
			fail_msg("case %zu: %d", i, err);
		assert_int_equal(sim_verbs.detach_mcast(b.qp, &group, cases[i].lid), cases[i].err);
		close_group();
	}
}

static void attaching_and_detaching(void **state)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_qp *rc;

	(void)state;
	open_group(PAIR_IB);
	assert_int_equal(detach(b.qp), EINVAL);
	assert_int_equal(attach(b.qp), 0);
	assert_int_equal(attach(b.qp), 0);	/* once is enough */
	assert_int_equal(sim_verbs.detach_mcast(b.qp, &mgid, MLID + 1), EINVAL);
	/* Whoever destroys a QP detaches it first; in another state it stays. */
	assert_int_equal(sim_verbs.destroy_qp(b.qp), EBUSY);
	assert_int_equal(pair_modify(b.qp, IBV_QPS_RESET), 0);
	assert_int_equal(sim_verbs.destroy_qp(b.qp), EBUSY);
	assert_int_equal(detach(b.qp), 0);
	assert_int_equal(detach(b.qp), EINVAL);
	rc = pair_qp(&b, &conn);
	assert_int_equal(attach(rc), EINVAL);
	assert_int_equal(sim_verbs.destroy_qp(rc), 0);
	close_group();

	pair_open(PAIR_IWARP);
	rc = pair_qp(&b, &conn);
	assert_int_equal(attach(rc), EOPNOTSUPP);
	assert_int_equal(sim_verbs.destroy_qp(rc), 0);
	pair_close();
}

static void a_device_has_room_for_so_many(void **state)
{
	union ibv_gid other;
	struct ibv_qp *third;

	(void)state;
	open_group(PAIR_ROCE);
	b.device->attr.max_mcast_grp = 2;
	b.device->attr.max_mcast_qp_attach = 2;
	other = mgid;
	for (uint8_t i = 0; i < 3; i++) {
		other.raw[15] = i;
		assert_int_equal(sim_verbs.attach_mcast(b.qp, &other, 0), i < 2 ? 0 : ENOMEM);
	}
	other.raw[15] = 0;
	third = pair_ud_qp(&b, QKEY);
	assert_int_equal(sim_verbs.attach_mcast(third, &other, 0), 0);
	/* The other device has its own. */
	assert_int_equal(sim_verbs.attach_mcast(a.qp, &other, 0), 0);
	assert_int_equal(sim_verbs.detach_mcast(b.qp, &other, 0), 0);
	assert_int_equal(sim_verbs.attach_mcast(b.qp, &other, 0), 0);
	assert_int_equal(sim_verbs.detach_mcast(third, &other, 0), 0);
	assert_int_equal(sim_verbs.detach_mcast(b.qp, &other, 0), 0);
	assert_int_equal(sim_verbs.detach_mcast(a.qp, &other, 0), 0);
	b.device->attr.max_mcast_qp_attach = 0;
	assert_int_equal(attach(third), ENOMEM);
	other.raw[15] = 1;
	assert_int_equal(sim_verbs.detach_mcast(b.qp, &other, 0), 0);
	assert_int_equal(sim_verbs.destroy_qp(third), 0);
	close_group();
}

/* The table of all processes is bounded. */
static void the_fabric_has_room_for_so_many(void **state)
{
	union ibv_gid other;
	uint32_t joined = 0;

	(void)state;
	open_group(PAIR_ROCE);
	other = mgid;
	for (uint32_t i = 0; i <= SIM_MAX_MEMBERS; i++) {
		other.raw[14] = (uint8_t)(i >> 8);
		other.raw[15] = (uint8_t)i;
		joined += !sim_verbs.attach_mcast(b.qp, &other, 0);
	}
	assert_int_equal(joined, SIM_MAX_MEMBERS);
	for (uint32_t i = 0; i < SIM_MAX_MEMBERS; i++) {
		other.raw[14] = (uint8_t)(i >> 8);
		other.raw[15] = (uint8_t)i;
		assert_int_equal(sim_verbs.detach_mcast(b.qp, &other, 0), 0);
	}
	assert_int_equal(attach(b.qp), 0);
	assert_int_equal(detach(b.qp), 0);
	close_group();
}

/* What the program leaves behind goes with its context. */
static void closing_the_context_leaves_the_group(void **state)
{
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD };

	(void)state;
	open_group(PAIR_ROCE);
	context = sim_verbs.open_device(&b.device->vdev.device);
	pd = sim_verbs.alloc_pd(context);
	cq = sim_verbs.create_cq(context, 1, NULL, NULL, 0);
	init.send_cq = init.recv_cq = cq;
	qp = sim_verbs.create_qp(pd, &init);
	assert_non_null(qp);
	assert_int_equal(attach(qp), 0);
	assert_int_equal(sim_verbs.close_device(context), 0);
	send_to(SIM_MULTICAST_QPN, QKEY);
	pair_none(&b, SIM_MS(1));
	close_group();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everyone_in_the_group_gets_it),
		cmocka_unit_test(the_header_names_the_group),
		cmocka_unit_test(what_nobody_gets),
		cmocka_unit_test(groups_do_not_reach_other_kinds_of_links),
		cmocka_unit_test(who_may_attach),
		cmocka_unit_test(attaching_and_detaching),
		cmocka_unit_test(a_device_has_room_for_so_many),
		cmocka_unit_test(the_fabric_has_room_for_so_many),
		cmocka_unit_test(closing_the_context_leaves_the_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
