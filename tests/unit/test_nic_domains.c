/* SPDX-License-Identifier: BSD-2-Clause */
/* Thread domains and parent domains: what they are made of, what they keep, and their allocators. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "nic_pair.h"

static struct ibv_td_init_attr plain_td;

static struct ibv_pd *parent_of(struct ibv_pd *pd, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .td = td };

	errno = 0;
	return ibv_alloc_parent_domain(a.context, &attr);
}

static void what_is_used_stays(void **state)
{
	struct ibv_pd *pd = sim_verbs.alloc_pd(a.context), *parent, *other;
	struct ibv_td *td = ibv_alloc_td(a.context, &plain_td);

	(void)state;
	assert_non_null(td);
	assert_ptr_equal(td->context, a.context);
	parent = parent_of(pd, td);
	assert_non_null(parent);
	assert_ptr_equal(parent->context, a.context);
	assert_int_equal(parent->handle, pd->handle);
	other = parent_of(pd, NULL);
	assert_non_null(other);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_true(pair_warned("ibv_dealloc_td refused: parent domains of it are left: 1"));
	assert_int_equal(sim_verbs.dealloc_pd(pd), EBUSY);
	assert_true(pair_warned("parent domains of it are left: 2"));
	assert_int_equal(sim_verbs.dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	assert_int_equal(sim_verbs.dealloc_pd(pd), EBUSY);
	assert_int_equal(sim_verbs.dealloc_pd(other), 0);
	assert_int_equal(sim_verbs.dealloc_pd(pd), 0);
}

/* Closing a context takes them along, in whatever order they were made. */
static void a_closed_context_has_none(void **state)
{
	struct ibv_context *context = sim_verbs.open_device(a.context->device);
	struct ibv_parent_domain_init_attr attr = {
		.pd = sim_verbs.alloc_pd(context),
		.td = ibv_alloc_td(context, &plain_td),
	};

	(void)state;
	assert_non_null(ibv_alloc_parent_domain(context, &attr));
	assert_int_equal(sim_verbs.close_device(context), 0);
}

static void *alloc_nothing(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
			   uint64_t type)
{
	(void)pd, (void)context, (void)size, (void)alignment, (void)type;
	return NULL;
}

static void wrong_domains_are_refused(void **state)
{
	struct ibv_td *td = ibv_alloc_td(b.context, &plain_td);
	struct ibv_td_init_attr unknown = { .comp_mask = 1 };
	struct ibv_pd *parent = parent_of(a.pd, NULL);
	const struct ibv_parent_domain_init_attr cases[] = {
		{ .pd = NULL },
		{ .pd = b.pd },
		{ .pd = parent },
		{ .pd = a.pd, .td = td },
		{ .pd = a.pd, .comp_mask = 8 },
		{ .pd = a.pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS },
		{ .pd = a.pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		  .alloc = alloc_nothing },
	};
	struct ibv_cq_init_attr_ex cq = { .cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_parent_domain_init_attr attr = cases[i];
		unsigned int before = pair_warnings;

		errno = 0;
		assert_null(ibv_alloc_parent_domain(a.context, &attr));
		assert_int_equal(errno, EINVAL);
		assert_int_equal(pair_warnings, before + 1);
		assert_true(pair_warned("ibv_alloc_parent_domain refused"));
	}
	assert_null(ibv_alloc_td(a.context, &unknown));
	assert_int_equal(errno, EINVAL);
	/* A CQ has a parent domain, not a protection domain. */
	for (size_t i = 0; i < 3; i++) {
		struct ibv_pd *const none[] = { NULL, a.pd, b.pd };

		cq.parent_domain = none[i];
		assert_null(ibv_create_cq_ex(a.context, &cq));
		assert_int_equal(errno, EINVAL);
	}
	assert_int_equal(sim_verbs.dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
}

/* --- It protects as its PD. --- */

static void objects_of_both_go_together(void **state)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_pd *own = a.pd, *parent = parent_of(a.pd, NULL);
	struct ibv_mr *mr = a.mr, *its = NULL;

	(void)state;
	/* The QP is the parent domain's, the region is that of its PD; and the other way round. */
	a.pd = parent;
	conn.srq = true;
	pair_connect(&conn);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pair_recv(&b, 1, 0, 100), 0);
		pair_fill(&a, 0, 100, (uint8_t)i);
		assert_int_equal(pair_send(&a, 2, 0, 100), 0);
		pair_expect(&b, 1, IBV_WC_SUCCESS);
		pair_expect(&a, 2, IBV_WC_SUCCESS);
		pair_check(&b, 0, 100, (uint8_t)i);
		assert_int_equal(pair_rdma(&b, IBV_WR_RDMA_READ, 3, 0, 8, 0), 0);
		pair_expect(&b, 3, IBV_WC_SUCCESS);
		if (i)
			break;
		its = sim_verbs.reg_mr(parent, a.buf, PAIR_BUF, (uintptr_t)a.buf, PAIR_ALL);
		assert_non_null(its);
		assert_ptr_equal(its->pd, parent);
		a.mr = its;
	}
	assert_ptr_equal(a.qp->pd, parent);
	assert_int_equal(sim_verbs.dealloc_pd(parent), EBUSY);
	pair_disconnect();
	assert_int_equal(sim_verbs.dereg_mr(its), 0);
	assert_int_equal(sim_verbs.dealloc_pd(parent), 0);
	a.mr = mr;
	a.pd = own;
}

/* --- Allocators. --- */

static struct {
	unsigned int allocated, freed;
	bool use_default, fail;
	uint64_t types;			/* bits */
	struct ibv_pd *pd;
} its;

static void *count_alloc(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
			 uint64_t type)
{
	void *at;

	assert_ptr_equal(context, &its);
	assert_ptr_equal(pd, its.pd);
	if (its.use_default)
		return IBV_ALLOCATOR_USE_DEFAULT;
	if (its.fail || posix_memalign(&at, alignment, size))
		return NULL;
	its.allocated++;
	its.types |= 1ull << type;
	return at;
}

static void count_free(struct ibv_pd *pd, void *context, void *at, uint64_t type)
{
	assert_ptr_equal(context, &its);
	assert_ptr_equal(pd, its.pd);
	assert_true(its.types >> type & 1);
	/* Until it has all of its memory back, another thread cannot deallocate it either. */
	if (!its.fail)
		assert_int_equal(sim_verbs.dealloc_pd(pd), EBUSY);
	its.freed++;
	free(at);
}

static struct ibv_pd *allocating(void)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = a.pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = count_alloc,
		.free = count_free,
		.pd_context = &its,
	};

	memset(&its, 0, sizeof(its));
	its.pd = ibv_alloc_parent_domain(a.context, &attr);
	assert_non_null(its.pd);
	return its.pd;
}

/* Creates all kinds of queues, uses and destroys them. */
static void use_queues(struct ibv_pd *parent)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 16, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = parent,
	};
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq_attr bigger = { .max_wr = 32 };
	struct pair_conn conn = pair_defaults();
	struct ibv_pd *pd = a.pd;
	struct ibv_cq *cq = a.cq;
	struct ibv_srq *srq;

	a.pd = parent;
	a.cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(a.context, &init));
	assert_int_equal(sim_verbs.resize_cq(a.cq, 100), 0);
	srq = sim_verbs.create_srq(parent, &srq_init);
	assert_int_equal(sim_verbs.modify_srq(srq, &bigger, IBV_SRQ_MAX_WR), 0);
	pair_connect(&conn);
	assert_int_equal(sim_verbs.dealloc_pd(parent), EBUSY);
	assert_int_equal(pair_recv(&a, 1, 0, 100), 0);
	assert_int_equal(pair_send(&b, 2, 0, 100), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_expect(&b, 2, IBV_WC_SUCCESS);
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, 3, 0, 8, 0), 0);
	pair_expect(&a, 3, IBV_WC_SUCCESS);
	pair_disconnect();
	assert_int_equal(sim_verbs.destroy_srq(srq), 0);
	assert_int_equal(sim_verbs.destroy_cq(a.cq), 0);
	a.pd = pd;
	a.cq = cq;
}

static void queues_are_in_the_programs_memory(void **state)
{
	struct ibv_pd *parent = allocating();

	(void)state;
	use_queues(parent);
	/* A CQ twice, an SRQ, a QP's two queues. */
	assert_int_equal(its.allocated, 5);
	assert_int_equal(its.freed, 5);
	its.use_default = true;
	use_queues(parent);
	assert_int_equal(its.allocated, 5);
	assert_int_equal(its.freed, 5);
	assert_int_equal(sim_verbs.dealloc_pd(parent), 0);
}

static void an_allocator_may_have_nothing(void **state)
{
	struct ibv_pd *parent = allocating();
	struct ibv_cq_init_attr_ex cq = {
		.cqe = 16, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = parent,
	};
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr qp = {
		.send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	(void)state;
	its.fail = true;
	assert_null(ibv_create_cq_ex(a.context, &cq));
	assert_int_equal(errno, ENOMEM);
	assert_null(sim_verbs.create_srq(parent, &srq));
	assert_int_equal(errno, ENOMEM);
	assert_null(sim_verbs.create_qp(parent, &qp));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(its.freed, 0);
	assert_int_equal(sim_verbs.dealloc_pd(parent), 0);
}

#define ROCE(test) cmocka_unit_test_setup_teardown(test, open_roce, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROCE(what_is_used_stays),
		ROCE(a_closed_context_has_none),
		ROCE(wrong_domains_are_refused),
		ROCE(objects_of_both_go_together),
		ROCE(queues_are_in_the_programs_memory),
		ROCE(an_allocator_may_have_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
