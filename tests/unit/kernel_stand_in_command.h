/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel_stand_in_command.h - between the stand-in's descriptors and its commands. */
#ifndef TESTS_UNIT_KERNEL_STAND_IN_COMMAND_H
#define TESTS_UNIT_KERNEL_STAND_IN_COMMAND_H

#include "kernel_stand_in_internal.h"

/* One write(): the bytes taken or -errno. */
ssize_t si_command(struct si_file *file, const void *command, size_t len);

/* kernel_stand_in.c */
struct si_file *si_file_of(uint32_t fd);
struct si_id *si_id_of(uint32_t number);
/* Take the first event; waits, without the lock, if there is none. */
int si_next_event(struct si_file *file, struct si_event **ret_event);
void si_move_events(struct si_id *id, struct si_file *to);

#endif
