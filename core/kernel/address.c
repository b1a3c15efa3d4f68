/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel/address.c - bind, resolve and listen.
 *
 * IP addresses go with the commands that have always been there, addresses of
 * family AF_IB with those that take any.
 */
#include "config.h"
#include "internal.h"

#include "core/base/addr.h"

static int bind_ip(const struct kernel_id *id, const struct sockaddr *addr, size_t len)
{
	KERNEL_MESSAGE(rdma_ucm_bind_ip) message = { .body.id = id->number };

	memcpy(&message.body.addr, addr, len);
	return KERNEL_COMMAND(kernel_fd(id->chan), BIND_IP, message, 0);
}

static int bind_any(const struct kernel_id *id, const struct sockaddr *addr, size_t len)
{
	KERNEL_MESSAGE(rdma_ucm_bind) message = {
		.body = { .id = id->number, .addr_size = (uint16_t)len },
	};

	memcpy(&message.body.addr, addr, len);
	return KERNEL_COMMAND(kernel_fd(id->chan), BIND, message, 0);
}

int kernel_addr_bind(struct kernel_id *id, const struct sockaddr *addr)
{
	size_t len = polycm_addr_len(addr);
	bool ib = len && addr->sa_family == AF_IB;
	int r;

	if (!len)
		return -EINVAL;
	r = ib ? bind_any(id, addr, len) : bind_ip(id, addr, len);
	if (!r)
		id->ib = ib;
	return r;
}

/* An address is of use on a device of a selected provider, or on none yet. */
int kernel_op_bind(void *priv, const struct sockaddr *addr)
{
	char where[KERNEL_WHERE_TEXT];
	struct kernel_id *id = priv;
	struct kernel_seen seen;
	int r;

	r = kernel_id_ready(id);
	if (!r)
		r = kernel_addr_bind(id, addr);
	if (r)
		return r;
	r = kernel_ask_ahead(id, kernel_fd(id->chan), &seen, where);
	if (r)
		goto err_unbind;

	memcpy(&id->bound, addr, polycm_addr_len(addr));
	polycm_addr_set_port(&id->bound.sa, polycm_addr_port((struct sockaddr *)&seen.src));
	id->placed = seen.on_device;
	return 0;

err_unbind:
	kernel_id_strand(id);
	(void)kernel_id_ready(id);
	if (where[0])
		polycm_why("that is on %s", where);
	return r;
}

static int resolve_ip(const struct kernel_id *id, const struct sockaddr *src,
		      const struct sockaddr *dst, uint32_t timeout_ms)
{
	KERNEL_MESSAGE(rdma_ucm_resolve_ip) message = {
		.body = { .id = id->number, .timeout_ms = timeout_ms },
	};

	if (src)
		memcpy(&message.body.src_addr, src, polycm_addr_len(src));
	memcpy(&message.body.dst_addr, dst, polycm_addr_len(dst));
	return KERNEL_COMMAND(kernel_fd(id->chan), RESOLVE_IP, message, 0);
}

static int resolve_any(const struct kernel_id *id, const struct sockaddr *src,
		       const struct sockaddr *dst, uint32_t timeout_ms)
{
	KERNEL_MESSAGE(rdma_ucm_resolve_addr) message = {
		.body = {
			.id = id->number,
			.timeout_ms = timeout_ms,
			.src_size = (uint16_t)polycm_addr_len(src),
			.dst_size = (uint16_t)polycm_addr_len(dst),
		},
	};

	if (src)
		memcpy(&message.body.src_addr, src, message.body.src_size);
	memcpy(&message.body.dst_addr, dst, message.body.dst_size);
	return KERNEL_COMMAND(kernel_fd(id->chan), RESOLVE_ADDR, message, 0);
}

int kernel_op_resolve_addr(void *priv, const struct sockaddr *src, const struct sockaddr *dst,
			   int timeout_ms)
{
	struct kernel_id *id = priv;
	bool ib, was_ib;
	int r;

	if (!polycm_addr_len(dst) || (src && !polycm_addr_len(src)))
		return -EINVAL;
	r = kernel_id_ready(id);
	if (r)
		return r;
	kernel_answer_drop(id);

	/* A reader may ask about the address before the command has returned. */
	id->resolves = true;
	was_ib = id->ib;
	id->ib = dst->sa_family == AF_IB;
	ib = id->ib || (src && src->sa_family == AF_IB);
	r = ib ? resolve_any(id, src, dst, (uint32_t)timeout_ms)
	       : resolve_ip(id, src, dst, (uint32_t)timeout_ms);
	if (r)
		id->ib = was_ib;
	return r;
}

int kernel_op_resolve_route(void *priv, int timeout_ms)
{
	KERNEL_MESSAGE(rdma_ucm_resolve_route) message = {
		.body.timeout_ms = (uint32_t)timeout_ms,
	};

	return kernel_explain_kind(priv, KERNEL_ID_COMMAND(priv, RESOLVE_ROUTE, message, 0));
}

int kernel_op_listen(void *priv, int backlog)
{
	KERNEL_MESSAGE(rdma_ucm_listen) message = { .body.backlog = (uint32_t)backlog };

	kernel_answer_drop(priv);
	return KERNEL_ID_COMMAND(priv, LISTEN, message, 0);
}
