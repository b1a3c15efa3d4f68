/* SPDX-License-Identifier: BSD-2-Clause */
/* test_addrinfo.c - rdma_getaddrinfo(): what it takes from hints, and what it hands back. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>

#include <infiniband/ib.h>

#include "steps.h"

static const struct info_case {
	const char *node, *service;
	bool hinted;
	int flags, family, qp_type, port_space;	/* hints */
	int eai;				/* of getaddrinfo(), 0: it succeeds */
	const char *src, *dst;			/* addresses, NULL: none */
	uint16_t port;
	int got_family, got_qp_type, got_ps;
} cases[] = {
	{ "10.0.0.1", "7471", true, RAI_NUMERICHOST, 0, 0, RDMA_PS_TCP,
	  0, NULL, "10.0.0.1", 7471, AF_INET, IBV_QPT_RC, RDMA_PS_TCP },
	{ "10.0.0.1", "7471", true, RAI_NUMERICHOST, 0, 0, RDMA_PS_UDP,
	  0, NULL, "10.0.0.1", 7471, AF_INET, IBV_QPT_UD, RDMA_PS_UDP },
	{ "10.0.0.1", "7471", true, RAI_NUMERICHOST, 0, IBV_QPT_UD, 0,
	  0, NULL, "10.0.0.1", 7471, AF_INET, IBV_QPT_UD, RDMA_PS_UDP },
	{ "10.0.0.1", "7471", true, RAI_NUMERICHOST, 0, IBV_QPT_RC, 0,
	  0, NULL, "10.0.0.1", 7471, AF_INET, IBV_QPT_RC, RDMA_PS_TCP },
	{ "10.0.0.1", "7471", true, RAI_NUMERICHOST, 0, IBV_QPT_RC, RDMA_PS_IB,
	  0, NULL, "10.0.0.1", 7471, AF_INET, IBV_QPT_RC, RDMA_PS_IB },
	/* Without hints the C library's first answer decides. */
	{ "10.0.0.1", "7471", false, 0, 0, 0, 0,
	  0, NULL, "10.0.0.1", 7471, AF_INET, IBV_QPT_RC, RDMA_PS_TCP },
	{ "10.0.0.1", NULL, true, RAI_NUMERICHOST, 0, 0, RDMA_PS_TCP,
	  0, NULL, "10.0.0.1", 0, AF_INET, IBV_QPT_RC, RDMA_PS_TCP },
	{ "fd00::1", "1", true, RAI_NUMERICHOST, 0, 0, RDMA_PS_TCP,
	  0, NULL, "fd00::1", 1, AF_INET6, IBV_QPT_RC, RDMA_PS_TCP },
	{ "fd00::1", "1", true, RAI_NUMERICHOST, AF_INET6, 0, RDMA_PS_TCP,
	  0, NULL, "fd00::1", 1, AF_INET6, IBV_QPT_RC, RDMA_PS_TCP },
	/* Passive: the source. */
	{ "10.0.0.1", "7471", true, RAI_NUMERICHOST | RAI_PASSIVE, 0, 0, RDMA_PS_TCP,
	  0, "10.0.0.1", NULL, 7471, AF_INET, IBV_QPT_RC, RDMA_PS_TCP },
	{ NULL, "7471", true, RAI_PASSIVE, AF_INET, 0, RDMA_PS_TCP,
	  0, "0.0.0.0", NULL, 7471, AF_INET, IBV_QPT_RC, RDMA_PS_TCP },
	{ NULL, "7471", true, RAI_PASSIVE, AF_INET6, 0, RDMA_PS_UDP,
	  0, "::", NULL, 7471, AF_INET6, IBV_QPT_UD, RDMA_PS_UDP },
	/* Not passive and no node: this host. */
	{ NULL, "7471", true, 0, AF_INET, 0, RDMA_PS_TCP,
	  0, NULL, "127.0.0.1", 7471, AF_INET, IBV_QPT_RC, RDMA_PS_TCP },
	/* getaddrinfo()'s own codes are handed on. */
	{ "not.numeric", "7471", true, RAI_NUMERICHOST, 0, 0, RDMA_PS_TCP,
	  EAI_NONAME, NULL, NULL, 0, 0, 0, 0 },
	{ "10.0.0.1", "no-such-service!", true, RAI_NUMERICHOST, 0, 0, RDMA_PS_TCP,
	  EAI_SERVICE, NULL, NULL, 0, 0, 0, 0 },
	{ "10.0.0.1", "1", true, RAI_NUMERICHOST, 77, 0, RDMA_PS_TCP,
	  EAI_FAMILY, NULL, NULL, 0, 0, 0, 0 },
	{ "fd00::1", "1", true, RAI_NUMERICHOST, AF_INET, 0, RDMA_PS_TCP,
	  EAI_ADDRFAMILY, NULL, NULL, 0, 0, 0, 0 },
};

static void check_addr(const struct sockaddr *addr, socklen_t len, const char *text, uint16_t port)
{
	struct sockaddr_storage want;

	if (!text) {
		assert_null(addr);
		assert_int_equal(len, 0);
		return;
	}
	want = step_addr(text, port);
	assert_non_null(addr);
	assert_int_equal(len, want.ss_family == AF_INET ? sizeof(struct sockaddr_in) :
							  sizeof(struct sockaddr_in6));
	assert_memory_equal(addr, &want, len);
}

static void takes_hints(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct info_case *c = &cases[i];
		struct rdma_addrinfo hints = {
			.ai_flags = c->flags,
			.ai_family = c->family,
			.ai_qp_type = c->qp_type,
			.ai_port_space = c->port_space,
		};
		struct rdma_addrinfo *info = NULL;

		print_message("case %zu: %s, %s\n", i, c->node ? c->node : "-",
			      c->service ? c->service : "-");
		assert_int_equal(rdma_getaddrinfo(c->node, c->service, c->hinted ? &hints : NULL,
						  &info), c->eai);
		if (c->eai) {
			assert_null(info);
			continue;
		}
		check_addr(info->ai_src_addr, info->ai_src_len, c->src, c->port);
		check_addr(info->ai_dst_addr, info->ai_dst_len, c->dst, c->port);
		assert_int_equal(info->ai_family, c->got_family);
		assert_int_equal(info->ai_qp_type, c->got_qp_type);
		assert_int_equal(info->ai_port_space, c->got_ps);
		/* Of the flags only this one tells something of the result. */
		assert_int_equal(info->ai_flags, c->hinted ? c->flags & RAI_PASSIVE : 0);
		assert_int_equal(info->ai_route_len, 0);
		assert_null(info->ai_route);
		assert_int_equal(info->ai_connect_len, 0);
		assert_null(info->ai_connect);
		/* Only the first answer. */
		assert_null(info->ai_next);
		rdma_freeaddrinfo(info);
	}
	pair_close(&pair);
}

static void needs_something_to_go_by(void **state)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *info = NULL;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_errno(rdma_getaddrinfo(NULL, NULL, NULL, &info), EINVAL);
	assert_null(info);
	assert_errno(rdma_getaddrinfo("10.0.0.1", "1", NULL, NULL), EINVAL);
	/* Hints alone will do. */
	assert_int_equal(rdma_getaddrinfo(NULL, NULL, &hints, &info), 0);
	assert_non_null(info);
	assert_null(info->ai_dst_addr);
	rdma_freeaddrinfo(info);
	pair_close(&pair);
}

/* A source in the hints is copied, for the active side to bind to. */
static void copies_the_source(void **state)
{
	struct sockaddr_storage src = step_addr(CLIENT_ADDRESS, 0);
	struct rdma_addrinfo hints = {
		.ai_flags = RAI_NUMERICHOST,
		.ai_port_space = RDMA_PS_TCP,
		.ai_src_addr = (struct sockaddr *)&src,
		.ai_src_len = sizeof(struct sockaddr_in),
	};
	struct rdma_addrinfo *info = NULL;
	struct rdma_cm_id *id;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(rdma_getaddrinfo(SERVER_ADDRESS, "7471", &hints, &info), 0);
	assert_ptr_not_equal(info->ai_src_addr, &src);
	check_addr(info->ai_src_addr, info->ai_src_len, CLIENT_ADDRESS, 0);
	check_addr(info->ai_dst_addr, info->ai_dst_len, SERVER_ADDRESS, 7471);
	assert_int_equal(rdma_create_ep(&id, info, NULL, NULL), 0);
	assert_memory_equal(&((struct sockaddr_in *)rdma_get_local_addr(id))->sin_addr,
			    &((struct sockaddr_in *)&src)->sin_addr, 4);
	rdma_destroy_ep(id);
	rdma_freeaddrinfo(info);
	pair_close(&pair);
}

/* RAI_FAMILY, AF_IB and a number: the text of an IPv6 address is a GID. */
static void reads_gids(void **state)
{
	static const struct {
		int ps;
		uint64_t sid;
	} spaces[] = {
		{ RDMA_PS_TCP, RDMA_IB_IP_PS_TCP | 7471 },
		{ RDMA_PS_UDP, RDMA_IB_IP_PS_UDP | 7471 },
		{ RDMA_PS_IB, RDMA_IB_PS_IB | 7471 },
	};
	struct pair pair;

	(void)state;
	pair_open(&pair, IB, RDMA_PS_TCP);
	for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
		struct rdma_addrinfo hints = {
			.ai_flags = RAI_FAMILY | RAI_NUMERICHOST,
			.ai_family = AF_IB,
			.ai_port_space = spaces[i].ps,
		};
		struct rdma_addrinfo *info = NULL;
		struct in6_addr gid;
		struct sockaddr_ib ib;

		assert_int_equal(rdma_getaddrinfo("fe80::2:c903:0:1", "7471", &hints, &info), 0);
		assert_int_equal(info->ai_family, AF_IB);
		assert_int_equal(info->ai_dst_len, sizeof(ib));
		memcpy(&ib, info->ai_dst_addr, sizeof(ib));
		assert_int_equal(ib.sib_family, AF_IB);
		assert_int_equal(ib.sib_pkey, htons(0xffff));
		assert_int_equal(inet_pton(AF_INET6, "fe80::2:c903:0:1", &gid), 1);
		assert_memory_equal(&ib.sib_addr, &gid, 16);
		assert_true(be64toh(ib.sib_sid) == spaces[i].sid);
		rdma_freeaddrinfo(info);
	}
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_hints),
		cmocka_unit_test(needs_something_to_go_by),
		cmocka_unit_test(copies_the_source),
		cmocka_unit_test(reads_gids),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
