/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * misuse.h - plugins that break a rule of <polycm/provider.h>: one line at
 * `error' that names the plugin, the operation and the rule.
 */
#ifndef POLYCM_CORE_MISUSE_H
#define POLYCM_CORE_MISUSE_H

#include "registry.h"

/* module: NULL if it is not known. */
void polycm_misuse(const struct polycm_module *module, const char *operation, const char *format, ...)
	__attribute__((cold, format(printf, 3, 4)));
/* The same for the plugin whose code the address is in: __builtin_return_address(0). */
void polycm_misuse_at(const void *caller, const char *operation, const char *rule)
	__attribute__((cold));
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
