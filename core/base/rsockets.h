/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/rsockets.h - what libpolycm-sockets needs of rsockets besides <rdma/rsocket.h>: sets, and
 * waits with a signal mask, which is in force while the call sleeps.  NULL: the thread's own.
 */
#ifndef POLYCM_CORE_RSOCKETS_H
#define POLYCM_CORE_RSOCKETS_H

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* rdma-core's header has them only since its version 65. */
int repoll_create(int flags);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout);

int polycm_rsocket_ppoll(struct pollfd *fds, nfds_t nfds, int timeout, const sigset_t *mask);
/* sets: for reading, writing and exceptions; each may be NULL. */
int polycm_rsocket_pselect(int nfds, fd_set *sets[3], const struct timespec *timeout,
			   const sigset_t *mask);
int polycm_rsocket_epoll_pwait(int epfd, struct epoll_event *events, int maxevents, int timeout,
			       const sigset_t *mask);

/* A UDP socket of libpolycm itself, which libpolycm-sockets is not to make an rsocket. */
static inline int polycm_udp_socket(int family, int flags)
{
	return (int)syscall(SYS_socket, family, SOCK_DGRAM | SOCK_CLOEXEC | flags, 0);
}

#endif
