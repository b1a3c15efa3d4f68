/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs/newer.c - exported ibv_* calls that came with later releases of libibverbs: imports go
 * to the provider's table, buffers of libibverbs 65 work, and what simulated devices have not
 * fails.  All are here because libibverbs must not get a simulated object: it expects its own
 * driver's data behind each.
 *
 * Headers of other releases declare more or fewer of these calls, so each is defined
 * under another name and gets its symbol by an asm label.
 */
#include "config.h"

#include "table.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define NEWER(result, name, parameters)                              \
	POLYCM_EXPORT result newer_##name parameters __asm__(#name); \
	POLYCM_EXPORT result newer_##name parameters

#define NEWER_CALL(result, name, version, failure, owner, parameters, arguments, simulated) \
	NEWER(result, name, parameters)                                                    \
	SHIM_BODY(result, name, version, failure, (owner)->device, parameters, arguments, simulated)

/* owner is the context of what is passed in. */
#define NONE_OF_OURS(result, name, version, failure, owner, parameters, arguments) \
	NEWER_CALL(result, name, version, failure(ENOSYS), owner, parameters, arguments, \
		   (shim_refuse(#name), failure(EOPNOTSUPP)))

#define NO_OBJECT(error) NULL
#define THE_ERROR(error) (error)
#define NO_DESCRIPTOR(error) (errno = (error), -1)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

NONE_OF_OURS(int, ibv_dm_export_dmabuf_fd, 1.16, NO_DESCRIPTOR, dm->context, (struct ibv_dm * dm),
	     (dm))
NONE_OF_OURS(void *, ibv_alloc_dmah, 1.15, NO_OBJECT, context,
	     (struct ibv_context *context, void *attr), (context, attr))
NONE_OF_OURS(int, ibv_query_port_speed, 1.16, THE_ERROR, context,
	     (struct ibv_context *context, uint32_t port, uint64_t *speed), (context, port, speed))
NONE_OF_OURS(int, _ibv_query_comp_cntr_caps, 1.18, THE_ERROR, context,
	     (struct ibv_context *context, void *caps, size_t size), (context, caps, size))
NONE_OF_OURS(void *, ibv_create_comp_cntr, 1.18, NO_OBJECT, context,
	     (struct ibv_context *context, void *attr), (context, attr))
NONE_OF_OURS(int, ibv_qp_attach_comp_cntr, 1.18, THE_ERROR, qp->context,
	     (struct ibv_qp *qp, void *counter, void *attr), (qp, counter, attr))

#pragma GCC diagnostic pop

#define TO_SLOT(slot, version, result, failure, owner, parameters, arguments) \
	NEWER_CALL(result, ibv_##slot, version, failure, owner, parameters, arguments, \
		   table->slot arguments)

TO_SLOT(import_pd, 1.10, struct ibv_pd *, NULL, context,
	(struct ibv_context *context, uint32_t handle), (context, handle))
TO_SLOT(unimport_pd, 1.10, void, (void)0, pd->context, (struct ibv_pd *pd), (pd))
TO_SLOT(import_mr, 1.10, struct ibv_mr *, NULL, pd->context, (struct ibv_pd *pd, uint32_t handle),
	(pd, handle))
TO_SLOT(unimport_mr, 1.10, void, (void)0, mr->context, (struct ibv_mr *mr), (mr))
TO_SLOT(import_dm, 1.13, struct ibv_dm *, NULL, context,
	(struct ibv_context *context, uint32_t handle), (context, handle))
TO_SLOT(unimport_dm, 1.13, void, (void)0, dm->context, (struct ibv_dm *dm), (dm))

/*
 * A buffer is an opaque handle.  libibverbs' begins with an address that it allocated,
 * which is never the address of the mark.
 */
struct buffer {
	const void *mark;
	void *addr;
	size_t size;
	struct ibv_pd *pd;
};

static const char mark;

NEWER(void *, ibv_alloc_buf, (struct ibv_pd *pd, size_t size, struct buffer **ret_buf))
{
	struct buffer *buf;
	void *addr;
	int err;

	if (!shim_table(pd->context->device)) {
		REAL_VERB(void *, "ibv_alloc_buf", "IBVERBS_1.17",
			  (struct ibv_pd *, size_t, struct buffer **));
		return real ? real(pd, size, ret_buf) : NULL;
	}

	buf = malloc(sizeof(*buf));
	if (!buf)
		return NULL;
	err = posix_memalign(&addr, (size_t)sysconf(_SC_PAGESIZE), size);
	if (err) {
		free(buf);
		errno = err;
		return NULL;
	}
	*buf = (struct buffer){.mark = &mark, .addr = addr, .size = size, .pd = pd};
	*ret_buf = buf;
	return addr;
}

NEWER(void, ibv_free_buf, (struct buffer * buf))
{
	if (buf->mark == &mark) {
		free(buf->addr);
		free(buf);
		return;
	}

	REAL_VERB(void, "ibv_free_buf", "IBVERBS_1.17", (struct buffer *));
	if (real)
		real(buf);
}

NEWER(int, ibv_export_buf_dmabuf_fd, (struct buffer * buf))
{
	if (buf->mark == &mark) {
		errno = ENODATA; /* plain memory */
		return -1;
	}

	REAL_VERB(int, "ibv_export_buf_dmabuf_fd", "IBVERBS_1.18", (struct buffer *));
	return real ? real(buf) : -1;
}

/* struct ibv_mr_init_attr, which older headers lack; comp_mask says which members are set. */
struct mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dmah;
	struct buffer *buf;
};

enum {
	MR_IOVA = 1 << 0,
	MR_ADDR = 1 << 1,
	MR_FD = 1 << 2,
	MR_FD_OFFSET = 1 << 3,
	MR_BUF = 1 << 5,
};

/* The range must lie within the buffer, which must be of this PD. */
static bool is_within(const struct mr_init_attr *attr, const struct ibv_pd *pd)
{
	const struct buffer *buf = attr->buf;
	uintptr_t offset;

	if (buf->mark != &mark || buf->pd != pd || !(attr->comp_mask & MR_ADDR))
		return false;
	offset = (uintptr_t)attr->addr - (uintptr_t)buf->addr;
	return (uintptr_t)attr->addr >= (uintptr_t)buf->addr && offset <= buf->size &&
	       attr->length <= buf->size - offset;
}

static int check_mr(const struct mr_init_attr *attr, const struct ibv_pd *pd)
{
	const uint64_t all = MR_IOVA | MR_ADDR | MR_FD | MR_FD_OFFSET | MR_BUF;
	uint64_t mask = attr->comp_mask;

	if (mask & MR_BUF && (!is_within(attr, pd) || mask & (MR_FD | MR_FD_OFFSET)))
		return EINVAL;
	if (mask & ~all)
		return EOPNOTSUPP;
	if (!(mask & MR_FD))
		return mask & MR_ADDR && !(mask & MR_FD_OFFSET) ? 0 : EINVAL;
	if (mask & MR_ADDR || !(mask & MR_IOVA) || !(mask & MR_FD_OFFSET))
		return EINVAL;
	return EOPNOTSUPP; /* as ibv_reg_dmabuf_mr */
}

static struct ibv_mr *reg_mr_ex(const struct polycm_verbs *table, struct ibv_pd *pd,
				const struct mr_init_attr *attr)
{
	int err = check_mr(attr, pd);

	if (err) {
		errno = err;
		return NULL;
	}
	return table->reg_mr(pd, attr->addr, attr->length,
			     attr->comp_mask & MR_IOVA ? attr->iova : (uintptr_t)attr->addr,
			     (unsigned int)attr->access);
}

NEWER_CALL(struct ibv_mr *, ibv_reg_mr_ex, 1.15, NULL, pd->context,
	   (struct ibv_pd *pd, struct mr_init_attr *attr), (pd, attr), reg_mr_ex(table, pd, attr))

static struct ibv_mr *reg_buf_mr(const struct polycm_verbs *table, struct ibv_pd *pd,
				 struct buffer *buf, void *addr, size_t length, int access)
{
	const struct mr_init_attr attr = {
		.length = length,
		.access = access,
		.comp_mask = MR_ADDR | MR_BUF,
		.addr = addr,
		.buf = buf,
	};

	return reg_mr_ex(table, pd, &attr);
}

NEWER_CALL(struct ibv_mr *, ibv_reg_buf_mr, 1.17, NULL, pd->context,
	   (struct ibv_pd *pd, struct buffer *buf, void *addr, size_t length, int access),
	   (pd, buf, addr, length, access), reg_buf_mr(table, pd, buf, addr, length, access))
