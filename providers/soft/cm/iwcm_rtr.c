/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/iwcm_rtr.c - ready to receive (RFC 6581): where both ends are to be able
 * to send first, the initiator begins with a message of no bytes, and the
 * responder is not established before it.  The messages are whole FPDUs; CRCs
 * are not in use.  Engine lock held.
 */
#include "config.h"

#include <string.h>

#include "iwcm.h"

#define RTR_MAX 52u

/* MPA length, DDP and RDMAP control, then as the message has it; the rest is 0. */
static const struct rtr {
	size_t len;
	uint8_t bytes[RTR_MAX];
} rtrs[] = {
	/* RDMA write, tagged: STag, offset. */
	[IWCM_RTR_WRITE] = { 20, { 0, 14, 0xc1, 0x40 } },
	/* Read request: queue 1, message 1, offset; sink, size, source. */
	[IWCM_RTR_READ] = { 52, { 0, 46, 0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1 } },
};

/* siw can do either, and prefers the write; of a send it knows nothing. */
enum iwcm_rtr iwcm_choose_rtr(const struct mpa_frame *frame)
{
	if (!frame->enhanced || !frame->peer_to_peer)
		return IWCM_RTR_NONE;
	if (frame->rtr_rdma_write)
		return IWCM_RTR_WRITE;
	return frame->rtr_rdma_read ? IWCM_RTR_READ : IWCM_RTR_NONE;
}

void iwcm_put_rtr(struct mpa_frame *reply, enum iwcm_rtr rtr)
{
	reply->peer_to_peer = rtr != IWCM_RTR_NONE;
	reply->rtr_rdma_write = rtr == IWCM_RTR_WRITE;
	reply->rtr_rdma_read = rtr == IWCM_RTR_READ;
}

int iwcm_send_rtr(struct iwcm *cm, enum iwcm_rtr rtr)
{
	return iw_send(cm, SEG_DATA, rtrs[rtr].bytes, rtrs[rtr].len);
}

bool iwcm_take_rtr(struct iwcm *cm, const uint8_t *data, size_t len)
{
	const struct rtr *rtr = &rtrs[cm->rtr];

	if (cm->state != IWCM_ACCEPTED || len != rtr->len || memcmp(data, rtr->bytes, len) != 0)
		return false;
	iwcm_established(cm);
	return true;
}
