/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/load.h - POLYCM_OFI_FABRIC, and the thread that looks for the fabric when the first peer
 * shows that has it, too, and then waits for what comes over it.
 *
 * Engine lock held for all.
 */
#ifndef OFI_LOAD_H
#define OFI_LOAD_H

#include "hello.h"

/* Read the setting.  -EINVAL, logged. */
int ofi_load_read(void);
/* Has the user named fabrics, so that a reason why none is used is of interest? */
bool ofi_load_asked(void);
/* What this process offers. */
void ofi_load_offer(struct ofi_hello *hello);
/* Those of them that the peer has, too, in an order that both find; how many. */
unsigned int ofi_load_common(const struct ofi_hello *theirs,
			     char ret_providers[OFI_MAX_CARRIERS][OFI_NAME]);
/*
 * Look for them, unless that was done: ofi_carry_opened() is called, some time, if one is there.
 * stream: a connection to who has them, too.
 */
void ofi_load(char providers[OFI_MAX_CARRIERS][OFI_NAME], unsigned int num, int stream);

/* The providers of the setting that this process offers, for people; "": none. */
void ofi_load_describe(char *ret_text, size_t size);

/* The program polls: do what the carrier has to do; the thread rests.  It polls no more. */
void ofi_load_fetch(void);
void ofi_load_idle(void);

/* The carrier is closed, and its thread ends. */
void ofi_load_stop(void);
/* In the child of a fork(). */
void ofi_load_forget(void);

#endif
