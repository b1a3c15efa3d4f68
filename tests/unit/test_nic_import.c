/* SPDX-License-Identifier: BSD-2-Clause */
/* Imports: contexts of a duplicated descriptor; PDs, regions and device memory by their handles. */
#include "config.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "nic_pair.h"

#define NO_HANDLE 0xfffffu

static struct ibv_context *import(struct ibv_context *context)
{
	int fd = dup(context->cmd_fd);
	struct ibv_context *imported;

	assert_true(fd >= 0);
	imported = sim_verbs.import_device(context->device, fd);
	assert_non_null(imported);
	assert_int_equal(imported->cmd_fd, fd);
	return imported;
}

static void only_its_descriptor_is_a_devices(void **state)
{
	struct ibv_context *first, *again;
	int other = eventfd(0, EFD_CLOEXEC);
	const int none[] = { -1, other, 0, 1 << 20 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		errno = 0;
		assert_null(sim_verbs.import_device(a.context->device, none[i]));
		assert_int_equal(errno, ENODEV);
	}
	/* Each device knows its own. */
	assert_null(sim_verbs.import_device(b.context->device, a.context->cmd_fd));
	assert_int_equal(errno, ENODEV);
	first = import(a.context);
	again = import(first);
	assert_ptr_not_equal(first, a.context);
	assert_ptr_equal(first->device, a.context->device);
	assert_int_not_equal(first->async_fd, a.context->async_fd);
	assert_int_equal(sim_verbs.close_device(first), 0);
	assert_int_equal(sim_verbs.close_device(again), 0);
	close(other);
}

/* An imported PD is as good as its own, for QPs and for regions. */
static void data_goes_through_what_is_imported(void **state)
{
	struct pair_conn conn = pair_defaults();
	struct pair_side own = a;
	struct ibv_mr *mr;

	(void)state;
	a.context = import(own.context);
	a.pd = sim_verbs.import_pd(a.context, own.pd->handle);
	assert_non_null(a.pd);
	assert_ptr_equal(a.pd->context, a.context);
	mr = sim_verbs.import_mr(a.pd, own.mr->handle);
	assert_non_null(mr);
	assert_ptr_equal(mr->context, a.context);
	assert_ptr_equal(mr->pd, a.pd);
	assert_null(mr->addr);
	assert_int_equal(mr->lkey, own.mr->lkey);
	assert_int_equal(mr->rkey, own.mr->rkey);
	assert_int_equal(mr->length, own.mr->length);
	a.channel = NULL;
	a.cq = sim_verbs.create_cq(a.context, 64, NULL, NULL, 0);
	pair_connect(&conn);
	pair_fill(&a, 0, 20000, 4);
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, 1, 0, 20000, 0), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_check(&b, 0, 20000, 4);
	assert_int_equal(pair_rdma(&b, IBV_WR_RDMA_READ, 2, 0, 100, 0), 0);
	pair_expect(&b, 2, IBV_WC_SUCCESS);

	/* Who made something with the handle keeps it, and the PD. */
	sim_verbs.unimport_pd(a.pd);
	assert_true(pair_warned("ibv_unimport_pd refused"));
	assert_int_equal(sim_verbs.dealloc_pd(own.pd), EBUSY);
	pair_disconnect();
	assert_int_equal(sim_verbs.destroy_cq(a.cq), 0);
	sim_verbs.unimport_mr(mr);
	sim_verbs.unimport_pd(a.pd);
	assert_int_equal(sim_verbs.close_device(a.context), 0);
	a = own;
}

/* Any handle destroys the object; the others can only be given up. */
static void any_handle_destroys(void **state)
{
	struct ibv_context *context = import(a.context);
	struct ibv_alloc_dm_attr attr = { .length = 64 };

	(void)state;
	for (int by_import = 0; by_import < 2; by_import++) {
		struct ibv_pd *pd = sim_verbs.alloc_pd(a.context);
		struct ibv_pd *its_pd = sim_verbs.import_pd(context, pd->handle);
		struct ibv_dm *dm = ibv_alloc_dm(a.context, &attr);
		struct ibv_dm *its_dm = sim_verbs.import_dm(context, dm->handle);
		struct ibv_mr *mr = sim_verbs.reg_mr(pd, a.buf, 64, (uintptr_t)a.buf, 0);
		struct ibv_mr *its_mr = sim_verbs.import_mr(its_pd, mr->handle);
		struct ibv_mr *more = sim_verbs.import_mr(its_pd, mr->handle);
		uint32_t word = 5, back = 0;

		assert_int_equal(ibv_memcpy_to_dm(dm, 8, &word, 4), 0);
		assert_int_equal(ibv_memcpy_from_dm(&back, its_dm, 8, 4), 0);
		assert_int_equal(back, 5);
		assert_int_equal(sim_verbs.rereg_mr(its_mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
						    0), IBV_REREG_MR_ERR_INPUT);
		assert_int_equal(sim_verbs.dereg_mr(by_import ? its_mr : mr), 0);
		assert_int_equal(sim_verbs.dereg_mr(more), ENOENT);
		assert_true(pair_warned("ibv_dereg_mr refused: it was destroyed through another"));
		assert_null(sim_verbs.import_mr(its_pd, more->handle));
		assert_int_equal(errno, ENOENT);
		sim_verbs.unimport_mr(by_import ? mr : its_mr);
		sim_verbs.unimport_mr(more);

		assert_int_equal(ibv_free_dm(by_import ? its_dm : dm), 0);
		assert_int_equal(ibv_free_dm(by_import ? dm : its_dm), ENOENT);
		assert_int_equal(ibv_memcpy_from_dm(&back, by_import ? dm : its_dm, 8, 4), EFAULT);
		sim_verbs.unimport_dm(by_import ? dm : its_dm);

		assert_int_equal(sim_verbs.dealloc_pd(by_import ? its_pd : pd), 0);
		assert_int_equal(sim_verbs.dealloc_pd(by_import ? pd : its_pd), ENOENT);
		assert_null(sim_verbs.reg_mr(by_import ? pd : its_pd, a.buf, 64, (uintptr_t)a.buf, 0));
		assert_int_equal(errno, EINVAL);
		sim_verbs.unimport_pd(by_import ? pd : its_pd);
	}
	assert_int_equal(sim_verbs.close_device(context), 0);
}

/* Nothing is made with a handle of a PD that is destroyed, so that it can be given up. */
static void a_destroyed_pd_gets_no_objects(void **state)
{
	struct ibv_mr *mr = sim_verbs.reg_mr(a.pd, a.buf, 64, (uintptr_t)a.buf, 0);

	(void)state;
	for (int by_import = 0; by_import < 2; by_import++) {
		struct ibv_pd *pd = sim_verbs.alloc_pd(a.context);
		struct ibv_pd *its_pd = sim_verbs.import_pd(a.context, pd->handle);
		struct ibv_pd *left = by_import ? pd : its_pd;

		assert_int_equal(sim_verbs.dealloc_pd(by_import ? its_pd : pd), 0);
		assert_int_equal(sim_verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, left, NULL, 0, 0),
				 IBV_REREG_MR_ERR_INPUT);
		assert_true(pair_warned("ibv_rereg_mr refused"));
		assert_null(sim_verbs.import_mr(left, mr->handle));
		assert_int_equal(errno, EINVAL);
		assert_true(pair_warned("ibv_import_mr refused"));
		sim_verbs.unimport_pd(left);
	}
	assert_int_equal(sim_verbs.dereg_mr(mr), 0);
}

/* Its own handle given up, an object stays, and can be imported again. */
static void an_object_without_handles_stays(void **state)
{
	struct ibv_pd *pd = sim_verbs.alloc_pd(a.context), *again;
	uint32_t handle = pd->handle;

	(void)state;
	sim_verbs.unimport_pd(pd);
	again = sim_verbs.import_pd(a.context, handle);
	assert_non_null(again);
	assert_int_equal(sim_verbs.dealloc_pd(again), 0);
	assert_null(sim_verbs.import_pd(a.context, handle));
}

static void handles_of_others_are_none(void **state)
{
	struct ibv_context *other = sim_verbs.open_device(a.context->device);
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_dm *dm = ibv_alloc_dm(a.context, &attr);
	struct ibv_pd *pd = sim_verbs.alloc_pd(other);
	struct ibv_td *td = ibv_alloc_td(other, &(struct ibv_td_init_attr){ 0 });
	struct ibv_parent_domain_init_attr parent = { .pd = pd, .td = td };
	struct ibv_pd *with_td = ibv_alloc_parent_domain(other, &parent);

	(void)state;
	assert_null(sim_verbs.import_pd(other, a.pd->handle));
	assert_int_equal(errno, ENOENT);
	assert_true(pair_warned("ibv_import_pd refused: no PD of a context of this descriptor has the"));
	assert_null(sim_verbs.import_pd(other, NO_HANDLE));
	assert_null(sim_verbs.import_mr(pd, a.mr->handle));
	assert_int_equal(errno, ENOENT);
	assert_true(pair_warned("ibv_import_mr refused"));
	assert_null(sim_verbs.import_mr(pd, NO_HANDLE));
	assert_null(sim_verbs.import_dm(other, dm->handle));
	assert_int_equal(errno, ENOENT);
	assert_true(pair_warned("ibv_import_dm refused"));
	/* A parent domain has its PD's handle, and is none of the kernel's objects. */
	sim_verbs.unimport_pd(with_td);
	assert_true(pair_warned("ibv_unimport_pd refused"));
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(sim_verbs.close_device(other), 0);
}

/* What was made through one context outlives it while another of its file is open. */
static void the_last_context_takes_all_along(void **state)
{
	static const struct polycm_sim_counts none;
	struct polycm_sim_counts before, counts;
	struct ibv_context *first = sim_verbs.open_device(a.context->device), *second, *third;
	struct ibv_pd *pd = sim_verbs.alloc_pd(first), *its_pd;
	struct ibv_cq *cq = sim_verbs.create_cq(first, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	(void)state;
	second = import(first);
	assert_non_null(sim_verbs.create_qp(pd, &init));
	assert_non_null(sim_verbs.reg_mr(pd, a.buf, 64, (uintptr_t)a.buf, 0));
	sim_lock();
	sim_nic_counts(&before);
	sim_unlock();
	assert_int_equal(sim_verbs.close_device(first), 0);
	its_pd = sim_verbs.import_pd(second, pd->handle);
	assert_non_null(its_pd);
	assert_non_null(sim_verbs.reg_mr(its_pd, a.buf, 64, (uintptr_t)a.buf, 0));
	/* Events of the first are nobody's. */
	sim_lock();
	sim_nic_port_event(&a.device->ports[0], IBV_EVENT_PORT_ERR);
	sim_nic_counts(&counts);
	sim_unlock();
	assert_int_equal(counts.contexts, before.contexts - 1);
	assert_int_equal(counts.qps, before.qps);
	assert_int_equal(counts.mrs, before.mrs + 1);
	pair_async(&(struct pair_side){ .context = second }, IBV_EVENT_PORT_ERR);
	pair_async(&a, IBV_EVENT_PORT_ERR);
	third = import(second);
	assert_int_equal(sim_verbs.close_device(second), 0);
	assert_int_equal(sim_verbs.close_device(third), 0);
	sim_lock();
	sim_nic_counts(&counts);
	sim_unlock();
	assert_int_equal(counts.qps, none.qps);
	assert_int_equal(counts.mrs, 2);	/* A's and B's */
	assert_int_equal(counts.pds, 2);
}

/* The older context has the handles, and the newer one the objects. */
static void objects_may_be_of_the_newer_context(void **state)
{
	struct ibv_context *older = sim_verbs.open_device(a.context->device), *newer = import(older);
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_pd *pd = sim_verbs.alloc_pd(newer), *its_pd;
	struct ibv_dm *dm = ibv_alloc_dm(newer, &attr), *its_dm;
	struct polycm_sim_counts counts;

	(void)state;
	its_pd = sim_verbs.import_pd(older, pd->handle);
	assert_non_null(its_pd);
	its_dm = sim_verbs.import_dm(older, dm->handle);
	assert_non_null(its_dm);
	assert_non_null(sim_verbs.reg_mr(its_pd, a.buf, 64, (uintptr_t)a.buf, 0));
	assert_non_null(ibv_reg_dm_mr(its_pd, its_dm, 0, 64, IBV_ACCESS_ZERO_BASED));
	assert_non_null(sim_verbs.import_mr(its_pd, sim_verbs.reg_mr(pd, a.buf, 64, (uintptr_t)a.buf,
								      0)->handle));
	assert_int_equal(sim_verbs.close_device(older), 0);
	assert_int_equal(sim_verbs.close_device(newer), 0);
	sim_lock();
	sim_nic_counts(&counts);
	sim_unlock();
	assert_int_equal(counts.dms, 0);
	assert_int_equal(counts.mrs, 2);
	assert_int_equal(counts.pds, 2);
}

#define ROCE(test) cmocka_unit_test_setup_teardown(test, open_roce, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROCE(only_its_descriptor_is_a_devices),
		ROCE(data_goes_through_what_is_imported),
		ROCE(any_handle_destroys),
		ROCE(a_destroyed_pd_gets_no_objects),
		ROCE(an_object_without_handles_stays),
		ROCE(handles_of_others_are_none),
		ROCE(the_last_context_takes_all_along),
		ROCE(objects_may_be_of_the_newer_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
