/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scene_time.c - owns time: the kernel's, or on the simulator its virtual
 * clock, which is reached through libpolycm where that is preloaded.
 */
#include <dlfcn.h>
#include <poll.h>
#include <time.h>

#include "tests/scenarios/scene_internal.h"

static int (*sim_now)(uint64_t *ret_ns);
static int (*sim_advance)(uint64_t ns);
static unsigned int patience;

static void find(const char *name, void *ret_function)
{
	void *function = dlsym(RTLD_DEFAULT, name);

	if (!function)
		end_failed(name);
	memcpy(ret_function, &function, sizeof(function));
}

void time_begin(const struct scenario *scenario)
{
	const char *clock = getenv("POLYCM_SIM_CLOCK");
	const char *given = getenv("SCENARIO_PATIENCE");

	patience = given ? (unsigned int)atoi(given) : 30;
	if (scenario->flags & SLOW)
		patience = 1200;
	if (!clock)
		return;
	if (scenario->flags & PROCESSES) {
		/* Virtual time is one process's own. */
		setenv("POLYCM_SIM_CLOCK", "real", 1);
		return;
	}
	if (strcmp(clock, "virtual") != 0)
		return;
	find("polycm_sim_now", &sim_now);
	find("polycm_sim_advance", &sim_advance);
}

bool virtual_time(void)
{
	return sim_now != NULL;
}

unsigned int patience_ms(void)
{
	return patience * 1000;
}

uint64_t now_ms(void)
{
	struct timespec now;
	uint64_t ns = 0;

	if (virtual_time()) {
		if (sim_now(&ns))
			end_failed("polycm_sim_now");
		return ns / 1000000;
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void pass_ms(unsigned int ms)
{
	struct timespec span = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	if (virtual_time()) {
		if (sim_advance((uint64_t)ms * 1000000))
			end_failed("polycm_sim_advance");
		return;
	}
	while (nanosleep(&span, &span) && errno == EINTR)
		;
}

static bool readable(struct rdma_event_channel *events, int ms)
{
	struct pollfd poll_fd = { .fd = events->fd, .events = POLLIN };

	return poll(&poll_fd, 1, ms) > 0;
}

bool ready_within(struct rdma_event_channel *events, unsigned int ms)
{
	if (!virtual_time())
		return readable(events, (int)ms);
	for (; !readable(events, 0); ms--) {
		if (!ms)
			return false;
		pass_ms(1);
	}
	return true;
}

void arrived(struct rdma_event_channel *events)
{
	if (!ready_within(events, patience_ms()))
		say("%s: nothing arrives", channel_name(events));
}

void show_lapse(const char *what, uint64_t since_ms, unsigned int expected_ms)
{
	uint64_t lapse = now_ms() - since_ms, least = expected_ms - expected_ms / 50;
	/* A busy machine may be slow by far, but no clock runs ahead by more than ticks. */
	uint64_t most = expected_ms + expected_ms / 50 + (virtual_time() ? 5 : 15000);

	if (lapse + 20 >= least && lapse <= most)
		say("%s after about %u ms", what, expected_ms);
	else if (lapse < expected_ms / 2 && lapse < 5000)
		say("%s at once", what);
	else
		say("%s after %llu ms, not %u", what, (unsigned long long)lapse, expected_ms);
}
