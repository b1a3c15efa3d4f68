/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/descriptors.h - calls that may wait for a descriptor.  The kernel is asked without waiting;
 * where it would wait, the thread gives up the turn and asks again after each change.
 */
#ifndef TURN_DESCRIPTORS_H
#define TURN_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

#include "trap.h"

/* poll(), ppoll(), select(), pselect6(), epoll_wait() and its kin. */
long turn_poll(const struct turn_call *call);
long turn_select(const struct turn_call *call);
long turn_epoll(const struct turn_call *call);

/* Reads, writes, accept() and the like; what they do may make other descriptors ready. */
long turn_input(const struct turn_call *call);
long turn_output(const struct turn_call *call);
/* read() and write() of a file of the file system. */
long turn_file(const struct turn_call *call);
/* splice(), tee(), sendfile(), vmsplice().  In between.c. */
long turn_between(const struct turn_call *call);
long turn_between_memory(const struct turn_call *call);
/* io_submit(), io_getevents(), io_pgetevents().  In requests.c. */
long turn_requests_submit(const struct turn_call *call);
long turn_requests_wait(const struct turn_call *call);
/* open() or openat() of a FIFO without O_NONBLOCK; its flags are that argument. */
long turn_open_fifo(const struct turn_call *call, unsigned int flags_at);
long turn_connect(const struct turn_call *call);
/* flock(), fcntl(F_SETLKW) and F_OFD_SETLKW. */
long turn_lock(const struct turn_call *call);
/* mq_timedsend(), mq_timedreceive(). */
long turn_queue(const struct turn_call *call);
/* msgsnd(), msgrcv(), semop(), semtimedop(). */
long turn_ipc(const struct turn_call *call);
/* wait4(), waitid(). */
long turn_wait_child(const struct turn_call *call);

/* The call as it is. */
long turn_through(const struct turn_call *call);
/* The kernel has something for it, or an error. */
bool turn_is_ready(int fd, short events);
/* What /proc/self/fdinfo says of it, as text; false: nothing. */
bool turn_descriptor_info(int fd, char *lines, size_t size);
/*
 * The number of the first of these lines that begins with "name:", and what is behind it; NULL: no
 * line begins so, or there is no number.
 */
const char *turn_descriptor_number(const char *lines, const char *name, uint64_t *ret);
/* It has an error, or its peer has gone: a call would take that. */
bool turn_has_failed(int fd);
/* The same of a call that has done a part: what is left is for the next one.  POLLIN or POLLOUT. */
bool turn_rest_is_over(int fd, short events);
/* A descriptor of a call that waits. */
bool turn_may_wait(int fd);
/*
 * The call on a descriptor that would make it wait, until it has another result than that; option:
 * SO_RCVTIMEO or SO_SNDTIMEO, which a socket may have.
 */
long turn_without_waiting(const struct turn_call *call, int fd, short events, int option);
/* The same for the rest of a message.  0: the socket has failed, of which the next call tells. */
long turn_rest_without_waiting(const struct turn_call *call, int fd, short events, int option);
/* When that option ends a wait that begins now; TURN_NEVER: it does not. */
uint64_t turn_limit_of(int fd, int option);
/* The result of a call that may have made other descriptors ready. */
long turn_done(long result);

#endif
