/* SPDX-License-Identifier: BSD-2-Clause */
/* timeline_cm.c - polycm timeline --cm: connection management without data. */
#include "config.h"

#include <string.h>

#include "timeline.h"

static bool is_data(const char *message)
{
	static const char *const names[] = {
		"SEND", "WRITE", "READ", "READ_REPLY", "ATOMIC", "ATOMIC_REPLY", "ATOMIC_WRITE", "FLUSH",
		"ACK", "NAK", "RNR_NAK", "UD", "RC", "TCP_DATA",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], message))
			return true;
	return false;
}

/* Faults stay: one of data may be why a connection ends. */
void timeline_leave_out_data(struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->num_items; i++) {
		struct item *item = &timeline->items[i];

		if ((item_is_packet(item) && is_data(item->text)) ||
		    (item->kind == ITEM_TIMER && item_number(item, "qpn") >= 0))
			item->selected = false;
	}
}
