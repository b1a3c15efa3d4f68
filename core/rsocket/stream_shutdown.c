/* SPDX-License-Identifier: BSD-2-Clause */
/* rsocket/stream_shutdown.c - ending a stream, and finding out that its peer lives. */
#include "config.h"
#include "stream.h"

#include <errno.h>

#include "core/base/clock.h"
#include "core/base/why.h"

#define NS_PER_S UINT64_C(1000000000)

/* What to tell the peer for what the program ends; -1: nothing yet. */
static int message_for(struct stream *s, int how)
{
	if (how == SHUT_RD || how == SHUT_RDWR)
		s->can_read = false;
	if (how == SHUT_RD)
		return s->can_write ? -1 : RSOCKET_DISCONNECT;
	s->can_write = false;
	return s->can_read ? RSOCKET_SHUTDOWN : RSOCKET_DISCONNECT;
}

int stream_shutdown(struct stream *s, int how)
{
	bool could_write = s->can_write;
	int what;

	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	if (s->state == STREAM_ENDED || s->state == STREAM_FAILED)
		return 0;
	if (s->state != STREAM_CONNECTED)
		return polycm_fail(-ENOTCONN, "it is not connected");
	if (!s->can_read && !s->can_write)
		return 0;
	if (!stream_has_controls(s, 1))
		return -EAGAIN;
	what = message_for(s, how);
	rsocket_rouse(&s->rs);
	if (what < 0 || (how == SHUT_WR && !could_write))
		return 0;
	return stream_post_control(s, (enum rsocket_control)what);
}

/* On its way to the end until all was sent, as close() of a socket that lingers. */
void stream_end(struct rsocket *rs)
{
	struct stream *s = stream_of(rs);

	s->keepalive_ns = 0;
	/* It has sent nothing, and says nothing now: the connection ends with the queue pair. */
	if (s->silent)
		s->can_read = s->can_write = false;
	if (s->state == STREAM_CONNECTED && (s->can_read || s->can_write))
		(void)stream_shutdown(s, SHUT_RDWR);
}

bool stream_ended(const struct rsocket *rs)
{
	const struct stream *s = (const struct stream *)rs;

	return s->state != STREAM_CONNECTED || (!s->can_read && !s->can_write && stream_all_sent(s));
}

void stream_set_keepalive(struct stream *s, uint64_t seconds)
{
	s->keepalive_ns = seconds * NS_PER_S;
	s->keepalive_due_ns = polycm_now_ns() + s->keepalive_ns;
}

/* A write of nothing: the peer's device acknowledges it, or the connection fails. */
void stream_keep_alive(struct stream *s)
{
	uint64_t now;

	if (s->state != STREAM_CONNECTED)
		return;
	now = polycm_now_ns();
	if (now < s->keepalive_due_ns)
		return;
	s->keepalive_due_ns = now + s->keepalive_ns;
	if (stream_has_controls(s, 1))
		(void)stream_post_control(s, RSOCKET_KEEPALIVE);
}
