/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polycm/kernel.h - the Linux kernel's RDMA CM, for providers of hardware.
 *
 * libpolycm has one client of /dev/infiniband/rdma_cm.  A provider whose
 * devices the kernel knows does not talk to it itself: it says which devices
 * are its own, by its rules or by itself, and gets the client's operations, of
 * which it may wrap those that its transport has rules for.  A whole provider:
 *
 *	static const struct polycm_provider acme = {
 *		.size = sizeof(acme),
 *		.abi_minor = POLYCM_ABI_MINOR,
 *		.name = "acme",
 *		.version = "1.0",
 *		.description = "devices of Acme",
 *		.flags = POLYCM_PROVIDER_KERNEL,
 *		.transport = &acme_rules,
 *	};
 *
 *	int polycm_provider_query_v1(core, ret_provider)
 *	{
 *		*ret_provider = &acme;
 *		return 0;
 *	}
 *
 * Its devices are then those whose node type, transport type and link layer are
 * those of its rules.  One that tells its devices by itself has an init():
 *
 *	static int init(struct polycm_module *module, void **ret_ctx)
 *	{
 *		const struct polycm_kernel_setup setup = {
 *			.size = sizeof(setup), .claims = is_acme,
 *		};
 *
 *		return kernel->init(module, &setup, ret_ctx);
 *	}
 *
 * with kernel = core->extension(POLYCM_KERNEL, POLYCM_KERNEL_VERSION) and
 * .ops = &ops, whose other operations may all be NULL.
 *
 * Whatever else is in its table of operations, the core takes these from it,
 * and all others from the client: init, resolve_route, connect, accept,
 * reject, establish, disconnect, notify, set_option, init_qp_attr,
 * join_multicast and leave_multicast.  Those that are NULL are the client's,
 * too.  One that is not may do what its transport has rules for and then call
 * the client's own, kernel->ops->connect(priv, param).  Such a wrapper has no memory of its own
 * for each id, and must not post events: a thread that waits for one sleeps in
 * the kernel and would not see it.
 *
 * Providers over the kernel share its ids: an id is opened for one of them and
 * is another's as soon as it meets a device of that one, as a listener on a
 * wildcard address does with each request.
 *
 * Errors of the operations are those of librdmacm's calls over this kernel.  A
 * command that the kernel does not know answers EINVAL or ENOSYS.
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

/*
 * A device that libibverbs lists.  A card whose ports have different link
 * layers is asked about once for each: its ports may go to two providers.
 */
struct polycm_kernel_device {
	uint32_t size;
	const char *name;
	__be64 node_guid;
	int index;			/* the kernel's, -1: not known */
	enum ibv_node_type node_type;
	enum ibv_transport_type transport_type;
	uint8_t link_layer;		/* of the ports that are asked about */
};

struct polycm_kernel_setup {
	uint32_t size;
	/*
	 * Is the device this provider's?  NULL: it is if node type, transport
	 * type and link layer are those of the provider's rules.  Providers that
	 * say for themselves are asked first, then the others, each in the order
	 * of preference; the first that claims a device has it.  Called under a
	 * lock: no call of polycm_core but log() in it.
	 */
	bool (*claims)(const struct polycm_kernel_device *device);
};

struct polycm_kernel {
	uint32_t size;
	const struct polycm_ops *ops;	/* the client's, complete */
	/* From a provider's own init(), which hands on *ret_ctx.  setup NULL: as without an init(). */
	int (*init)(struct polycm_module *module, const struct polycm_kernel_setup *setup,
		    void **ret_ctx);
	/* The kind of an id, from inside an operation on it. */
	enum polycm_kind (*kind)(const void *priv);
};

#ifdef __cplusplus
}
#endif

#endif /* POLYCM_KERNEL_H */
