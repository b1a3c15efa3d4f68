/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_getaddrinfo(): what becomes of hints, and addresses as text.  Nothing
 * here needs a name server.
 */
#include "cm_fake.h"

#include <endian.h>
#include <netdb.h>

#include "core/base/addr.h"

struct lookup {
	const char *node, *service;
	bool hinted;
	struct rdma_addrinfo hints;
	int ret, error;			/* errno, if ret is -1 */
	struct rdma_addrinfo want;	/* the numbers */
	const char *src, *dst;
};

static const struct lookup lookups[] = {
	/* The C library's first answer decides. */
	{ .node = "10.0.0.2", .service = "7471",
	  .want = { .ai_family = AF_INET, .ai_qp_type = IBV_QPT_RC, .ai_port_space = RDMA_PS_TCP },
	  .src = "-", .dst = "10.0.0.2:7471" },
	{ .node = "fd00::2", .service = "7471",
	  .want = { .ai_family = AF_INET6, .ai_qp_type = IBV_QPT_RC, .ai_port_space = RDMA_PS_TCP },
	  .src = "-", .dst = "[fd00::2]:7471" },
	{ .node = "10.0.0.2",
	  .want = { .ai_family = AF_INET, .ai_qp_type = IBV_QPT_RC, .ai_port_space = RDMA_PS_TCP },
	  .src = "-", .dst = "10.0.0.2:0" },
	{ .node = "10.0.0.2", .service = "1", .hinted = true,
	  .hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = RAI_NUMERICHOST },
	  .want = { .ai_family = AF_INET, .ai_qp_type = IBV_QPT_RC,
		    .ai_port_space = RDMA_PS_TCP },
	  .src = "-", .dst = "10.0.0.2:1" },
	{ .node = "10.0.0.2", .service = "1", .hinted = true,
	  .hints = { .ai_port_space = RDMA_PS_UDP },
	  .want = { .ai_family = AF_INET, .ai_qp_type = IBV_QPT_UD, .ai_port_space = RDMA_PS_UDP },
	  .src = "-", .dst = "10.0.0.2:1" },
	{ .node = "10.0.0.2", .service = "1", .hinted = true, .hints = { .ai_qp_type = IBV_QPT_UD },
	  .want = { .ai_family = AF_INET, .ai_qp_type = IBV_QPT_UD, .ai_port_space = RDMA_PS_UDP },
	  .src = "-", .dst = "10.0.0.2:1" },
	{ .node = "10.0.0.2", .service = "1", .hinted = true,
	  .hints = { .ai_qp_type = IBV_QPT_UC, .ai_port_space = RDMA_PS_IB },
	  .want = { .ai_family = AF_INET, .ai_qp_type = IBV_QPT_UC, .ai_port_space = RDMA_PS_IB },
	  .src = "-", .dst = "10.0.0.2:1" },
	{ .node = "10.0.0.2", .service = "1", .hinted = true,
	  .hints = { .ai_qp_type = IBV_QPT_UD, .ai_port_space = RDMA_PS_IB },
	  .want = { .ai_family = AF_INET, .ai_qp_type = IBV_QPT_UD, .ai_port_space = RDMA_PS_IB },
	  .src = "-", .dst = "10.0.0.2:1" },
	{ .node = "10.0.0.2", .service = "1", .hinted = true,
	  .hints = { .ai_qp_type = IBV_QPT_XRC_SEND, .ai_port_space = RDMA_PS_IB },
	  .want = { .ai_family = AF_INET, .ai_qp_type = IBV_QPT_XRC_SEND,
		    .ai_port_space = RDMA_PS_IB },
	  .src = "-", .dst = "10.0.0.2:1" },
	/* The passive side: the address is its own. */
	{ .service = "7471", .hinted = true,
	  .hints = { .ai_flags = RAI_PASSIVE, .ai_family = AF_INET, .ai_port_space = RDMA_PS_TCP },
	  .want = { .ai_flags = RAI_PASSIVE, .ai_family = AF_INET, .ai_qp_type = IBV_QPT_RC,
		    .ai_port_space = RDMA_PS_TCP },
	  .src = "0.0.0.0:7471", .dst = "-" },
	{ .node = "10.0.0.1", .service = "7471", .hinted = true,
	  .hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP },
	  .want = { .ai_flags = RAI_PASSIVE, .ai_family = AF_INET, .ai_qp_type = IBV_QPT_RC,
		    .ai_port_space = RDMA_PS_TCP },
	  .src = "10.0.0.1:7471", .dst = "-" },
	{ .service = "7471", .hinted = true,
	  .hints = { .ai_flags = RAI_PASSIVE, .ai_family = AF_INET6, .ai_port_space = RDMA_PS_UDP },
	  .want = { .ai_flags = RAI_PASSIVE, .ai_family = AF_INET6, .ai_qp_type = IBV_QPT_UD,
		    .ai_port_space = RDMA_PS_UDP },
	  .src = "[::]:7471", .dst = "-" },
	/* A GID. */
	{ .node = "fe80::2", .service = "7471", .hinted = true,
	  .hints = { .ai_flags = RAI_FAMILY | RAI_NUMERICHOST, .ai_family = AF_IB,
		     .ai_port_space = RDMA_PS_IB, .ai_qp_type = IBV_QPT_RC },
	  .want = { .ai_family = AF_IB, .ai_port_space = RDMA_PS_IB, .ai_qp_type = IBV_QPT_RC },
	  .src = "-", .dst = "gid fe80::2 service 00000000013f1d2f" },
	{ .node = "fe80::2", .service = "7471", .hinted = true,
	  .hints = { .ai_flags = RAI_FAMILY | RAI_NUMERICHOST | RAI_PASSIVE, .ai_family = AF_IB,
		     .ai_port_space = RDMA_PS_UDP },
	  .want = { .ai_flags = RAI_PASSIVE, .ai_family = AF_IB,
		    .ai_port_space = RDMA_PS_UDP, .ai_qp_type = IBV_QPT_UD },
	  .src = "gid fe80::2 service 0000000001111d2f", .dst = "-" },
	/* Nothing to look up. */
	{ .hinted = true, .hints = { .ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC },
	  .want = { .ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC },
	  .src = "-", .dst = "-" },
	{ .ret = -1, .error = EINVAL },
	/* What getaddrinfo() says is handed on. */
	{ .node = "10.0.0.2", .hinted = true, .hints = { .ai_family = 99 }, .ret = EAI_FAMILY },
	{ .node = "no address", .service = "1", .hinted = true,
	  .hints = { .ai_flags = RAI_NUMERICHOST, .ai_port_space = RDMA_PS_TCP },
	  .ret = EAI_NONAME },
	{ .node = "10.0.0.2", .service = "1", .hinted = true,
	  .hints = { .ai_qp_type = IBV_QPT_UD, .ai_port_space = RDMA_PS_TCP },
	  .ret = EAI_SOCKTYPE },
};

static void check_text(const struct sockaddr *addr, socklen_t len, const char *want)
{
	char text[POLYCM_ADDR_TEXT];

	assert_string_equal(polycm_addr_text(addr, text), want);
	assert_int_equal(len, polycm_addr_len(addr));
}

static void hints_decide(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lookups); i++) {
		const struct lookup *l = &lookups[i];
		struct rdma_addrinfo *res = NULL;

		print_message("case %zu\n", i);
		errno = 0;
		assert_int_equal(rdma_getaddrinfo(l->node, l->service, l->hinted ? &l->hints : NULL,
						  &res), l->ret);
		if (l->ret) {
			if (l->ret == -1)
				assert_int_equal(errno, l->error);
			assert_null(res);
			continue;
		}
		assert_int_equal(res->ai_flags, l->want.ai_flags);
		assert_int_equal(res->ai_family, l->want.ai_family);
		assert_int_equal(res->ai_qp_type, l->want.ai_qp_type);
		assert_int_equal(res->ai_port_space, l->want.ai_port_space);
		check_text(res->ai_src_addr, res->ai_src_len, l->src);
		check_text(res->ai_dst_addr, res->ai_dst_len, l->dst);
		assert_null(res->ai_next);
		assert_null(res->ai_route);
		assert_int_equal(res->ai_route_len, 0);
		assert_int_equal(res->ai_connect_len, 0);
		rdma_freeaddrinfo(res);
	}
	assert_errno(rdma_getaddrinfo("10.0.0.1", NULL, NULL, NULL), EINVAL);
}

static void hinted_addresses_are_copied(void **state)
{
	struct rdma_addrinfo hints = {
		.ai_port_space = RDMA_PS_TCP,
		.ai_src_addr = addr4("10.0.0.1", 5), .ai_src_len = sizeof(struct sockaddr_in),
		.ai_dst_addr = addr4("10.0.0.3", 6), .ai_dst_len = sizeof(struct sockaddr_in),
	};
	struct rdma_addrinfo *res;

	(void)state;
	assert_int_equal(rdma_getaddrinfo("10.0.0.2", "1", &hints, &res), 0);
	check_text(res->ai_src_addr, res->ai_src_len, "10.0.0.1:5");
	check_text(res->ai_dst_addr, res->ai_dst_len, "10.0.0.2:1");
	assert_ptr_not_equal(res->ai_src_addr, hints.ai_src_addr);
	rdma_freeaddrinfo(res);

	assert_int_equal(rdma_getaddrinfo(NULL, NULL, &hints, &res), 0);
	check_text(res->ai_src_addr, res->ai_src_len, "10.0.0.1:5");
	check_text(res->ai_dst_addr, res->ai_dst_len, "10.0.0.3:6");
	rdma_freeaddrinfo(res);

	/* Found is more than hinted. */
	hints.ai_flags = RAI_PASSIVE;
	assert_int_equal(rdma_getaddrinfo("10.0.0.2", "1", &hints, &res), 0);
	check_text(res->ai_src_addr, res->ai_src_len, "10.0.0.2:1");
	assert_null(res->ai_dst_addr);
	rdma_freeaddrinfo(res);
}

static void gids_have_all_their_parts(void **state)
{
	const struct rdma_addrinfo hints = {
		.ai_flags = RAI_FAMILY | RAI_NUMERICHOST, .ai_family = AF_IB,
		.ai_port_space = RDMA_PS_TCP,
	};
	struct rdma_addrinfo *res;
	struct sockaddr_ib ib;

	(void)state;
	assert_int_equal(rdma_getaddrinfo("fe80::2", "7471", &hints, &res), 0);
	memcpy(&ib, res->ai_dst_addr, sizeof(ib));
	assert_int_equal(ib.sib_family, AF_IB);
	assert_int_equal(be16toh(ib.sib_pkey), 0xffff);
	assert_int_equal(ib.sib_addr.sib_raw[0], 0xfe);
	assert_int_equal(ib.sib_addr.sib_raw[15], 2);
	assert_true(be64toh(ib.sib_sid) == 0x0000000001061d2f);
	assert_true(ib.sib_sid_mask == UINT64_MAX);
	rdma_freeaddrinfo(res);
}

static void parts_of_addresses(void **state)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_ib ib = { .sib_family = AF_IB, .sib_sid = htobe64(0x13f0007) };
	struct sockaddr unix_addr = { .sa_family = AF_UNIX };
	char text[POLYCM_ADDR_TEXT];

	(void)state;
	assert_int_equal(polycm_addr_len(NULL), 0);
	assert_int_equal(polycm_addr_len(&unix_addr), 0);
	assert_int_equal(polycm_addr_len(addr4("1.2.3.4", 5)), sizeof(struct sockaddr_in));
	assert_string_equal(polycm_addr_text(&unix_addr, text), "-");
	assert_string_equal(polycm_addr_text(addr4("1.2.3.4", 65535), text), "1.2.3.4:65535");

	assert_true(polycm_addr_wildcard(NULL));
	assert_true(polycm_addr_wildcard(addr4("0.0.0.0", 5)));
	assert_false(polycm_addr_wildcard(addr4("127.0.0.1", 5)));
	assert_true(polycm_addr_wildcard((struct sockaddr *)&in6));
	in6.sin6_addr.s6_addr[15] = 1;
	assert_false(polycm_addr_wildcard((struct sockaddr *)&in6));
	assert_true(polycm_addr_wildcard((struct sockaddr *)&ib));
	ib.sib_addr.sib_raw[0] = 1;
	assert_false(polycm_addr_wildcard((struct sockaddr *)&ib));

	assert_int_equal(polycm_addr_port(&unix_addr), 0);
	assert_int_equal(ntohs(polycm_addr_port((struct sockaddr *)&ib)), 7);
	polycm_addr_set_port((struct sockaddr *)&ib, htons(9));
	assert_true(be64toh(ib.sib_sid) == 0x13f0009);
	polycm_addr_set_port((struct sockaddr *)&in6, htons(9));
	assert_int_equal(ntohs(polycm_addr_port((struct sockaddr *)&in6)), 9);
	polycm_addr_set_port(&unix_addr, 1);
}

static int start(void **state)
{
	(void)state;
	return fakes_start(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RDMA_TEST(hints_decide),
		RDMA_TEST(hinted_addresses_are_copied),
		RDMA_TEST(gids_have_all_their_parts),
		RDMA_TEST(parts_of_addresses),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
