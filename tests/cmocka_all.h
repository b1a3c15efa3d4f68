/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmocka with the headers that it wants included first, and names that old releases (1.1.5) lack.
 */
#ifndef TESTS_CMOCKA_ALL_H
#define TESTS_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Typed names of cmocka 2.0. */
#ifndef assert_uint_equal
#define assert_uint_equal(a, b)		assert_int_equal((uintmax_t)(a), (uintmax_t)(b))
#define assert_uint_not_equal(a, b)	assert_int_not_equal((uintmax_t)(a), (uintmax_t)(b))
#endif

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(array)		(sizeof(array) / sizeof((array)[0]))
#endif

#endif
