/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rsocket/options.c - rsetsockopt(), rgetsockopt(), rfcntl().
 *
 * Options that have no meaning over a reliable connection of queue pairs are taken
 * and, where they are switches, remembered: programs for sockets set them.
 */
#include "config.h"
#include "rsocket.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "core/base/export.h"
#include "core/base/why.h"
#include "dgram.h"
#include "stream.h"

#define QUEUE_MOST 0xfffeu

/* How an option is stored. */
enum option_kind {
	SWITCH,				/* remembered */
	IGNORED,			/* reads as 1 */
	BUFFER, QUEUE, INLINE, IOMAPS,	/* sizes */
	LINGER, TIMEOUT, REUSEADDR, KEEPALIVE, KEEPIDLE, V6ONLY, TOS, ROUTE,
	READ_ERROR, READ_SEGMENT, READ_INFO, READ_TYPE, READ_LISTENS,
};

struct option {
	int level, name;
	enum option_kind kind;
	size_t at;			/* of the size, or of the set of switches, in struct rsocket */
};

#define SIZE(member) offsetof(struct rsocket, sizes.member)
#define SET(member) offsetof(struct rsocket, member)

static const struct option options[] = {
	{ SOL_SOCKET, SO_REUSEADDR, REUSEADDR, SET(socket_options) },
	{ SOL_SOCKET, SO_KEEPALIVE, KEEPALIVE, SET(socket_options) },
	{ SOL_SOCKET, SO_OOBINLINE, SWITCH, SET(socket_options) },
	{ SOL_SOCKET, SO_REUSEPORT, SWITCH, SET(socket_options) },
	{ SOL_SOCKET, SO_BROADCAST, SWITCH, SET(socket_options) },
	{ SOL_SOCKET, SO_LINGER, LINGER, SET(socket_options) },
	{ SOL_SOCKET, SO_RCVTIMEO, TIMEOUT, SET(receive_timeout_ns) },
	{ SOL_SOCKET, SO_SNDTIMEO, TIMEOUT, SET(send_timeout_ns) },
	{ SOL_SOCKET, SO_RCVBUF, BUFFER, SIZE(receive_buffer) },
	{ SOL_SOCKET, SO_SNDBUF, BUFFER, SIZE(send_buffer) },
	{ SOL_SOCKET, SO_ERROR, READ_ERROR, 0 },
	{ SOL_SOCKET, SO_TYPE, READ_TYPE, 0 },
	{ SOL_SOCKET, SO_ACCEPTCONN, READ_LISTENS, 0 },
	{ IPPROTO_IP, IP_TOS, TOS, 0 },
	{ IPPROTO_IPV6, IPV6_V6ONLY, V6ONLY, SET(ipv6_options) },
	{ IPPROTO_TCP, TCP_NODELAY, SWITCH, SET(tcp_options) },
	{ IPPROTO_TCP, TCP_KEEPIDLE, KEEPIDLE, 0 },
	{ IPPROTO_TCP, TCP_KEEPCNT, IGNORED, 0 },
	{ IPPROTO_TCP, TCP_KEEPINTVL, IGNORED, 0 },
	{ IPPROTO_TCP, TCP_CONGESTION, IGNORED, 0 },
	{ IPPROTO_TCP, TCP_MAXSEG, READ_SEGMENT, 0 },
	{ IPPROTO_TCP, TCP_INFO, READ_INFO, 0 },
	{ SOL_RDMA, RDMA_SQSIZE, QUEUE, SIZE(sends) },
	{ SOL_RDMA, RDMA_RQSIZE, QUEUE, SIZE(receives) },
	{ SOL_RDMA, RDMA_INLINE, INLINE, SIZE(inline_data) },
	{ SOL_RDMA, RDMA_IOMAPSIZE, IOMAPS, SIZE(iomaps) },
	{ SOL_RDMA, RDMA_ROUTE, ROUTE, 0 },
};

static const struct option *find(int level, int name)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (options[i].level == level && options[i].name == name)
			return &options[i];
	return NULL;
}

static void *member(struct rsocket *rs, const struct option *option)
{
	return (uint8_t *)rs + option->at;
}

static void set_switch(struct rsocket *rs, const struct option *option, bool on)
{
	uint64_t *set = member(rs, option);
	uint64_t bit = UINT64_C(1) << option->name;

	*set = on ? *set | bit : *set & ~bit;
}

static bool get_switch(struct rsocket *rs, const struct option *option)
{
	const uint64_t *set = member(rs, option);

	return *set >> option->name & 1;
}

/* Sizes are the program's to choose until memory is made by them. */
static bool sizes_are_final(const struct rsocket *rs)
{
	const struct stream *s = (const struct stream *)rs;

	return rs->kind == RSOCKET_STREAM ? s->state >= STREAM_RESOLVING_ADDR : dgram_has_queues(rs);
}

static int set_size(struct rsocket *rs, const struct option *option, int value)
{
	uint32_t size = value < 0 ? 0 : (uint32_t)value;
	uint32_t queue = size < QUEUE_MOST ? size : QUEUE_MOST;

	if (sizes_are_final(rs))
		return option->kind == BUFFER ? 0 : polycm_fail(-EINVAL, "it is too late for that");
	switch (option->kind) {
	case BUFFER:
		/* Twice as much, as sockets do. */
		size = size < 1u << 29 ? size * 2 : 1u << 30;
		*(uint32_t *)member(rs, option) = size > 2 * RSOCKET_LOW_WATER ? size :
						  2 * RSOCKET_LOW_WATER;
		return 0;
	case IOMAPS:
		queue = rsocket_scale_up(rsocket_scale_down(size));
		break;
	default:
		break;
	}
	*(uint16_t *)member(rs, option) = (uint16_t)queue;
	return 0;
}

static int set_timeout(struct rsocket *rs, const struct option *option, const void *value, socklen_t len)
{
	struct timeval time;

	if (len < sizeof(time))
		return polycm_fail(-EINVAL, "an option of %u bytes", len);
	memcpy(&time, value, sizeof(time));
	if (time.tv_usec < 0 || time.tv_usec >= 1000000 || time.tv_sec < 0)
		return polycm_fail(-EDOM, "a timeout of %lld s and %lld us", (long long)time.tv_sec,
				   (long long)time.tv_usec);
	*(uint64_t *)member(rs, option) = time.tv_sec > INT32_MAX ? 0 :
		((uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec) * 1000;
	return 0;
}

/* --- streams --- */

static unsigned int system_keepalive(void)
{
	FILE *file = fopen("/proc/sys/net/ipv4/tcp_keepalive_time", "re");
	unsigned int seconds = 7200;

	if (!file)
		return seconds;
	if (fscanf(file, "%u", &seconds) != 1)
		seconds = 7200;
	fclose(file);
	return seconds;
}

static int set_keepalive(struct stream *s, bool on)
{
	if (!s->keepalive_idle)
		s->keepalive_idle = system_keepalive();
	stream_set_keepalive(s, on ? s->keepalive_idle : 0);
	return 0;
}

static int set_keepidle(struct stream *s, int value)
{
	if (value <= 0)
		return polycm_fail(-EINVAL, "TCP_KEEPIDLE of %d s", value);
	s->keepalive_idle = (unsigned int)value;
	if (s->keepalive_ns)
		stream_set_keepalive(s, s->keepalive_idle);
	return 0;
}

static int set_route(struct stream *s, const void *value, socklen_t len)
{
	void *copy;

	if (sizes_are_final(&s->rs))
		return polycm_fail(-EINVAL, "it is too late for that");
	copy = malloc(len ? len : 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, value, len);
	free(s->route);
	s->route = copy;
	s->route_len = len;
	return 0;
}

static int set_id_option(struct stream *s, int name, const void *value, socklen_t len)
{
	if (rdma_set_option(s->id, RDMA_OPTION_ID, name, (void *)(uintptr_t)value, len))
		return -errno;
	return 0;
}

static int set_on_stream(struct stream *s, const struct option *option, const void *value,
			 socklen_t len, int number)
{
	int err = 0;

	switch (option->kind) {
	case REUSEADDR:
		err = set_id_option(s, RDMA_OPTION_ID_REUSEADDR, value, len);
		/* Sockets take it at any time, where it has no effect. */
		err = err && s->state != STREAM_NEW ? 0 : err;
		break;
	case V6ONLY:
		err = set_id_option(s, RDMA_OPTION_ID_AFONLY, value, len);
		break;
	case TOS: {
		uint8_t tos = (uint8_t)number;

		err = set_id_option(s, RDMA_OPTION_ID_TOS, &tos, sizeof(tos));
		s->rs.tos = err ? s->rs.tos : tos;
		break;
	}
	case KEEPALIVE:
		err = set_keepalive(s, number);
		break;
	case KEEPIDLE:
		return set_keepidle(s, number);
	case ROUTE:
		return set_route(s, value, len);
	default:
		break;
	}
	if (!err && option->kind != TOS)
		set_switch(&s->rs, option, number);
	return err;
}

/* --- rsetsockopt() --- */

static int set(struct rsocket *rs, int level, int name, const void *value, socklen_t len)
{
	const struct option *option = find(level, name);
	int number = 0;

	if (!value && len)
		return -EFAULT;
	if (rs->kind == RSOCKET_DGRAM && level != SOL_RDMA) {
		int err = dgram_set_option(rs, level, name, value, len);

		if (err || !option || (option->kind != BUFFER && option->kind != TIMEOUT))
			return err;
	}
	if (!option || option->kind >= READ_ERROR)
		return option && option->kind == READ_SEGMENT ? 0 :
			polycm_fail(-EOPNOTSUPP, "rsockets have no option %d of level %d", name, level);
	if (option->kind == IGNORED)
		return 0;
	if (option->kind == TIMEOUT)
		return set_timeout(rs, option, value, len);
	if (option->kind != ROUTE && len < sizeof(number))
		return polycm_fail(-EINVAL, "an option of %u bytes", len);
	if (option->kind != ROUTE)
		memcpy(&number, value, sizeof(number));
	if (option->kind >= BUFFER && option->kind <= IOMAPS)
		return set_size(rs, option, number);
	if (option->kind == SWITCH || option->kind == LINGER) {
		/* A stream lingers unless it is told not to. */
		set_switch(rs, option, option->kind == LINGER ? !number : number);
		return 0;
	}
	if (rs->kind != RSOCKET_STREAM)
		return polycm_fail(-EOPNOTSUPP, "only for SOCK_STREAM");
	return set_on_stream(stream_of(rs), option, value, len, number);
}

POLYCM_EXPORT int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	struct rsocket *rs;
	int err;

	rs = rsocket_enter(socket, &err);
	if (rs) {
		err = set(rs, level, optname, optval, optlen);
		rsocket_leave(rs);
	}
	return (int)rsocket_ret(__func__, err);
}

/* --- rgetsockopt() --- */

static int put(const void *value, size_t size, void *optval, socklen_t *optlen)
{
	memcpy(optval, value, size < *optlen ? size : *optlen);
	*optlen = (socklen_t)size;
	return 0;
}

static int number_of(struct rsocket *rs, const struct option *option)
{
	struct stream *s = rs->kind == RSOCKET_STREAM ? stream_of(rs) : NULL;
	int error;

	switch (option->kind) {
	case BUFFER:
		return *(int *)member(rs, option);
	case QUEUE:
	case INLINE:
	case IOMAPS:
		return *(uint16_t *)member(rs, option);
	case IGNORED:
		return 1;
	case TOS:
		return rs->tos;
	case KEEPIDLE:
		return s ? (int)s->keepalive_idle : 0;
	case READ_ERROR:
		error = rs->error;
		rs->error = 0;
		return error;
	case READ_TYPE:
		return s ? SOCK_STREAM : SOCK_DGRAM;
	case READ_LISTENS:
		return s && s->state == STREAM_LISTENING;
	case READ_SEGMENT:
		return s && s->id->route.num_paths ? 1 << (7 + s->id->route.path_rec->mtu) : 2048;
	default:
		return get_switch(rs, option);
	}
}

/* A path record as the SA sends it, which RDMA_ROUTE takes, too. */
static void to_path_data(const struct ibv_sa_path_rec *rec, struct ibv_path_data *data)
{
	enum { EXACTLY = 2 << 6, FORWARD = 0x80 };

	*data = (struct ibv_path_data){
		.flags = rec->preference,
		.path = {
			.dgid = rec->dgid,
			.sgid = rec->sgid,
			.dlid = rec->dlid,
			.slid = rec->slid,
			.flowlabel_hoplimit = htobe32(be32toh(rec->flow_label) << 8 | rec->hop_limit),
			.tclass = rec->traffic_class,
			.reversible_numpath = (uint8_t)((rec->reversible ? FORWARD : 0) | 1),
			.pkey = rec->pkey,
			.qosclass_sl = htobe16(rec->sl),
			.mtu = (uint8_t)(rec->mtu | EXACTLY),
			.rate = (uint8_t)(rec->rate | EXACTLY),
			.packetlifetime = (uint8_t)(rec->packet_life_time | EXACTLY),
		},
	};
}

static int get_route(struct stream *s, void *optval, socklen_t *optlen)
{
	const struct rdma_route *route = &s->id->route;
	struct ibv_path_data data;
	socklen_t len = 0;

	if (s->route && *optlen >= s->route_len)
		return put(s->route, s->route_len, optval, optlen);
	if (s->route || *optlen < sizeof(data))
		return polycm_fail(-EINVAL, "%u bytes are too few for it", *optlen);
	for (int i = 0; i < route->num_paths && len + sizeof(data) <= *optlen; i++) {
		to_path_data(&route->path_rec[i], &data);
		memcpy((uint8_t *)optval + len, &data, sizeof(data));
		len += (socklen_t)sizeof(data);
	}
	*optlen = len;
	return 0;
}

static int get(struct rsocket *rs, int level, int name, void *optval, socklen_t *optlen)
{
	const struct option *option = find(level, name);
	struct stream *s = stream_of(rs);
	int number;

	if (rs->kind == RSOCKET_DGRAM && level != SOL_RDMA && (!option || option->kind != BUFFER))
		return dgram_get_option(rs, level, name, optval, optlen);
	if (!option)
		return polycm_fail(-EOPNOTSUPP, "rsockets have no option %d of level %d", name, level);
	if (option->kind == LINGER) {
		struct linger linger = { .l_onoff = !get_switch(rs, option) };

		return put(&linger, sizeof(linger), optval, optlen);
	}
	if (option->kind == TIMEOUT) {
		uint64_t us = *(uint64_t *)member(rs, option) / 1000;
		struct timeval time = {
			.tv_sec = (time_t)(us / 1000000),
			.tv_usec = (suseconds_t)(us % 1000000),
		};

		return put(&time, sizeof(time), optval, optlen);
	}
	if (option->kind == ROUTE || option->kind == READ_INFO) {
		struct tcp_info info = {
			.tcpi_state = s->state == STREAM_CONNECTED ? TCP_ESTABLISHED :
				      s->state == STREAM_LISTENING ? TCP_LISTEN : TCP_CLOSE,
			.tcpi_snd_cwnd = rs->sizes.sends,
		};

		if (rs->kind != RSOCKET_STREAM)
			return polycm_fail(-EOPNOTSUPP, "only for SOCK_STREAM");
		return option->kind == ROUTE ? get_route(s, optval, optlen) :
			put(&info, sizeof(info), optval, optlen);
	}
	number = number_of(rs, option);
	return put(&number, sizeof(number), optval, optlen);
}

POLYCM_EXPORT int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	struct rsocket *rs;
	int err;

	rs = rsocket_enter(socket, &err);
	if (rs) {
		/* A connection that is under way ends with its error. */
		rs->ops->advance(rs);
		err = get(rs, level, optname, optval, optlen);
		rsocket_leave(rs);
	}
	return (int)rsocket_ret(__func__, err);
}

/* --- rfcntl() --- */

static int control(struct rsocket *rs, int cmd, int value)
{
	switch (cmd) {
	case F_GETFL:
		return rs->status_flags;
	case F_SETFL:
		rs->status_flags = value;
		return 0;
	case F_GETFD:
		return rs->fd_flags;
	case F_SETFD:
		rs->fd_flags = value;
		return 0;
	default:
		return polycm_fail(-EOPNOTSUPP, "rsockets have no command %d", cmd);
	}
}

POLYCM_EXPORT int rfcntl(int socket, int cmd, ...)
{
	struct rsocket *rs;
	int value = 0, ret;
	va_list args;

	if (cmd == F_SETFL || cmd == F_SETFD) {
		va_start(args, cmd);
		value = va_arg(args, int);
		va_end(args);
	}
	rs = rsocket_enter(socket, &ret);
	if (rs) {
		ret = control(rs, cmd, value);
		rsocket_leave(rs);
	}
	return (int)rsocket_ret(__func__, ret);
}
