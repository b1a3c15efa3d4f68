/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/nic_internal.h - the simulated NIC's objects.
 *
 * Ownership: a program's object lives from its create to its destroy call, or
 * until its context is closed.  Everything is protected by the engine's lock
 * but for the consumer side of a completion queue (cq.c) and the counters of
 * acknowledged events, which have the mutex that is part of the public struct.
 */
#ifndef SIM_NIC_INTERNAL_H
#define SIM_NIC_INTERNAL_H

#include <stdatomic.h>

#include "providers/sim/fabric.h"
#include "nic.h"

#define NIC_PSN_MASK 0xffffffu
#define NIC_QPN_MASK 0xffffffu
#define NIC_MAX_SGE 32u
#define NIC_MAX_INLINE 1024u
#define NIC_MAX_MESSAGE (1u << 30)
#define NIC_COMP_VECTORS 4
#define NIC_GRH_SIZE 40u
#define NIC_TCP_RETRIES 15u

#define nic_container(ptr, type, member) \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/* --- Lists. --- */

struct nic_list {
	struct nic_list *next, *prev;
};

static inline void nic_list_init(struct nic_list *list)
{
	list->next = list->prev = list;
}

static inline bool nic_list_empty(const struct nic_list *list)
{
	return list->next == list;
}

static inline void nic_list_add(struct nic_list *list, struct nic_list *node)
{
	node->prev = list->prev;
	node->next = list;
	list->prev->next = node;
	list->prev = node;
}

static inline void nic_list_del(struct nic_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	nic_list_init(node);
}

static inline uint32_t nic_round_up(uint32_t size)
{
	return size < 2 ? 1 : 1u << (32 - __builtin_clz(size - 1));
}

/* --- Objects. --- */

/* A descriptor that is readable while something is queued (notify.c). */
struct nic_notify {
	int fd;					/* ours: the program may move its own */
	const int *program_fd;			/* where the program has its number for the same file */
	bool signalled;
	atomic_uint sequence;			/* a futex: changes when it becomes readable */
	atomic_uint waiters;
};

/*
 * An asynchronous event that nobody has read.  Each object has one for each
 * kind of event about it, so that none is lost for want of memory.
 */
struct nic_async {
	struct nic_list node;
	struct ibv_async_event event;
	const void *element;
	uint32_t *reported;			/* counter of the object */
	bool queued, allocated;
};

enum nic_qp_event { NIC_QP_FAILED, NIC_QP_ESTABLISHED, NIC_QP_DRAINED, NIC_QP_LAST_WQE, NIC_QP_EVENTS };
enum nic_port_event { NIC_PORT_ACTIVE, NIC_PORT_ERR, NIC_PORT_GID, NIC_PORT_EVENTS };
#define NIC_PORTS (sizeof(((struct sim_device *)0)->ports) / sizeof(struct sim_port))

struct sim_context {
	struct sim_device *device;
	struct nic_list node;			/* among all contexts */
	struct nic_list pds, mrs, mws, channels, cqs, srqs, qps, ahs;
	struct nic_list events;			/* async.c: not read yet */
	struct nic_async removed, port_events[NIC_PORTS][NIC_PORT_EVENTS];
	struct nic_notify notify;
	struct verbs_context verbs;		/* last, as libibverbs wants it */
};

struct sim_pd {
	struct ibv_pd pub;
	struct nic_list node;
	unsigned int users;
};

struct sim_mr {
	struct ibv_mr pub;
	struct nic_list node;
	uint64_t iova;
	unsigned int access;
	unsigned int windows;			/* bound to it */
};

/* A memory window; unbound while mr is NULL. */
struct sim_mw {
	struct ibv_mw pub;
	struct nic_list node;
	uint32_t key;				/* that opens it; pub.rkey is the program's */
	struct sim_mr *mr;
	const struct sim_qp *qp;		/* type 2: bound to it; else NULL */
	uint64_t addr, length;
	unsigned int access;
};

struct sim_ah {
	struct ibv_ah pub;
	struct nic_list node;
	struct ibv_ah_attr attr;
	struct sim_port *peer;			/* NULL: nobody has that address */
	uint32_t peer_mac;			/* its number then */
};

struct sim_channel {
	struct ibv_comp_channel pub;
	struct nic_list node;
	struct nic_list ready;			/* CQs with events that nobody has read */
	struct nic_notify notify;
};

enum cq_armed { CQ_IDLE, CQ_ARMED_SOLICITED, CQ_ARMED };

struct sim_cq {
	struct nic_list node, ready;
	unsigned int users;			/* queues that complete here */
	uint32_t events_queued;			/* in the channel, not read yet */
	uint32_t events_reported, async_reported;
	struct nic_async full;
	bool overrun;

	/* Shared with the consumer, who does not take the engine's lock. */
	atomic_uint armed;			/* enum cq_armed */
	atomic_uint head, tail;			/* producer's and consumer's count */
	pthread_spinlock_t lock;		/* consumer side: tail, ring, size */
	uint32_t ring_size;			/* power of two */
	struct ibv_wc *ring;

	struct nic_cq_cursor *cursor;		/* of an ibv_cq_ex, else NULL */
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex;		/* allocated for create_cq_ex() only */
	} pub;					/* last */
};

struct nic_rwqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t reserved;
	struct ibv_sge sge[];
};

/* A ring of receive requests; its memory is allocated on first use. */
struct nic_rq {
	uint8_t *ring;
	uint32_t size, max_sge;
	uint32_t mask;				/* of the ring, a power of two >= size */
	uint32_t head, tail;			/* posted, taken */
	bool full_told;				/* at this tail: */
	uint32_t full_at;
};

struct sim_srq {
	struct ibv_srq pub;
	struct nic_list node;
	struct nic_rq rq;
	uint32_t limit;				/* 0: not armed */
	unsigned int users;
	uint32_t async_reported;
	struct nic_async limit_reached;
	uint32_t number;
};

/* A send request.  Its scatter list, or its inline data, follows. */
struct nic_swqe {
	uint64_t wr_id;
	uint64_t remote_addr;
	union {
		struct {
			uint64_t compare_add, swap;
		};
		struct {
			uint64_t bind_length;	/* from remote_addr; rkey is the new key */
			uint32_t bind_lkey;	/* the region's; 0: none */
			uint32_t bind_access;
		};
		union ibv_gid ud_dgid;
	};
	uint32_t rkey;				/* UD: the remote Q_Key */
	union {
		uint32_t imm;			/* network order, as given */
		uint32_t bind_window;		/* its handle */
	};
	uint32_t length;
	uint32_t inflight;			/* bytes copied to the link, not acknowledged */
	uint32_t acked;				/* bytes of a fragmented message acknowledged */
	uint32_t remote_qpn;			/* UD */
	struct sim_port *ud_peer;
	uint32_t ud_peer_mac;
	uint8_t opcode;				/* enum ibv_wr_opcode */
	uint8_t flags;				/* enum ibv_send_flags */
	uint8_t status;				/* a local error found when its turn came */
	uint8_t num_sge;
	uint8_t ud_sgid_index;
	bool ud_global;
	uint8_t ud_tclass, ud_hop_limit;
	struct ibv_sge sge[];
};

/* Result of an atomic operation, kept for a repeated request. */
struct nic_atomic {
	uint32_t psn;
	bool valid;
	uint64_t value;
};

struct nic_builder;

struct sim_qp {
	struct nic_list node;
	struct sim_port *port;			/* ours */
	struct sim_port *peer;			/* where the connection leads; NULL: nowhere */
	uint32_t peer_mac;			/* its number when the path was set */
	unsigned int peer_slot;			/* RC: the process; SIM_MAX_SLOTS: not known yet */
	struct sim_id *owner;			/* iWARP: whom to tell that the stream ended */
	struct sim_timer timer;			/* requester: ACK time-out or RNR wait */

	/* Attributes. */
	uint8_t state;				/* enum ibv_qp_state */
	uint8_t type;				/* enum ibv_qp_type */
	uint8_t sq_sig_all;
	uint8_t path_mtu, timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t path_mig_state, alt_port_num, alt_timeout;
	bool sqd_notify;
	unsigned int access;
	uint32_t qkey;
	uint32_t dest_qpn;
	struct ibv_ah_attr ah, alt_ah;
	struct ibv_qp_cap cap;
	uint32_t first_sq_psn, first_rq_psn;	/* as they were set */

	/* Send queue: tail <= next <= high <= head, counted without end. */
	uint8_t *sq;				/* allocated on first use */
	uint32_t sq_mask;			/* of the ring, a power of two >= cap.max_send_wr */
	uint32_t sq_head;			/* posted */
	uint32_t sq_high;			/* sent at least once */
	uint32_t sq_next;			/* to be sent next */
	uint32_t sq_tail;			/* oldest that is not complete */
	uint32_t slow_since;			/* the same when the peer last let a post wait */
	bool is_slow;
	uint32_t mark;				/* sq_head at mark_at; iWARP, real clock */
	uint64_t mark_at, posted_at;		/* when it was, and when something was last posted */
	uint32_t sq_psn;			/* PSN of request number 0 */
	uint32_t tx_off;			/* of request sq_next, this much is sent */
	uint32_t rd_off;			/* of the read at sq_tail, this much is here */
	uint32_t inflight;
	uint8_t rd_outstanding;
	uint8_t retries_left, rnr_left;
	bool rnr_wait;
	bool went_back;				/* since the last answer, because of a loss */
	bool no_ref, no_read_ref;		/* the peer, we cannot pull: send data instead */
	bool read_by_value;			/* the last large read's data came in packets */
	bool read_dropped;			/* an answer came too early and was dropped */
	bool sqd_drained;
	bool cqe_lost;
	bool failure_told;			/* a bad completion, or what ended it */
	bool full_told;				/* at this sq_tail: */
	uint32_t full_at;

	/* Receive queue. */
	struct nic_rq rq;
	uint32_t rq_psn;			/* expected next */
	uint32_t rx_off;			/* of the message being received */
	bool nak_sent;				/* until the expected message comes */
	bool rx_held;				/* a receive request is taken for it */
	bool uc_dropping;			/* UC: until the next message begins */
	bool comm_est;
	struct nic_rwqe *srq_held;		/* that request, if it is from the SRQ; NULL: no SRQ */
	struct nic_atomic *atomics;		/* as many as the device allows; NULL: it has none */
	uint8_t num_atomics, next_atomic;

	struct nic_list groups;			/* UD: that it is attached to (mcast.c) */
	uint32_t async_reported;
	struct nic_async async[NIC_QP_EVENTS];
	struct nic_builder *builder;		/* of an ibv_qp_ex, else NULL */
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex ex;		/* allocated only if asked for */
	} pub;					/* last */
};

static inline struct sim_context *nic_context(struct ibv_context *context)
{
	return nic_container(context, struct sim_context, verbs.context);
}

static inline struct sim_device *nic_device(struct ibv_context *context)
{
	return nic_context(context)->device;
}

static inline struct sim_pd *nic_pd(struct ibv_pd *pd)
{
	return nic_container(pd, struct sim_pd, pub);
}

static inline struct sim_cq *nic_cq(struct ibv_cq *cq)
{
	return nic_container(cq, struct sim_cq, pub);
}

static inline struct sim_srq *nic_srq(struct ibv_srq *srq)
{
	return nic_container(srq, struct sim_srq, pub);
}

static inline struct sim_qp *nic_qp(struct ibv_qp *qp)
{
	return nic_container(qp, struct sim_qp, pub);
}

static inline bool nic_is_iwarp(const struct sim_device *device)
{
	return device->rules->protocol == POLYCM_PROTO_MPA;
}

static inline bool nic_qp_is_iwarp(const struct sim_qp *qp)
{
	return nic_is_iwarp(qp->port->device);
}

static inline uint32_t nic_qpn(const struct sim_qp *qp)
{
	return qp->pub.qp.qp_num;
}

extern struct sim_nic_counts nic_counts;

/* --- limits.c --- */

enum nic_kind { NIC_PD, NIC_MR, NIC_MW, NIC_CQ, NIC_SRQ, NIC_QP, NIC_AH, NIC_KINDS };
_Static_assert(NIC_KINDS <= SIM_DEVICE_KINDS, "a device counts all kinds");
/*
 * One more object: 0, ENOMEM or EINVAL where the device has no more of them, EIO
 * where it is gone.  What fails is told of.
 */
int nic_take(struct ibv_context *context, enum nic_kind kind);
void nic_give(struct ibv_context *context, enum nic_kind kind);

/* One line for people; free when nobody listens. */
#define nic_log(level, ...) do { \
	if (sim_core->log_enabled(level)) \
		sim_core->log(level, NULL, __VA_ARGS__); \
} while (0)
#define nic_debug(...) nic_log(POLYCM_LOG_DEBUG, __VA_ARGS__)

/* --- refuse.c --- */

/* Why what is under way fails: for the line of nic_tell_failure(), which is next.  Engine lock held. */
void nic_because(const char *format, ...) __attribute__((cold, format(printf, 1, 2)));
/*
 * What becomes of the QP or its request, with that reason: a line at `warn' for
 * the first failure of a QP since RESET, at `debug' for those that follow it.
 */
void nic_tell_failure(struct sim_qp *qp, const char *format, ...)
	__attribute__((cold, format(printf, 2, 3)));
/* Neither good nor flushed behind another one. */
static inline bool nic_is_bad(enum ibv_wc_status status)
{
	return __builtin_expect(status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR, 0);
}
/* The same for a completion that is bad. */
void nic_tell_bad(struct sim_qp *qp, const struct ibv_wc *wc, bool receive) __attribute__((cold));

/* One line at `warn': the program's call fails, and why.  Returns err, an errno. */
int nic_refuse(const struct sim_device *device, const char *call, int err, const char *format, ...)
	__attribute__((cold, format(printf, 4, 5)));
int nic_no_memory(const struct sim_device *device, const char *call) __attribute__((cold));

/* --- notify.c --- */

/* *ret_fd is the program's, read anew when it is wanted.  0 or an errno. */
int nic_notify_open(struct nic_notify *notify, int *ret_fd);
void nic_notify_close(struct nic_notify *notify);
void nic_notify_set(struct nic_notify *notify, bool readable);
/*
 * Without the lock: somebody looked for what was not there when the sequence
 * was that.  rounds counts the calls since it began to look.  0: look again;
 * else an errno: EAGAIN (the descriptor is non-blocking), EDEADLK, EINTR.
 */
int nic_notify_wait(struct nic_notify *notify, unsigned int sequence, unsigned int *rounds);

/* --- waiting.c --- */

/* The context whose asynchronous events, or the channel whose events, the descriptor announces. */
void nic_tell_deadlock(const char *call, int fd);

/* --- context.c, async.c --- */

extern struct nic_list nic_contexts;
void nic_context_close(struct sim_context *context);
void nic_close_all(void);

void nic_async_cq(struct sim_cq *cq, enum ibv_event_type type);
void nic_async_qp(struct sim_qp *qp, enum ibv_event_type type);
void nic_async_srq(struct sim_srq *srq, enum ibv_event_type type);
void nic_async_start(void);
/* Forget the events about an object that nobody has read. */
void nic_async_forget(struct sim_context *context, const void *element);
int sim_get_async_event(struct ibv_context *context, struct ibv_async_event *event);
void sim_ack_async_event(struct ibv_async_event *event);
/* In virtual time, and nobody is there who could acknowledge: told at error level. */
bool nic_acks_never_come(const uint32_t *completed, uint32_t reported, const char *what,
			 uint32_t number);
/* Without the lock: wait until so many events were acknowledged. */
void nic_await_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
		    uint32_t reported, const char *what, uint32_t number);

struct ibv_context *sim_open_device(struct ibv_device *device);
int sim_close_device(struct ibv_context *context);

/* --- device.c, sysfs.c --- */

int sim_query_device(struct ibv_context *context, struct ibv_device_attr *attr);
int sim_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr, size_t size);
int sim_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
int sim_query_port_ex(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		      size_t size);
int sim_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);
int sim_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		     struct ibv_gid_entry *entry, uint32_t flags);
ssize_t sim_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			    size_t max_entries, uint32_t flags);
int sim_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey);
int sim_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey);
int sim_read_sysfs_file(struct ibv_device *device, const char *file, char *buf, size_t size);
int sim_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
void nic_port_attr(const struct sim_port *port, struct ibv_port_attr *ret_attr);
/* The port of that number, or NULL. */
struct sim_port *nic_port(struct sim_device *device, uint32_t num);
/* Where an address vector leads: 0 and the port (NULL: to nobody), or EINVAL. */
int nic_resolve_ah(struct sim_device *device, const struct ibv_ah_attr *attr,
		   struct sim_port **ret_peer);

/* --- pd.c, ah.c --- */

struct ibv_pd *sim_alloc_pd(struct ibv_context *context);
int sim_dealloc_pd(struct ibv_pd *pd);
void nic_pd_free(struct sim_pd *pd);
struct ibv_ah *sim_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int sim_destroy_ah(struct ibv_ah *ah);
void nic_ah_free(struct sim_ah *ah);

/* --- mr.c --- */

struct ibv_mr *sim_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			  unsigned int access);
int sim_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access);
int sim_dereg_mr(struct ibv_mr *mr);
void nic_mr_free(struct sim_mr *mr);
/* A slot of the table of keys, for a region or a window: 0 or an errno. */
int nic_key_take(struct sim_mr *mr, struct sim_mw *mw, uint32_t *ret_index, uint32_t *ret_key);
void nic_key_drop(uint32_t index);
/* The window in that slot, the region with that key; or NULL. */
struct sim_mw *nic_mw_at(uint32_t index);
struct sim_mr *nic_mr_by_key(uint32_t key);
/* The window that the key was made for, bound or not; or NULL. */
struct sim_mw *nic_mw_by_key(uint32_t key);
void nic_mr_stop(void);
/* How far behind the beginning of its region an address is; 0: there is no such key. */
uint64_t nic_mr_offset(uint32_t key, uint64_t addr);
/*
 * The memory behind a key, if a QP of this PD may use it like that; NULL: it
 * may not, and *ret_why says why.
 */
void *nic_mr_resolve(const struct ibv_pd *pd, uint32_t key, uint64_t addr, uint64_t length,
		     unsigned int access, const char **ret_why);
/* The same for a peer's key, which may be a window's. */
void *nic_remote_resolve(const struct sim_qp *qp, uint32_t key, uint64_t addr, uint64_t length,
			 unsigned int access, const char **ret_why);
/* length bytes at offset of a scatter list: 0 and the parts, or -EACCES (with a log line). */
int nic_sge_resolve(const struct sim_qp *qp, const struct ibv_sge *sge, uint32_t num_sge,
		    uint32_t offset, uint32_t length, unsigned int access,
		    struct iovec iov[static NIC_MAX_SGE], unsigned int *ret_parts);

/* --- mw.c --- */

struct ibv_mw *sim_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int sim_dealloc_mw(struct ibv_mw *mw);
int sim_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
void nic_mw_free(struct sim_mw *mw);
/* The QP ends, and with it what is bound to it. */
void nic_mw_unbind_all(const struct sim_qp *qp);
/* The memory behind a window, as nic_mr_resolve(). */
void *nic_mw_resolve(const struct sim_mw *mw, const struct sim_qp *qp, uint64_t addr,
		     uint64_t length, unsigned int access, const char **ret_why);
/* Requests that no packet is sent for: bind and invalidate. */
static inline bool nic_is_local(const struct nic_swqe *wqe)
{
	return wqe->opcode == IBV_WR_BIND_MW || wqe->opcode == IBV_WR_LOCAL_INV;
}
enum ibv_wc_status nic_mw_execute(const struct sim_qp *qp, const struct nic_swqe *wqe);
/* Whoever has the key loses it.  false: it is none that may be invalidated through this QP. */
bool nic_mw_invalidate(const struct sim_qp *qp, uint32_t key);

/* --- channel.c, cq.c, cq_ex.c --- */

struct ibv_comp_channel *sim_create_comp_channel(struct ibv_context *context);
int sim_destroy_comp_channel(struct ibv_comp_channel *channel);
void nic_channel_free(struct sim_channel *channel);
void nic_channel_post(struct sim_channel *channel, struct sim_cq *cq);
void nic_channel_forget(struct sim_channel *channel, struct sim_cq *cq);
int sim_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void sim_ack_cq_events(struct ibv_cq *cq, unsigned int nevents);

struct ibv_cq *sim_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector);
/* size is the allocation's, at least that of the struct with an ibv_cq; 0 or an errno. */
int nic_cq_create(struct ibv_context *context, size_t size, int cqe, void *cq_context,
		  struct ibv_comp_channel *channel, int comp_vector, struct sim_cq **ret_cq);
int sim_resize_cq(struct ibv_cq *cq, int cqe);
int sim_destroy_cq(struct ibv_cq *cq);
void nic_cq_free(struct sim_cq *cq);
int sim_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int sim_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* false: the CQ is overrun and the completion lost. */
bool nic_cq_push(struct sim_cq *cq, const struct ibv_wc *wc, bool solicited);
struct ibv_cq_ex *sim_create_cq_ex(struct ibv_context *context,
				   struct ibv_cq_init_attr_ex *attr);
void nic_cursor_free(struct nic_cq_cursor *cursor);

/* --- srq.c, wr_recv.c --- */

struct ibv_srq *sim_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
struct ibv_srq *sim_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int sim_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int sim_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int sim_get_srq_num(struct ibv_srq *srq, uint32_t *number);
int sim_destroy_srq(struct ibv_srq *srq);
void nic_srq_free(struct sim_srq *srq);
/* Copy the oldest request out, with what follows from that; false: there is none. */
bool nic_srq_take(struct sim_srq *srq, struct nic_rwqe *ret_wqe);

int sim_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int sim_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
static inline size_t nic_rwqe_size(uint32_t max_sge)
{
	return sizeof(struct nic_rwqe) + max_sge * sizeof(struct ibv_sge);
}
static inline struct nic_rwqe *nic_rq_at(const struct nic_rq *rq, uint32_t index)
{
	return (struct nic_rwqe *)(void *)(rq->ring + (index & rq->mask) * nic_rwqe_size(rq->max_sge));
}
/* How many bytes it takes. */
static inline uint64_t nic_rwqe_room(const struct nic_rwqe *wqe)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < wqe->num_sge; i++)
		total += wqe->sge[i].length;
	return total;
}
/* The receive request that the message coming in now goes to; NULL: none is posted. */
struct nic_rwqe *nic_rq_hold(struct sim_qp *qp);
/* It is done: complete it. */
void nic_rq_complete(struct sim_qp *qp, struct ibv_wc *wc, bool solicited);
void nic_rq_flush(struct sim_qp *qp);

/* --- qp.c, qpn.c, qp_modify.c, qp_ex.c --- */

struct ibv_qp *sim_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *sim_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
/* Sizes as for nic_cq_create(). */
int nic_qp_create(struct ibv_pd *pd, size_t size, struct ibv_qp_init_attr *attr,
		  struct sim_qp **ret_qp);
int sim_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init_attr);
int sim_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int sim_destroy_qp(struct ibv_qp *qp);
void nic_qp_free(struct sim_qp *qp);
struct ibv_qp_ex *sim_qp_to_qp_ex(struct ibv_qp *qp);
void nic_builder_free(struct nic_builder *builder);

/* Forget all requests without completing them. */
void nic_qp_reset(struct sim_qp *qp);
/* Flush everything; by_program says what an iWARP stream's owner is told. */
void nic_qp_error(struct sim_qp *qp, bool by_program);
/* The same for a reason that the program has not caused: with an event. */
void nic_qp_fatal(struct sim_qp *qp, enum ibv_event_type type);
/* The program ends the stream: tell the owner, once. */
void nic_stream_closed(struct sim_qp *qp, bool by_program);
bool nic_stream_connecting(const struct sim_qp *qp);

int nic_qpn_take(struct sim_qp *qp, uint32_t *ret_qpn);
void nic_qpn_drop(uint32_t qpn);
struct sim_qp *nic_qp_by_number(uint32_t qpn);
void nic_qpn_stop(void);

/* --- show.c: QPs in traces --- */

void nic_qp_set_state(struct sim_qp *qp, uint8_t state);
const char *nic_qp_state_name(uint8_t state);
void nic_show_start(void);

/* --- wr_send.c --- */

int sim_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
/*
 * All of them or none; lock held, but not all the time: afterwards the QP may be
 * gone, whatever is returned.  0 or an errno.
 */
int nic_post_all(struct sim_qp *qp, struct ibv_send_wr *wr);
/*
 * Lock held, but not meanwhile: before a stream ends, the peer has what was
 * posted, as after siw's posts.  EINVAL: another thread has destroyed the QP.
 */
int nic_hand_over(struct sim_qp *qp);
static inline size_t nic_swqe_size(const struct sim_qp *qp)
{
	size_t sges = qp->cap.max_send_sge * sizeof(struct ibv_sge);
	size_t tail = sges > qp->cap.max_inline_data ? sges : qp->cap.max_inline_data;

	return sizeof(struct nic_swqe) + (tail + 7) / 8 * 8;
}
static inline struct nic_swqe *nic_sq_at(const struct sim_qp *qp, uint32_t index)
{
	return (struct nic_swqe *)(void *)(qp->sq + (index & qp->sq_mask) * nic_swqe_size(qp));
}
static inline bool nic_is_read(const struct nic_swqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_READ || wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}
/* The local memory of a request: length bytes at offset. */
int nic_swqe_resolve(const struct sim_qp *qp, struct nic_swqe *wqe, uint32_t offset,
		     uint32_t length, struct iovec iov[static NIC_MAX_SGE],
		     unsigned int *ret_parts);
/* The oldest request is done. */
void nic_sq_complete(struct sim_qp *qp, enum ibv_wc_status status);
void nic_sq_flush(struct sim_qp *qp);

/* --- mcast.c --- */

int sim_attach_mcast(struct ibv_qp *qp, const union ibv_gid *mgid, uint16_t lid);
int sim_detach_mcast(struct ibv_qp *qp, const union ibv_gid *mgid, uint16_t lid);
void nic_groups_detach_all(struct sim_qp *qp);

/* --- rc_*.c, ud.c --- */

void rc_start(void);
void ud_start(void);
/* Send what may be sent: RC; the unreliable types. */
void rc_transmit(struct sim_qp *qp);
void ud_transmit(struct sim_qp *qp);
void rc_timer(struct sim_timer *timer);
static inline void nic_transmit(struct sim_qp *qp)
{
	if (qp->type == IBV_QPT_RC)
		rc_transmit(qp);
	else
		ud_transmit(qp);
}
/* What sending or receiving has left to be done, outside of all loops. */
void nic_settle(struct sim_qp *qp);
/* Copy len bytes from one list of parts to another. */
void nic_copy(const struct iovec *to, unsigned int to_parts, const struct iovec *from,
	      unsigned int from_parts, size_t len);

#endif
