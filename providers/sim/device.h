/* SPDX-License-Identifier: BSD-2-Clause */
/* device.h - the profiles of devices that have names.  Engine lock held. */
#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H

#include "providers/soft/fabric/profile.h"

#define DEVICE_WHY 640

/*
 * Read the profile with that name, or the file if the name has a slash.  With an error ret_why
 * says what is wrong.
 */
int device_profile(const char *name, struct sim_profile *ret_profile, char ret_why[DEVICE_WHY]);

#endif
