/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/qp_modify.c - ibv_modify_qp(): which transitions exist, which attributes
 * each needs and takes (IBTA vol. 1, 10.3 and 11.2.5.2; ibv_modify_qp(3)), and
 * what they do.  Everything is checked before anything changes.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "device.h"
#include "direct.h"
#include "qp.h"
#include "rc_internal.h"
#include "refuse.h"
#include "rq.h"
#include "sq.h"
#include "verbs.h"

#define PATH_ATTRS (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
		    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define SEND_ATTRS (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
		    IBV_QP_MAX_QP_RD_ATOMIC)
#define RUNNING_ATTRS (IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | \
		       IBV_QP_PATH_MIG_STATE | IBV_QP_MIN_RNR_TIMER)
#define DRAINED_ATTRS (IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | \
		       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | \
		       IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | \
		       IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE)
#define RC_INIT (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define UD_INIT (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define UC_PATH (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define UC_RUNNING (IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | \
		    IBV_QP_PATH_MIG_STATE)
#define UC_DRAINED (IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | \
		    IBV_QP_PATH_MIG_STATE)
#define RTR_OPTIONAL (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define UD_RUNNING (IBV_QP_CUR_STATE | IBV_QP_QKEY)
/* XRC: each side has what is left of RC without the other direction. */
#define XS_SEND SEND_ATTRS
#define XS_RUNNING UC_RUNNING
#define XS_DRAINED (DRAINED_ATTRS & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
#define XR_SEND (IBV_QP_TIMEOUT | IBV_QP_SQ_PSN)
#define XR_DRAINED (DRAINED_ATTRS & ~(IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC))
#define NOTIFY IBV_QP_EN_SQD_ASYNC_NOTIFY

struct attrs {
	int required, optional;
};

/*
 * The way of a connection comes first.  Every state may go to RESET and ERR
 * with no attribute but the state.
 */
static const struct transition {
	uint8_t from, to;
	struct attrs rc, uc, ud, xrc_send, xrc_recv;
} transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, { RC_INIT, 0 }, { RC_INIT, 0 }, { UD_INIT, 0 }, { RC_INIT, 0 },
	  { RC_INIT, 0 } },
	{ IBV_QPS_INIT, IBV_QPS_RTR, { PATH_ATTRS, RTR_OPTIONAL }, { UC_PATH, RTR_OPTIONAL },
	  { 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY }, { UC_PATH, RTR_OPTIONAL },
	  { PATH_ATTRS, RTR_OPTIONAL } },
	{ IBV_QPS_RTR, IBV_QPS_RTS, { SEND_ATTRS, RUNNING_ATTRS }, { IBV_QP_SQ_PSN, UC_RUNNING },
	  { IBV_QP_SQ_PSN, UD_RUNNING }, { XS_SEND, XS_RUNNING }, { XR_SEND, RUNNING_ATTRS } },
	{ IBV_QPS_INIT, IBV_QPS_INIT, { 0, RC_INIT }, { 0, RC_INIT }, { 0, UD_INIT }, { 0, RC_INIT },
	  { 0, RC_INIT } },
	{ IBV_QPS_RTS, IBV_QPS_RTS, { 0, RUNNING_ATTRS }, { 0, UC_RUNNING }, { 0, UD_RUNNING },
	  { 0, XS_RUNNING }, { 0, RUNNING_ATTRS } },
	{ IBV_QPS_RTS, IBV_QPS_SQD, { 0, NOTIFY }, { 0, NOTIFY }, { 0, NOTIFY }, { 0, NOTIFY },
	  { 0, NOTIFY } },
	{ IBV_QPS_SQD, IBV_QPS_RTS, { 0, RUNNING_ATTRS }, { 0, UC_RUNNING }, { 0, UD_RUNNING },
	  { 0, XS_RUNNING }, { 0, RUNNING_ATTRS } },
	{ IBV_QPS_SQD, IBV_QPS_SQD, { 0, DRAINED_ATTRS }, { 0, UC_DRAINED },
	  { 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY }, { 0, XS_DRAINED }, { 0, XR_DRAINED } },
	/* Only of the unreliable types. */
	{ IBV_QPS_SQE, IBV_QPS_RTS, { 0, 0 }, { 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS },
	  { 0, UD_RUNNING }, { 0, 0 }, { 0, 0 } },
};

/* One line of log; EINVAL. */
#define refuse(qp, format, ...) \
	nic_refuse((qp)->port->device, "ibv_modify_qp", EINVAL, "QP 0x%06x: " format, nic_qpn(qp), \
		   ##__VA_ARGS__)

static int refuse_move(const struct sim_qp *qp, uint8_t to, int mask)
{
	if (!(mask & IBV_QP_STATE))
		return refuse(qp, "nothing can be changed in %s", nic_qp_state_name(qp->state));
	if (to > IBV_QPS_ERR)
		return refuse(qp, "%u is no state", to);
	return refuse(qp, "it cannot go from %s to %s", nic_qp_state_name(qp->state),
		      nic_qp_state_name(to));
}

/* As in IBV_QP_..., in the order of their bits. */
static const char *const attr_names[] = {
	"STATE", "CUR_STATE", "EN_SQD_ASYNC_NOTIFY", "ACCESS_FLAGS", "PKEY_INDEX", "PORT", "QKEY",
	"AV", "PATH_MTU", "TIMEOUT", "RETRY_CNT", "RNR_RETRY", "RQ_PSN", "MAX_QP_RD_ATOMIC",
	"ALT_PATH", "MIN_RNR_TIMER", "SQ_PSN", "MAX_DEST_RD_ATOMIC", "PATH_MIG_STATE", "CAP",
	"DEST_QPN",
};

#define NUM_NAMES ((int)(sizeof(attr_names) / sizeof(attr_names[0])))

/* Bits without a name are one number. */
static const char *names_of(int mask, char *buf, size_t size)
{
	size_t len = 0;

	for (int i = 0; i < NUM_NAMES && len < size; i++)
		if (mask & 1 << i)
			len += (size_t)snprintf(buf + len, size - len, "%s%s", len ? ", " : "",
						attr_names[i]);
	mask &= ~((1 << NUM_NAMES) - 1);
	if (mask && len < size)
		(void)snprintf(buf + len, size - len, "%s0x%x", len ? ", " : "", (unsigned int)mask);
	return buf;
}

static int check_attrs(const struct sim_qp *qp, uint8_t to, int given, int required, int optional)
{
	char names[120];

	if ((given & required) != required)
		return refuse(qp, "%s to %s needs the attributes %s, too",
			      nic_qp_state_name(qp->state), nic_qp_state_name(to),
			      names_of(required & ~given, names, sizeof(names)));
	if (given & ~(required | optional))
		return refuse(qp, "%s to %s does not take the attributes %s",
			      nic_qp_state_name(qp->state), nic_qp_state_name(to),
			      names_of(given & ~(required | optional), names, sizeof(names)));
	return 0;
}

static const struct attrs *attrs_of(const struct transition *t, uint8_t type)
{
	switch (type) {
	case IBV_QPT_RC:
		return &t->rc;
	case IBV_QPT_UC:
		return &t->uc;
	case IBV_QPT_XRC_SEND:
		return &t->xrc_send;
	case IBV_QPT_XRC_RECV:
		return &t->xrc_recv;
	default:
		return &t->ud;
	}
}

static int check_transition(const struct sim_qp *qp, uint8_t to, int mask)
{
	int given = mask & ~IBV_QP_STATE;

	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return check_attrs(qp, to, given, 0, 0);
	for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++) {
		const struct transition *t = &transitions[i];
		const struct attrs *attrs;

		if (t->from != qp->state || t->to != to)
			continue;
		attrs = attrs_of(t, qp->type);
		return check_attrs(qp, to, given, attrs->required, attrs->optional);
	}
	return refuse_move(qp, to, mask);
}

/* What regions have, programs pass for QPs, too: it need not mean anything there. */
static bool valid_access(unsigned int access)
{
	return !(access & ~(unsigned int)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
					  IBV_ACCESS_MW_BIND | SIM_ACCESS_FLUSH |
					  IBV_ACCESS_ON_DEMAND |
					  IBV_ACCESS_OPTIONAL_RANGE));
}

static int check_values(const struct sim_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct sim_device *device = qp->port->device;
	const struct ibv_device_attr *limits = &device->attr;
	const struct sim_port *moved = mask & IBV_QP_PORT ? nic_port(device, attr->port_num) : NULL;
	const struct sim_port *port = moved ? moved : qp->port;
	int last_port = (int)device->num_ports, last_pkey = (int)port->pkey_tbl_len - 1;
	const struct {
		int attr;
		const char *name;
		int value, first, last;
	} values[] = {
		{ IBV_QP_PORT, "port_num", attr->port_num, 1, last_port },
		{ IBV_QP_PKEY_INDEX, "pkey_index", attr->pkey_index, 0, last_pkey },
		{ IBV_QP_PATH_MTU, "path_mtu", (int)attr->path_mtu, IBV_MTU_256, (int)port->max_mtu },
		{ IBV_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic", attr->max_dest_rd_atomic, 0,
		  limits->max_qp_rd_atom },
		{ IBV_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic", attr->max_rd_atomic, 0,
		  limits->max_qp_init_rd_atom },
		{ IBV_QP_MIN_RNR_TIMER, "min_rnr_timer", attr->min_rnr_timer, 0, 31 },
		{ IBV_QP_TIMEOUT, "timeout", attr->timeout, 0, 31 },
		{ IBV_QP_RETRY_CNT, "retry_cnt", attr->retry_cnt, 0, 7 },
		{ IBV_QP_RNR_RETRY, "rnr_retry", attr->rnr_retry, 0, 7 },
		{ IBV_QP_ALT_PATH, "alt_port_num", attr->alt_port_num, 1, last_port },
		{ IBV_QP_ALT_PATH, "alt_timeout", attr->alt_timeout, 0, 31 },
		{ IBV_QP_ALT_PATH, "alt_pkey_index", attr->alt_pkey_index, 0, last_pkey },
		{ IBV_QP_PATH_MIG_STATE, "path_mig_state", (int)attr->path_mig_state, IBV_MIG_MIGRATED,
		  IBV_MIG_ARMED },
	};

	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != qp->state)
		return refuse(qp, "cur_qp_state is %d, the QP is in %s", (int)attr->cur_qp_state,
			      nic_qp_state_name(qp->state));
	if (mask & IBV_QP_ACCESS_FLAGS && !valid_access(attr->qp_access_flags))
		return refuse(qp, "qp_access_flags 0x%x: a bit of them is no flag of a QP",
			      attr->qp_access_flags);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (mask & values[i].attr &&
		    (values[i].value < values[i].first || values[i].value > values[i].last))
			return refuse(qp, "%s is %d, and can be %d to %d", values[i].name,
				      values[i].value, values[i].first, values[i].last);
	return 0;
}

static void apply_path(struct sim_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_PORT)
		qp->port = nic_port(qp->port->device, attr->port_num);
	if (mask & IBV_QP_AV) {
		qp->attr.ah_attr = attr->ah_attr;
		qp->peer_entry = 0;
	}
	if (mask & IBV_QP_PATH_MTU)
		qp->attr.path_mtu = attr->path_mtu;
	if (mask & IBV_QP_DEST_QPN) {
		qp->attr.dest_qp_num = attr->dest_qp_num & NIC_QPN_MASK;
		qp->peer_slot = SIM_NOBODY;
		qp->peer_entry = 0;
		if (qp->type != IBV_QPT_UD)
			rc_peer_slot(qp);
	}
	if (mask & IBV_QP_ALT_PATH) {
		qp->attr.alt_ah_attr = attr->alt_ah_attr;
		qp->attr.alt_port_num = attr->alt_port_num;
		qp->attr.alt_pkey_index = attr->alt_pkey_index;
		qp->attr.alt_timeout = attr->alt_timeout;
	}
	if (mask & IBV_QP_PATH_MIG_STATE)
		qp->attr.path_mig_state = attr->path_mig_state;
	if (mask & IBV_QP_RQ_PSN)
		qp->rq_psn = attr->rq_psn & NIC_PSN_MASK;
	if (mask & IBV_QP_SQ_PSN)
		qp->sq_psn = (attr->sq_psn - qp->sq_next) & NIC_PSN_MASK;
}

static void apply_attrs(struct sim_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_ACCESS_FLAGS)
		qp->attr.qp_access_flags = attr->qp_access_flags;
	if (mask & IBV_QP_QKEY)
		qp->attr.qkey = attr->qkey;
	if (mask & IBV_QP_PKEY_INDEX)
		qp->attr.pkey_index = attr->pkey_index;
	if (mask & IBV_QP_TIMEOUT)
		qp->attr.timeout = attr->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		qp->attr.retry_cnt = qp->retries_left = attr->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		qp->attr.rnr_retry = qp->rnr_left = attr->rnr_retry;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		qp->attr.min_rnr_timer = attr->min_rnr_timer;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		qp->attr.max_rd_atomic = attr->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		qp->attr.max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
		qp->sqd_notify = attr->en_sqd_async_notify;
}

static void change_state(struct sim_qp *qp, uint8_t to)
{
	if (to == IBV_QPS_RESET) {
		nic_qp_reset(qp);
	} else if (to == IBV_QPS_ERR) {
		nic_qp_error(qp, true);
	} else {
		if (to == IBV_QPS_SQD && qp->state != IBV_QPS_SQD)
			qp->sqd_drained = false;
		nic_qp_set_state(qp, to);
	}
}

/* As the kernel: what only the other side of an XRC connection has is ignored. */
static int without_other_side(uint8_t type, int mask)
{
	switch (type) {
	case IBV_QPT_XRC_SEND:
		return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	case IBV_QPT_XRC_RECV:
		return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	default:
		return mask;
	}
}

static int modify(struct sim_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	uint8_t to = mask & IBV_QP_STATE ? (uint8_t)attr->qp_state : qp->state;
	struct sim_port *peer = qp->peer;
	int err;

	mask = without_other_side(qp->type, mask);
	/* RESET to RESET and ERR to ERR happen, with nothing to set. */
	err = check_transition(qp, to, mask);
	if (!err)
		err = check_values(qp, attr, mask);
	if (err)
		return err;
	if (mask & IBV_QP_AV)
		err = nic_resolve_ah(qp->port->device, "ibv_modify_qp", &attr->ah_attr, &peer);
	if (err)
		return err;
	qp->peer = peer;
	apply_path(qp, attr, mask);
	apply_attrs(qp, attr, mask);
	if (mask & IBV_QP_AV && peer)
		qp->peer_mac = peer->mac_number;
	if (mask & IBV_QP_AV && !peer)
		nic_debug("%s QP 0x%06x: nobody has the address of its path",
			  qp->port->device->vdev.device.name, nic_qpn(qp));
	if (mask & IBV_QP_PKEY_INDEX && !nic_has_pkey(qp))
		nic_log(POLYCM_LOG_INFO, "%s QP 0x%06x: entry %u of the P_Key table is empty: the QP "
			"reaches nobody", qp->port->device->vdev.device.name, nic_qpn(qp),
			attr->pkey_index);
	change_state(qp, to);
	nic_transmit(qp);
	return 0;
}

/* A graceful end, unless requests are cut off by it. */
static void end_stream(struct sim_qp *qp)
{
	rc_ack_now(qp);
	rc_stream_took(qp);
	if (qp->sq_tail != qp->sq_head) {
		nic_qp_error(qp, true);
		return;
	}
	nic_rq_flush(qp);
	nic_qp_set_state(qp, IBV_QPS_SQD);
	nic_stream_closed(qp, true);
}

/*
 * iWARP: the stream, that is the connection manager, brings a QP to RTS; the
 * program can only ask for its end.  Drivers ignore attributes they have no
 * use for, and siw what it cannot do: it leaves the QP as it is, without an
 * error.
 */
static int modify_iwarp(struct sim_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	uint8_t to = mask & IBV_QP_STATE ? (uint8_t)attr->qp_state : qp->state;

	if (mask & ~(int)((IBV_QP_DEST_QPN << 1) - 1) || to > IBV_QPS_ERR || to == IBV_QPS_SQE ||
	    (mask & IBV_QP_ACCESS_FLAGS && !valid_access(attr->qp_access_flags)))
		return refuse(qp, "iWARP has not all of attributes 0x%x, state %u, or of "
			      "qp_access_flags", (unsigned int)mask, to);
	if (to == IBV_QPS_RTS && qp->state < IBV_QPS_RTS)
		return refuse(qp, "the connection manager brings a QP of iWARP to RTS");
	if (mask & IBV_QP_ACCESS_FLAGS)
		qp->attr.qp_access_flags = attr->qp_access_flags;
	if (qp->state == IBV_QPS_ERR)
		return 0;
	if (to == IBV_QPS_ERR) {
		nic_qp_error(qp, true);
	} else if (qp->state == IBV_QPS_RTS && to == IBV_QPS_SQD) {
		end_stream(qp);
	} else if (qp->state == IBV_QPS_SQD && (to == IBV_QPS_RESET || to == IBV_QPS_INIT)) {
		nic_qp_reset(qp);
		nic_qp_set_state(qp, IBV_QPS_INIT);
	}
	return 0;
}

int sim_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct sim_qp *qp = nic_real_qp(ibqp);
	int err = 0;

	sim_prefetch(qp, sizeof(*qp));
	sim_lock();
	if (mask & IBV_QP_STATE && attr->qp_state != IBV_QPS_RTS)
		err = nic_hand_over(qp, "ibv_modify_qp");
	if (err) {
		sim_unlock();
		errno = err;
		return err;
	}
	/* It is offered again, as it is then. */
	nic_direct_withdraw(qp);
	if (qp->port->device->removed)
		err = nic_refuse(qp->port->device, "ibv_modify_qp", EIO, "the device was removed");
	else if (nic_qp_is_iwarp(qp))
		err = modify_iwarp(qp, attr, mask);
	else
		err = modify(qp, attr, mask);
	nic_check_cqe_lost(qp);
	if (!err) {
		nic_ece_apply(qp);
		nic_show_state(ibqp, attr, mask);
	}
	sim_unlock();
	if (err)
		errno = err;	/* as the system call leaves it; programs call perror() */
	return err;
}
