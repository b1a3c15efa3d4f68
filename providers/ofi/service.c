/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/service.c - see service.h. */
#include "config.h"

#include <string.h>

#include "providers/soft/cm/ibcm.h"
#include "providers/soft/wire/mad.h"
#include "providers/soft/wire/segment.h"
#include "frame.h"
#include "gate.h"
#include "service.h"

/* Where the attribute's number stands in the header of a MAD (IBTA vol. 1, 13.4.2). */
#define MAD_ATTR_ID 16u

static bool want_of_mad(const uint8_t *bytes, size_t len, struct ofi_want *ret_want)
{
	uint16_t attr = len == CM_MAD_SIZE ? (uint16_t)(bytes[MAD_ATTR_ID] << 8 | bytes[MAD_ATTR_ID + 1])
					   : 0;
	struct cma_hdr_info header;
	enum rdma_port_space ps;
	struct cm_msg msg;
	uint64_t service;
	uint16_t port;

	if ((attr != CM_REQ && attr != CM_SIDR_REQ) || cm_decode(bytes, len, &msg) < 0)
		return false;
	service = attr == CM_REQ ? msg.req.service_id : msg.sidr_req.service_id;
	if (ibcm_service(service, &ps, &port) < 0)
		return false;
	ret_want->kind = OFI_WANT_SERVICE;
	ret_want->ps = (uint16_t)ps;
	/* AF_IB has no addresses in it: then only the port counts. */
	if (!cma_hdr_decode(attr == CM_REQ ? msg.req.private_data : msg.sidr_req.private_data,
			    CMA_HDR_SIZE, &header))
		ret_want->addr = header.dst;
	else
		ret_want->addr.sa.sa_family = AF_INET;
	sim_addr_set_port(&ret_want->addr, port);
	return true;
}

static bool want_of_segment(const uint8_t *bytes, size_t len, struct ofi_want *ret_want)
{
	struct segment segment;

	if (iw_segment_parse(bytes, len, &segment) < 0 || segment.type != SEG_SYN)
		return false;
	ret_want->kind = OFI_WANT_SOCKET;
	ret_want->addr = segment.dst;
	return true;
}

static bool want_of(uint8_t type, const uint8_t *bytes, size_t len, struct ofi_want *ret_want)
{
	memset(ret_want, 0, sizeof(*ret_want));
	if (type == SIM_PACKET_MAD)
		return want_of_mad(bytes, len, ret_want);
	return type == SIM_PACKET_STREAM && want_of_segment(bytes, len, ret_want);
}

bool ofi_service_of(uint8_t type, const uint8_t *bytes, size_t len, uint32_t *ret_number)
{
	struct ofi_want want;

	if (!want_of(type, bytes, len, &want))
		return false;
	*ret_number = ofi_service_number(want.ps, sim_addr_port(&want.addr.sa));
	return true;
}

unsigned int ofi_service_owner(const struct sim_packet *packet)
{
	struct ofi_want want;

	return want_of((uint8_t)packet->type, packet->data, packet->len, &want) ? ofi_gate_owner(&want)
										: sim_self_slot();
}

void ofi_service_want(enum sim_packet_type type, const struct iovec *parts, unsigned int num,
		      struct ofi_want *ret_want)
{
	uint8_t bytes[OFI_PACKET_HEADER + CM_MAD_SIZE];
	size_t len = 0;

	for (unsigned int i = 0; i < num; len += parts[i++].iov_len) {
		if (parts[i].iov_len > sizeof(bytes) - len)
			break;
		if (parts[i].iov_len)
			memcpy(bytes + len, parts[i].iov_base, parts[i].iov_len);
	}
	if (len < OFI_PACKET_HEADER ||
	    !want_of((uint8_t)type, bytes + OFI_PACKET_HEADER, len - OFI_PACKET_HEADER, ret_want))
		*ret_want = (struct ofi_want){ .kind = OFI_WANT_ANY };
}
