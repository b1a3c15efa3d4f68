/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/signals.h - the program's actions for signals, which libfabric's libraries replace when they
 * are loaded: those of psm2 by handlers that end the program with a backtrace.
 */
#ifndef POLYCM_OFI_SIGNALS_H
#define POLYCM_OFI_SIGNALS_H

struct ofi_signals;

/* What is set now.  NULL: no memory. */
struct ofi_signals *ofi_signals_save(void);

/*
 * Set that again, and free it.  An action that the program set meanwhile stays: its handler is in
 * an object that was loaded before.
 */
void ofi_signals_restore(struct ofi_signals *signals);

#endif
