/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a fault rule does to a node of a shared fabric when one process sees it
 * come true: all processes do it, those that come later too, and before any
 * packet that was sent after it.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/sim/fabric_open.h"
#include "providers/soft/faults/fault.h"
#include "providers/soft/faults/changes.h"
#include "providers/soft/host/host.h"
#include "providers/soft/link/link.h"
#include "providers/soft/link/pace.h"
#include "providers/soft/shm/segment.h"
#include "providers/sim/scenario.h"
#include "providers/soft/fabric/world.h"
#include "shm_child.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

#define NODES                                                                                      \
	"nodes = ( { name = \"a\"; devices = ( { addresses = \"10.0.0.1/24\"; } ); },\n"          \
	"{ name = \"b\"; devices = ( { addresses = \"10.0.0.2/24\"; } ); } );\n"

static struct sim_changes_area *shared_changes(void)
{
	return sim_segment_area(SIM_AREA_CHANGES);
}

static char path[256];

static void start(const char *nodes, const char *faults)
{
	FILE *file;

	sim_fake_init();
	sim_fake_make_runtime_dir();
	snprintf(path, sizeof(path), "%s", sim_fake_path("world.cfg"));
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%sfaults = ( %s );\n", nodes, faults);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(sim_engine_start(SIM_CLOCK_REAL, 1), 0);
}

static void open_file(const char *nodes, const char *faults)
{
	start(nodes, faults);
	assert_int_equal(setenv("SHM_CHILD_SCENARIO", path, 1), 0);
	sim_lock();
	assert_int_equal(shm_child_open(path), 0);
	sim_unlock();
}

static void close_world(void)
{
	sim_lock();
	sim_fabric_close();
	sim_unlock();
	sim_engine_stop();
	assert_int_equal(sim_changes_joined(), 0);
	assert_int_equal(remove(path), 0);
	sim_fake_remove_runtime_dir();
}

/* This process, on the fabric of a file with these faults. */
static void open_world(const char *faults)
{
	open_file(NODES, faults);
}

/* From the first node to the last, to that process. */
static void send_to(const struct shm_child *child)
{
	static const uint32_t word;
	struct iovec part = { .iov_base = (void *)(uintptr_t)&word, .iov_len = sizeof(word) };

	sim_lock();
	assert_int_equal(sim_link_send(sim_port_by_index(0),
				       sim_port_by_index(sim_num_devices() - 1), child->slot,
				       SIM_PACKET_RC, NULL, 0, &part, 1, sizeof(word)), 0);
	sim_unlock();
}

static char *own_world(void)
{
	char *world;

	sim_lock();
	world = shm_child_world();
	sim_unlock();
	return world;
}

/* How many packets the child got, and its world must be this one. */
static unsigned int has_world(struct shm_child *child, const char *world)
{
	char *line = shm_child_ask(child), *behind;
	unsigned long taken = strtoul(line, &behind, 10);

	assert_int_equal(strncmp(behind, " packets; ", 10), 0);
	assert_string_equal(behind + 10, world);
	free(line);
	return (unsigned int)taken;
}

static unsigned int hits(uint32_t rule)
{
	unsigned int n;

	sim_lock();
	assert_int_equal(sim_fault_hits(rule, &n), 0);
	sim_unlock();
	return n;
}

static void all_processes_do_it(void **state)
{
	static const struct {
		const char *faults;
		unsigned int arrive;		/* of five packets from a to b */
	} rows[] = {
#define SEEN(what) "{ message = \"data\"; from = \"a\"; " what " }"
		{ SEEN("nth = 3; on = \"b\"; action = \"crash\";"), 2 },
		{ SEEN("nth = 3; on = \"b\"; action = \"freeze\"; delay = \"10 min\";"), 2 },
		{ SEEN("nth = 3; on = \"b\"; action = \"port_down\";"), 2 },
		{ SEEN("nth = 3; on = \"b\"; action = \"port_down\"; delay = \"10 min\";"), 2 },
		{ SEEN("nth = 3; on = \"b\"; action = \"remove_device\"; device = \"sim1\";"), 2 },
		{ SEEN("nth = 3; on = \"b\"; action = \"full_backlog\";"), 5 },
		{ SEEN("nth = 3; on = \"b\"; action = \"full_backlog\"; delay = \"10 min\";"), 5 },
		{ SEEN("nth = 3; on = \"b\"; action = \"change_mac\"; address = \"10.0.0.2\";"), 5 },
		{ SEEN("nth = 3; on = \"b\"; action = \"change_address\"; address = \"10.0.0.2\"; "
		       "new_address = \"10.0.0.7/24\";"), 5 },
		{ SEEN("nth = 3; on = \"b\"; action = \"change_address\"; address = \"10.0.0.2\";"), 5 },
		{ SEEN("nth = 3; on = \"b\"; action = \"change_address\"; "
		       "new_address = \"10.0.0.8/24\";"), 5 },
		/* It freezes itself: what was sent until then arrives. */
		{ SEEN("nth = 3; on = \"a\"; action = \"crash\";"), 3 },
		{ SEEN("nth = 2; on = \"a\"; action = \"port_down\";") ", "
		  SEEN("nth = 2; on = \"b\"; action = \"change_mac\"; address = \"10.0.0.2\";") ", "
		  SEEN("nth = 1; on = \"b\"; action = \"change_mac\"; address = \"10.0.0.2\";") ", "
		  SEEN("nth = 1; on = \"a\"; action = \"change_mac\"; address = \"10.0.0.1\";"), 2 },
#undef SEEN
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct shm_child early, late;
		char *before, *after;

		print_message("%s\n", rows[i].faults);
		open_world(rows[i].faults);
		shm_child_start(&early, "world");
		before = own_world();
		assert_int_equal(has_world(&early, before), 0);
		for (unsigned int n = 0; n < 5; n++)
			send_to(&early);
		after = own_world();
		assert_string_not_equal(after, before);
		assert_int_equal(has_world(&early, after), rows[i].arrive);
		assert_int_equal(hits(1), 1);
		shm_child_start(&late, "world");
		assert_int_equal(has_world(&late, after), 0);
		assert_int_equal(shm_child_end(&late), 0);
		assert_int_equal(shm_child_end(&early), 0);
		free(before);
		free(after);
		close_world();
	}
}

/* Each does it itself at the time, and whoever comes later does what is not over. */
static void at_a_time(void **state)
{
	static const char faults[] =
		"{ action = \"freeze\"; on = \"b\"; after = \"1 ns\"; delay = \"10 min\"; }, "
		"{ action = \"freeze\"; on = \"a\"; after = \"1 ns\"; delay = \"2 ns\"; }, "
		"{ action = \"port_down\"; on = \"a\"; after = \"2 ns\"; delay = \"2 ns\"; }, "
		"{ action = \"change_mac\"; on = \"b\"; address = \"10.0.0.2\"; after = \"1 ns\"; }";
	struct shm_child child;
	char *world;

	(void)state;
	open_world(faults);
	world = own_world();
	assert_non_null(strstr(world, "a: until 0 10.0.0.1 port 4"));
	assert_null(strstr(world, "b: until 0"));
	shm_child_start(&child, "world");
	assert_int_equal(has_world(&child, world), 0);
	assert_int_equal(atomic_load(&shared_changes()->newest), 0);
	assert_int_equal(shm_child_end(&child), 0);
	free(world);
	close_world();
}

/* One process has faults, on the host that it shares with others. */
static void without_nodes_too(void **state)
{
	static const char *const faults[] = {
		"{ action = \"crash\"; message = \"data\"; nth = 2; }",
		"{ action = \"freeze\"; on = \"host\"; delay = \"10 min\"; }",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct shm_child child;
		char *world;

		start("", faults[i]);
		assert_int_equal(unsetenv("SHM_CHILD_SCENARIO"), 0);
		sim_lock();
		assert_int_equal(sim_fabric_open_default(), 0);
		sim_unlock();
		shm_child_start(&child, "world");
		sim_lock();
		assert_int_equal(sim_scenario_build(path, NULL, 0), 0);
		sim_unlock();
		for (unsigned int n = 0; n < 4; n++)
			send_to(&child);
		world = own_world();
		assert_null(strstr(world, "host: until 0"));
		assert_int_equal(has_world(&child, world), i ? 0 : 1);
		free(world);
		assert_int_equal(shm_child_end(&child), 0);
		close_world();
	}
}

static void they_count_together(void **state)
{
	static const struct {
		const char *fault;
		const char *who;		/* sends: a child, or us */
		unsigned int hits;		/* ours */
	} rows[] = {
		{ "{ action = \"lose\"; message = \"data\"; nth = 3; }", "ccuu", 1 },
		{ "{ action = \"lose\"; message = \"data\"; nth = 3; }", "cccu", 0 },
		{ "{ action = \"lose\"; message = \"data\"; nth = 2; times = 3; }", "ucucuu", 1 },
		{ "{ action = \"lose\"; message = \"data\"; times = 3; }", "cucuu", 1 },
		{ "{ action = \"lose\"; message = \"data\"; times = 1; }", "cuu", 0 },
		{ "{ action = \"lose\"; message = \"data\"; from = \"a\"; nth = 2; }", "ccuuu", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct shm_child child;

		open_world(rows[i].fault);
		shm_child_start(&child, "world");
		for (const char *who = rows[i].who; *who; who++) {
			if (*who == 'c')
				shm_child_send(&child);
			else
				send_to(&child);
		}
		assert_int_equal(hits(1), rows[i].hits);
		/* That it came true in another process is enough. */
		sim_lock();
		sim_fault_log_missed();
		sim_unlock();
		assert_int_equal(sim_fake_log_count(POLYCM_LOG_WARN), 0);
		assert_int_equal(shm_child_end(&child), 0);
		close_world();
	}
}

/* More than there is room for: what is over goes first, then what is oldest. */
static void there_is_no_end_of_room(void **state)
{
	struct shm_child child;
	char *world;

	(void)state;
	open_world("{ action = \"crash\"; on = \"b\"; message = \"data\"; nth = 1; }, "
		   "{ action = \"full_backlog\"; on = \"a\"; message = \"data\"; delay = \"1 ns\"; }");
	shm_child_start(&child, "world");
	for (unsigned int i = 0; i < 3 * SIM_CHANGES; i++)
		send_to(&child);
	world = own_world();
	assert_int_equal(has_world(&child, world), 0);
	assert_int_equal(shm_child_end(&child), 0);
	shm_child_start(&child, "world");
	assert_int_equal(has_world(&child, world), 0);
	assert_int_equal(shm_child_end(&child), 0);
	free(world);
	close_world();
}

/* What cannot be is not done, whoever wrote it. */
static void what_makes_no_sense_is_passed_over(void **state)
{
	static const struct sim_change changes[] = {
		{ .action = 0 },
		{ .action = UINT32_MAX },
		{ .action = POLYCM_SIM_LOSE },
		{ .action = POLYCM_SIM_CRASH, .node = UINT32_MAX },
		{ .action = POLYCM_SIM_CRASH, .node = 2 },
		{ .action = POLYCM_SIM_PORT_DOWN, .device = "sim7" },
		{ .action = POLYCM_SIM_FREEZE, .at = UINT64_MAX, .delay = 1, .node = 3 },
		{ .action = POLYCM_SIM_CHANGE_MAC },
		{ .action = POLYCM_SIM_CHANGE_MAC, .address = "10.0.0.9" },
		{ .action = POLYCM_SIM_CHANGE_ADDRESS },
		{ .action = POLYCM_SIM_CHANGE_ADDRESS, .new_address = "nonsense" },
	};
	char *before, *after;

	(void)state;
	open_world("");
	before = own_world();
	sim_lock();
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct sim_change change = changes[i];

		/* No end of a text. */
		if (change.action == POLYCM_SIM_PORT_DOWN)
			memset(change.device, 'x', sizeof(change.device));
		sim_changes_tell(&change);
	}
	/* Numbers that were never given. */
	atomic_store(&shared_changes()->newest, UINT64_MAX);
	sim_changes_read();
	assert_false(sim_changes_end_round(false));
	sim_unlock();
	after = own_world();
	assert_string_equal(after, before);
	free(before);
	free(after);
	close_world();
}

static const struct sim_change new_mac_of_a = {
	.action = POLYCM_SIM_CHANGE_MAC, .node = 0, .address = "10.0.0.1",
};
static const struct sim_change new_mac_of_b = {
	.action = POLYCM_SIM_CHANGE_MAC, .node = 1, .address = "10.0.0.2",
};

/* A packet may be quicker than the round that brings the changes. */
static void each_is_done_once(void **state)
{
	char *world, *once;

	(void)state;
	open_world("");
	sim_lock();
	assert_false(sim_changes_end_round(false));
	sim_changes_tell(&new_mac_of_a);
	assert_true(sim_changes_end_round(false));
	sim_changes_tell(&new_mac_of_b);
	sim_changes_before(sim_changes_tag | SIM_PACKET_RC);
	once = shm_child_world();
	for (unsigned int i = 0; i < 3; i++)
		assert_false(sim_changes_end_round(false));
	/* Nor is there an end of rounds where the fabric knows less than we do. */
	atomic_store(&shared_changes()->newest, 1);
	for (unsigned int i = 0; i < 3; i++)
		assert_false(sim_changes_end_round(false));
	world = shm_child_world();
	sim_unlock();
	assert_string_equal(world, once);
	free(world);
	free(once);
	close_world();
}

/* We told it and have not done it: who answers has. */
static void what_we_told_comes_before_answers(void **state)
{
	char *before, *after, *done;

	(void)state;
	open_world("");
	sim_lock();
	before = shm_child_world();
	sim_changes_tell(&new_mac_of_b);
	sim_changes_before(SIM_PACKET_RC);	/* who sent this had not */
	after = shm_child_world();
	sim_changes_before(sim_changes_tag | SIM_PACKET_RC);
	done = shm_child_world();
	sim_unlock();
	assert_string_equal(after, before);
	assert_string_not_equal(done, before);
	free(before);
	free(after);
	free(done);
	close_world();
}

/* Killed with the lock held: nothing of it was told, and its number is the next one's. */
static void half_told_is_not_told(void **state)
{
	struct sim_changes_area *area;
	char *before, *after;

	(void)state;
	open_world("");
	before = own_world();
	sim_lock();
	area = shared_changes();
	area->kept[0].number = 1;
	area->kept[0].change = (struct sim_change){ .action = POLYCM_SIM_CRASH, .node = 1 };
	area->kept[SIM_CHANGES - 1].number = UINT64_MAX;
	area->kept[SIM_CHANGES - 1].change = area->kept[0].change;
	sim_changes_read();
	after = shm_child_world();
	assert_string_equal(after, before);
	free(after);
	assert_int_equal(sim_changes_tell(&new_mac_of_b), 1);
	sim_changes_read();
	after = shm_child_world();
	sim_unlock();
	assert_string_not_equal(after, before);
	assert_null(strstr(after, "b: until 18446744073709551615"));
	free(before);
	free(after);
	close_world();
}

/* It comes back to the fabric when it first does something there. */
static void a_forked_child_does_it_too(void **state)
{
	char *world, seen[2048] = "";
	int go[2], out[2], status;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	(void)state;
	open_world("");
	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(out), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(go[1]);
		n = read(go[0], seen, 1);
		world = own_world();
		n = write(out[1], world, strlen(world));
		_exit(n != (ssize_t)strlen(world));
	}
	close(out[1]);
	sim_lock();
	sim_changes_tell(&new_mac_of_b);
	sim_changes_read();
	sim_unlock();
	close(go[0]);
	close(go[1]);
	while ((n = read(out[0], seen + len, sizeof(seen) - 1 - len)) > 0)
		len += (size_t)n;
	close(out[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	world = own_world();
	assert_string_equal(seen, world);
	free(world);
	close_world();
}

/* ------------------------------------------------------------------------
 * Links.
 */

/* From the last node to the first, as the child does; when that link is free again. */
static uint64_t send_back(void)
{
	struct sim_port *from, *to;
	static const uint32_t word;
	struct iovec part = { .iov_base = (void *)(uintptr_t)&word, .iov_len = sizeof(word) };
	uint64_t free_at;

	sim_lock();
	from = sim_port_by_index(sim_num_devices() - 1);
	to = sim_port_by_index(0);
	assert_int_equal(sim_link_send(from, to, sim_self_slot(), SIM_PACKET_RC, NULL, 0, &part, 1,
				       sizeof(word)), 0);
	free_at = *sim_pace_find(sim_segment_area(SIM_AREA_PACES), from->device->node->number,
				 to->device->node->number);
	sim_unlock();
	return free_at;
}

/*
 * What one process sends waits for what another one has to send on the same link,
 * also where both are on the host that there is without nodes in the file.
 */
static void processes_share_the_bandwidth_of_a_link(void **state)
{
	static const char *const nodes[] = { NODES, "" };
	struct shm_child child;
	uint64_t first, second;
	char text[512];

	(void)state;
	for (size_t row = 0; row < ARRAY_SIZE(nodes); row++) {
		snprintf(text, sizeof(text), "%slinks = ( { bandwidth = \"1 kbit/s\"; } );\n",
			 nodes[row]);
		open_file(text, "");
		shm_child_start(&child, "world");
		first = send_back();
		second = send_back();
		assert_true(second > first);
		for (unsigned int i = 1; i < 4; i++) {
			shm_child_send(&child);
			assert_int_equal(send_back(), second + 2 * i * (second - first));
		}
		/* The other direction is another one. */
		assert_int_equal(*sim_pace_find(sim_segment_area(SIM_AREA_PACES), 0, 1), 0);
		assert_int_equal(shm_child_end(&child), 0);
		close_world();
	}
}

/* More directions than places: the others are counted by each process for itself. */
static void places_are_found_again_until_there_are_no_more(void **state)
{
	static struct sim_pace_area area;
	static _Atomic uint64_t *at[SIM_PACES];

	(void)state;
	for (uint32_t i = 0; i < SIM_PACES; i++) {
		at[i] = sim_pace_find(&area, i % 7, i);
		assert_non_null(at[i]);
		*at[i] += i;
	}
	for (uint32_t i = 0; i < SIM_PACES; i++) {
		assert_ptr_equal(sim_pace_find(&area, i % 7, i), at[i]);
		assert_int_equal(*at[i], i);
	}
	assert_null(sim_pace_find(&area, 0, SIM_PACES));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_processes_do_it),
		cmocka_unit_test(at_a_time),
		cmocka_unit_test(without_nodes_too),
		cmocka_unit_test(they_count_together),
		cmocka_unit_test(there_is_no_end_of_room),
		cmocka_unit_test(what_makes_no_sense_is_passed_over),
		cmocka_unit_test(each_is_done_once),
		cmocka_unit_test(what_we_told_comes_before_answers),
		cmocka_unit_test(half_told_is_not_told),
		cmocka_unit_test(a_forked_child_does_it_too),
		cmocka_unit_test(processes_share_the_bandwidth_of_a_link),
		cmocka_unit_test(places_are_found_again_until_there_are_no_more),
	};
	int r = shm_child_main(argc, argv);

	return r >= 0 ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
