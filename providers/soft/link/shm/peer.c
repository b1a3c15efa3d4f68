/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shm/peer.c - the other processes of the shared fabric, and the files of rings: the
 * writer of a ring makes the file, and the reader deletes it when it has mapped it.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/soft/link/block.h"
#include "providers/soft/shm/doorbell.h"
#include "providers/soft/shm/file_name.h"
#include "providers/soft/shm/folder.h"
#include "providers/soft/shm/segment.h"
#include "peer.h"

/* Not allocated: mail must not be lost for lack of memory. */
static struct sim_peer peers[SIM_MAX_SLOTS];
static unsigned int num;	/* from there on nobody was met, and no memory is touched */

struct sim_peer *sim_peer_known(unsigned int slot)
{
	return slot < num && peers[slot].met ? &peers[slot] : NULL;
}

static void unmap(void *ring)
{
	if (ring)
		munmap(ring, sim_ring_memory(SIM_RING_SIZE));
}

void sim_peer_close_ring(struct sim_peer *peer)
{
	if (!peer->in.ring)
		return;
	if (sim_doorbell_watched() == (unsigned int)(peer - peers))
		sim_doorbell_unwatch();
	sim_window_empty(peer->window, sim_ring_memory(SIM_RING_SIZE));
	peer->in.ring = NULL;
}

void sim_peer_forget_outgoing(struct sim_peer *peer)
{
	struct sim_waiting *waiting;

	unmap(peer->out.ring);
	peer->out.ring = NULL;
	while ((waiting = peer->first)) {
		peer->first = waiting->next;
		sim_block_put(waiting);
	}
	peer->end = &peer->first;
	peer->num_waiting = 0;
	peer->waiting_bytes = 0;
}

void sim_peer_forget(struct sim_peer *peer)
{
	sim_peer_forget_outgoing(peer);
	sim_peer_close_ring(peer);
	sim_access_unmap(&peer->access);
	*peer = (struct sim_peer){ .met = true, .end = &peer->first };
}

void sim_peer_forget_all(void)
{
	for (unsigned int slot = 0; slot < num; slot++) {
		if (!peers[slot].met)
			continue;
		sim_peer_forget(&peers[slot]);
		peers[slot].met = false;
	}
	sim_access_forget_own();
}

static bool has_anything(const struct sim_peer *peer)
{
	return peer->reading || peer->unopened || peer->first || peer->in.ring || peer->out.ring ||
	       peer->access.table;
}

int sim_peer_get(unsigned int slot, struct sim_peer **ret_peer)
{
	struct sim_slot *shared = sim_segment_peer(slot);
	struct sim_peer *peer = &peers[slot];
	uint32_t generation;

	generation = atomic_load_explicit(&shared->generation, memory_order_acquire);
	if (__builtin_expect(!peer->met, 0)) {
		*peer = (struct sim_peer){
			.met = true,
			.end = &peer->first,
			.generation = generation,
		};
		if (slot >= num)
			num = slot + 1;
	} else if (__builtin_expect(peer->generation != generation, 0)) {
		if (has_anything(peer))
			return -ESRCH;
		sim_peer_forget(peer);
		peer->generation = generation;
	}
	*ret_peer = peer;
	return 0;
}

bool sim_peer_is_stale(unsigned int slot)
{
	const struct sim_peer *peer = sim_peer_known(slot);

	return peer && has_anything(peer) &&
	       peer->generation != atomic_load_explicit(&sim_segment_peer(slot)->generation,
							memory_order_acquire);
}

bool sim_peer_is_live(unsigned int slot)
{
	return atomic_load_explicit(&sim_segment_peer(slot)->state, memory_order_acquire) ==
	       SIM_SLOT_LIVE;
}

static uint32_t own_generation(void)
{
	return atomic_load(&sim_segment_self()->generation);
}

static int map_ring(int fd, void **ret_memory)
{
	void *memory = mmap(NULL, sim_ring_memory(SIM_RING_SIZE), PROT_READ | PROT_WRITE, MAP_SHARED,
			    fd, 0);

	if (memory == MAP_FAILED)
		return -ENOMEM;
	*ret_memory = memory;
	return 0;
}

/* Allocate all of its memory now: a write without memory would kill the process. */
static int make_file(int folder, const char *text, void **ret_memory)
{
	int fd, r;

	fd = openat(folder, text, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	do
		r = -posix_fallocate(fd, 0, (off_t)sim_ring_memory(SIM_RING_SIZE));
	while (r == -EINTR);
	if (!r)
		r = map_ring(fd, ret_memory);
	if (r < 0)
		unlinkat(folder, text, 0);
	close(fd);
	return r;
}

/* Memory or descriptors are short, of the process or of the system. */
static bool passes(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -ENOSPC ||
	       error == -EINTR || error == -EAGAIN;
}

static int put_off(struct sim_peer *peer, const char *ring, int error)
{
	if (!peer->logged)
		sim_core->log(POLYCM_LOG_ERROR, NULL, "%s/%s: %s: what goes through it waits",
			      sim_segment_folder()->path, ring, strerror(-error));
	peer->logged = true;
	return -EAGAIN;
}

/* Its reader may look for it at any time, so it gets its name only when it is complete. */
int sim_peer_make_ring(struct sim_peer *peer, unsigned int slot)
{
	struct sim_ring_name name = {
		.from = sim_segment_slot(),
		.from_generation = own_generation(),
		.to = slot,
		.to_generation = peer->generation,
	};
	char text[SIM_FILE_NAME_MAX], unfinished[SIM_FILE_NAME_MAX];
	int folder = sim_segment_folder()->fd;
	void *memory = NULL;
	int r;

	sim_ring_name_format(&name, text);
	name.unfinished = true;
	sim_ring_name_format(&name, unfinished);
	r = make_file(folder, unfinished, &memory);
	if (r < 0)
		goto err_log;
	sim_pull_offer(memory);
	sim_ring_writer_init(&peer->out, memory, SIM_RING_SIZE);
	if (renameat(folder, unfinished, folder, text) < 0) {
		r = -errno;
		goto err_unmap;
	}
	peer->logged = false;
	return 0;

err_unmap:
	unlinkat(folder, unfinished, 0);
	unmap(memory);
	peer->out.ring = NULL;
err_log:
	if (passes(r))
		return put_off(peer, text, r);
	sim_core->log(POLYCM_LOG_ERROR, NULL, "%s/%s: %s", sim_segment_folder()->path, text,
		      strerror(-r));
	return -ENOMEM;
}

static int map_found(int fd, struct sim_peer *peer)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size != (off_t)sim_ring_memory(SIM_RING_SIZE))
		return -EBADMSG;
	peer->window = sim_window_map(fd, sim_ring_memory(SIM_RING_SIZE));
	if (!peer->window)
		return -ENOMEM;
	r = sim_ring_reader_init(&peer->in, peer->window->at, SIM_RING_SIZE, SIM_MAX_RECORD);
	if (r < 0)
		sim_window_empty(peer->window, sim_ring_memory(SIM_RING_SIZE));
	return r;
}

/* Delete only a ring that is mapped, or no ring: we find it again by its name. */
int sim_peer_find_ring(struct sim_peer *peer, unsigned int slot)
{
	const struct sim_ring_name name = {
		.from = slot,
		.from_generation = peer->generation,
		.to = sim_segment_slot(),
		.to_generation = own_generation(),
	};
	int folder = sim_segment_folder()->fd;
	char text[SIM_FILE_NAME_MAX];
	int fd, r;

	if (peer->in.ring)
		return 0;
	if (peer->deaf)
		return -EBADMSG;
	sim_ring_name_format(&name, text);
	fd = openat(folder, text, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? -errno : map_found(fd, peer);
	if (fd >= 0)
		close(fd);
	peer->unopened = passes(r);
	if (peer->unopened)
		return put_off(peer, text, r);
	if (r == -ENOENT)
		return r;
	unlinkat(folder, text, 0);
	if (r < 0) {
		sim_core->log(POLYCM_LOG_WARN, NULL, "%s/%s is no ring: ignored",
			      sim_segment_folder()->path, text);
		peer->deaf = true;
		return -EBADMSG;
	}
	peer->logged = false;
	sim_pull_try(&peer->pull, peer->in.ring);
	return 0;
}
