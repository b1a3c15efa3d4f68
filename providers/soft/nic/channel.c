/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/channel.c - completion channels: CQs with events queue up here in the
 * order in which their first unread event came.
 */
#include "config.h"

#include <stdlib.h>

#include "context.h"
#include "cq.h"
#include "refuse.h"
#include "verbs.h"

struct ibv_comp_channel *sim_create_comp_channel(struct ibv_context *context)
{
	static const char call[] = "ibv_create_comp_channel";
	const struct sim_device *device = nic_device(context);
	struct sim_channel *channel = nic_alloc(device, call, sizeof(*channel));
	int err;

	if (!channel)
		return NULL;
	err = nic_notify_open(&channel->notify, &channel->pub.fd);
	if (err)
		return nic_fail(channel, nic_refuse(device, call, err, "no descriptor for it"));
	nic_list_init(&channel->ready);
	channel->pub.context = context;
	sim_lock();
	nic_enter(context, NIC_CHANNEL, &channel->node, NULL);
	sim_unlock();
	return &channel->pub;
}

void nic_channel_free(struct sim_channel *channel)
{
	nic_remove(channel->pub.context, NIC_CHANNEL, &channel->node, NULL);
	nic_notify_close(&channel->notify);
	free(channel);
}

int sim_destroy_comp_channel(struct ibv_comp_channel *pub)
{
	struct sim_channel *channel = nic_container(pub, struct sim_channel, pub);
	int err = 0;

	sim_lock();
	if (pub->refcnt)
		err = nic_refuse(nic_device(pub->context), "ibv_destroy_comp_channel", EBUSY,
				 "CQs on it are left: %d", pub->refcnt);
	else
		nic_channel_free(channel);
	sim_unlock();
	return err;
}

void nic_channel_post(struct sim_channel *channel, struct sim_cq *cq)
{
	if (cq->events_queued++ == 0)
		nic_list_add(&channel->ready, &cq->ready);
	nic_notify_set(&channel->notify, true);
}

void nic_channel_forget(struct sim_channel *channel, struct sim_cq *cq)
{
	cq->events_queued = 0;
	nic_list_del(&cq->ready);
	nic_notify_set(&channel->notify, !nic_list_empty(&channel->ready));
}

static bool take(struct nic_notify *notify, void *ret_cq)
{
	struct sim_channel *channel = nic_container(notify, struct sim_channel, notify);
	struct sim_cq *cq;

	if (nic_list_empty(&channel->ready))
		return false;
	cq = nic_container(channel->ready.next, struct sim_cq, ready);
	nic_list_del(&cq->ready);
	if (--cq->events_queued)
		nic_list_add(&channel->ready, &cq->ready);
	cq->events_reported++;
	nic_notify_set(&channel->notify, !nic_list_empty(&channel->ready));
	*(struct ibv_cq **)ret_cq = &cq->pub.cq;
	return true;
}

int sim_get_cq_event(struct ibv_comp_channel *pub, struct ibv_cq **ret_cq, void **ret_context)
{
	struct sim_channel *channel = nic_container(pub, struct sim_channel, pub);

	if (nic_notify_get(&channel->notify, "ibv_get_cq_event", TURN_FOR_CQ_EVENT, take, ret_cq))
		return -1;
	*ret_context = (*ret_cq)->cq_context;
	return 0;
}

void sim_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
