/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/knock.h - looking for a process of another machine at its gate.  A member that accepts
 * and does not answer may be stopped, so a few attempts are made, each of which may come to another.
 *
 * Engine lock held for all.
 */
#ifndef OFI_KNOCK_H
#define OFI_KNOCK_H

#include "hello.h"

/* Each finds any of the members, of which some may be stopped. */
#define OFI_ATTEMPTS 16u

struct ofi_knock;
struct sim_remote_host;
struct ofi_peer;
struct ofi_session;

/* peer: NULL, any process of the host.  Nothing if one of the same kind is under way. */
void ofi_knock(struct sim_remote_host *host, struct ofi_peer *peer, const struct ofi_want *want);
/* A session that it began is open, its peer known; or it ended: an errno, -EACCES: it was refused. */
void ofi_knock_opened(struct ofi_knock *knock, struct ofi_session *session);
void ofi_knock_failed(struct ofi_knock *knock, struct ofi_session *session, int error);
/* End it without a result. */
void ofi_knock_stop(struct ofi_knock *knock);

#endif
