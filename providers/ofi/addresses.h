/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/addresses.h - the addresses of this host as the kernel has them: those that come and go
 * while the program runs, and which one is the source for a destination.  Engine lock held.
 */
#ifndef OFI_ADDRESSES_H
#define OFI_ADDRESSES_H

#include "providers/soft/wire/address.h"

/* Watch for changes; one that came before is found, too.  Without a way to watch, a log line. */
void ofi_addresses_watch(void);
void ofi_addresses_close(void);
/* In the child of a fork(): the watch is the parent's. */
void ofi_addresses_forget(void);

/* The source of packets to dst, without port.  -ENETUNREACH: no route leads there. */
int ofi_source_for(const struct sockaddr *dst, union sim_sockaddr *ret_source);

#endif
