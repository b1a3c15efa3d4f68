/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scene_time.c - owns what the simulator is asked for, through libpolycm where
 * that is preloaded: its virtual clock in place of the kernel's, and its link.
 */
#include <dlfcn.h>
#include <poll.h>
#include <time.h>

#include "polycm/sim.h"
#include "scene_internal.h"

static int (*sim_now)(uint64_t *ret_ns);
static int (*sim_advance)(uint64_t ns);
static int (*sim_link_set)(struct polycm_sim_node *a, struct polycm_sim_node *b,
			   const struct polycm_sim_link *link);
static int (*sim_node_find)(const char *name, struct polycm_sim_node **ret_node);
static int (*sim_device_find)(struct polycm_sim_node *node, const char *name,
			      struct polycm_sim_device **ret_device);
static int (*sim_fault_add)(const struct polycm_sim_fault_rule *rule,
			    struct polycm_sim_fault **ret_fault);
static unsigned int patience;
static unsigned int pace = 1; /* times as long as on RoCE: what is waited for is slower */

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
	const char *slower = getenv("SCENARIO_PACE");

	if (slower && atoi(slower) > 0)
		pace = (unsigned int)atoi(slower);
	patience = given ? (unsigned int)atoi(given) : 30;
	if (scenario->flags & SLOW)
		patience = 1200;
	if (!clock)
		return;
	if (scenario->flags & PROCESSES) {
		/* Virtual time is one process's own. */
		setenv("POLYCM_SIM_CLOCK", "real", 1);
		unsetenv("POLYCM_SIM_SCENARIO");
		return;
	}
	if (strcmp(clock, "virtual") != 0)
		return;
	find("polycm_sim_now", &sim_now);
	find("polycm_sim_advance", &sim_advance);
	find("polycm_sim_link_set", &sim_link_set);
	find("polycm_sim_node_find", &sim_node_find);
	find("polycm_sim_device_find", &sim_device_find);
	find("polycm_sim_fault_add", &sim_fault_add);
}

bool sim_link(double loss, double duplication, unsigned int latency_ms)
{
	const struct polycm_sim_link link = {
		.size = sizeof(link),
		.latency_ns = latency_ms ? latency_ms * 1000000ULL : 1000,
		.loss = loss,
		.duplication = duplication,
	};

	if (!sim_link_set)
		return false;
	if (sim_link_set(NULL, NULL, &link))
		end_failed("polycm_sim_link_set");
	return true;
}

bool sim_link_carrier(bool up)
{
	struct polycm_sim_fault_rule rule = {
		.size = sizeof(rule),
		.action = up ? POLYCM_SIM_PORT_UP : POLYCM_SIM_PORT_DOWN,
	};
	struct polycm_sim_device *unused;
	const char *device;

	if (!sim_fault_add)
		return false;
	if (sim_node_find("host", &rule.on))
		end_failed("polycm_sim_node_find");
	for (device = "sim0\0sim1\0sim2\0sim3\0"; *device; device += strlen(device) + 1) {
		rule.device = device;
		if (sim_device_find(rule.on, device, &unused))
			break;
		if (sim_fault_add(&rule, NULL))
			end_failed("polycm_sim_fault_add");
	}
	/* Such a rule is a timer that is due now. */
	if (sim_advance(1))
		end_failed("polycm_sim_advance");
	return true;
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

/*
 * On the kernel time passes in naps of 20 ms.  They end late on a machine that is busy or was
 * stopped for a while, where the kernel's threads are late, too, and count less then: time doubles
 * there, but does no more, for what has a limit.
 */
enum { NAP = 20 };

static unsigned int nap_counts(uint64_t start_ms)
{
	uint64_t half = (now_ms() - start_ms) / 2;

	return half < NAP ? NAP : half < 5 * NAP ? (unsigned int)half : 5 * NAP;
}

static void nap(unsigned int ms)
{
	struct timespec span = { .tv_nsec = (long)ms * 1000000 };

	while (nanosleep(&span, &span) && errno == EINTR)
		;
}

static void pass_exactly(unsigned int ms)
{
	unsigned int counts;
	uint64_t start;

	if (virtual_time()) {
		if (sim_advance((uint64_t)ms * 1000000))
			end_failed("polycm_sim_advance");
		return;
	}
	for (; ms > NAP; ms -= counts < ms ? counts : ms) {
		start = now_ms();
		nap(NAP);
		counts = nap_counts(start);
	}
	nap(ms);
}

void settle(void)
{
	int error = errno, i;

	for (i = 0; i < 4 && !virtual_time(); i++)
		nap(2);
	errno = error;
}

void pass_ms(unsigned int ms)
{
	pass_exactly(ms * pace);
}

unsigned int rest_ms(void)
{
	/* Longer than RoCE's timewait of half a second, and by more where kernel threads may be late. */
	return (virtual_time() ? 800 : 1200) * pace;
}

static bool readable(struct rdma_event_channel *events, int ms)
{
	struct pollfd poll_fd = { .fd = events->fd, .events = POLLIN };

	return poll(&poll_fd, 1, ms) > 0;
}

bool ready_within(struct rdma_event_channel *events, unsigned int ms)
{
	unsigned int counts;
	uint64_t start;

	if (!virtual_time()) {
		for (; ms > NAP; ms -= counts < ms ? counts : ms) {
			start = now_ms();
			if (readable(events, NAP))
				return true;
			counts = nap_counts(start);
		}
		return readable(events, (int)ms);
	}
	for (; !readable(events, 0); ms--) {
		if (!ms)
			return false;
		pass_exactly(1);
	}
	return true;
}

void arrived(struct rdma_event_channel *events)
{
	if (!ready_within(events, patience_ms()))
		say("%s: nothing arrives", channel_name(events));
	settle();
}

void show_lapse(const char *what, uint64_t since_ms, unsigned int expected_ms)
{
	/* What was measured around it counts, too: 4 % for rest() and the like. */
	uint64_t lapse = now_ms() - since_ms, least = expected_ms - expected_ms / 50;
	/* A busy machine may be slow by far, but no clock runs ahead by more than ticks. */
	uint64_t most = expected_ms + expected_ms / 25 + (virtual_time() ? 5 : 15000);

	if (lapse + 20 >= least && lapse <= most)
		say("%s after about %u ms", what, expected_ms);
	else if (lapse < expected_ms / 2 && lapse < 5000)
		say("%s at once", what);
	else	/* to tens: when a millisecond begins depends on what was before */
		say("%s after %llu ms, not %u", what, (unsigned long long)lapse / 10 * 10, expected_ms);
}

/* Threads that run or could, without this one; 0 where the system does not tell. */
static unsigned int computing(void)
{
	FILE *file = fopen("/proc/loadavg", "re");
	unsigned int number = 1;

	if (file) {
		if (fscanf(file, "%*s %*s %*s %u", &number) != 1)
			number = 1;
		fclose(file);
	}
	return number - 1;
}

void wait_for_calm(void)
{
	const struct timespec span = { .tv_nsec = 10000000 };
	unsigned int turn, quiet_turns = 0;

	for (turn = 0; turn < 500 && quiet_turns < 2; turn++) {
		nanosleep(&span, NULL);
		quiet_turns = computing() > 1 ? 0 : quiet_turns + 1;
	}
}
