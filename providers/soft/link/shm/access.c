/* SPDX-License-Identifier: BSD-2-Clause */
/* link/shm/access.c - see access.h: the files of the tables, and the way to the memory. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "providers/soft/engine/engine.h"
#include "providers/soft/shm/file_name.h"
#include "providers/soft/shm/folder.h"
#include "providers/soft/shm/visit.h"
#include "pages.h"
#include "peer.h"

#define MAGIC 0x3173656363616370u	/* "pcacces1" */

static struct sim_access_table *own;
static bool impossible;
static bool asked, enabled, maps;	/* the setting */

/* ------------------------------------------------------------------------
 * The owner.
 */

static void ask(void)
{
	const char *setting = sim_core->setting("POLYCM_SIM_DIRECT");

	enabled = !setting || strcmp(setting, "off") != 0;
	maps = enabled && (!setting || strcmp(setting, "calls") != 0);
	asked = true;
}

static bool is_enabled(void)
{
	if (!asked)
		ask();
	return enabled;
}

bool sim_access_maps(void)
{
	if (!asked)
		ask();
	return maps;
}

/* All of its memory is allocated now: a write without memory would kill the process. */
static int make(int folder, const char *text, struct sim_access_table **ret_table)
{
	int fd = openat(folder, text, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct sim_access_table *table;
	int r = 0;

	if (fd < 0)
		return -errno;
	do
		r = ftruncate(fd, sizeof(*table)) || fallocate(fd, 0, 0, sizeof(*table)) ? -errno : 0;
	while (r == -EINTR);
	if (r < 0 && r != -EOPNOTSUPP)
		goto out_close;
	r = 0;
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (table == MAP_FAILED) {
		r = -errno;
		goto out_close;
	}
	table->magic = MAGIC;
	*ret_table = table;

out_close:
	close(fd);
	return r;
}

static int make_own(void)
{
	uint32_t generation = atomic_load(&sim_segment_self()->generation);
	char text[SIM_FILE_NAME_MAX], unfinished[SIM_FILE_NAME_MAX];
	int folder = sim_segment_folder()->fd;
	struct sim_access_table *table = NULL;
	int r;

	sim_access_name_format(sim_segment_slot(), generation, false, text);
	sim_access_name_format(sim_segment_slot(), generation, true, unfinished);
	r = make(folder, unfinished, &table);
	if (r < 0)
		goto err_unlink;
	if (renameat(folder, unfinished, folder, text) < 0) {
		r = -errno;
		goto err_unmap;
	}
	own = table;
	return 0;

err_unmap:
	munmap(table, sizeof(*table));
err_unlink:
	unlinkat(folder, unfinished, 0);
	return r;
}

struct sim_access_table *sim_access_made(void)
{
	return own;
}

struct sim_access_table *sim_access_own(void)
{
	int r;

	if (own || impossible || !sim_segment_joined())
		return own;
	r = is_enabled() ? make_own() : -EPERM;
	/* Memory or descriptors may be short only now. */
	impossible = r < 0 && r != -ENOMEM && r != -EMFILE && r != -ENFILE;
	if (r < 0)
		sim_core->log(POLYCM_LOG_DEBUG, NULL, "no direct access to the memory of this "
			      "process: %s", r == -EPERM ? "it is switched off" : strerror(-r));
	return own;
}

void sim_access_forget_own(void)
{
	sim_pages_forked();
	if (own)
		munmap(own, sizeof(*own));
	own = NULL;
	impossible = asked = false;
}

/* ------------------------------------------------------------------------
 * The initiator.
 */

void sim_access_unmap(struct sim_access_peer *peer)
{
	if (peer->table)
		munmap(peer->table, sizeof(*peer->table));
	if (peer->pages)
		munmap(peer->pages, SIM_PAGES_FILE);
	*peer = (struct sim_access_peer){ 0 };
}

static int map(int fd, struct sim_access_peer *peer)
{
	struct sim_access_table *table;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size != (off_t)sizeof(*table))
		return -EBADMSG;
	table = mmap(NULL, sizeof(*table), PROT_READ, MAP_SHARED, fd, 0);
	if (table == MAP_FAILED)
		return -errno;
	if (table->magic != MAGIC) {
		munmap(table, sizeof(*table));
		return -EBADMSG;
	}
	peer->table = table;
	return 0;
}

/* Once: what cannot be mapped now is not asked for with each request. */
static void try_to_map(struct sim_peer *peer, unsigned int slot)
{
	char text[SIM_FILE_NAME_MAX];
	int fd, r;

	peer->access.tried = true;
	if (!is_enabled())
		return;
	sim_access_name_format(slot, peer->generation, false, text);
	fd = openat(sim_segment_folder()->fd, text, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? -errno : map(fd, &peer->access);
	if (fd >= 0)
		close(fd);
	if (r < 0)
		sim_core->log(POLYCM_LOG_DEBUG, NULL, "%s/%s: %s: its memory is reached by packets",
			      sim_segment_folder()->path, text, strerror(-r));
}

/*
 * Its slot lives as long as a child that it has forked, and a while after its death; it may also
 * execute another program.  So it is asked at each tick of the clock.
 */
static bool lives(struct sim_peer *peer)
{
	uint64_t tick = sim_time->real_ns(CLOCK_MONOTONIC_COARSE);

	if (tick == peer->access.lived_at)
		return true;
	if (sim_pull(&peer->pull, NULL, 0, NULL, 0, 0) < 0)
		return false;
	peer->access.lived_at = tick;
	return true;
}

const struct sim_access_table *sim_access_enter(unsigned int slot)
{
	struct sim_peer *peer = sim_peer_known(slot);

	if (!peer || !peer->pull.allowed)
		return NULL;
	if (!peer->access.tried)
		try_to_map(peer, slot);
	if (!peer->access.table || !lives(peer) || !sim_visit_enter(slot, peer->generation))
		return NULL;
	return peer->access.table;
}

bool sim_access_read_key(const struct sim_access_table *table, uint32_t index, uint32_t key,
			 struct sim_access_key *ret_key)
{
	const volatile struct sim_access_key *entry = &table->keys[index];

	/* The rest counts only once the key does; and its owner may break its promise and change it. */
	if (atomic_load(&table->keys[index].key) != key)
		return false;
	ret_key->access = entry->access;
	ret_key->domain = entry->domain;
	ret_key->iova = entry->iova;
	ret_key->length = entry->length;
	ret_key->memory = entry->memory;
	ret_key->shared_from = entry->shared_from;
	ret_key->shared_length = entry->shared_length;
	ret_key->shared_at = entry->shared_at;
	return true;
}

static int map_pages(int fd, struct sim_access_peer *peer)
{
	struct sim_file_id id;
	struct stat st;
	void *pages;
	int seals;

	if (fstat(fd, &st) < 0)
		return -errno;
	id = sim_file_id(&st);
	if (!sim_file_same(&id, &peer->table->pages) || st.st_size != (off_t)SIM_PAGES_FILE)
		return -ESTALE;
	/* Else its owner could take away what is mapped, which would end this process. */
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return -EPERM;
	pages = mmap(NULL, SIM_PAGES_FILE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (pages == MAP_FAILED)
		return -errno;
	(void)madvise(pages, SIM_PAGES_FILE, MADV_DONTDUMP);
	peer->pages = pages;
	return 0;
}

static void try_to_map_pages(struct sim_peer *peer)
{
	char path[64];
	int fd, r;

	peer->access.tried_pages = true;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)peer->pull.pid,
		 (int)peer->access.table->pages_fd);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	r = fd < 0 ? -errno : map_pages(fd, &peer->access);
	if (fd >= 0)
		close(fd);
	if (r < 0)
		sim_core->log(POLYCM_LOG_DEBUG, NULL, "memory of process %d is not mapped: %s",
			      (int)peer->pull.pid, strerror(-r));
}

void *sim_access_mapped(unsigned int slot, const struct sim_access_key *entry, uint64_t remote,
			size_t len)
{
	struct sim_peer *peer = sim_peer_known(slot);
	uint64_t offset = remote - entry->shared_from;

	if (remote < entry->shared_from || len > entry->shared_length ||
	    offset > entry->shared_length - len || entry->shared_length > SIM_PAGES_FILE ||
	    entry->shared_at > SIM_PAGES_FILE - entry->shared_length)
		return NULL;
	if (!peer->access.tried_pages)
		try_to_map_pages(peer);
	return peer->access.pages ? peer->access.pages + entry->shared_at + offset : NULL;
}

int sim_access_write(unsigned int slot, uint64_t remote, const struct iovec *local,
		     unsigned int parts, size_t len)
{
	const struct sim_pull *pull = &sim_peer_known(slot)->pull;
	int r = sim_pull(pull, NULL, 0, NULL, 0, 0);

	return r < 0 ? r : sim_push(pull, remote, local, parts, len);
}

int sim_access_read(unsigned int slot, uint64_t remote, const struct iovec *local,
		    unsigned int parts, size_t len)
{
	const struct iovec from = { .iov_base = (void *)(uintptr_t)remote, .iov_len = len };

	return sim_pull(&sim_peer_known(slot)->pull, &from, 1, local, parts, len);
}
