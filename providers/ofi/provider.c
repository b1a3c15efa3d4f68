/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/provider.c - the plugin "ofi": its descriptor, its settings, and how it starts. */
#include "config.h"

#include "providers/soft/cm/cma_internal.h"
#include "providers/soft/host/plugin.h"
#include "providers/soft/host/start.h"
#include "inspect.h"
#include "open.h"

#define SIZE sizeof(struct polycm_option)

/* Name, default, choices, help. */
static const struct polycm_option options[] = {
	{ SIZE, "POLYCM_OFI_TRANSPORT", "roce", NULL,
		"Transport that the device ofi0 plays: roce, ib, iwarp, or one whose rules another "
		"plugin has. The same on all hosts." },
	{ SIZE, "POLYCM_OFI_PORT", "14791", NULL,
		"TCP port at which the processes of this host are found. Open it in firewalls. The "
		"same on all hosts, unless POLYCM_OFI_HOSTS says otherwise." },
	{ SIZE, "POLYCM_OFI_HOSTS", "", NULL,
		"Hosts that multicast groups are to reach, and hosts whose TCP port is another one, "
		"separated by commas: 10.0.0.7,hostc:4796." },
	{ SIZE, "POLYCM_OFI_ADDRESSES", "", NULL,
		"Addresses of this host, or networks, to which the device ofi0 and the TCP port are "
		"limited, separated by commas: 10.0.0.7,fd00::/64. Unset: all." },
	{ SIZE, "POLYCM_OFI_KEY", "", NULL,
		"File with a secret, which only its owner can read. Only hosts with the same secret "
		"can connect. Unset: all hosts that reach the TCP port can." },
	{ SIZE, "POLYCM_OFI_FABRIC", "efa,cxi,opx,psm3", NULL,
		"Providers of libfabric that carry the data of QPs where both hosts have them, the best "
		"first, up to 4; connections, and data without them, go over TCP. tcp, net, sockets and "
		"'udp;ofi_rxd' are for tests. none: all over TCP." },
	{ SIZE, "POLYCM_OFI_CM_DELAY", "", NULL,
		"Microseconds that resolving an address or a route, joining a multicast group and "
		"sending a connection request take besides the network's time, as on a host with a "
		"card. Unset: 200." },
	{ SIZE, "POLYCM_OFI_SCENARIO", "", NULL,
		"File with `links' and `faults' as in polycm-scenario(5): what happens to the packets "
		"that this host sends." },
	{ SIZE, "POLYCM_OFI_TRACE", "", NULL,
		"File for a trace, one JSON object per line, as in polycm-trace(5); -: standard "
		"error." },
	{ SIZE, "POLYCM_OFI_PCAP", "", NULL,
		"File for a capture of the packets, for tshark and Wireshark." },
};

static int start(void)
{
	struct sim_start how = {
		.clock = SIM_CLOCK_REAL,
		.seed = 1,
		.open_fabric = ofi_open,
		.trace = "POLYCM_OFI_TRACE",
		.capture = "POLYCM_OFI_PCAP",
	};
	int r = sim_start_cm_delay("POLYCM_OFI_CM_DELAY", how.clock, &how.cm_delay);

	return r < 0 ? r : sim_start_by_settings(&how);
}

__attribute__((visibility("default")))
int polycm_provider_query_v1(const struct polycm_core *core,
			     const struct polycm_provider **ret_provider)
{
	static struct polycm_ops ops;
	static struct polycm_provider provider = {
		.size = sizeof(provider),
		.abi_minor = POLYCM_ABI_MINOR,
		.name = "ofi",
		.version = PACKAGE_VERSION,
		.description = "RDMA between hosts over TCP: no RDMA hardware, no kernel module, "
			       "no root",
		.ops = &ops,
		.id_size = sizeof(struct sim_id),
		.options = options,
		.num_options = sizeof(options) / sizeof(options[0]),
		.flags = POLYCM_PROVIDER_ON_REQUEST | POLYCM_PROVIDER_LOSES_REQUESTS,
	};
	int r;

	r = sim_plugin_query(core, start, &ops);
	if (r < 0)
		return r;
	ops.inspect_device = ofi_inspect_device;
	sim_stopping = ofi_close;
	sim_plugin_flush = ofi_flush;
	*ret_provider = &provider;
	return 0;
}
