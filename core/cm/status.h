/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/status.h - what the status of an event means, in words.
 */
#ifndef POLYCM_CORE_STATUS_H
#define POLYCM_CORE_STATUS_H

#include "polycm/provider.h"

/*
 * The transport's words, else the core's; transport may be NULL.  Never NULL;
 * valid until the thread's next call.
 */
const char *polycm_status_words(const struct polycm_transport *transport,
				enum rdma_cm_event_type type, int status);

#endif
