/* SPDX-License-Identifier: BSD-2-Clause */
/* rsocket/bytes.c - bytes between buffers, vectors and addresses. */
#include "config.h"
#include "rsocket.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/addr.h"

ssize_t rsocket_msg_len(const struct msghdr *msg)
{
	size_t len = 0;

	if (msg->msg_iovlen > IOV_MAX)
		return -EMSGSIZE;
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		if (msg->msg_iov[i].iov_len > SSIZE_MAX - len)
			return -EINVAL;
		len += msg->msg_iov[i].iov_len;
	}
	return (ssize_t)len;
}

/* The next piece of a vector, of up to `len' bytes. */
static size_t piece(const struct msghdr *msg, size_t *vector, size_t *at, size_t len, uint8_t **ret)
{
	while (*at >= msg->msg_iov[*vector].iov_len)
		*at -= msg->msg_iov[(*vector)++].iov_len;
	*ret = (uint8_t *)msg->msg_iov[*vector].iov_base + *at;
	if (len > msg->msg_iov[*vector].iov_len - *at)
		len = msg->msg_iov[*vector].iov_len - *at;
	*at += len;
	return len;
}

void rsocket_gather(const struct msghdr *msg, size_t at, void *to, size_t len)
{
	size_t vector = 0;

	for (size_t done = 0, num; done < len; done += num) {
		uint8_t *from;

		num = piece(msg, &vector, &at, len - done, &from);
		memcpy((uint8_t *)to + done, from, num);
	}
}

void rsocket_scatter(const struct msghdr *msg, size_t at, const void *from, size_t len)
{
	size_t vector = 0;

	for (size_t done = 0, num; done < len; done += num) {
		uint8_t *to;

		num = piece(msg, &vector, &at, len - done, &to);
		memcpy(to, (const uint8_t *)from + done, num);
	}
}

void rsocket_put_addr(const struct sockaddr *from, struct sockaddr *addr, socklen_t *len)
{
	socklen_t size = (socklen_t)polycm_addr_len(from);

	if (addr)
		memcpy(addr, from, size < *len ? size : *len);
	*len = size;
}

void *rsocket_pages(size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *pages;

	len = (len + page - 1) / page * page;
	if (posix_memalign(&pages, page, len))
		return NULL;
	memset(pages, 0, len);
	return pages;
}
