/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How two processes greet each other: who is let in, who is told why not, and what ends it.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ofi_far.h"
#include "ofi_sample.h"
#include "providers/ofi/io.h"
#include "providers/ofi/knock.h"
#include "providers/ofi/peer.h"
#include "providers/ofi/self.h"
#include "providers/ofi/session.h"
#include "providers/ofi/stream.h"

static struct ofi_far far, far2;

static bool no_session(const void *arg)
{
	(void)arg;
	return !ofi_sessions_open();
}

static struct ofi_peer *peer_of(const struct ofi_far *of)
{
	const struct sim_remote_host *host = ofi_host_by_id(of->hello.host);

	return host ? ofi_peer_of_slot(host, of->hello.slot) : NULL;
}

/* We begin; the far end has read our HELLO. */
static struct ofi_session *begin(int *ret_listener)
{
	static const struct ofi_want any = { .kind = OFI_WANT_ANY };
	struct sim_remote_host *host = ofi_far_host(ret_listener);
	struct ofi_session *session;

	assert_int_equal(ofi_session_connect(host, &any, NULL, &session), 0);
	ofi_far_is_called(&far, *ret_listener);
	return session;
}

/* ------------------------------------------------------------------------
 * The good ones.
 */

static void accepted(void **state)
{
	(void)state;
	ofi_far_init(&far);
	ofi_far_calls(&far);
	ofi_far_hears_hello(&far);
	assert_non_null(peer_of(&far));
	assert_int_equal(peer_of(&far)->host->state, OFI_HOST_UP);
	ofi_far_pings(&far);
	ofi_far_closes(&far);
	ofi_world_settle();
	assert_int_equal(ofi_sessions_open(), 0);
	assert_null(peer_of(&far));
}

static void initiated(void **state)
{
	int listener;

	(void)state;
	ofi_far_init(&far);
	begin(&listener);
	ofi_far_says_hello(&far);
	ofi_far_pings(&far);
	assert_non_null(peer_of(&far)->session);
	ofi_far_closes(&far);
	ofi_world_until(no_session, NULL);
	close(listener);
}

static void accepted_with_a_key(void **state)
{
	(void)state;
	ofi_world_set_key("secret");
	ofi_far_init(&far);
	ofi_far_calls(&far);
	ofi_far_hears_hello(&far);
	ofi_far_hears_proof(&far);
	assert_null(peer_of(&far));
	ofi_far_says_proof(&far);
	ofi_far_pings(&far);
	assert_non_null(peer_of(&far)->session);
	ofi_far_closes(&far);
	ofi_world_settle();
	assert_int_equal(ofi_sessions_open(), 0);
}

static void initiated_with_a_key(void **state)
{
	int listener;

	(void)state;
	ofi_world_set_key("secret");
	ofi_far_init(&far);
	begin(&listener);
	/* An acceptor sends both at once. */
	ofi_far_says_hello(&far);
	ofi_far_says_proof(&far);
	ofi_far_hears_proof(&far);
	ofi_far_pings(&far);
	ofi_far_closes(&far);
	ofi_world_until(no_session, NULL);
	close(listener);
}

/* ------------------------------------------------------------------------
 * Refused.
 */

static void other_transport(struct ofi_hello *hello)
{
	strcpy(hello->transport, "iwarp");
}

static void other_rules(struct ofi_hello *hello)
{
	hello->rules++;
}

static void other_key(struct ofi_hello *hello)
{
	hello->has_key = !hello->has_key;
}

static void own_host(struct ofi_hello *hello)
{
	memcpy(hello->host, ofi_self.host, sizeof(hello->host));
}

static void no_ports(struct ofi_hello *hello)
{
	memset(&hello->ports, 0, sizeof(hello->ports));
}

static const struct refusal {
	void (*change)(struct ofi_hello *hello);
	enum ofi_refusal reason;
} refusals[] = {
	{ other_transport, OFI_REFUSED_TRANSPORT },
	{ other_rules, OFI_REFUSED_RULES },
	{ other_key, OFI_REFUSED_KEY },
	{ own_host, OFI_REFUSED_MALFORMED },
	{ no_ports, OFI_REFUSED_MALFORMED },
};

static void who_calls_is_refused(void **state)
{
	(void)state;
	for (unsigned int key = 0; key < 2; key++) {
		if (key)
			ofi_world_set_key("secret");
		for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
			ofi_far_init(&far);
			refusals[i].change(&far.hello);
			ofi_far_calls(&far);
			assert_int_equal(ofi_sessions_open(), 0);
			ofi_far_hears_refused(&far, refusals[i].reason);
			ofi_far_hears_end(&far);
			assert_null(peer_of(&far));
		}
	}
}

/* It reads why, also if it has sent what nobody reads any more. */
static void who_is_called_is_refused(void **state)
{
	(void)state;
	for (unsigned int key = 0; key < 2; key++) {
		if (key)
			ofi_world_set_key("secret");
		for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
			int listener;

			ofi_far_init(&far);
			begin(&listener);
			refusals[i].change(&far.hello);
			ofi_far_says_hello(&far);
			if (key)
				ofi_far_says_proof(&far);
			ofi_far_hears_refused(&far, refusals[i].reason);
			assert_int_equal(ofi_sessions_open(), 0);
			ofi_far_hears_end(&far);
			close(listener);
		}
	}
}

static void another_version(void **state)
{
	size_t len;

	(void)state;
	ofi_far_init(&far);
	len = ofi_hello_encode(&far.hello, far.own);
	far.own[4]++;
	ofi_far_calls_with(&far, far.own, len);
	ofi_far_hears_refused(&far, OFI_REFUSED_VERSION);
	ofi_far_hears_end(&far);
}

static void a_hello_that_is_none(void **state)
{
	size_t len;

	(void)state;
	ofi_far_init(&far);
	len = ofi_hello_encode(&far.hello, far.own);
	for (size_t cut = 0; cut < len; cut++) {
		ofi_far_calls_with(&far, far.own, cut);
		ofi_far_hears_refused(&far, OFI_REFUSED_MALFORMED);
		ofi_far_hears_end(&far);
	}
	assert_int_equal(ofi_sessions_open(), 0);
}

/* Anybody may connect as often as he likes: the log must not grow with it. */
static void strangers_do_not_fill_the_log(void **state)
{
	unsigned int before;

	(void)state;
	ofi_world_pass(SIM_MS(20000));
	before = sim_fake_log_count(POLYCM_LOG_ERROR);
	for (unsigned int i = 0; i < 100; i++) {
		ofi_far_init(&far);
		other_rules(&far.hello);
		ofi_far_calls(&far);
		ofi_far_hears_refused(&far, OFI_REFUSED_RULES);
		ofi_far_hears_end(&far);
	}
	assert_int_equal(sim_fake_log_count(POLYCM_LOG_ERROR), before + 1);
	/* Another reason is another matter, and so is the same one later. */
	ofi_far_init(&far);
	other_key(&far.hello);
	ofi_far_calls(&far);
	ofi_far_hears_refused(&far, OFI_REFUSED_KEY);
	ofi_far_hears_end(&far);
	assert_int_equal(sim_fake_log_count(POLYCM_LOG_ERROR), before + 2);
	ofi_world_pass(SIM_MS(20000));
	ofi_far_init(&far);
	other_key(&far.hello);
	ofi_far_calls(&far);
	ofi_far_hears_refused(&far, OFI_REFUSED_KEY);
	ofi_far_hears_end(&far);
	assert_int_equal(sim_fake_log_count(POLYCM_LOG_ERROR), before + 3);
}

static void we_are_refused(void **state)
{
	for (uint8_t reason = 1; reason < OFI_REFUSALS; reason++) {
		const struct ofi_refused refused = { .reason = reason };
		uint8_t bytes[OFI_REFUSED_SIZE];
		int listener;

		ofi_far_init(&far);
		begin(&listener);
		ofi_refused_encode(&refused, bytes);
		ofi_far_send(far.fd, OFI_REFUSED, bytes, sizeof(bytes));
		ofi_world_until(no_session, NULL);
		ofi_far_hears_end(&far);
		close(listener);
	}
	(void)state;
	assert_int_equal(sim_fake_log_count(POLYCM_LOG_ERROR), 1);
	assert_non_null(strstr(sim_fake_log(POLYCM_LOG_ERROR), "10.0.0.2"));
}

static void the_refusal_is_no_refusal(void **state)
{
	static const uint8_t none[OFI_REFUSED_SIZE], unknown[OFI_REFUSED_SIZE] = { OFI_REFUSALS };
	int listener;

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		ofi_far_init(&far);
		begin(&listener);
		ofi_far_send(far.fd, OFI_REFUSED, i ? none : unknown, OFI_REFUSED_SIZE - (i == 2));
		ofi_world_until(no_session, NULL);
		ofi_far_hears_end(&far);
		close(listener);
	}
	assert_int_equal(sim_fake_log_count(POLYCM_LOG_ERROR), 0);
}

/* The second one has another LID here, the last one that there is; and it keeps that. */
static void two_hosts_with_one_lid(void **state)
{
	struct sim_remote_host *host;

	(void)state;
	ofi_self.transport = &sim_fake_ib;
	ofi_far_init(&far);
	strcpy(far.hello.transport, "ib");
	far.hello.ports.ports[0].lid = 77;
	ofi_far_calls(&far);
	ofi_far_hears_hello(&far);
	ofi_far_init(&far2);
	far2.hello.host[0]++;
	strcpy(far2.hello.transport, "ib");
	far2.hello.ports.ports[0].lid = 77;
	far2.hello.ports.addresses[0].addr = sample_addr("10.0.0.77", 0);
	ofi_far_calls(&far2);
	ofi_far_hears_hello(&far2);
	ofi_far_pings(&far);
	ofi_far_pings(&far2);
	assert_int_equal(ofi_host_by_id(far.hello.host)->port->lid, 77);
	host = ofi_host_by_id(far2.hello.host);
	assert_int_equal(host->port->lid, 0xbfff);
	host->identified = false;
	ofi_host_take(host, &far2.hello);
	assert_int_equal(host->port->lid, 0xbfff);
	ofi_far_closes(&far);
	ofi_far_closes(&far2);
}

/* ------------------------------------------------------------------------
 * The wrong frame at the wrong time.
 */

/* Each type of frame but the one that is expected, as long as it may be; the session ends. */
static void wrong_frames(void (*reach)(int *ret_listener), uint8_t expected, uint8_t or_this)
{
	static uint8_t zeros[32 << 10];

	for (uint8_t type = 1; type < OFI_FRAME_TYPES; type++) {
		int listener = -1;

		if (type == expected || type == or_this)
			continue;
		ofi_far_init(&far);
		reach(&listener);
		ofi_far_send(far.fd, type, zeros, ofi_frame_max(type) < sizeof(zeros) ?
			     ofi_frame_max(type) : sizeof(zeros));
		ofi_world_until(no_session, NULL);
		ofi_far_closes(&far);
		if (listener >= 0)
			close(listener);
	}
}

static void reach_greeting(int *ret_listener)
{
	begin(ret_listener);
}

static void reach_proving(int *ret_listener)
{
	*ret_listener = -1;
	ofi_far_calls(&far);
	ofi_far_hears_hello(&far);
	ofi_far_hears_proof(&far);
}

static void instead_of_a_hello(void **state)
{
	(void)state;
	wrong_frames(reach_greeting, OFI_HELLO, OFI_REFUSED);
	ofi_world_set_key("secret");
	wrong_frames(reach_greeting, OFI_HELLO, OFI_REFUSED);
}

static void instead_of_a_proof(void **state)
{
	(void)state;
	ofi_world_set_key("secret");
	/* A proof of zeros is one of the wrong ones. */
	wrong_frames(reach_proving, 0, 0);
	assert_null(peer_of(&far));
}

static void once_it_is_open(void **state)
{
	static const uint8_t types[] = { OFI_HELLO, OFI_PROOF, OFI_REFUSED };

	(void)state;
	for (size_t i = 0; i < sizeof(types); i++) {
		ofi_far_init(&far);
		ofi_far_calls(&far);
		ofi_far_hears_hello(&far);
		ofi_far_send(far.fd, types[i], far.own, types[i] == OFI_HELLO ? far.own_len :
			     ofi_frame_max(types[i]));
		ofi_world_settle();
		assert_int_equal(ofi_sessions_open(), 0);
		assert_null(peer_of(&far));
		ofi_far_closes(&far);
	}
}

static void proofs_that_are_wrong(void **state)
{
	uint8_t bytes[SHA256_SIZE];

	(void)state;
	ofi_world_set_key("secret");
	for (unsigned int bit = 0; bit < 8 * SHA256_SIZE; bit += 7) {
		ofi_far_init(&far);
		ofi_far_calls(&far);
		ofi_far_hears_hello(&far);
		ofi_far_hears_proof(&far);
		ofi_proof("secret", 6, true, far.own, far.own_len, far.theirs, far.theirs_len, bytes);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ofi_far_send(far.fd, OFI_PROOF, bytes, sizeof(bytes));
		ofi_far_hears_refused(&far, OFI_REFUSED_KEY);
		ofi_far_hears_end(&far);
	}
	/* Ours sent back, one with another key, and one that is too short. */
	for (unsigned int i = 0; i < 3; i++) {
		ofi_far_init(&far);
		ofi_far_calls(&far);
		ofi_far_hears_hello(&far);
		ofi_far_hears_proof(&far);
		ofi_proof(i == 1 ? "secres" : "secret", 6, i != 0, far.own, far.own_len, far.theirs,
			  far.theirs_len, bytes);
		ofi_far_send(far.fd, OFI_PROOF, bytes, sizeof(bytes) - (i == 2));
		ofi_far_hears_refused(&far, OFI_REFUSED_KEY);
		ofi_far_hears_end(&far);
	}
	assert_null(peer_of(&far));
}

/* ------------------------------------------------------------------------
 * It ends.
 */

static void the_far_end_closes_at_each_byte(void **state)
{
	uint8_t frame[OFI_FRAME_HEADER + OFI_HELLO_MAX];
	size_t len;

	(void)state;
	ofi_far_init(&far);
	len = ofi_hello_encode(&far.hello, frame + OFI_FRAME_HEADER);
	ofi_frame_encode(&(struct ofi_frame){ .len = (uint32_t)len, .type = OFI_HELLO }, frame);
	for (size_t cut = 0; cut < len + OFI_FRAME_HEADER; cut++) {
		int listener;

		begin(&listener);
		if (cut)
			ofi_far_write(far.fd, frame, cut);
		ofi_far_closes(&far);
		ofi_world_until(no_session, NULL);
		close(listener);
	}
	assert_null(peer_of(&far));
}

static void who_says_nothing_is_not_waited_for(void **state)
{
	int listener;

	(void)state;
	ofi_far_init(&far);
	begin(&listener);
	ofi_world_pass(SIM_MS(4999));
	assert_int_equal(ofi_sessions_open(), 1);
	ofi_world_pass(SIM_MS(2));
	assert_int_equal(ofi_sessions_open(), 0);
	ofi_far_hears_end(&far);
	close(listener);

	ofi_world_set_key("secret");
	ofi_far_init(&far);
	reach_proving(&listener);
	ofi_world_pass(SIM_MS(4999));
	assert_int_equal(ofi_sessions_open(), 1);
	ofi_world_pass(SIM_MS(2));
	assert_int_equal(ofi_sessions_open(), 0);
	ofi_far_hears_end(&far);
}

static void an_open_one_has_no_end(void **state)
{
	(void)state;
	ofi_far_init(&far);
	ofi_far_calls(&far);
	ofi_far_hears_hello(&far);
	ofi_world_pass(SIM_MS(100000));
	ofi_far_pings(&far);
	ofi_far_closes(&far);
}

/* The end of the test stops them all. */
static void stopped_in_each_state(void **state)
{
	static struct ofi_far far3;
	int listener;

	(void)state;
	ofi_far_init(&far);
	begin(&listener);
	ofi_far_init(&far2);
	ofi_far_calls(&far2);
	ofi_far_hears_hello(&far2);
	ofi_world_set_key("secret");
	ofi_far_init(&far3);
	ofi_far_calls(&far3);
	ofi_far_hears_hello(&far3);
	assert_int_equal(ofi_sessions_open(), 3);
	ofi_sessions_flush();
	ofi_far_closes(&far);
	ofi_far_closes(&far2);
	ofi_far_closes(&far3);
	close(listener);
}

/* ------------------------------------------------------------------------
 * Several.
 */

static void both_begin_at_once(void **state)
{
	struct ofi_peer *peer;
	int listener;

	(void)state;
	for (unsigned int first = 0; first < 2; first++) {
		ofi_far_init(&far);
		ofi_far_init(&far2);
		begin(&listener);
		ofi_far_calls(&far2);
		ofi_far_hears_hello(&far2);
		ofi_far_says_hello(&far);
		while (!peer_of(&far2)->others)
			(void)ofi_io_poll();
		/* What comes on either is heard; what is sent goes on the one that was open first. */
		ofi_far_pings_across(&far, &far2);
		ofi_far_pings(&far2);
		peer = peer_of(&far);
		assert_ptr_equal(peer, peer_of(&far2));
		assert_non_null(peer->session);
		assert_non_null(peer->others);
		assert_null(peer->others->next_other);
		/* One of them goes: the peer stays. */
		ofi_far_closes(first ? &far : &far2);
		while (ofi_sessions_open() == 2)
			(void)ofi_io_poll();
		assert_ptr_equal(peer, peer_of(&far));
		assert_non_null(peer->session);
		assert_null(peer->others);
		ofi_far_pings(first ? &far2 : &far);
		ofi_far_closes(first ? &far2 : &far);
		ofi_world_until(no_session, NULL);
		assert_null(peer_of(&far));
		close(listener);
	}
}

/* A process that is there in the slot of another one means that that has ended. */
static void another_process_has_the_slot(void **state)
{
	(void)state;
	ofi_far_init(&far);
	ofi_far_calls(&far);
	ofi_far_hears_hello(&far);
	ofi_far_init(&far2);
	far2.hello.token++;
	ofi_far_calls(&far2);
	ofi_far_hears_hello(&far2);
	assert_int_equal(ofi_sessions_open(), 1);
	assert_int_equal(peer_of(&far2)->token, far2.hello.token);
	ofi_far_hears_end(&far);
	ofi_far_pings(&far2);
	ofi_far_closes(&far2);
}

/* As a container that was started again: nothing of the old one is left, its numbers neither. */
static void another_machine_has_the_address(void **state)
{
	struct sim_remote_host *host;

	(void)state;
	ofi_far_init(&far);
	ofi_far_calls(&far);
	ofi_far_hears_hello(&far);
	host = ofi_host_by_id(far.hello.host);
	/* Of which nothing is known but that it was there. */
	assert_non_null(ofi_peer_get(host, 9));
	ofi_far_closes(&far);
	ofi_world_settle();
	ofi_far_init(&far2);
	far2.hello.host[0]++;
	far2.hello.ports.ports[0].mac[5]++;
	ofi_far_calls(&far2);
	ofi_far_hears_hello(&far2);
	assert_ptr_equal(ofi_host_by_id(far2.hello.host), host);
	assert_null(ofi_host_by_id(far.hello.host));
	assert_null(ofi_peer_of_slot(host, 9));
	assert_memory_equal(host->port->mac, far2.hello.ports.ports[0].mac, 6);
	ofi_far_pings(&far2);
	ofi_far_closes(&far2);
}

/* Of two users on one machine, and of machines whose containers have the same addresses. */
static void another_host_with_the_same_address(void **state)
{
	struct sim_remote_host *host;

	(void)state;
	ofi_far_init(&far);
	ofi_far_calls(&far);
	ofi_far_hears_hello(&far);
	host = ofi_host_by_id(far.hello.host);
	ofi_far_init(&far2);
	far2.hello.host[0]++;
	far2.hello.token++;
	ofi_far_calls(&far2);
	ofi_far_hears_hello(&far2);
	ofi_far_hears_refused(&far2, OFI_REFUSED_ADDRESS);
	ofi_far_hears_end(&far2);
	ofi_far_pings(&far);
	/* With one of its own it is known by that. */
	far2.hello.ports.num_addresses = 2;
	far2.hello.ports.addresses[1] = far2.hello.ports.addresses[0];
	far2.hello.ports.addresses[1].addr = sample_addr("10.0.0.9", 0);
	ofi_far_calls(&far2);
	ofi_far_hears_hello(&far2);
	ofi_far_pings(&far2);
	ofi_far_pings(&far);
	assert_ptr_equal(ofi_host_by_id(far.hello.host), host);
	assert_ptr_not_equal(ofi_host_by_id(far2.hello.host), host);
	assert_ptr_equal(ofi_host_of_address(&far.hello.ports.addresses[0].addr.sa), host);
	ofi_far_closes(&far2);
	ofi_far_closes(&far);
}

/* One process must not take all connections. */
static void too_many_of_one_process(void **state)
{
	static struct ofi_far many[2 * OFI_ATTEMPTS];

	(void)state;
	for (unsigned int i = 0; i < 2 * OFI_ATTEMPTS; i++) {
		ofi_far_init(&many[i]);
		ofi_far_calls(&many[i]);
		ofi_far_hears_hello(&many[i]);
	}
	assert_int_equal(ofi_sessions_open(), 2 * OFI_ATTEMPTS);
	ofi_far_init(&far);
	ofi_far_calls(&far);
	ofi_far_hears_hello(&far);
	ofi_far_hears_refused(&far, OFI_REFUSED_BUSY);
	ofi_far_hears_end(&far);
	assert_int_equal(ofi_sessions_open(), 2 * OFI_ATTEMPTS);
	for (unsigned int i = 0; i < 2 * OFI_ATTEMPTS; i++)
		ofi_far_closes(&many[i]);
	ofi_world_settle();
	assert_int_equal(ofi_sessions_open(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OFI_WORLD(accepted),
		OFI_WORLD(initiated),
		OFI_WORLD(accepted_with_a_key),
		OFI_WORLD(initiated_with_a_key),
		OFI_WORLD(who_calls_is_refused),
		OFI_WORLD(who_is_called_is_refused),
		OFI_WORLD(another_version),
		OFI_WORLD(a_hello_that_is_none),
		OFI_WORLD(strangers_do_not_fill_the_log),
		OFI_WORLD(we_are_refused),
		OFI_WORLD(the_refusal_is_no_refusal),
		OFI_WORLD(two_hosts_with_one_lid),
		OFI_WORLD(instead_of_a_hello),
		OFI_WORLD(instead_of_a_proof),
		OFI_WORLD(once_it_is_open),
		OFI_WORLD(proofs_that_are_wrong),
		OFI_WORLD(the_far_end_closes_at_each_byte),
		OFI_WORLD(who_says_nothing_is_not_waited_for),
		OFI_WORLD(an_open_one_has_no_end),
		OFI_WORLD(stopped_in_each_state),
		OFI_WORLD(both_begin_at_once),
		OFI_WORLD(another_process_has_the_slot),
		OFI_WORLD(another_machine_has_the_address),
		OFI_WORLD(another_host_with_the_same_address),
		OFI_WORLD(too_many_of_one_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
