/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench/commands.c - connections over the kernel client, for an instruction
 * counter.  The kernel is the unit tests' stand-in.
 *
 *	valgrind --tool=callgrind --collect-atstart=no --toggle-collect=connection \
 *		--toggle-collect=host_command --toggle-collect=host_wait \
 *		bench/commands [ib|iwarp]
 *
 * counts both ends of TURNS connections without most of the stand-in.  The fake
 * verbs are in it: on InfiniBand and RoCE about 9,000 instructions of a
 * connection, mostly snprintf().  Under valgrind the library keeps no blocks for
 * reuse; configure with CPPFLAGS=-DNVALGRIND to count them as without valgrind.
 */
#include "kernel_stand_in_scene.h"

#define TURNS 100

__attribute__((noinline)) static void connection(struct rdma_cm_id *listener, const char *dst)
{
	struct scene_pair pair;

	pair.listener = listener;
	pair.active = scene_routed(RDMA_PS_TCP, dst);
	create_qp(pair.active);
	if (rdma_connect(pair.active, NULL))
		abort();
	pair.passive = scene_request(listener);
	create_qp(pair.passive);
	if (rdma_accept(pair.passive, NULL))
		abort();
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	scene_disconnect(&pair);
	scene_destroy(pair.active);
	scene_destroy(pair.passive);
}

int main(int argc, char **argv)
{
	const char *on = argc > 1 ? argv[1] : "roce";
	const char *dst = !strcmp(on, "iwarp") ? "30.0.0.1" :
			  !strcmp(on, "ib") ? "10.0.1.1" : "20.0.0.1";
	struct rdma_cm_id *listener;

	if (scene_start(SCENE_ALL) || scene_reset(&(void *){ NULL }))
		return 1;
	listener = scene_listener(RDMA_PS_TCP, "0.0.0.0");
	for (int i = 0; i < TURNS; i++)
		connection(listener, dst);
	scene_destroy(listener);
	return scene_check(&(void *){ NULL });
}
