/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/op.h - calls of a plugin's operations, whose results are checked: base/misuse.h
 * has the line about one that breaks a rule.
 */
#ifndef POLYCM_CORE_OP_H
#define POLYCM_CORE_OP_H

#include "core/base/misuse.h"
#include "registry.h"

/* module: NULL if it is not known. */
void polycm_misuse(const struct polycm_module *module, const char *operation, const char *format, ...)
	__attribute__((cold, format(printf, 3, 4)));
/* -r, after that line. */
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
