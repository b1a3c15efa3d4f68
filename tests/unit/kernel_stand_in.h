/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_stand_in.h - the kernel's RDMA CM inside the test process, for tests
 * of the kernel client: it takes the commands of <rdma/rdma_user_cm.h> and
 * answers as Linux 6.12 does on a host with these devices:
 *
 *	hca0	InfiniBand	port 1 10.0.1.1, port 2 10.0.2.1 (P_Key 0x8001)
 *	hca1	InfiniBand	port 1 10.1.1.1, port 2 10.1.2.1
 *	rocee0	RoCE		port 1 20.0.0.1
 *	iw0	iWARP		port 1 30.0.0.1
 *	vpi0	a card of both	port 1 10.2.1.1 InfiniBand, port 2 20.1.0.1 RoCE; to be plugged in
 *	-	no RDMA device	40.0.0.1
 *
 * The host's ids connect to one another.  Every network is a /24; address .99
 * of each answers no ARP, other addresses do, and then say nothing more.  IPv6
 * addresses are fd00:: with the IPv4 address in the last four bytes.
 *
 * What happens, happens within the command that causes it.  Time does not pass
 * but in stand_in_time_passes().
 */
#ifndef TESTS_UNIT_KERNEL_STAND_IN_H
#define TESTS_UNIT_KERNEL_STAND_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

#include "core/kernel/host.h"

#define STAND_IN_COMMANDS 23	/* CREATE_ID to JOIN_MCAST */

struct rdma_ucm_event_resp;

enum stand_in_kind { STAND_IN_IB, STAND_IN_ROCE, STAND_IN_IWARP };

/* The kernel's states of an id. */
enum stand_in_state {
	STAND_IN_IDLE, STAND_IN_ADDR_QUERY, STAND_IN_ADDR_RESOLVED, STAND_IN_ROUTE_QUERY,
	STAND_IN_ROUTE_RESOLVED, STAND_IN_CONNECT, STAND_IN_DISCONNECT, STAND_IN_ADDR_BOUND,
	STAND_IN_LISTEN, STAND_IN_DEVICE_REMOVAL, STAND_IN_DESTROYING
};

/* What a test orders of one command. */
struct stand_in_fault {
	int error;		/* it fails so, and does nothing else */
	bool short_result;	/* done, but fewer bytes taken than were written */
	bool mute;		/* done, but no response written */
	unsigned int after;	/* not the next such command but after so many */
	bool always;		/* not once */
};

struct stand_in {
	/* Orders. */
	int abi_version;		/* a negative errno: not to be read */
	int open_error, devices_error;
	bool sa_silent;			/* the SA answers nothing */
	/*
	 * Before 5.11 the id of a request was made where the event was fetched;
	 * since then where its listener was when the request came, and there it
	 * stays when the listener moves.
	 */
	bool requests_follow;
	unsigned int known_commands;	/* numbers from here on are unknown to this kernel */
	struct stand_in_fault fault[STAND_IN_COMMANDS];
	/* Called on each response before it is written. */
	void (*edit)(unsigned int command, void *response, size_t len);

	/* Counts. */
	unsigned int calls[STAND_IN_COMMANDS];
	unsigned int opens, dropped_requests;
	int files, ids, groups;		/* open now */
	/* What no kernel would have been told by a correct client. */
	char violation[160];
	/* The last parameters that arrived in CONNECT, ACCEPT and REJECT. */
	uint8_t connect_len, accept_len, reject_len, reject_reason;
};

extern struct stand_in stand_in;
extern const struct kernel_host stand_in_host;

/* A fresh kernel with all devices; ids must be gone. */
void stand_in_reset(void);
/* The program gives an open RDMA CM another number, as dup() and close() do. */
int stand_in_move(int fd);

/* Plug or unplug: ids of the device are told. */
void stand_in_plug(const char *name, bool present);
/* Its contexts cannot be opened any more. */
void stand_in_break(const char *name, bool broken);
/* The index by which the kernel names devices; -1 with older ones. */
void stand_in_set_indices(bool known);

/* The kernel's id behind a program's, found by its addresses; 0: none. */
uint32_t stand_in_find(const struct rdma_cm_id *id);
/* The one made last. */
uint32_t stand_in_newest(void);
enum stand_in_state stand_in_state(uint32_t id);
/* The name that the client gave the id, or the group that it joined last. */
uint64_t stand_in_uid(uint32_t id);
uint64_t stand_in_group_uid(uint32_t id);

/*
 * An event as the kernel has them, for the id; and any bytes at all, on the
 * id's file.  Both count as events of the id.
 */
void stand_in_post(uint32_t id, enum rdma_cm_event_type type, int status);
void stand_in_post_raw(uint32_t id, const struct rdma_ucm_event_resp *event);
/* The timewait of all ids ends. */
void stand_in_time_passes(void);

/* Names of commands, "CREATE_ID". */
const char *stand_in_command_name(unsigned int command);

/* The last move of a QP to RTR and to RTS, as the device was asked for it. */
extern struct ibv_qp_attr stand_in_rtr, stand_in_rts;
extern uint32_t stand_in_last_qpn;

#endif
