/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/session.h - a stream to another process from its first frame on: both say who they are and,
 * if there is a key, prove that they have it; then packets go both ways.
 *
 * Engine lock held for all.
 */
#ifndef OFI_SESSION_H
#define OFI_SESSION_H

#include "hello.h"
#include "peer.h"
#include "stream.h"

enum ofi_session_state {
	OFI_CONNECTING,
	OFI_GREETING,		/* the peer's HELLO is missing */
	OFI_PROVING,		/* its PROOF is */
	OFI_OPEN
};

struct ofi_session {
	struct ofi_session *next, *prev;	/* all of them */
	struct ofi_session *next_other;		/* of its peer */
	struct ofi_stream *stream;
	struct sim_remote_host *host;	/* of one that we began: whom we look for; later whose it is */
	struct ofi_knock *knock;	/* that waits for it to open, or NULL */
	struct ofi_peer *peer;		/* open */
	enum ofi_session_state state;
	bool initiator;
	uint64_t began, connected;
	struct sim_timer timer;		/* it must be open by then */
	struct ofi_want want;
	uint8_t *own, *theirs;		/* the bodies of both HELLOs, for the proofs; while it opens */
	size_t own_len, theirs_len;
};

/* Begin one.  Errors of ofi_stream_connect(). */
int ofi_session_connect(struct sim_remote_host *host, const struct ofi_want *want,
			struct ofi_knock *knock, struct ofi_session **ret_session);
/*
 * A connection that another process began, and the body of its HELLO, which wants this process.
 * The descriptor is the session's from now on, in any case.
 */
void ofi_session_accept(int fd, const uint8_t *hello, size_t len);
/* Without a word to the peer. */
void ofi_session_close(struct ofi_session *session);
/* Log why and say it to the peer; the stream ends. */
void ofi_session_refuse(struct ofi_session *session, enum ofi_refusal reason, uint32_t value,
			const char *text);

/* Send a frame on an open one; -ENOMEM. */
int ofi_session_send(struct ofi_session *session, uint8_t type, const struct iovec *body,
		     unsigned int parts, size_t len);

/* The same on all open ones. */
void ofi_sessions_tell(uint8_t type, const struct iovec *body, unsigned int parts, size_t len);

/* How many are there? */
unsigned int ofi_sessions_open(void);
/* The process ends: what waits is sent, as far as it goes in a short time. */
void ofi_sessions_flush(void);
void ofi_sessions_stop(void);
/* In the child of a fork(): they are the parent's. */
void ofi_sessions_forget(void);

#endif
