/* SPDX-License-Identifier: BSD-2-Clause */
/* shm/folder_base.h - where the folders of this user's shared fabrics lie.  Engine lock held. */
#ifndef SIM_FOLDER_BASE_H
#define SIM_FOLDER_BASE_H

#include "folder.h"

/* Where all users may make folders, in order of preference; tests have others. */
extern const char *sim_folder_parents[2];

/* Fills in base_fd and path.  An error was logged; -EPERM: others may use what stands there. */
int sim_folder_open_base(struct sim_folder *folder);
/* Make the folder if need be.  -EPERM, logged with its path: it is not ours alone. */
int sim_folder_open_private(int at, const char *name, const char *path, int *ret_fd);

#endif
