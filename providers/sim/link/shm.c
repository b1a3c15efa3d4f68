/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shm.c - packets between the processes of a shared fabric.
 *
 * Each process has a ring to each other one that it sends to, in a file that
 * it makes and that the receiver deletes as soon as it has mapped it.  What a
 * ring cannot take now waits in a list.  A process that is gone, or another
 * one in its slot, is noticed by the slot's state and generation whenever we
 * have to do with it.  Engine lock held.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "folder.h"
#include "link_internal.h"
#include "pull.h"
#include "ring.h"
#include "segment.h"

#define RING_SIZE (1u << 18)
#define RECORDS_PER_TURN 64u	/* of one ring before the next one's turn */
#define CHECK_EVERY 256u	/* packets that wait before we ask whether the receiver lives */

/* In front of each packet. */
struct wire {
	uint32_t from, to;		/* ports */
};

#define MAX_RECORD ((uint32_t)(sizeof(struct wire) + SIM_LINK_MAX_PACKET))

struct waiting {
	struct waiting *next;
	uint32_t len;
	uint32_t type;
	uint8_t bytes[];
};

struct peer {
	uint32_t generation;		/* of the process that the rest is about */
	bool deaf;			/* its ring to us made no sense: not read any more */
	bool reading;			/* its ring to us: handlers run, keep it */
	struct sim_ring_writer out;	/* out.ring NULL: none yet */
	struct sim_ring_reader in;
	struct sim_pull pull;		/* reading its memory */
	struct waiting *first, **end;
	uint32_t num_waiting;
};

static struct peer *peers[SIM_MAX_SLOTS];
static struct sim_slot *sleeps_on;	/* the NIC thread's; NULL: it need not */

/* ------------------------------------------------------------------------
 * Peers and their rings.
 */

static void unmap(void *ring)
{
	if (ring)
		munmap(ring, sim_ring_memory(RING_SIZE));
}

/* There is nobody to send to. */
static void forget_outgoing(struct peer *peer)
{
	struct waiting *waiting;

	unmap(peer->out.ring);
	peer->out.ring = NULL;
	while ((waiting = peer->first)) {
		peer->first = waiting->next;
		free(waiting);
	}
	peer->end = &peer->first;
	peer->num_waiting = 0;
}

/* Forget a process. */
static void forget(struct peer *peer)
{
	forget_outgoing(peer);
	unmap(peer->in.ring);
	*peer = (struct peer){ .end = &peer->first };
}

static void forget_all(void)
{
	for (unsigned int slot = 0; slot < SIM_MAX_SLOTS; slot++) {
		if (!peers[slot])
			continue;
		forget(peers[slot]);
		free(peers[slot]);
		peers[slot] = NULL;
	}
}

/* What we know of the process in a slot.  -ESRCH: it has changed, but we are in its packets. */
static int get_peer(unsigned int slot, struct peer **ret_peer)
{
	struct sim_slot *shared = sim_segment_peer(slot);
	struct peer *peer = peers[slot];
	uint32_t generation;

	generation = atomic_load_explicit(&shared->generation, memory_order_acquire);
	if (__builtin_expect(!peer, 0)) {
		peer = malloc(sizeof(*peer));
		if (!peer)
			return -ENOMEM;
		*peer = (struct peer){ .end = &peer->first, .generation = generation };
		peers[slot] = peer;
	} else if (__builtin_expect(peer->generation != generation, 0)) {
		if (peer->reading)
			return -ESRCH;
		forget(peer);
		peer->generation = generation;
	}
	*ret_peer = peer;
	return 0;
}

static bool is_live(unsigned int slot)
{
	return atomic_load_explicit(&sim_segment_peer(slot)->state, memory_order_acquire) ==
	       SIM_SLOT_LIVE;
}

static struct sim_ring_name ring_name(unsigned int from, unsigned int to)
{
	return (struct sim_ring_name){
		.from = from,
		.from_generation = atomic_load(&sim_segment_peer(from)->generation),
		.to = to,
		.to_generation = atomic_load(&sim_segment_peer(to)->generation),
	};
}

static int map_ring(int fd, void **ret_memory)
{
	void *memory = mmap(NULL, sim_ring_memory(RING_SIZE), PROT_READ | PROT_WRITE, MAP_SHARED,
			    fd, 0);

	if (memory == MAP_FAILED)
		return -ENOMEM;
	*ret_memory = memory;
	return 0;
}

/* Make our ring to a process.  All of its memory is taken now: later it could only crash us. */
static int make_ring(struct peer *peer, unsigned int slot)
{
	struct sim_ring_name name = ring_name(sim_segment_slot(), slot);
	int folder = sim_segment_folder()->fd;
	char text[SIM_RING_NAME_MAX];
	void *memory = NULL;
	int fd, r;

	sim_ring_name_format(&name, text);
	fd = openat(folder, text, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		r = -errno;
		goto err_log;
	}
	r = -posix_fallocate(fd, 0, (off_t)sim_ring_memory(RING_SIZE));
	if (!r)
		r = map_ring(fd, &memory);
	close(fd);
	if (r < 0) {
		unlinkat(folder, text, 0);
		goto err_log;
	}
	sim_pull_offer(memory);
	sim_ring_writer_init(&peer->out, memory, RING_SIZE);
	return 0;

err_log:
	sim_core->log(POLYCM_LOG_ERROR, NULL, "%s/%s: %s", sim_segment_folder()->path, text,
		      strerror(-r));
	return -ENOMEM;
}

/* Map a process's ring to us, if it has made one. */
static bool find_ring(struct peer *peer, unsigned int slot)
{
	struct sim_ring_name name = ring_name(slot, sim_segment_slot());
	int folder = sim_segment_folder()->fd;
	char text[SIM_RING_NAME_MAX];
	void *memory = NULL;
	struct stat st;
	int fd;

	if (peer->in.ring)
		return true;
	if (peer->deaf)
		return false;
	sim_ring_name_format(&name, text);
	fd = openat(folder, text, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) < 0 || st.st_size != (off_t)sim_ring_memory(RING_SIZE) ||
	    map_ring(fd, &memory) < 0 ||
	    sim_ring_reader_init(&peer->in, memory, RING_SIZE, MAX_RECORD) < 0) {
		sim_core->log(POLYCM_LOG_WARN, NULL, "%s/%s is no ring: ignored",
			      sim_segment_folder()->path, text);
		peer->deaf = true;
		unmap(memory);
	}
	close(fd);
	unlinkat(folder, text, 0);
	if (peer->in.ring)
		sim_pull_try(&peer->pull, memory);
	return peer->in.ring != NULL;
}

/* ------------------------------------------------------------------------
 * Sending.
 */

static int lose(unsigned int slot, const char *why)
{
	sim_core->log(POLYCM_LOG_DEBUG, NULL, "packet to process %d lost: %s",
		      (int)sim_segment_peer(slot)->pid, why);
	return 0;
}

/* Send on what waits, as far as there is room. */
static void flush(struct peer *peer, unsigned int slot)
{
	struct waiting *waiting;
	bool sent = false;
	void *bytes;

	while ((waiting = peer->first) &&
	       !sim_ring_reserve(&peer->out, waiting->len, &bytes)) {
		memcpy(bytes, waiting->bytes, waiting->len);
		sim_ring_commit(&peer->out, waiting->len, waiting->type);
		peer->first = waiting->next;
		if (!peer->first)
			peer->end = &peer->first;
		free(waiting);
		peer->num_waiting--;
		sent = true;
	}
	if (sent)
		sim_segment_notify(slot, sim_segment_slot());
}

/* Ask the receiver to tell us when it has read something, unless it has just now. */
static void wait_for_room(struct peer *peer, unsigned int slot)
{
	atomic_store(&peer->out.ring->writer_waits, 1);
	atomic_thread_fence(memory_order_seq_cst);
	flush(peer, slot);
	if (peer->first)
		sim_segment_notify(slot, sim_segment_slot());
	else
		atomic_store(&peer->out.ring->writer_waits, 0);
}

static void check_alive(unsigned int slot)
{
	sim_segment_lock();
	sim_segment_reclaim(slot);
	sim_segment_unlock();
}

static void fill(const struct sim_frame *frame, uint8_t *bytes)
{
	const struct wire wire = {
		.from = frame->from->fabric_index,
		.to = frame->to->fabric_index,
	};

	memcpy(bytes, &wire, sizeof(wire));
	sim_frame_copy(frame, bytes + sizeof(wire));
}

static int append(struct peer *peer, unsigned int slot, const struct sim_frame *frame, uint32_t len)
{
	struct waiting *waiting = malloc(sizeof(*waiting) + len);

	if (!waiting)
		return -ENOMEM;
	waiting->next = NULL;
	waiting->len = len;
	waiting->type = frame->type;
	fill(frame, waiting->bytes);
	*peer->end = waiting;
	peer->end = &waiting->next;
	if (peer->num_waiting++ % CHECK_EVERY == 0)
		check_alive(slot);
	if (!is_live(slot)) {
		forget_outgoing(peer);
		return lose(slot, "it is gone");
	}
	wait_for_room(peer, slot);
	return 0;
}

int sim_shm_send(const struct sim_frame *frame, unsigned int slot)
{
	uint32_t len = (uint32_t)(sizeof(struct wire) + sim_frame_len(frame));
	struct peer *peer;
	void *bytes;
	int r;

	if (!sim_segment_joined() || slot >= SIM_MAX_SLOTS)
		return 0;
	r = get_peer(slot, &peer);
	if (r == -ESRCH)
		return lose(slot, "it is gone");
	if (r < 0)
		return r;
	if (!is_live(slot)) {
		forget_outgoing(peer);
		return lose(slot, "it is gone");
	}
	if (!peer->out.ring) {
		r = make_ring(peer, slot);
		if (r < 0)
			return r;
	}
	if (!peer->first) {
		r = sim_ring_reserve(&peer->out, len, &bytes);
		if (!r) {
			fill(frame, bytes);
			sim_ring_commit(&peer->out, len, frame->type);
			sim_segment_notify(slot, sim_segment_slot());
			return 0;
		}
		if (r == -EBADMSG)
			return lose(slot, "it broke the ring");
	}
	return append(peer, slot, frame, len);
}

/* ------------------------------------------------------------------------
 * Receiving.
 */

static void deliver(unsigned int slot, const uint8_t *bytes, uint32_t len, uint32_t type)
{
	struct sim_packet packet;
	struct wire wire;

	if (len < sizeof(wire) || type >= SIM_PACKET_TYPES)
		goto drop;
	memcpy(&wire, bytes, sizeof(wire));
	packet = (struct sim_packet){
		.type = type,
		.from = sim_port_by_index(wire.from),
		.to = sim_port_by_index(wire.to),
		.from_slot = slot,
		.data = bytes + sizeof(wire),
		.len = len - sizeof(wire),
	};
	if (!packet.from || !packet.to)
		goto drop;
	sim_link_deliver(&packet);
	return;
drop:
	sim_core->log(POLYCM_LOG_DEBUG, NULL, "packet of no known kind from process %d dropped",
		      (int)sim_segment_peer(slot)->pid);
}

/* Read what a ring has; true: there is more. */
static bool read_ring(struct peer *peer, unsigned int slot)
{
	struct sim_ring_reader *in = &peer->in;
	const void *bytes;
	uint32_t len, type;
	int r = 0;

	peer->reading = true;
	for (unsigned int i = 0; i < RECORDS_PER_TURN; i++) {
		r = sim_ring_next(in, &bytes, &len, &type);
		if (r < 0)
			break;
		deliver(slot, bytes, len, type);
		sim_ring_release(in);
	}
	peer->reading = false;
	if (r == -EBADMSG) {
		sim_core->log(POLYCM_LOG_WARN, NULL,
			      "process %d wrote nonsense into its ring: not listening to it any more",
			      (int)sim_segment_peer(slot)->pid);
		unmap(in->ring);
		in->ring = NULL;
		peer->deaf = true;
		return false;
	}
	if (sim_ring_should_publish(in))
		sim_ring_publish(in);
	if (atomic_load(&in->ring->writer_waits) && atomic_exchange(&in->ring->writer_waits, 0)) {
		sim_ring_publish(in);
		sim_segment_notify(slot, sim_segment_slot());
	}
	return !r;
}

/* Look at all that we have to do with a process. */
static bool attend(unsigned int slot)
{
	struct peer *peer;
	bool more = false;

	if (slot == sim_segment_slot() || get_peer(slot, &peer) < 0)
		return false;
	if (find_ring(peer, slot))
		more = read_ring(peer, slot);
	if (peer->first)
		wait_for_room(peer, slot);
	if (!more && !is_live(slot))
		forget(peer);
	return more;
}

bool sim_shm_pending(void)
{
	return atomic_load_explicit(&sim_segment_self()->summary, memory_order_acquire);
}

void sim_shm_receive(void)
{
	struct sim_slot *self = sim_segment_self();
	uint64_t words, bits;

	if (!sim_shm_pending() || !sim_segment_joined())
		return;
	for (words = atomic_exchange(&self->summary, 0); words; words &= words - 1) {
		unsigned int word = (unsigned int)__builtin_ctzll(words);

		if (word >= SIM_MAX_SLOTS / 64)
			break;
		for (bits = atomic_exchange(&self->inbox[word], 0); bits; bits &= bits - 1) {
			unsigned int slot = word * 64 + (unsigned int)__builtin_ctzll(bits);

			if (attend(slot))
				sim_segment_notify(sim_segment_slot(), slot);
		}
	}
}

/* ------------------------------------------------------------------------
 * Sleeping, and not quite sleeping.
 */

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

uint32_t sim_shm_prepare_wait(bool quiet)
{
	struct sim_slot *self = sim_segment_self();

	sleeps_on = self;
	if (!quiet) {
		atomic_store(&self->sleeping, 1);
		/* What came in before the senders knew that we sleep. */
		if (atomic_load(&self->summary))
			sleeps_on = NULL;
	}
	return atomic_load(&self->doorbell);
}

/*
 * Touches nothing but the futex, which may have been unmapped meanwhile: then
 * there are zeroes, and a ticket never is.
 */
void sim_shm_wait(uint32_t ticket, uint64_t deadline)
{
	const struct timespec until = {
		.tv_sec = (time_t)(deadline / 1000000000u),
		.tv_nsec = (long)(deadline % 1000000000u),
	};

	if (sleeps_on)
		syscall(SYS_futex, &sleeps_on->doorbell, FUTEX_WAIT_BITSET, ticket,
			deadline == SIM_NEVER ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
}

void sim_shm_awake(void)
{
	struct sim_slot *self = sim_segment_self();

	if (atomic_load_explicit(&self->sleeping, memory_order_relaxed))
		atomic_store(&self->sleeping, 0);
}

bool sim_shm_watch(uint64_t until)
{
	struct sim_slot *self = sim_segment_self();
	uint32_t sleeping;

	if (!sim_segment_is_shared(self))
		return false;
	/* The NIC thread may sleep on: we are awake in its place. */
	sleeping = atomic_exchange(&self->sleeping, 0);
	while (!atomic_load_explicit(&self->summary, memory_order_relaxed) && sim_now() < until)
		pause_cpu();
	if (sleeping)
		atomic_store(&self->sleeping, 1);
	return atomic_load(&self->summary);
}

void sim_shm_ring_self(void)
{
	sim_segment_ring(sim_segment_self());
}

/* ------------------------------------------------------------------------
 * Joining and leaving; reading other processes' memory.
 */

/* Whoever leaves last deletes the files; a lock that is held for long is not waited for. */
static void leave_at_exit(void)
{
	if (!sim_lock_within(SIM_MS(200)))
		return;
	sim_shm_leave();
	sim_unlock();
}

int sim_shm_join(const char *fabric)
{
	static bool registered;

	if (!registered && atexit(leave_at_exit))
		return -ENOMEM;
	registered = true;
	return sim_segment_join(fabric);
}

void sim_shm_leave(void)
{
	forget_all();
	sim_segment_leave();
}

void sim_shm_after_fork(void)
{
	forget_all();
	sim_segment_abandon();
}

bool sim_link_pullable(unsigned int slot)
{
	struct peer *peer = slot < SIM_MAX_SLOTS ? peers[slot] : NULL;

	return peer && peer->out.ring && atomic_load(&peer->out.ring->pullable);
}

int sim_link_pull(unsigned int slot, const struct iovec *remote, unsigned int remote_parts,
		  const struct iovec *local, unsigned int local_parts, size_t len)
{
	struct peer *peer = slot < SIM_MAX_SLOTS ? peers[slot] : NULL;

	if (!peer)
		return -ESRCH;
	return sim_pull(&peer->pull, remote, remote_parts, local, local_parts, len);
}
