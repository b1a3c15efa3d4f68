/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi_far.c - see ofi_far.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ofi_far.h"
#include "ofi_sample.h"
#include "providers/ofi/self.h"
#include "providers/ofi/session.h"

static uint8_t body[OFI_FAR_BODY];

void ofi_world_set_key(const char *key)
{
	free(ofi_self.key);
	ofi_self.key = malloc(OFI_KEY_MAX);
	assert_non_null(ofi_self.key);
	ofi_self.key_len = strlen(key);
	memcpy(ofi_self.key, key, ofi_self.key_len);
}

void ofi_far_init(struct ofi_far *far)
{
	memset(far, 0, sizeof(*far));
	far->fd = -1;
	sample_hello(&far->hello);
	far->hello.slot = 3;
	far->hello.has_key = ofi_self.key;
	far->hello.rules = ofi_self.rules;
	strcpy(far->hello.name, "far");
	memset(&far->hello.want, 0, sizeof(far->hello.want));
	far->hello.ports.ports[0].lid = 0;
	far->hello.ports.num_addresses = 1;
	far->hello.ports.addresses[0].addr = sample_addr("10.0.0.2", 0);
}

void ofi_far_calls_with(struct ofi_far *far, const uint8_t *hello, size_t len)
{
	int pair[2];

	far->initiator = true;
	far->own_len = len;
	memmove(far->own, hello, len);
	ofi_world_pair(pair);
	far->fd = pair[1];
	ofi_session_accept(pair[0], far->own, len);
}

void ofi_far_calls(struct ofi_far *far)
{
	size_t len = ofi_hello_encode(&far->hello, far->own);

	ofi_far_calls_with(far, far->own, len);
}

struct sim_remote_host *ofi_far_host(int *ret_listener)
{
	union sim_sockaddr addr = sample_addr("10.0.0.2", 0);
	struct sim_remote_host *host = ofi_host_of_address(&addr.sa);

	assert_non_null(host);
	*ret_listener = ofi_world_listen(&host->gate);
	return host;
}

void ofi_far_is_called(struct ofi_far *far, int listener)
{
	far->initiator = false;
	far->fd = ofi_world_accept(listener);
	ofi_far_hears_hello(far);
}

void ofi_far_says_hello(struct ofi_far *far)
{
	far->own_len = ofi_hello_encode(&far->hello, far->own);
	ofi_far_send(far->fd, OFI_HELLO, far->own, far->own_len);
}

void ofi_far_hears_hello(struct ofi_far *far)
{
	static struct ofi_hello hello;
	unsigned int version;

	assert_int_equal(ofi_far_receive(far->fd, body, &far->theirs_len), OFI_HELLO);
	memcpy(far->theirs, body, far->theirs_len);
	assert_int_equal(ofi_hello_decode(body, far->theirs_len, &hello, &version), 0);
	assert_memory_equal(hello.host, ofi_self.host, sizeof(hello.host));
	assert_int_equal(hello.has_key, !!ofi_self.key);
}

static void proof(const struct ofi_far *far, bool of_initiator, uint8_t ret_proof[SHA256_SIZE])
{
	const uint8_t *first = far->initiator ? far->own : far->theirs;
	const uint8_t *second = far->initiator ? far->theirs : far->own;
	size_t first_len = far->initiator ? far->own_len : far->theirs_len;
	size_t second_len = far->initiator ? far->theirs_len : far->own_len;

	ofi_proof(ofi_self.key, ofi_self.key_len, of_initiator, first, first_len, second, second_len,
		  ret_proof);
}

void ofi_far_says_proof(struct ofi_far *far)
{
	uint8_t bytes[SHA256_SIZE];

	proof(far, far->initiator, bytes);
	ofi_far_send(far->fd, OFI_PROOF, bytes, sizeof(bytes));
}

void ofi_far_hears_proof(struct ofi_far *far)
{
	uint8_t bytes[SHA256_SIZE];
	size_t len;

	proof(far, !far->initiator, bytes);
	assert_int_equal(ofi_far_receive(far->fd, body, &len), OFI_PROOF);
	assert_int_equal(len, sizeof(bytes));
	assert_memory_equal(body, bytes, sizeof(bytes));
}

void ofi_far_hears_refused(struct ofi_far *far, enum ofi_refusal reason)
{
	struct ofi_refused refused;
	size_t len;

	assert_int_equal(ofi_far_receive(far->fd, body, &len), OFI_REFUSED);
	assert_int_equal(ofi_refused_decode(body, len, &refused), 0);
	assert_int_equal(refused.reason, reason);
}

void ofi_far_hears_end(struct ofi_far *far)
{
	size_t len;

	assert_int_equal(ofi_far_receive(far->fd, body, &len), 0);
	ofi_far_closes(far);
}

void ofi_far_pings(struct ofi_far *far)
{
	ofi_far_pings_across(far, far);
}

void ofi_far_pings_across(struct ofi_far *far, struct ofi_far *answered)
{
	static const uint8_t number[OFI_PING_SIZE] = { 1, 2, 3 };
	size_t len;

	ofi_far_send(far->fd, OFI_PING, number, sizeof(number));
	assert_int_equal(ofi_far_receive(answered->fd, body, &len), OFI_PONG);
	assert_memory_equal(body, number, sizeof(number));
}

void ofi_far_closes(struct ofi_far *far)
{
	close(far->fd);
	far->fd = -1;
}
