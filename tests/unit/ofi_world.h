/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi_world.h - a process of the provider ofi in virtual time: the host "self" with the address
 * 10.0.0.1 on a private fabric.  Its thread does not run: tests fetch what comes in.
 *
 * Link with OFI_WORLD_FLAGS.
 */
#ifndef TESTS_UNIT_OFI_WORLD_H
#define TESTS_UNIT_OFI_WORLD_H

#include "providers/ofi/frame.h"
#include "providers/ofi/hello.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

/* Set-up and tear-down of a test; the engine's lock is held between them. */
int ofi_world_open(void **state);
/* The same on a shared fabric; each process of it opens one. */
void ofi_world_join(const char *fabric);
/* What others see of this process; no engine. */
void ofi_world_self(void);
/* Fails if a session or a descriptor is left. */
int ofi_world_close(void **state);
#define OFI_WORLD(test) cmocka_unit_test_setup_teardown(test, ofi_world_open, ofi_world_close)

/* Handle what comes in until done(arg), which must come true. */
void ofi_world_until(bool (*done)(const void *arg), const void *arg);
/* Handle what came in on connections within this process, which is all there at once. */
void ofi_world_settle(void);
/* Let virtual time pass. */
void ofi_world_pass(uint64_t ns);

unsigned int ofi_world_descriptors(void);

/* A socket that listens on 127.0.0.1; its address. */
int ofi_world_listen(union sim_sockaddr *ret_addr);
/* The next connection to it. */
int ofi_world_accept(int listener);
/* Two connected sockets; the first is for a stream. */
void ofi_world_pair(int pair[2]);

/* The other end of a stream.  Reading waits, and handles what comes in at our end. */
void ofi_far_write(int fd, const void *bytes, size_t len);
void ofi_far_send(int fd, uint8_t type, const void *body, size_t len);
/* The type of the next frame; 0: the end.  body: of OFI_FAR_BODY bytes. */
#define OFI_FAR_BODY (32u << 10)
uint8_t ofi_far_receive(int fd, uint8_t *body, size_t *ret_len);

#endif
