/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/ece.c - enhanced connection establishment: options of QPs that two cards of a vendor agree
 * on.  Those of a simulated card have numbers only, and change nothing.  As on mlx5, what is set
 * counts from the next change of state on; until then the QP has none.  rxe and siw, which a
 * device without a profile is like, have no such options.
 */
#include "config.h"

#include "device.h"
#include "qp.h"
#include "refuse.h"
#include "verbs.h"

#define CARD_OPTIONS 0xffu

static uint32_t options_of(const struct sim_qp *qp)
{
	return qp->type == IBV_QPT_UD ? 0 : CARD_OPTIONS;
}

static bool has_ece(const struct sim_device *device)
{
	return device->rules->services & POLYCM_SVC_ECE &&
	       device->attr.vendor_id != NIC_SOFTWARE_VENDOR;
}

void nic_ece_init(struct sim_qp *qp)
{
	qp->ece_options = options_of(qp);
}

void nic_ece_apply(struct sim_qp *qp)
{
	if (!qp->ece_is_new || qp->state < IBV_QPS_INIT || qp->state > IBV_QPS_RTS)
		return;
	qp->ece_options = qp->ece_asked & options_of(qp);
	qp->ece_is_new = false;
}

int sim_set_ece(struct ibv_qp *ibqp, struct ibv_ece *ece)
{
	static const char call[] = "ibv_set_ece";
	struct sim_qp *qp = nic_real_qp(ibqp);
	const struct sim_device *device = qp->port->device;

	if (!has_ece(device))
		return nic_refuse(device, call, EOPNOTSUPP, "the device has no ECE");
	if (!ece->vendor_id)
		return nic_refuse(device, call, EOPNOTSUPP, "it names no vendor");
	if (ece->comp_mask)
		return nic_refuse(device, call, EINVAL, "comp_mask is 0x%x, no attribute is known",
				  ece->comp_mask);
	if (ece->vendor_id != device->attr.vendor_id)
		return nic_refuse(device, call, EINVAL, "vendor_id is 0x%06x, the device's is 0x%06x",
				  ece->vendor_id, device->attr.vendor_id);
	sim_lock();
	qp->ece_asked = ece->options;
	qp->ece_options = 0;
	qp->ece_is_new = true;
	sim_unlock();
	return 0;
}

int sim_query_ece(struct ibv_qp *ibqp, struct ibv_ece *ece)
{
	struct sim_qp *qp = nic_real_qp(ibqp);
	const struct sim_device *device = qp->port->device;

	if (!has_ece(device))
		return nic_refuse(device, "ibv_query_ece", EOPNOTSUPP, "the device has no ECE");
	sim_lock();
	*ece = (struct ibv_ece) { .vendor_id = device->attr.vendor_id, .options = qp->ece_options };
	sim_unlock();
	return 0;
}
