/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric_scenario.c - a fabric as a scenario file has it.
 *
 * Under the real clock processes meet on it by the fabric's name and the file's
 * contents: each makes the same nodes in the same order, so that ports have the
 * same numbers everywhere.  One that comes with another file is refused.
 * POLYCM_SIM_NODE says which of the nodes a process is on; without it a process
 * may be on each of them.  Engine lock held.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "providers/soft/fabric/build.h"
#include "providers/soft/faults/fault.h"
#include "providers/soft/host/host.h"
#include "fabric_open.h"
#include "scenario.h"

/* Part of the shared fabric's name, where others have a transport. */
#define KIND "scenario"

/* FNV-1a, 64 bits, of a file; never 0. */
static int digest_file(const char *path, uint64_t *ret_digest)
{
	uint64_t hash = 0xcbf29ce484222325u;
	uint8_t buf[4096];
	ssize_t len;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while ((len = read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < len; i++)
			hash = (hash ^ buf[i]) * 0x100000001b3u;
	len = len < 0 ? -errno : 0;
	close(fd);
	*ret_digest = hash ? hash : 1;
	return (int)len;
}

static int join(const char *path)
{
	uint64_t digest;
	int r;

	r = digest_file(path, &digest);
	if (r < 0) {
		sim_core->log(POLYCM_LOG_ERROR, NULL, "%s: %s", path, strerror(-r));
		return r;
	}
	r = sim_fabric_join(KIND);
	if (r < 0)
		return r;
	r = sim_scenario_agree(digest);
	if (r < 0)
		sim_core->log(POLYCM_LOG_ERROR, NULL, "%s: processes with another scenario file "
			      "are on this fabric; POLYCM_SIM_FABRIC names another one", path);
	return r;
}

/* The node that the process is on, if it was told. */
static int go_home(void)
{
	const char *name = sim_core->setting("POLYCM_SIM_NODE");
	struct sim_node *node;
	char all[200];

	if (!name || !*name)
		return 0;
	node = sim_node_by_name(name);
	if (!node) {
		sim_list_nodes(all, sizeof(all));
		sim_core->log(POLYCM_LOG_ERROR, NULL, "POLYCM_SIM_NODE=%s: the scenario has no node "
			      "of that name; there are: %s", name, all);
		return -EINVAL;
	}
	sim_set_home_node(node);
	return 0;
}

int sim_fabric_open_scenario(const char *path)
{
	const char *device = sim_core->setting("POLYCM_SIM_DEVICE");
	int r = 0;

	if (device && *device)
		sim_core->log(POLYCM_LOG_WARN, NULL, "POLYCM_SIM_DEVICE has no effect: the nodes "
			      "of POLYCM_SIM_SCENARIO have their own devices");

	if (!sim_is_virtual())
		r = join(path);
	if (!r)
		r = sim_fabric_begin();
	if (!r)
		r = sim_scenario_build(path, NULL, 0);
	if (!r)
		r = go_home();
	if (!r)
		sim_changes_read();
	if (r < 0)
		sim_fabric_close();
	return r;
}
