/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/host.h - other machines.  Each is a node of the fabric from when somebody first looks for
 * its address; it has processes, of which this process knows those that it has spoken to.
 *
 * Engine lock held for all.
 */
#ifndef OFI_HOST_H
#define OFI_HOST_H

#include "providers/soft/fabric/remote.h"
#include "clock.h"
#include "hello.h"
#include "queue.h"

#define OFI_MAX_NODES 4096u	/* more addresses are not looked for */

struct ofi_knock;
struct ofi_question;
struct ofi_service;
struct ofi_block;

enum ofi_host_state {
	OFI_HOST_NEW,		/* not asked yet, or asked and silent */
	OFI_HOST_BARE,		/* it is there, but no program of ours runs on it */
	OFI_HOST_UP,
	OFI_HOST_REFUSED,	/* it does not talk to us, or we not to it */
};

struct sim_remote_host {
	struct sim_remote_host *next;
	struct sim_node *node;
	struct sim_port *port;
	union sim_sockaddr gate;
	enum ofi_host_state state;
	bool identified;		/* id is valid */
	bool refusal_logged;
	uint8_t id[OFI_HOST_ID];
	struct ofi_peer *peers;		/* its processes that live, as far as we know */
	struct ofi_knock *knock;	/* for any of them; NULL: none is under way */
	struct ofi_queue waiting;	/* for that */
	uint64_t knocked;		/* when the last one ended */
	struct ofi_clock clock;
	struct ofi_question *questions;	/* find.h */
	struct ofi_block *blocks;
	struct ofi_service *services;
};

/* NULL: no room for one more. */
struct sim_remote_host *ofi_host_of_address(const struct sockaddr *addr);
struct sim_remote_host *ofi_host_by_id(const uint8_t id[OFI_HOST_ID]);
struct sim_remote_host *ofi_host_first(void);

/* What it says of itself: it is up. */
void ofi_host_take(struct sim_remote_host *host, const struct ofi_hello *hello);
/* Its ports as they are now. */
void ofi_host_take_ports(struct sim_remote_host *host, const struct ofi_ports *ports);
/* It has answered where another one was looked for: that address is its, whether it says so or not. */
void ofi_host_take_gate(struct sim_remote_host *host, struct sim_remote_host *other);
/* Whoever waits for it goes on. */
void ofi_host_set_state(struct sim_remote_host *host, enum ofi_host_state state);

/* A process of it to which anything may be sent, or NULL. */
struct ofi_peer *ofi_host_any(const struct sim_remote_host *host);

void ofi_hosts_start(void);		/* sets sim_remote */
/* Forget what is known of all; their nodes go with the fabric. */
void ofi_hosts_stop(void);
/* In the child of a fork(), after the peers: nothing is known of any, but their addresses. */
void ofi_hosts_forget(void);

#endif
