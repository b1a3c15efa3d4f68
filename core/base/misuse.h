/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/misuse.h - plugins that break a rule of <polycm/provider.h>: one line at
 * `error' that names the plugin, the operation and the rule.
 */
#ifndef POLYCM_CORE_BASE_MISUSE_H
#define POLYCM_CORE_BASE_MISUSE_H

/* The plugin is the one whose code the address is in: __builtin_return_address(0). */
void polycm_misuse_at(const void *caller, const char *operation, const char *rule)
	__attribute__((cold));

#endif
