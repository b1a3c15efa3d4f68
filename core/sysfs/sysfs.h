/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sysfs/sysfs.h - /sys as a host would have it for the simulated devices.
 *
 *	class/infiniband/DEVICE			-> the next but one
 *	class/infiniband_verbs/uverbsN		-> the last
 *	class/infiniband_mad/abi_version
 *	class/net/INTERFACE/device		-> the next
 *	devices/pciffff:BB/ffff:BB:SS.0/	the card
 *	 .../infiniband/DEVICE/			what the provider's read_sysfs_file() has
 *	 .../infiniband_verbs/uverbsN/
 *
 * Where the program sees real devices too, the classes lead to these as well.  Nothing here is
 * a file: libpolycm-interpose makes files of it for programs.
 */
#ifndef POLYCM_CORE_SYSFS_H
#define POLYCM_CORE_SYSFS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Start the providers, if need be to be looked at only, and ask them for devices.  false: no
 * device is simulated, and all of /sys is the host's.
 */
bool polycm_sysfs_begin(void);

/*
 * What is at a path below /sys without a link, "." or ".." in it; see base/interposer.h, where
 * libpolycm-interpose finds it.
 */
int polycm_sysfs_read(const char *path, char *buf, size_t size);

#endif
