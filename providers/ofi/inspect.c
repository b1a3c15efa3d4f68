/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/inspect.c - see inspect.h. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "providers/soft/engine/engine.h"
#include "providers/soft/nic/nic.h"
#include "carry.h"
#include "host.h"
#include "inspect.h"
#include "load.h"
#include "peer.h"
#include "self.h"
#include "session.h"

static const char *state_of(const struct sim_remote_host *host)
{
	switch (host->state) {
	case OFI_HOST_BARE:
		return "there, and no program on it";
	case OFI_HOST_UP:
		return "up";
	case OFI_HOST_REFUSED:
		return "refused: the log says why";
	default:
		return host->knock ? "being asked" : "no answer";
	}
}

static void inspect_host(const struct sim_remote_host *host, const struct polycm_report *to)
{
	unsigned int processes = 0, carried = 0;
	char fabric[48] = "";

	for (const struct ofi_peer *peer = host->peers; peer; peer = peer->next) {
		processes += peer->session != NULL;
		carried += ofi_carry_is_on(peer);
	}
	if (carried)
		snprintf(fabric, sizeof(fabric), ", to %u of them over libfabric", carried);
	to->put(to, "host", "%s, TCP port %u: %s, connected to %u of its processes%s", host->node->name,
		sim_addr_port(&host->gate.sa), state_of(host), processes, fabric);
}

static void inspect_fabric(const struct polycm_report *to)
{
	char text[OFI_MAX_CARRIERS * OFI_NAME];

	ofi_load_describe(text, sizeof(text));
	if (*text)
		to->put(to, "data", "over libfabric (%s) to hosts that have it, too; else over TCP",
			text);
	else
		to->put(to, "data", "over TCP (POLYCM_OFI_FABRIC names no fabric that is here)");
}

int ofi_inspect_device(void *ctx, const char *name, const struct polycm_report *to)
{
	int r;

	(void)ctx;
	sim_lock();
	r = sim_nic_inspect(name, to);
	if (!r && ofi_self.device && !strcmp(name, ofi_self.device->vdev.device.name)) {
		to->put(to, "TCP port", "%u: open it in firewalls", ofi_self.gate);
		to->put(to, "who may connect", "%s", ofi_self.key ? "who has the key of POLYCM_OFI_KEY" :
			"every host that reaches that port (POLYCM_OFI_KEY is unset)");
		inspect_fabric(to);
		for (const struct sim_remote_host *host = ofi_host_first(); host; host = host->next)
			inspect_host(host, to);
	}
	sim_unlock();
	return r;
}
