/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A layer around the providers over the kernel: they still have one carrier,
 * but the channel is not the kernel's own, so that all events go by the layer.
 */
#include "kernel_stand_in_scene.h"

static unsigned int num_begun, num_ended, num_calls, num_events;
static int reject_becomes;

static void op_begin(void *ctx, void *priv, const struct polycm_layer *layer)
{
	(void)ctx;
	*(const struct polycm_layer **)priv = layer;
	num_begun++;
}

static void op_end(void *priv)
{
	assert_non_null(*(void **)priv);
	num_ended++;
}

static int op_connect(void *priv, const struct polycm_conn_param *param)
{
	const struct polycm_layer *layer = *(const struct polycm_layer **)priv;

	num_calls++;
	return layer->ops->connect(layer->priv, param);
}

static int op_event(void *priv, const struct polycm_event *event, uint64_t hold_ns)
{
	const struct polycm_layer *layer = *(const struct polycm_layer **)priv;
	struct polycm_event copy = *event;

	num_events++;
	if (event->type == RDMA_CM_EVENT_REJECTED && reject_becomes)
		copy.status = reject_becomes;
	return layer->post(layer, &copy, hold_ns);
}

static const struct polycm_ops ops = {
	.size = sizeof(ops),
	.connect = op_connect,
};

static const struct polycm_layer_ops layer_ops = {
	.size = sizeof(layer_ops),
	.begin = op_begin,
	.event = op_event,
	.end = op_end,
};

static const struct polycm_provider layer = {
	.size = sizeof(layer),
	.name = "layer",
	.ops = &ops,
	.layer = &layer_ops,
	.id_size = sizeof(void *),
};

static int reset(void **state)
{
	num_begun = num_ended = num_calls = num_events = 0;
	reject_becomes = 0;
	return scene_reset(state);
}

static int check(void **state)
{
	int r = scene_check(state);

	assert_int_equal(num_begun, num_ended);
	return r;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, reset, check)

static void the_channel_is_not_the_kernels(void **state)
{
	struct rdma_cm_id *id = scene_resolved(RDMA_PS_TCP, "127.0.0.1");

	(void)state;
	assert_false(((struct polycm_channel *)(void *)channel)->native);
	assert_int_equal(num_events, 1);
	scene_destroy(id);
}

/* Passive side included: the id of the request has the layer, too. */
static void connections_live(void **state)
{
	struct scene_pair pair;

	(void)state;
	scene_connect(&pair, "127.0.0.1");
	assert_int_equal(num_calls, 1);
	assert_int_equal(num_begun, 3);
	scene_disconnect(&pair);
	expect_no_event(channel);
	scene_end(&pair);
	assert_int_equal(stand_in.ids, 0);
}

static void a_reject_is_rewritten(void **state)
{
	struct rdma_cm_id *id = scene_routed(RDMA_PS_TCP, "127.0.0.1");
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };

	(void)state;
	reject_becomes = 10;
	create_qp(id);
	assert_int_equal(rdma_connect(id, &param), 0);
	expect_event(channel, RDMA_CM_EVENT_REJECTED, 10);
	scene_destroy(id);
}

static int start(void **state)
{
	(void)state;
	return polycm_registry_add_static(&layer) || scene_start(SCENE_ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_channel_is_not_the_kernels),
		TEST(connections_live),
		TEST(a_reject_is_rewritten),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
