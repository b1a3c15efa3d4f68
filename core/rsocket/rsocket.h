/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rsocket/rsocket.h - what streams, datagrams and sets of descriptors have in common.
 *
 * An rsocket starts no thread.  It goes on in the calls that the program makes
 * on it, and in rpoll() and rselect().  Its number is the descriptor of an epoll
 * set with all that it may have to wait for: event channels, completion
 * channels, a UDP socket.  So whoever waits for an rsocket waits for one
 * descriptor, by poll(), which moves virtual time, too.
 *
 * All members are under rsocket_lock, which is not held while a thread waits.
 *
 * Several threads may wait for one rsocket.  What made its set readable stays
 * unread until the last of them has woken up (wait.c): else one could read it
 * before another has seen it.
 */
#ifndef POLYCM_CORE_RSOCKET_H
#define POLYCM_CORE_RSOCKET_H

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>

#include "core/base/fork.h"
#include "core/base/latch.h"

#define RSOCKET_LOW_WATER	2048u	/* less room than this in the send buffer is none */

struct rsocket;

/* Called with the rsocket locked unless it says otherwise; none waits. */
struct rsocket_ops {
	/* Take in what has happened, answer it, and go on with what is under way. */
	void (*advance)(struct rsocket *rs);
	/* Which of `wanted' there are, and POLLERR and POLLHUP. */
	short (*events)(struct rsocket *rs, short wanted);
	/* Let the set become readable when something happens.  true: it did not yet, so look again. */
	bool (*arm)(struct rsocket *rs);
	/* Nobody waits any more: read what made the set readable. */
	void (*collect)(struct rsocket *rs);
	/* Bytes, -EAGAIN where it must wait, or another negative errno. */
	ssize_t (*send)(struct rsocket *rs, const struct msghdr *msg, size_t done, int flags);
	ssize_t (*receive)(struct rsocket *rs, struct msghdr *msg, size_t done, int flags);
	/* When it has something to do though nothing happens, of polycm_now_ns(); UINT64_MAX: never. */
	uint64_t (*due_ns)(const struct rsocket *rs);
	int (*get_name)(struct rsocket *rs, bool peer, struct sockaddr *addr, socklen_t *len);
	/* Begin to end it; then advance() until ended(). */
	void (*end)(struct rsocket *rs);
	bool (*ended)(const struct rsocket *rs);
	/* Not locked: nobody else has it any more.  All but the struct itself. */
	void (*release)(struct rsocket *rs);
};

enum rsocket_kind { RSOCKET_STREAM, RSOCKET_DGRAM, RSOCKET_SET };

/* Sizes that options change until the queue pair is made. */
struct rsocket_sizes {
	uint32_t send_buffer, receive_buffer;
	uint16_t sends, receives;	/* of the queues */
	uint16_t inline_data;
	uint16_t iomaps;		/* that the peer may have here */
};

struct rsocket {
	enum rsocket_kind kind;
	const struct rsocket_ops *ops;
	int fd;				/* its number; never changes */
	struct polycm_forks forks;	/* when it was made */
	uint64_t serial;		/* never another's */
	unsigned int users;		/* under the index' lock */

	struct polycm_latch rsocket_lock;
	unsigned int sleepers;		/* threads that wait for fd */
	bool draining;			/* it was readable for one of them: no more until all woke up */
	bool closed;
	int wake_fd;			/* an eventfd in the set; -1: none yet */
	unsigned int fruitless;		/* calls in a row that found nothing */

	uint64_t polling_ns;		/* that a call looks before it sleeps */
	uint64_t receive_timeout_ns, send_timeout_ns;	/* 0: none */

	int fd_flags, status_flags;	/* F_GETFD and F_GETFL */
	uint64_t socket_options, tcp_options, ipv6_options;	/* those that are on, by their numbers */
	int tos;
	int error;			/* SO_ERROR, an errno */
	struct rsocket_sizes sizes;
};

/* --- index.c --- */

/* A new rsocket with a descriptor, in no index yet; size of the whole struct, which starts with this. */
int rsocket_create(enum rsocket_kind kind, const struct rsocket_ops *ops, size_t size,
		   struct rsocket **ret_rs);
/* From here on programs find it by its number. */
int rsocket_publish(struct rsocket *rs);
/* One that was not published. */
void rsocket_discard(struct rsocket *rs);
/* By its number; NULL with *ret_err: none, or one of the process that this one was forked from. */
struct rsocket *rsocket_get(int fd, int *ret_err);
void rsocket_put(struct rsocket *rs);
/* Whose number it is, as struct rsocket has it; 0: no rsocket's. */
uint64_t rsocket_serial(int fd);
/* No call finds it any more.  false: another thread did that. */
bool rsocket_unpublish(struct rsocket *rs);
/* In a child: give up the number and nothing else.  -EBADF: it is none. */
int rsocket_forget(int fd);
/* Add a descriptor to the rsocket's set. */
int rsocket_watch(struct rsocket *rs, int fd);

static inline void rsocket_lock(struct rsocket *rs)
{
	polycm_latch_take(&rs->rsocket_lock);
}

static inline void rsocket_unlock(struct rsocket *rs)
{
	polycm_latch_give(&rs->rsocket_lock);
}

/* --- wait.c --- */

/*
 * A thread is cancelled only while it sleeps, where it holds no lock: not in what else
 * of the calls below it is a place to be cancelled in.
 */
void rsocket_forbid_cancel(void);
void rsocket_allow_cancel(void);

/* How long a call has waited, and may. */
struct rsocket_patience {
	uint64_t began_ns;		/* of the system's clock; 0: not yet */
	uint64_t until_ns;		/* of polycm_now_ns(); UINT64_MAX: for ever */
};

#define RSOCKET_FOR_EVER ((struct rsocket_patience){ .until_ns = UINT64_MAX })

/* 0: for ever. */
struct rsocket_patience rsocket_patience(uint64_t timeout_ns);

/* May a call go on to look instead of sleeping?  Begins to count with the first call. */
bool rsocket_may_spin(struct rsocket_patience *patience, uint64_t polling_ns);
/* In ms for poll(), rounded up; -1: for ever. */
int rsocket_poll_timeout(uint64_t until_ns);
/*
 * The rsocket is locked, and is again when this returns: something may have
 * happened (0), or -EINTR, -EDEADLK, -EAGAIN after its time, -EBADF.  A cancellation point, if
 * it sleeps.
 */
int rsocket_wait(struct rsocket *rs, struct rsocket_patience *patience);
/* Count in before a sleep: 1: sleep; 0: look again first.  Then, awake, with whether fd was readable. */
int rsocket_fall_asleep(struct rsocket *rs);
void rsocket_wake_up(struct rsocket *rs, bool readable);
/* This thread changed something for which others may sleep. */
void rsocket_rouse(struct rsocket *rs);
/* A call found nothing.  Is it time to check what otherwise only a waiting call checks? */
bool rsocket_should_collect(struct rsocket *rs);

/* --- poll.c --- */

/* rpoll() without errno, and with a mask of signals for its sleep, or NULL. */
int rsocket_poll_fds(struct pollfd *fds, nfds_t num, int timeout, const sigset_t *mask);

/* --- call.c --- */

/* Does a call with these flags wait? */
bool rsocket_waits(const struct rsocket *rs, int flags);

/* The end of an exported call: the value, or -1 with errno and a line of log. */
ssize_t rsocket_ret(const char *call, ssize_t value);
/* The rsocket behind the number, locked; NULL: *ret_err says why.  No set. */
struct rsocket *rsocket_enter(int fd, int *ret_err);
/* The same for these kinds, each a bit. */
struct rsocket *rsocket_enter_kinds(int fd, unsigned int kinds, int *ret_err);
void rsocket_leave(struct rsocket *rs);

/* --- bytes.c --- */

/* Between a buffer and the vectors of a message, from its byte `at' on. */
void rsocket_gather(const struct msghdr *msg, size_t at, void *to, size_t len);
void rsocket_scatter(const struct msghdr *msg, size_t at, const void *from, size_t len);
/* All of its bytes; -EINVAL: too many. */
ssize_t rsocket_msg_len(const struct msghdr *msg);
/* As getsockname(): as much as fits, and how long it is. */
void rsocket_put_addr(const struct sockaddr *from, struct sockaddr *addr, socklen_t *len);
/* Whole pages, zeroed: what is registered must share no page with anything else. */
void *rsocket_pages(size_t len);

/* --- settings.c --- */

struct rsocket_settings {
	struct rsocket_sizes sizes;
	uint64_t polling_ns;
};

const struct rsocket_settings *rsocket_settings(void);

/* --- stream_open.c, dgram.c --- */

int rsocket_open_stream(int domain, struct rsocket **ret_rs);
int rsocket_open_dgram(int domain, struct rsocket **ret_rs);

#endif
