/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_stand_in_scene.h - what tests of the kernel path have in common: the
 * providers ib, roce and iwarp over the kernel client over the stand-in, and
 * ids on the way to a connection.  The helpers of cm_fake.h serve here, too.
 */
#ifndef TESTS_UNIT_KERNEL_STAND_IN_SCENE_H
#define TESTS_UNIT_KERNEL_STAND_IN_SCENE_H

#include "cm_fake.h"
#include "kernel_stand_in.h"
#include "core/kernel/uapi.h"

#define PORT 7471

/* "vendor" claims hca1 by its name, in front of all others. */
enum scene_provider {
	SCENE_VENDOR = 1, SCENE_IB = 2, SCENE_ROCE = 4, SCENE_IWARP = 8,
	SCENE_ALL = SCENE_IB | SCENE_ROCE | SCENE_IWARP,
};

/* Set in front of the first rdma_* call of the program: which providers there are. */
int scene_start(unsigned int providers);
/* Set-up and tear-down of every test: a fresh kernel; nothing is left behind. */
int scene_reset(void **state);
int scene_check(void **state);

#define KERNEL_TEST(function) cmocka_unit_test_setup_teardown(function, scene_reset, scene_check)

/* The channel that scene_reset() made; scene_check() destroys it. */
extern struct rdma_event_channel *channel;

/* An id with its address, then its route resolved. */
struct rdma_cm_id *scene_id(enum rdma_port_space ps);
struct rdma_cm_id *scene_resolved(enum rdma_port_space ps, const char *dst);
struct rdma_cm_id *scene_routed(enum rdma_port_space ps, const char *dst);
struct rdma_cm_id *scene_listener(enum rdma_port_space ps, const char *src);
/* The id of the request that is waiting. */
struct rdma_cm_id *scene_request(struct rdma_cm_id *listener);

/* Both ends of a connection with QPs, all events acked. */
struct scene_pair {
	struct rdma_cm_id *listener, *active, *passive;
};
void scene_connect(struct scene_pair *pair, const char *dst);
void scene_end(struct scene_pair *pair);
/* Both have said that it is over, timewait included. */
void scene_disconnect(struct scene_pair *pair);

void scene_destroy(struct rdma_cm_id *id);
/* All there is on the channel, acked: how many. */
unsigned int scene_drain(void);
/*
 * A program that has nothing to do with ours connects to the host's address,
 * over whatever device that is on.  Its next event must be this one, or there
 * must be none if type is negative.
 */
struct stranger {
	int fd;
	uint32_t id;
};
void stranger_connect(struct stranger *stranger, const char *dst);
void stranger_hears(const struct stranger *stranger, int type, int status);
void stranger_end(const struct stranger *stranger);

/* fd00:: with that IPv4 address. */
struct sockaddr *addr6(const char *text, uint16_t port);
/* An AF_IB address on the port of a device, "hca0" port 1, of the port space. */
struct sockaddr *addr_ib(const char *device, uint8_t port_num, enum rdma_port_space ps,
			 uint16_t port);

#endif
