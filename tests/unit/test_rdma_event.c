/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events: what is in them, whom they are charged to, what becomes of those
 * that nobody retrieves, and the backlog of a listener.
 */
#include "cm_fake.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include "core/base/log.h"

static struct polycm_id *internal(struct rdma_cm_id *id)
{
	return (struct polycm_id *)(void *)id;
}

static bool readable(const struct rdma_event_channel *channel)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

static void events_have_names(void **state)
{
	static const char *const names[] = {
		"ADDR_RESOLVED", "ADDR_ERROR", "ROUTE_RESOLVED", "ROUTE_ERROR", "CONNECT_REQUEST",
		"CONNECT_RESPONSE", "CONNECT_ERROR", "UNREACHABLE", "REJECTED", "ESTABLISHED",
		"DISCONNECTED", "DEVICE_REMOVAL", "MULTICAST_JOIN", "MULTICAST_ERROR",
		"ADDR_CHANGE", "TIMEWAIT_EXIT",
	};
	char name[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(name, sizeof(name), "RDMA_CM_EVENT_%s", names[i]);
		assert_string_equal(rdma_event_str((enum rdma_cm_event_type)i), name);
	}
	for (int i = 16; i < 20; i++)
		assert_string_equal(rdma_event_str((enum rdma_cm_event_type)i), "UNKNOWN EVENT");
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type)-1), "UNKNOWN EVENT");
}

static void the_descriptor_is_readable_while_events_wait(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved_id(channel);

	(void)state;
	assert_false(readable(channel));
	expect_no_event(channel);
	assert_int_equal(post(id, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	assert_true(readable(channel));
	assert_int_equal(post(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT), 0);
	assert_int_equal(post(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	expect_event(channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_true(readable(channel));
	expect_event(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_false(readable(channel));
	expect_no_event(channel);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

static void events_are_copies(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved_id(channel);
	uint8_t data[255], before[255];
	struct polycm_event event = {
		.size = sizeof(event),
		.type = RDMA_CM_EVENT_ESTABLISHED,
		.param.conn = {
			.private_data = data, .private_data_len = 255, .responder_resources = 1,
			.initiator_depth = 2, .flow_control = 1, .rnr_retry_count = 3, .srq = 1,
			.qp_num = 4,
		},
	};
	struct rdma_cm_event *got;

	(void)state;
	for (unsigned int i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i + 1);
	memcpy(before, data, sizeof(data));
	assert_int_equal(polycm_post_event(internal(id), &event), 0);
	memset(data, 0, sizeof(data));
	got = next_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_ptr_equal(got->id, id);
	assert_null(got->listen_id);
	assert_int_equal(got->param.conn.private_data_len, 255);
	assert_memory_equal(got->param.conn.private_data, before, 255);
	assert_int_equal(got->param.conn.responder_resources, 1);
	assert_int_equal(got->param.conn.initiator_depth, 2);
	assert_int_equal(got->param.conn.flow_control, 1);
	assert_int_equal(got->param.conn.rnr_retry_count, 3);
	assert_int_equal(got->param.conn.srq, 1);
	assert_int_equal(got->param.conn.qp_num, 4);
	assert_int_equal(rdma_ack_cm_event(got), 0);

	/* No data: no pointer, whatever the provider's says; a length without data is none. */
	event.param.conn.private_data_len = 0;
	assert_int_equal(polycm_post_event(internal(id), &event), 0);
	event.param.conn.private_data_len = 9;
	event.param.conn.private_data = NULL;
	assert_int_equal(polycm_post_event(internal(id), &event), 0);
	for (int i = 0; i < 2; i++) {
		got = next_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_null(got->param.conn.private_data);
		assert_int_equal(got->param.conn.private_data_len, 0);
		assert_int_equal(rdma_ack_cm_event(got), 0);
	}

	event.is_ud = true;
	event.param.ud = (struct rdma_ud_param){ .private_data = before, .private_data_len = 136,
						 .qp_num = 5, .qkey = 6 };
	assert_int_equal(polycm_post_event(internal(id), &event), 0);
	got = next_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_memory_equal(got->param.ud.private_data, before, 136);
	assert_int_equal(got->param.ud.private_data_len, 136);
	assert_int_equal(got->param.ud.qp_num, 5);
	assert_int_equal(got->param.ud.qkey, 6);
	assert_int_equal(rdma_ack_cm_event(got), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

static void providers_cannot_post_nonsense(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel), *listener = listening_id(channel);
	struct polycm_event event = { .size = sizeof(event) };
	struct polycm_id *child;
	void *priv;

	(void)state;
	assert_int_equal(polycm_post_event(internal(id), NULL), -EINVAL);
	event.size = offsetof(struct polycm_event, why);
	assert_int_equal(polycm_post_event(internal(id), &event), -EINVAL);
	event.size = sizeof(event) + 8;
	assert_int_equal(polycm_post_event(internal(id), &event), -EINVAL);
	event.size = sizeof(event);
	event.type = (enum rdma_cm_event_type)16;
	assert_int_equal(polycm_post_event(internal(id), &event), -EINVAL);
	event.type = RDMA_CM_EVENT_CONNECT_REQUEST;
	assert_int_equal(polycm_post_event(internal(listener), &event), -EINVAL);
	event.type = RDMA_CM_EVENT_MULTICAST_JOIN;
	assert_int_equal(polycm_post_event(internal(id), &event), -EINVAL);

	/* A child of another listener; one that was not announced yet. */
	assert_int_equal(polycm_child_create(internal(listener), &child, &priv), 0);
	event.type = RDMA_CM_EVENT_CONNECT_REQUEST;
	event.child = child;
	assert_int_equal(polycm_post_event(internal(id), &event), -EINVAL);
	assert_int_equal(post(&child->pub, RDMA_CM_EVENT_DISCONNECTED, 0), -ECANCELED);
	polycm_child_destroy(child);

	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(channel);
}

static void unretrieved_events_go_with_their_id(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved_id(channel), *other = resolved_id(channel);

	(void)state;
	assert_int_equal(post(id, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	assert_int_equal(post(other, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0), 0);
	assert_int_equal(post(id, RDMA_CM_EVENT_DISCONNECTED, 0), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	expect_event(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_false(readable(channel));
	assert_int_equal(rdma_destroy_id(other), 0);
	rdma_destroy_event_channel(channel);
}

struct destroyer {
	pthread_t thread;
	struct rdma_cm_id *id;
	bool acked, was_acked;
};

static void *destroy(void *arg)
{
	struct destroyer *self = arg;

	assert_int_equal(rdma_destroy_id(self->id), 0);
	self->was_acked = __atomic_load_n(&self->acked, __ATOMIC_SEQ_CST);
	return NULL;
}

/* The text so far of a capture that goes on. */
static bool said(struct capture *capture, const char *part)
{
	ssize_t n = pread(capture->file, capture->text, sizeof(capture->text) - 1, 0);

	capture->text[n < 0 ? 0 : n] = '\0';
	return strstr(capture->text, part);
}

static void destroying_waits_for_acks_and_says_so(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct destroyer destroyer = { .id = resolved_id(channel) };
	struct rdma_cm_event *first, *second;
	struct capture capture;

	(void)state;
	assert_int_equal(post(destroyer.id, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	assert_int_equal(post(destroyer.id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0), 0);
	first = next_event(channel, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	second = next_event(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);

	polycm_ack_warning_ns = 1000000;
	capture_begin(&capture);
	assert_int_equal(pthread_create(&destroyer.thread, NULL, destroy, &destroyer), 0);
	while (!said(&capture, "rdma_destroy_id waits for rdma_ack_cm_event of 2 events: ADDR_CHANGE ("))
		sched_yield();
	assert_int_equal(__atomic_load_n(&fakes[0].calls[OP_STOP], __ATOMIC_SEQ_CST), 1);
	assert_int_equal(__atomic_load_n(&fakes[0].calls[OP_FREE], __ATOMIC_SEQ_CST), 0);
	assert_int_equal(rdma_ack_cm_event(second), 0);
	__atomic_store_n(&destroyer.acked, true, __ATOMIC_SEQ_CST);
	assert_int_equal(rdma_ack_cm_event(first), 0);
	assert_int_equal(pthread_join(destroyer.thread, NULL), 0);
	capture_end(&capture);
	polycm_ack_warning_ns = 1000000000;
	assert_true(destroyer.was_acked);
	assert_non_null(strstr(capture.text, "acme acme0 10.0.0.1:40000 > 10.0.0.2:7471"));
	assert_non_null(strstr(capture.text, ", TIMEWAIT_EXIT ("));
	assert_non_null(strstr(capture.text, " s ago)"));
	rdma_destroy_event_channel(channel);
}

static void requests_are_charged_to_the_listener(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening_id(channel);
	struct destroyer destroyer = { .id = listener };
	struct rdma_cm_event *event;

	(void)state;
	assert_int_equal(post_request(fakes, internal(listener), NULL, NULL), 0);
	event = next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_ptr_equal(event->listen_id, listener);
	assert_ptr_not_equal(event->id, listener);

	/* The new id does not wait for the event; its listener does. */
	assert_int_equal(rdma_destroy_id(event->id), 0);
	assert_int_equal(pthread_create(&destroyer.thread, NULL, destroy, &destroyer), 0);
	__atomic_store_n(&destroyer.acked, true, __ATOMIC_SEQ_CST);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(pthread_join(destroyer.thread, NULL), 0);
	assert_true(destroyer.was_acked);
	rdma_destroy_event_channel(channel);
}

static void new_ids_are_complete(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening_id(channel), *id = requested_id(listener);
	const struct sockaddr_in *src = (struct sockaddr_in *)rdma_get_local_addr(id);
	const struct sockaddr_in *dst = (struct sockaddr_in *)rdma_get_peer_addr(id);

	(void)state;
	assert_ptr_equal(id->channel, channel);
	assert_ptr_equal(id->context, &fakes);
	assert_int_equal(id->ps, RDMA_PS_TCP);
	assert_int_equal(id->qp_type, IBV_QPT_RC);
	assert_ptr_equal(id->verbs, fakes[0].device->verbs);
	assert_non_null(id->pd);
	assert_int_equal(id->port_num, 1);
	assert_int_equal(id->route.num_paths, 1);
	assert_int_equal(id->route.path_rec[0].packet_life_time, 16);
	assert_int_equal(ntohl(src->sin_addr.s_addr), 0x0a000001);
	assert_int_equal(ntohl(dst->sin_addr.s_addr), 0x0a000002);
	assert_int_equal(ntohs(rdma_get_src_port(id)), 7471);
	assert_int_equal(ntohs(rdma_get_dst_port(id)), 50000);
	assert_int_equal(id->route.addr.addr.ibaddr.sgid.raw[15], 1);
	assert_int_equal(id->route.addr.addr.ibaddr.dgid.raw[15], 2);
	assert_int_equal(ntohs(id->route.addr.addr.ibaddr.pkey), 0xffff);
	assert_null(id->event);
	assert_null(id->qp);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(channel);
}

static void requests_that_cannot_be_completed_are_not_seen(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening_id(channel);

	(void)state;
	assert_int_equal(post_request(fakes, internal(listener), NULL, NULL), 0);
	fakes[0].fail[OP_QUERY] = -ENOMEM;
	fakes[0].trace[0] = '\0';
	expect_no_event(channel);
	assert_string_equal(fakes[0].trace, "close stop free");
	fakes[0].fail[OP_QUERY] = 0;
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(channel);
}

static void unretrieved_requests_end_with_their_listener(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening_id(channel);
	struct polycm_id *child;

	(void)state;
	assert_int_equal(post_request(fakes, internal(listener), NULL, &child), 0);
	assert_int_equal(post(&child->pub, RDMA_CM_EVENT_DISCONNECTED, 0), 0);
	assert_int_equal(post_request(fakes, internal(listener), NULL, NULL), 0);
	fakes[0].trace[0] = '\0';
	assert_int_equal(rdma_destroy_id(listener), 0);
	assert_string_equal(fakes[0].trace, "close stop close stop free close stop free free");
	assert_false(readable(channel));
	rdma_destroy_event_channel(channel);
}

static void the_backlog_counts_unretrieved_requests(void **state)
{
	static const struct { int asked, effective; } cases[] = {
		{ 1, 1 }, { 3, 3 }, { 0, 1024 }, { -1, 1024 }, { 1024, 1024 }, { 1025, 1024 },
	};
	struct rdma_event_channel *channel = rdma_create_event_channel();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *listener = new_id(channel);
		struct rdma_cm_event *event;

		assert_int_equal(rdma_bind_addr(listener, addr4("0.0.0.0", 7471)), 0);
		/* Nobody listens yet. */
		assert_int_equal(post_request(fakes, internal(listener), NULL, NULL), -ENOMEM);
		assert_int_equal(rdma_listen(listener, cases[i].asked), 0);
		assert_int_equal(fakes[0].backlog, cases[i].effective);
		for (int n = 0; n < cases[i].effective; n++)
			assert_int_equal(post_request(fakes, internal(listener), NULL, NULL), 0);
		assert_int_equal(post_request(fakes, internal(listener), NULL, NULL), -ENOMEM);

		/* Retrieved is enough, neither acked nor accepted. */
		event = next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
		assert_int_equal(post_request(fakes, internal(listener), NULL, NULL), 0);
		assert_int_equal(post_request(fakes, internal(listener), NULL, NULL), -ENOMEM);
		assert_int_equal(rdma_destroy_id(event->id), 0);
		assert_int_equal(rdma_ack_cm_event(event), 0);
		assert_int_equal(rdma_destroy_id(listener), 0);
	}
	rdma_destroy_event_channel(channel);
}

static void removed_devices_are_told_to_their_ids(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_event_channel *second = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening_id(channel), *id = resolved_id(second);
	struct rdma_cm_id *pending = requested_id(listener), *accepted = requested_id(listener);
	struct rdma_conn_param param = { .qp_num = 1 };
	struct rdma_cm_event *event;

	(void)state;
	assert_int_equal(rdma_accept(accepted, &param), 0);
	polycm_device_removed(fakes[0].device);
	expect_event(second, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	expect_no_event(second);
	/* Not the wildcard listener, which is on no device, and not what nobody accepted. */
	event = next_event(channel, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	assert_ptr_equal(event->id, accepted);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	expect_no_event(channel);

	assert_int_equal(rdma_destroy_id(pending), 0);
	assert_int_equal(rdma_destroy_id(accepted), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(second);
	rdma_destroy_event_channel(channel);
}

static void channels_take_everything_with_them(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening_id(channel), *id = qp_id(channel);
	struct rdma_cm_event *event;
	struct capture capture;

	(void)state;
	assert_int_equal(post_request(fakes, internal(listener), NULL, NULL), 0);
	assert_int_equal(post(id, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	assert_int_equal(post(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0), 0);
	event = next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(rdma_destroy_id(event->id), 0);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(post_request(fakes, internal(listener), NULL, NULL), 0);
	event = next_event(channel, RDMA_CM_EVENT_ADDR_CHANGE, 0);

	polycm_log_level = POLYCM_LOG_WARN;
	capture_begin(&capture);
	rdma_destroy_event_channel(channel);
	capture_end(&capture);
	polycm_log_level = POLYCM_LOG_ERROR;
	assert_non_null(strstr(capture.text, "rdma_destroy_event_channel: 2 ids are still on it"));
	assert_int_equal(fakes[0].ids, 0);
	assert_int_equal(post(id, RDMA_CM_EVENT_ADDR_CHANGE, 0), -ECANCELED);

	/* What the program holds stays its own. */
	assert_int_equal(rdma_ack_cm_event(event), 0);
	rdma_destroy_qp(id);
	assert_null(id->qp);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
}

static void events_are_told(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved_id(channel);
	struct rdma_conn_param conn = { .private_data = "x", .private_data_len = 1,
					.responder_resources = 2, .initiator_depth = 3 };
	struct capture capture;

	(void)state;
	assert_int_equal(post_conn(id, RDMA_CM_EVENT_ESTABLISHED, 0, &conn, NULL), 0);
	assert_int_equal(post(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0), 0);
	assert_int_equal(post(id, RDMA_CM_EVENT_REJECTED, 8), 0);
	polycm_log_level = POLYCM_LOG_INFO;
	capture_begin(&capture);
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	expect_event(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	polycm_log_level = POLYCM_LOG_WARN;
	expect_event(channel, RDMA_CM_EVENT_REJECTED, 8);
	capture_end(&capture);
	polycm_log_level = POLYCM_LOG_ERROR;
	assert_int_equal(count_lines(capture.text), 3);
	assert_non_null(strstr(capture.text, "acme acme0 10.0.0.1:40000 > 10.0.0.2:7471"));
	assert_non_null(strstr(capture.text, "ESTABLISHED (responder resources 2, initiator depth "
					     "3, private data 1 bytes)\n"));
	assert_non_null(strstr(capture.text, "TIMEWAIT_EXIT\n"));
	assert_non_null(strstr(capture.text, "REJECTED: "));
	assert_non_null(strstr(capture.text, "REJ 8"));
	assert_int_equal(rdma_destroy_id(id), 0);
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
		cmocka_unit_test(events_have_names),
		RDMA_TEST(the_descriptor_is_readable_while_events_wait),
		RDMA_TEST(events_are_copies),
		RDMA_TEST(providers_cannot_post_nonsense),
		RDMA_TEST(unretrieved_events_go_with_their_id),
		RDMA_TEST(destroying_waits_for_acks_and_says_so),
		RDMA_TEST(requests_are_charged_to_the_listener),
		RDMA_TEST(new_ids_are_complete),
		RDMA_TEST(requests_that_cannot_be_completed_are_not_seen),
		RDMA_TEST(unretrieved_requests_end_with_their_listener),
		RDMA_TEST(the_backlog_counts_unretrieved_requests),
		RDMA_TEST(removed_devices_are_told_to_their_ids),
		RDMA_TEST(channels_take_everything_with_them),
		RDMA_TEST(events_are_told),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
