/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host for the simulator's insides: settings and transports from tables, log
 * lines and announced devices kept for the test to look at.
 */
#ifndef SIM_FAKE_H
#define SIM_FAKE_H

#include "providers/soft/fabric/fabric.h"

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define SIM_FAKE_TSAN true
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define SIM_FAKE_TSAN true
#endif
#ifndef SIM_FAKE_TSAN
#define SIM_FAKE_TSAN false
#endif

extern const struct polycm_transport sim_fake_roce, sim_fake_ib, sim_fake_iwarp;

/* Make the fake sim_core's; forgets what was set and kept. */
void sim_fake_init(void);
void sim_fake_set(const char *name, const char *value);

/* Of a test: the engine in virtual time with an empty fabric, the lock held; and their end. */
int sim_fake_open(void **state);
int sim_fake_close(void **state);

/* The newest line of that level, "" if there was none; how many there were. */
const char *sim_fake_log(enum polycm_log_level level);
unsigned int sim_fake_log_count(enum polycm_log_level level);

#define SIM_FAKE_DEVICES 8
extern struct polycm_device_info sim_fake_devices[SIM_FAKE_DEVICES];
extern unsigned int sim_fake_added, sim_fake_removed;

/* A folder of our own as $XDG_RUNTIME_DIR, and its removal, which must find it empty. */
void sim_fake_make_runtime_dir(void);
void sim_fake_remove_runtime_dir(void);
/* The path of something in it. */
const char *sim_fake_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
