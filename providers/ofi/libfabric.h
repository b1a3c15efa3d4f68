/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/libfabric.h - between libfabric.c (messages) and libfabric_open.c.  See there. */
#ifndef OFI_LIBFABRIC_H
#define OFI_LIBFABRIC_H

#include <errno.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "carrier.h"

#define LIBFABRIC_ALIGN 64u
#define LIBFABRIC_SIZE \
	((OFI_CARRIER_MESSAGE + LIBFABRIC_ALIGN - 1) / LIBFABRIC_ALIGN * LIBFABRIC_ALIGN)

struct libfabric_buffer {
	struct fi_context2 context;	/* the provider's, while it has the buffer */
	struct libfabric_buffer *next;		/* free, or not posted */
	bool sends;
	struct ofi_carrier_peer *peer;	/* to whom; NULL: it is gone */
	uint8_t *bytes;
};

struct ofi_carrier_peer {
	fi_addr_t addr;
	void *owner;
};

struct ofi_carrier {
	const struct ofi_carrier_user *user;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	struct fid_mr *mr;		/* of all buffers; NULL: none is needed */
	void *desc;
	int fd;				/* -1: none */
	uint8_t *memory;
	struct libfabric_buffer receives[OFI_CARRIER_BUFFERS], sends[OFI_CARRIER_BUFFERS];
	struct libfabric_buffer *unposted, *free;
	unsigned int num_free;
};

/* Open the first of the providers that is there (carrier.h). */
int libfabric_open(const char *const *providers, unsigned int num, const struct sockaddr *source,
		   socklen_t source_len, const struct ofi_carrier_user *user,
		   struct ofi_carrier **ret_carrier, struct ofi_carrier_name *ret_name,
		   char ret_why[OFI_CARRIER_WHY]);
void libfabric_close(struct ofi_carrier *c);
bool libfabric_is_ip(const struct fi_info *info);

/* Register all buffers and post those to receive into. */
int libfabric_make_buffers(struct ofi_carrier *c);
/* libfabric's numbers from 256 on are its own. */
static inline int libfabric_error(ssize_t r)
{
	return r < -255 ? -EIO : (int)r;
}

#endif
