/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of an open session, which a peer may make as it likes: providers/ofi/receive.c. */
#include "config.h"

#include "ofi_far.h"
#include "providers/ofi/session.h"

static struct ofi_far far;

/* What is no data of RC goes through rings and captures that take short packets only. */
static void only_rc_has_long_packets(void **state)
{
	static uint8_t body[OFI_PACKET_HEADER + SIM_LINK_MAX_LONG];

	(void)state;
	for (unsigned int type = 0; type < SIM_PACKET_TYPES; type++) {
		ofi_far_init(&far);
		ofi_far_calls(&far);
		ofi_far_hears_hello(&far);
		ofi_packet_encode(&(struct ofi_packet){ .type = (uint8_t)type }, body);
		ofi_far_send(far.fd, OFI_PACKET, body, OFI_PACKET_HEADER + SIM_LINK_MAX_PACKET + 1);
		ofi_world_settle();
		assert_int_equal(ofi_sessions_open(), type == SIM_PACKET_RC);
		ofi_far_closes(&far);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OFI_WORLD(only_rc_has_long_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
