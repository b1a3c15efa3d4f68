/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.c - the trace file and its lines.
 *
 * Each line is written at once, so that the trace is complete when the program
 * dies and so that lines of several processes do not mix.  Whoever opens the
 * file while no other process writes it begins it anew.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "files.h"
#include "trace.h"
#include "watch.h"

bool sim_trace_on;

static FILE *file;
static struct {
	int fd;
	int error;		/* of the first write that failed: nothing is written after it */
	char path[256];		/* for people */
} target = {
	.fd = -1,
};

/* ------------------------------------------------------------------------
 * The file.
 */

/* Alone with it: begin it anew.  A lock that cannot be had (a pipe, a device) is none. */
static int begin_file(int fd)
{
	if (!flock(fd, LOCK_EX | LOCK_NB) && ftruncate(fd, 0) < 0 && errno != EINVAL)
		return -errno;
	(void)flock(fd, LOCK_SH | LOCK_NB);
	return 0;
}

static int open_file(const char *path)
{
	int fd, r;

	if (!strcmp(path, "-")) {
		fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? -errno : fd;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	r = begin_file(fd);
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

/* In place of the C library's own, which forgets what a signal kept it from writing. */
static ssize_t write_out(void *cookie, const char *text, size_t len)
{
	size_t done = 0;
	ssize_t n;

	(void)cookie;
	while (done < len && !target.error) {
		n = write(target.fd, text + done, len - done);
		if (n > 0)
			done += (size_t)n;
		else if (n < 0 && errno != EINTR)
			target.error = errno;
	}
	return (ssize_t)done;
}

static int close_out(void *cookie)
{
	int fd = target.fd;

	(void)cookie;
	target.fd = -1;
	return close(fd);
}

/* A line was written, or could not be.  The file stays open for whoever is about to write to it. */
static void check_written(void)
{
	if (!target.error || !sim_trace_on)
		return;
	sim_trace_on = false;
	sim_watch_update();
	sim_files_failed("trace", target.path, target.error);
}

/* Processes have numbers, which mean nothing to people. */
static void tell_program(void)
{
	bool told = sim_watch_told;

	sim_trace_begin("process");
	sim_trace_text("program", program_invocation_short_name);
	sim_trace_end();
	sim_watch_told = told;
}

static void tell_fabric(void)
{
	if (sim_fabric_is_shared())
		tell_program();
	for (struct sim_node *node = sim_first_node(); node; node = node->next)
		for (unsigned int i = 0; i < node->num_addresses; i++)
			if (node->addresses[i].port)	/* that of a device */
				sim_trace_address(&node->addresses[i], "added");
}

int sim_trace_open(const char *path)
{
	static const cookie_io_functions_t functions = { .write = write_out, .close = close_out };
	FILE *opened;
	int fd;

	/* Perhaps it is the same one. */
	if (file)
		(void)flock(target.fd, LOCK_UN);
	fd = open_file(path);
	if (fd < 0)
		return fd;
	opened = fopencookie(NULL, "a", functions);
	if (!opened) {
		close(fd);
		return -ENOMEM;
	}
	setvbuf(opened, NULL, _IOLBF, 1u << 16);
	sim_trace_close();
	file = opened;
	target.fd = fd;
	target.error = 0;
	(void)snprintf(target.path, sizeof(target.path), "%s",
		       strcmp(path, "-") ? path : "standard error");
	sim_trace_on = true;
	sim_watch_update();
	tell_fabric();
	return -target.error;
}

void sim_trace_close(void)
{
	sim_trace_flush();
	sim_trace_on = false;
	sim_watch_update();
	if (file)
		fclose(file);
	file = NULL;
}

void sim_trace_flush(void)
{
	if (!file)
		return;
	fflush(file);
	check_written();
}

/* ------------------------------------------------------------------------
 * A line.
 */

/* Bytes that are no ASCII are told as characters of their number: a name may be anything. */
static void put_string(const char *text)
{
	putc('"', file);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(file, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			fprintf(file, "\\u%04x", c);
		else
			putc(c, file);
	}
	putc('"', file);
}

void sim_trace_begin(const char *kind)
{
	sim_watch_told = true;
	fprintf(file, "{\"time\":%" PRIu64, sim_now());
	if (sim_fabric_is_shared())
		fprintf(file, ",\"process\":%u", sim_self_slot());
	fprintf(file, ",\"kind\":\"%s\"", kind);
}

void sim_trace_text(const char *name, const char *value)
{
	fprintf(file, ",\"%s\":", name);
	put_string(value);
}

void sim_trace_number(const char *name, uint64_t value)
{
	fprintf(file, ",\"%s\":%" PRIu64, name, value);
}

void sim_trace_status(const char *name, int value)
{
	fprintf(file, ",\"%s\":%d", name, value);
}

void sim_trace_bytes(const char *name, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	fprintf(file, ",\"%s\":\"", name);
	for (size_t i = 0; i < len; i++)
		fprintf(file, "%02x", at[i]);
	putc('"', file);
}

void sim_trace_end(void)
{
	fputs("}\n", file);
	check_written();
}

void sim_trace_line(const char *kind, const char *format, ...)
{
	va_list args;

	if (!file)
		return;
	sim_trace_begin(kind);
	if (*format) {
		putc(',', file);
		va_start(args, format);
		vfprintf(file, format, args);
		va_end(args);
	}
	sim_trace_end();
}

/* ------------------------------------------------------------------------
 * Lines that several parts write.
 */

void sim_trace_state(const struct sim_node *node, const char *of, uint32_t number,
		     const char *state, const char *was)
{
	sim_trace_begin("state");
	sim_trace_text("node", node ? node->name : "");	/* an id that met no device */
	sim_trace_text("of", of);
	sim_trace_number(!strcmp(of, "qp") ? "qpn" : "id", number);
	sim_trace_text("state", state);
	sim_trace_text("was", was);
	sim_trace_end();
}

void sim_trace_address(const struct sim_address *address, const char *action)
{
	const struct sim_device *device = address->port->device;
	const union sim_sockaddr *addr = &address->addr;
	char text[INET6_ADDRSTRLEN] = "?";
	bool told = sim_watch_told;

	inet_ntop(addr->sa.sa_family, addr->sa.sa_family == AF_INET ?
		  (const void *)&addr->in.sin_addr : (const void *)&addr->in6.sin6_addr,
		  text, sizeof(text));
	sim_trace_begin("address");
	sim_trace_text("node", device->node->name);
	sim_trace_text("action", action);
	sim_trace_text("device", device->vdev.device.name);
	sim_trace_text("transport", device->rules->name);
	sim_trace_text("address", text);
	sim_trace_end();
	sim_watch_told = told;
}

/* ------------------------------------------------------------------------
 * Timers.
 */

static struct {
	void (*fn)(struct sim_timer *timer);
	sim_timer_describe_t describe;
} timers[SIM_TRACE_MAX_TIMERS];
static unsigned int num_timers;

void sim_trace_timers(void (*fn)(struct sim_timer *timer), sim_timer_describe_t describe)
{
	for (unsigned int i = 0; i < num_timers; i++)
		if (timers[i].fn == fn)
			return;
	if (num_timers == SIM_TRACE_MAX_TIMERS)
		return;
	timers[num_timers].fn = fn;
	timers[num_timers++].describe = describe;
}

const struct sim_node *sim_trace_timer_node(const struct sim_timer *timer)
{
	struct sim_timer_text text = { .node = NULL };

	for (unsigned int i = 0; i < num_timers; i++) {
		if (timers[i].fn != timer->fn)
			continue;
		timers[i].describe(timer, &text);
		break;
	}
	return text.node;
}

void sim_trace_timer(const struct sim_timer *timer, const char *action)
{
	struct sim_timer_text text = { .name = NULL };

	for (unsigned int i = 0; i < num_timers; i++) {
		if (timers[i].fn == timer->fn) {
			timers[i].describe(timer, &text);
			break;
		}
	}
	if (!text.name)
		return;
	sim_trace_begin("timer");
	sim_trace_text("node", text.node->name);
	sim_trace_number(text.of, text.number);
	sim_trace_text("timer", text.name);
	sim_trace_text("action", action);
	if (!strcmp(action, "armed"))
		sim_trace_number("until", timer->deadline);
	sim_trace_end();
}
