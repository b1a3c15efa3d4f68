/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/open.h - the fabric of this provider: this host, and all that is met.  Engine lock held.
 */
#ifndef OFI_OPEN_H
#define OFI_OPEN_H

/* Open the fabric as the settings say.  A negative errno, which is logged. */
int ofi_open(void);
void ofi_close(void);
/* The process ends: send what waits. */
void ofi_flush(void);

#endif
