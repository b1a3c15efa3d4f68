/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said of a program that makes no system call for long (tools/system_busy.c). */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/cmocka_all.h"
#include "tools/system.h"

#define SECOND TURN_SECOND

/* ------------------------------------------------------------------------
 * What the file has around it.
 */

static char told[1000];

void tool_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(told, sizeof(told), format, args);
	va_end(args);
}

char *tool_printf(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	assert_true(vasprintf(&text, format, args) >= 0);
	va_end(args);
	return text;
}

char *tool_strdup(const char *text)
{
	char *copy = strdup(text);

	assert_non_null(copy);
	return copy;
}

const char *system_call_name(uint64_t number)
{
	return number == SYS_read ? "read" : NULL;
}

const struct system_program *system_program_of(const struct system *system, uint32_t member)
{
	(void)system;
	(void)member;
	return NULL;
}

const char *system_name(const struct system_program *program)
{
	return program->name;
}

/* ------------------------------------------------------------------------
 * Tests.
 */

#define COMPUTES "it computes, or looks at memory until another thread changes it, which needs a " \
		 "call by which others go on, such as sched_yield()"

static void test_words(void **state)
{
	static const struct {
		double used, waited;
		char state;
		double pause;
		const char *words;
	} rows[] = {
		{ 9.84, 0.1, 'R', 0.05, ", of which it used 9.8 s of processor time: " COMPUTES },
		{ 5.1, 4.9, 'R', 9, ", of which it used 5.1 s of processor time: " COMPUTES },
		{ 0.1, 9.7, 'R', 0.1, ", of which it got only 0.1 s of processor time, and waited 9.7 s "
		  "for it: the machine is busy" },
		{ 0.1, 0.2, 'S', 0.1, ", of which it got only 0.1 s of processor time, and waited 0.2 s "
		  "for it: it sleeps in the kernel (state S)" },
		{ 0, 0, 'D', 0.1, ", of which it got only 0.0 s of processor time, and waited 0.0 s for "
		  "it: it waits in the kernel, as for a disk or for memory (state D)" },
		{ 0, 0, 'T', 0.1, ", of which it got only 0.0 s of processor time, and waited 0.0 s for "
		  "it: it is stopped, as by a debugger (state T)" },
		{ 0.9, 3, 'R', 0.1, ", of which it got only 0.9 s of processor time, and waited 3.0 s "
		  "for it: the machine did not let it run (state R)" },
		{ 4.8, 5.2, 'R', 0.1, ", of which it used 4.8 s of processor time, and waited 5.2 s for "
		  "it: " COMPUTES },
		{ 1, 9, 'R', 9, ", of which it used 1.0 s of processor time, and waited 9.0 s for it: "
		  COMPUTES },
		{ 0.1, 9.7, 'R', 9.1, ", of which it got only 0.1 s of processor time: the machine "
		  "stood still, or was so busy that polycm itself did not run for 9.1 s" },
	};
	const struct system_busy before = {
		.at = SECOND, .is_known = true, .used = 7 * SECOND, .waited = 8 * SECOND,
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct system_busy after = {
			.at = before.at + 10 * SECOND, .is_known = true, .state = rows[i].state,
			.used = before.used + (uint64_t)(rows[i].used * SECOND),
			.waited = before.waited + (uint64_t)(rows[i].waited * SECOND),
		};
		char *words = system_busy_words(&before, &after, (uint64_t)(rows[i].pause * SECOND));

		assert_string_equal(words, rows[i].words);
		free(words);
	}
}

/* A kernel that does not tell (CONFIG_SCHED_INFO). */
static void test_unknown(void **state)
{
	const struct system_busy before = { .at = SECOND }, after = { .at = 11 * SECOND };
	const struct system_busy known = { .at = SECOND, .is_known = true };
	char *words = system_busy_words(&before, &after, 0);

	(void)state;
	assert_string_equal(words, ": " COMPUTES);
	free(words);
	/* And of one that has ended meanwhile. */
	words = system_busy_words(&known, &after, 0);
	assert_string_equal(words, "");
	free(words);
}

static atomic_int computing_tid;
static atomic_bool is_over;

static void *compute(void *arg)
{
	atomic_store(&computing_tid, gettid());
	while (!atomic_load(&is_over))
		;
	return arg;
}

/* Of a thread that computes. */
static void test_this_system(void **state)
{
	struct turn_segment *segment = calloc(1, sizeof(*segment));
	const struct system system = { .segment = segment };
	struct system_busy first, second;
	pthread_t thread;

	(void)state;
	assert_non_null(segment);
	assert_int_equal(pthread_create(&thread, NULL, compute, NULL), 0);
	while (!atomic_load(&computing_tid))
		sched_yield();
	segment->members[0] = (struct turn_member){ .pid = getpid(), .number = 1 };
	segment->threads[3].tid = atomic_load(&computing_tid);
	segment->threads[3].number = 2;
	system_look_at_busy(&system, 3, SECOND, &first);
	assert_int_equal(first.at, SECOND);
	do
		system_look_at_busy(&system, 3, SECOND + 2, &second);
	while (first.is_known && second.used == first.used);
	/* More than half of that nanosecond. */
	system_tell_busy(&system, 3, 10, &first, SECOND + 1, 0);
	atomic_store(&is_over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	free(segment);
	assert_non_null(strstr(told, "a member: "));
	assert_non_null(strstr(told, "process 1, thread 2, has made no system call for 10 s of real "
			       "time"));
	assert_non_null(strstr(told, ": it computes, or looks at memory until "));
	assert_non_null(strstr(told, "; Ctrl-C ends the run"));
	assert_true(!first.is_known || second.state == 'R');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_this_system),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
