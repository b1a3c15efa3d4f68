/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shm/pull.c - process_vm_readv() and process_vm_writev() between processes of the fabric.
 *
 * A process id may mean another process in another container, or after the first one died.
 * So each process has a random word in its memory, and every read also fetches that.
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "providers/soft/engine/engine.h"
#include "peer.h"
#include "pull.h"
#include "shm.h"

#define MAX_PARTS 64u	/* of one system call, probe included */
#define END sizeof(uint64_t)

static uint64_t probe;
static int32_t probe_owner;	/* a child of fork() needs another word */

static bool enabled(void)
{
	const char *setting = sim_core->setting("POLYCM_SIM_PULL");

	return !setting || strcmp(setting, "off") != 0;
}

void sim_pull_offer(struct sim_ring_header *ring)
{
	if (probe_owner != (int32_t)getpid()) {
		if (getrandom(&probe, sizeof(probe), GRND_NONBLOCK) != sizeof(probe))
			probe = (uint64_t)getpid() * 0x9e3779b97f4a7c15u;
		probe_owner = (int32_t)getpid();
	}
	ring->pid = probe_owner;
	ring->probe_address = (uint64_t)(uintptr_t)&probe;
	ring->probe_value = probe;
}

void sim_pull_try(struct sim_pull *pull, struct sim_ring_header *ring)
{
	*pull = (struct sim_pull){
		.pid = ring->pid,
		.probe_address = ring->probe_address,
		.probe_value = ring->probe_value,
	};
	if (!enabled())
		return;
	pull->allowed = true;
	pull->allowed = sim_pull(pull, NULL, 0, NULL, 0, 0) == 0;
	if (pull->allowed)
		atomic_store(&ring->pullable, 1);
	else
		sim_core->log(POLYCM_LOG_DEBUG, NULL, "no reading from the memory of process %d",
			      (int)pull->pid);
}

/* What is left of a list. */
struct cursor {
	const struct iovec *parts;
	unsigned int left;
	size_t offset;			/* in the first */
};

/* Take the next parts off the list, up to len bytes in all; returns their number. */
static unsigned int take(struct cursor *cursor, size_t len, struct iovec *ret_parts,
			 unsigned int max, size_t *ret_len)
{
	unsigned int n = 0;
	size_t part;

	*ret_len = 0;
	while (len && cursor->left && n < max) {
		part = cursor->parts->iov_len - cursor->offset;
		if (part > len)
			part = len;
		if (part)
			ret_parts[n++] = (struct iovec){
				.iov_base = (char *)cursor->parts->iov_base + cursor->offset,
				.iov_len = part,
			};
		*ret_len += part;
		len -= part;
		cursor->offset += part;
		if (cursor->offset == cursor->parts->iov_len) {
			cursor->offset = 0;
			cursor->parts++;
			cursor->left--;
		}
	}
	return n;
}

/* One system call: the probe first, then as much as its limits allow. */
static int pull_some(const struct sim_pull *pull, struct cursor *remote, struct cursor *local,
		     size_t len, size_t *ret_done)
{
	struct cursor from_at = *remote, to_at = *local;
	struct iovec from[MAX_PARTS], to[MAX_PARTS];
	size_t from_len, to_len;
	unsigned int from_parts, to_parts;
	uint64_t found = 0;
	ssize_t got;

	from_parts = take(&from_at, len, from + 1, MAX_PARTS - 1, &from_len);
	to_parts = take(&to_at, from_len, to + 1, MAX_PARTS - 1, &to_len);
	if (len && !to_len)
		return -EINVAL;		/* a list is shorter than len */
	if (to_len < from_len) {
		from_at = *remote;
		from_parts = take(&from_at, to_len, from + 1, MAX_PARTS - 1, &from_len);
	}
	from[0] = (struct iovec){
		.iov_base = (void *)(uintptr_t)pull->probe_address,
		.iov_len = sizeof(found),
	};
	to[0] = (struct iovec){ .iov_base = &found, .iov_len = sizeof(found) };

	got = process_vm_readv(pull->pid, to, to_parts + 1, from, from_parts + 1, 0);
	if (got < 0)
		return -errno;
	if ((size_t)got < sizeof(found) || found != pull->probe_value)
		return -ESRCH;
	*ret_done = (size_t)got - sizeof(found);
	/* Fewer bytes than asked for may have come. */
	(void)take(remote, *ret_done, from + 1, MAX_PARTS - 1, &from_len);
	(void)take(local, *ret_done, to + 1, MAX_PARTS - 1, &to_len);
	return len && !*ret_done ? -EFAULT : 0;
}

int sim_pull(const struct sim_pull *pull, const struct iovec *remote, unsigned int remote_parts,
	     const struct iovec *local, unsigned int local_parts, size_t len)
{
	struct cursor from = { .parts = remote, .left = remote_parts };
	struct cursor to = { .parts = local, .left = local_parts };
	size_t done;
	int r;

	if (!pull->allowed)
		return -EPERM;
	do {
		r = pull_some(pull, &from, &to, len, &done);
		if (r < 0)
			return r;
		len -= done;
	} while (len);
	return 0;
}

int sim_push(const struct sim_pull *pull, uint64_t remote, const struct iovec *local,
	     unsigned int local_parts, size_t len)
{
	struct cursor from = { .parts = local, .left = local_parts };
	struct iovec parts[MAX_PARTS], to;
	size_t some;
	ssize_t done;

	/*
	 * Who polls the last byte counts on all before it.  The processor may store what is copied
	 * at a time in any order, so the end is a part of its own.
	 */
	while (len) {
		struct cursor at = from;
		unsigned int num = take(&at, len > END ? len - END : len, parts, MAX_PARTS - 1, &some);
		size_t end = 0;

		if (!some)
			return -EINVAL;		/* the list is shorter than len */
		if (some == len - END)
			num += take(&at, END, parts + num, MAX_PARTS - num, &end);
		some += end;
		to = (struct iovec){ .iov_base = (void *)(uintptr_t)remote, .iov_len = some };
		done = process_vm_writev(pull->pid, parts, num, &to, 1, 0);
		if (done <= 0)
			return done < 0 ? -errno : -EFAULT;
		(void)take(&from, (size_t)done, parts, MAX_PARTS, &some);
		remote += (size_t)done;
		len -= (size_t)done;
	}
	return 0;
}

bool sim_link_pullable(unsigned int slot)
{
	struct sim_peer *peer = sim_peer_known(slot);

	return peer && peer->out.ring && atomic_load(&peer->out.ring->pullable);
}

int sim_link_pull(unsigned int slot, const struct iovec *remote, unsigned int remote_parts,
		  const struct iovec *local, unsigned int local_parts, size_t len)
{
	struct sim_peer *peer = sim_peer_known(slot);

	if (!peer)
		return -ESRCH;
	return sim_pull(&peer->pull, remote, remote_parts, local, local_parts, len);
}
