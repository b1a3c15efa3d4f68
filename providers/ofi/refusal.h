/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/refusal.h - why a host does not talk to this one, or is not talked to, in the log. */
#ifndef OFI_REFUSAL_H
#define OFI_REFUSAL_H

#include "session.h"

/* reason: one that there is, as the decoder says; text: the transport that the host plays, or "". */
void ofi_refusal_log(struct ofi_session *session, bool by_us, uint8_t reason, uint32_t value,
		     const char *text);

#endif
