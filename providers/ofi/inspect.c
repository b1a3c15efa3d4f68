/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/inspect.c - see inspect.h. */
#include "config.h"

#include <string.h>

#include "providers/soft/engine/engine.h"
#include "providers/soft/nic/nic.h"
#include "host.h"
#include "inspect.h"
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
	unsigned int processes = 0;

	for (const struct ofi_peer *peer = host->peers; peer; peer = peer->next)
		processes += peer->session != NULL;
	to->put(to, "host", "%s, TCP port %u: %s, connected to %u of its processes", host->node->name,
		sim_addr_port(&host->gate.sa), state_of(host), processes);
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
		for (const struct sim_remote_host *host = ofi_host_first(); host; host = host->next)
			inspect_host(host, to);
	}
	sim_unlock();
	return r;
}
