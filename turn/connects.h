/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/connects.h - connections that are carried (carried.h) and being made: in the segment, from
 * connect() until the program has its result.  Whoever carries them tells here what becomes of each.
 */
#ifndef TURN_CONNECTS_H
#define TURN_CONNECTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct turn_connect;

/* Of the socket, by which it is known here (SO_COOKIE); 0: it is none. */
uint64_t turn_connects_cookie(int fd);
/* NULL: that socket has none, nor a result that nobody has taken. */
struct turn_connect *turn_connects_find(uint64_t cookie);
struct turn_connect *turn_connects_of(int fd);
/* Of a socket that has none which is held; NULL: there are too many. */
struct turn_connect *turn_connects_begin(uint64_t cookie);
/* It has not begun after all, or its result is of no interest any more. */
void turn_connects_forget(struct turn_connect *connect);
/* Its result is not known yet. */
bool turn_connects_is_held(const struct turn_connect *connect);
/* The program itself ends it; the carrier learns of it when it is to connect the socket. */
void turn_connects_give_up(struct turn_connect *connect, int fd);
bool turn_connects_is_given_up(const struct turn_connect *connect);
/* The carrier told of an error. */
bool turn_connects_has_failed(const struct turn_connect *connect);
/* The result, once. */
long turn_connects_take(struct turn_connect *connect);

/* --- For the carrier (turn_tells.h). --- */

int turn_connects_now(uint32_t number, int fd, const struct sockaddr *to, socklen_t len);
void turn_connects_fails(uint32_t number, int fd, int result);
void turn_connects_reset_means(uint64_t cookie, int error);
void turn_connects_port_is_for(uint16_t port, uint16_t other);

#endif
