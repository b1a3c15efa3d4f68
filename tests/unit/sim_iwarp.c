/* SPDX-License-Identifier: BSD-2-Clause */
/* sim_iwarp.c - see sim_iwarp.h. */
#include "config.h"

#include "sim_iwarp.h"

#include <string.h>

#include "providers/iwarp/rules.h"

void iwarp_open(struct pair *p)
{
	iwarp_open_as(p, &iwarp_transport);
}

void iwarp_open_as(struct pair *p, const struct polycm_transport *rules)
{
	world_open_as(IWARP, rules);
	memset(p, 0, sizeof(*p));
	p->listener = world_listener(RDMA_PS_TCP);
	p->client_qp = world_qp(&world.client);
	p->server_qp = world_qp(&world.server);
	p->active = world_resolved(RDMA_PS_TCP);
}

void iwarp_close(struct pair *p)
{
	if (p->child)
		world_destroy(p->child);
	if (p->active)
		world_destroy(p->active);
	if (p->listener)
		world_destroy(p->listener);
	world_destroy_qp(p->client_qp);
	world_destroy_qp(p->server_qp);
	world_close();
}

void iwarp_request(struct pair *p)
{
	assert_int_equal(world_connect(p->active, "hello", 5, p->client_qp), 0);
	p->child = world_request(p->listener);
}

void iwarp_establish(struct pair *p)
{
	iwarp_request(p);
	assert_int_equal(world_accept(p->child, NULL, 0, p->server_qp), 0);
	world_expect(p->child, RDMA_CM_EVENT_ESTABLISHED, 0);
	world_expect(p->active, RDMA_CM_EVENT_ESTABLISHED, 0);
}

int iwarp_reject(struct pair *p, const void *data, uint8_t len)
{
	return sim_cma_ops.reject(&p->child->sim, data, len, 0);
}

int iwarp_disconnect(struct polycm_id *id)
{
	return sim_cma_ops.disconnect(&id->sim);
}

void iwarp_check_data(const struct polycm_event *event, size_t len)
{
	assert_int_equal(event->param.conn.private_data_len, len);
	if (!len)
		assert_null(event->param.conn.private_data);
	else
		assert_memory_equal(event->param.conn.private_data, world_data, len);
}
