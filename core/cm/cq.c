/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cq.c - completion queues of ids, and the shared XRC domains.
 *
 * The CQs are made with the id as their context, which is what the inline
 * functions of <rdma/rdma_verbs.h> rely on.  Under the id's lock.
 */
#include "config.h"
#include "cq.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "core/base/log.h"
#include "ret.h"

static pthread_mutex_t xrcds_lock = PTHREAD_MUTEX_INITIALIZER;

static int cq_create(struct polycm_id *id, uint32_t size, struct ibv_comp_channel **ret_channel,
		     struct ibv_cq **ret_cq)
{
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	int err;

	errno = 0;
	channel = POLYCM_VERB(ibv_create_comp_channel(id->pub.verbs));
	if (!channel)
		return polycm_fail_in(errno ? -errno : -ENOMEM, "no completion channel");
	cq = POLYCM_VERB(ibv_create_cq(id->pub.verbs, (int)size, &id->pub, channel, 0));
	if (!cq) {
		err = polycm_fail_in(errno ? -errno : -ENOMEM, "no CQ of %u entries", size);
		(void)ibv_destroy_comp_channel(channel);
		return err;
	}
	*ret_channel = channel;
	*ret_cq = cq;
	return 0;
}

static void cq_destroy(struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	if (*cq)
		(void)ibv_destroy_cq(*cq);
	if (*channel)
		(void)ibv_destroy_comp_channel(*channel);
	*cq = NULL;
	*channel = NULL;
}

int polycm_cqs_create(struct polycm_id *id, uint32_t send_size, uint32_t recv_size,
		      struct polycm_cqs_made *ret_made)
{
	int err;

	ret_made->send = send_size && !id->pub.send_cq;
	ret_made->recv = recv_size && !id->pub.recv_cq;

	if (ret_made->recv) {
		err = cq_create(id, recv_size, &id->pub.recv_cq_channel, &id->pub.recv_cq);
		if (err)
			return err;
	}
	if (ret_made->send) {
		err = cq_create(id, send_size, &id->pub.send_cq_channel, &id->pub.send_cq);
		if (err) {
			if (ret_made->recv)
				cq_destroy(&id->pub.recv_cq_channel, &id->pub.recv_cq);
			return err;
		}
	}
	return 0;
}

void polycm_cqs_undo(struct polycm_id *id, const struct polycm_cqs_made *made)
{
	if (made->send)
		cq_destroy(&id->pub.send_cq_channel, &id->pub.send_cq);
	if (made->recv)
		cq_destroy(&id->pub.recv_cq_channel, &id->pub.recv_cq);
}

void polycm_cqs_destroy(struct polycm_id *id)
{
	/* A program may have given one CQ for both. */
	if (id->pub.send_cq == id->pub.recv_cq)
		id->pub.send_cq = NULL;
	if (id->pub.send_cq_channel == id->pub.recv_cq_channel)
		id->pub.send_cq_channel = NULL;
	if (id->pub.send_cq)
		(void)ibv_destroy_cq(id->pub.send_cq);
	id->pub.send_cq = NULL;
	cq_destroy(&id->pub.recv_cq_channel, &id->pub.recv_cq);
	cq_destroy(&id->pub.send_cq_channel, &id->pub.send_cq);
}

struct search {
	const struct polycm_id *id;
	const struct ibv_cq *cq;
	char device[IBV_SYSFS_NAME_MAX];	/* of another id with the CQ */
};

static void look_at_cqs(struct polycm_channel *chan, struct polycm_id *id, void *arg)
{
	struct search *search = arg;

	(void)chan;
	if ((id->pub.send_cq == search->cq || id->pub.recv_cq == search->cq) &&
	    id->pub.verbs && id->pub.verbs != search->id->pub.verbs)
		(void)snprintf(search->device, sizeof(search->device), "%s",
			       ibv_get_device_name(id->pub.verbs->device));
}

int polycm_cq_whose(const struct polycm_id *id, const char *name, const struct ibv_cq *cq, int err)
{
	struct search search = { .id = id, .cq = cq };

	if (!cq || !polycm_log_enabled(POLYCM_LOG_WARN))
		return err;
	polycm_ids_walk(look_at_cqs, &search);
	if (!search.device[0])
		return err;
	return polycm_fail(err, "%s is of device %s, the id is on %s: rdma_create_qp() of another "
			   "id wrote its CQs into the attributes", name, search.device,
			   ibv_get_device_name(id->pub.verbs->device));
}

int polycm_xrcd_get(struct polycm_device *device, struct ibv_xrcd **ret_xrcd)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd;
	int err = 0;

	if (device->whole)
		device = device->whole;
	pthread_mutex_lock(&xrcds_lock);
	xrcd = device->xrcd;
	if (!xrcd) {
		errno = 0;
		xrcd = POLYCM_VERB(ibv_open_xrcd(device->verbs, &attr));
		if (!xrcd)
			err = errno ? -errno : -ENOMEM;
		__atomic_store_n(&device->xrcd, xrcd, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&xrcds_lock);
	*ret_xrcd = xrcd;
	return err ? polycm_fail(err, "no XRC domain") : 0;
}
