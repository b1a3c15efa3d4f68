/* SPDX-License-Identifier: BSD-2-Clause */
/* A module that is no provider.  Linked with one (BORROW), it seems to have its query. */
int nothing_of_interest(void);
#ifdef BORROW
int polycm_provider_query_v1(void);
#endif

__attribute__((visibility("default"))) int nothing_of_interest(void)
{
#ifdef BORROW
	return polycm_provider_query_v1();
#else
	return 0;
#endif
}
