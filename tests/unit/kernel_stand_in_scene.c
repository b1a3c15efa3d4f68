/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel_stand_in_scene.c - see kernel_stand_in_scene.h */
#include "kernel_stand_in_scene.h"

#include <endian.h>

#include "core/plugin/kernel_client.h"
#include "kernel_stand_in_internal.h"
#include "providers/ib/rules.h"
#include "providers/iwarp/rules.h"
#include "providers/roce/rules.h"

struct rdma_event_channel *channel;

/* ------------------------------------------------------------------------
 * The providers, as their files make them.
 */

static struct polycm_transport vendor_transport;

static bool is_the_vendors(const struct polycm_kernel_device *device)
{
	return !strcmp(device->name, "hca1");
}

static int vendor_init(struct polycm_module *module, void **ret_ctx)
{
	const struct polycm_kernel_setup setup = {
		.size = sizeof(setup), .claims = is_the_vendors,
	};

	return polycm_kernel_table.init(module, &setup, ret_ctx);
}

static const struct polycm_ops by_name = { .size = sizeof(by_name), .init = vendor_init };
/* No init(): as one by the rules alone. */
static const struct polycm_ops by_rules = { .size = sizeof(by_rules) };

static const struct {
	const struct polycm_transport *rules;
	const struct polycm_ops *ops;
} kinds[] = {
	{ &vendor_transport, &by_name },
	{ &ib_transport, &by_rules }, { &roce_transport, NULL }, { &iwarp_transport, NULL },
};

static struct polycm_provider providers[ARRAY_SIZE(kinds)];

int scene_start(unsigned int which)
{
	polycm_kernel_host = &stand_in_host;
	stand_in_reset();
	vendor_transport = ib_transport;
	vendor_transport.name = "vendor";
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		providers[i] = (struct polycm_provider){
			.size = sizeof(providers[i]),
			.abi_minor = POLYCM_ABI_MINOR,
			.name = kinds[i].rules->name,
			.version = "1",
			.description = "a test's",
			.transport = kinds[i].rules,
			.ops = kinds[i].ops,
			.flags = POLYCM_PROVIDER_KERNEL,
		};
		if (which & 1u << i && polycm_registry_add_static(&providers[i]))
			return -1;
	}
	return 0;
}

int scene_reset(void **state)
{
	stand_in_reset();
	fakes_reset(state);
	/* Devices that the last test took away are there again. */
	rdma_free_devices(rdma_get_devices(NULL));
	stand_in_reset();
	channel = rdma_create_event_channel();
	return channel ? 0 : -1;
}

int scene_check(void **state)
{
	struct polycm_live_counts live;

	(void)state;
	if (channel)
		rdma_destroy_event_channel(channel);
	channel = NULL;
	assert_string_equal(stand_in.violation, "");
	polycm_live_counts(&live);
	assert_int_equal(live.ids, 0);
	assert_int_equal(live.channels, 0);
	assert_int_equal(live.events, 0);
	assert_int_equal(stand_in.ids, 0);
	assert_int_equal(stand_in.groups, 0);
	assert_int_equal(stand_in.files, 0);
	assert_int_equal(fake_verbs.qps, 0);
	assert_int_equal(fake_verbs.cqs, 0);
	assert_int_equal(fake_verbs.channels, 0);
	assert_int_equal(fake_verbs.attached, 0);
	return 0;
}

/* ------------------------------------------------------------------------
 * Ids.
 */

struct sockaddr *addr6(const char *text, uint16_t port)
{
	static struct sockaddr_storage ring[4];
	static unsigned int next;
	struct sockaddr_storage *addr = &ring[next++ % ARRAY_SIZE(ring)];
	struct in_addr ip;

	memset(addr, 0, sizeof(*addr));
	addr->ss_family = AF_INET6;
	assert_int_equal(inet_pton(AF_INET, text, &ip), 1);
	si_addr_set_ip(addr, ntohl(ip.s_addr));
	si_addr_set_port(addr, port);
	return (struct sockaddr *)addr;
}

struct sockaddr *addr_ib(const char *device, uint8_t port_num, enum rdma_port_space ps,
			 uint16_t port)
{
	static struct sockaddr_storage ring[4];
	static unsigned int next;
	struct sockaddr_storage *addr = &ring[next++ % ARRAY_SIZE(ring)];
	struct sockaddr_ib *ib = (struct sockaddr_ib *)(void *)addr;
	union ibv_gid gid;

	memset(addr, 0, sizeof(*addr));
	ib->sib_family = AF_IB;
	ib->sib_pkey = htons(0xffff);
	ib->sib_sid = htobe64((uint64_t)ps << 16 | port);
	ib->sib_sid_mask = htobe64(UINT64_MAX);
	for (size_t i = 0; device && i < SI_DEVICES; i++) {
		if (strcmp(si_devices[i].host.name, device))
			continue;
		si_port_gid(&si_devices[i], port_num, &gid);
		memcpy(&ib->sib_addr, &gid, sizeof(gid));
		ib->sib_pkey = htons(si_devices[i].port[port_num - 1].pkey);
	}
	return (struct sockaddr *)addr;
}

struct rdma_cm_id *scene_id(enum rdma_port_space ps)
{
	struct rdma_cm_id *id = NULL;

	assert_int_equal(rdma_create_id(channel, &id, &stand_in, ps), 0);
	return id;
}

struct rdma_cm_id *scene_resolved(enum rdma_port_space ps, const char *dst)
{
	struct rdma_cm_id *id = scene_id(ps);

	assert_int_equal(rdma_resolve_addr(id, NULL, addr4(dst, PORT), 1000), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	return id;
}

struct rdma_cm_id *scene_routed(enum rdma_port_space ps, const char *dst)
{
	struct rdma_cm_id *id = scene_resolved(ps, dst);

	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return id;
}

struct rdma_cm_id *scene_listener(enum rdma_port_space ps, const char *src)
{
	struct rdma_cm_id *id = scene_id(ps);

	assert_int_equal(rdma_bind_addr(id, addr4(src, PORT)), 0);
	assert_int_equal(rdma_listen(id, 4), 0);
	return id;
}

struct rdma_cm_id *scene_request(struct rdma_cm_id *listener)
{
	struct rdma_cm_event *event = next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct rdma_cm_id *id = event->id;

	assert_ptr_equal(event->listen_id, listener);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	return id;
}

void scene_connect(struct scene_pair *pair, const char *dst)
{
	pair->listener = scene_listener(RDMA_PS_TCP, "0.0.0.0");
	pair->active = scene_routed(RDMA_PS_TCP, dst);
	create_qp(pair->active);
	assert_int_equal(rdma_connect(pair->active, NULL), 0);
	pair->passive = scene_request(pair->listener);
	create_qp(pair->passive);
	assert_int_equal(rdma_accept(pair->passive, NULL), 0);
	/* Each transport has its order. */
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
}

void scene_disconnect(struct scene_pair *pair)
{
	assert_int_equal(rdma_disconnect(pair->active), 0);
	expect_event(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(rdma_disconnect(pair->passive), 0);
	expect_event(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	stand_in_time_passes();
	if (pair->active->verbs->device->transport_type == IBV_TRANSPORT_IWARP) {
		expect_no_event(channel);
		return;
	}
	expect_event(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	expect_event(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
}

void scene_destroy(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	assert_int_equal(rdma_destroy_id(id), 0);
}

void scene_end(struct scene_pair *pair)
{
	scene_destroy(pair->active);
	scene_destroy(pair->passive);
	scene_destroy(pair->listener);
}

unsigned int scene_drain(void)
{
	int flags = fcntl(channel->fd, F_GETFL);
	struct rdma_cm_event *event;
	unsigned int num = 0;

	assert_int_equal(fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
	while (!rdma_get_cm_event(channel, &event)) {
		assert_int_equal(rdma_ack_cm_event(event), 0);
		num++;
	}
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(fcntl(channel->fd, F_SETFL, flags), 0);
	return num;
}

/* ------------------------------------------------------------------------
 * A stranger, with commands of its own.
 */

static int give(int fd, uint32_t number, const void *body, size_t len, size_t out)
{
	unsigned char buf[1024];
	const struct rdma_ucm_cmd_hdr hdr = {
		.cmd = number, .in = (uint16_t)len, .out = (uint16_t)out,
	};
	ssize_t r;

	memcpy(buf, &hdr, sizeof(hdr));
	memcpy(buf + sizeof(hdr), body, len);
	r = (number == RDMA_USER_CM_CMD_GET_EVENT ? stand_in_host.wait : stand_in_host.command)(
		fd, buf, sizeof(hdr) + len);
	/* The program's commands are what is counted. */
	stand_in.calls[number]--;
	return r < 0 ? (int)r : 0;
}

#define GIVE(fd, number, body, out) \
	assert_int_equal(give(fd, RDMA_USER_CM_CMD_##number, &(body), sizeof(body), (out)), 0)

void stranger_connect(struct stranger *stranger, const char *dst)
{
	struct rdma_ucm_create_id_resp resp = { 0 };
	const struct rdma_ucm_create_id create = {
		.uid = 1, .response = (uintptr_t)&resp, .ps = RDMA_PS_TCP,
	};
	struct rdma_ucm_resolve_ip resolve = { .timeout_ms = 1 };
	struct rdma_ucm_resolve_route route = { .timeout_ms = 1 };
	struct rdma_ucm_connect connect = { .conn_param = { .valid = 1, .qp_num = 0x99 } };
	int fd = stand_in_host.open();

	assert_true(fd >= 0);
	GIVE(fd, CREATE_ID, create, sizeof(resp));
	stranger->fd = fd;
	stranger->id = resolve.id = route.id = connect.id = resp.id;
	memcpy(&resolve.dst_addr, addr4(dst, PORT), sizeof(struct sockaddr_in));
	GIVE(fd, RESOLVE_IP, resolve, 0);
	stranger_hears(stranger, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	GIVE(fd, RESOLVE_ROUTE, route, 0);
	stranger_hears(stranger, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	GIVE(fd, CONNECT, connect, 0);
}

void stranger_hears(const struct stranger *stranger, int type, int status)
{
	struct rdma_ucm_event_resp resp = { 0 };
	const struct rdma_ucm_get_event get = { .response = (uintptr_t)&resp };
	int r;

	assert_int_equal(fcntl(stranger->fd, F_SETFL, O_NONBLOCK), 0);
	r = give(stranger->fd, RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get), sizeof(resp));
	if (type < 0) {
		assert_int_equal(r, -EAGAIN);
		return;
	}
	assert_int_equal(r, 0);
	assert_int_equal(resp.event, type);
	assert_int_equal((int)resp.status, status);
}

void stranger_end(const struct stranger *stranger)
{
	stand_in_host.close(stranger->fd);
}
