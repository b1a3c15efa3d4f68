/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * host/start.h - starting and stopping the software host: engine, NIC, CM and fabric.
 *
 * It runs from the core's first call until the process ends, or until a test destroys the fabric;
 * the next call that needs a fabric starts it again.  The setup lock is taken before the
 * engine's.  Callers hold neither, unless a comment says otherwise.
 */
#ifndef SIM_START_H
#define SIM_START_H

#include <pthread.h>

#include "polycm/provider.h"
#include "polycm/sim.h"
#include "providers/soft/engine/engine.h"

/* Protects the state of the host (running or not, with which fabric) and the device list. */
extern pthread_mutex_t sim_setup_lock;

struct sim_start {
	enum sim_clock clock;
	uint64_t seed;
	uint64_t cm_delay;		/* ns, of each step of the CM */
	int (*open_fabric)(void);	/* engine lock held; closes what it has begun if it fails */
	/* The settings that name the files of the trace and the capture; for sim_start_by_settings(). */
	const char *trace, *capture;
};

/* --- Setup lock held. --- */

/* Start.  Traces and captures are the caller's. */
int sim_start(const struct sim_start *how);
/* The same as the program's own fabric, with the trace and the capture of the settings. */
int sim_start_by_settings(const struct sim_start *how);
/*
 * ns that each step of the CM takes, by the setting of this name (microseconds).  Unset: as on a
 * host with a card, or 0 with the virtual clock.  -EINVAL, logged: not such a number.
 */
int sim_start_cm_delay(const char *setting, enum sim_clock clock, uint64_t *ret_delay);
/* Stop.  -EBUSY: the program has objects left on the fabric, which *ret_why lists. */
int sim_down(char *ret_why, size_t why_size);
/* Stop, whatever is left; the core has destroyed all ids. */
void sim_down_forced(void);
/* Stop, whatever is left, also after a start that failed; devices are not taken back. */
void sim_take_down(void);
/* Set at start-up or NULL: it stops.  Engine lock held, too. */
extern void (*sim_stopping)(void);
/*
 * A program that only reads sysfs keeps real time, and truncates no trace or capture.  When it
 * uses the devices: sim_up_use(), which does nothing unless this begins.
 */
int sim_up_use(void);

/* --- No lock needed. --- */

bool sim_only_looked_at(void);
bool sim_is_up(void);

void sim_count_live(struct polycm_sim_counts *ret_counts);

#endif
