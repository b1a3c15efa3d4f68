/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/traces.h - calls that leave something behind when all processes of a run have ended: objects
 * that outlive them, and changes of their namespaces.  Another run there would see it.
 */
#ifndef TURN_TRACES_H
#define TURN_TRACES_H

#include "trap.h"

/* Calls that leave traces, whatever they are given. */
long turn_traces(const struct turn_call *call);
/* socket(), and what is sent by sockets that can change the network. */
long turn_traces_socket(const struct turn_call *call);
void turn_traces_before_send(const struct turn_call *call);
/* A file that was opened: settings of the kernel are files. */
void turn_traces_opened(int fd, const char *path, long flags);

#endif
