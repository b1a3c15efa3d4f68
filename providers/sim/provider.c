/* SPDX-License-Identifier: BSD-2-Clause */
/* provider.c - the plugin "sim": its descriptor and settings. */
#include "config.h"

#include <string.h>

#include "providers/soft/cm/cma_internal.h"
#include "providers/soft/host/plugin.h"
#include "providers/soft/host/start.h"
#include "handles.h"
#include "provider.h"

/* --- Settings. --- */

#define SIZE sizeof(struct polycm_option)

/* Name, default, choices, help. */
static const struct polycm_option options[] = {
	{ SIZE, "POLYCM_SIM_TRANSPORT", "", NULL,
		"Transport of this host's simulated device: roce, ib, iwarp, or one whose rules "
		"another plugin has. Unset: that of POLYCM_SIM_DEVICE, or roce." },
	{ SIZE, "POLYCM_SIM_SEED", "1", NULL,
		"Seed of the simulator's random numbers." },
	{ SIZE, "POLYCM_SIM_CLOCK", "real", "real|virtual",
		"Whether time is real, or virtual: it then moves only while the program waits, "
		"and the process has a fabric of its own." },
	{ SIZE, "POLYCM_SIM_CM_DELAY", "", NULL,
		"Microseconds that resolving an address or a route, joining a multicast group and "
		"sending a connection request take, as on a host with a card. Unset: 200 with the "
		"real clock, 0 with the virtual one." },
	{ SIZE, "POLYCM_SIM_DEVICE", "", NULL,
		"Device that the simulated one looks like, with its limits: a name, such as "
		"connectx-6, or a file with the output of `ibv_devinfo -v', or a folder with "
		"that file; its path has a slash." },
	{ SIZE, "POLYCM_SIM_FABRIC", "default", NULL,
		"Name of the simulated fabric. Processes of one user with the same name "
		"share it." },
	{ SIZE, "POLYCM_SIM_NODE", "", NULL,
		"Node of the scenario file that this process runs on. Unset: it may use "
		"all nodes." },
	{ SIZE, "POLYCM_SIM_PULL", "on", "on|off",
		"on: read large messages from the sending process's memory, if the system "
		"allows it; off: copy them through shared memory." },
	{ SIZE, "POLYCM_SIM_DIRECT", "on", "on|calls|off",
		"on: RDMA writes, reads and atomics between processes are carried out by the "
		"process that posts them, if the system allows it; calls: writes and "
		"reads only, by system calls: registered memory is not mapped by others; off, or "
		"if POLYCM_SIM_PULL is off: always by messages to the other process." },
	{ SIZE, "POLYCM_SIM_SCENARIO", "", NULL,
		"Scenario file with the nodes, links and faults of the fabric, as in "
		"polycm-scenario(5)." },
	{ SIZE, "POLYCM_SIM_EXPLORE", "", NULL,
		"Let the seed choose faults, and write each into this file; polycm explore "
		"sets it." },
	{ SIZE, "POLYCM_SIM_TRACE", "", NULL,
		"File for a trace, one JSON object per line, as in polycm-trace(5); -: "
		"standard error." },
	{ SIZE, "POLYCM_SIM_PCAP", "", NULL,
		"File for a capture of the packets, for tshark and Wireshark." },
};

/* --- The plugin. --- */

static const void *extension(const char *name, unsigned int version)
{
	if (version != 1)
		return NULL;
	if (!strcmp(name, "sim"))
		return &sim_control_ops;
	if (!strcmp(name, POLYCM_TCP_EXTENSION))
		return &sim_tcp_ops;
	return !strcmp(name, "place") ? sim_fabric_place() : NULL;
}

__attribute__((visibility("default")))
int polycm_provider_query_v1(const struct polycm_core *core,
			     const struct polycm_provider **ret_provider)
{
	static struct polycm_ops ops;
	static struct polycm_provider provider = {
		.size = sizeof(provider),
		.abi_minor = POLYCM_ABI_MINOR,
		.name = "sim",
		.version = PACKAGE_VERSION,
		.description = "Simulated devices: no RDMA hardware, no kernel module, no root",
		.ops = &ops,
		.id_size = sizeof(struct sim_id),
		.options = options,
		.num_options = sizeof(options) / sizeof(options[0]),
		.extension = extension,
		.flags = POLYCM_PROVIDER_ON_REQUEST | POLYCM_PROVIDER_LOSES_REQUESTS,
	};
	int r;

	r = sim_plugin_query(core, sim_up_default, &ops);
	if (r < 0)
		return r;
	sim_stopping = sim_handles_renew;
	*ret_provider = &provider;
	return 0;
}
