/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/ece.c - enhanced connection establishment: options of a vendor's QPs, carried in REQ and
 * REP.  With a QP on the id the library sets and asks them, as librdmacm does: when it creates the
 * QP, since a device applies them as the QP goes to INIT, and when the peer has answered.  Under
 * the id's lock.
 */
#include "config.h"
#include "id_internal.h"

#include <errno.h>
#include <string.h>

static bool has_ece(const struct polycm_id *id)
{
	return id->device->transport->services & POLYCM_SVC_ECE;
}

/* Nothing, where the device has no options. */
static int query(struct ibv_qp *qp, struct polycm_ece *ret_ece)
{
	struct ibv_ece ece;
	int err;

	memset(&ece, 0, sizeof(ece));
	*ret_ece = (struct polycm_ece) { 0 };
	err = POLYCM_VERB(ibv_query_ece(qp, &ece));
	if (err && err != EOPNOTSUPP)
		return polycm_fail(err < 0 ? -EINVAL : -err, "QP %u does not say its ECE options",
				   qp->qp_num);
	if (!err)
		*ret_ece = (struct polycm_ece) { .vendor_id = ece.vendor_id, .options = ece.options };
	return 0;
}

/*
 * Tell the QP what the peer has; a device without options need not know.  Another vendor's
 * options mean nothing to it, so then it is told that there are none.
 */
static int set_remote(const struct polycm_id *id, struct ibv_qp *qp)
{
	const struct polycm_ece *local = &id->local_ece, *remote = &id->remote_ece;
	struct ibv_ece ece = {
		.vendor_id = local->vendor_id,
		.options = remote->vendor_id == local->vendor_id ? remote->options : 0,
	};
	int err = local->vendor_id ? POLYCM_VERB(ibv_set_ece(qp, &ece)) : 0;

	if (!err || err == EOPNOTSUPP)
		return 0;
	return polycm_fail(err < 0 ? -EINVAL : -err, "QP %u refuses the peer's ECE options",
			   qp->qp_num);
}

int polycm_ece_begin(struct polycm_id *id, struct ibv_qp *qp)
{
	int err;

	if (!has_ece(id))
		return 0;
	err = query(qp, &id->local_ece);
	return err || !id->remote_ece.vendor_id ? err : set_remote(id, qp);
}

int polycm_ece_agree(struct polycm_id *id, struct ibv_qp *qp)
{
	struct polycm_ece ece;
	int err;

	if (!has_ece(id) || !id->remote_ece.vendor_id)
		return 0;
	err = query(qp, &ece);
	id->local_ece.options = ece.options;
	return err;
}

void polycm_ece_offer(const struct polycm_id *id, struct polycm_ece *ret_ece)
{
	*ret_ece = has_ece(id) ? id->local_ece : (struct polycm_ece) { 0 };
}

/* The answer is in the terms of the one who asked. */
void polycm_ece_answer(const struct polycm_id *id, struct polycm_ece *ret_ece)
{
	polycm_ece_offer(id, ret_ece);
	if (has_ece(id))
		ret_ece->vendor_id = id->remote_ece.vendor_id;
}

int polycm_ece_response(struct polycm_id *id)
{
	uint32_t vendor_id = id->remote_ece.vendor_id;

	if (!has_ece(id))
		return 0;
	if (vendor_id && vendor_id != id->local_ece.vendor_id)
		return polycm_fail(-EINVAL, "ECE options of vendor %06x answered with %06x's",
				   id->local_ece.vendor_id, vendor_id);
	return set_remote(id, id->pub.qp);
}
