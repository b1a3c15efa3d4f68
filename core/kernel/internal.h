/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel/internal.h - what the files of the kernel client share.
 *
 * Locks: the core's lock of an id serialises its operations.  A reader (a thread in
 * channel_read()) does not hold it.  What readers share with operations is atomic, or
 * protected by the handles' lock (handles.c, a leaf), or was written before the command
 * that caused the reader's event.  The devices' lock (devices.c) comes before the lock of
 * the core's device list.
 */
#ifndef POLYCM_CORE_KERNEL_INTERNAL_H
#define POLYCM_CORE_KERNEL_INTERNAL_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/ib.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include "core/base/block.h"
#include "core/cm/id.h"
#include "core/base/log.h"
#include "core/plugin/registry.h"
#include "core/cm/ret.h"
#include "host.h"
#include "core/plugin/kernel_client.h"
#include "uapi.h"

/* Exported by libibverbs without a public declaration. */
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *to, const struct ib_uverbs_ah_attr *from);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, const struct ib_uverbs_qp_attr *from);

/* In place of a number that the kernel did not fill in. */
#define KERNEL_NO_NUMBER UINT32_MAX

/* One for each provider over the kernel: what its init() returned. */
struct kernel_context {
	struct kernel_context *next;	/* in order of preference */
	struct polycm_module *module;
	const struct polycm_transport *transport;
	bool (*claims)(const struct polycm_kernel_device *device);
	bool listed;			/* since another context listed the devices */
};

/* The provider's area of a channel. */
struct kernel_channel {
	int own_fd;
	/* What commands go to: own_fd, or the program's channel->fd, which it may move. */
	const int *fd_at;
	atomic_uint readers;		/* threads in channel_read() */
};

static inline int kernel_fd(const struct kernel_channel *chan)
{
	return __atomic_load_n(chan->fd_at, __ATOMIC_RELAXED);
}

/* Where the kernel says that an id is, also on a device that no provider claims. */
struct kernel_seen {
	struct sockaddr_storage src;	/* family 0: it has none */
	bool on_device;			/* of a selected provider */
};

/* What an event can be for: an id, or a multicast group of an id. */
struct kernel_handle {
	uint64_t uid;			/* passed to the kernel; 0: not in the table */
	struct place *place;		/* there */
	struct kernel_handle *whole;	/* the id of a group; NULL: this is an id's */
	atomic_uint done;		/* its events that readers have processed */
};

struct kernel_group {
	struct kernel_handle handle;	/* first */
	struct kernel_group *next;
	_Atomic(void *) core;		/* the core's group; NULL: the core has left it */
	uint32_t number;		/* the kernel's */
};

/* Options of an id that are set again when its kernel id is replaced. */
enum { KERNEL_OPTIONS = RDMA_OPTION_ID_ACK_TIMEOUT + 1 };

struct kernel_option {
	bool set;
	uint8_t len;
	unsigned char value[sizeof(int)];
};

/* The provider's area of an id. */
struct kernel_id {
	struct kernel_handle handle;	/* first */
	struct polycm_id *core;
	struct kernel_channel *chan;
	uint32_t number;		/* the kernel's */
	bool exists;			/* the number is valid */
	enum rdma_port_space ps;
	enum ibv_qp_type qp_type;
	bool ib;			/* its addresses are of family AF_IB */
	bool resolves;			/* it is, or was meant to be, an active id */
	bool asks;			/* a request that was not accepted yet */
	atomic_bool routed;		/* AF_IB: the kernel has paths */
	atomic_bool stranded;		/* on a device that no provider claims: to be replaced */
	uint32_t reported;		/* how many of its events the kernel says it delivered */
	union kernel_addr bound;	/* by bind(), with the port that it got; family 0: not bound */
	bool placed;			/* that was an address of a device's */
	struct kernel_option options[KERNEL_OPTIONS];
	struct kernel_group *groups;
	/* The last answer about where it is, for the core's next query(), or NULL. */
	_Atomic(struct polycm_route_info *) answer;
};

/*
 * Give a command with this function of the host: `message' is a KERNEL_MESSAGE, `size' all of
 * it, `out' the bytes that its answer has room for.  0, the kernel's error, or -ENODATA where
 * it took less than the whole; what it answered may have arrived then.
 */
static inline int kernel_command_by(ssize_t (*give)(int fd, const void *command, size_t len),
				    int fd, unsigned int command, void *message, size_t size,
				    size_t out)
{
	struct rdma_ucm_cmd_hdr *hdr = message;
	ssize_t taken;

	hdr->cmd = command;
	hdr->in = (uint16_t)(size - sizeof(*hdr));
	hdr->out = (uint16_t)out;
	taken = give(fd, message, size);
	if (taken < 0)
		return (int)taken;
	return (size_t)taken == size ? 0 : -ENODATA;
}

static inline int kernel_command(int fd, unsigned int command, void *message, size_t size,
				 size_t out)
{
	return kernel_command_by(polycm_kernel_host->command, fd, command, message, size, out);
}

/* Both for a KERNEL_MESSAGE of the command RDMA_USER_CM_CMD_name. */
#define KERNEL_COMMAND(fd, name, message, out)                                                     \
	kernel_command(fd, RDMA_USER_CM_CMD_##name, &(message), sizeof(message), out)
#define KERNEL_ID_COMMAND(self, name, message, out)                                                \
	kernel_id_command(self, RDMA_USER_CM_CMD_##name, &(message), sizeof(message),              \
			  &(message).body.id, out)

/* --- kernel.c --- */

enum polycm_kind kernel_kind(const void *priv);
/* Where the transport lacks this service, an error is for that reason.  Returns err. */
int kernel_explain(const struct kernel_id *id, int err, uint32_t service, const char *what);
/* The same for the services that only some kinds of ids need. */
int kernel_explain_kind(const struct kernel_id *id, int err);

/* --- handles.c --- */

int kernel_handle_add(struct kernel_handle *handle, struct kernel_handle *whole);
/* The handle of an event, kept until kernel_handle_put(); NULL: there is none. */
struct kernel_handle *kernel_handle_get(uint64_t uid);
/* The reader has processed one event of it. */
void kernel_handle_put(struct kernel_handle *handle);
/* Wait until readers of this channel have processed as many events as the kernel reported. */
void kernel_handle_settle(struct kernel_handle *handle, uint32_t reported,
			  struct kernel_channel *chan);
/* When it returns, no event and no reader finds it. */
void kernel_handle_remove(struct kernel_handle *handle);

void kernel_readers_enter(struct kernel_channel *chan);
void kernel_readers_leave(struct kernel_channel *chan);

/* --- devices.c --- */

/* Where the kernel says that an id is. */
struct kernel_place {
	bool on_device;
	__be64 node_guid;
	uint32_t index;			/* KERNEL_NO_NUMBER: the kernel does not report it */
	uint8_t port_num;
};

#define KERNEL_WHERE_TEXT 160

/* From now on it is asked which devices it claims. */
void kernel_context_add(struct kernel_context *context);
void kernel_context_remove(void *ctx);
int kernel_devices_enumerate(void *context);
/*
 * The device at the place and its rules.  -ENODEV: no selected provider claims it;
 * `where' then describes it: "siw0, an iWARP device, and ...".
 */
int kernel_devices_find(const struct kernel_place *place, struct polycm_device **ret_device,
			const struct polycm_transport **ret_rules,
			char where[static KERNEL_WHERE_TEXT]);
/*
 * Has this provider any device, if fn is not NULL one for which fn returns
 * true?  link_layer: of those ports of it that are the provider's;
 * IBV_LINK_LAYER_UNSPECIFIED: all are.
 */
bool kernel_devices_any(const struct kernel_context *context,
			bool (*fn)(const char *name, uint8_t link_layer, void *arg), void *arg);

/* --- query.c --- */

/*
 * Where the id is, asked through this descriptor, and kept for the next query() unless there is
 * no memory.  -ENODEV with a text: on a device that no selected provider claims; else the text is
 * empty.  *ret_seen is set also on an error.
 */
int kernel_ask_ahead(struct kernel_id *id, int fd, struct kernel_seen *ret_seen,
		     char where[static KERNEL_WHERE_TEXT]);
void kernel_answer_drop(struct kernel_id *id);
int kernel_op_query(void *priv, struct polycm_route_info *ret_info);

/* --- id.c --- */

/* Replace the kernel id by a new one. */
int kernel_id_replace(struct kernel_id *id) __attribute__((cold));

/* Under the id's lock, before each command: there is a kernel id to give commands to. */
static inline int kernel_id_ready(struct kernel_id *id)
{
	return id->exists && !atomic_load(&id->stranded) ? 0 : kernel_id_replace(id);
}

/* kernel_command() about the id; its number, which is known then, goes into the message. */
static inline int kernel_id_command(struct kernel_id *id, unsigned int command, void *message,
				    size_t size, uint32_t *number, size_t out)
{
	int r = kernel_id_ready(id);

	if (r)
		return r;
	*number = id->number;
	return kernel_command(kernel_fd(id->chan), command, message, size, out);
}

/* The kernel's id of a request; what is left to do on an error is kernel_id_discard(). */
int kernel_id_adopt(struct kernel_id *child, struct polycm_id *core, struct kernel_channel *chan,
		    uint32_t number, const struct kernel_id *listener);
void kernel_id_discard(struct kernel_id *id);
/*
 * DESTROY_ID or LEAVE_MCAST for a number of the kernel's; *ret_reported: how many of its
 * events the kernel has handed out.
 */
int kernel_number_end(int fd, uint32_t command, uint32_t number, uint32_t *ret_reported);
/* DESTROY_ID with a log line where it fails; returns how many events were handed out. */
uint32_t kernel_number_destroy(int fd, uint32_t number);
/* The next operation replaces the kernel id. */
void kernel_id_strand(struct kernel_id *id);

int kernel_op_open(void *ctx, struct polycm_id *core, void *priv, const struct polycm_open *how);
int kernel_op_migrate(void *priv, void *new_chan);
void kernel_op_close(void *priv);
void kernel_op_stop(void *priv);
void kernel_op_free(void *priv);

/* --- address.c --- */

int kernel_addr_bind(struct kernel_id *id, const struct sockaddr *addr);
int kernel_op_bind(void *priv, const struct sockaddr *addr);
int kernel_op_resolve_addr(void *priv, const struct sockaddr *src, const struct sockaddr *dst,
			   int timeout_ms);
int kernel_op_resolve_route(void *priv, int timeout_ms);
int kernel_op_listen(void *priv, int backlog);

/* --- option.c --- */

int kernel_op_set_option(void *priv, int level, int optname, const void *optval, size_t optlen);
int kernel_options_replay(struct kernel_id *id);

/* --- connect.c --- */

int kernel_op_connect(void *priv, const struct polycm_conn_param *param);
int kernel_op_accept(void *priv, const struct polycm_conn_param *param);
int kernel_op_reject(void *priv, const void *data, uint8_t len, uint8_t reason);
int kernel_op_establish(void *priv);
int kernel_op_disconnect(void *priv);
int kernel_op_notify(void *priv, enum ibv_event_type event);
int kernel_op_init_qp_attr(void *priv, struct ibv_qp_attr *attr, int *ret_mask);

/* --- multicast.c --- */

int kernel_op_join_multicast(void *priv, const struct polycm_multicast *mc);
int kernel_op_leave_multicast(void *priv, void *group);
void kernel_groups_free(struct kernel_id *id);

/* --- channel.c --- */

int kernel_op_channel_open(void *ctx, void *chan, int *ret_fd);
int kernel_op_channel_read(void *chan);
void kernel_op_channel_close(void *chan);

/* --- event.c --- */

/* Post an event that was fetched, or drop it with a log line. */
void kernel_event_deliver(struct kernel_channel *chan, const struct rdma_ucm_event_resp *resp);

/* --- host.c --- */

/* The first line of a small file, without its end; bytes, or a negative errno. */
ssize_t kernel_read_line(int dir, const char *path, char *buf, size_t size);

/* --- match.c --- */

int kernel_op_match(void *ctx, const struct sockaddr *src, const struct sockaddr *dst);

#endif
