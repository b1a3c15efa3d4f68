/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/op.h - calls of a plugin's operations, whose results are checked: base/misuse.h
 * has the line about one that breaks a rule.
 */
#ifndef POLYCM_CORE_OP_H
#define POLYCM_CORE_OP_H

#include "core/base/log.h"
#include "core/base/misuse.h"
#include "registry.h"

/* module: NULL if it is not known. */
#define polycm_misuse(module, operation, format, ...)                                              \
	polycm_log(POLYCM_LOG_ERROR, "provider %s: %s(): " format,                                 \
		   (module) ? (module)->name : "(unknown)", operation, ##__VA_ARGS__)
/* -r, after that line (check.c). */
int polycm_misuse_positive(const struct polycm_module *module, const char *operation, int r)
	__attribute__((cold));

/* What an operation of the module returned: 0 or a negative errno, whatever it was. */
static inline int polycm_op_result(const struct polycm_module *module, const char *operation, int r)
{
	return __builtin_expect(r > 0, 0) ? polycm_misuse_positive(module, operation, r) : r;
}

/* Call an operation that returns an int. */
#define POLYCM_OP(module, op, ...) polycm_op_result(module, #op, (module)->ops.op(__VA_ARGS__))

#endif
