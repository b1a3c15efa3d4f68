/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_stand_in_internal.h - what the stand-in's files share.  All of it is
 * under one lock, taken by the host's calls and by the functions for tests.
 */
#ifndef TESTS_UNIT_KERNEL_STAND_IN_INTERNAL_H
#define TESTS_UNIT_KERNEL_STAND_IN_INTERNAL_H

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include <infiniband/ib.h>
#include "core/kernel/uapi.h"

#include "kernel_stand_in.h"

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))
#define SI_MAX_IDS	512
#define SI_DEVICES	5
#define SI_LOOPBACK	0x7f000001u
#define SI_BACKLOG	1024
#define SI_QKEY		0x01234567u

enum si_cm {
	CM_IDLE, CM_REQ_SENT, CM_REQ_RCVD, CM_REP_SENT, CM_REP_RCVD, CM_ESTABLISHED,
	CM_DREQ_SENT, CM_DREQ_RCVD, CM_TIMEWAIT, CM_SIDR_SENT, CM_SIDR_RCVD,
};

struct si_port {
	uint16_t lid, pkey;
	uint32_t ip;
	enum stand_in_kind kind;
};

struct si_device {
	struct kernel_host_device host;
	bool spare;			/* not there until it is plugged in */
	bool present, broken;
	struct si_port port[2];		/* ip 0: no such port */
};

struct si_id;

struct si_group {
	struct si_group *next;
	uint32_t id;
	uint64_t uid;
	unsigned int reported;
	struct sockaddr_storage addr;
};

struct si_event {
	struct si_event *next;
	struct si_id *id;		/* charged to it */
	struct si_group *group;
	struct si_id *child;
	struct rdma_ucm_event_resp resp;
};

struct si_file {
	int fd;				/* readable while there are events */
	bool open;
	struct si_event *events;
};

struct si_id {
	bool used, removed, child;
	uint32_t id;
	uint64_t uid;
	struct si_file *file;
	uint16_t ps;
	uint8_t qp_type;
	bool reuse, afonly;
	enum stand_in_state state;
	enum si_cm cm;
	struct si_device *device;
	uint8_t port_num;		/* 1 or 2 */
	struct sockaddr_storage src, dst;
	union ibv_gid sgid, dgid;
	uint16_t slid, dlid;
	unsigned int num_paths;
	unsigned int backlog, reported;
	struct si_id *peer;
	struct rdma_ucm_conn_param own, theirs;	/* as each side gave them */
	struct rdma_ucm_ece own_ece;
	uint8_t ack_timeout;
	bool has_ack_timeout;
	struct si_group *groups;
};

/* Of an id that is on a port. */
static inline enum stand_in_kind si_kind(const struct si_id *id)
{
	return id->device->port[id->port_num - 1].kind;
}

/* Where the answer goes. */
struct si_reply {
	unsigned int command;
	size_t size;
	bool mute;
};

extern struct si_device si_devices[SI_DEVICES];
extern struct si_id si_ids[SI_MAX_IDS];

/* kernel_stand_in.c */
void si_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
int si_respond(const struct si_reply *reply, uint64_t address, const void *response, size_t len);
struct si_id *si_id_alloc(struct si_file *file, uint64_t uid, uint16_t ps, uint8_t qp_type);
void si_id_free(struct si_id *id);
/* An empty event of the id's, in no queue yet; then at the end of its file's. */
struct si_event *si_event_new(struct si_id *id, enum rdma_cm_event_type type, int status);
void si_event_queue(struct si_event *event);
/* One that carries nothing; dropped while the program has not named the id. */
void si_tell(struct si_id *id, enum rdma_cm_event_type type, int status);

/* kernel_stand_in_devices.c */
void si_devices_reset(void);
/* It was plugged: it has new verbs. */
void si_device_renew(struct si_device *device);
/* The port of the host with this address; false: none */
bool si_find_port(const struct sockaddr_storage *addr, struct si_device **ret_device,
		  uint8_t *ret_port);
/* The same for an address of the host's, with a device or without. */
bool si_is_host(const struct sockaddr_storage *addr);
void si_port_gid(const struct si_device *device, uint8_t port, union ibv_gid *ret_gid);

/* kernel_stand_in_addr.c: -errno or 0 */
/* 0: no such family. */
size_t si_addr_size(const void *addr);
/* IPv6 addresses have one, too; false: AF_IB and others. */
bool si_addr_ip(const struct sockaddr_storage *addr, uint32_t *ret_ip);
void si_addr_set_ip(struct sockaddr_storage *addr, uint32_t ip);
uint16_t si_addr_port(const struct sockaddr_storage *addr);
void si_addr_set_port(struct sockaddr_storage *addr, uint16_t port);
bool si_addr_any(const struct sockaddr_storage *addr);
bool si_addr_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
int si_bind(struct si_id *id, const void *addr);
int si_resolve_addr(struct si_id *id, const void *src, const void *dst, uint32_t timeout_ms);
int si_resolve_route(struct si_id *id, uint32_t timeout_ms);
int si_set_option(struct si_id *id, const struct rdma_ucm_set_option *cmd);
void si_place(struct si_id *id, struct si_device *device, uint8_t port);
/* GID and LID of the other end. */
void si_find_remote(struct si_id *id);

/* kernel_stand_in_query.c */
int si_init_qp_attr(struct si_id *id, uint32_t state, struct ib_uverbs_qp_attr *ret_attr);
int si_query(struct si_id *id, uint32_t option, uint64_t response, const struct si_reply *reply);
int si_query_route(struct si_id *id, uint64_t response, const struct si_reply *reply);

/* kernel_stand_in_cm.c */
int si_listen(struct si_id *id, int backlog);
int si_connect(struct si_id *id, const struct rdma_ucm_connect *cmd);
int si_accept(struct si_id *id, const struct rdma_ucm_accept *cmd);
int si_establish(struct si_id *id);
int si_reject(struct si_id *id, const struct rdma_ucm_reject *cmd);
int si_disconnect(struct si_id *id);
int si_notify(struct si_id *id, uint32_t event);
void si_cm_destroy(struct si_id *id);

/* kernel_stand_in_group.c */
int si_join(struct si_id *id, uint64_t uid, const void *addr, uint16_t flags, uint32_t *ret_id);
int si_leave(struct si_file *file, uint32_t id, unsigned int *ret_reported);
void si_groups_free(struct si_id *id);
/* kernel_stand_in.c */
void si_group_drop_events(struct si_id *id, const struct si_group *group);

#endif
