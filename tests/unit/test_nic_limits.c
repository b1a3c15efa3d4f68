/* SPDX-License-Identifier: BSD-2-Clause */
/* A device has so many objects of each kind, and so large ones. */
#include "config.h"

#include <errno.h>

#include "nic_pair.h"

/* What can be made of a's device, up to MORE of it. */
enum { MORE = 3 };

static void *make_pd(void)
{
	return sim_verbs.alloc_pd(a.context);
}

static int drop_pd(void *pd)
{
	return sim_verbs.dealloc_pd(pd);
}

static void *make_mr(void)
{
	return sim_verbs.reg_mr(a.pd, a.buf, 10, (uintptr_t)a.buf, 0);
}

static int drop_mr(void *mr)
{
	return sim_verbs.dereg_mr(mr);
}

static void *make_cq(void)
{
	return sim_verbs.create_cq(a.context, 1, NULL, NULL, 0);
}

static int drop_cq(void *cq)
{
	return sim_verbs.destroy_cq(cq);
}

static void *make_srq(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1, .max_sge = 1 } };

	return sim_verbs.create_srq(a.pd, &attr);
}

static int drop_srq(void *srq)
{
	return sim_verbs.destroy_srq(srq);
}

static struct ibv_qp_cap cap;

static void *make_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_RC, .cap = cap,
	};

	return sim_verbs.create_qp(a.pd, &attr);
}

static int drop_qp(void *qp)
{
	return sim_verbs.destroy_qp(qp);
}

static void *make_ah(void)
{
	struct ibv_ah_attr attr = { .port_num = 1, .is_global = 1, .grh.sgid_index = 0 };

	attr.grh.dgid = b.device->ports[0].gids[0].gid;
	return sim_verbs.create_ah(a.pd, &attr);
}

static int drop_ah(void *ah)
{
	return sim_verbs.destroy_ah(ah);
}

static const struct kind {
	const char *name;
	size_t limit;			/* where in struct ibv_device_attr */
	int there;			/* of them in a side that nic_pair.c opened */
	void *(*make)(void);
	int (*drop)(void *object);
	bool not_on_iwarp;
} kinds[] = {
	{ "PD", offsetof(struct ibv_device_attr, max_pd), 1, make_pd, drop_pd, false },
	{ "MR", offsetof(struct ibv_device_attr, max_mr), 1, make_mr, drop_mr, false },
	{ "CQ", offsetof(struct ibv_device_attr, max_cq), 1, make_cq, drop_cq, false },
	{ "SRQ", offsetof(struct ibv_device_attr, max_srq), 0, make_srq, drop_srq, false },
	{ "QP", offsetof(struct ibv_device_attr, max_qp), 0, make_qp, drop_qp, false },
	{ "AH", offsetof(struct ibv_device_attr, max_ah), 0, make_ah, drop_ah, true },
};

static void *expect(const struct kind *kind, int err)
{
	void *object;

	errno = 0;
	object = kind->make();
	if (!object != !!err || errno != err)
		fail_msg("%s: %s instead of %s", kind->name, strerror(errno), strerror(err));
	return object;
}

static void the_device_has_so_many(void **state)
{
	/* As rxe, adapters and siw say it. */
	static const int errors[PAIR_TRANSPORTS] = {
		[PAIR_ROCE] = EINVAL, [PAIR_IB] = ENOMEM, [PAIR_IWARP] = ENOMEM,
	};

	(void)state;
	for (enum pair_transport t = 0; t < PAIR_TRANSPORTS; t++) {
		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
			const struct kind *kind = &kinds[k];
			void *objects[MORE];
			int limit = kind->there + MORE;

			if (kind->not_on_iwarp && t == PAIR_IWARP)
				continue;
			pair_open(t);
			memcpy((char *)&a.device->attr + kind->limit, &limit, sizeof(limit));
			for (size_t i = 0; i < MORE; i++)
				objects[i] = expect(kind, 0);
			expect(kind, errors[t]);
			/* One goes, another may come; and the other device has its own. */
			assert_int_equal(kind->drop(objects[0]), 0);
			objects[0] = expect(kind, 0);
			expect(kind, errors[t]);
			assert_int_equal(drop_pd(sim_verbs.alloc_pd(b.context)), 0);
			for (size_t i = 0; i < MORE; i++)
				assert_int_equal(kind->drop(objects[i]), 0);
			pair_close();
		}
	}
}

static void a_removed_device_has_none(void **state)
{
	(void)state;
	for (enum pair_transport t = 0; t < PAIR_TRANSPORTS; t++) {
		pair_open(t);
		a.device->removed = true;
		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
			if (!kinds[k].not_on_iwarp || t != PAIR_IWARP)
				expect(&kinds[k], EIO);
		pair_close();
	}
}

static void objects_are_so_large(void **state)
{
	static const struct {
		struct ibv_qp_cap cap;
		int err;
	} caps[] = {
		{ { .max_send_wr = 10, .max_recv_wr = 10, .max_send_sge = 2, .max_recv_sge = 2 }, 0 },
		{ { .max_send_wr = 11 }, EINVAL },
		{ { .max_recv_wr = 11 }, EINVAL },
		{ { .max_send_sge = 3 }, EINVAL },
		{ { .max_recv_sge = 3 }, EINVAL },
	};

	(void)state;
	for (enum pair_transport t = 0; t < PAIR_TRANSPORTS; t++) {
		struct ibv_cq *cq;

		pair_open(t);
		a.device->attr.max_qp_wr = 10;
		a.device->attr.max_sge = 2;
		a.device->attr.max_cqe = 20;
		for (size_t i = 0; i < ARRAY_SIZE(caps); i++) {
			struct ibv_qp *qp;

			cap = caps[i].cap;
			qp = expect(&kinds[4], caps[i].err);
			if (qp)
				assert_int_equal(sim_verbs.destroy_qp(qp), 0);
		}
		memset(&cap, 0, sizeof(cap));
		errno = 0;
		assert_null(sim_verbs.create_cq(a.context, 21, NULL, NULL, 0));
		assert_int_equal(errno, EINVAL);
		cq = sim_verbs.create_cq(a.context, 20, NULL, NULL, 0);
		assert_non_null(cq);
		assert_int_equal(sim_verbs.resize_cq(cq, 21), EINVAL);
		assert_int_equal(sim_verbs.resize_cq(cq, 1), 0);
		assert_int_equal(sim_verbs.destroy_cq(cq), 0);
		pair_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_device_has_so_many),
		cmocka_unit_test(a_removed_device_has_none),
		cmocka_unit_test(objects_are_so_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
