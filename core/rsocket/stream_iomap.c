/* SPDX-License-Identifier: BSD-2-Clause */
/* rsocket/stream_iomap.c - riomap(), riounmap(), riowrite(): writes into a peer's memory. */
#include "config.h"
#include "stream.h"

#include <byteswap.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/base/export.h"
#include "core/base/why.h"

/* A free entry of the peer's table; -1: none. */
static int free_entry(const struct stream *s)
{
	for (uint32_t index = 0; index < s->peer_iomaps.length; index++) {
		const struct stream_iomap *map = s->iomaps;

		while (map && map->index != (int)index)
			map = map->next;
		if (!map)
			return (int)index;
	}
	return -1;
}

static off_t map_memory(struct stream *s, void *buf, size_t len, int prot, off_t offset)
{
	unsigned int access = IBV_ACCESS_LOCAL_WRITE;
	struct stream_iomap *map, **last = &s->iomaps;

	if (prot & ~(PROT_WRITE | PROT_NONE))
		return polycm_fail(-EINVAL, "prot is neither PROT_WRITE nor PROT_NONE");
	/* One of raccept() knows the peer's table before it is connected. */
	if (!s->peer_table.length)
		return polycm_fail(-EINVAL, "it is not connected");
	if (len > UINT32_MAX)
		return polycm_fail(-EINVAL, "%zu bytes, at most %u", len, UINT32_MAX);
	map = calloc(1, sizeof(*map));
	if (!map)
		return -ENOMEM;
	map->index = -1;
	if (prot & PROT_WRITE) {
		access |= IBV_ACCESS_REMOTE_WRITE;
		map->index = free_entry(s);
		if (map->index < 0) {
			free(map);
			return polycm_fail(-ENOMEM, "the peer lets %u maps be, by RDMA_IOMAPSIZE",
					   s->peer_iomaps.length);
		}
	}
	map->mr = stream_register(s, buf, len, access);
	if (!map->mr) {
		free(map);
		return -errno;
	}
	map->offset = offset == -1 ? (uintptr_t)buf : (uint64_t)offset;
	map->pending = map->index >= 0;
	s->pending_iomaps += map->pending;
	while (*last)
		last = &(*last)->next;
	*last = map;
	return (off_t)map->offset;
}

POLYCM_EXPORT off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct rsocket *rs;
	int err;

	(void)flags;
	rs = rsocket_enter(socket, &err);
	if (!rs)
		return rsocket_ret(__func__, err);
	if (rs->kind == RSOCKET_STREAM)
		offset = map_memory(stream_of(rs), buf, len, prot, offset);
	else
		offset = polycm_fail(-EOPNOTSUPP, "only for SOCK_STREAM");
	rsocket_leave(rs);
	/* An offset of the program's may look like an errno, one of an address does not. */
	return offset < 0 && offset >= -4095 ? rsocket_ret(__func__, offset) : offset;
}

static void unmap(struct stream *s, struct stream_iomap **at)
{
	struct stream_iomap *map = *at;

	*at = map->next;
	s->pending_iomaps -= map->pending;
	ibv_dereg_mr(map->mr);
	free(map);
}

void stream_free_iomaps(struct stream *s)
{
	while (s->iomaps)
		unmap(s, &s->iomaps);
}

static int unmap_memory(struct stream *s, const void *buf, size_t len)
{
	for (struct stream_iomap **at = &s->iomaps; *at; at = &(*at)->next) {
		if ((*at)->mr->addr != buf || (*at)->mr->length != len)
			continue;
		unmap(s, at);
		return 0;
	}
	return polycm_fail(-EINVAL, "no map of riomap()");
}

POLYCM_EXPORT int riounmap(int socket, void *buf, size_t len)
{
	struct rsocket *rs;
	int err;

	rs = rsocket_enter(socket, &err);
	if (!rs)
		return (int)rsocket_ret(__func__, err);
	if (rs->kind == RSOCKET_STREAM)
		err = unmap_memory(stream_of(rs), buf, len);
	else
		err = polycm_fail(-EOPNOTSUPP, "only for SOCK_STREAM");
	rsocket_leave(rs);
	return (int)rsocket_ret(__func__, err);
}

static int send_map(struct stream *s, const struct stream_iomap *map)
{
	struct rsocket_iomap entry = {
		.offset = map->offset,
		.range = {
			.addr = stream_address(s, map->mr, map->mr->addr),
			.key = map->mr->rkey,
			.length = (uint32_t)map->mr->length,
		},
	};
	struct rsocket_range to = {
		.addr = s->peer_iomaps.addr + (uint32_t)map->index * sizeof(entry),
		.key = s->peer_iomaps.key,
	};
	uint32_t message = rsocket_message(RSOCKET_IOMAP, (uint32_t)map->index);
	struct iovec vector = { .iov_base = &entry, .iov_len = sizeof(entry) };
	struct msghdr msg = { .msg_iov = &vector, .msg_iovlen = 1 };

	if (s->swap) {
		entry.offset = bswap_64(entry.offset);
		entry.range.addr = bswap_64(entry.range.addr);
		entry.range.key = bswap_32(entry.range.key);
		entry.range.length = bswap_32(entry.range.length);
	}
	s->sent++;
	return stream_post_bytes(s, &msg, 0, sizeof(entry), &to, &message);
}

int stream_send_iomaps(struct stream *s)
{
	for (struct stream_iomap *map = s->iomaps; map; map = map->next) {
		int err;

		if (!map->pending)
			continue;
		if (!stream_can_send(s))
			return -EAGAIN;
		err = send_map(s, map);
		if (err)
			return err;
		map->pending = false;
		s->pending_iomaps--;
	}
	return 0;
}

/* The peer may write its entries at any time: a copy of the one with this offset. */
static bool find_map(const struct stream *s, uint64_t offset, struct rsocket_iomap *ret_map)
{
	for (unsigned int i = 0; i < s->rs.sizes.iomaps; i++) {
		struct rsocket_iomap map = s->table->iomaps[i];

		if (offset < map.offset || offset - map.offset >= map.range.length)
			continue;
		*ret_map = map;
		return true;
	}
	return false;
}

/* As stream_send(). */
static ssize_t write_pieces(struct stream *s, const struct msghdr *msg, size_t done, uint64_t offset)
{
	size_t len = msg->msg_iov->iov_len, begun = done;
	struct rsocket_iomap map;
	int err;

	err = stream_ready_to_send(s);
	while (!err && done < len && stream_can_send(s)) {
		uint32_t piece = stream_piece(s, done, len - done), skipped;
		struct rsocket_range to;

		if (!find_map(s, offset + done, &map))
			return (ssize_t)(done - begun);
		skipped = (uint32_t)(offset + done - map.offset);
		to = (struct rsocket_range){ .addr = map.range.addr + skipped, .key = map.range.key };
		if (piece > map.range.length - skipped)
			piece = map.range.length - skipped;
		err = stream_post_bytes(s, msg, done, piece, &to, NULL);
		done += err ? 0 : piece;
	}
	if (done > begun)
		return (ssize_t)(done - begun);
	return err || done == len ? err : -EAGAIN;
}

static ssize_t write_all(struct rsocket *rs, const struct msghdr *msg, uint64_t offset, int flags)
{
	bool waits = rsocket_waits(rs, flags);
	struct rsocket_patience patience = RSOCKET_FOR_EVER;
	size_t done = 0;
	ssize_t num;

	do {
		rs->ops->advance(rs);
		num = write_pieces(stream_of(rs), msg, done, offset);
		if (num > 0)
			done += (size_t)num;
		else if (num == -EAGAIN && waits)
			num = rsocket_wait(rs, &patience) ?: 1;
	} while (num > 0 && done < msg->msg_iov->iov_len);
	return done ? (ssize_t)done : num;
}

POLYCM_EXPORT size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	struct iovec vector = { .iov_base = (void *)(uintptr_t)buf, .iov_len = count };
	struct msghdr msg = { .msg_iov = &vector, .msg_iovlen = 1 };
	struct rsocket *rs;
	ssize_t num;
	int err;

	rs = rsocket_enter(socket, &err);
	if (!rs)
		return (size_t)rsocket_ret(__func__, err);
	if (rs->kind == RSOCKET_STREAM)
		num = write_all(rs, &msg, (uint64_t)offset, flags);
	else
		num = polycm_fail(-EOPNOTSUPP, "only for SOCK_STREAM");
	rsocket_leave(rs);
	return (size_t)rsocket_ret(__func__, num);
}
