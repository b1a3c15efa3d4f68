/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provider-acme.c - a provider of devices that the kernel's RDMA CM knows.
 *
 * libpolycm's client of the kernel carries the connections.  The provider says
 * which devices are its own, and brings the rules of their transport: here
 * RoCE's, under a name of its own.
 */
#include <errno.h>
#include <string.h>

#include <polycm/kernel.h>

static const struct polycm_kernel *kernel;

static const struct polycm_transport rules = {
	.size = sizeof(rules),
	.shape = POLYCM_RULES_SHAPE,
	.name = "acme",
	.description = "Acme's RoCE devices",
	.protocol = POLYCM_PROTO_IB_CM,
	.services = POLYCM_SVC_SRQ | POLYCM_SVC_ESTABLISH | POLYCM_SVC_NOTIFY |
		    POLYCM_SVC_TIMEWAIT | POLYCM_SVC_IMM | POLYCM_SVC_ATOMIC | POLYCM_SVC_RNR,
	.node_type = IBV_NODE_CA,
	.transport_type = IBV_TRANSPORT_IB,
	.link_layer = IBV_LINK_LAYER_ETHERNET,
	.limit = { [POLYCM_KIND_RC] = { 56, 196, 148 } },	/* connect, accept, reject */
	.reported = { [POLYCM_KIND_RC] = { 56, 196, 148 } },
	.capacity = { [POLYCM_KIND_RC] = { 92, 196, 148 } },
	.cm_header_len = 36,
	.max_retry_count = 7,
	.max_rnr_retry_count = 7,
	.consumer_reject_status = 28,
	.refused_status = 8,
	.cm_response_timeout = 20,
	.max_cm_retries = 15,
	.mra_service_timeout = 24,
	.packet_lifetime = 16,
	.local_ca_ack_delay = 15,
	.max_responder_resources = 128,
	.max_initiator_depth = 128,
};

/* Asked before providers that tell their devices by their rules alone, as "roce" does. */
static bool is_acme(const struct polycm_kernel_device *device)
{
	return !strncmp(device->name, "acme", 4);
}

static int init(struct polycm_module *module, void **ret_ctx)
{
	const struct polycm_kernel_setup setup = { .size = sizeof(setup), .claims = is_acme };

	return kernel->init(module, &setup, ret_ctx);
}

/* Whatever is missing here is the kernel client's. */
static const struct polycm_ops ops = { .size = sizeof(ops), .init = init };

static const struct polycm_provider acme = {
	.size = sizeof(acme),
	.abi_minor = POLYCM_ABI_MINOR,
	.name = "acme",
	.version = "1.0",
	.description = "devices of Acme, through the kernel's RDMA CM",
	.flags = POLYCM_PROVIDER_KERNEL,
	.transport = &rules,
	.ops = &ops,
};

int polycm_provider_query_v1(const struct polycm_core *core,
			     const struct polycm_provider **ret_provider)
{
	kernel = core->extension(POLYCM_KERNEL, POLYCM_KERNEL_VERSION);
	*ret_provider = &acme;
	return kernel ? 0 : -EOPNOTSUPP;
}
