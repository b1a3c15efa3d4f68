/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages that are moved to a file for other processes to map: the program does not notice,
 * whatever it does with them; and memory that stays where it is.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/soft/link/shm/page_file.h"
#include "providers/soft/link/shm/pages.h"
#include "shm_pair.h"

#define PAGES 4u
#define LENGTH (PAGES * 4096u)

static int setup(void **state)
{
	struct pair_numbers unused;

	sim_pages_time = SIM_MS(3600000);
	return setenv("POLYCM_SIM_DIRECT", "off", 1) || pair_make_folder(state) || !pair_open(&unused);
}

static int teardown(void **state)
{
	pair_close();
	return pair_remove_folder(state);
}

static char *new_memory(void)
{
	char *memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	for (size_t i = 0; i < LENGTH; i++)
		memory[i] = (char)(i % 251);
	return memory;
}

static bool is_as_new(const char *memory)
{
	for (size_t i = 0; i < LENGTH; i++)
		if (memory[i] != (char)(i % 251))
			return false;
	return true;
}

static struct sim_pages *share(const void *memory, size_t length)
{
	struct sim_pages *pages;

	sim_lock();
	pages = sim_pages_share(memory, length);
	sim_unlock();
	return pages;
}

static void release(struct sim_pages *pages)
{
	sim_lock();
	sim_pages_release(pages);
	sim_unlock();
}

/* As another process maps it. */
static char *other_view(const struct sim_pages *pages)
{
	char *view;
	int fd;

	sim_lock();
	assert_non_null(sim_page_file_id(&fd));
	sim_unlock();
	view = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)pages->at);
	assert_ptr_not_equal(view, MAP_FAILED);
	return view;
}

/* How much of the file the process has mapped, but for views. */
static int pieces(struct sim_mapping ret[static 8])
{
	const struct sim_file_id *id;
	int fd, num;

	sim_lock();
	id = sim_page_file_id(&fd);
	num = id ? sim_maps_of(id, 0, SIM_PAGES_FILE, ret, 8) : 0;
	sim_unlock();
	return num;
}

static void moved_and_back(void **state)
{
	struct sim_mapping at[8];
	char *memory = new_memory(), *view;
	struct sim_pages *pages = share(memory, LENGTH), *inner;

	(void)state;
	assert_non_null(pages);
	assert_true(is_as_new(memory));
	/* A region within has the same pages; one that is partly outside has none. */
	inner = share(memory + 4096, 4096);
	assert_ptr_equal(inner, pages);
	assert_null(share(memory + LENGTH - 4096, 8192));
	release(inner);

	view = other_view(pages);
	assert_true(is_as_new(view));
	view[5] = 77;
	assert_int_equal(memory[5], 77);
	memory[6] = 78;
	assert_int_equal(view[6], 78);
	assert_int_equal(pieces(at), 2);
	munmap(view, LENGTH);

	release(pages);
	assert_int_equal(pieces(at), 0);
	assert_int_equal(memory[5], 77);
	memory[5] = 5;
	memory[6] = 6;
	assert_true(is_as_new(memory));
	munmap(memory, LENGTH);
}

/* Whole pages only: what stands beside a region is not shown. */
static void parts_of_pages(void **state)
{
	char *memory = new_memory();
	struct sim_pages *pages = share(memory + 100, LENGTH - 200);

	(void)state;
	assert_non_null(pages);
	assert_int_equal(pages->from, (uintptr_t)memory + 4096);
	assert_int_equal(pages->length, LENGTH - 8192);
	release(pages);
	assert_null(share(memory + 100, 5000));
	assert_true(is_as_new(memory));
	munmap(memory, LENGTH);
}

static void child_has_a_copy(void **state)
{
	char *memory = new_memory(), *view;
	struct sim_pages *pages = share(memory, LENGTH);
	struct sim_mapping at[8];
	int to_child[2], status;
	pid_t pid;
	char byte;

	(void)state;
	assert_non_null(pages);
	assert_int_equal(pipe(to_child), 0);
	pid = fork();
	if (!pid) {
		if (read(to_child[0], &byte, 1) != 1 || !is_as_new(memory))
			_exit(1);
		memset(memory, 3, LENGTH);
		_exit(0);
	}
	/* Neither sees what the other writes afterwards. */
	view = other_view(pages);
	view[9] = 99;
	memory[10] = 100;
	assert_int_equal(write(to_child[1], "", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(memory[9], 99);
	memory[9] = 9;
	memory[10] = 10;
	assert_true(is_as_new(memory));
	munmap(view, LENGTH);
	assert_int_equal(pieces(at), 1);
	release(pages);
	close(to_child[0]);
	close(to_child[1]);
	munmap(memory, LENGTH);
}

/* More than are copied at a time, some of them in pieces; and the child has none of our objects. */
static void child_has_copies_of_many(void **state)
{
	enum { MANY = 100 };
	struct sim_pages *pages[MANY];
	char *memory[MANY];
	struct sim_mapping at[8];
	int status;
	pid_t pid;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		memory[i] = new_memory();
		pages[i] = share(memory[i], LENGTH);
		assert_non_null(pages[i]);
		for (int page = 0; page < 4; page += 2)
			assert_int_equal(mprotect(memory[i] + page * 4096, 4096, PROT_READ), 0);
	}
	pid = fork();
	if (!pid) {
		bool good = pieces(at) == 0;

		for (int i = 0; i < MANY; i++) {
			good &= is_as_new(memory[i]);
			memory[i][5000]++;
		}
		_exit(!good);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (int i = 0; i < MANY; i++) {
		assert_true(is_as_new(memory[i]));
		release(pages[i]);
		munmap(memory[i], LENGTH);
	}
	assert_int_equal(pieces(at), 0);
}

/* A region of the parent's, deregistered in the child, which has no pages of it. */
static void child_that_deregisters(void **state)
{
	struct ibv_mr *mr;
	char *memory = new_memory();
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(setenv("POLYCM_SIM_DIRECT", "on", 1), 0);
	pair_close();
	assert_true(pair_open(&(struct pair_numbers){ 0 }));
	mr = sim_verbs.reg_mr(my.pd, memory, LENGTH, (uintptr_t)memory,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(mr);
	pid = fork();
	if (!pid) {
		(void)sim_verbs.dereg_mr(mr);
		_exit(!is_as_new(memory));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(sim_verbs.dereg_mr(mr), 0);
	assert_true(is_as_new(memory));
	munmap(memory, LENGTH);
}

/* A mapping that grows gets empty memory, and not that of another region. */
static void grown(void **state)
{
	char *memory = new_memory(), *other = new_memory(), *more;
	struct sim_pages *pages = share(memory, LENGTH), *others = share(other, LENGTH);
	struct sim_mapping at[8];

	(void)state;
	assert_non_null(pages);
	assert_non_null(others);
	more = mremap(memory, LENGTH, 3 * LENGTH, MREMAP_MAYMOVE);
	assert_ptr_not_equal(more, MAP_FAILED);
	assert_true(is_as_new(more));
	for (size_t i = LENGTH; i < 3 * LENGTH; i++)
		assert_int_equal(more[i], 0);
	memset(more + LENGTH, 1, 2 * LENGTH);
	assert_true(is_as_new(other));
	release(pages);
	release(others);
	assert_int_equal(pieces(at), 0);
	assert_true(is_as_new(more));
	assert_int_equal(more[3 * LENGTH - 1], 1);
	munmap(more, 3 * LENGTH);
	munmap(other, LENGTH);
}

/* The program unmaps pages and maps others in their place: the others are left alone. */
static void unmapped(void **state)
{
	char *memory = new_memory();
	struct sim_pages *pages = share(memory, LENGTH);
	struct sim_mapping at[8];

	(void)state;
	assert_non_null(pages);
	assert_int_equal(munmap(memory, 2 * 4096), 0);
	assert_ptr_equal(mmap(memory, 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), memory);
	memset(memory, 1, 4096);
	assert_null(share(memory, LENGTH));
	release(pages);
	assert_int_equal(pieces(at), 0);
	assert_int_equal(memory[0] + memory[4095], 2);
	assert_int_equal(memory[2 * 4096], (char)(2 * 4096 % 251));
	munmap(memory, LENGTH);
}

static void moved_by_the_program(void **state)
{
	char *memory = new_memory(), *elsewhere = new_memory();
	struct sim_pages *pages = share(memory, LENGTH);
	struct sim_mapping at[8];

	(void)state;
	assert_non_null(pages);
	assert_ptr_equal(mremap(memory, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere),
			 elsewhere);
	assert_int_equal(mprotect(elsewhere + 4096, 4096, PROT_NONE), 0);
	assert_int_equal(mprotect(elsewhere + 8192, 4096, PROT_READ), 0);
	release(pages);
	assert_int_equal(pieces(at), 0);
	assert_int_equal(mprotect(elsewhere + 4096, 8192, PROT_READ | PROT_WRITE), 0);
	assert_true(is_as_new(elsewhere));
	munmap(elsewhere, LENGTH);
}

static void *sleeper(void *fds)
{
	char byte;

	return read(*(const int *)fds, &byte, 1) ? NULL : fds;
}

static void with_threads(void **state)
{
	char *memory = new_memory(), *more = new_memory();
	struct sim_pages *pages = share(memory, LENGTH);
	struct sim_mapping at[8];
	pthread_t thread;
	int fds[2];

	(void)state;
	assert_non_null(pages);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pthread_create(&thread, NULL, sleeper, fds), 0);
	assert_null(share(more, LENGTH));
	release(pages);
	assert_int_equal(pieces(at), 1);
	assert_true(is_as_new(memory));
	close(fds[1]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	close(fds[0]);
	/* The next call that may move something moves them back. */
	sim_lock();
	while (!sim_pages_may_move())
		;
	sim_unlock();
	release(share(more, LENGTH));
	assert_int_equal(pieces(at), 0);
	assert_true(is_as_new(memory));
	munmap(memory, LENGTH);
	munmap(more, LENGTH);
}

/* --- Memory that stays where it is. --- */

static char *locked(void)
{
	char *memory = new_memory();

	/* Not mlock(), which AddressSanitizer makes do nothing. */
	assert_int_equal(syscall(SYS_mlock, memory + 4096, 4096), 0);
	return memory;
}

static char *not_for_children(void)
{
	char *memory = new_memory();

	assert_int_equal(madvise(memory, 4096, MADV_DONTFORK), 0);
	return memory;
}

static char *with_a_hole(void)
{
	char *memory = new_memory();

	assert_int_equal(munmap(memory + 4096, 4096), 0);
	return memory;
}

static char *read_only(void)
{
	char *memory = new_memory();

	assert_int_equal(mprotect(memory + LENGTH - 4096, 4096, PROT_READ), 0);
	return memory;
}

static char *shared(void)
{
	return mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void memory_that_stays(void **state)
{
	static char *(*const kinds[])(void) = {
		locked, not_for_children, with_a_hole, read_only, shared,
	};
	/* AddressSanitizer puts arrays elsewhere. */
	const char *stack = (const char *)__builtin_frame_address(0) - 3 * 4096;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		char *memory = kinds[i]();

		assert_ptr_not_equal(memory, MAP_FAILED);
		assert_null(share(memory, LENGTH));
		munmap(memory, LENGTH);
	}
	assert_null(share(stack, 3 * 4096));
}

/* With aio the kernel may write to pages later. */
static void with_aio(void **state)
{
	unsigned long context = 0;
	char *memory = new_memory();
	struct sim_pages *pages;

	(void)state;
	if (syscall(SYS_io_setup, 1, &context) < 0) {
		munmap(memory, LENGTH);
		print_message("this system has no aio\n");
		skip();
	}
	assert_null(share(memory, LENGTH));
	assert_int_equal(syscall(SYS_io_destroy, context), 0);
	pages = share(memory, LENGTH);
	assert_non_null(pages);
	release(pages);
	munmap(memory, LENGTH);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(moved_and_back),
		TEST(parts_of_pages),
		TEST(child_has_a_copy),
		TEST(child_has_copies_of_many),
		TEST(child_that_deregisters),
		TEST(grown),
		TEST(unmapped),
		TEST(moved_by_the_program),
		TEST(with_threads),
		TEST(memory_that_stays),
		TEST(with_aio),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
