/* SPDX-License-Identifier: BSD-2-Clause */
/* test_devices.c - the lists of devices, and what libibverbs' calls say of simulated ones. */
#include "config.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "steps.h"

static const struct kind {
	enum ibv_node_type node_type;
	enum ibv_transport_type transport_type;
	uint8_t link_layer;
} kinds[NUM_TRANSPORTS] = {
	[ROCE] = { IBV_NODE_CA, IBV_TRANSPORT_IB, IBV_LINK_LAYER_ETHERNET },
	[IB] = { IBV_NODE_CA, IBV_TRANSPORT_IB, IBV_LINK_LAYER_INFINIBAND },
	[IWARP] = { IBV_NODE_RNIC, IBV_TRANSPORT_IWARP, IBV_LINK_LAYER_ETHERNET },
};

/* One context for each device, the same ones that ids have. */
static void rdma_get_devices_gives_the_ids_contexts(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_context **list, **again;
		struct pair pair;
		int num = -1;

		pair_open(&pair, t, RDMA_PS_TCP);
		list = rdma_get_devices(&num);
		assert_non_null(list);
		assert_int_equal(num, 2);
		assert_non_null(list[0]);
		assert_non_null(list[1]);
		assert_null(list[2]);
		assert_ptr_not_equal(list[0], list[1]);
		again = rdma_get_devices(NULL);
		assert_non_null(again);
		assert_ptr_not_equal(again, list);
		assert_ptr_equal(again[0], list[0]);
		assert_ptr_equal(again[1], list[1]);
		rdma_free_devices(again);

		pair_resolve(&pair);
		assert_true(pair.client->verbs == list[0] || pair.client->verbs == list[1]);
		assert_true(pair.listener->verbs == list[0] || pair.listener->verbs == list[1]);
		assert_ptr_not_equal(pair.client->verbs, pair.listener->verbs);
		assert_ptr_equal(pair.client->pd->context, pair.client->verbs);
		rdma_free_devices(list);
		pair_close(&pair);
	}
}

/* The next id opens another, and the end of the network closes no context twice. */
static void a_program_may_close_the_ids_context(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct sockaddr_in from = pair_address(CLIENT_ADDRESS, 0);
		struct polycm_sim_node *nodes[2];

		pair_open_nodes(t, &nodes[0], &nodes[1]);
		for (int round = 0; round < 2; round++) {
			struct ibv_context **list = rdma_get_devices(NULL);
			struct ibv_device_attr attr;
			struct rdma_cm_id *id;

			assert_non_null(list);
			assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
			assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&from), 0);
			assert_true(id->verbs == list[0] || id->verbs == list[1]);
			assert_ptr_equal(id->pd->context, id->verbs);
			assert_int_equal(ibv_query_device(id->verbs, &attr), 0);
			assert_int_equal(rdma_destroy_id(id), 0);
			assert_int_equal(ibv_close_device(list[0]), 0);
			assert_int_equal(ibv_close_device(list[1]), 0);
			rdma_free_devices(list);
		}
		assert_int_equal(polycm_sim_destroy(), 0);
	}
}

static void importing_a_device(void **state)
{
	struct ibv_context *context, *imported;
	struct ibv_device **list;
	struct ibv_pd *pd, *its_pd;
	struct ibv_mr *mr, *its_mr;
	struct pair pair;
	char memory[64];
	int fds[2], null;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	list = ibv_get_device_list(NULL);
	context = ibv_open_device(list[1]);
	assert_int_equal(pipe(fds), 0);
	assert_null(ibv_import_device(fds[0]));
	assert_int_equal(errno, EINVAL);
	/* As a device of libibverbs has it. */
	null = open("/dev/null", O_RDONLY);
	assert_null(ibv_import_device(null));
	assert_int_equal(errno, EINVAL);

	pd = ibv_alloc_pd(context);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), 0);
	imported = ibv_import_device(dup(context->cmd_fd));
	assert_non_null(imported);
	assert_ptr_equal(imported->device, list[1]);
	its_pd = ibv_import_pd(imported, pd->handle);
	its_mr = ibv_import_mr(its_pd, mr->handle);
	assert_non_null(its_mr);
	assert_int_equal(its_mr->lkey, mr->lkey);
	ibv_unimport_mr(its_mr);
	ibv_unimport_pd(its_pd);
	assert_int_equal(ibv_close_device(imported), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
	ibv_free_device_list(list);
	close(null);
	close(fds[0]);
	close(fds[1]);
	pair_close(&pair);
}

static void the_list_of_libibverbs_has_them(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_device **list;
		struct ibv_context *verbs;
		unsigned int ours = 0;
		struct pair pair;
		int num = -1;

		pair_open(&pair, t, RDMA_PS_TCP);
		list = ibv_get_device_list(&num);
		assert_non_null(list);
		assert_true(num >= 2);
		assert_null(list[num]);
		for (int i = 0; i < num; i++) {
			if (strncmp(ibv_get_device_name(list[i]), "sim", 3))
				continue;
			ours++;
			assert_int_equal(list[i]->node_type, kinds[t].node_type);
			assert_int_equal(list[i]->transport_type, kinds[t].transport_type);
			assert_true(ibv_get_device_guid(list[i]) != 0);
			verbs = ibv_open_device(list[i]);
			assert_non_null(verbs);
			assert_ptr_equal(verbs->device, list[i]);
			assert_true(verbs->num_comp_vectors > 0);
			assert_int_equal(ibv_close_device(verbs), 0);
		}
		assert_int_equal(ours, 2);
		ibv_free_device_list(list);
		pair_close(&pair);
	}
}

static void devices_have_limits(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_device_attr attr;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		assert_int_equal(ibv_query_device(pair.client->verbs, &attr), 0);
		assert_int_equal(attr.phys_port_cnt, 1);
		assert_true(attr.max_qp_rd_atom > 0 && attr.max_qp_rd_atom < 255);
		assert_true(attr.max_qp_init_rd_atom > 0 && attr.max_qp_init_rd_atom < 255);
		assert_true(attr.max_qp > 0 && attr.max_qp_wr > 0 && attr.max_sge > 1);
		assert_true(attr.max_cq > 0 && attr.max_cqe > 0 && attr.max_mr > 0);
		assert_true(attr.node_guid == ibv_get_device_guid(pair.client->verbs->device));
		assert_int_equal(attr.atomic_cap, t == IWARP ? IBV_ATOMIC_NONE : IBV_ATOMIC_HCA);
		pair_close(&pair);
	}
}

static void ports_are_up(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_port_attr attr;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		assert_int_equal(ibv_query_port(pair.client->verbs, 1, &attr), 0);
		assert_int_equal(attr.state, IBV_PORT_ACTIVE);
		assert_int_equal(attr.link_layer, kinds[t].link_layer);
		assert_int_equal(attr.max_mtu, IBV_MTU_4096);
		/* RoCE: what an Ethernet MTU of 1500 leaves. */
		assert_int_equal(attr.active_mtu, t == IB ? IBV_MTU_4096 : IBV_MTU_1024);
		assert_true(attr.gid_tbl_len > 0);
		assert_int_equal(attr.lid != 0, t == IB);
		assert_int_not_equal(ibv_query_port(pair.client->verbs, 0, &attr), 0);
		assert_int_not_equal(ibv_query_port(pair.client->verbs, 2, &attr), 0);
		pair_close(&pair);
	}
}

/* On RoCE each address is a GID. */
static void addresses_are_gids(void **state)
{
	const uint8_t want[16] = { [10] = 0xff, 0xff, 10, 0, 0, 2 };
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	bool found = false;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	pair_resolve(&pair);
	assert_memory_equal(&pair.client->route.addr.addr.ibaddr.sgid, want, 16);
	for (int i = 0; i < 16 && !found; i++) {
		if (ibv_query_gid(pair.client->verbs, 1, i, &gid) || memcmp(&gid, want, 16))
			continue;
		assert_int_equal(ibv_query_gid_ex(pair.client->verbs, 1, (uint32_t)i, &entry, 0), 0);
		assert_memory_equal(&entry.gid, want, 16);
		found = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
	}
	assert_true(found);
	assert_int_not_equal(ibv_query_gid(pair.client->verbs, 1, -1, &gid), 0);
	assert_int_not_equal(ibv_query_gid(pair.client->verbs, 1, 100000, &gid), 0);
	pair_close(&pair);
}

static void keys_of_partitions(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct pair pair;
		__be16 pkey = 0;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		assert_int_equal(ibv_query_pkey(pair.client->verbs, 1, 0, &pkey), 0);
		assert_int_equal(pkey, 0xffff);
		assert_int_equal(ibv_get_pkey_index(pair.client->verbs, 1, 0xffff), 0);
		/* Ethernet has none there, though its paths do. */
		assert_int_equal(pair.client->route.addr.addr.ibaddr.pkey, t == IB ? 0xffff : 0);
		pair_close(&pair);
	}
}

/* A node that comes later shows in the next list. */
static void devices_come_later(void **state)
{
	struct polycm_sim_node *third;
	struct ibv_context **list;
	struct pair pair;
	int num;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	list = rdma_get_devices(&num);
	assert_non_null(list);
	assert_int_equal(num, 2);
	rdma_free_devices(list);
	assert_int_equal(polycm_sim_node_add("third", "ib", "10.0.0.3/24", &third), 0);
	list = rdma_get_devices(&num);
	assert_non_null(list);
	assert_int_equal(num, 3);
	rdma_free_devices(list);
	pair_close(&pair);
}

/* Two transports on one fabric do not reach each other. */
static void transports_do_not_mix(void **state)
{
	struct polycm_sim_node *third;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(polycm_sim_node_add("third", "ib", "10.0.0.3/24", &third), 0);
	assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa("10.0.0.3", 1), 100), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	pair_close(&pair);
}

/* Programs look for the character device before they use what libibverbs lists. */
static void each_has_a_node_in_dev(void **state)
{
	struct ibv_device **list;
	char path[sizeof("/dev/infiniband/") + sizeof(list[0]->dev_name)];
	struct pair pair;
	struct stat st;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	list = ibv_get_device_list(NULL);
	assert_non_null(list);
	assert_non_null(list[0]);
	snprintf(path, sizeof(path), "/dev/infiniband/%s", list[0]->dev_name);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(access(path, R_OK | W_OK), 0);
	assert_int_equal(access(path, X_OK), -1);
	assert_int_equal(errno, EACCES);
	ibv_free_device_list(list);
	pair_close(&pair);

	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(access("/dev/null", R_OK), 0);
	assert_int_equal(access("/dev/infiniband/uverbs-", F_OK), -1);
	assert_int_equal(errno, ENOENT);
}

/* Not sanitizers' business: access(getenv("NAME"), F_OK) is an error of the kernel's. */
#ifndef POLYCM_SANITIZED
static void what_is_no_path_is_the_kernels_to_refuse(void **state)
{
	int (*volatile look)(const char *path, struct stat *st) = stat;
	int (*volatile may)(const char *path, int mode) = access;
	const char *none[] = { NULL, (const char *)1 };
	struct stat st;

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_int_equal(look(none[i], &st), -1);
		assert_int_equal(errno, EFAULT);
		assert_int_equal(may(none[i], F_OK), -1);
		assert_int_equal(errno, EFAULT);
	}
}

/* Programs that were built with a C library before 2.33 say which struct stat they have. */
static void stat_of_old_programs(void **state)
{
	static const char *const names[] = { "__xstat", "__xstat64" };
	int (*look)(int version, const char *path, struct stat *st);
	struct stat st;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		*(void **)(void *)&look = dlsym(RTLD_DEFAULT, names[i]);
		if (!look)
			continue;
		assert_int_equal(look(0, "/dev/null", &st), 0);
		assert_true(S_ISCHR(st.st_mode));
		assert_int_equal(look(99, "/dev/null", &st), -1);
		assert_int_equal(errno, EINVAL);
	}
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rdma_get_devices_gives_the_ids_contexts),
		cmocka_unit_test(a_program_may_close_the_ids_context),
		cmocka_unit_test(importing_a_device),
		cmocka_unit_test(the_list_of_libibverbs_has_them),
		cmocka_unit_test(devices_have_limits),
		cmocka_unit_test(ports_are_up),
		cmocka_unit_test(addresses_are_gids),
		cmocka_unit_test(keys_of_partitions),
		cmocka_unit_test(devices_come_later),
		cmocka_unit_test(transports_do_not_mix),
		cmocka_unit_test(each_has_a_node_in_dev),
#ifndef POLYCM_SANITIZED
		cmocka_unit_test(what_is_no_path_is_the_kernels_to_refuse),
		cmocka_unit_test(stat_of_old_programs),
#endif
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
