/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/ibcm.c - the InfiniBand CM engine as the rest of the simulator sees it: what
 * comes in, the timer of each id, events, and the beginning and end of
 * communication ids.
 *
 * MADs come from other processes and are not trusted: what does not decode,
 * comes in on a device of another protocol or names ids that do not belong
 * together is dropped.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <stddef.h>

#include "providers/soft/fabric/trace_lines.h"
#include "ibcm.h"

#define INDEX_MASK ((1u << SIM_CONN_INDEX_BITS) - 1)

static uint32_t last_index;

#define NAME(name) #name,
static const char *const state_names[] = { IBCM_STATES(NAME) };

/* --- States and events. --- */

void ibcm_set_state(struct ibcm *cm, enum ibcm_state state)
{
	enum ibcm_state before = (enum ibcm_state)cm->state;

	if (cm->state == state)
		return;
	if (sim_tracing())
		sim_trace_state(cm->id->node, "cm", cm->id->number, state_names[state],
				state_names[cm->state]);
	cm->state = (uint8_t)state;
	if (sim_segment_joined())
		ibcm_send_note(cm, before);
}

int ibcm_wrong_state(const struct ibcm *cm)
{
	return sim_refuse(-EINVAL, "not in CM state %s", state_names[cm->state]);
}

static void forget_remote(struct ibcm *cm)
{
	ibcm_table_remove(cm, IBCM_BY_REMOTE);
	ibcm_table_remove(cm, IBCM_BY_QPN);
}

void ibcm_leave(struct ibcm *cm, enum ibcm_state state)
{
	forget_remote(cm);
	ibcm_set_state(cm, state);
}

void ibcm_enter_timewait(struct ibcm *cm)
{
	ibcm_stop_repeating(cm);
	ibcm_leave(cm, IBCM_TIMEWAIT);
	sim_timer_arm(&cm->timer, sim_now() + SIM_MS(ibcm_exponent_to_ms(cm->av_timeout)));
}

void ibcm_post(struct ibcm *cm, const struct polycm_event *event)
{
	/* An error: the program has not accepted the id, or is closing it. */
	if (cm->id->state == CMA_CONNECT)
		(void)cma_post(cm->id, event);
}

void ibcm_post_disconnected(struct ibcm *cm, int status)
{
	if (cm->id->state != CMA_CONNECT)
		return;
	cma_set_state(cm->id, CMA_DISCONNECT);
	(void)cma_post_simple(cm->id, RDMA_CM_EVENT_DISCONNECTED, status);
}

/* --- The timer. --- */

/* Why the peer is unreachable, by state. */
static const char *const unreachable[IBCM_SIDR_REQ_RCVD + 1] = {
	[IBCM_REQ_SENT] = "timed out: nothing answered the REQ: the peer is dead or out of reach, or "
			  "its listener's backlog is full",
	[IBCM_MRA_REQ_RCVD] = "timed out: the peer's kernel answered the REQ with an MRA, but its "
			      "program neither accepted nor rejected",
	[IBCM_REP_SENT] = "timed out: nothing answered the REP: the peer is dead or out of reach",
	[IBCM_MRA_REP_RCVD] = "timed out: the peer's kernel answered the REP with an MRA, but its "
			      "program did not fetch its event, so no RTU came",
	[IBCM_SIDR_REQ_SENT] = "timed out: nothing answered the SIDR_REQ: the peer is dead or out of "
			       "reach, or its program did not answer",
};

static void post_unreachable(struct ibcm *cm, const char *why)
{
	if (cm->id->state == CMA_CONNECT)
		(void)cma_post_why(cm->id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, why);
}

/* All repetitions of a message went unanswered. */
static void give_up(struct ibcm *cm)
{
	const char *why = unreachable[cm->state];

	switch (cm->state) {
	case IBCM_REQ_SENT:
	case IBCM_MRA_REQ_RCVD:
	case IBCM_REP_SENT:
	case IBCM_MRA_REP_RCVD:
		ibcm_leave(cm, IBCM_IDLE);
		post_unreachable(cm, why);
		break;
	case IBCM_SIDR_REQ_SENT:
		ibcm_set_state(cm, IBCM_IDLE);
		post_unreachable(cm, why);
		break;
	case IBCM_DREQ_SENT:
		ibcm_enter_timewait(cm);
		ibcm_post_disconnected(cm, -ETIMEDOUT);
		break;
	case IBCM_TIMEWAIT:
		ibcm_set_state(cm, IBCM_IDLE);
		break;
	default:
		break;	/* the program gave up earlier: see ibcm_send_rej() */
	}
}

static void timewait_exit(struct ibcm *cm)
{
	ibcm_set_state(cm, IBCM_IDLE);
	if (cm->id->state == CMA_DISCONNECT)
		(void)cma_post_simple(cm->id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
}

static void timer_fired(struct sim_timer *timer)
{
	struct ibcm *cm = sim_container(timer, struct ibcm, timer);

	if (!cm->repeating) {
		timewait_exit(cm);
	} else if (ibcm_repeat(cm)) {
		give_up(cm);
		sim_wake();
	}
}

static void describe_timer(const struct sim_timer *timer, struct sim_timer_text *ret_text)
{
	const struct ibcm *cm = sim_container(timer, struct ibcm, timer);

	*ret_text = (struct sim_timer_text){
		.name = cm->repeating ? "retransmit" : "timewait",
		.node = cm->id->node,
		.of = "id",
		.number = cm->id->number,
	};
}

/* --- Communication ids. --- */

uint64_t ibcm_ca_guid(const struct sim_id *id)
{
	return be64toh(id->port->device->vdev.node_guid);
}

/*
 * Counts up, so that a number is not used again soon.  The start is random, so
 * that peers do not take them for those of an earlier process.
 */
static uint32_t next_local_id(void)
{
	uint32_t local_id;

	if (!last_index)
		last_index = (uint32_t)(sim_random() ^ (sim_is_virtual() ? 0 : sim_now()));
	do {
		last_index++;
		local_id = sim_conn_id(last_index & INDEX_MASK);
	} while (!local_id || ibcm_find_local(local_id));
	return local_id;
}

uint32_t ibcm_take_number(void)
{
	if (ibcm_table_count(IBCM_BY_LOCAL) >= INDEX_MASK || ibcm_table_reserve() < 0)
		return 0;
	return next_local_id();
}

struct ibcm *ibcm_create_with(struct sim_id *id, uint32_t number)
{
	struct ibcm *cm = &id->cm;

	*cm = (struct ibcm){
		.id = id,
		.local_id = number,
		.request_slot = sim_self_slot(),
	};
	sim_timer_init(&cm->timer, timer_fired);
	ibcm_table_add(cm, IBCM_BY_LOCAL);
	return cm;
}

struct ibcm *ibcm_create(struct sim_id *id)
{
	uint32_t number = ibcm_take_number();

	return number ? ibcm_create_with(id, number) : NULL;
}

void ibcm_destroy(struct ibcm *cm)
{
	ibcm_stop_repeating(cm);
	sim_timer_disarm(&cm->timer);
	forget_remote(cm);
	ibcm_table_remove(cm, IBCM_BY_LOCAL);
}

struct ibcm *ibcm_find(const struct sim_packet *packet, uint32_t local_id, uint32_t remote_id)
{
	struct ibcm *cm = ibcm_find_local(local_id);

	if (!cm)
		return NULL;
	ibcm_prefetch(cm);
	if (cm->remote_id != remote_id || cm->id->node != ibcm_node(packet))
		return NULL;
	return cm;
}

/* --- What comes in. --- */

void ibcm_receive(const struct sim_packet *packet)
{
	static void (*const handlers[])(const struct sim_packet *packet,
					const struct cm_msg *msg) = {
		[CM_REQ - CM_REQ] = ibcm_recv_req,
		[CM_MRA - CM_REQ] = ibcm_recv_mra,
		[CM_REJ - CM_REQ] = ibcm_recv_rej,
		[CM_REP - CM_REQ] = ibcm_recv_rep,
		[CM_RTU - CM_REQ] = ibcm_recv_rtu,
		[CM_DREQ - CM_REQ] = ibcm_recv_dreq,
		[CM_DREP - CM_REQ] = ibcm_recv_drep,
		[CM_SIDR_REQ - CM_REQ] = sidr_recv_req,
		[CM_SIDR_REP - CM_REQ] = sidr_recv_rep,
		/* LAP and APR: the RDMA CM never migrates paths. */
	};
	struct cm_msg msg;
	size_t index;

	if (packet->to->device->rules->protocol != POLYCM_PROTO_IB_CM ||
	    packet->from->device->rules->protocol != POLYCM_PROTO_IB_CM)
		return;
	if (cm_decode(packet->data, packet->len, &msg) < 0)
		return;
	index = (size_t)msg.attr_id - CM_REQ;
	if (index < sizeof(handlers) / sizeof(handlers[0]))
		handlers[index](packet, &msg);
}

void sim_ibcm_start(void)
{
	last_index = 0;
	sim_link_set_handler(SIM_PACKET_MAD, ibcm_receive);
	sim_link_set_rejecter(SIM_PACKET_MAD, ibcm_reject_by_rule);
	sim_link_set_handler(SIM_PACKET_NOTE, ibcm_recv_note);
	sim_trace_timers(timer_fired, describe_timer);
}

void sim_ibcm_stop(void)
{
	sim_link_set_handler(SIM_PACKET_MAD, NULL);
	sim_link_set_handler(SIM_PACKET_NOTE, NULL);
	ibcm_send_free();
	ibcm_table_free();
}

/* --- The calls of the engine. --- */

static int connect_any(struct sim_id *id, const struct polycm_conn_param *param)
{
	return id->qp_type == IBV_QPT_UD ? sidr_connect(id, param) : ibcm_connect(id, param);
}

static int accept_any(struct sim_id *id, const struct polycm_conn_param *param)
{
	return id->qp_type == IBV_QPT_UD ? sidr_accept(id, param) : ibcm_accept(id, param);
}

/* rdma_reject() does not end the repetition of what the id itself has sent: see ibcm_send_rej(). */
static bool repeats_in_vain(const struct ibcm *cm)
{
	return (cm->state == IBCM_IDLE || cm->state == IBCM_TIMEWAIT) && cm->repeating;
}

static bool not_repeating(void *arg)
{
	const struct ibcm *cm = arg;

	return !cm->repeating;
}

static void end(struct sim_id *id)
{
	bool in_vain;

	if (!id->ib)
		return;
	in_vain = repeats_in_vain(id->ib);
	ibcm_close(id);
	if (!in_vain)
		ibcm_destroy(id->ib);
}

/* The kernel waits for the last repetition, which holds the id. */
static void stop(struct sim_id *id)
{
	if (!id->ib || !repeats_in_vain(id->ib))
		return;
	(void)sim_wait(not_repeating, id->ib, SIM_NEVER);
	ibcm_destroy(id->ib);
}

static void release(struct sim_id *id)
{
	if (!id->ib)
		return;
	ibcm_destroy(id->ib);
	id->ib = NULL;
}

static void inspect(const struct sim_id *id, const struct polycm_report *to)
{
	if (!id->ib)
		return;
	to->put(to, "CM state", "%s", state_names[id->ib->state]);
	to->put(to, "CM retries left", "%u", id->ib->retries_left);
}

const struct cm_engine sim_ibcm_engine = {
	.connect = connect_any,
	.accept = accept_any,
	.reject = ibcm_reject,
	.establish = ibcm_establish,
	.disconnect = ibcm_disconnect,
	.notify = ibcm_notify,
	.init_qp_attr = ibcm_init_qp_attr,
	.close = end,
	.stop = stop,
	.free = release,
	.inspect = inspect,
};
