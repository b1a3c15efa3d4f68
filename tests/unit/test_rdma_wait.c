/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting in rdma_get_cm_event(): for a thread that posts, for a provider
 * whose events must be fetched, in virtual time; and how a wait ends otherwise.
 */
#include "cm_fake.h"

#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"

struct waiter {
	pthread_t thread;
	struct rdma_event_channel *channel;
	struct rdma_cm_event *event;
	int ret, error;
	bool done;
};

static void *get_event(void *arg)
{
	struct waiter *self = arg;

	self->ret = rdma_get_cm_event(self->channel, &self->event);
	self->error = errno;
	__atomic_store_n(&self->done, true, __ATOMIC_SEQ_CST);
	return NULL;
}

static void start_waiter(struct waiter *waiter, struct rdma_event_channel *channel)
{
	*waiter = (struct waiter){ .channel = channel };
	assert_int_equal(pthread_create(&waiter->thread, NULL, get_event, waiter), 0);
}

/* The waiter sleeps now, or is about to. */
static void let_it_sleep(struct rdma_event_channel *channel)
{
	struct polycm_channel *chan = polycm_channel_of(channel);
	bool sleeps = false;

	while (!sleeps) {
		sched_yield();
		polycm_latch_take(&chan->channel_lock);
		sleeps = __atomic_load_n(&chan->inside, __ATOMIC_RELAXED) &&
			 (chan->sleepers || chan->num_pull);
		polycm_latch_give(&chan->channel_lock);
	}
}

static void join_waiter(struct waiter *waiter)
{
	assert_int_equal(pthread_join(waiter->thread, NULL), 0);
}

static void a_post_wakes_who_waits(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved_id(channel);
	struct waiter waiters[2];

	(void)state;
	for (int round = 0; round < 50; round++) {
		start_waiter(&waiters[0], channel);
		start_waiter(&waiters[1], channel);
		if (round % 2)
			let_it_sleep(channel);
		assert_int_equal(post(id, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
		assert_int_equal(post(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0), 0);
		for (int i = 0; i < 2; i++) {
			join_waiter(&waiters[i]);
			assert_int_equal(waiters[i].ret, 0);
			assert_int_equal(rdma_ack_cm_event(waiters[i].event), 0);
		}
	}
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

static unsigned int signals;

static void count_signal(int number)
{
	(void)number;
	__atomic_add_fetch(&signals, 1, __ATOMIC_SEQ_CST);
}

static void handle_signal(int flags)
{
	struct sigaction action = { .sa_handler = count_signal, .sa_flags = flags };

	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

static void signals_interrupt(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct waiter waiter;

	(void)state;
	handle_signal(0);
	start_waiter(&waiter, channel);
	while (!__atomic_load_n(&waiter.done, __ATOMIC_SEQ_CST)) {
		assert_int_equal(pthread_kill(waiter.thread, SIGUSR1), 0);
		sched_yield();
	}
	join_waiter(&waiter);
	assert_int_equal(waiter.ret, -1);
	assert_int_equal(waiter.error, EINTR);
	rdma_destroy_event_channel(channel);
}

/* ThreadSanitizer runs handlers only when a call that it knows returns. */
#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define HANDLERS_ARE_LATE 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define HANDLERS_ARE_LATE 1
#endif

/* As a call into the kernel would go on. */
static void signals_that_restart_calls_do_not(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved_id(channel);
	struct waiter waiter;
	unsigned int seen;

	(void)state;
#ifdef HANDLERS_ARE_LATE
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	skip();
#endif
	handle_signal(SA_RESTART);
	start_waiter(&waiter, channel);
	let_it_sleep(channel);
	for (int i = 0; i < 20; i++) {
		seen = __atomic_load_n(&signals, __ATOMIC_SEQ_CST);
		assert_int_equal(pthread_kill(waiter.thread, SIGUSR1), 0);
		while (seen == __atomic_load_n(&signals, __ATOMIC_SEQ_CST))
			sched_yield();
	}
	assert_int_equal(post(id, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	join_waiter(&waiter);
	assert_int_equal(waiter.ret, 0);
	assert_int_equal(rdma_ack_cm_event(waiter.event), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

static void waiters_can_be_cancelled(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved_id(channel);
	struct waiter waiter;
	void *result;

	(void)state;
	start_waiter(&waiter, channel);
	let_it_sleep(channel);
	assert_int_equal(pthread_cancel(waiter.thread), 0);
	assert_int_equal(pthread_join(waiter.thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(polycm_channel_of(channel)->inside, 0);

	/* The channel works as before. */
	assert_int_equal(post(id, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

/* Programs end so: one thread destroys the channel, another waits on it until the process exits. */
static void waiters_sleep_on_when_the_channel_goes(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct waiter waiter;
	void *result;

	(void)state;
	start_waiter(&waiter, channel);
	let_it_sleep(channel);
	rdma_destroy_event_channel(channel);
	assert_errno(rdma_get_cm_event(channel, &event), EINVAL);
	assert_false(__atomic_load_n(&waiter.done, __ATOMIC_SEQ_CST));
	assert_int_equal(pthread_cancel(waiter.thread), 0);
	assert_int_equal(pthread_join(waiter.thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
}

/* Woken for an event that another thread took, or that went with its id. */
static void woken_waiters_sleep_on_when_the_channel_goes(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		struct rdma_event_channel *channel = rdma_create_event_channel();
		struct polycm_channel *chan = polycm_channel_of(channel);
		struct waiter waiter;
		void *result;

		start_waiter(&waiter, channel);
		let_it_sleep(channel);
		polycm_latch_take(&chan->channel_lock);
		__atomic_add_fetch(&chan->posts, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &chan->posts, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		polycm_latch_give(&chan->channel_lock);
		rdma_destroy_event_channel(channel);
		for (int i = 0; i < 10; i++)
			sched_yield();
		assert_false(__atomic_load_n(&waiter.done, __ATOMIC_SEQ_CST));
		assert_int_equal(pthread_cancel(waiter.thread), 0);
		assert_int_equal(pthread_join(waiter.thread, &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
	}
}

/* rping's thread may be on its way into the call when another destroys the channel and exits. */
static void threads_that_come_late_sleep_too(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct waiter waiter;
	void *result;

	(void)state;
	rdma_destroy_event_channel(channel);
	start_waiter(&waiter, channel);
	for (int i = 0; i < 100; i++)
		sched_yield();
	assert_false(__atomic_load_n(&waiter.done, __ATOMIC_SEQ_CST));
	assert_int_equal(pthread_cancel(waiter.thread), 0);
	assert_int_equal(pthread_join(waiter.thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
}

static void interrupted_waiters_notice_that_the_channel_went(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct waiter waiter;

	(void)state;
	handle_signal(0);
	start_waiter(&waiter, channel);
	let_it_sleep(channel);
	rdma_destroy_event_channel(channel);
	while (!__atomic_load_n(&waiter.done, __ATOMIC_SEQ_CST)) {
		assert_int_equal(pthread_kill(waiter.thread, SIGUSR1), 0);
		sched_yield();
	}
	join_waiter(&waiter);
	assert_int_equal(waiter.ret, -1);
	assert_int_equal(waiter.error, EBADF);
}

static void ring(int fd)
{
	uint64_t one = 1;

	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
}

static void events_are_fetched_from_providers(void **state)
{
	struct rdma_event_channel *channel;
	struct pollfd pfd = { .events = POLLIN };
	struct waiter waiter;
	struct rdma_cm_id *id;

	(void)state;
	fakes[0].pull_fd = eventfd(0, EFD_NONBLOCK);
	channel = rdma_create_event_channel();
	id = resolved_id(channel);
	fakes[0].pulled_id = (struct polycm_id *)(void *)id;
	fakes[0].pulled = (struct polycm_event){ .size = sizeof(struct polycm_event),
						 .type = RDMA_CM_EVENT_ADDR_CHANGE };
	pfd.fd = channel->fd;
	expect_no_event(channel);
	assert_int_equal(fakes[0].calls[OP_CHANNEL_READ], 0);

	ring(fakes[0].pull_fd);
	assert_int_equal(poll(&pfd, 1, 0), 1);
	expect_event(channel, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	assert_int_equal(fakes[0].calls[OP_CHANNEL_READ], 1);
	assert_int_equal(poll(&pfd, 1, 0), 0);

	/* It may also post by itself. */
	assert_int_equal(post(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0), 0);
	expect_event(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);

	start_waiter(&waiter, channel);
	let_it_sleep(channel);
	ring(fakes[0].pull_fd);
	join_waiter(&waiter);
	assert_int_equal(waiter.ret, 0);
	assert_int_equal(waiter.event->event, RDMA_CM_EVENT_ADDR_CHANGE);
	assert_int_equal(rdma_ack_cm_event(waiter.event), 0);

	start_waiter(&waiter, channel);
	let_it_sleep(channel);
	assert_int_equal(post(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0), 0);
	join_waiter(&waiter);
	assert_int_equal(waiter.ret, 0);
	assert_int_equal(rdma_ack_cm_event(waiter.event), 0);

	/* Readable, but for nothing: as before. */
	fakes[0].pulled_id = NULL;
	ring(fakes[0].pull_fd);
	expect_no_event(channel);

	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
	assert_int_equal(fakes[0].calls[OP_CHANNEL_CLOSE], 1);
	close(fakes[0].pull_fd);
}

/* ------------------------------------------------------------------------
 * Virtual time.  Last, since a clock stays.
 */

static struct {
	struct rdma_cm_id *id;
	int answers[4], num, asked;
	bool posts;
} virtual;

static uint64_t virtual_now(void *ctx)
{
	(void)ctx;
	return 0;
}

static int virtual_timer_start(void *ctx, uint64_t deadline_ns, void (*fn)(void *arg), void *arg,
			       struct polycm_timer **ret_timer)
{
	(void)ctx;
	(void)deadline_ns;
	(void)fn;
	(void)arg;
	(void)ret_timer;
	return -ENOSYS;
}

static void virtual_timer_cancel(void *ctx, struct polycm_timer *timer)
{
	(void)ctx;
	(void)timer;
}

static int virtual_idle(void *ctx)
{
	int answer = virtual.answers[virtual.asked < virtual.num ? virtual.asked : virtual.num - 1];

	(void)ctx;
	virtual.asked++;
	if (virtual.posts && virtual.asked == virtual.num)
		assert_int_equal(post(virtual.id, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	return answer;
}

static void time_moves_before_a_thread_sleeps(void **state)
{
	static const struct polycm_clock clock = {
		.size = sizeof(clock),
		.now_ns = virtual_now,
		.timer_start = virtual_timer_start,
		.timer_cancel = virtual_timer_cancel,
		.idle = virtual_idle,
	};
	static const struct { int answers[4], num; bool posts; int error; } cases[] = {
		{ { 1 }, 1, true, 0 },
		{ { 1, 1, 1 }, 3, true, 0 },
		{ { 0 }, 1, true, 0 },		/* posted between the look and the sleep */
		{ { -EDEADLK }, 1, true, 0 },	/* likewise */
		{ { -EDEADLK }, 1, false, EDEADLK },
		{ { 1, 1, -EDEADLK }, 3, false, EDEADLK },
	};
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct capture capture;

	(void)state;
	virtual.id = resolved_id(channel);
	assert_int_equal(polycm_clock_install(&clock, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		memcpy(virtual.answers, cases[i].answers, sizeof(virtual.answers));
		virtual.num = cases[i].num;
		virtual.posts = cases[i].posts;
		virtual.asked = 0;
		print_message("case %zu\n", i);
		/* Who does not wait does not move time. */
		expect_no_event(channel);
		assert_int_equal(virtual.asked, 0);

		capture_begin(&capture);
		if (cases[i].error)
			assert_errno(rdma_get_cm_event(channel, &event), cases[i].error);
		else
			expect_event(channel, RDMA_CM_EVENT_ADDR_CHANGE, 0);
		capture_end(&capture);
		assert_int_equal(virtual.asked, cases[i].num);
		assert_int_equal(count_lines(capture.text), cases[i].error ? 1 : 0);
		if (cases[i].error)
			assert_non_null(strstr(capture.text, "rdma_get_cm_event waits for what can "
					       "never happen: acme acme0 10.0.0.1:40000 > "
					       "10.0.0.2:7471"));
	}
	assert_int_equal(rdma_destroy_id(virtual.id), 0);
	rdma_destroy_event_channel(channel);
}

static int start(void **state)
{
	(void)state;
	return fakes_start(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RDMA_TEST(a_post_wakes_who_waits),
		RDMA_TEST(signals_interrupt),
		RDMA_TEST(signals_that_restart_calls_do_not),
		RDMA_TEST(waiters_can_be_cancelled),
		RDMA_TEST(waiters_sleep_on_when_the_channel_goes),
		RDMA_TEST(woken_waiters_sleep_on_when_the_channel_goes),
		RDMA_TEST(threads_that_come_late_sleep_too),
		RDMA_TEST(interrupted_waiters_notice_that_the_channel_went),
		RDMA_TEST(events_are_fetched_from_providers),
		RDMA_TEST(time_moves_before_a_thread_sleeps),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
