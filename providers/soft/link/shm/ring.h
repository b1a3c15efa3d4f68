/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shm/ring.h - a ring of records in memory that two processes share, a writer and a
 * reader.
 *
 * A record is its length, a tag of the writer, and the bytes, in one piece.  It begins with a
 * cache line.  The length is written last, and a zero follows the newest record: so the reader
 * reads no position of the writer, and a short record costs one cache line.
 *
 * Neither side trusts the other: an invalid ring is -EBADMSG from then on.  One thread at a
 * time on each side.
 */
#ifndef SIM_RING_H
#define SIM_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_RING_MAGIC 0x32676e6972637970u	/* "pycring2" */
#define SIM_RING_LAST_MAX 52u

struct sim_ring_header {
	uint64_t magic;
	uint32_t size;			/* of data, a power of two */
	int32_t pid;			/* of the writer, and a word in its memory (pull.c) */
	uint64_t probe_address;
	uint64_t probe_value;
	_Atomic uint32_t pullable;	/* the reader could read that word */
	_Alignas(64) _Atomic uint64_t head;	/* of the reader: all before was read */
	_Alignas(64) _Atomic uint32_t writer_waits;	/* for room; the reader then notifies it */
	_Alignas(64) struct {		/* of the writer, for when it is gone */
		_Atomic uint32_t len;	/* 0: none, or it is being written */
		_Atomic uint32_t version;
		uint32_t tag;
		uint8_t bytes[SIM_RING_LAST_MAX];
	} last;
	_Alignas(64) uint8_t data[];
};

struct sim_ring_writer {
	struct sim_ring_header *ring;
	uint32_t size;
	uint64_t tail;
	uint64_t notified;		/* the reader was notified of all before it */
	uint64_t head;			/* as last read */
};

struct sim_ring_reader {
	struct sim_ring_header *ring;
	uint32_t size;
	uint32_t max_len;		/* longest record accepted */
	uint64_t head;
	uint32_t current;		/* bytes of the record that is being read */
};

#define SIM_RING_RECORD_HEADER 8u
#define SIM_RING_ALIGN 64u	/* a cache line */

static inline size_t sim_ring_memory(uint32_t size)
{
	return sizeof(struct sim_ring_header) + size;
}

/* The writer makes the ring in zeroed memory; the reader checks that it is a ring. */
void sim_ring_writer_init(struct sim_ring_writer *writer, void *memory, uint32_t size);
int sim_ring_reader_init(struct sim_ring_reader *reader, void *memory, uint32_t size,
			 uint32_t max_len);

/* Let the writer read what the reader may not have read, up to its tail. */
void sim_ring_reread(struct sim_ring_reader *reader, const struct sim_ring_writer *writer,
		     uint32_t max_len);

/*
 * Room for a record, its bytes to be filled in before the commit.  0, -EAGAIN:
 * full, -EBADMSG.
 */
int sim_ring_reserve(struct sim_ring_writer *writer, uint32_t len, void **ret_bytes);
void sim_ring_commit(struct sim_ring_writer *writer, uint32_t len, uint32_t tag);

/* The next record, valid until sim_ring_release().  0, -EAGAIN: empty, -EBADMSG. */
int sim_ring_next(struct sim_ring_reader *reader, const void **ret_bytes, uint32_t *ret_len,
		  uint32_t *ret_tag);
void sim_ring_release(struct sim_ring_reader *reader);
/* Where the length of the next record will be; 0: there is none yet. */
const uint32_t *sim_ring_next_length(const struct sim_ring_reader *reader);
/*
 * The reader is notified of all records so far.  Others, such as notes, it reads when it is notified
 * the next time.
 */
static inline void sim_ring_set_notified(struct sim_ring_writer *writer)
{
	writer->notified = writer->tail;
}
/* Has the reader not read all that it was notified of? */
bool sim_ring_unread(const struct sim_ring_writer *writer);
/*
 * A record that is read last, when the writer is gone or stands still; of no bytes: none.  The
 * reader gets its length, or 0.
 */
void sim_ring_set_last(const struct sim_ring_writer *writer, const void *bytes, uint32_t len,
		       uint32_t tag);
uint32_t sim_ring_last(const struct sim_ring_reader *reader, uint8_t bytes[SIM_RING_LAST_MAX],
		       uint32_t *ret_tag);
/* Tell the writer how far we are. */
void sim_ring_publish(struct sim_ring_reader *reader);

#endif
