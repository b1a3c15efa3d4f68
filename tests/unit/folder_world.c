/* SPDX-License-Identifier: BSD-2-Clause */
/* folder_world.c - see folder_world.h. */
#include "config.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/sim/fabric_open.h"
#include "providers/soft/host/host.h"
#include "providers/soft/shm/folder.h"
#include "providers/soft/shm/segment.h"
#include "folder_world.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

static const char *parents[2];
static uint64_t patience;

int folder_start(void **state)
{
	(void)state;
	sim_fake_init();
	sim_fake_make_runtime_dir();
	memcpy(parents, sim_folder_parents, sizeof(parents));
	patience = sim_folder_patience;
	return sim_engine_start(SIM_CLOCK_REAL, 1);
}

int folder_join(void)
{
	int r;

	sim_lock();
	r = sim_fabric_open_default();
	sim_unlock();
	return r;
}

void folder_leave(void)
{
	if (!sim_lock_within(SIM_MS(500)))
		print_message("a test that failed has the lock\n");
	sim_fabric_close();
	sim_unlock();
}

int folder_stop(void **state)
{
	(void)state;
	folder_leave();
	memcpy(sim_folder_parents, parents, sizeof(parents));
	sim_folder_patience = patience;
	sim_engine_stop();
	sim_fake_remove_runtime_dir();
	return 0;
}

void folder_make(const char *path, mode_t mode)
{
	assert_int_equal(mkdir(sim_fake_path("%s", path), mode), 0);
	assert_int_equal(chmod(sim_fake_path("%s", path), mode), 0);
}

void folder_write(const char *path, off_t at, const void *bytes, size_t len)
{
	int fd = open(sim_fake_path("%s", path), O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, len, at), len);
	close(fd);
}

void folder_refused(int error, const char *why)
{
	unsigned int lines = sim_fake_log_count(POLYCM_LOG_ERROR);

	assert_int_equal(folder_join(), error);
	assert_int_equal(sim_fake_log_count(POLYCM_LOG_ERROR), lines + 1);
	assert_non_null(strstr(sim_fake_log(POLYCM_LOG_ERROR), why));
	assert_false(sim_fabric_is_shared());
	assert_null(sim_first_node());
}
