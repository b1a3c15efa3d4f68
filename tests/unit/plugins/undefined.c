/* SPDX-License-Identifier: BSD-2-Clause */
/* A plugin that needs a function which nobody has. */
int polycm_provider_query_v1(void);
int function_that_nobody_has(void);

__attribute__((visibility("default"))) int polycm_provider_query_v1(void)
{
	return function_that_nobody_has();
}
