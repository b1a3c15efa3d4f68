/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looking for a process at a gate behind which members may be stopped, may have ended, may refuse
 * us, or which nobody keeps.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ofi_far.h"
#include "ofi_sample.h"
#include "providers/ofi/gate.h"
#include "providers/ofi/io.h"
#include "providers/ofi/knock.h"
#include "providers/ofi/owners.h"
#include "providers/ofi/peer.h"
#include "providers/ofi/route.h"
#include "providers/ofi/self.h"
#include "providers/ofi/session.h"
#include "providers/soft/link/link_internal.h"

static const struct ofi_want any = { .kind = OFI_WANT_ANY };
static struct ofi_far far[OFI_ATTEMPTS], far2;
static struct sim_remote_host *host;
static int listener;
static uint8_t body[OFI_FAR_BODY];

static int setup(void **state)
{
	ofi_world_open(state);
	ofi_world_pass(SIM_MS(1000));		/* at 0 nobody has been asked for a while */
	host = ofi_far_host(&listener);
	for (unsigned int i = 0; i < OFI_ATTEMPTS; i++)
		ofi_far_init(&far[i]);
	ofi_far_init(&far2);
	return 0;
}

static int teardown(void **state)
{
	if (listener >= 0)
		close(listener);
	return ofi_world_close(state);
}

static bool no_knock(const void *arg)
{
	(void)arg;
	return !host->knock;
}

static bool no_session(const void *arg)
{
	(void)arg;
	return !ofi_sessions_open();
}

static bool opened(const void *arg)
{
	(void)arg;
	return ofi_host_any(host);
}

static struct ofi_peer *far_peer(void)
{
	return ofi_peer_of_slot(host, far[0].hello.slot);
}

static void shut_gate(void)
{
	close(listener);
	listener = -1;
}

/* What is put off to a timer. */
static void a_moment(void)
{
	ofi_world_pass(SIM_US(1));
}

/* So many attempts are under way, none of them answered. */
static void attempts(unsigned int num)
{
	unsigned int before = ofi_sessions_open();

	ofi_knock(host, NULL, &any);
	for (unsigned int i = 0; i < num; i++) {
		assert_int_equal(ofi_sessions_open(), before + i + 1);
		ofi_far_is_called(&far[i], listener);
		ofi_world_pass(SIM_MS(100));
	}
}

static void packet_waits(void)
{
	uint8_t bytes[100] = { 0 };

	assert_int_equal(ofi_queue_put(&host->waiting, SIM_PACKET_UD,
				       &(struct iovec){ bytes, sizeof(bytes) }, 1, sizeof(bytes)), 0);
}

/* ------------------------------------------------------------------------
 * Answers.
 */

static void answered(void **state)
{
	(void)state;
	ofi_knock(host, NULL, &any);
	ofi_knock(host, NULL, &any);
	assert_int_equal(ofi_sessions_open(), 1);
	ofi_far_is_called(&far[0], listener);
	ofi_far_says_hello(&far[0]);
	ofi_world_until(opened, NULL);
	assert_null(host->knock);
	assert_int_equal(host->state, OFI_HOST_UP);
	ofi_world_pass(SIM_MS(10000));
	assert_int_equal(ofi_sessions_open(), 1);
	ofi_far_pings(&far[0]);
	ofi_far_closes(&far[0]);
}

/* The others may be open at their ends by then, and what was sent there is read. */
static void the_first_answer_wins(void **state)
{
	(void)state;
	for (unsigned int first = 0; first < 4; first++) {
		attempts(4);
		ofi_far_says_hello(&far[first]);
		ofi_world_until(opened, NULL);
		assert_null(host->knock);
		for (unsigned int i = 0; i < 4; i++) {
			if (i == first)
				continue;
			ofi_far_says_hello(&far[i]);
			ofi_far_pings_across(&far[i], &far[first]);
		}
		/* The fifth had begun; who does not answer is not waited for. */
		far[4].fd = ofi_world_accept(listener);
		ofi_world_pass(SIM_MS(5000));
		ofi_world_settle();
		assert_int_equal(ofi_sessions_open(), 4);
		close(far[4].fd);
		for (unsigned int i = 0; i < 4; i++)
			ofi_far_closes(&far[i]);
		ofi_world_until(no_session, NULL);
		ofi_world_pass(SIM_MS(100));
	}
}

static void nobody_answers(void **state)
{
	(void)state;
	packet_waits();
	attempts(OFI_ATTEMPTS);
	ofi_world_pass(SIM_MS(1000));
	assert_int_equal(ofi_sessions_open(), OFI_ATTEMPTS);
	ofi_world_pass(SIM_MS(4000));
	assert_null(host->knock);
	assert_int_equal(host->state, OFI_HOST_NEW);
	assert_int_equal(host->waiting.bytes, 0);
	assert_int_equal(ofi_sessions_open(), 0);
	for (unsigned int i = 0; i < OFI_ATTEMPTS; i++)
		ofi_far_hears_end(&far[i]);
}

/* Half of the way round the world an answer takes longer than to a stopped process's kernel. */
static void a_slow_network_is_not_asked_again_at_once(void **state)
{
	(void)state;
	ofi_knock(host, NULL, &any);
	ofi_world_pass(SIM_MS(200));
	assert_int_equal(ofi_sessions_open(), 1);
	ofi_far_is_called(&far[0], listener);
	ofi_world_pass(SIM_MS(590));
	assert_int_equal(ofi_sessions_open(), 1);
	ofi_world_pass(SIM_MS(11));
	assert_int_equal(ofi_sessions_open(), 2);
	ofi_far_says_hello(&far[0]);
	ofi_world_until(opened, NULL);
	assert_int_equal(ofi_sessions_open(), 1);
	ofi_far_closes(&far[0]);
}

/* ------------------------------------------------------------------------
 * No.
 */

static void refused(void **state)
{
	const struct ofi_refused no = { .reason = OFI_REFUSED_RULES };
	uint8_t bytes[OFI_REFUSED_SIZE];

	(void)state;
	packet_waits();
	attempts(2);
	ofi_refused_encode(&no, bytes);
	ofi_far_send(far[1].fd, OFI_REFUSED, bytes, sizeof(bytes));
	ofi_world_until(no_session, NULL);
	a_moment();
	assert_null(host->knock);
	assert_int_equal(host->state, OFI_HOST_REFUSED);
	assert_int_equal(host->waiting.bytes, 0);
	ofi_far_hears_end(&far[0]);
	ofi_far_hears_end(&far[1]);
}

static bool told(const void *arg)
{
	(void)arg;
	a_moment();
	return !host->knock;
}

static void nobody_keeps_the_gate(void **state)
{
	(void)state;
	shut_gate();
	packet_waits();
	ofi_knock(host, NULL, &any);
	assert_non_null(host->knock);
	ofi_world_until(told, NULL);
	assert_int_equal(host->state, OFI_HOST_BARE);
	assert_int_equal(host->waiting.bytes, 0);
	/* Soon after, too, it is asked, and not told from memory; and never inside of the call. */
	packet_waits();
	ofi_knock(host, NULL, &any);
	assert_int_equal(host->waiting.bytes, 100);
	assert_non_null(host->knock);
	ofi_world_pass(SIM_MS(1));
	assert_int_equal(ofi_sessions_open(), 0);
	assert_int_equal(host->waiting.bytes, 100);
	ofi_world_pass(SIM_MS(1));
	ofi_world_until(told, NULL);
	assert_int_equal(host->waiting.bytes, 0);
}

/* As when a program announces its port before it listens. */
static void a_program_comes_just_after_a_refusal(void **state)
{
	const int yes = 1;

	(void)state;
	shut_gate();
	ofi_knock(host, NULL, &any);
	ofi_world_until(told, NULL);
	assert_int_equal(host->state, OFI_HOST_BARE);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);
	assert_int_equal(bind(listener, &host->gate.sa, sizeof(host->gate.in)), 0);
	assert_int_equal(listen(listener, 8), 0);
	packet_waits();
	ofi_knock(host, NULL, &any);
	ofi_world_pass(SIM_MS(2));
	assert_int_equal(ofi_sessions_open(), 1);
	assert_int_equal(host->waiting.bytes, 100);
	ofi_far_is_called(&far[0], listener);
	ofi_far_says_hello(&far[0]);
	ofi_world_until(opened, NULL);
	assert_int_equal(host->state, OFI_HOST_UP);
	assert_int_equal(host->waiting.bytes, 0);
	ofi_far_closes(&far[0]);
}

/* It reached us, so it lives, whether we reach its gate or not. */
static void a_gate_that_only_we_do_not_reach(void **state)
{
	struct ofi_peer *peer, *unknown;
	size_t len;

	(void)state;
	shut_gate();
	ofi_far_calls(&far[0]);
	ofi_far_hears_hello(&far[0]);
	peer = far_peer();
	unknown = ofi_peer_get(host, 9);
	ofi_knock(host, NULL, &any);
	ofi_knock(host, unknown, &(struct ofi_want){ .kind = OFI_WANT_SLOT, .slot = 9 });
	packet_waits();
	ofi_world_until(told, NULL);
	ofi_world_pass(SIM_MS(100));
	assert_ptr_equal(far_peer(), peer);
	assert_int_equal(host->state, OFI_HOST_UP);
	assert_int_equal(host->waiting.bytes, 0);
	assert_null(unknown->knock);
	assert_int_equal(ofi_far_receive(far[0].fd, body, &len), OFI_PACKET);
	ofi_far_pings(&far[0]);
	ofi_far_closes(&far[0]);
}

/* ------------------------------------------------------------------------
 * Members end.
 */

static void a_member_ends_and_another_one_answers(void **state)
{
	(void)state;
	packet_waits();
	ofi_knock(host, NULL, &any);
	for (unsigned int i = 0; i < OFI_ATTEMPTS - 1; i++) {
		ofi_far_is_called(&far[i], listener);
		ofi_far_closes(&far[i]);
		ofi_world_until(no_session, NULL);
		a_moment();
		assert_int_equal(ofi_sessions_open(), 1);
	}
	assert_int_equal(host->waiting.bytes, 100);
	ofi_far_is_called(&far[OFI_ATTEMPTS - 1], listener);
	ofi_far_says_hello(&far[OFI_ATTEMPTS - 1]);
	ofi_world_until(opened, NULL);
	assert_int_equal(host->waiting.bytes, 0);
	ofi_far_closes(&far[OFI_ATTEMPTS - 1]);
}

static void who_closes_every_time_is_left_alone(void **state)
{
	(void)state;
	ofi_knock(host, NULL, &any);
	for (unsigned int i = 0; i < OFI_ATTEMPTS; i++) {
		ofi_far_is_called(&far[i], listener);
		ofi_far_closes(&far[i]);
		ofi_world_until(no_session, NULL);
		a_moment();
	}
	assert_null(host->knock);
	assert_int_equal(ofi_sessions_open(), 0);
	assert_int_equal(host->state, OFI_HOST_NEW);
}

static void a_program_that_is_none_of_ours(void **state)
{
	static const char greeting[] = "SSH-2.0-OpenSSH_9.2p1\r\n";

	(void)state;
	ofi_knock(host, NULL, &any);
	ofi_far_is_called(&far[0], listener);
	ofi_far_write(far[0].fd, greeting, sizeof(greeting) - 1);
	ofi_world_until(told, NULL);
	assert_int_equal(host->state, OFI_HOST_NEW);
	assert_int_equal(ofi_sessions_open(), 0);
	ofi_far_hears_end(&far[0]);
}

static void another_process_answers_for_one_that_has_ended(void **state)
{
	struct ofi_peer *wanted;
	const struct ofi_want want = { .kind = OFI_WANT_SLOT, .slot = 8 };

	(void)state;
	wanted = ofi_peer_get(host, 8);
	ofi_owner_set(host, 77, wanted);
	ofi_knock(host, wanted, &want);
	assert_non_null(wanted->knock);
	ofi_far_is_called(&far[0], listener);
	ofi_far_says_hello(&far[0]);
	ofi_world_until(opened, NULL);
	assert_null(ofi_peer_of_slot(host, 8));
	assert_null(ofi_owner(host, 77));
	assert_non_null(far_peer());
	ofi_far_closes(&far[0]);
}

/* ------------------------------------------------------------------------
 * Whose a QP number is.
 */

static void datagram(uint32_t qpn)
{
	const struct sim_frame frame = {
		.from = &ofi_self.device->ports[0],
		.to = host->port,
		.type = SIM_PACKET_UD,
		.header = &qpn,
		.header_len = sizeof(qpn),
	};

	assert_int_equal(sim_link_to_machine(&frame, SIM_SLOT_ASK), 0);
}

static uint32_t question(const struct ofi_far *from)
{
	struct ofi_find find;
	size_t len;

	assert_int_equal(ofi_far_receive(from->fd, body, &len), OFI_FIND);
	assert_int_equal(ofi_find_decode(body, len, &find), 0);
	return find.number;
}

/* The stream of the first question is given up for another one, or the answer's was. */
static void an_answer_that_does_not_come_is_asked_for_again(void **state)
{
	struct ofi_found found = { .qpn = 0x4711, .slot = 3 };
	uint8_t bytes[OFI_FOUND_SIZE];
	size_t len;

	(void)state;
	ofi_far_calls(&far[0]);
	ofi_far_hears_hello(&far[0]);
	ofi_far_calls(&far[1]);
	ofi_far_hears_hello(&far[1]);
	datagram(0x4711);
	found.number = question(&far[0]);
	ofi_world_pass(SIM_MS(100));
	assert_int_equal(question(&far[0]), found.number);
	ofi_far_closes(&far[0]);
	ofi_world_pass(SIM_MS(200));
	ofi_far_pings(&far[1]);
	ofi_world_pass(SIM_MS(400));
	assert_int_equal(question(&far[1]), found.number);
	ofi_found_encode(&found, bytes);
	ofi_far_send(far[1].fd, OFI_FOUND, bytes, sizeof(bytes));
	assert_int_equal(ofi_far_receive(far[1].fd, body, &len), OFI_PACKET);
	ofi_world_pass(SIM_MS(10000));
	ofi_far_pings(&far[1]);
	ofi_far_closes(&far[1]);
}

/* ------------------------------------------------------------------------
 * One machine, several addresses.
 */

/* An address that it does not name itself, as behind a router that translates. */
static void known_by_another_address(void **state)
{
	union sim_sockaddr addr = sample_addr("192.0.2.9", 0);
	struct sim_remote_host *second;

	(void)state;
	ofi_far_calls(&far[0]);
	ofi_far_hears_hello(&far[0]);
	second = ofi_host_of_address(&addr.sa);
	assert_ptr_not_equal(second, host);
	second->gate = host->gate;
	sim_addr_set_port(&second->gate, sim_addr_port(&host->gate.sa));
	second->gate.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ofi_knock(second, NULL, &any);
	ofi_far_is_called(&far[1], listener);
	/* Where it was looked for, for ofi_host_take_gate(). */
	second->gate.in.sin_addr = addr.in.sin_addr;
	ofi_far_says_hello(&far[1]);
	while (second->knock)
		(void)ofi_io_poll();
	assert_int_equal(second->waiting.bytes, 0);
	assert_ptr_equal(ofi_host_of_address(&addr.sa), host);
	assert_int_equal(ofi_sessions_open(), 2);
	ofi_far_pings(&far[0]);
	ofi_far_closes(&far[0]);
	ofi_far_closes(&far[1]);
}

/* ------------------------------------------------------------------------
 * The end.
 */

/* In each state that attempts may have; the end of the test stops them. */
static void stopped_meanwhile(void **state)
{
	struct ofi_peer *peer;

	(void)state;
	attempts(3);
	peer = ofi_peer_get(host, 8);
	ofi_knock(host, peer, &(struct ofi_want){ .kind = OFI_WANT_SLOT, .slot = 8 });
	packet_waits();
	for (unsigned int i = 0; i < 3; i++)
		ofi_far_closes(&far[i]);
}

/* The child has none of it, and looks at nothing that it has not. */
static void forked_meanwhile(void **state)
{
	struct ofi_peer *peer;
	int status;
	pid_t pid;

	(void)state;
	ofi_far_calls(&far2);
	ofi_far_hears_hello(&far2);
	ofi_owner_set(host, 77, far_peer());
	ofi_service_set(host, 5, far_peer());
	attempts(2);
	peer = ofi_peer_get(host, 8);
	ofi_knock(host, peer, &(struct ofi_want){ .kind = OFI_WANT_SLOT, .slot = 8 });
	packet_waits();
	/* It is the one that was read last, and a program that polls looks there first. */
	ofi_far_pings(&far2);
	/* What runs around fork() takes the lock. */
	sim_unlock();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		ofi_io_forget();
		ofi_gate_forget();
		ofi_sessions_forget();
		ofi_peers_stop();
		ofi_hosts_forget();
		/* What was read last is not read again. */
		ofi_io_fetch();
		_exit(ofi_sessions_open() || host->knock || host->peers || ofi_owner(host, 77) ||
		      host->services || host->waiting.bytes || host->state != OFI_HOST_NEW);
	}
	sim_lock();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* The parent goes on. */
	ofi_far_pings(&far2);
	ofi_far_says_hello(&far[1]);
	ofi_world_until(no_knock, NULL);
	ofi_far_closes(&far[0]);
	ofi_far_closes(&far[1]);
	ofi_far_closes(&far2);
}

#define KNOCK(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		KNOCK(answered),
		KNOCK(the_first_answer_wins),
		KNOCK(nobody_answers),
		KNOCK(a_slow_network_is_not_asked_again_at_once),
		KNOCK(refused),
		KNOCK(nobody_keeps_the_gate),
		KNOCK(a_program_comes_just_after_a_refusal),
		KNOCK(a_gate_that_only_we_do_not_reach),
		KNOCK(a_member_ends_and_another_one_answers),
		KNOCK(who_closes_every_time_is_left_alone),
		KNOCK(a_program_that_is_none_of_ours),
		KNOCK(another_process_answers_for_one_that_has_ended),
		KNOCK(an_answer_that_does_not_come_is_asked_for_again),
		KNOCK(known_by_another_address),
		KNOCK(stopped_meanwhile),
		KNOCK(forked_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
