/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/sim/fabric_open.h"
#include "providers/soft/host/host.h"
#include "providers/soft/shm/doorbell.h"
#include "providers/soft/link/shm/shm.h"
#include "providers/soft/wire/address.h"
#include "providers/soft/faults/fault.h"
#include "providers/soft/shm/folder.h"
#include "providers/soft/link/link.h"
#include "providers/soft/link/shm/peer.h"
#include "providers/soft/link/shm/ring.h"
#include "providers/soft/shm/file_name.h"
#include "providers/soft/shm/segment.h"
#include "providers/sim/scenario.h"
#include "shm_child.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

#define RING_SIZE (1u << 18)	/* as shm.c has it: a ring of another size is none */

/* ------------------------------------------------------------------------
 * The test's side.
 */

extern char **environ;

void shm_child_start(struct shm_child *child, const char *mode)
{
	char *argv[] = { (char *)(uintptr_t)"child", (char *)(uintptr_t)"--child",
			 (char *)(uintptr_t)mode, NULL };
	posix_spawn_file_actions_t actions;
	char line[128] = "", self[512];
	size_t len = 0;
	ssize_t path_len;
	int in[2], out[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
	posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	/* Read, not followed: valgrind knows the one, the kernel the other. */
	path_len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(path_len > 0);
	self[path_len] = '\0';
	assert_int_equal(posix_spawn(&child->pid, self, &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	child->to = in[1];
	child->from = out[0];

	while (len < sizeof(line) - 1 && read(child->from, line + len, 1) == 1 && line[len] != '\n')
		len++;
	assert_int_equal(sscanf(line, "%u %u %" SCNu64, &child->slot, &child->qpn, &child->address), 3);
}

void shm_child_tell(struct shm_child *child)
{
	assert_int_equal(write(child->to, "\n", 1), 1);
}

static char *read_line(struct shm_child *child)
{
	char *line = NULL;
	size_t size = 0, len = 0;

	do {
		if (len + 1 >= size) {
			size += 1024;
			line = realloc(line, size);
			assert_non_null(line);
		}
		assert_int_equal(read(child->from, line + len, 1), 1);
	} while (line[len++] != '\n');
	line[len - 1] = '\0';
	return line;
}

char *shm_child_ask(struct shm_child *child)
{
	assert_int_equal(write(child->to, "?", 1), 1);
	return read_line(child);
}

void shm_child_send(struct shm_child *child)
{
	assert_int_equal(write(child->to, "s", 1), 1);
	free(read_line(child));
}

static int reap(struct shm_child *child)
{
	int status;

	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	close(child->from);
	return status;
}

int shm_child_end(struct shm_child *child)
{
	close(child->to);
	return reap(child);
}

int shm_child_kill(struct shm_child *child)
{
	assert_int_equal(kill(child->pid, SIGKILL), 0);
	close(child->to);
	return reap(child);
}

/* ------------------------------------------------------------------------
 * The child's side.
 */

static uint8_t pattern[SHM_CHILD_PATTERN];
static unsigned int echoed;

static void echo(const struct sim_packet *packet)
{
	struct iovec part = {
		.iov_base = (void *)(uintptr_t)packet->data,
		.iov_len = packet->len,
	};

	if (sim_link_send(packet->to, packet->from, packet->from_slot, packet->type, NULL, 0, &part,
			  1, packet->len))
		_exit(3);
	__atomic_fetch_add(&echoed, 1, __ATOMIC_RELAXED);
}

/* Packets that count from 0, and then "end". */
static void count(const struct sim_packet *packet)
{
	static uint32_t next;
	struct iovec part = { .iov_base = &next, .iov_len = sizeof(next) };
	uint32_t number;

	if (packet->len == 3) {
		if (sim_link_send(packet->to, packet->from, packet->from_slot, packet->type, NULL,
				  0, &part, 1, sizeof(next)))
			_exit(3);
		return;
	}
	memcpy(&number, packet->data, sizeof(number));
	next += number == next;
}

static void show_device(FILE *to, const struct sim_device *device)
{
	for (unsigned int i = 0; i < device->num_ports; i++) {
		const struct sim_port *port = &device->ports[i];

		fprintf(to, " port %d%s", (int)port->state, device->removed ? " removed" : "");
		for (unsigned int byte = 0; byte < sizeof(port->mac); byte++)
			fprintf(to, "%c%02x", byte ? ':' : ' ', port->mac[byte]);
		for (unsigned int gid = 0; gid < port->num_gids; gid++)
			fprintf(to, " %016" PRIx64, be64toh(port->gids[gid].gid.global.interface_id));
	}
}

char *shm_child_world(void)
{
	char *text = NULL, ip[INET6_ADDRSTRLEN];
	size_t size;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	for (const struct sim_node *node = sim_first_node(); node; node = node->next) {
		fprintf(to, "%s: until %" PRIu64 "%s", node->name, node->frozen_until,
			sim_fault_backlog_full(node) ? " full" : "");
		for (unsigned int i = 0; i < node->num_addresses; i++)
			fprintf(to, " %s%s", inet_ntop(AF_INET, &node->addresses[i].addr.in.sin_addr, ip,
						       sizeof(ip)), node->addresses[i].port ? "" : "-");
		for (const struct sim_device *device = node->devices; device; device = device->next)
			show_device(to, device);
		fprintf(to, "; ");
	}
	fclose(to);
	return text;
}

static unsigned int taken;

static void take(const struct sim_packet *packet)
{
	(void)packet;
	taken++;
}

/* A line for each byte of input. */
static void obey(void)
{
	struct iovec part = { .iov_base = pattern, .iov_len = 4 };
	char byte, *world;

	while (read(0, &byte, 1) == 1) {
		sim_lock();
		if (byte == 's') {
			if (sim_link_send(sim_port_by_index(sim_num_devices() - 1),
					  sim_port_by_index(0), 0, SIM_PACKET_RC, NULL, 0, &part, 1,
					  part.iov_len))
				_exit(3);
			puts("sent");
		} else {
			do
				sim_shm_receive();
			while (sim_shm_pending());
			world = shm_child_world();
			printf("%u packets; %s\n", taken, world);
			free(world);
		}
		sim_unlock();
		fflush(stdout);
	}
}

static int wait_for_input(void)
{
	char byte;

	return read(0, &byte, 1) == 1;
}

#define WIRE ((uint32_t)sizeof(struct sim_wire))

/* A ring to slot 0 in which something is wrong. */
static int make_bad_ring(const char *mode)
{
	struct sim_ring_name name = {
		.from = sim_self_slot(),
		.from_generation = sim_segment_peer(sim_self_slot())->generation,
		.to = 0,
		.to_generation = sim_segment_peer(0)->generation,
	};
	size_t size = sim_ring_memory(RING_SIZE);
	struct sim_ring_header *ring;
	struct sim_ring_writer writer;
	char text[SIM_FILE_NAME_MAX];
	uint8_t *bytes;
	void *record;
	int fd;

	sim_ring_name_format(&name, text);
	fd = openat(sim_segment_folder()->fd, text, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)(strcmp(mode, "size") ? size : size - 1)) < 0)
		return 4;
	ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (ring == MAP_FAILED)
		return 5;
	sim_ring_writer_init(&writer, ring, RING_SIZE);
	if (!strcmp(mode, "magic"))
		ring->magic++;
	if (sim_ring_reserve(&writer, WIRE + 1, &record))
		return 6;
	bytes = record;
	memset(bytes, 0, WIRE);		/* from port 0 to port 0 */
	bytes[WIRE] = 'x';
	sim_ring_commit(&writer, WIRE + 1, SIM_PACKET_RC);
	if (!strcmp(mode, "broken")) {
		/* Nobody's port, nobody's type, too long for its type, then nonsense. */
		if (sim_ring_reserve(&writer, WIRE, &record))
			return 7;
		memset(record, 0xff, WIRE);
		sim_ring_commit(&writer, WIRE, SIM_PACKET_RC);
		if (sim_ring_reserve(&writer, WIRE, &record))
			return 8;
		memset(record, 0, WIRE);
		sim_ring_commit(&writer, WIRE, SIM_PACKET_TYPES);
		if (sim_ring_reserve(&writer, SIM_MAX_RECORD, &record))
			return 11;
		memset(record, 0, SIM_MAX_RECORD);
		sim_ring_commit(&writer, SIM_MAX_RECORD, SIM_PACKET_RC);
		if (sim_ring_reserve(&writer, 2, &record))
			return 9;
		sim_ring_commit(&writer, 2, SIM_PACKET_RC);
		if (sim_ring_reserve(&writer, 1, &record))
			return 10;
		sim_ring_commit(&writer, SIM_MAX_RECORD + 1, SIM_PACKET_RC);
	}
	sim_segment_notify(0, sim_self_slot());
	munmap(ring, size);
	return 0;
}

static int send_some(void)
{
	struct sim_port *port = sim_port_by_index(0);
	struct iovec part = { .iov_len = sizeof(uint32_t) };
	int r = 0;

	for (uint32_t i = 0; i < SHM_CHILD_FLOOD && !r; i++) {
		part.iov_base = &i;
		r = sim_link_send(port, port, 0, SIM_PACKET_RC, NULL, 0, &part, 1, sizeof(i));
	}
	return r;
}

static int take_numbers(uint32_t *qpn)
{
	union sim_sockaddr addr;
	static char id;
	uint8_t ignored;
	int r;

	r = sim_addr_parse("0.0.0.0", &addr, &ignored);
	sim_addr_set_port(&addr, SHM_CHILD_PORT);
	if (!r)
		r = sim_bind_port(sim_first_node(), RDMA_PS_TCP, &addr, 0, (struct sim_id *)(void *)&id);
	if (!r)
		r = sim_bind_listen(sim_first_node(), RDMA_PS_TCP, &addr,
				    (struct sim_id *)(void *)&id, SIM_LISTEN);
	if (!r)
		r = sim_qpn_block(qpn);
	return r;
}

static int churn(void)
{
	for (unsigned int i = 0; i < 5; i++) {
		if (i && sim_engine_start(SIM_CLOCK_REAL, 1))
			return 11;
		sim_lock();
		if (i && sim_fabric_open_default())
			return 12;
		sim_engine_need_thread();
		sim_fabric_close();
		sim_unlock();
		sim_engine_stop();
	}
	return 0;
}

static int run(const char *mode)
{
	uint32_t qpn = 0;
	bool silent = !strcmp(mode, "silent");
	bool deaf = silent || !strcmp(mode, "deaf") || !strcmp(mode, "world") || !strcmp(mode, "poll");
	int r = 0;

	sim_lock();
	sim_link_set_handler(SIM_PACKET_RC, !strcmp(mode, "world") ? take : silent ? count : echo);
	if (!strcmp(mode, "hold") || !strcmp(mode, "lock"))
		r = take_numbers(&qpn);
	else if (!deaf)
		sim_engine_need_thread();
	if (!strcmp(mode, "broken") || !strcmp(mode, "size") || !strcmp(mode, "magic"))
		r = make_bad_ring(mode);
	if (!strcmp(mode, "flood"))
		r = send_some();
	if (!strcmp(mode, "lock"))
		sim_segment_lock();
	sim_unlock();
	if (r)
		return 2;
	for (uint32_t i = 0; i < SHM_CHILD_PATTERN; i++)
		pattern[i] = (uint8_t)(i % 251);
	printf("%u %u %" PRIu64 "\n", sim_self_slot(), qpn, (uint64_t)(uintptr_t)pattern);
	fflush(stdout);
	if (!strcmp(mode, "churn"))
		return churn();
	if (!strcmp(mode, "world"))
		obey();
	if (!strcmp(mode, "poll"))
		while (!__atomic_load_n(&echoed, __ATOMIC_RELAXED))
			sim_progress();
	while (wait_for_input()) {
		sim_lock();
		sim_engine_need_thread();
		sim_unlock();
	}
	return 0;
}

int shm_child_open(const char *scenario)
{
	struct sim_scenario_head head;
	int r = sim_scenario_peek(scenario, &head);

	if (r)
		return r;
	if (head.has_nodes)
		return sim_fabric_open_scenario(scenario);
	r = sim_fabric_open_default();
	return r ? r : sim_scenario_build(scenario, NULL, 0);
}

int shm_child_main(int argc, char **argv)
{
	int r;

	if (argc != 3 || strcmp(argv[1], "--child") != 0)
		return -1;
	sim_fake_init();
	if (getenv("SHM_CHILD_FABRIC"))
		sim_fake_set("POLYCM_SIM_FABRIC", getenv("SHM_CHILD_FABRIC"));
	if (sim_engine_start(SIM_CLOCK_REAL, 1))
		return 20;
	sim_lock();
	r = getenv("SHM_CHILD_SCENARIO") ? shm_child_open(getenv("SHM_CHILD_SCENARIO")) :
					   sim_fabric_open_default();
	sim_unlock();
	if (r)
		return 21;
	r = run(argv[2]);
	if (!strcmp(argv[2], "churn"))
		return r;
	sim_lock();
	sim_fabric_close();
	sim_unlock();
	sim_engine_stop();
	return r;
}
