/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi_far.h - a process of another host, as bytes on a socket: what it says is the test's.
 */
#ifndef TESTS_UNIT_OFI_FAR_H
#define TESTS_UNIT_OFI_FAR_H

#include "ofi_world.h"
#include "providers/ofi/host.h"

struct ofi_far {
	int fd;
	bool initiator;
	struct ofi_hello hello;			/* what it says */
	uint8_t own[OFI_HELLO_MAX], theirs[OFI_HELLO_MAX];
	size_t own_len, theirs_len;
};

/* Host "far" with the address 10.0.0.2, process 3; all that self wants of a peer. */
void ofi_far_init(struct ofi_far *far);

/* Connect, and hand a connection with that HELLO to ofi_session_accept(). */
void ofi_far_calls(struct ofi_far *far);
/* The same with these bytes as its HELLO. */
void ofi_far_calls_with(struct ofi_far *far, const uint8_t *hello, size_t len);

/* The host "far", with its gate at a socket that listens here. */
struct sim_remote_host *ofi_far_host(int *ret_listener);
/* A session of ours has come to the listener: take it, and read the HELLO. */
void ofi_far_is_called(struct ofi_far *far, int listener);
void ofi_far_says_hello(struct ofi_far *far);

/* Frames from us. */
void ofi_far_hears_hello(struct ofi_far *far);
void ofi_far_hears_proof(struct ofi_far *far);
void ofi_far_hears_refused(struct ofi_far *far, enum ofi_refusal reason);
void ofi_far_hears_end(struct ofi_far *far);	/* and closes */
void ofi_far_says_proof(struct ofi_far *far);
/* PING and PONG: the session is open. */
void ofi_far_pings(struct ofi_far *far);
/* PING on one, and PONG on another one. */
void ofi_far_pings_across(struct ofi_far *far, struct ofi_far *answered);

void ofi_far_closes(struct ofi_far *far);

/* self has a key. */
void ofi_world_set_key(const char *key);

#endif
