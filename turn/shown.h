/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/shown.h - what the launcher shows of what members print, in the order in which they did. */
#ifndef TURN_SHOWN_H
#define TURN_SHOWN_H

#include <stdint.h>

/* So many bytes were written to that descriptor; nothing happens if it is not the launcher's file. */
void turn_shown(int fd, uint64_t len);
/* That number of turn_segment.told is to be told in between. */
void turn_shown_told(uint32_t number);

#endif
