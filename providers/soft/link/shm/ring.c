/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shm/ring.c - the ring's arithmetic and memory order.
 *
 * Positions count bytes since the start and never wrap; an offset is a
 * position modulo the size.  A record that does not fit before the end leaves
 * a mark there and begins at offset 0.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "ring.h"

#define TO_START UINT32_MAX	/* in place of a length */

static uint32_t *length_at(struct sim_ring_header *ring, uint32_t size, uint64_t position)
{
	return (uint32_t *)(void *)&ring->data[position & (size - 1)];
}

static uint32_t span(uint32_t len)
{
	return (SIM_RING_RECORD_HEADER + len + SIM_RING_ALIGN - 1) & ~(SIM_RING_ALIGN - 1);
}

void sim_ring_writer_init(struct sim_ring_writer *writer, void *memory, uint32_t size)
{
	struct sim_ring_header *ring = memory;

	*writer = (struct sim_ring_writer){ .ring = ring, .size = size };
	ring->size = size;
	__atomic_store_n(&ring->magic, SIM_RING_MAGIC, __ATOMIC_RELEASE);
}

int sim_ring_reader_init(struct sim_ring_reader *reader, void *memory, uint32_t size,
			 uint32_t max_len)
{
	struct sim_ring_header *ring = memory;

	if (__atomic_load_n(&ring->magic, __ATOMIC_ACQUIRE) != SIM_RING_MAGIC || ring->size != size)
		return -EBADMSG;
	*reader = (struct sim_ring_reader){ .ring = ring, .size = size, .max_len = max_len };
	return 0;
}

void sim_ring_reread(struct sim_ring_reader *reader, const struct sim_ring_writer *writer,
		     uint32_t max_len)
{
	uint64_t head = atomic_load_explicit(&writer->ring->head, memory_order_acquire);

	/* A head that cannot be says nothing about what was read. */
	if (head > writer->tail || writer->tail - head > writer->size || head % SIM_RING_ALIGN)
		head = writer->tail;
	*reader = (struct sim_ring_reader){
		.ring = writer->ring, .size = writer->size, .max_len = max_len, .head = head,
	};
}

int sim_ring_reserve(struct sim_ring_writer *writer, uint32_t len, void **ret_bytes)
{
	uint32_t offset = (uint32_t)writer->tail & (writer->size - 1);
	uint32_t left = writer->size - offset;
	bool wrap = left < span(len);
	/* The zero after the record must not overwrite a record that is not read yet. */
	uint64_t need = (wrap ? left : 0) + (uint64_t)span(len) + SIM_RING_RECORD_HEADER;

	if (writer->tail + need - writer->head > writer->size) {
		writer->head = atomic_load_explicit(&writer->ring->head, memory_order_acquire);
		if (writer->head > writer->tail || writer->tail - writer->head > writer->size)
			return -EBADMSG;
		if (writer->tail + need - writer->head > writer->size)
			return -EAGAIN;
	}
	if (wrap) {
		__atomic_store_n(length_at(writer->ring, writer->size, 0), 0, __ATOMIC_RELAXED);
		__atomic_store_n(length_at(writer->ring, writer->size, writer->tail), TO_START,
				 __ATOMIC_RELEASE);
		writer->tail += left;
		offset = 0;
	}
	*ret_bytes = &writer->ring->data[offset + SIM_RING_RECORD_HEADER];
	return 0;
}

void sim_ring_commit(struct sim_ring_writer *writer, uint32_t len, uint32_t tag)
{
	uint32_t *length = length_at(writer->ring, writer->size, writer->tail);

	length[1] = tag;
	writer->tail += span(len);
	__atomic_store_n(length_at(writer->ring, writer->size, writer->tail), 0, __ATOMIC_RELAXED);
	__atomic_store_n(length, len, __ATOMIC_RELEASE);
}

int sim_ring_next(struct sim_ring_reader *reader, const void **ret_bytes, uint32_t *ret_len,
		  uint32_t *ret_tag)
{
	uint32_t offset = (uint32_t)reader->head & (reader->size - 1);
	uint32_t *length = length_at(reader->ring, reader->size, reader->head);
	uint32_t len = __atomic_load_n(length, __ATOMIC_ACQUIRE);

	if (len == TO_START && offset) {
		reader->head += reader->size - offset;
		offset = 0;
		length = length_at(reader->ring, reader->size, 0);
		len = __atomic_load_n(length, __ATOMIC_ACQUIRE);
	}
	if (!len)
		return -EAGAIN;
	if (len > reader->max_len || span(len) > reader->size - offset)
		return -EBADMSG;
	*ret_bytes = length + 2;
	*ret_len = len;
	*ret_tag = length[1];
	reader->current = span(len);
	return 0;
}

void sim_ring_release(struct sim_ring_reader *reader)
{
	reader->head += reader->current;
	reader->current = 0;
}

const uint32_t *sim_ring_next_length(const struct sim_ring_reader *reader)
{
	return length_at(reader->ring, reader->size, reader->head);
}

bool sim_ring_unread(const struct sim_ring_writer *writer)
{
	return writer->ring &&
	       atomic_load_explicit(&writer->ring->head, memory_order_acquire) < writer->notified;
}

void sim_ring_publish(struct sim_ring_reader *reader)
{
	atomic_store_explicit(&reader->ring->head, reader->head, memory_order_release);
}

void sim_ring_set_last(const struct sim_ring_writer *writer, const void *bytes, uint32_t len,
		       uint32_t tag)
{
	struct sim_ring_header *ring = writer->ring;

	atomic_store_explicit(&ring->last.len, 0, memory_order_relaxed);
	if (!len)
		return;
	atomic_fetch_add_explicit(&ring->last.version, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	ring->last.tag = tag;
	memcpy(ring->last.bytes, bytes, len);
	atomic_store_explicit(&ring->last.len, len, memory_order_release);
}

uint32_t sim_ring_last(const struct sim_ring_reader *reader, uint8_t bytes[SIM_RING_LAST_MAX],
		       uint32_t *ret_tag)
{
	const struct sim_ring_header *ring = reader->ring;
	uint32_t version = atomic_load_explicit(&ring->last.version, memory_order_acquire);
	uint32_t len = atomic_load_explicit(&ring->last.len, memory_order_acquire);

	if (len > SIM_RING_LAST_MAX)
		return 0;
	*ret_tag = ring->last.tag;
	memcpy(bytes, ring->last.bytes, len);
	atomic_thread_fence(memory_order_acquire);
	/* The writer lives, and has another one now. */
	if (atomic_load_explicit(&ring->last.version, memory_order_relaxed) != version ||
	    atomic_load_explicit(&ring->last.len, memory_order_relaxed) != len)
		return 0;
	return len;
}
