/* SPDX-License-Identifier: BSD-2-Clause */
/* carry.c - polycm carry: the loop in which it waits for programs and for the simulated network. */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "carry.h"
#include "polycm/polycm.h"

const struct polycm_tcp_ops *carry_network;
const struct turn_tells *carry_tells;

/* ------------------------------------------------------------------------
 * Segments that have arrived: a thread of the simulator adds them.
 */

static struct {
	pthread_mutex_t lock;
	int event;
	struct polycm_tcp_segment *segments;
	size_t num, size;
	bool is_lost;		/* one, for lack of memory */
} arrivals = { .lock = PTHREAD_MUTEX_INITIALIZER, .event = -1 };

static void note_arrival(const struct polycm_tcp_segment *segment)
{
	static const uint64_t one = 1;

	pthread_mutex_lock(&arrivals.lock);
	if (arrivals.num == arrivals.size) {
		const size_t size = arrivals.size ? 2 * arrivals.size : 64;
		void *more = reallocarray(arrivals.segments, size, sizeof(*arrivals.segments));

		if (more) {
			arrivals.segments = more;
			arrivals.size = size;
		}
	}
	if (arrivals.num < arrivals.size)
		arrivals.segments[arrivals.num++] = *segment;
	else
		arrivals.is_lost = true;
	pthread_mutex_unlock(&arrivals.lock);
	/* It has room for 2^64 - 2 of them. */
	while (write(arrivals.event, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/* False: memory was short, and connections would wait for what is lost. */
static bool take_arrivals(void)
{
	struct polycm_tcp_segment *segments;
	uint64_t num_events;
	bool is_lost;
	size_t num;

	if (read(arrivals.event, &num_events, sizeof(num_events)) < 0)
		return true;
	pthread_mutex_lock(&arrivals.lock);
	segments = arrivals.segments;
	num = arrivals.num;
	is_lost = arrivals.is_lost;
	arrivals.segments = NULL;
	arrivals.num = arrivals.size = 0;
	pthread_mutex_unlock(&arrivals.lock);
	for (size_t i = 0; i < num; i++)
		carry_arrived(&segments[i]);
	free(segments);
	return !is_lost;
}

/* ------------------------------------------------------------------------
 * The loop.
 */

enum { ARRIVALS, REQUESTS };	/* of carry_wait() */

static volatile sig_atomic_t is_over;

static void end(int signal)
{
	(void)signal;
	is_over = true;
}

/* Until the system is over.  Then it ends as others do: the last one tells of faults that never were. */
static int serve(int requests)
{
	unsigned int others;
	int num;

	while (!is_over) {
		num = carry_wait(-1, &others);
		if (num < 0 && num != -EINTR) {
			errno = -num;
			break;
		}
		/* A socket may connect again; then what arrives for it is of its connection before. */
		while (others & 1u << REQUESTS && carry_take_request(requests))
			;
		if (others & 1u << ARRIVALS && !take_arrivals()) {
			errno = ENOMEM;
			break;
		}
	}
	if (!is_over)
		tool_error("carry: %m");
	return is_over ? 0 : EXIT_FAILURE;
}

/* The simulator starts with the first look at its devices. */
static bool find_network(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	int err;

	if (!devices)
		return false;
	carry_network = polycm_provider_extension("sim", POLYCM_TCP_EXTENSION, 1);
	if (!carry_network || carry_network->size != sizeof(*carry_network))
		return false;
	err = carry_network->open(note_arrival);
	errno = -err;
	return !err;
}

/* Two for each connection: as many as may be. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static char network_name[] = "network";

int carry_command(int argc, char **argv)
{
	int requests;

	(void)argv;
	program_invocation_short_name = network_name;	/* in traces */
	carry_tells = dlsym(RTLD_DEFAULT, TURN_TELLS);
	if (argc > 1 || !carry_tells || carry_tells->size != sizeof(*carry_tells) ||
	    !carry_tells->now()) {
		tool_error("carry: 'polycm run' starts this for scenarios with tcp = true");
		return STATUS_USAGE;
	}
	raise_limit();
	signal(SIGTERM, end);
	arrivals.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (arrivals.event < 0 || !find_network()) {
		tool_error("carry: there is no simulated network: %m");
		return EXIT_FAILURE;
	}
	requests = carry_open_requests();
	if (requests < 0 || !carry_wait_for(arrivals.event, ARRIVALS) ||
	    !carry_wait_for(requests, REQUESTS)) {
		tool_error("carry: programs cannot connect: %m");
		return EXIT_FAILURE;
	}
	return serve(requests);
}
