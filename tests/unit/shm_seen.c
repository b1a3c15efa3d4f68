/* SPDX-License-Identifier: BSD-2-Clause */
/* shm_seen.c - see shm_seen.h. */
#include "config.h"

#include <dirent.h>
#include <string.h>

#include "providers/sim/fabric_open.h"
#include "providers/soft/host/host.h"
#include "shm_seen.h"

#define NO_HANG (sim_now() + SIM_MS(60000))

struct seen seen;

void see(const struct sim_packet *packet)
{
	uint32_t number;

	if (packet->len >= sizeof(number)) {
		memcpy(&number, packet->data, sizeof(number));
		seen.in_order &= number == seen.count;
	}
	seen.count++;
	seen.from_slot = packet->from_slot;
	seen.len = packet->len;
	memcpy(seen.data, packet->data, packet->len);
	sim_wake();
}

int start(void **state)
{
	(void)state;
	sim_fake_init();
	sim_fake_make_runtime_dir();
	return sim_engine_start(SIM_CLOCK_REAL, 1);
}

static void join(void)
{
	sim_lock();
	assert_int_equal(sim_fabric_open_default(), 0);
	sim_link_set_handler(SIM_PACKET_RC, see);
	sim_unlock();
	memset(&seen, 0, sizeof(seen));
	seen.in_order = true;
}

static void leave(void)
{
	if (!sim_lock_within(SIM_MS(500)))
		print_message("a test that failed has the lock\n");
	sim_fabric_close();
	sim_unlock();
}

int start_joined(void **state)
{
	int r = start(state);

	if (!r)
		join();
	return r;
}

unsigned int count_files(const char *folder)
{
	struct dirent *entry;
	unsigned int count = 0;
	DIR *dir = opendir(sim_fake_path("%s", folder));

	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

int stop(void **state)
{
	(void)state;
	leave();
	sim_engine_stop();
	assert_int_equal(count_files("polycm"), 0);
	sim_fake_remove_runtime_dir();
	return 0;
}

int send_bytes(unsigned int slot, const void *bytes, size_t len)
{
	struct sim_port *port = sim_port_by_index(0);
	struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = len };

	return sim_link_send(port, port, slot, SIM_PACKET_RC, NULL, 0, &part, 1, len);
}

bool seen_enough(void *arg)
{
	return seen.count >= *(const unsigned int *)arg;
}

int wait_for(unsigned int count)
{
	return sim_wait(seen_enough, &count, NO_HANG);
}
