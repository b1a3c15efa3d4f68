/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device/open.c - the verbs context and the default PD of a device: made when
 * they are first needed, and then the device's for as long as it lives.
 *
 * Verbs calls may end in a provider, so no lock is held during them: a thread
 * marks the device busy, and others wait.  verbs and pd are written once, but
 * for a program that closes the context, and read without a lock.
 */
#include "config.h"

#include "device.h"

#include <errno.h>
#include <string.h>

#include "hand_over.h"
#include "core/base/log.h"
#include "core/plugin/registry.h"
#include "core/base/libibverbs.h"
#include "core/base/why.h"

static pthread_mutex_t busy_lock = PTHREAD_MUTEX_INITIALIZER;	/* who is busy */
static pthread_cond_t not_busy = PTHREAD_COND_INITIALIZER;

static void set_busy(struct polycm_device *device)
{
	pthread_mutex_lock(&busy_lock);
	while (device->busy)
		pthread_cond_wait(&not_busy, &busy_lock);
	device->busy = true;
	pthread_mutex_unlock(&busy_lock);
}

static void clear_busy(struct polycm_device *device)
{
	pthread_mutex_lock(&busy_lock);
	device->busy = false;
	pthread_cond_broadcast(&not_busy);
	pthread_mutex_unlock(&busy_lock);
}

/* Where errno is 0, the device was removed. */
static int verbs_error(void)
{
	return errno ? -errno : -ENODEV;
}

static int open_context(const struct polycm_device *device, struct ibv_context **ret_verbs)
{
	if (!device->vdev)
		return polycm_real_open(device->name, ret_verbs);
	errno = 0;
	*ret_verbs = POLYCM_VERB(ibv_open_device(&device->vdev->device));
	return *ret_verbs ? 0 : verbs_error();
}

static uint8_t lowered(int value)
{
	return value < 0 ? 0 : value > UINT8_MAX ? UINT8_MAX : (uint8_t)value;
}

/* Its ports are known, so it can be used. */
static void opened(struct polycm_device *device, struct ibv_context *verbs)
{
	struct ibv_port_attr port;

	memset(&port, 0, sizeof(port));
	if (ibv_query_port(verbs, device->first_port, &port))
		port.link_layer = device->transport->link_layer;
	device->link_layer = port.link_layer;

	hand_over(&device->verbs);
	__atomic_store_n(&device->verbs, verbs, __ATOMIC_RELEASE);
}

/* Programs may combine objects of different ports of a card, so all share its context. */
static int open_whole(struct polycm_device *part)
{
	struct polycm_device *whole = part->whole;
	int r = polycm_device_open(whole);

	if (r)
		return r;
	part->max_responder_resources = whole->max_responder_resources;
	part->max_initiator_depth = whole->max_initiator_depth;
	opened(part, whole->verbs);
	return 0;
}

static int open_and_query(struct polycm_device *device)
{
	struct ibv_device_attr attr;
	struct ibv_context *verbs = NULL;
	int r;

	if (device->whole)
		return open_whole(device);
	r = open_context(device, &verbs);
	if (r)
		return r;
	memset(&attr, 0, sizeof(attr));
	r = ibv_query_device(verbs, &attr);
	if (r) {
		r = r > 0 ? -r : verbs_error();
		ibv_close_device(verbs);
		return r;
	}
	device->max_responder_resources = lowered(attr.max_qp_rd_atom);
	device->max_initiator_depth = lowered(attr.max_qp_init_rd_atom);
	opened(device, verbs);
	return 0;
}

int polycm_device_open(struct polycm_device *device)
{
	int r = 0;

	if (__atomic_load_n(&device->verbs, __ATOMIC_ACQUIRE)) {
		take_over(&device->verbs);
		return 0;
	}
	set_busy(device);
	if (!device->verbs)
		r = polycm_device_lost(device) ? -ENODEV : open_and_query(device);
	clear_busy(device);
	if (r)
		polycm_log(POLYCM_LOG_WARN, "%s %s: the device cannot be opened: %s",
			   device->module->name, device->name, strerror(-r));
	return r;
}

int polycm_device_pd(struct polycm_device *device, struct ibv_pd **ret_pd)
{
	struct ibv_pd *pd;
	int r = 0;

	if (__builtin_expect(device->whole != NULL, 0))
		device = device->whole;
	pd = __atomic_load_n(&device->pd, __ATOMIC_ACQUIRE);

	if (pd) {
		take_over(&device->pd);
		*ret_pd = pd;
		return 0;
	}
	set_busy(device);
	if (!device->pd) {
		errno = 0;
		pd = POLYCM_VERB(ibv_alloc_pd(device->verbs));
		if (!pd)
			r = verbs_error();
		hand_over(&device->pd);
		__atomic_store_n(&device->pd, pd, __ATOMIC_RELEASE);
	}
	if (!r)
		*ret_pd = device->pd;
	clear_busy(device);
	return r;
}
