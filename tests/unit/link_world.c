/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "providers/soft/host/host.h"
#include "link_world.h"
#include "tests/cmocka_all.h"

#define MAD_NUMBER 12u			/* in the transaction id */

struct sim_node *node_a, *node_b;
struct sim_port *port_a, *port_b;
struct seen seen[SEEN_MAX];
unsigned int num_seen;

static void see(const struct sim_packet *packet)
{
	struct seen *s = &seen[num_seen];
	size_t at = packet->type == SIM_PACKET_MAD ? MAD_NUMBER : 0;

	assert_in_range(num_seen, 0, SEEN_MAX - 1);
	num_seen++;
	s->time = sim_now();
	s->len = packet->len;
	memcpy(&s->number, packet->data + at, sizeof(s->number));
	memcpy(s->data, packet->data, packet->len < sizeof(s->data) ? packet->len :
	       sizeof(s->data));
}

static struct sim_node *make_node(const char *name, const char *device_name, const char *address)
{
	struct sim_device *device;
	struct sim_node *node;

	assert_int_equal(sim_node_add(name, &node), 0);
	assert_int_equal(sim_device_add(node, device_name, &sim_fake_roce, &device), 0);
	assert_int_equal(sim_device_add_address(device, NULL, address), 0);
	return node;
}

int link_world_open(void **state)
{
	(void)state;
	sim_fake_init();
	assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, 1), 0);
	sim_lock();
	assert_int_equal(sim_fabric_begin(), 0);
	node_a = make_node("a", "sim0", "10.0.0.1/24");
	node_b = make_node("b", "sim1", "10.0.0.2/24");
	port_a = &node_a->devices->ports[0];
	port_b = &node_b->devices->ports[0];
	sim_link_set_handler(SIM_PACKET_UD, see);
	sim_link_set_handler(SIM_PACKET_MAD, see);
	num_seen = 0;
	return 0;
}

int link_world_close(void **state)
{
	(void)state;
	sim_link_set_handler(SIM_PACKET_UD, NULL);
	sim_link_set_handler(SIM_PACKET_MAD, NULL);
	sim_fabric_close();
	assert_int_equal(sim_link_under_way(), 0);
	assert_false(sim_shape_on);
	assert_false(sim_faults_on);
	sim_unlock();
	sim_engine_stop();
	return 0;
}

void send_number(struct sim_port *from, struct sim_port *to, uint32_t number, size_t len)
{
	uint8_t data[SIM_LINK_MAX_PACKET] = { 0 };

	memcpy(data, &number, sizeof(number));
	assert_int_equal(sim_link_send(from, to, 0, SIM_PACKET_UD, data, len, NULL, 0, 0), 0);
}

void send_mad(struct sim_port *from, struct sim_port *to, uint16_t attr_id, uint32_t number)
{
	uint8_t mad[256] = { [16] = (uint8_t)(attr_id >> 8), [17] = (uint8_t)attr_id };

	memcpy(mad + MAD_NUMBER, &number, sizeof(number));
	assert_int_equal(sim_link_send(from, to, 0, SIM_PACKET_MAD, mad, sizeof(mad), NULL, 0, 0),
			 0);
}

const char *arrivals(void)
{
	static char text[256];
	size_t len = 0;

	sim_unlock();
	assert_int_equal(sim_advance(SIM_MS(1000000)), 0);
	sim_lock();
	assert_int_equal(sim_link_under_way(), 0);
	text[0] = '\0';
	for (unsigned int i = 0; i < num_seen && len < sizeof(text); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u", i ? " " : "",
					seen[i].number);
	num_seen = 0;
	return text;
}
