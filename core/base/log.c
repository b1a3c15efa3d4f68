/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/log.c - lines on standard error.
 *
 * No lock: a line is put together on the stack and written with one write().
 * errno is the caller's afterwards, so that logging may stand anywhere.
 */
#include "config.h"

#include "log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "turns.h"

#define LINE_SIZE 2048

int polycm_log_level = POLYCM_LOG_ERROR;

/* Until there can be ids. */
static void describe_nothing(const struct polycm_id *id, char *buf, size_t size)
{
	(void)id;
	if (size)
		buf[0] = '\0';
}

void (*polycm_log_describe)(const struct polycm_id *id, char *buf, size_t size) = describe_nothing;

static unsigned int errors;	/* atomic */

static const char *const level_names[] = {
	[POLYCM_LOG_ERROR] = "error",
	[POLYCM_LOG_WARN] = "warn",
	[POLYCM_LOG_INFO] = "info",
	[POLYCM_LOG_DEBUG] = "debug",
	[POLYCM_LOG_TRACE] = "trace",
};

#define NUM_LEVELS (sizeof(level_names) / sizeof(level_names[0]))

unsigned int polycm_log_errors(void)
{
	return __atomic_load_n(&errors, __ATOMIC_RELAXED);
}

void polycm_log_set_level(const char *name)
{
	for (size_t i = 0; name && i < NUM_LEVELS; i++)
		if (!strcmp(name, level_names[i]))
			__atomic_store_n(&polycm_log_level, (int)i, __ATOMIC_RELAXED);
}

/* A line that is being put together; what does not fit is cut off. */
struct line {
	char text[LINE_SIZE];
	size_t len;
	bool cut;
};

static void addv(struct line *line, const char *format, va_list args)
{
	size_t room = sizeof(line->text) - line->len;
	int n = vsnprintf(line->text + line->len, room, format, args);

	if (n < 0)
		return;
	if ((size_t)n >= room) {
		line->cut = true;
		n = (int)room - 1;
	}
	line->len += (size_t)n;
}

static __attribute__((format(printf, 2, 3))) void add(struct line *line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	addv(line, format, args);
	va_end(args);
}

/* Names of files, settings and plugins may hold anything; a message stays one line. */
static void finish(struct line *line)
{
	for (size_t i = 0; i < line->len; i++)
		if ((unsigned char)line->text[i] < ' ' || line->text[i] == 0x7f)
			line->text[i] = '?';
	if (line->cut)
		memcpy(line->text + sizeof(line->text) - 5, "...", 3);
	if (line->len > sizeof(line->text) - 2)
		line->len = sizeof(line->text) - 2;
	line->text[line->len++] = '\n';
}

void (polycm_log_id)(enum polycm_log_level level, const struct polycm_id *id, const char *format,
		     ...)
{
	int saved_errno = errno, cancel_state;
	struct line line;
	va_list args;
	ssize_t n;

	if ((unsigned int)level >= NUM_LEVELS || !polycm_log_enabled(level))
		return;
	if (level == POLYCM_LOG_ERROR)
		__atomic_add_fetch(&errors, 1, __ATOMIC_RELAXED);

	line.len = 0;
	line.cut = false;
	add(&line, "polycm: ");
	if (polycm_log_enabled(POLYCM_LOG_DEBUG)) {
		uint64_t us = polycm_now_ns() / 1000;

		add(&line, "%llu.%06u ", (unsigned long long)(us / 1000000),
		    (unsigned int)(us % 1000000));
	}
	add(&line, "%s: ", level_names[level]);
	if (id) {
		char who[256] = "";

		polycm_log_describe(id, who, sizeof(who));
		add(&line, "%s: ", who);
	}
	va_start(args, format);
	addv(&line, format, args);
	va_end(args);
	finish(&line);

	/* Lines are written under locks, and write() is a place to be cancelled in. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	polycm_writes_own(true);
	do {
		n = write(STDERR_FILENO, line.text, line.len);
	} while (n < 0 && errno == EINTR);
	polycm_writes_own(false);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved_errno;
}
