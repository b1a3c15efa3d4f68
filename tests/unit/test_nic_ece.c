/* SPDX-License-Identifier: BSD-2-Clause */
/* ECE: options of QPs, from the beginning, as set, and as applied when the QP goes on. */
#include "config.h"

#include <errno.h>

#include "providers/soft/nic/device.h"
#include "nic_pair.h"

#define VENDOR 0x02c9u

static struct ibv_ece query(struct ibv_qp *qp)
{
	struct ibv_ece ece = { .comp_mask = 7 };

	assert_int_equal(sim_verbs.query_ece(qp, &ece), 0);
	assert_int_equal(ece.vendor_id, VENDOR);
	assert_int_equal(ece.comp_mask, 0);
	return ece;
}

static int set(struct ibv_qp *qp, uint32_t vendor, uint32_t options, uint32_t comp_mask)
{
	struct ibv_ece ece = { .vendor_id = vendor, .options = options, .comp_mask = comp_mask };

	return sim_verbs.set_ece(qp, &ece);
}

/* What was set counts from the next change of state on. */
static void options_are_applied_by_modifying(void **state)
{
	struct pair_conn conn = pair_defaults();
	uint32_t all;

	(void)state;
	a.qp = pair_qp(&a, &conn);
	b.qp = pair_qp(&b, &conn);
	all = query(a.qp).options;
	assert_int_not_equal(all, 0);
	assert_int_equal(pair_to_init(&a, a.qp, &conn), 0);
	assert_int_equal(query(a.qp).options, all);
	assert_int_equal(set(a.qp, VENDOR, 0xf0000006, 0), 0);
	assert_int_equal(query(a.qp).options, 0);
	/* A call that fails applies nothing. */
	assert_int_equal(pair_to_rts(a.qp, &conn), EINVAL);
	assert_int_equal(query(a.qp).options, 0);
	assert_int_equal(pair_to_rtr(&a, a.qp, &b, b.qp->qp_num, &conn), 0);
	assert_int_equal(query(a.qp).options, 0xf0000006 & all);
	assert_int_equal(pair_to_rts(a.qp, &conn), 0);
	assert_int_equal(query(a.qp).options, 0xf0000006 & all);
	/* Nor does one that ends it. */
	assert_int_equal(set(a.qp, VENDOR, 1, 0), 0);
	assert_int_equal(pair_modify(a.qp, IBV_QPS_ERR), 0);
	assert_int_equal(query(a.qp).options, 0);
}

static void wrong_options_are_refused(void **state)
{
	static const struct {
		uint32_t vendor, comp_mask;	/* vendor: added to the device's */
		bool none;
		int err;
	} cases[] = {
		{ 1, 0, false, EINVAL }, { 0, 1, false, EINVAL }, { 0, 0, true, EOPNOTSUPP },
	};
	struct pair_conn conn = pair_defaults();
	uint32_t all;

	(void)state;
	a.qp = pair_qp(&a, &conn);
	all = query(a.qp).options;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int before = pair_warnings;

		assert_int_equal(set(a.qp, cases[i].none ? 0 : VENDOR + cases[i].vendor, 1,
				     cases[i].comp_mask), cases[i].err);
		assert_int_equal(pair_warnings, before + 1);
		assert_true(pair_warned("ibv_set_ece refused"));
	}
	assert_int_equal(pair_to_init(&a, a.qp, &conn), 0);
	assert_int_equal(query(a.qp).options, all);
}

static void datagrams_have_none(void **state)
{
	struct ibv_qp *qp = pair_ud_qp(&a, 1);

	(void)state;
	assert_int_equal(query(qp).options, 0);
	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
}

/* Neither iWARP cards nor what is like rxe have any. */
static void is_refused(uint32_t vendor)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_ece ece = { 0 };

	a.device->attr.vendor_id = vendor;
	a.qp = pair_qp(&a, &conn);
	assert_int_equal(set(a.qp, vendor, 1, 0), EOPNOTSUPP);
	assert_true(pair_warned("ibv_set_ece refused"));
	assert_int_equal(sim_verbs.query_ece(a.qp, &ece), EOPNOTSUPP);
	assert_true(pair_warned("ibv_query_ece refused"));
}

static void iwarp_has_none(void **state)
{
	(void)state;
	pair_open(PAIR_IWARP);
	is_refused(VENDOR);
	pair_close();
}

static void devices_of_software_have_none(void **state)
{
	(void)state;
	is_refused(NIC_SOFTWARE_VENDOR);
}

static int open_card(void **state)
{
	int err = open_roce(state);

	a.device->attr.vendor_id = VENDOR;
	return err;
}

#define ROCE(test) cmocka_unit_test_setup_teardown(test, open_card, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROCE(options_are_applied_by_modifying),
		ROCE(wrong_options_are_refused),
		ROCE(datagrams_have_none),
		ROCE(devices_of_software_have_none),
		cmocka_unit_test(iwarp_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
