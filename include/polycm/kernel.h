/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polycm/kernel.h - the Linux kernel's RDMA CM, for providers of hardware.
 *
 * libpolycm has one client of /dev/infiniband/rdma_cm.  A provider whose devices
 * the kernel knows uses the operations of this client.  It only says which
 * devices are its own, and may wrap some of the operations.  A whole provider:
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
 *	int polycm_provider_query_v1(const struct polycm_core *core,
 *				     const struct polycm_provider **ret_provider)
 *	{
 *		(void)core;
 *		*ret_provider = &acme;
 *		return 0;
 *	}
 *
 * Its devices are those with the node type, transport type and link layer of its
 * rules.  A provider that selects its devices in another way has an init():
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
 * with .ops = &ops, whose other operations may all be NULL, and in the query
 *
 *	kernel = core->extension(POLYCM_KERNEL, POLYCM_KERNEL_VERSION);
 *	*ret_provider = &acme;
 *	return kernel ? 0 : -EOPNOTSUPP;
 *
 * Of the rules, the core uses over the kernel: node_type, transport_type and
 * link_layer (which devices), protocol, services, POLYCM_T_DEVICE_MOVES_QP,
 * max_retry_count, max_rnr_retry_count, and for its log lines limit and
 * status_str.  The kernel does the rest by itself.  `polycm info' and the
 * simulator use all of them.
 *
 * The core takes these operations from the provider's table if they are not
 * NULL: init, resolve_route, connect, accept, reject, establish, disconnect,
 * notify, set_option, init_qp_attr, join_multicast, leave_multicast and
 * inspect_device.  All others are the client's, whatever is in the table.  A
 * wrapper calls the client's own: kernel->ops->connect(priv, param).  It has no
 * memory of its own for each id.  It must not post events: a thread that waits
 * for one sleeps in the kernel and would not see it.
 *
 * Providers over the kernel share their ids.  An id belongs to the provider
 * whose device it is on: a request on a wildcard listener may belong to another
 * provider than the listener.
 *
 * Legal states, waiting, threads and events are those of <polycm/provider.h>.
 * connect waits as the kernel does.  Errors are those of librdmacm over this
 * kernel; for a command that the kernel does not know, EINVAL or ENOSYS.  After
 * fork() a child's calls on the parent's ids fail with EACCES.
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
	 * Is the device this provider's?  NULL: it is if node type, transport type
	 * and link layer are those of the provider's rules.  Providers with
	 * claims() come first, then the others, each in the order of preference.
	 * The first that claims a device gets it.  From any thread, one call at a
	 * time, under a lock: it does not wait and calls nothing of polycm_core but
	 * log().
	 */
	bool (*claims)(const struct polycm_kernel_device *device);
};

struct polycm_kernel {
	uint32_t size;
	const struct polycm_ops *ops;	/* the client's, complete */
	/*
	 * Only from the provider's own init(), which returns this *ret_ctx.  setup
	 * may be NULL.  -EINVAL: the provider has no rules; -ENOMEM.
	 */
	int (*init)(struct polycm_module *module, const struct polycm_kernel_setup *setup,
		    void **ret_ctx);
	/* The kind of an id, from inside an operation on it. */
	enum polycm_kind (*kind)(const void *priv);
};

#ifdef __cplusplus
}
#endif

#endif /* POLYCM_KERNEL_H */
