/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/tcp.h - TCP: what is sent is at the peer at once, whatever Linux would wait for in real time. */
#ifndef TURN_TCP_H
#define TURN_TCP_H

#include <stdbool.h>

#include "trap.h"

bool turn_tcp_is(int fd);
long turn_socket(const struct turn_call *call);
long turn_set_option(const struct turn_call *call);

#endif
