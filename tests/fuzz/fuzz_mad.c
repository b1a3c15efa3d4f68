/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_mad.c - bytes as MADs: through the decoder, and as packets to both ends
 * of a connection of the InfiniBand CM engine in each of its states, with a
 * listener on the server all along.
 *
 * An input: a byte that says where the connection is, and then records of a
 * byte of flags and up to 256 bytes of MAD.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "tests/unit/ibcm_exchange.h"
#include "tests/unit/ibcm_scene.h"

#define SIDR SITUATIONS		/* a UD id that waits for its SIDR_REP */
#define PLACES (SITUATIONS + 1u)
#define PLACE_IB 0x80u

#define FLAG_TO_SERVER 0x01u
#define FLAG_ACCEPT 0x02u	/* the server's program accepts what it is asked */
#define FLAG_WAIT 0x04u		/* timers fire afterwards */
#define RECORD (1u + CM_MAD_SIZE)

const char fuzz_name[] = "mad";

/* What decodes encodes to the same message. */
static void check_codec(const uint8_t *mad, size_t len)
{
	struct cm_msg first, second;
	uint8_t again[CM_MAD_SIZE];

	if (cm_decode(mad, len, &first) < 0)
		return;
	cm_encode(&first, again);
	assert_int_equal(cm_decode(again, sizeof(again), &second), 0);
	assert_memory_equal(&first, &second, sizeof(first));
}

/* Requests that the server's program finds. */
static void serve(struct polycm_id *listener, bool accepts)
{
	const struct world_event *event;
	struct polycm_id *child;

	if (!listener)
		return;
	while ((event = world_event(listener))) {
		child = event->event.child;
		if (accepts)
			(void)world_accept(child, 0x33);
		world_run(2 * LATENCY);
		world_destroy(child);
	}
}

static void play(struct polycm_id *tcp, struct polycm_id *udp, const uint8_t *data, size_t size)
{
	while (size > 1) {
		size_t len = size < RECORD ? size - 1 : CM_MAD_SIZE;
		uint8_t flags = data[0];

		check_codec(data + 1, len);
		world_inject_bytes(flags & FLAG_TO_SERVER, data + 1, len);
		serve(tcp, flags & FLAG_ACCEPT);
		serve(udp, flags & FLAG_ACCEPT);
		if (flags & FLAG_WAIT)
			world_run_ms(70000);
		data += len + 1;
		size -= len + 1;
	}
}

static struct scene set_place(unsigned int place, struct polycm_id **ret_udp)
{
	struct scene scene = { 0 };

	if (place < SITUATIONS) {
		scene = set_scene((enum situation)place);
		return scene;
	}
	*ret_udp = world_listen(RDMA_PS_UDP);
	scene.pair.client = world_route(RDMA_PS_UDP, PORT);
	world_lose(CM_SIDR_REQ, 1);
	assert_int_equal(world_connect(scene.pair.client, 0x11), 0);
	world_run(LATENCY);
	world_lose(CM_SIDR_REQ, 0);
	return scene;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct polycm_id *udp = NULL;
	struct scene scene;
	unsigned int place;

	if (size < 2)
		return 0;
	place = (data[0] & ~PLACE_IB) % PLACES;
	/* The scene with an MRA counts on RoCE's time-out. */
	if (data[0] & PLACE_IB && place != MRA_REQ_RCVD)
		world_open_ib(NULL);
	else
		world_open_roce(NULL);
	scene = set_place(place, &udp);
	if (!scene.pair.listener)
		scene.pair.listener = world_listen(RDMA_PS_TCP);
	world.keep_mads = false;
	play(scene.pair.listener, udp, data + 1, size - 1);
	clear_scene(&scene);
	if (udp)
		world_destroy(udp);
	world_run_ms(1);
	world_close(NULL);
	return 0;
}

/* Each message in each place, and all of them one after the other. */
void fuzz_seeds(void (*put)(const char *name, const uint8_t *data, size_t size))
{
	struct exchanged messages[EXCHANGE_MAX];
	unsigned int num = record_exchange(messages);
	uint8_t all[1 + EXCHANGE_MAX * RECORD], one[1 + RECORD];
	char name[64];

	for (unsigned int place = 0; place < PLACES; place++) {
		all[0] = one[0] = (uint8_t)(place | (place & 1 ? PLACE_IB : 0));
		for (unsigned int i = 0; i < num; i++) {
			one[1] = (uint8_t)((messages[i].to_server ? FLAG_TO_SERVER : 0) |
					   (i & 1 ? FLAG_ACCEPT : 0) | (i & 2 ? FLAG_WAIT : 0));
			cm_encode(&messages[i].msg, one + 2);
			memcpy(all + 1 + i * RECORD, one + 1, RECORD);
			(void)snprintf(name, sizeof(name), "%02u_%s", place, messages[i].name);
			put(name, one, sizeof(one));
		}
		(void)snprintf(name, sizeof(name), "%02u_all", place);
		put(name, all, 1 + num * RECORD);
	}
}
