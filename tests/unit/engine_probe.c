/* SPDX-License-Identifier: BSD-2-Clause */
/* engine_probe.c - see engine_probe.h. */
#include "config.h"

#include <string.h>

#include "engine_probe.h"

int start_virtual(void **state)
{
	(void)state;
	sim_fake_init();
	return sim_engine_start(SIM_CLOCK_VIRTUAL, 1);
}

int start_real(void **state)
{
	(void)state;
	sim_fake_init();
	return sim_engine_start(SIM_CLOCK_REAL, 1);
}

int stop(void **state)
{
	(void)state;
	if (!sim_lock_within(SIM_MS(500)))
		print_message("a test that failed has the lock\n");
	sim_unlock();
	sim_engine_stop();
	return 0;
}

char fired[64];
unsigned int num_fired;

struct probe probes[5], probe;

static void note(struct sim_timer *timer)
{
	struct probe *self = (struct probe *)timer;

	fired[num_fired++] = self->name;
	fired[num_fired] = '\0';
	self->at = sim_now();
	if (self->arms)
		sim_timer_arm(&self->arms->timer, sim_now());
	sim_wake();
}

void init_probes(struct probe *first, unsigned int num)
{
	memset(first, 0, num * sizeof(*first));
	for (unsigned int i = 0; i < num; i++) {
		sim_timer_init(&first[i].timer, note);
		first[i].name = (char)('a' + i);
	}
	num_fired = 0;
	fired[0] = '\0';
}

void arm(struct probe *one, uint64_t deadline)
{
	sim_lock();
	sim_timer_arm(&one->timer, deadline);
	sim_unlock();
}

bool is_true(void *arg)
{
	return *(const unsigned int *)arg;
}
