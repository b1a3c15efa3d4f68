/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polycm/kernel.h - the Linux kernel's RDMA CM, for providers of hardware.
 *
 * libpolycm has one client of /dev/infiniband/rdma_cm.  A provider whose
 * devices the kernel knows does not talk to it itself: it takes the client's
 * operations into its own table, says which devices are its own, and wraps
 * those calls that its transport has rules for.  A whole provider is:
 *
 *	static struct polycm_ops ops;
 *	static const struct polycm_kernel *kernel;
 *
 *	static int init(struct polycm_module *module, void **ret_ctx)
 *	{
 *		const struct polycm_kernel_setup setup = {
 *			.size = sizeof(setup),
 *			.transport = &acme_transport,
 *		};
 *
 *		return kernel->init(module, &setup, ret_ctx);
 *	}
 *
 *	int polycm_provider_query_v1(core, ret_provider)
 *	{
 *		kernel = core->extension(POLYCM_KERNEL, POLYCM_KERNEL_VERSION);
 *		ops = *kernel->ops;
 *		ops.init = init;
 *		...
 *	}
 *
 * with POLYCM_PROVIDER_KERNEL among the provider's flags, and id_size and
 * channel_size as the client has them.
 *
 * What may be wrapped: resolve_route, connect, accept, reject, establish,
 * disconnect, notify, set_option, init_qp_attr, join_multicast and
 * leave_multicast.  All others must be the client's own, because providers
 * over the kernel share its ids: an id is opened for one of them and is
 * another's as soon as it meets a device of that one, as a listener on a
 * wildcard address does with each request.
 *
 * Errors are the kernel's own.  A command that it does not have gives EINVAL
 * (it is younger than the kernel) or ENOSYS (the kernel dropped it); one that
 * took less than was written, ENODATA.  No device node, no permission or an
 * interface of another version (EPERM) is told once in the log.
 */
#ifndef POLYCM_KERNEL_H
#define POLYCM_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include <polycm/provider.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For polycm_core.extension(). */
#define POLYCM_KERNEL		"kernel"
#define POLYCM_KERNEL_VERSION	1

/* A device that libibverbs lists. */
struct polycm_kernel_device {
	uint32_t size;
	const char *name;
	__be64 node_guid;
	int index;			/* the kernel's, -1: not known */
	enum ibv_node_type node_type;
	enum ibv_transport_type transport_type;
	uint8_t link_layer;		/* of port 1 */
};

struct polycm_kernel_setup {
	uint32_t size;
	/* Rules of the provider's devices; kept, so it must stay valid. */
	const struct polycm_transport *transport;
	/*
	 * Is the device this provider's?  NULL: it is if node type, transport
	 * type and link layer are those of the rules.  The first provider in
	 * the order of preference that claims a device has it.
	 */
	bool (*claims)(const struct polycm_kernel_device *device);
};

struct polycm_kernel {
	uint32_t size;
	const struct polycm_ops *ops;	/* complete but for init */
	uint32_t id_size;
	uint32_t channel_size;
	/* To be called from the provider's init(), which hands on *ret_ctx. */
	int (*init)(struct polycm_module *module, const struct polycm_kernel_setup *setup,
		    void **ret_ctx);
	/* The kind of an id, from inside an operation on it. */
	enum polycm_kind (*kind)(const void *priv);
};

#ifdef __cplusplus
}
#endif

#endif /* POLYCM_KERNEL_H */
