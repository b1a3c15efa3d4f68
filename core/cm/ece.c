/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/ece.c - enhanced connection establishment: options of a vendor's QPs, carried in REQ and
 * REP.  With a QP on the id the library sets and asks them.  Under the id's lock.
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
static struct polycm_ece query(struct ibv_qp *qp)
{
	struct polycm_ece ece = { 0 };
	struct ibv_ece verbs_ece;

	memset(&verbs_ece, 0, sizeof(verbs_ece));
	if (!POLYCM_VERB(ibv_query_ece(qp, &verbs_ece))) {
		ece.vendor_id = verbs_ece.vendor_id;
		ece.options = verbs_ece.options;
	}
	return ece;
}

/* Tell the QP what the peer has; a device without options need not know. */
static int set(struct ibv_qp *qp, const struct polycm_ece *ece)
{
	struct ibv_ece verbs_ece = {
		.vendor_id = ece->vendor_id,
		.options = ece->options,
	};
	int err = POLYCM_VERB(ibv_set_ece(qp, &verbs_ece));

	if (!err || err == EOPNOTSUPP)
		return 0;
	return polycm_fail(err < 0 ? -EINVAL : -err, "QP %u refuses the peer's ECE options",
			   qp->qp_num);
}

void polycm_ece_offer(struct polycm_id *id, struct polycm_ece *ret_ece)
{
	memset(ret_ece, 0, sizeof(*ret_ece));
	if (!has_ece(id))
		return;
	if (id->pub.qp)
		id->local_ece = query(id->pub.qp);
	*ret_ece = id->local_ece;
}

int polycm_ece_accept(struct polycm_id *id, struct polycm_ece *ret_ece)
{
	int err;

	memset(ret_ece, 0, sizeof(*ret_ece));
	if (!has_ece(id))
		return 0;
	if (id->pub.qp && id->remote_ece.vendor_id) {
		err = set(id->pub.qp, &id->remote_ece);
		if (err)
			return err;
		id->local_ece = query(id->pub.qp);
	}
	/* The answer is in the terms of the one who asked. */
	ret_ece->vendor_id = id->remote_ece.vendor_id;
	ret_ece->options = id->local_ece.options;
	return 0;
}

int polycm_ece_response(struct polycm_id *id)
{
	if (!has_ece(id) || !id->remote_ece.vendor_id)
		return 0;
	if (id->remote_ece.vendor_id != id->local_ece.vendor_id)
		return polycm_fail(-EINVAL, "ECE options of vendor %06x answered with %06x's",
				   id->local_ece.vendor_id, id->remote_ece.vendor_id);
	return set(id->pub.qp, &id->remote_ece);
}
