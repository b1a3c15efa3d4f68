/* SPDX-License-Identifier: BSD-2-Clause */
/* base/abi.c - see abi.h */
#include "config.h"

#include "abi.h"

#include <errno.h>
#include <stdio.h>

int polycm_abi_check(const struct polycm_abi_struct *s, uint32_t size, int64_t minor, char *why,
		     size_t why_size)
{
	if (size < s->first)
		(void)snprintf(why, why_size, "%s has %u bytes, version %d.0 has %u", s->what, size,
			       POLYCM_ABI_MAJOR, s->first);
	else if (minor <= POLYCM_ABI_MINOR && size > s->ours)
		(void)snprintf(why, why_size, "%s has %u bytes, version %d.%d has no more than %u: it "
			       "was built with other headers", s->what, size, POLYCM_ABI_MAJOR,
			       POLYCM_ABI_MINOR, s->ours);
	else if (minor >= POLYCM_ABI_MINOR && size < s->ours)
		(void)snprintf(why, why_size, "%s has %u bytes, version %d.%d has no fewer than %u: "
			       "it was built with other headers", s->what, size, POLYCM_ABI_MAJOR,
			       POLYCM_ABI_MINOR, s->ours);
	else
		return 0;
	return -EINVAL;
}
