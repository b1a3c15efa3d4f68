/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/cq.c - completion queues.
 *
 * The NIC produces under the engine's lock; programs consume under the small
 * lock of the CQ only.  `head' is stored after the entry (and so after the
 * data that it reports), `tail' after the entry was copied out.  Arming and
 * producing may race: the second sees what the first did, because head
 * and armed are both accessed in sequential consistency.
 */
#include "config.h"

#include <stdlib.h>

#include "context.h"
#include "cq.h"
#include "hand_over.h"
#include "refuse.h"
#include "verbs.h"

static const char create_call[] = "ibv_create_cq";

static int check_new(const struct sim_device *device, struct ibv_context *context, int cqe,
		     const struct ibv_comp_channel *channel, int comp_vector)
{
	if (cqe < 1 || cqe > device->attr.max_cqe)
		return nic_refuse(device, create_call, EINVAL, "cqe is %d, the device has 1 to %d",
				  cqe, device->attr.max_cqe);
	if (comp_vector < 0 || comp_vector >= NIC_COMP_VECTORS)
		return nic_refuse(device, create_call, EINVAL,
				  "comp_vector is %d, the device has 0 to %d",
				  comp_vector, NIC_COMP_VECTORS - 1);
	if (channel && channel->context != context)
		return nic_refuse(device, create_call, EINVAL, "the channel is of another context");
	return 0;
}

int nic_cq_create(struct ibv_context *context, size_t size, int cqe, void *cq_context,
		  struct ibv_comp_channel *channel, int comp_vector, struct sim_cq **ret_cq)
{
	static uint32_t next_handle;
	struct sim_cq *cq;
	int err = check_new(nic_device(context), context, cqe, channel, comp_vector);

	if (err)
		return err;
	cq = calloc(1, size);
	if (!cq)
		return nic_no_memory(nic_device(context), create_call);
	cq->ring_size = nic_round_up((uint32_t)cqe);
	cq->ring = malloc(cq->ring_size * sizeof(*cq->ring));
	if (!cq->ring) {
		err = nic_no_memory(nic_device(context), create_call);
		goto err_free;
	}
	nic_list_init(&cq->ready);
	cq->pub.cq.context = context;
	cq->pub.cq.channel = channel;
	cq->pub.cq.cq_context = cq_context;
	cq->pub.cq.cqe = cqe;

	sim_lock();
	err = nic_add(context, NIC_CQ, &cq->node, NULL);
	if (!err) {
		pthread_spin_init(&cq->cq_lock, PTHREAD_PROCESS_PRIVATE);
		pthread_mutex_init(&cq->pub.cq.mutex, NULL);
		pthread_cond_init(&cq->pub.cq.cond, NULL);
		cq->pub.cq.handle = next_handle++;
		if (channel)
			channel->refcnt++;
	}
	sim_unlock();
	if (err)
		goto err_free;
	*ret_cq = cq;
	return 0;

err_free:
	free(cq->ring);
	free(cq);
	return err;
}

struct ibv_cq *sim_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	size_t size = offsetof(struct sim_cq, pub) + sizeof(struct ibv_cq);
	struct sim_cq *cq;
	int err = nic_cq_create(context, size, cqe, cq_context, channel, comp_vector, &cq);

	return err ? nic_fail(NULL, err) : &cq->pub.cq;
}

/* Nothing refers to it any more. */
static void cq_detach(struct sim_cq *cq)
{
	struct ibv_comp_channel *pub = cq->pub.cq.channel;

	if (pub) {
		nic_channel_forget(nic_container(pub, struct sim_channel, pub), cq);
		pub->refcnt--;
	}
	nic_async_forget(nic_context(cq->pub.cq.context), cq);
	nic_remove(cq->pub.cq.context, NIC_CQ, &cq->node, NULL);
}

static void cq_release(struct sim_cq *cq)
{
	nic_cursor_free(cq->cursor);
	pthread_mutex_destroy(&cq->pub.cq.mutex);
	pthread_cond_destroy(&cq->pub.cq.cond);
	pthread_spin_destroy(&cq->cq_lock);
	free(cq->ring);
	free(cq);
}

void nic_cq_free(struct sim_cq *cq)
{
	cq_detach(cq);
	cq_release(cq);
}

int sim_destroy_cq(struct ibv_cq *ibcq)
{
	struct sim_cq *cq = nic_cq(ibcq);
	const struct nic_acks acks[] = {
		{ &ibcq->mutex, &ibcq->cond, &ibcq->comp_events_completed, &cq->events_reported, "CQ",
		  ibcq->handle },
		{ &ibcq->mutex, &ibcq->cond, &ibcq->async_events_completed, &cq->async_reported, "CQ",
		  ibcq->handle },
	};
	int err = 0;

	sim_lock();
	if (cq->users)
		err = nic_refuse(nic_device(ibcq->context), "ibv_destroy_cq", EBUSY,
				 "queues of QPs that complete into it are left: %u", cq->users);
	else if (nic_acks_never_come(&acks[0]) || nic_acks_never_come(&acks[1]))
		err = EDEADLK;
	else
		cq_detach(cq);
	sim_unlock();
	if (err)
		return err;
	nic_await_acks(&acks[0]);
	nic_await_acks(&acks[1]);
	cq_release(cq);
	return 0;
}

int sim_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	static const char resize_call[] = "ibv_resize_cq";
	const struct sim_device *device = nic_device(ibcq->context);
	struct sim_cq *cq = nic_cq(ibcq);
	uint32_t size, used, tail;
	struct ibv_wc *ring;
	int err = 0;

	if (cqe < 1 || cqe > device->attr.max_cqe)
		return nic_refuse(device, resize_call, EINVAL, "cqe is %d, the device has 1 to %d",
				  cqe, device->attr.max_cqe);
	size = nic_round_up((uint32_t)cqe);
	ring = malloc(size * sizeof(*ring));
	if (!ring)
		return nic_no_memory(device, resize_call);
	sim_lock();
	pthread_spin_lock(&cq->cq_lock);
	tail = atomic_load(&cq->tail);
	used = atomic_load(&cq->head) - tail;
	if (used > (uint32_t)cqe) {
		err = EINVAL;
	} else {
		struct ibv_wc *old = cq->ring;

		for (uint32_t i = 0; i < used; i++)
			ring[(tail + i) & (size - 1)] = old[(tail + i) & (cq->ring_size - 1)];
		cq->ring = ring;
		cq->ring_size = size;
		ibcq->cqe = cqe;
		ring = old;
	}
	pthread_spin_unlock(&cq->cq_lock);
	sim_unlock();
	free(ring);
	if (err)
		return nic_refuse(device, resize_call, err, "cqe is %d, and %u completions wait", cqe,
				  used);
	return 0;
}

static bool cq_overrun(struct sim_cq *cq)
{
	if (!cq->overrun) {
		cq->overrun = true;
		nic_log(POLYCM_LOG_WARN, "%s CQ %u is full (%d entries): completions are lost",
			cq->pub.cq.context->device->name, cq->pub.cq.handle, cq->pub.cq.cqe);
		nic_async_cq(cq, IBV_EVENT_CQ_ERR);
	}
	return false;
}

static void cq_notify(struct sim_cq *cq, bool solicited)
{
	unsigned int armed = atomic_load(&cq->armed);

	if (armed != CQ_ARMED && !(armed == CQ_ARMED_SOLICITED && solicited))
		return;
	atomic_store(&cq->armed, CQ_IDLE);
	if (cq->pub.cq.channel)
		nic_channel_post(nic_container(cq->pub.cq.channel, struct sim_channel, pub), cq);
}

bool nic_cq_push(struct sim_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_acquire);

	if (cq->overrun || head - tail >= (uint32_t)cq->pub.cq.cqe)
		return cq_overrun(cq);
	cq->ring[head & (cq->ring_size - 1)] = *wc;
	hand_over(cq);
	atomic_store(&cq->head, head + 1);
	cq_notify(cq, solicited || wc->status != IBV_WC_SUCCESS);
	return true;
}

static int cq_take(struct sim_cq *cq, int num, struct ibv_wc *wc)
{
	uint32_t tail;
	int taken = 0;

	if (atomic_load(&cq->head) == atomic_load_explicit(&cq->tail, memory_order_relaxed))
		return 0;
	pthread_spin_lock(&cq->cq_lock);
	tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	while (taken < num && tail != atomic_load_explicit(&cq->head, memory_order_acquire))
		wc[taken++] = cq->ring[tail++ & (cq->ring_size - 1)];
	atomic_store_explicit(&cq->tail, tail, memory_order_release);
	pthread_spin_unlock(&cq->cq_lock);
	take_over(cq);
	return taken;
}

int sim_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct sim_cq *cq = nic_cq(ibcq);
	int taken = cq_take(cq, num_entries, wc);

	if (taken)
		sim_polled((unsigned int)taken);
	if (taken || num_entries <= 0)
		return taken;
	if (sim_is_virtual())
		sim_spin();
	else
		sim_progress();
	return cq_take(cq, num_entries, wc);
}

int sim_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct sim_cq *cq = nic_cq(ibcq);
	unsigned int want = solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED;
	unsigned int armed = atomic_load(&cq->armed);

	while (armed < want && !atomic_compare_exchange_weak(&cq->armed, &armed, want))
		;
	return 0;
}
