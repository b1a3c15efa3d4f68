/* SPDX-License-Identifier: BSD-2-Clause */
/* A plugin for a version of the provider ABI that does not exist yet. */
int polycm_provider_query_v2(void);

__attribute__((visibility("default"))) int polycm_provider_query_v2(void)
{
	return 0;
}
