/* SPDX-License-Identifier: BSD-2-Clause */
/* test_sim_limits.c - polycm_sim_device_limit(): how much of everything a device has. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "steps.h"

struct objects {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_ah_attr ah;
	char memory[64];
};

static void *make_pd(struct objects *o)
{
	return ibv_alloc_pd(o->verbs);
}

static void *make_cq(struct objects *o)
{
	return ibv_create_cq(o->verbs, 1, NULL, NULL, 0);
}

static void *make_mr(struct objects *o)
{
	return ibv_reg_mr(o->pd, o->memory, sizeof(o->memory), IBV_ACCESS_LOCAL_WRITE);
}

static void *make_srq(struct objects *o)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1, .max_sge = 1 } };

	return ibv_create_srq(o->pd, &attr);
}

static void *make_qp(struct objects *o)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = o->cq, .recv_cq = o->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	return ibv_create_qp(o->pd, &attr);
}

static void *make_ah(struct objects *o)
{
	return ibv_create_ah(o->pd, &o->ah);
}

static int end_pd(void *pd) { return ibv_dealloc_pd(pd); }
static int end_cq(void *cq) { return ibv_destroy_cq(cq); }
static int end_mr(void *mr) { return ibv_dereg_mr(mr); }
static int end_srq(void *srq) { return ibv_destroy_srq(srq); }
static int end_qp(void *qp) { return ibv_destroy_qp(qp); }
static int end_ah(void *ah) { return ibv_destroy_ah(ah); }

/* So many of each fit beside the test's own PD and CQ. */
static const struct {
	const char *name;
	unsigned int limit, fit;
	void *(*make)(struct objects *o);
	int (*end)(void *object);
} limited[] = {
	{ "PD", 3, 2, make_pd, end_pd },
	{ "CQ", 4, 3, make_cq, end_cq },
	{ "MR", 2, 2, make_mr, end_mr },
	{ "SRQ", 1, 1, make_srq, end_srq },
	{ "QP", 3, 3, make_qp, end_qp },
	{ "AH", 2, 2, make_ah, end_ah },
};

static const struct polycm_sim_limits low = {
	.size = sizeof(low), .max_qp = 3, .max_cq = 4, .max_cqe = 100, .max_mr = 2, .max_pd = 3,
	.max_srq = 1, .max_ah = 2, .max_qp_wr = 50, .max_sge = 4, .max_responder_resources = 200,
	.max_initiator_depth = 100,
};

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *verbs = NULL;

	assert_non_null(list);
	for (unsigned int i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			verbs = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	assert_non_null(verbs);
	return verbs;
}

static void check_limit(struct objects *o, unsigned int limit, unsigned int fit,
			void *(*make)(struct objects *o), int (*end)(void *object))
{
	void *made[8];

	assert_true(fit <= limit && limit <= ARRAY_LEN(made));
	for (unsigned int i = 0; i < fit; i++) {
		made[i] = make(o);
		assert_non_null(made[i]);
	}
	errno = 0;
	assert_null(make(o));
	assert_int_equal(errno, ENOMEM);
	/* One that goes makes room. */
	assert_int_equal(end(made[0]), 0);
	made[0] = make(o);
	assert_non_null(made[0]);
	for (unsigned int i = 0; i < fit; i++)
		assert_int_equal(end(made[i]), 0);
}

static void check_attr(struct ibv_context *verbs)
{
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(verbs, &attr), 0);
	assert_int_equal(attr.max_qp, low.max_qp);
	assert_int_equal(attr.max_cq, low.max_cq);
	assert_int_equal(attr.max_cqe, low.max_cqe);
	assert_int_equal(attr.max_mr, low.max_mr);
	assert_int_equal(attr.max_pd, low.max_pd);
	assert_int_equal(attr.max_srq, low.max_srq);
	assert_int_equal(attr.max_ah, low.max_ah);
	assert_int_equal(attr.max_qp_wr, low.max_qp_wr);
	assert_int_equal(attr.max_sge, low.max_sge);
	assert_int_equal(attr.max_qp_rd_atom, low.max_responder_resources);
	assert_int_equal(attr.max_qp_init_rd_atom, low.max_initiator_depth);
}

static void limits_are_shown_and_kept(void **state)
{
	struct polycm_sim_limits small = { .size = offsetof(struct polycm_sim_limits, max_cq),
					   .max_qp = 3, .max_cq = 1 };
	struct polycm_sim_device *device;
	struct polycm_sim_node *node;
	struct ibv_device_attr attr;
	struct objects o = { .ah = { .dlid = 1, .port_num = 1 } };

	(void)state;
	assert_int_equal(polycm_sim_create(1), 0);
	assert_int_equal(polycm_sim_node_add("a", "ib", "10.0.0.1/24", &node), 0);
	assert_int_equal(polycm_sim_device_find(node, NULL, &device), 0);
	/* A struct of an older header; what is set later replaces what was set. */
	assert_int_equal(polycm_sim_device_limit(device, &small), 0);
	small.size = 0;
	assert_errno(polycm_sim_device_limit(device, &small), EINVAL);
	assert_errno(polycm_sim_device_limit(device, NULL), EINVAL);
	assert_int_equal(polycm_sim_device_limit(device, &low), 0);

	o.verbs = open_device("sim0");
	assert_errno(polycm_sim_device_limit(device, &low), EBUSY);
	check_attr(o.verbs);
	o.pd = ibv_alloc_pd(o.verbs);
	assert_non_null(o.pd);
	o.cq = ibv_create_cq(o.verbs, 1, NULL, NULL, 0);
	assert_non_null(o.cq);
	for (size_t i = 0; i < ARRAY_LEN(limited); i++) {
		print_message("%s\n", limited[i].name);
		check_limit(&o, limited[i].limit, limited[i].fit, limited[i].make, limited[i].end);
	}
	assert_int_equal(ibv_destroy_cq(o.cq), 0);
	assert_int_equal(ibv_dealloc_pd(o.pd), 0);
	assert_int_equal(ibv_close_device(o.verbs), 0);

	/* Closed again, it may have all that it can do. */
	small.size = sizeof(small);
	small.max_qp = small.max_cq = 0;
	assert_int_equal(polycm_sim_device_limit(device, &small), 0);
	o.verbs = open_device("sim0");
	assert_int_equal(ibv_query_device(o.verbs, &attr), 0);
	assert_true(attr.max_qp > 1000);
	assert_true(attr.max_cq > 1000);
	assert_int_equal(ibv_close_device(o.verbs), 0);
	assert_int_equal(polycm_sim_destroy(), 0);
}

/* One device's limit is not the other's. */
static void limits_are_of_one_device(void **state)
{
	const struct polycm_sim_limits one_qp = { .size = sizeof(one_qp), .max_qp = 1 };
	struct polycm_sim_node *node;
	struct objects a = { .verbs = NULL }, b = { .verbs = NULL };
	struct ibv_qp *first, *second, *third;

	(void)state;
	assert_int_equal(polycm_sim_create(1), 0);
	assert_int_equal(polycm_sim_node_add("a", "roce", "10.0.0.1/24", &node), 0);
	assert_int_equal(polycm_sim_device_add(node, "roce", "10.0.1.1/24", &one_qp, NULL), 0);
	a.verbs = open_device("sim0");
	b.verbs = open_device("sim1");
	a.pd = ibv_alloc_pd(a.verbs);
	b.pd = ibv_alloc_pd(b.verbs);
	a.cq = ibv_create_cq(a.verbs, 1, NULL, NULL, 0);
	b.cq = ibv_create_cq(b.verbs, 1, NULL, NULL, 0);
	first = make_qp(&a);
	second = make_qp(&a);
	third = make_qp(&b);
	assert_true(first && second && third);
	errno = 0;
	assert_null(make_qp(&b));
	assert_int_equal(errno, EINVAL);	/* as rxe says it */
	assert_int_equal(ibv_destroy_qp(first), 0);
	assert_int_equal(ibv_destroy_qp(second), 0);
	assert_int_equal(ibv_destroy_qp(third), 0);
	assert_int_equal(ibv_destroy_cq(a.cq) | ibv_destroy_cq(b.cq), 0);
	assert_int_equal(ibv_dealloc_pd(a.pd) | ibv_dealloc_pd(b.pd), 0);
	assert_int_equal(ibv_close_device(a.verbs) | ibv_close_device(b.verbs), 0);
	assert_int_equal(polycm_sim_destroy(), 0);
}

/* ------------------------------------------------------------------------
 * Devices that look like others.
 */

struct card {
	const char *name;		/* as in the file; the last two are of one file */
	const char *shown;		/* as programs see it */
	int max_qp_wr, max_sge, max_cqe, vectors;
};

static const struct card cards[] = {
	{ "card_0", "card_0", 100, 5, 200, 7 },
	{ "other0", "other0", 300, 2, 50, 1 },
	{ "card_0", "card_1", 100, 5, 200, 7 },
};

static void write_card(FILE *file, const struct card *card)
{
	fprintf(file, "hca_id: %s\ntransport: InfiniBand (0)\nfw_ver: 1.2.%d\nphys_port_cnt: 1\n"
		"max_mr_size: 0x1000\nmax_qp: 9\nmax_qp_wr: %d\nmax_sge: %d\nmax_cq: 9\n"
		"max_cqe: %d\nmax_mr: 9\nmax_pd: 1\nnum_comp_vectors: %d\nport: 1\n"
		"max_mtu: 2048 (4)\nactive_mtu: 1024 (3)\nlink_layer: Ethernet\n"
		"active_width: 2X (16)\nactive_speed: 50.0 Gbps (64)\n",
		card->name, card->max_sge, card->max_qp_wr, card->max_sge, card->max_cqe,
		card->vectors);
}

/* A scenario with the three devices, in a folder that is removed again. */
static void load_cards(void)
{
	char folder[] = "/tmp/polycm-cards.XXXXXX", path[100], scenario[100];
	FILE *file, *all;

	assert_non_null(mkdtemp(folder));
	snprintf(scenario, sizeof(scenario), "%s/scenario", folder);
	all = fopen(scenario, "we");
	assert_non_null(all);
	fputs("nodes = ( { name = \"a\"; devices = (", all);
	for (size_t i = 0; i < ARRAY_LEN(cards); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, cards[i].name);
		file = fopen(path, "we");
		assert_non_null(file);
		write_card(file, &cards[i]);
		assert_int_equal(fclose(file), 0);
		fprintf(all, "%s{ device = \"%s\"; addresses = \"10.0.%zu.1/24\"; }", i ? "," : "", path,
			i);
	}
	fputs("); } );\n", all);
	assert_int_equal(fclose(all), 0);
	assert_int_equal(polycm_sim_load(scenario), 0);
	for (size_t i = 0; i < ARRAY_LEN(cards); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, cards[i].name);
		(void)unlink(path);
	}
	assert_int_equal(unlink(scenario) | rmdir(folder), 0);
}

static bool makes_cq(struct objects *on, int cqe, int vector)
{
	struct ibv_cq *cq = ibv_create_cq(on->verbs, cqe, NULL, NULL, vector);

	return cq && !ibv_destroy_cq(cq);
}

static bool makes_qp(struct objects *on, int max_wr, int max_sge)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = on->cq,
		.recv_cq = on->cq,
		.cap = { (uint32_t)max_wr, 1, (uint32_t)max_sge, 1, 0 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(on->pd, &attr);

	return qp && !ibv_destroy_qp(qp);
}

static bool registers(struct objects *on, size_t len)
{
	static char memory[0x1001];
	struct ibv_mr *mr = ibv_reg_mr(on->pd, memory, len, 0);

	return mr && !ibv_dereg_mr(mr);
}

static void check_card(const struct card *card)
{
	struct objects on = { .verbs = open_device(card->shown) };
	struct ibv_device_attr attr;
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_device(on.verbs, &attr), 0);
	assert_int_equal(attr.max_sge, card->max_sge);
	assert_int_equal(attr.max_cqe, card->max_cqe);
	assert_int_equal(ibv_query_port(on.verbs, 1, &port), 0);
	assert_int_equal(port.max_mtu, IBV_MTU_2048);
	assert_int_equal(port.active_speed, 64);
	assert_int_equal(on.verbs->num_comp_vectors, card->vectors);

	on.pd = ibv_alloc_pd(on.verbs);
	assert_non_null(on.pd);
	assert_null(ibv_alloc_pd(on.verbs));
	assert_true(makes_cq(&on, card->max_cqe, card->vectors - 1));
	assert_false(makes_cq(&on, card->max_cqe + 1, 0));
	assert_false(makes_cq(&on, 1, card->vectors));
	on.cq = ibv_create_cq(on.verbs, 1, NULL, NULL, 0);
	assert_true(makes_qp(&on, card->max_qp_wr, card->max_sge));
	assert_false(makes_qp(&on, card->max_qp_wr + 1, 1));
	assert_false(makes_qp(&on, 1, card->max_sge + 1));
	assert_true(registers(&on, 0x1000));
	assert_false(registers(&on, 0x1001));
	assert_int_equal(ibv_destroy_cq(on.cq) | ibv_dealloc_pd(on.pd), 0);
	assert_int_equal(ibv_close_device(on.verbs), 0);
}

static void devices_look_like_others(void **state)
{
	(void)state;
	load_cards();
	for (size_t i = 0; i < ARRAY_LEN(cards); i++)
		check_card(&cards[i]);
	assert_int_equal(polycm_sim_destroy(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_are_shown_and_kept),
		cmocka_unit_test(limits_are_of_one_device),
		cmocka_unit_test(devices_look_like_others),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
