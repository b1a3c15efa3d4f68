/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring between two processes: order and contents round the end, full and
 * empty, and what a peer that breaks the rules can do, which is nothing.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "providers/soft/link/shm/ring.h"
#include "tests/cmocka_all.h"

#define SIZE 1024u
#define MAX_LEN 500u

struct fixture {
	struct sim_ring_header *memory;
	struct sim_ring_writer writer;
	struct sim_ring_reader reader;
};

static void make_ring(struct fixture *f)
{
	memset(f->memory, 0, sim_ring_memory(SIZE));
	sim_ring_writer_init(&f->writer, f->memory, SIZE);
	assert_int_equal(sim_ring_reader_init(&f->reader, f->memory, SIZE, MAX_LEN), 0);
}

static int setup(void **state)
{
	static struct fixture f;

	f.memory = aligned_alloc(64, sim_ring_memory(SIZE));
	assert_non_null(f.memory);
	make_ring(&f);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	free(f->memory);
	return 0;
}

static int put(struct fixture *f, uint32_t len, uint32_t tag)
{
	void *bytes;
	int r = sim_ring_reserve(&f->writer, len, &bytes);

	if (r < 0)
		return r;
	assert_int_equal((uintptr_t)bytes % 8, 0);
	memset(bytes, (int)(tag & 0xff), len);
	sim_ring_commit(&f->writer, len, tag);
	return 0;
}

static void expect(struct fixture *f, uint32_t len, uint32_t tag)
{
	const uint8_t *bytes;
	const void *start;
	uint32_t got_len, got_tag;

	assert_int_equal(sim_ring_next(&f->reader, &start, &got_len, &got_tag), 0);
	assert_int_equal(got_len, len);
	assert_int_equal(got_tag, tag);
	bytes = start;
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(bytes[i], tag & 0xff);
	sim_ring_release(&f->reader);
}

static int next(struct fixture *f)
{
	const void *bytes;
	uint32_t len, tag;

	return sim_ring_next(&f->reader, &bytes, &len, &tag);
}

static void records_come_out_as_they_went_in(void **state)
{
	static const uint32_t lengths[] = { 1, 7, 8, 9, 63, 64, 65, 255, MAX_LEN };
	struct fixture *f = *state;

	assert_int_equal(next(f), -EAGAIN);
	for (uint32_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		assert_int_equal(put(f, lengths[i], i), 0);
		expect(f, lengths[i], i);
		assert_int_equal(next(f), -EAGAIN);
		sim_ring_publish(&f->reader);
	}
}

/* Every length at every place, through many rounds. */
static void records_survive_the_end_of_the_ring(void **state)
{
	struct fixture *f = *state;
	uint32_t written = 0, read = 0;

	for (uint32_t step = 0; step < 20000; step++) {
		uint32_t len = step * 7919 % MAX_LEN + 1;

		while (put(f, len, written ^ len << 16) == -EAGAIN) {
			uint32_t oldest = read * 7919 % MAX_LEN + 1;

			assert_int_not_equal(read, written);
			expect(f, oldest, read ^ oldest << 16);
			sim_ring_publish(&f->reader);
			read++;
		}
		written++;
	}
	for (; read < written; read++) {
		uint32_t oldest = read * 7919 % MAX_LEN + 1;

		expect(f, oldest, read ^ oldest << 16);
	}
	assert_int_equal(next(f), -EAGAIN);
}

static void a_record_begins_with_a_cache_line(void **state)
{
	struct fixture *f = *state;

	for (uint32_t len = 1; len <= 128; len++) {
		uint64_t before = f->writer.tail;

		assert_int_equal(before % SIM_RING_ALIGN, 0);
		assert_int_equal(put(f, len, len), 0);
		if (f->writer.tail > before && f->writer.tail - before < SIZE / 2)
			assert_in_range(f->writer.tail - before, len + SIM_RING_RECORD_HEADER, SIZE);
		expect(f, len, len);
		sim_ring_publish(&f->reader);
	}
}

/* Read when the writer is gone, wherever it was in its doing. */
static void the_last_record_is_the_newest_that_was_set(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[SIM_RING_LAST_MAX];
	uint32_t tag;

	assert_int_equal(sim_ring_last(&f->reader, bytes, &tag), 0);
	sim_ring_set_last(&f->writer, "first", 5, 1);
	sim_ring_set_last(&f->writer, "second", 6, 2);
	assert_int_equal(sim_ring_last(&f->reader, bytes, &tag), 6);
	assert_memory_equal(bytes, "second", 6);
	assert_int_equal(tag, 2);
	assert_int_equal(next(f), -EAGAIN);
	sim_ring_set_last(&f->writer, NULL, 0, 3);
	assert_int_equal(sim_ring_last(&f->reader, bytes, &tag), 0);
	/* By a writer that breaks the rules. */
	atomic_store(&f->memory->last.len, SIM_RING_LAST_MAX + 1);
	assert_int_equal(sim_ring_last(&f->reader, bytes, &tag), 0);
}

static void a_full_ring_waits_for_its_reader(void **state)
{
	struct fixture *f = *state;
	unsigned int count = 0, more = 0;

	while (!put(f, 56, count))
		count++;
	assert_int_equal(count, (SIZE - 8) / 64);	/* a word stays free */
	for (unsigned int i = 0; i < 4; i++)
		expect(f, 56, i);
	assert_int_equal(put(f, 56, 99), -EAGAIN);	/* not told yet */
	sim_ring_publish(&f->reader);
	while (!put(f, 56, count + more))
		more++;
	assert_int_equal(more, 4);
	for (unsigned int i = 4; i < count + more; i++)
		expect(f, 56, i);
	assert_int_equal(next(f), -EAGAIN);
}

static void an_uncommitted_record_is_not_seen(void **state)
{
	struct fixture *f = *state;
	void *first, *again;

	assert_int_equal(sim_ring_reserve(&f->writer, 100, &first), 0);
	memset(first, 0xff, 100);
	assert_int_equal(next(f), -EAGAIN);
	assert_int_equal(sim_ring_reserve(&f->writer, 10, &again), 0);
	assert_ptr_equal(first, again);
	memset(again, 5, 10);
	sim_ring_commit(&f->writer, 10, 5);
	expect(f, 10, 5);
	assert_int_equal(next(f), -EAGAIN);
}

/* A writer that waits for its reader does not wait for records without a notification. */
static void only_what_was_notified_is_unread(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(put(f, 10, 1), 0);
	assert_false(sim_ring_unread(&f->writer));
	assert_int_equal(put(f, 10, 2), 0);
	sim_ring_set_notified(&f->writer);
	assert_true(sim_ring_unread(&f->writer));
	expect(f, 10, 1);
	sim_ring_publish(&f->reader);
	assert_true(sim_ring_unread(&f->writer));
	expect(f, 10, 2);
	sim_ring_publish(&f->reader);
	assert_false(sim_ring_unread(&f->writer));
	assert_int_equal(put(f, 10, 3), 0);
	assert_false(sim_ring_unread(&f->writer));
}

static void what_is_no_ring_is_refused(void **state)
{
	struct fixture *f = *state;
	struct sim_ring_reader reader;

	assert_int_equal(sim_ring_reader_init(&reader, f->memory, SIZE * 2, MAX_LEN), -EBADMSG);
	f->memory->size = SIZE * 2;
	assert_int_equal(sim_ring_reader_init(&reader, f->memory, SIZE, MAX_LEN), -EBADMSG);
	f->memory->size = SIZE;
	for (unsigned int byte = 0; byte < 8; byte++) {
		((uint8_t *)&f->memory->magic)[byte] ^= 0x10;
		assert_int_equal(sim_ring_reader_init(&reader, f->memory, SIZE, MAX_LEN), -EBADMSG);
		((uint8_t *)&f->memory->magic)[byte] ^= 0x10;
	}
	assert_int_equal(sim_ring_reader_init(&reader, f->memory, SIZE, MAX_LEN), 0);
}

/* The reader may never be led outside the ring, whatever a length says. */
static void check_reader_stays_inside(struct fixture *f)
{
	const uint8_t *first = f->memory->data, *end = first + SIZE;
	const void *bytes;
	uint32_t len, tag;
	unsigned int records = 0;

	while (!sim_ring_next(&f->reader, &bytes, &len, &tag)) {
		const uint8_t *start = bytes;

		assert_in_range(len, 1, MAX_LEN);
		assert_true(start >= first && start + len <= end);
		sim_ring_release(&f->reader);
		/* A ring of records that never end is the reader's caller's to bound. */
		if (++records == 4 * SIZE)
			break;
	}
}

static void malformed_lengths_lead_nowhere(void **state)
{
	static const uint32_t lengths[] = {
		MAX_LEN + 1, SIZE - 8, SIZE - 7, SIZE, SIZE + 1, 0x7fffffff, 0x80000000,
		0xfffffff0, 0xfffffff8, 0xfffffffe, 0xffffffff,
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		make_ring(f);
		memcpy(f->memory->data, &lengths[i], 4);
		assert_int_equal(next(f), -EBADMSG);
		assert_int_equal(next(f), -EBADMSG);
	}
	/* Good lengths that do not fit before the end. */
	for (uint32_t left = 8; left <= MAX_LEN; left += 8) {
		uint32_t len = left - 8 + 1;

		make_ring(f);
		f->reader.head = SIZE - left;
		memcpy(f->memory->data + SIZE - left, &len, 4);
		assert_int_equal(next(f), -EBADMSG);
	}
	/* "Go on at the start", where there is the same again. */
	make_ring(f);
	f->reader.head = 64;
	memset(f->memory->data, 0xff, SIZE);
	assert_int_equal(next(f), -EBADMSG);
	assert_int_equal(next(f), -EBADMSG);
}

static void every_byte_may_be_wrong(void **state)
{
	static const uint8_t values[] = { 0x00, 0x01, 0x08, 0x7f, 0x80, 0xf8, 0xff };
	struct fixture *f = *state;

	for (uint32_t byte = 0; byte < SIZE; byte++) {
		for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
			make_ring(f);
			for (uint32_t tag = 0; !put(f, 1 + tag * 37 % MAX_LEN, tag); tag++)
				;
			f->memory->data[byte] = values[i];
			check_reader_stays_inside(f);
		}
	}
}

static void a_reader_that_lies_about_its_place_is_found_out(void **state)
{
	struct fixture *f = *state;
	static const uint64_t heads[] = { 1 << 20, UINT64_MAX, 2000 };
	void *bytes;

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		make_ring(f);
		while (!put(f, 56, 1))
			;
		atomic_store(&f->memory->head, heads[i]);
		assert_int_equal(sim_ring_reserve(&f->writer, 56, &bytes), -EBADMSG);
	}
	/* Back: it said already that it had read more. */
	make_ring(f);
	for (unsigned int i = 0; i < 100; i++) {
		while (put(f, 56, 1) == -EAGAIN) {
			expect(f, 56, 1);
			sim_ring_publish(&f->reader);
		}
	}
	atomic_store(&f->memory->head, 0);
	assert_int_equal(sim_ring_reserve(&f->writer, 56, &bytes), -EBADMSG);
}

/* ------------------------------------------------------------------------
 * Two threads, as two processes would be.
 */

#define PASSES 200000u

static uint32_t length_of(uint32_t number)
{
	return (number * 2654435761u >> 16) % 200 + 4;
}

static void *write_all(void *arg)
{
	struct fixture *f = arg;
	void *bytes;

	for (uint32_t number = 0; number < PASSES; number++) {
		uint32_t len = length_of(number);
		int r;

		while ((r = sim_ring_reserve(&f->writer, len, &bytes)) == -EAGAIN)
			sched_yield();
		if (r)
			return (void *)1;
		memset(bytes, (int)(number & 0xff), len);
		memcpy(bytes, &number, 4);
		sim_ring_commit(&f->writer, len, ~number);
	}
	return NULL;
}

static void a_writer_and_a_reader_do_not_disturb_each_other(void **state)
{
	struct fixture *f = *state;
	uint32_t len, tag, found;
	const void *bytes;
	pthread_t thread;
	void *result;
	int r;

	assert_int_equal(pthread_create(&thread, NULL, write_all, f), 0);
	for (uint32_t number = 0; number < PASSES; number++) {
		while ((r = sim_ring_next(&f->reader, &bytes, &len, &tag)) == -EAGAIN)
			sched_yield();
		assert_int_equal(r, 0);
		assert_int_equal(len, length_of(number));
		assert_int_equal(tag, ~number);
		memcpy(&found, bytes, 4);
		assert_int_equal(found, number);
		if (len > 4)
			assert_int_equal(((const uint8_t *)bytes)[len - 1], number & 0xff);
		sim_ring_release(&f->reader);
		sim_ring_publish(&f->reader);
	}
	pthread_join(thread, &result);
	assert_null(result);
}

int main(void)
{
#define RING(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		RING(records_come_out_as_they_went_in),
		RING(records_survive_the_end_of_the_ring),
		RING(a_record_begins_with_a_cache_line),
		RING(the_last_record_is_the_newest_that_was_set),
		RING(a_full_ring_waits_for_its_reader),
		RING(an_uncommitted_record_is_not_seen),
		RING(only_what_was_notified_is_unread),
		RING(what_is_no_ring_is_refused),
		RING(malformed_lengths_lead_nowhere),
		RING(every_byte_may_be_wrong),
		RING(a_reader_that_lies_about_its_place_is_found_out),
		RING(a_writer_and_a_reader_do_not_disturb_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
