/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ids carry: address resolution's results, QPs with their CQs, SRQs, ECE
 * options and multicast groups.
 */
#include "cm_fake.h"

#include <pthread.h>

static struct rdma_event_channel *channel;

static int open_channel(void **state)
{
	fakes_reset(state);
	channel = rdma_create_event_channel();
	return channel ? 0 : -1;
}

static int close_channel(void **state)
{
	rdma_destroy_event_channel(channel);
	return fakes_check(state);
}

#define QP_TEST(function) cmocka_unit_test_setup_teardown(function, open_channel, close_channel)

/* ------------------------------------------------------------------------
 * Resolving.
 */

static void resolving_fills_in_the_id(void **state)
{
	struct rdma_cm_id *id = new_id(channel);

	(void)state;
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.0.2", 7471), 1), 0);
	assert_int_equal(ntohs(rdma_get_dst_port(id)), 7471);
	/* Only what was retrieved is known. */
	assert_null(id->verbs);
	assert_errno(rdma_resolve_route(id, 1), EINVAL);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_ptr_equal(id->verbs, fakes[0].device->verbs);
	assert_ptr_equal(id->pd->context, id->verbs);
	assert_int_equal(id->port_num, 1);
	assert_int_equal(ntohs(rdma_get_src_port(id)), 40000);
	assert_int_equal(id->route.num_paths, 0);
	assert_null(id->route.path_rec);

	assert_int_equal(rdma_resolve_route(id, 1), 0);
	assert_int_equal(id->route.num_paths, 0);
	expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(id->route.num_paths, 1);
	assert_int_equal(id->route.path_rec->packet_life_time, 16);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void what_cannot_be_completed_is_an_error_event(void **state)
{
	struct rdma_cm_id *id = new_id(channel);

	(void)state;
	fakes[0].fail[OP_QUERY] = -ENOMEM;
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.0.2", 7471), 1), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_ERROR, -1);
	assert_null(id->verbs);
	fakes[0].fail[OP_QUERY] = 0;
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.0.2", 7471), 1), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	fakes[0].fail[OP_QUERY] = -ENOMEM;
	assert_int_equal(rdma_resolve_route(id, 1), 0);
	expect_event(channel, RDMA_CM_EVENT_ROUTE_ERROR, -1);
	assert_errno(rdma_listen(id, 1), ENOMEM);
	fakes[0].fail[OP_QUERY] = 0;
	assert_int_equal(rdma_destroy_id(id), 0);

	id = new_id(channel);
	fakes[0].fail[OP_QUERY] = -ENOMEM;
	assert_errno(rdma_bind_addr(id, addr4("10.0.0.1", 1)), ENOMEM);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void binding_to_an_address_is_being_on_a_device(void **state)
{
	struct rdma_cm_id *id = new_id(channel);

	(void)state;
	assert_int_equal(rdma_bind_addr(id, addr4("10.0.0.1", 0)), 0);
	assert_ptr_equal(id->verbs, fakes[0].device->verbs);
	assert_non_null(id->pd);
	assert_int_equal(ntohs(rdma_get_src_port(id)), 40000);
	create_qp(id);
	rdma_destroy_ep(id);
}

/* ------------------------------------------------------------------------
 * Queue pairs.
 */

static void missing_cqs_are_made(void **state)
{
	struct rdma_cm_id *id = resolved_id(channel);
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 5 }, .qp_type = IBV_QPT_RC,
	};

	(void)state;
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	assert_int_equal(fake_verbs.cqs, 2);
	assert_int_equal(fake_verbs.channels, 2);
	assert_ptr_equal(id->send_cq->cq_context, id);
	assert_ptr_equal(id->send_cq->channel, id->send_cq_channel);
	assert_int_equal(id->send_cq->cqe, 4);
	assert_int_equal(id->recv_cq->cqe, 5);
	assert_ptr_equal(attr.send_cq, id->send_cq);
	assert_ptr_equal(attr.recv_cq, id->recv_cq);
	assert_ptr_equal(fake_verbs.qp_attr.send_cq, id->send_cq);
	/* What the device really gives comes back. */
	assert_int_equal(attr.cap.max_inline_data, 99);
	assert_errno(rdma_create_qp(id, NULL, &attr), EINVAL);

	rdma_destroy_qp(id);
	assert_null(id->qp);
	assert_null(id->send_cq);
	assert_null(id->recv_cq_channel);
	assert_int_equal(fake_verbs.cqs, 0);
	rdma_destroy_qp(id);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void given_cqs_and_pds_are_used(void **state)
{
	struct rdma_cm_id *id = resolved_id(channel);
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 10, NULL, NULL, 0);
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
	struct ibv_pd foreign = { .context = NULL };
	struct ibv_cq other = { .cqe = 1 };
	struct ibv_qp_init_attr_ex attr = {
		.cap.max_recv_wr = 3, .send_cq = cq, .qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = &foreign,
	};

	(void)state;
	assert_errno(rdma_create_qp_ex(id, &attr), EINVAL);
	attr.pd = pd;
	assert_int_equal(rdma_create_qp_ex(id, &attr), 0);
	assert_ptr_equal(id->pd, pd);
	assert_ptr_equal(id->qp->pd, pd);
	assert_null(id->send_cq);
	assert_int_equal(id->recv_cq->cqe, 3);
	assert_int_equal(fake_verbs.cqs, 2);
	rdma_destroy_qp(id);
	assert_int_equal(fake_verbs.cqs, 1);

	/* One that the program put into the id must be the one it asks for. */
	id->send_cq = &other;
	attr.recv_cq = NULL;
	assert_errno(rdma_create_qp_ex(id, &attr), EINVAL);
	id->send_cq = NULL;
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void failures_leave_no_cqs(void **state)
{
	struct rdma_cm_id *id = resolved_id(channel);
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };

	(void)state;
	fake_verbs.no_cq = true;
	assert_errno(rdma_create_qp(id, NULL, &attr), ENOSPC);
	fake_verbs.no_cq = false;
	fake_verbs.create_qp_errno = ENOMEM;
	assert_errno(rdma_create_qp(id, NULL, &attr), ENOMEM);
	fake_verbs.create_qp_errno = 0;
	fake_verbs.refuse = IBV_QPS_INIT;
	fake_verbs.refuse_errno = EINVAL;
	assert_errno(rdma_create_qp(id, NULL, &attr), EINVAL);
	fake_verbs.refuse_errno = 0;
	assert_null(attr.send_cq);
	assert_null(attr.recv_cq);
	assert_int_equal(fake_verbs.cqs, 0);
	assert_int_equal(fake_verbs.channels, 0);
	assert_int_equal(fake_verbs.qps, 0);
	assert_null(id->qp);
	/* And it can be tried again. */
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	rdma_destroy_ep(id);
}

static void datagram_qps_are_ready_at_once(void **state)
{
	static const struct { enum ibv_qp_state refuse; const char *moves; } cases[] = {
		{ IBV_QPS_RTR, "INIT" }, { IBV_QPS_RTS, "INIT RTR" },
		{ IBV_QPS_RESET, "INIT RTR RTS" },
	};
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD };
	struct rdma_cm_id *id;

	(void)state;
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_bind_addr(id, addr4("10.0.0.1", 0)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		fake_verbs.moves[0] = '\0';
		fake_verbs.refuse = cases[i].refuse;
		fake_verbs.refuse_errno = EINVAL;
		if (cases[i].refuse == IBV_QPS_RESET)
			assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
		else
			assert_errno(rdma_create_qp(id, NULL, &attr), EINVAL);
		assert_string_equal(fake_verbs.moves, cases[i].moves);
	}
	rdma_destroy_ep(id);
}

static void attributes_come_from_the_provider(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	struct rdma_cm_id *id = resolved_id(channel);
	int mask = 0;

	(void)state;
	assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), 0);
	assert_int_equal(attr.max_dest_rd_atomic, 7);
	assert_int_equal(mask, IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC | 1 << 21);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void shared_receive_queues(void **state)
{
	struct ibv_srq_init_attr attr = { .attr.max_wr = 10 };
	struct ibv_srq_init_attr_ex ex = {
		.attr.max_wr = 10, .comp_mask = IBV_SRQ_INIT_ATTR_TYPE, .srq_type = IBV_SRQT_XRC,
	};
	struct ibv_pd foreign = { .context = NULL };
	struct rdma_cm_id *id = resolved_id(channel);

	(void)state;
	assert_errno(rdma_create_srq(id, &foreign, &attr), EINVAL);
	assert_int_equal(rdma_create_srq(id, NULL, &attr), 0);
	assert_int_equal(attr.attr.max_wr, 64);
	assert_errno(rdma_create_srq(id, NULL, &attr), EINVAL);
	create_qp(id);
	assert_ptr_equal(fake_verbs.qp_attr.srq, id->srq);
	assert_int_equal(rdma_connect(id, NULL), 0);
	assert_int_equal(fakes[0].param.srq, 1);
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	assert_null(id->srq);
	rdma_destroy_srq(id);

	/* The fake has no XRC. */
	assert_errno(rdma_create_srq_ex(id, &ex), EOPNOTSUPP);
	assert_int_equal(fake_verbs.cqs, 0);
	ex.comp_mask = 0;
	assert_int_equal(rdma_create_srq_ex(id, &ex), 0);
	rdma_destroy_ep(id);
}

/* ------------------------------------------------------------------------
 * ECE.
 */

static const struct polycm_ece theirs = { .vendor_id = 0xabc, .options = 3 };

static void programs_with_qps_of_their_own_set_ece(void **state)
{
	struct rdma_cm_id *listener = listening_id(channel), *id = resolved_id(channel);
	struct rdma_conn_param param = { .qp_num = 1 };
	struct ibv_ece ece = { .vendor_id = 0xabc, .options = 7 };
	struct rdma_cm_event *event;

	(void)state;
	ece.comp_mask = 1;
	assert_errno(rdma_set_local_ece(id, &ece), EINVAL);
	ece.comp_mask = 0;
	ece.vendor_id = 0;
	assert_errno(rdma_set_local_ece(id, &ece), EINVAL);
	ece.vendor_id = 0xabc;
	assert_int_equal(rdma_set_local_ece(id, &ece), 0);
	assert_int_equal(rdma_connect(id, &param), 0);
	assert_int_equal(fakes[0].param.ece.vendor_id, 0xabc);
	assert_int_equal(fakes[0].param.ece.options, 7);
	assert_int_equal(post_conn(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, NULL, &theirs), 0);
	expect_event(channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	assert_int_equal(rdma_get_remote_ece(id, &ece), 0);
	assert_int_equal(ece.vendor_id, 0xabc);
	assert_int_equal(ece.options, 3);
	assert_int_equal(ece.comp_mask, 0);
	assert_int_equal(rdma_destroy_id(id), 0);

	/* The answer has the asker's vendor. */
	fakes[0].request_ece = theirs;
	assert_int_equal(post_request(fakes, (struct polycm_id *)(void *)listener, NULL, NULL), 0);
	event = next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	id = event->id;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(rdma_get_remote_ece(id, &ece), 0);
	assert_int_equal(ece.options, 3);
	ece = (struct ibv_ece){ .vendor_id = 0x111, .options = 1 };
	assert_int_equal(rdma_set_local_ece(id, &ece), 0);
	assert_int_equal(rdma_accept(id, &param), 0);
	assert_int_equal(fakes[0].param.ece.vendor_id, 0xabc);
	assert_int_equal(fakes[0].param.ece.options, 1);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
}

static void the_library_does_ece_for_its_qps(void **state)
{
	static const struct {
		uint32_t own, remote;
		int set_errno;
		enum rdma_cm_event_type type;
		int status;
		const char *moves;
	} cases[] = {
		{ 0xabc, 0xabc, 0, RDMA_CM_EVENT_ESTABLISHED, 0, "RTR(7) RTS(6)" },
		{ 0xabc, 0, 0, RDMA_CM_EVENT_ESTABLISHED, 0, "RTR(7) RTS(6)" },
		{ 0xabc, 0xdef, 0, RDMA_CM_EVENT_CONNECT_ERROR, -1, "ERR" },
		{ 0xabc, 0xabc, EINVAL, RDMA_CM_EVENT_CONNECT_ERROR, -1, "ERR" },
		{ 0xabc, 0xabc, EOPNOTSUPP, RDMA_CM_EVENT_ESTABLISHED, 0, "RTR(7) RTS(6)" },
	};
	struct ibv_ece ece = { .vendor_id = 1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct polycm_ece remote = { .vendor_id = cases[i].remote, .options = 2 };
		struct rdma_cm_id *id;

		print_message("case %zu\n", i);
		fake_verbs.has_ece = true;
		fake_verbs.own_ece = (struct ibv_ece){ .vendor_id = cases[i].own, .options = 5 };
		fake_verbs.set_ece = (struct ibv_ece){ .vendor_id = 0 };
		fake_verbs.set_ece_errno = cases[i].set_errno;
		id = qp_id(channel);
		assert_errno(rdma_set_local_ece(id, &ece), EINVAL);
		assert_errno(rdma_get_remote_ece(id, &ece), EINVAL);
		assert_int_equal(rdma_connect(id, NULL), 0);
		assert_int_equal(fakes[0].param.ece.vendor_id, cases[i].own);
		assert_int_equal(fakes[0].param.ece.options, 5);
		fake_verbs.moves[0] = '\0';
		assert_int_equal(post_conn(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, NULL, &remote),
				 0);
		expect_event(channel, cases[i].type, cases[i].status);
		assert_string_equal(fake_verbs.moves, cases[i].moves);
		if (cases[i].remote == cases[i].own && !cases[i].set_errno)
			assert_int_equal(fake_verbs.set_ece.options, 2);
		rdma_destroy_ep(id);
	}
}

static void the_qp_of_a_request_is_told_first(void **state)
{
	static const struct polycm_ece foreign = { .vendor_id = 0xdef, .options = 3 };
	struct rdma_cm_id *listener = listening_id(channel), *id;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };

	(void)state;
	fake_verbs.has_ece = true;
	fake_verbs.own_ece = (struct ibv_ece){ .vendor_id = 0xabc, .options = 1 };
	fakes[0].request_ece = theirs;
	id = requested_id(listener);
	create_qp(id);
	assert_int_equal(fake_verbs.set_ece.vendor_id, 0xabc);
	assert_int_equal(fake_verbs.set_ece.options, 3);
	assert_int_equal(rdma_accept(id, NULL), 0);
	assert_int_equal(fakes[0].param.ece.vendor_id, 0xabc);
	assert_int_equal(fakes[0].param.ece.options, 1);
	rdma_destroy_ep(id);

	/* Another vendor's options are none of its own. */
	fakes[0].request_ece = foreign;
	id = requested_id(listener);
	create_qp(id);
	assert_int_equal(fake_verbs.set_ece.vendor_id, 0xabc);
	assert_int_equal(fake_verbs.set_ece.options, 0);
	assert_int_equal(rdma_accept(id, NULL), 0);
	assert_int_equal(fakes[0].param.ece.vendor_id, 0xdef);
	rdma_destroy_ep(id);

	fake_verbs.set_ece_errno = EINVAL;
	id = requested_id(listener);
	fake_verbs.moves[0] = '\0';
	assert_errno(rdma_create_qp(id, NULL, &init), EINVAL);
	assert_string_equal(fake_verbs.moves, "");
	rdma_destroy_ep(id);
	assert_int_equal(rdma_destroy_id(listener), 0);
}

/* ------------------------------------------------------------------------
 * Multicast.
 */

static struct rdma_cm_id *group_id(bool with_qp)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_bind_addr(id, addr4("10.0.0.1", 0)), 0);
	if (with_qp)
		create_qp(id);
	return id;
}

static int post_group(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct polycm_event event = {
		.size = sizeof(event), .type = type, .status = status, .is_ud = true,
		.param.ud = { .qp_num = 0xffffff, .qkey = RDMA_UDP_QKEY, .ah_attr.dlid = 0xc000 },
		.group = fake_id_of(id)->group,
	};

	return polycm_post_event((struct polycm_id *)(void *)id, &event);
}

static void joining_attaches_the_qp(void **state)
{
	static const struct {
		bool qp;
		uint32_t flags;
		int attach_errno;
		enum rdma_cm_event_type posted, type;
		int status, want, attached;
	} cases[] = {
		{ true, RDMA_MC_JOIN_FLAG_FULLMEMBER, 0, RDMA_CM_EVENT_MULTICAST_JOIN,
		  RDMA_CM_EVENT_MULTICAST_JOIN, 0, 0, 1 },
		{ false, RDMA_MC_JOIN_FLAG_FULLMEMBER, 0, RDMA_CM_EVENT_MULTICAST_JOIN,
		  RDMA_CM_EVENT_MULTICAST_JOIN, 0, 0, 0 },
		{ true, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, 0, RDMA_CM_EVENT_MULTICAST_JOIN,
		  RDMA_CM_EVENT_MULTICAST_JOIN, 0, 0, 0 },
		{ true, RDMA_MC_JOIN_FLAG_FULLMEMBER, ENOSPC, RDMA_CM_EVENT_MULTICAST_JOIN,
		  RDMA_CM_EVENT_MULTICAST_ERROR, 0, -1, 0 },
		{ true, RDMA_MC_JOIN_FLAG_FULLMEMBER, 0, RDMA_CM_EVENT_MULTICAST_ERROR,
		  RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET, -ENETRESET, 0 },
	};
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.addr = addr4("224.1.1.1", 0),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *id = group_id(cases[i].qp);
		struct rdma_cm_event *event;

		print_message("case %zu\n", i);
		fake_verbs.attach_errno = cases[i].attach_errno;
		attr.join_flags = cases[i].flags;
		assert_int_equal(rdma_join_multicast_ex(id, &attr, &attr), 0);
		assert_int_equal(fakes[0].join_flags, cases[i].flags);
		assert_int_equal(post_group(id, cases[i].posted, cases[i].status), 0);
		event = next_event(channel, cases[i].type, cases[i].want);
		assert_ptr_equal(event->param.ud.private_data, &attr);
		assert_int_equal(event->param.ud.private_data_len, 0);
		assert_int_equal(event->param.ud.qp_num, 0xffffff);
		assert_int_equal(event->param.ud.qkey, RDMA_UDP_QKEY);
		assert_int_equal(fake_verbs.attached, cases[i].attached);
		assert_int_equal(rdma_ack_cm_event(event), 0);
		assert_int_equal(rdma_leave_multicast(id, attr.addr), 0);
		assert_int_equal(fake_verbs.attached, 0);
		assert_errno(rdma_leave_multicast(id, attr.addr), EADDRNOTAVAIL);
		rdma_destroy_ep(id);
	}
}

static void join_attributes_are_checked(void **state)
{
	static const struct { uint32_t mask, flags; int error; } bad[] = {
		{ 0, 0, EINVAL }, { 1, 0, EINVAL }, { 2, 0, EINVAL }, { 7, 0, EOPNOTSUPP },
		{ 4, 0, EOPNOTSUPP }, { 3, 2, EINVAL }, { 3, 3, EINVAL },
	};
	struct rdma_cm_id *id = group_id(false);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct rdma_cm_join_mc_attr_ex attr = {
			.comp_mask = bad[i].mask, .join_flags = bad[i].flags,
			.addr = addr4("224.1.1.1", 0),
		};

		assert_errno(rdma_join_multicast_ex(id, &attr, NULL), bad[i].error);
	}
	assert_int_equal(fakes[0].calls[OP_JOIN], 0);
	fakes[0].fail[OP_JOIN] = -ENOSYS;
	assert_errno(rdma_join_multicast(id, addr4("224.1.1.1", 0), NULL), ENOSYS);
	assert_errno(rdma_leave_multicast(id, addr4("224.1.1.1", 0)), EADDRNOTAVAIL);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void leaving_drops_what_was_not_retrieved(void **state)
{
	struct rdma_cm_id *id = group_id(true);
	struct rdma_cm_event *event;

	(void)state;
	assert_int_equal(rdma_join_multicast(id, addr4("224.1.1.1", 0), NULL), 0);
	assert_int_equal(post_group(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0), 0);
	assert_int_equal(rdma_join_multicast(id, addr4("224.1.1.2", 0), NULL), 0);
	assert_int_equal(post_group(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0), 0);
	assert_int_equal(rdma_leave_multicast(id, addr4("224.1.1.1", 0)), 0);
	event = next_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	expect_no_event(channel);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(fake_verbs.attached, 1);
	/* Destroying leaves the others; the QP first, as programs do. */
	rdma_destroy_qp(id);
	assert_int_equal(fake_verbs.attached, 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(fakes[0].calls[OP_LEAVE], 2);
}

static void *leave(void *arg)
{
	assert_int_equal(rdma_leave_multicast(arg, addr4("224.1.1.1", 0)), 0);
	return NULL;
}

static void leaving_waits_for_acks(void **state)
{
	struct rdma_cm_id *id = group_id(false);
	struct rdma_cm_event *event;
	pthread_t thread;

	(void)state;
	assert_int_equal(rdma_join_multicast(id, addr4("224.1.1.1", 0), NULL), 0);
	assert_int_equal(post_group(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0), 0);
	event = next_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(pthread_create(&thread, NULL, leave, id), 0);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void synchronous_ids_wait_for_the_join(void **state)
{
	struct rdma_cm_id *id;

	(void)state;
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_bind_addr(id, addr4("10.0.0.1", 0)), 0);
	fakes[0].join_event = RDMA_CM_EVENT_MULTICAST_JOIN;
	assert_int_equal(rdma_join_multicast(id, addr4("224.1.1.1", 0), NULL), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	/* The event is the library's to ack, then. */
	assert_int_equal(rdma_leave_multicast(id, addr4("224.1.1.1", 0)), 0);
	assert_null(id->event);
	assert_int_equal(rdma_join_multicast(id, addr4("224.1.1.1", 0), NULL), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static int start(void **state)
{
	(void)state;
	return fakes_start(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		QP_TEST(resolving_fills_in_the_id),
		QP_TEST(what_cannot_be_completed_is_an_error_event),
		QP_TEST(binding_to_an_address_is_being_on_a_device),
		QP_TEST(missing_cqs_are_made),
		QP_TEST(given_cqs_and_pds_are_used),
		QP_TEST(failures_leave_no_cqs),
		QP_TEST(datagram_qps_are_ready_at_once),
		QP_TEST(attributes_come_from_the_provider),
		QP_TEST(shared_receive_queues),
		QP_TEST(programs_with_qps_of_their_own_set_ece),
		QP_TEST(the_library_does_ece_for_its_qps),
		QP_TEST(the_qp_of_a_request_is_told_first),
		QP_TEST(joining_attaches_the_qp),
		QP_TEST(join_attributes_are_checked),
		QP_TEST(leaving_drops_what_was_not_retrieved),
		QP_TEST(leaving_waits_for_acks),
		QP_TEST(synchronous_ids_wait_for_the_join),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
