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
#include "device.h"
#include "hand_over.h"
#include "pd.h"
#include "refuse.h"
#include "verbs.h"

static int check_new(const struct sim_device *device, const char *call,
		     struct ibv_context *context, int cqe,
		     const struct ibv_comp_channel *channel, int comp_vector)
{
	if (cqe < 1 || cqe > device->attr.max_cqe)
		return nic_refuse(device, call, EINVAL, "cqe is %d, the device has 1 to %d",
				  cqe, device->attr.max_cqe);
	if (comp_vector < 0 || comp_vector >= nic_comp_vectors(device))
		return nic_refuse(device, call, EINVAL,
				  "comp_vector is %d, the device has 0 to %d",
				  comp_vector, nic_comp_vectors(device) - 1);
	if (channel && channel->context != context)
		return nic_refuse(device, call, EINVAL, "the channel is of another context");
	return 0;
}

int nic_cq_check(const char *call, const char *name, struct ibv_context *context,
		 const struct ibv_cq *cq)
{
	const struct sim_device *device = nic_device(context);

	if (!nic_is_known(cq))
		return nic_refuse(device, call, EINVAL, "%s was destroyed, or is no CQ of the "
				  "simulator", name);
	if (cq->context != context)
		return nic_refuse(device, call, EINVAL, "%s is of another context than the PD", name);
	return 0;
}

static struct ibv_wc *entry(const struct sim_cq *cq, uint32_t index)
{
	return (struct ibv_wc *)cq->ring.at + (index & (cq->ring_size - 1));
}

/* Room for so many entries: 0 or ENOMEM. */
static int ring_alloc(struct sim_cq *cq, uint32_t size, struct nic_cq_more more)
{
	cq->ring_size = size;
	cq->times = more.times ? malloc(size * sizeof(*cq->times)) : NULL;
	return nic_queue_alloc(&cq->ring, NIC_COMPLETION_QUEUE, more.parent,
			       size * sizeof(struct ibv_wc)) ||
	       (more.times && !cq->times) ? ENOMEM : 0;
}

static void ring_free(struct sim_cq *cq)
{
	nic_queue_free(&cq->ring, NIC_COMPLETION_QUEUE);
	free(cq->times);
}

int nic_cq_create(struct ibv_context *context, size_t size, int cqe, void *cq_context,
		  struct ibv_comp_channel *channel, int comp_vector, struct nic_cq_more more,
		  struct sim_cq **ret_cq)
{
	static uint32_t next_handle;
	struct sim_cq *cq;
	int err = check_new(nic_device(context), more.call, context, cqe, channel, comp_vector);

	if (err)
		return err;
	cq = calloc(1, size);
	if (!cq)
		return nic_no_memory(nic_device(context), more.call);
	if (ring_alloc(cq, nic_round_up((uint32_t)cqe), more)) {
		err = nic_no_memory(nic_device(context), more.call);
		goto err_free;
	}
	nic_list_init(&cq->ready);
	cq->pub.cq.context = context;
	cq->pub.cq.channel = channel;
	cq->pub.cq.cq_context = cq_context;
	cq->pub.cq.cqe = cqe;

	sim_lock();
	cq->parent = more.parent;
	err = nic_add(context, more.call, NIC_CQ, &cq->node, more.parent);
	if (!err) {
		pthread_spin_init(&cq->cq_lock, PTHREAD_PROCESS_PRIVATE);
		pthread_mutex_init(&cq->pub.cq.mutex, NULL);
		pthread_cond_init(&cq->pub.cq.cond, NULL);
		cq->pub.cq.handle = next_handle++;
		nic_known_add(&cq->known, &cq->pub.cq);
		if (channel)
			channel->refcnt++;
	}
	sim_unlock();
	if (err)
		goto err_free;
	*ret_cq = cq;
	return 0;

err_free:
	ring_free(cq);
	free(cq);
	return err;
}

struct ibv_cq *sim_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	size_t size = offsetof(struct sim_cq, pub) + sizeof(struct ibv_cq);
	struct sim_cq *cq;
	const struct nic_cq_more plain = { .call = "ibv_create_cq" };
	int err = nic_cq_create(context, size, cqe, cq_context, channel, comp_vector, plain, &cq);

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
	nic_known_remove(&cq->known);
	nic_remove(cq->pub.cq.context, NIC_CQ, &cq->node, nic_pd_of_detached(cq->parent));
}

static void cq_release(struct sim_cq *cq)
{
	struct ibv_pd *parent = cq->parent;

	nic_cursor_free(cq->cursor);
	pthread_mutex_destroy(&cq->pub.cq.mutex);
	pthread_cond_destroy(&cq->pub.cq.cond);
	pthread_spin_destroy(&cq->cq_lock);
	ring_free(cq);
	free(cq);
	nic_pd_released(parent);
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

static void ring_copy(struct sim_cq *to, const struct sim_cq *from, uint32_t index)
{
	*entry(to, index) = *entry(from, index);
	if (to->times)
		to->times[index & (to->ring_size - 1)] = from->times[index & (from->ring_size - 1)];
}

static void ring_swap(struct sim_cq *a, struct sim_cq *b)
{
	const struct sim_cq old = { .ring = a->ring, .times = a->times, .ring_size = a->ring_size };

	a->ring = b->ring;
	a->times = b->times;
	a->ring_size = b->ring_size;
	b->ring = old.ring;
	b->times = old.times;
	b->ring_size = old.ring_size;
}

int sim_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	static const char resize_call[] = "ibv_resize_cq";
	const struct sim_device *device = nic_device(ibcq->context);
	struct sim_cq *cq = nic_cq(ibcq), other;
	uint32_t used, tail;
	int err = 0;

	if (cqe < 1 || cqe > device->attr.max_cqe)
		return nic_refuse(device, resize_call, EINVAL, "cqe is %d, the device has 1 to %d",
				  cqe, device->attr.max_cqe);
	if (ring_alloc(&other, nic_round_up((uint32_t)cqe),
		       (struct nic_cq_more) { resize_call, cq->parent, cq->times })) {
		ring_free(&other);
		return nic_no_memory(device, resize_call);
	}
	sim_lock();
	pthread_spin_lock(&cq->cq_lock);
	tail = atomic_load(&cq->tail);
	used = atomic_load(&cq->head) - tail;
	if (used > (uint32_t)cqe) {
		err = EINVAL;
	} else {
		for (uint32_t i = tail; i != tail + used; i++)
			ring_copy(&other, cq, i);
		ring_swap(&other, cq);
		ibcq->cqe = cqe;
	}
	pthread_spin_unlock(&cq->cq_lock);
	sim_unlock();
	ring_free(&other);
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
	*entry(cq, head) = *wc;
	if (cq->times)
		cq->times[head & (cq->ring_size - 1)] = sim_now();
	hand_over(cq);
	atomic_store(&cq->head, head + 1);
	solicited = solicited || wc->status != IBV_WC_SUCCESS;
	if (solicited || (int32_t)(cq->solicited - tail) < 0)
		cq->solicited = solicited ? head + 1 : tail;
	cq_notify(cq, solicited);
	return true;
}

static int cq_take(struct sim_cq *cq, int num, struct ibv_wc *wc, uint64_t *ret_times)
{
	uint32_t tail;
	int taken = 0;

	if (atomic_load(&cq->head) == atomic_load_explicit(&cq->tail, memory_order_relaxed))
		return 0;
	pthread_spin_lock(&cq->cq_lock);
	tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	while (taken < num && tail != atomic_load_explicit(&cq->head, memory_order_acquire)) {
		if (ret_times)
			ret_times[taken] = cq->times[tail & (cq->ring_size - 1)];
		wc[taken++] = *entry(cq, tail++);
	}
	atomic_store_explicit(&cq->tail, tail, memory_order_release);
	pthread_spin_unlock(&cq->cq_lock);
	take_over(cq);
	return taken;
}

int nic_cq_poll(struct sim_cq *cq, int num_entries, struct ibv_wc *wc, uint64_t *ret_times)
{
	int taken = cq_take(cq, num_entries, wc, ret_times);

	if (taken)
		sim_polled((unsigned int)taken);
	if (taken || num_entries <= 0)
		return taken;
	if (sim_is_virtual())
		sim_spin();
	else
		sim_progress();
	return cq_take(cq, num_entries, wc, ret_times);
}

int sim_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	return nic_cq_poll(nic_cq(ibcq), num_entries, wc, NULL);
}

static bool cq_unread(const struct sim_cq *cq)
{
	return atomic_load(&cq->head) != atomic_load(&cq->tail);
}

int sim_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct sim_cq *cq = nic_cq(ibcq);
	unsigned int want = solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED;
	unsigned int armed = atomic_load(&cq->armed);

	while (armed < want && !atomic_compare_exchange_weak(&cq->armed, &armed, want))
		;
	if (nic_tells_of_earlier(nic_device(ibcq->context)) && cq_unread(cq)) {
		sim_lock();
		if (cq_unread(cq))
			cq_notify(cq, (int32_t)(cq->solicited - atomic_load(&cq->tail)) > 0);
		sim_unlock();
	}
	return 0;
}
