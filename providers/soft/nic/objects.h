/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/objects.h - the objects of the simulated NIC.
 *
 * Ownership: a program's object lives from its create to its destroy call, or
 * until its context is closed.  Everything is protected by the engine's lock
 * but for the consumer side of a completion queue (cq.c) and the counters of
 * acknowledged events, which have the mutex that is part of the public struct.
 */
#ifndef SIM_NIC_OBJECTS_H
#define SIM_NIC_OBJECTS_H

#include <stdatomic.h>

#include "providers/soft/fabric/fabric.h"
#include "known.h"
#include "list.h"
#include "nic.h"

#define NIC_PSN_MASK 0xffffffu
#define NIC_QPN_MASK 0xffffffu
#define NIC_MAX_SGE 32u
#define NIC_MAX_INLINE 1024u
#define NIC_MAX_MESSAGE (1u << 30)	/* of any port */
#define NIC_GRH_SIZE 40u
#define NIC_TCP_RETRIES 15u

/* A descriptor that is readable while something is queued (notify.c). */
struct nic_notify {
	int fd;					/* the NIC's; the program may move its own */
	const int *program_fd;			/* where the program has its number for the same file */
	bool signalled;
	atomic_uint sequence;			/* a futex: changes when it becomes readable */
	atomic_uint waiters;
};

/*
 * An asynchronous event that the program has not read.  Each object has one for each
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
enum nic_port_event { NIC_PORT_OTHER, NIC_PORT_ACTIVE, NIC_PORT_ERR, NIC_PORT_EVENTS };
#define NIC_PORTS (sizeof(((struct sim_device *)0)->ports) / sizeof(struct sim_port))

enum nic_kind { NIC_QP, NIC_CQ, NIC_SRQ, NIC_CHANNEL, NIC_MR, NIC_MW, NIC_AH, NIC_PD, NIC_XRCD,
		NIC_TD, NIC_DM, NIC_KINDS };
_Static_assert(NIC_KINDS == SIM_DEVICE_KINDS, "a device counts all kinds");

struct sim_context {
	struct sim_device *device;
	struct nic_list node;			/* among all contexts */
	struct nic_list objects[NIC_KINDS];
	struct nic_list events;			/* async.c: not read yet */
	/*
	 * ibv_import_device() makes contexts of one file, which share their objects; the
	 * first one counts them.  A closed one keeps its objects until the last is closed.
	 */
	struct sim_context *file;		/* the first one */
	unsigned int openings;
	bool closed;
	struct nic_async removed, port_events[NIC_PORTS][NIC_PORT_EVENTS];
	struct nic_notify notify;
	struct verbs_context verbs;		/* last, as libibverbs wants it */
};

struct sim_td {
	struct ibv_td pub;
	struct nic_list node;
	unsigned int users;			/* parent domains */
};

/*
 * The program's handles of an object: its own, and those of ibv_import_*().  `object' of each
 * leads to the first, which is the object.  Any of them may destroy it; its memory stays until
 * the program has given up all handles.
 */
struct nic_handles {
	unsigned int count;
	bool destroyed;
};

/* A protection domain; or a parent domain, which protects as the one that it was made of. */
struct sim_pd {
	struct ibv_pd pub;
	struct nic_list node;
	struct sim_pd *object;
	struct nic_handles handles;
	unsigned int users;			/* of a handle; the object: all */
	struct sim_pd *protection;		/* the object; a parent domain: the other one */
	struct sim_td *td;			/* of a parent domain; or NULL */
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t type);		/* the program's, for queues; NULL: malloc() */
	void (*free)(struct ibv_pd *pd, void *pd_context, void *buffer, uint64_t type);
	void *pd_context;
};

/* Memory of the device: programs reach it by the two calls in pub, and by its regions. */
struct sim_dm {
	struct ibv_dm pub;
	struct nic_list node;
	struct sim_dm *object;
	struct nic_handles handles;
	char *memory;
	size_t length;
	unsigned int users;			/* regions */
};

struct nic_xrc_domain;

/* One opening of an XRC domain (xrc.c). */
struct sim_xrcd {
	struct ibv_xrcd pub;
	struct nic_list node;
	struct nic_xrc_domain *domain;
	unsigned int users;
};

struct sim_mr {
	struct ibv_mr pub;
	struct nic_list node;
	struct sim_mr *object;
	struct nic_handles handles;
	char *memory;				/* behind iova */
	struct sim_dm *dm;			/* whose memory it is; NULL: the program's */
	uint64_t iova;
	unsigned int access;
	unsigned int windows;			/* bound to it */
	struct sim_pages *pages;		/* that other processes map (direct.c), or NULL */
	bool moving_tried;			/* not moved, for a reason that stays */
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
	struct sim_port *peer;			/* NULL: no port has that address */
	uint32_t peer_mac;			/* its number then */
};

struct sim_channel {
	struct ibv_comp_channel pub;
	struct nic_list node;
	struct nic_list ready;			/* CQs with unread events */
	struct nic_notify notify;
};

/* Memory of a queue (pd.c). */
struct nic_queue {
	void *at;
	struct sim_pd *from;			/* the parent domain whose allocator gave it; or NULL */
};

enum cq_armed { CQ_IDLE, CQ_ARMED_SOLICITED, CQ_ARMED };

struct sim_cq {
	struct nic_list node, ready;
	unsigned int users;			/* queues that complete here */
	uint32_t events_queued;			/* in the channel, not read yet */
	uint32_t events_reported, async_reported;
	struct nic_async full;
	bool overrun;
	uint32_t solicited;			/* head behind the last one that was solicited */

	/* Shared with the consumer, who does not take the engine's lock. */
	atomic_uint armed;			/* enum cq_armed */
	atomic_uint head, tail;			/* producer's and consumer's count */
	pthread_spinlock_t cq_lock;		/* consumer side: tail, ring, size */
	uint32_t ring_size;			/* power of two */
	struct nic_queue ring;			/* of struct ibv_wc */
	struct ibv_pd *parent;			/* that it was created with; or NULL */
	uint64_t *times;			/* of each entry, on the engine's clock; or NULL */

	struct nic_cq_cursor *cursor;		/* of an ibv_cq_ex, else NULL */
	struct nic_known known;
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

/* A ring of receive requests; its memory is allocated on first use, or by the program. */
struct nic_rq {
	struct nic_queue ring;
	uint32_t size, max_sge;
	uint32_t mask;				/* of the ring, a power of two >= size */
	uint32_t head, tail;			/* posted, taken */
	bool full_logged;
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
	struct sim_xrcd *xrcd;			/* NULL: a basic one */
	struct sim_cq *cq;			/* XRC: where its receives complete */
	struct nic_list in_domain;
	struct nic_known known;
};

/* A send request.  Its scatter list, or its inline data, follows. */
struct nic_swqe {
	uint64_t wr_id;
	uint64_t remote_addr;
	union {
		struct {
			/* Atomic write: the value.  Flush: the length; placement, RC_FLUSH_LEVEL. */
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
	uint32_t remote_qpn;			/* UD; XRC: xrc_srqn of the header */
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
	struct sim_port *port;			/* its own */
	struct sim_port *peer;			/* where the connection leads; NULL: nowhere */
	uint32_t peer_mac;			/* its number when the path was set */
	unsigned int peer_slot;			/* RC: the process; SIM_NOBODY: not known yet */
	struct sim_id *owner;			/* iWARP: of the stream, for the callbacks */
	struct ibv_pd *pd;			/* that keys are held against */
	struct sim_srq *srq;			/* that receives come from; NULL: from its own queue */
	struct sim_cq *recv_cq;
	struct nic_xrc_domain *domain;		/* XRC_RECV: the three above are the last request's */
	struct nic_list in_domain;

	/*
	 * The program's handles of a QP: this one, and for XRC_RECV those of ibv_open_qp(),
	 * which use what is here and above `port' only.  It ends with the last one; its
	 * memory stays while a handle waits for acknowledgements.
	 */
	struct sim_qp *real;			/* itself, or what the handle was opened for */
	struct nic_list handles, in_handles;
	unsigned int refs;
	struct sim_xrcd *xrcd;			/* XRC_RECV: that the handle was opened through */
	struct sim_timer timer;			/* requester: ACK time-out or RNR wait */

	uint8_t state;				/* enum ibv_qp_state */
	uint8_t type;				/* enum ibv_qp_type */
	uint8_t sq_sig_all;
	bool sqd_notify;
	bool ece_is_new;			/* asked for since the last change of state (ece.c) */
	uint32_t ece_asked, ece_options;
	struct ibv_qp_attr attr;		/* as set, but for states, PSNs and the port */

	/* Send queue: tail <= next <= high <= head, counted without end. */
	struct nic_queue sq;			/* allocated on first use, or by the program */
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
	uint32_t entry;				/* what it publishes, from 1; 0: nothing (direct.h) */
	uint32_t peer_entry;			/* the peer's; 0: it has offered none */
	uint32_t last_message;			/* behind the last request that has to be a packet */
	uint32_t packets_key;			/* requests with this rkey were refused lately */
	bool is_direct;				/* the peer's memory was not closed lately */
	bool failure_logged;			/* a bad completion, or what ended it */
	bool full_logged;			/* that the send queue was, once */

	/* Receive queue. */
	struct nic_rq rq;
	uint32_t rq_psn;			/* expected next */
	uint32_t rx_off;			/* of the message being received */
	struct sim_qp *next_owing;		/* rc_ack.c */
	uint32_t ack_psn, ack_rkey;		/* of the acknowledgement that is owed */
	bool owes_ack;
	bool has_last_word;			/* the ring has its sim_link_last_word() .. */
	uint32_t last_word_psn;			/* .. which acknowledges up to this one */
	bool awaits_answer;			/* of the program, to the message read last */
	uint8_t answers;			/* that the last messages had before the next poll */
	unsigned int read_at;			/* sim_poll_turn() when that was acknowledged */
	bool nak_sent;				/* until the expected message comes */
	bool rx_held;				/* a receive request is taken for it */
	bool uc_dropping;			/* UC: until the next message begins */
	bool comm_est;
	struct nic_rwqe *srq_held;		/* that request, if it is from an SRQ */
	struct nic_atomic *atomics;		/* as many as the device allows; NULL: it has none */
	uint8_t num_atomics, next_atomic;

	struct nic_list groups;			/* UD: that it is attached to (mcast.c) */
	uint32_t async_reported;
	struct nic_async async[NIC_QP_EVENTS];
	struct nic_builder *builder;		/* of an ibv_qp_ex, else NULL */
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex ex;		/* allocated only if asked for */
		struct nic_qp_newest {		/* the same, with what headers of rdma-core 44 lack */
			char ex[offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void (*)(void))];
			void (*wr_flush)(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
					 size_t length, uint8_t type, uint8_t level);
		} newest;
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

/* What keys are held against.  NULL for NULL. */
static inline struct ibv_pd *nic_protection(struct ibv_pd *pd)
{
	return pd ? &nic_pd(pd)->protection->pub : NULL;
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

/* The QP that the handle is of. */
static inline struct sim_qp *nic_real_qp(struct ibv_qp *qp)
{
	return nic_qp(qp)->real;
}

static inline struct sim_xrcd *nic_xrcd(struct ibv_xrcd *xrcd)
{
	return nic_container(xrcd, struct sim_xrcd, pub);
}

static inline bool nic_is_iwarp(const struct sim_device *device)
{
	return device->rules->protocol == POLYCM_PROTO_MPA;
}

static inline bool nic_qp_is_iwarp(const struct sim_qp *qp)
{
	return nic_is_iwarp(qp->port->device);
}

/* Only the first entry of a P_Key table is a P_Key; with another one a QP reaches nobody. */
static inline bool nic_has_pkey(const struct sim_qp *qp)
{
	return !qp->attr.pkey_index;
}

static inline uint32_t nic_qpn(const struct sim_qp *qp)
{
	return qp->pub.qp.qp_num;
}

/* --- objects.c --- */

/* Why a handle cannot be imported: the kind and the number. */
#define NIC_NO_HANDLE "no %s of a context of this descriptor has the handle %u"

/* calloc().  NULL: errno is set, and a log line says so. */
void *nic_alloc(const struct sim_device *device, const char *call, size_t size);
/* For calls that create: frees the object (NULL: none yet), sets errno, returns NULL. */
void *nic_fail(void *object, int err);
/*
 * Count a new object, and put it on its context's list.  It keeps the PD from
 * being deallocated (NULL: it has none).  0, ENOMEM or EINVAL if the device has
 * no more of them, EIO if the device is removed; with a log line.  Lock held.
 */
int nic_add(struct ibv_context *context, const char *call, enum nic_kind kind,
	    struct nic_list *node, struct ibv_pd *pd);
/* The same without limits. */
void nic_enter(struct ibv_context *context, enum nic_kind kind, struct nic_list *node,
	       struct ibv_pd *pd);
/* May objects be made with this handle of a PD?  0, or EINVAL with a log line.  Lock held. */
int nic_check_pd(const char *call, struct ibv_pd *pd);
/* An object is made with this handle of a PD (NULL: none), or goes: by is 1 or -1. */
void nic_use_pd(struct ibv_pd *pd, unsigned int by);
void nic_remove(struct ibv_context *context, enum nic_kind kind, struct nic_list *node,
		struct ibv_pd *pd);
/*
 * A handle is the program's no longer.  Should the object's memory be freed?  A handle's that is
 * not the object should be in any case.  Lock held.
 */
bool nic_handle_dropped(struct nic_handles *handles);
/* How many of each kind the device has. */
void nic_show_objects(const struct sim_device *device, const struct polycm_report *to);

/* Destroy an object that nothing refers to any more, or whose context is closed.  Lock held. */
void nic_qp_free(struct sim_qp *qp);
void nic_srq_free(struct sim_srq *srq);
void nic_cq_free(struct sim_cq *cq);
void nic_channel_free(struct sim_channel *channel);
void nic_ah_free(struct sim_ah *ah);
void nic_mw_free(struct sim_mw *mw);
void nic_mr_free(struct sim_mr *mr);
void nic_pd_free(struct sim_pd *pd);
void nic_td_free(struct sim_td *td);
void nic_dm_free(struct sim_dm *dm);
void nic_xrcd_free(struct sim_xrcd *xrcd);

#endif
