/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/gate.h - the TCP port at which the processes of this host are found.  All of them listen on
 * it; whoever accepts a connection reads what it wants, and hands it to the process that has it.
 *
 * Engine lock held for all.
 */
#ifndef OFI_GATE_H
#define OFI_GATE_H

#include "hello.h"

/*
 * Open it, if it is not open.  -EADDRINUSE: another program has the port, or another user; why
 * is in the log.
 */
int ofi_gate_open(void);
void ofi_gate_close(void);
/* In the child of a fork(): it is the parent's. */
void ofi_gate_forget(void);

/* The process of this host that has what is wanted: our own slot, if nobody has. */
unsigned int ofi_gate_owner(const struct ofi_want *want);

#endif
