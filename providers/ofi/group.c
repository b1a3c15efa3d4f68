/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/group.c - see group.h. */
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "providers/soft/fabric/groups.h"
#include "providers/soft/link/link_internal.h"
#include "providers/soft/wire/ud.h"
#include "group.h"
#include "host.h"
#include "knock.h"
#include "peer.h"
#include "self.h"

/* Hosts that the settings name are asked when somebody first needs them. */
void ofi_group_joined(void)
{
	const struct ofi_want any = { .kind = OFI_WANT_ANY };

	for (unsigned int i = 0; i < ofi_self.num_hosts; i++) {
		struct sim_remote_host *host = ofi_host_of_address(&ofi_self.hosts[i].addr.sa);

		/* NULL: it is this host. */
		if (host && host->state != OFI_HOST_REFUSED && !ofi_host_any(host))
			ofi_knock(host, NULL, &any);
	}
}

void ofi_group_send(struct sim_port *from, const void *header, size_t header_len,
		    const struct iovec *payload, unsigned int parts, size_t payload_len)
{
	ofi_group_joined();
	for (struct sim_remote_host *host = ofi_host_first(); host; host = host->next) {
		const struct ofi_peer *any = ofi_host_any(host);
		unsigned int slot = any ? any->number : SIM_SLOT_ASK | host->node->number;

		if (any || host->knock)
			(void)sim_link_send(from, host->port, slot, SIM_PACKET_UD, header, header_len,
					    payload, parts, payload_len);
	}
}

/*
 * The members know this host's port, but not always the sender's host.  Who sent it is in the
 * datagram.
 */
void ofi_group_hand_on(const struct sim_packet *packet)
{
	const struct sim_frame frame = {
		.from = packet->to,
		.to = packet->to,
		.type = SIM_PACKET_UD,
		.header = packet->data,
		.header_len = packet->len,
		.number = packet->number,
	};
	struct ud_header header;
	uint32_t cursor = 0;
	unsigned int slot;

	if (packet->len < sizeof(header))
		return;
	memcpy(&header, packet->data, sizeof(header));
	if (header.dst_qpn != SIM_MULTICAST_QPN || !(header.flags & UD_F_GRH))
		return;
	while (sim_group_next(&header.dgid, &cursor, &slot))
		if (slot != sim_self_slot())
			(void)sim_link_leave(&frame, slot);
}
