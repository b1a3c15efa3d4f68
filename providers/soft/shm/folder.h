/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shm/folder.h - the folder where the processes of a shared fabric keep their
 * files.  Engine lock held.
 *
 * It is below $XDG_RUNTIME_DIR/polycm, /dev/shm/polycm-UID or /tmp/polycm-UID
 * and has the fabric's name; beside it lies a lock file, held while a process
 * joins or leaves.  Nobody but the user can look in.
 *
 * The last process to leave deletes a fabric.  Where the folder has a file SIM_FOLDER_KEPT, fabrics
 * stay when nobody is on them, and whoever made it deletes them.
 */
#ifndef SIM_FOLDER_H
#define SIM_FOLDER_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_FOLDER_KEPT ".kept"	/* no name for a fabric */

struct sim_folder {
	int base_fd, fd, lock_fd;
	bool is_kept;
	char name[160];
	char path[512];			/* for people */
};

/* [A-Za-z0-9_.-], not empty, no leading dot, not too long. */
bool sim_folder_name_valid(const char *name);

/* Open the folder, make what is missing, and take its lock.  While open it counts as used. */
int sim_folder_open(const char *name, struct sim_folder *ret_folder);
void sim_folder_close(struct sim_folder *folder);	/* the lock too */
/* -EBUSY, logged: one process held it for so many nanoseconds, and may be stopped. */
int sim_folder_lock(struct sim_folder *folder, uint64_t patience);
extern uint64_t sim_folder_patience;	/* when a process joins */
void sim_folder_unlock(struct sim_folder *folder);

/* With the lock: does no other process have it open? */
bool sim_folder_is_unused(const struct sim_folder *folder);
/* The entries of an open folder.  NULL with errno. */
DIR *sim_folder_list(int folder);
/* Delete the files that match; NULL: all.  An error: some may be left. */
int sim_folder_clean(struct sim_folder *folder, bool (*match)(const char *file, void *arg),
		     void *arg);
/* With the lock: delete it with all files, and the lock file if nothing is left of it. */
void sim_folder_remove(struct sim_folder *folder);

/* --- folder_base.c: where the folders of this user lie. --- */

/* Folders in which all users may make theirs, in order of preference; tests have others. */
extern const char *sim_folder_parents[2];

/* Fills in base_fd and path.  Logs errors; -EPERM: other users may use what is there. */
int sim_folder_open_base(struct sim_folder *folder);
/* Make the folder if need be.  -EPERM, logged with its path: it is not ours alone. */
int sim_folder_open_private(int at, const char *name, const char *path, int *ret_fd);

/* --- sweep.c --- */

/* Remove what fabrics without processes left beside our folder. */
void sim_sweep(const struct sim_folder *own);

#endif
