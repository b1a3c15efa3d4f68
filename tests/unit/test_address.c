/* SPDX-License-Identifier: BSD-2-Clause */
/* Parsing, classes and comparison of IPv4 and IPv6 addresses. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "providers/soft/wire/address.h"
#include "tests/cmocka_all.h"

static union sim_sockaddr address(const char *text)
{
	union sim_sockaddr addr;
	uint8_t prefix_len;

	assert_int_equal(sim_addr_parse(text, &addr, &prefix_len), 0);
	return addr;
}

static const struct {
	const char *text;
	int family;			/* 0: -EINVAL */
	uint8_t prefix_len;
	bool zero, loopback, link_local;
} texts[] = {
	{ "10.0.0.1/24", AF_INET, 24, false, false, false },
	{ "10.0.0.1", AF_INET, 32, false, false, false },
	{ "0.0.0.0/0", AF_INET, 0, true, false, false },
	{ "0.1.2.3", AF_INET, 32, false, false, false },
	{ "127.255.0.1/8", AF_INET, 8, false, true, false },
	{ "128.0.0.1/8", AF_INET, 8, false, false, false },
	{ "fd00::1/64", AF_INET6, 64, false, false, false },
	{ "::", AF_INET6, 128, true, false, false },
	{ "::1/128", AF_INET6, 128, false, true, false },
	{ "fe80::1", AF_INET6, 128, false, false, true },
	{ "febf::1", AF_INET6, 128, false, false, true },
	{ "fec0::1", AF_INET6, 128, false, false, false },
	{ "", 0, 0, false, false, false },
	{ "10.0.0.1/33", 0, 0, false, false, false },
	{ "10.0.0.1/", 0, 0, false, false, false },
	{ "10.0.0.1/-1", 0, 0, false, false, false },
	{ "10.0.0.1/ 8", 0, 0, false, false, false },
	{ "10.0.0.1/8x", 0, 0, false, false, false },
	{ "10.0.0", 0, 0, false, false, false },
	{ "fd00::1/129", 0, 0, false, false, false },
	{ "host", 0, 0, false, false, false },
	{ "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb", 0, 0, false, false, false },
};

static void addresses_are_parsed_and_classified(void **state)
{
	union sim_sockaddr addr;
	uint8_t prefix_len;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		int r = sim_addr_parse(texts[i].text, &addr, &prefix_len);

		print_message("case %zu: %s\n", i, texts[i].text);
		if (!texts[i].family) {
			assert_int_equal(r, -EINVAL);
			continue;
		}
		assert_int_equal(r, 0);
		assert_int_equal(addr.sa.sa_family, texts[i].family);
		assert_int_equal(prefix_len, texts[i].prefix_len);
		assert_int_equal(sim_addr_is_zero(&addr.sa), texts[i].zero);
		assert_int_equal(sim_addr_is_loopback(&addr.sa), texts[i].loopback);
		assert_int_equal(sim_addr_is_link_local(&addr.sa), texts[i].link_local);
	}
}

static const struct {
	const char *a, *b;
	unsigned int bits;
	bool within;
} prefixes[] = {
	{ "10.0.0.1", "10.0.0.255", 24, true },
	{ "10.0.0.1", "10.0.1.1", 24, false },
	{ "10.0.0.1", "10.0.1.1", 23, true },
	{ "10.0.0.1", "11.0.0.1", 7, true },
	{ "10.0.0.1", "11.0.0.1", 8, false },
	{ "10.0.0.1", "200.0.0.1", 0, true },
	{ "10.0.0.1", "10.0.0.1", 32, true },
	{ "10.0.0.1", "10.0.0.1", 33, false },
	{ "10.0.0.1", "fd00::1", 0, false },
	{ "fd00::1", "fd00::2", 126, true },
	{ "fd00::1", "fd00::2", 127, false },
};

static void prefixes_are_compared_by_bits(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		union sim_sockaddr a = address(prefixes[i].a), b = address(prefixes[i].b);

		print_message("case %zu: %s %s/%u\n", i, prefixes[i].a, prefixes[i].b,
			      prefixes[i].bits);
		assert_int_equal(sim_addr_in_prefix(&a.sa, &b.sa, prefixes[i].bits),
				 prefixes[i].within);
	}
}

static void link_local_addresses_differ_by_interface(void **state)
{
	union sim_sockaddr a = address("fe80::1"), b = a, global = address("fd00::1"), other = global;
	struct sockaddr unix_address = { .sa_family = AF_UNIX };

	(void)state;
	assert_true(sim_addr_equal(&a.sa, &b.sa));
	a.in6.sin6_scope_id = 2;
	assert_true(sim_addr_equal(&a.sa, &b.sa));
	b.in6.sin6_scope_id = 3;
	assert_false(sim_addr_equal(&a.sa, &b.sa));
	global.in6.sin6_scope_id = 2;
	other.in6.sin6_scope_id = 3;
	other.in6.sin6_port = htons(7);
	assert_true(sim_addr_equal(&global.sa, &other.sa));
	assert_false(sim_addr_equal(&unix_address, &unix_address));
}

static void copies_have_nothing_but_the_address(void **state)
{
	struct sockaddr_in in, expected;
	union sim_sockaddr copy;
	uint8_t unaligned[sizeof(union sim_sockaddr) + 1];

	(void)state;
	memset(&in, 0x55, sizeof(in));
	in.sin_family = AF_INET;
	memset(&expected, 0, sizeof(expected));
	expected.sin_family = AF_INET;
	expected.sin_port = 0x5555;
	expected.sin_addr.s_addr = 0x55555555;
	memcpy(unaligned + 1, &in, sizeof(in));
	copy = sim_addr_copy((const struct sockaddr *)(const void *)(unaligned + 1));
	assert_memory_equal(&copy.in, &expected, sizeof(expected));
	in.sin_family = AF_UNIX;
	copy = sim_addr_copy((const struct sockaddr *)(const void *)&in);
	assert_int_equal(copy.sa.sa_family, AF_UNSPEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_parsed_and_classified),
		cmocka_unit_test(prefixes_are_compared_by_bits),
		cmocka_unit_test(link_local_addresses_differ_by_interface),
		cmocka_unit_test(copies_have_nothing_but_the_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
