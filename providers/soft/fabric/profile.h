/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/profile.h - what a device looks like and what its limits are, as `ibv_devinfo -v`
 * prints them on the host that has it.  Uses no lock.
 */
#ifndef SIM_PROFILE_H
#define SIM_PROFILE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

#include "polycm/rules.h"

#define SIM_PROFILE_PORTS 2u

/* Members are 0 where the text has no such line. */
struct sim_profile_port {
	uint32_t max_mtu, active_mtu;		/* enum ibv_mtu */
	uint32_t link_layer;			/* IBV_LINK_LAYER_* */
	uint32_t max_msg_sz, port_cap_flags, port_cap_flags2;
	uint32_t max_vl_num, gid_tbl_len, pkey_tbl_len;
	uint32_t active_width, active_speed;	/* codes, as in struct ibv_port_attr */
	uint32_t subnet_timeout, init_type_reply;
	uint64_t missing;			/* a bit for each line that the text does not have */
};

struct sim_profile {
	char name[IBV_SYSFS_NAME_MAX];		/* hca_id */
	char board_id[64];
	uint32_t transport;			/* enum ibv_transport_type */
	struct ibv_device_attr attr;
	uint64_t timestamp_mask, core_clock_khz;
	uint32_t num_comp_vectors;
	uint64_t missing;			/* as in a port */
	uint32_t num_ports;
	struct sim_profile_port ports[SIM_PROFILE_PORTS];
	char path[512];				/* of the file or folder */
	char sysfs[512];			/* copy of its folder in /sys, or "" */
};

/*
 * Read the first device of the file, or of the file ibv_devinfo in the folder.  -EINVAL: ret_why
 * says what is wrong and in which line.  Other errnos: it cannot be read, and ret_why is empty
 * unless the folder has no such file.
 */
int sim_profile_read(const char *path, struct sim_profile *ret_profile, char *ret_why,
		     size_t why_size);

/* Replace what the text says; what it leaves out keeps its value. */
void sim_profile_apply(const struct sim_profile *profile, struct ibv_device_attr *attr);
/* The names of the lines that the text leaves out, or "". */
void sim_profile_missing(const struct sim_profile *profile, char *ret_text, size_t size);

/* Can a device of that transport look like it? */
bool sim_profile_fits(const struct sim_profile *profile, const struct polycm_transport *rules);
/* The transport that it plays: "roce", "ib" or "iwarp". */
const char *sim_profile_transport(const struct sim_profile *profile);

#endif
