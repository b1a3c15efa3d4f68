/* SPDX-License-Identifier: BSD-2-Clause */
/* What a simulated device tells about itself, and the objects of a context. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "nic_pair.h"
#include "providers/soft/fabric/profile.h"

/* As the inline functions of the header do it for such contexts. */
static int query_port(uint8_t num, struct ibv_port_attr *attr)
{
	return verbs_get_ctx(a.context)->query_port(a.context, num, attr, sizeof(*attr));
}

static int query_device_ex(const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr)
{
	return verbs_get_ctx(a.context)->query_device_ex(a.context, input, attr, sizeof(*attr));
}

static void limits_are_those_of_the_rules(void **state)
{
	static const struct {
		int atomic, max_ah, max_sge_rd, rd_atom;
		unsigned int delay;
		enum ibv_mtu active;
		uint8_t link_layer;
		int gids;
	} expected[] = {
		[PAIR_ROCE] = { IBV_ATOMIC_HCA, 1 << 24, 32, 128, 15, IBV_MTU_1024,
				IBV_LINK_LAYER_ETHERNET, 64 },
		[PAIR_IB] = { IBV_ATOMIC_HCA, 1 << 24, 32, -1, 0, IBV_MTU_4096,
			      IBV_LINK_LAYER_INFINIBAND, 8 },
		[PAIR_IWARP] = { IBV_ATOMIC_NONE, 0, 1, 128, 0, IBV_MTU_1024,
				 IBV_LINK_LAYER_ETHERNET, 1 },
	};

	(void)state;
	for (enum pair_transport t = 0; t < PAIR_TRANSPORTS; t++) {
		struct ibv_device_attr attr;
		struct ibv_device_attr_ex ex;
		struct ibv_query_device_ex_input input = { 0 };
		struct ibv_port_attr port;
		const struct polycm_transport *rules;

		pair_open(t);
		rules = a.device->rules;
		memset(&attr, 0xff, sizeof(attr));
		assert_int_equal(sim_verbs.query_device(a.context, &attr), 0);
		assert_string_equal(attr.fw_ver, "1.0.0");
		assert_int_equal(attr.node_guid, a.device->vdev.node_guid);
		assert_int_equal(attr.max_sge, 32);
		assert_int_equal(attr.max_sge_rd, expected[t].max_sge_rd);
		assert_int_equal(attr.atomic_cap, expected[t].atomic);
		assert_int_equal(attr.max_ah, expected[t].max_ah);
		assert_int_equal(attr.max_qp_rd_atom, rules->max_responder_resources);
		assert_int_equal(attr.max_qp_init_rd_atom, rules->max_initiator_depth);
		assert_int_equal(attr.local_ca_ack_delay, rules->local_ca_ack_delay);
		assert_int_equal(attr.phys_port_cnt, 1);
		assert_int_equal(attr.max_pkeys, t == PAIR_IWARP ? 0 : 1);
		assert_in_range(attr.max_qp, 100000, INT32_MAX);

		memset(&ex, 0xff, sizeof(ex));
		assert_int_equal(query_device_ex(&input, &ex), 0);
		assert_memory_equal(&ex.orig_attr, &attr, sizeof(attr));
		assert_int_equal(ex.phys_port_cnt_ex, 1);
		assert_int_equal(!!(ex.device_cap_flags_ex & SIM_DEVICE_FLUSH_GLOBAL), t != PAIR_IWARP);
		assert_int_equal(!!(ex.device_cap_flags_ex & SIM_DEVICE_ATOMIC_WRITE), t != PAIR_IWARP);
		assert_int_equal(ex.odp_caps.general_caps, t == PAIR_IWARP ? 0 :
				 IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
		assert_true(ex.completion_timestamp_mask == UINT64_MAX);
		input.comp_mask = 1;
		assert_int_equal(query_device_ex(&input, &ex), EINVAL);

		memset(&port, 0xff, sizeof(port));
		assert_int_equal(query_port(1, &port), 0);
		assert_int_equal(port.state, IBV_PORT_ACTIVE);
		assert_int_equal(port.max_mtu, IBV_MTU_4096);
		assert_int_equal(port.active_mtu, expected[t].active);
		assert_int_equal(port.link_layer, expected[t].link_layer);
		assert_int_equal(port.gid_tbl_len, expected[t].gids);
		assert_int_equal(port.pkey_tbl_len, t == PAIR_IWARP ? 0 : 1);
		assert_int_equal(port.max_msg_sz, 1 << 30);
		assert_int_equal(port.phys_state, 5);
		assert_int_equal(port.lid != 0, t == PAIR_IB);
		assert_int_equal(port.sm_lid != 0, t == PAIR_IB);
		assert_int_equal(query_port(0, &port), EINVAL);
		assert_int_equal(query_port(2, &port), EINVAL);
		pair_close();
	}
}

static void gid_and_pkey_tables(void **state)
{
	static const unsigned int gids[] = { [PAIR_ROCE] = 4, [PAIR_IB] = 1, [PAIR_IWARP] = 1 };

	(void)state;
	for (enum pair_transport t = 0; t < PAIR_TRANSPORTS; t++) {
		static const union ibv_gid none;
		struct ibv_gid_entry all[8], entry;
		struct ibv_port_attr port;
		union ibv_gid gid;
		__be16 pkey;

		pair_open(t);
		assert_int_equal(query_port(1, &port), 0);
		assert_int_equal(sim_verbs.query_gid_table(a.context, all, 8, 0), gids[t]);
		for (uint32_t i = 0; i < gids[t]; i++) {
			assert_int_equal(sim_verbs.query_gid(a.context, 1, (int)i, &gid), 0);
			assert_memory_equal(&gid, &a.device->ports[0].gids[i].gid, sizeof(gid));
			assert_int_equal(sim_verbs.query_gid_ex(a.context, 1, i, &entry, 0), 0);
			assert_memory_equal(&entry, &all[i], sizeof(entry));
			assert_memory_equal(&entry.gid, &gid, sizeof(gid));
			assert_int_equal(entry.gid_index, i);
			assert_int_equal(entry.port_num, 1);
			assert_int_equal(entry.gid_type, t == PAIR_ROCE ? i & 1 ? IBV_GID_TYPE_ROCE_V2 :
					 IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_IB);
		}
		assert_int_equal(sim_verbs.query_gid_table(a.context, all, gids[t], 0), gids[t]);
		assert_int_equal(sim_verbs.query_gid_table(a.context, all, gids[t] - 1, 0), -EINVAL);
		assert_int_equal(sim_verbs.query_gid_table(a.context, all, 8, 1), -EOPNOTSUPP);
		if (port.gid_tbl_len > (int)gids[t]) {
			assert_int_equal(sim_verbs.query_gid(a.context, 1, (int)gids[t], &gid), 0);
			assert_memory_equal(&gid, &none, sizeof(gid));
			assert_int_equal(sim_verbs.query_gid_ex(a.context, 1, gids[t], &entry, 0),
					 ENODATA);
		}
		assert_int_equal(sim_verbs.query_gid(a.context, 1, port.gid_tbl_len, &gid), -1);
		assert_int_equal(errno, EINVAL);
		assert_int_equal(sim_verbs.query_gid(a.context, 1, -1, &gid), -1);
		assert_int_equal(sim_verbs.query_gid(a.context, 2, 0, &gid), -1);
		assert_int_equal(sim_verbs.query_gid_ex(a.context, 1, 999, &entry, 0), EINVAL);
		assert_int_equal(sim_verbs.query_gid_ex(a.context, 1, 0, &entry, 1), EOPNOTSUPP);

		if (t == PAIR_IWARP) {
			assert_int_equal(sim_verbs.query_pkey(a.context, 1, 0, &pkey), -1);
			assert_int_equal(sim_verbs.get_pkey_index(a.context, 1, htons(0xffff)), -1);
		} else {
			assert_int_equal(sim_verbs.query_pkey(a.context, 1, 0, &pkey), 0);
			assert_int_equal(ntohs(pkey), 0xffff);
			assert_int_equal(sim_verbs.get_pkey_index(a.context, 1, htons(0xffff)), 0);
		}
		assert_int_equal(sim_verbs.query_pkey(a.context, 1, 1, &pkey), -1);
		assert_int_equal(errno, EINVAL);
		assert_int_equal(sim_verbs.get_pkey_index(a.context, 1, htons(0x7fff)), -1);
		pair_close();
	}
}

static const char *sysfs(const char *file)
{
	static char buf[128];
	int len;

	memset(buf, 'x', sizeof(buf));
	len = sim_verbs.read_sysfs_file(&a.device->vdev.device, file, buf, sizeof(buf));
	if (len < 0)
		return NULL;
	assert_int_equal(strlen(buf), len);
	return buf;
}

static void files_in_sysfs(void **state)
{
	static const char *const missing[] = {
		"nothing", "ports/0/state", "ports/2/state", "ports/1", "ports/2/", "ports/1/gids",
		"ports/1/gids/x", "ports/1/gids/1x", "ports/1/gids/01", "ports/1/gids/64",
		"ports/x/state",
		"ports/01/state", "ports/1/gid_attrs/types/63", "ports/1/pkeys/1", "ports/1/other/0",
		"ports/1/other/", "device/net/eth0", "device/net/lo/", "device/nothing", "/",
	};
	char small[4];

	(void)state;
	pair_open(PAIR_ROCE);
	assert_string_equal(sysfs("fw_ver"), "1.0.0");
	assert_string_equal(sysfs("hca_type"), "polycm sim roce");
	assert_string_equal(sysfs("board_id"), "POLYCM_SIM");
	assert_string_equal(sysfs("node_type"), "1: CA");
	assert_string_equal(sysfs("node_desc"), "a sim0");
	assert_int_equal(strlen(sysfs("node_guid")), 19);
	assert_string_equal(sysfs("ports/1/state"), "4: ACTIVE");
	assert_string_equal(sysfs("ports/1/phys_state"), "5: LinkUp");
	assert_string_equal(sysfs("ports/1/link_layer"), "Ethernet");
	assert_string_equal(sysfs("ports/1/rate"), "100 Gb/sec (4X EDR)");
	assert_string_equal(sysfs("ports/1/lid"), "0x0");
	assert_string_equal(sysfs("ports/1/pkeys/0"), "0xffff");
	assert_string_equal(sysfs("ports/1/gid_attrs/types/0"), "IB/RoCE v1");
	assert_string_equal(sysfs("ports/1/gid_attrs/types/3"), "RoCE v2");
	assert_string_equal(sysfs("ports/1/gids/3"), "0000:0000:0000:0000:0000:ffff:0a00:0001");
	assert_string_equal(sysfs("ports/1/gids/63"), "0000:0000:0000:0000:0000:0000:0000:0000");
	assert_string_equal(sysfs("ports/1/gid_attrs/ndevs/3"), "eth0");
	assert_string_equal(sysfs("ports/1/cap_mask"), "0x04010000");
	assert_string_equal(sysfs("ports/1/lid_mask_count"), "0");
	assert_string_equal(sysfs("ports/1/hw_counters/lifespan"), "10");
	assert_string_equal(sysfs("ports/1/counters/symbol_error"), "0");
	assert_string_equal(sysfs("device/class"), "0x020000");
	assert_string_equal(sysfs("device/numa_node"), "-1");
	assert_string_equal(sysfs("device/net/eth0/mtu"), "1500");
	assert_string_equal(sysfs("device/net/eth0/operstate"), "up");
	assert_string_equal(sysfs("device/net/eth0/type"), "1");
	assert_int_equal(strlen(sysfs("device/net/eth0/address")), 17);
	for (size_t i = 0; i < ARRAY_SIZE(missing); i++)
		if (sysfs(missing[i]))
			fail_msg("there is a file %s", missing[i]);
	assert_int_equal(sim_verbs.read_sysfs_file(&a.device->vdev.device, "fw_ver", small, 4), 3);
	assert_string_equal(small, "1.0");
	assert_int_equal(sim_verbs.read_sysfs_file(&a.device->vdev.device, "fw_ver", small, 0), -1);
	pair_close();

	pair_open(PAIR_IB);
	assert_string_equal(sysfs("ports/1/link_layer"), "InfiniBand");
	assert_string_equal(sysfs("ports/1/sm_lid"), "0x1");
	assert_string_equal(sysfs("ports/1/gid_attrs/types/0"), "IB/RoCE v1");
	assert_null(sysfs("ports/1/gid_attrs/ndevs/0"));
	assert_string_equal(sysfs("device/net/eth0/type"), "32");
	pair_close();
	pair_open(PAIR_IWARP);
	assert_string_equal(sysfs("node_type"), "4: RNIC");
	assert_string_equal(sysfs("ports/1/gid_attrs/ndevs/0"), "eth0");
	assert_null(sysfs("ports/1/counters/"));
	assert_string_equal(sysfs("ports/1/pkeys/"), "");
	pair_close();
}

static void folders_in_sysfs(void **state)
{
	(void)state;
	pair_open(PAIR_IB);
	assert_string_equal(sysfs(""), "board_id\nfw_ver\nhca_type\nhw_rev\nnode_desc\nnode_guid\n"
			    "node_type\nsys_image_guid\ndevice/\nports/\n");
	assert_string_equal(sysfs("ports/"), "1/\n");
	assert_string_equal(sysfs("ports/1/gids/"), "0\n1\n2\n3\n4\n5\n6\n7\n");
	assert_string_equal(sysfs("ports/1/gid_attrs/"), "ndevs/\ntypes/\n");
	assert_string_equal(sysfs("ports/1/pkeys/"), "0\n");
	assert_int_equal(sim_device_add_address(a.device, "lo", "127.0.0.1/8"), 0);
	assert_string_equal(sysfs("device/net/"), "eth0/\n");
	assert_null(sysfs("device/net/lo/mtu"));
	pair_close();
}

static void context_is_an_extended_one(void **state)
{
	static struct sim_profile without_clock;
	struct ibv_cq_init_attr_ex timed = {
		.cqe = 1, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct verbs_context *verbs;

	(void)state;
	pair_open(PAIR_ROCE);
	verbs = verbs_get_ctx(a.context);
	assert_non_null(verbs);
	assert_int_equal(verbs->sz, sizeof(*verbs));
	assert_ptr_equal(a.context->device, &a.device->vdev.device);
	assert_int_equal(sim_advance(1500000002), 0);
	assert_int_equal(ibv_query_rt_values_ex(a.context, &values), 0);
	assert_int_equal(values.raw_clock.tv_sec, 0);
	assert_int_equal(values.raw_clock.tv_nsec, 1500000002);
	a.device->profile = &without_clock;
	assert_int_equal(ibv_query_rt_values_ex(a.context, &values), EOPNOTSUPP);
	assert_null(ibv_create_cq_ex(a.context, &timed));
	assert_int_equal(errno, EOPNOTSUPP);
	a.device->profile = NULL;
	/* What does not exist says so. */
	assert_null(ibv_open_xrcd(a.context, NULL));
	assert_int_equal(errno, EINVAL);
	pair_close();
}

/* dup(), close(), assign; the old number is another file's, which nothing touches. */
static void move(int *fd, int *ret_old)
{
	int moved = fcntl(*fd, F_DUPFD_CLOEXEC, 100);

	assert_true(moved >= 100);
	*ret_old = *fd;
	close(*fd);
	assert_int_equal(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), *ret_old);
	*fd = moved;
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void descriptors_can_be_moved(void **state)
{
	struct pair_conn conn = pair_defaults();
	int old_channel, old_async;
	struct ibv_cq *cq;
	void *context;

	(void)state;
	pair_open(PAIR_ROCE);
	pair_connect(&conn);
	move(&a.channel->fd, &old_channel);
	move(&a.context->async_fd, &old_async);
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, 1, 0, 8, 0), 0);
	assert_int_equal(sim_advance(SIM_US(10)), 0);
	assert_true(readable(a.channel->fd));
	assert_false(readable(old_channel));
	assert_int_equal(sim_verbs.get_cq_event(a.channel, &cq, &context), 0);
	assert_false(readable(a.channel->fd));
	sim_verbs.ack_cq_events(cq, 1);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	assert_false(readable(old_async));
	pair_close();
	assert_int_equal(close(old_channel), 0);
	assert_int_equal(close(old_async), 0);
}

static void closing_takes_everything_with_it(void **state)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { .max_recv_wr = 1 } };
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1 };
	struct ibv_comp_channel *channel;
	struct ibv_context *context;
	struct polycm_sim_counts before, counts;
	struct ibv_pd *pd;

	(void)state;
	pair_open(PAIR_ROCE);
	sim_lock();
	sim_nic_counts(&before);
	sim_unlock();
	context = sim_verbs.open_device(&a.device->vdev.device);
	pd = sim_verbs.alloc_pd(context);
	channel = sim_verbs.create_comp_channel(context);
	init.send_cq = sim_verbs.create_cq(context, 1, NULL, channel, 0);
	init.recv_cq = sim_verbs.create_cq(context, 1, NULL, NULL, 0);
	init.srq = sim_verbs.create_srq(pd, &srq_init);
	assert_non_null(sim_verbs.create_qp(pd, &init));
	assert_non_null(sim_verbs.create_ah(pd, &ah));
	assert_non_null(sim_verbs.reg_mr(pd, a.buf, 1, (uintptr_t)a.buf, 0));
	sim_lock();
	sim_nic_counts(&counts);
	sim_unlock();
	assert_int_equal(counts.contexts, before.contexts + 1);
	assert_int_equal(counts.pds, before.pds + 1);
	assert_int_equal(counts.comp_channels, before.comp_channels + 1);
	assert_int_equal(counts.cqs, before.cqs + 2);
	assert_int_equal(counts.srqs, before.srqs + 1);
	assert_int_equal(counts.qps, before.qps + 1);
	assert_int_equal(counts.ahs, before.ahs + 1);
	assert_int_equal(counts.mrs, before.mrs + 1);
	assert_int_equal(sim_verbs.close_device(context), 0);
	sim_lock();
	sim_nic_counts(&counts);
	sim_unlock();
	assert_memory_equal(&counts, &before, sizeof(counts));
	pair_close();
}

static const struct {
	enum pair_transport transport;
	enum ibv_qp_type type;
	struct ibv_qp_cap cap;
	int err;
	uint32_t max_inline;		/* at least what the gather list takes */
} creations[] = {
	{ PAIR_ROCE, IBV_QPT_RC, { 0, 0, 0, 0, 0 }, 0, 0 },
	{ PAIR_ROCE, IBV_QPT_RC, { 32768, 32768, 32, 32, 1024 }, 0, 1024 },
	{ PAIR_ROCE, IBV_QPT_RC, { 1, 1, 4, 1, 63 }, 0, 64 },
	{ PAIR_ROCE, IBV_QPT_RC, { 1, 1, 4, 1, 65 }, 0, 65 },
	{ PAIR_ROCE, IBV_QPT_RC, { 32769, 1, 1, 1, 0 }, EINVAL, 0 },
	{ PAIR_ROCE, IBV_QPT_RC, { 1, 32769, 1, 1, 0 }, EINVAL, 0 },
	{ PAIR_ROCE, IBV_QPT_RC, { 1, 1, 33, 1, 0 }, EINVAL, 0 },
	{ PAIR_ROCE, IBV_QPT_RC, { 1, 1, 1, 33, 0 }, EINVAL, 0 },
	{ PAIR_ROCE, IBV_QPT_RC, { 1, 1, 1, 1, 1025 }, EINVAL, 0 },
	{ PAIR_ROCE, IBV_QPT_UD, { 1, 1, 1, 1, 0 }, 0, 16 },
	{ PAIR_ROCE, IBV_QPT_UC, { 1, 1, 1, 1, 0 }, 0, 16 },
	{ PAIR_ROCE, IBV_QPT_RAW_PACKET, { 1, 1, 1, 1, 0 }, EOPNOTSUPP, 0 },
	{ PAIR_ROCE, IBV_QPT_XRC_SEND, { 1, 0, 1, 0, 0 }, 0, 16 },
	{ PAIR_IWARP, IBV_QPT_XRC_SEND, { 1, 0, 1, 0, 0 }, EOPNOTSUPP, 0 },
	{ PAIR_ROCE, (enum ibv_qp_type)99, { 1, 1, 1, 1, 0 }, EINVAL, 0 },
	{ PAIR_IB, IBV_QPT_UD, { 1, 1, 1, 1, 0 }, 0, 16 },
	{ PAIR_IWARP, IBV_QPT_RC, { 1, 1, 1, 1, 0 }, 0, 16 },
	{ PAIR_IB, IBV_QPT_UC, { 1, 1, 1, 1, 0 }, 0, 16 },
	{ PAIR_IB, IBV_QPT_XRC_RECV, { 1, 1, 1, 1, 0 }, EINVAL, 0 },
	{ PAIR_IWARP, IBV_QPT_UD, { 1, 1, 1, 1, 0 }, EOPNOTSUPP, 0 },
	{ PAIR_IWARP, IBV_QPT_UC, { 1, 1, 1, 1, 0 }, EOPNOTSUPP, 0 },
};

static void queue_pairs_within_the_limits(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(creations); i++) {
		struct ibv_qp_init_attr init = { .qp_type = creations[i].type, .cap = creations[i].cap };
		struct ibv_qp *qp;

		pair_open(creations[i].transport);
		assert_null(sim_verbs.create_qp(a.pd, &init));
		init.send_cq = b.cq;
		init.recv_cq = a.cq;
		assert_null(sim_verbs.create_qp(a.pd, &init));
		/* That of an XRC_SEND is not looked at. */
		init.send_cq = a.cq;
		init.recv_cq = b.cq;
		if (init.qp_type != IBV_QPT_XRC_SEND)
			assert_null(sim_verbs.create_qp(a.pd, &init));
		init.recv_cq = a.cq;
		errno = 0;
		qp = sim_verbs.create_qp(a.pd, &init);
		assert_int_equal(errno, creations[i].err);
		assert_int_equal(qp != NULL, !creations[i].err);
		if (qp) {
			assert_in_range(qp->qp_num, 2, 0xffffff);
			assert_int_equal(init.cap.max_inline_data, creations[i].max_inline);
			init.cap.max_inline_data = creations[i].cap.max_inline_data;
			assert_memory_equal(&init.cap, &creations[i].cap, sizeof(init.cap));
			assert_int_equal(qp->state, IBV_QPS_RESET);
			assert_int_equal(sim_verbs.destroy_qp(qp), 0);
		}
		pair_close();
	}
}

/* XRC is a matter of the transport. */
static void xrc_by_transport(void **state)
{
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1,
	};
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = 1, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
	};
	struct ibv_device_attr device;
	struct ibv_xrcd *domain;

	(void)state;
	for (enum pair_transport t = 0; t < PAIR_TRANSPORTS; t++) {
		pair_open(t);
		domain = ibv_open_xrcd(a.context, &xrcd);
		assert_int_equal(domain != NULL, t != PAIR_IWARP);
		assert_int_equal(sim_verbs.query_device(a.context, &device), 0);
		assert_int_equal(!!(device.device_cap_flags & IBV_DEVICE_XRC), t != PAIR_IWARP);
		if (domain)
			assert_int_equal(ibv_close_xrcd(domain), 0);
		else
			assert_int_equal(errno, EOPNOTSUPP);
		srq.pd = a.pd;
		errno = 0;
		assert_null(ibv_create_srq_ex(a.context, &srq));
		assert_int_equal(errno, t == PAIR_IWARP ? EOPNOTSUPP : EINVAL);
		pair_close();
	}
}

/* Numbers are not used again soon, and many QPs at once all have their own. */
static void numbers_of_queue_pairs(void **state)
{
	enum { MANY = 3000 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_qp **qps = calloc(MANY, sizeof(*qps));
	uint32_t last = 0;

	(void)state;
	assert_non_null(qps);
	pair_open(PAIR_ROCE);
	init.send_cq = init.recv_cq = a.cq;
	for (int i = 0; i < 200; i++) {
		struct ibv_qp *qp = sim_verbs.create_qp(a.pd, &init);

		assert_non_null(qp);
		assert_true(qp->qp_num > last);
		last = qp->qp_num;
		assert_int_equal(sim_verbs.destroy_qp(qp), 0);
	}
	for (int i = 0; i < MANY; i++) {
		qps[i] = sim_verbs.create_qp(a.pd, &init);
		assert_non_null(qps[i]);
	}
	sim_lock();
	for (int i = 0; i < MANY; i++) {
		assert_non_null(sim_qp_find(a.device, qps[i]->qp_num));
		assert_null(sim_qp_find(b.device, qps[i]->qp_num));
		for (int j = i + 1; j < i + 10 && j < MANY; j++)
			assert_int_not_equal(qps[i]->qp_num, qps[j]->qp_num);
	}
	assert_null(sim_qp_find(a.device, 0));
	assert_null(sim_qp_find(a.device, UINT32_MAX));
	sim_unlock();
	for (int i = 0; i < MANY; i++)
		assert_int_equal(sim_verbs.destroy_qp(qps[i]), 0);
	free(qps);
	pair_close();
}

static void address_handles(void **state)
{
	struct ibv_ah_attr attr = { .port_num = 1 };
	struct ibv_ah *ah;

	(void)state;
	pair_open(PAIR_ROCE);
	assert_null(sim_verbs.create_ah(a.pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr.is_global = 1;
	attr.grh.sgid_index = 4;
	assert_null(sim_verbs.create_ah(a.pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr.grh.sgid_index = 3;
	ah = sim_verbs.create_ah(a.pd, &attr);
	assert_non_null(ah);
	assert_int_equal(sim_verbs.dealloc_pd(a.pd), EBUSY);
	assert_int_equal(sim_verbs.destroy_ah(ah), 0);
	attr.port_num = 2;
	assert_null(sim_verbs.create_ah(a.pd, &attr));
	pair_close();

	pair_open(PAIR_IWARP);
	attr.port_num = 1;
	assert_null(sim_verbs.create_ah(a.pd, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	pair_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_are_those_of_the_rules),
		cmocka_unit_test(gid_and_pkey_tables),
		cmocka_unit_test(files_in_sysfs),
		cmocka_unit_test(folders_in_sysfs),
		cmocka_unit_test(context_is_an_extended_one),
		cmocka_unit_test(closing_takes_everything_with_it),
		cmocka_unit_test(descriptors_can_be_moved),
		cmocka_unit_test(queue_pairs_within_the_limits),
		cmocka_unit_test(xrc_by_transport),
		cmocka_unit_test(numbers_of_queue_pairs),
		cmocka_unit_test(address_handles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
