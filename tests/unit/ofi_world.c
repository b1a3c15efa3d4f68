/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi_world.c - see ofi_world.h. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "ofi_world.h"
#include "providers/ofi/gate.h"
#include "providers/ofi/host.h"
#include "providers/ofi/io.h"
#include "providers/ofi/peer.h"
#include "providers/ofi/route.h"
#include "providers/ofi/self.h"
#include "providers/ofi/session.h"
#include "providers/soft/host/host.h"

#define NO_HANG 20	/* s of real time */

/* ------------------------------------------------------------------------
 * The thread does not run, but for its end.
 */

static void *(*thread)(void *arg);
static void *thread_arg;

int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_detach(pthread_t unused);
int __wrap_pthread_setname_np(pthread_t unused, const char *name);

int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	(void)attr;
	assert_null(thread);
	thread = fn;
	thread_arg = arg;
	*ret = pthread_self();
	return 0;
}

int __wrap_pthread_detach(pthread_t unused)
{
	(void)unused;
	return 0;
}

int __wrap_pthread_setname_np(pthread_t unused, const char *name)
{
	(void)unused;
	(void)name;
	return 0;
}

/* ------------------------------------------------------------------------
 * The world.
 */

static unsigned int descriptors_before;

unsigned int ofi_world_descriptors(void)
{
	DIR *list = opendir("/proc/self/fd");
	unsigned int num = 0;

	assert_non_null(list);
	while (readdir(list))
		num++;
	closedir(list);
	return num;
}

void ofi_world_self(void)
{
	memset(&ofi_self, 0, sizeof(ofi_self));
	memset(ofi_self.host, 0xaa, sizeof(ofi_self.host));
	strcpy(ofi_self.name, "self");
	ofi_self.transport = &sim_fake_roce;
	ofi_self.rules = 7;
	ofi_self.token = 0x0123456789abcdef;
	ofi_self.gate = OFI_DEFAULT_PORT;
}

static void start(void)
{
	struct sim_node *node;

	ofi_world_self();
	assert_int_equal(sim_node_add("self", &node), 0);
	assert_int_equal(sim_device_add(node, "ofi0", &sim_fake_roce, &ofi_self.device), 0);
	assert_int_equal(sim_device_add_address(ofi_self.device, NULL, "10.0.0.1/24"), 0);
	ofi_hosts_start();
	ofi_route_start();
	assert_int_equal(ofi_io_start(), 0);
}

int ofi_world_open(void **state)
{
	descriptors_before = ofi_world_descriptors();
	assert_int_equal(sim_fake_open(state), 0);
	start();
	return 0;
}

void ofi_world_join(const char *fabric)
{
	descriptors_before = ofi_world_descriptors();
	sim_fake_init();
	assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, 1), 0);
	sim_lock();
	assert_int_equal(sim_host_join(fabric), 0);
	assert_int_equal(sim_fabric_begin(), 0);
	start();
}

int ofi_world_close(void **state)
{
	ofi_gate_close();
	ofi_sessions_stop();
	assert_int_equal(ofi_sessions_open(), 0);
	ofi_peers_stop();
	ofi_hosts_stop();
	ofi_route_stop();
	ofi_io_stop();
	ofi_self_drop();
	if (thread) {
		sim_unlock();
		(void)thread(thread_arg);
		sim_lock();
		thread = NULL;
	}
	assert_int_equal(sim_fake_close(state), 0);
	assert_int_equal(ofi_world_descriptors(), descriptors_before);
	return 0;
}

void ofi_world_until(bool (*done)(const void *arg), const void *arg)
{
	time_t end = time(NULL) + NO_HANG;

	while (!done(arg)) {
		if (!ofi_io_poll())
			(void)sched_yield();
		assert_true(time(NULL) < end);
	}
}

void ofi_world_settle(void)
{
	while (ofi_io_poll())
		;
}

void ofi_world_pass(uint64_t ns)
{
	sim_unlock();
	assert_int_equal(sim_advance(ns), 0);
	sim_lock();
}

/* ------------------------------------------------------------------------
 * The other end.
 */

static void limit_waits(int fd)
{
	const struct timeval limit = { .tv_sec = NO_HANG };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)), 0);
}

int ofi_world_listen(union sim_sockaddr *ret_addr)
{
	socklen_t len = sizeof(ret_addr->in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	memset(ret_addr, 0, sizeof(*ret_addr));
	ret_addr->in.sin_family = AF_INET;
	ret_addr->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, &ret_addr->sa, len), 0);
	assert_int_equal(getsockname(fd, &ret_addr->sa, &len), 0);
	assert_int_equal(listen(fd, 16), 0);
	limit_waits(fd);
	return fd;
}

int ofi_world_accept(int listener)
{
	int fd = accept(listener, NULL, NULL);

	assert_true(fd >= 0);
	limit_waits(fd);
	return fd;
}

void ofi_world_pair(int pair[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	limit_waits(pair[1]);
}

void ofi_far_write(int fd, const void *bytes, size_t len)
{
	assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

void ofi_far_send(int fd, uint8_t type, const void *body, size_t len)
{
	const struct ofi_frame frame = { .len = (uint32_t)len, .type = type };
	uint8_t header[OFI_FRAME_HEADER];

	ofi_frame_encode(&frame, header);
	ofi_far_write(fd, header, sizeof(header));
	if (len)
		ofi_far_write(fd, body, len);
}

/* 0: the end.  What our own end has to do for it is done meanwhile. */
static size_t read_all(int fd, uint8_t *bytes, size_t len)
{
	time_t end = time(NULL) + NO_HANG;
	size_t had = 0;

	while (had < len) {
		ssize_t got = recv(fd, bytes + had, len - had, MSG_DONTWAIT);

		if (!got || (got < 0 && errno != EAGAIN)) {
			assert_true(!got || errno == ECONNRESET);
			assert_int_equal(had, 0);
			return 0;
		}
		if (got > 0)
			had += (size_t)got;
		else if (!ofi_io_poll())
			(void)sched_yield();
		assert_true(time(NULL) < end);
	}
	return had;
}

uint8_t ofi_far_receive(int fd, uint8_t *body, size_t *ret_len)
{
	uint8_t header[OFI_FRAME_HEADER];
	struct ofi_frame frame;

	if (!read_all(fd, header, sizeof(header)))
		return 0;
	assert_int_equal(ofi_frame_decode(header, &frame), 0);
	assert_true(frame.len <= OFI_FAR_BODY);
	(void)read_all(fd, body, frame.len);
	*ret_len = frame.len;
	return frame.type;
}
