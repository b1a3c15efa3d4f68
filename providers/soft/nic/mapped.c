/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/mapped.c - what the process has mapped, and may touch. */
#include "config.h"

#include <errno.h>
#include <sys/mman.h>

#include "mr.h"

/* MADV_POPULATE_READ and MADV_POPULATE_WRITE, which headers before Linux 5.14 lack. */
#define POPULATE_READ 22
#define POPULATE_WRITE 23

bool nic_is_mapped(const void *addr, size_t length)
{
	uintptr_t start = (uintptr_t)addr & ~(nic_page_size() - 1), end = (uintptr_t)addr + length;
	unsigned char pages[4096];

	while (start < end) {
		uintptr_t len = sizeof(pages) * nic_page_size();

		if (len > end - start)
			len = end - start;
		if (mincore((void *)start, len, pages) && errno == ENOMEM)
			return false;
		start += len;
	}
	return true;
}

/* madvise() of all pages that the range touches. */
static int advise(const void *addr, size_t length, int advice)
{
	uintptr_t start = (uintptr_t)addr & ~(nic_page_size() - 1);

	return madvise((void *)start, (uintptr_t)addr + length - start, advice);
}

bool nic_is_accessible(const void *addr, size_t length, bool writes)
{
	char own;

	if (!advise(addr, length, writes ? POPULATE_WRITE : POPULATE_READ))
		return true;
	/* EINVAL, too, where the kernel has no such advice. */
	return errno == EINVAL && advise(&own, sizeof(own), POPULATE_READ) &&
	       nic_is_mapped(addr, length);
}
