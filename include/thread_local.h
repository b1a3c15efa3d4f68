/* SPDX-License-Identifier: BSD-2-Clause */
/* thread_local.h - variables of one thread, in a library. */
#ifndef THREAD_LOCAL_H
#define THREAD_LOCAL_H

/* In the block that threads start with, where it is found without a call; there is little room. */
#define POLYCM_THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))

#endif
