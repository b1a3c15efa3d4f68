/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_output.c - what members read and print: each program writes into files of the run's folder,
 * and the launcher copies whole lines to its own output, with the node's name in front.  What a
 * single program prints is copied as it is.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system.h"

/* Of one program: where the launcher is in its files, and the line that has no end yet. */
struct shown {
	int fds[2];
	char *line[2];
	size_t len[2];
};

static struct shown *all;
static int lost;	/* errno of the first output that could not be written; 0: none */
static int input = -1;	/* what the only program reads; -1: nothing */
static off_t input_at;	/* from there on */
static bool is_input_known;

static bool is_alone(const struct system *system)
{
	return system->num - (size_t)system_has_carrier(system) == 1;
}

/* Whose a line is need not be said of a single program, but to polycm explore. */
static bool has_label(const struct system *system, size_t program)
{
	return !is_alone(system) || system->programs[program].is_carrier ||
	       getenv(SYSTEM_RECORD_VARIABLE);
}

static void flush(void)
{
	if (fflush(stdout) && !lost)
		lost = errno;
}

/* Others may leave one open that nobody means. */
static void tell_pipe(const struct stat *st)
{
	int num = 0;

	if ((S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode)) && !getenv(SYSTEM_RECORD_VARIABLE) &&
	    !ioctl(STDIN_FILENO, FIONREAD, &num) && num > 0)
		tool_error("run: standard input is a pipe, which is not read: give a file (<FILE)");
}

/*
 * A file is the same in each run; from others nobody knows when something comes.  It is opened anew, so
 * that nobody can write to it, nor moves the position of whoever has started polycm.
 */
static void find_input(const struct system *system)
{
	struct stat st;

	is_input_known = true;
	if (!is_alone(system) || fstat(STDIN_FILENO, &st))
		return;
	if (!S_ISREG(st.st_mode)) {
		tell_pipe(&st);
		return;
	}
	input_at = lseek(STDIN_FILENO, 0, SEEK_CUR);
	input = open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC);
	if (input < 0)
		input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

int system_output_prepare(struct system *system)
{
	if (!is_input_known)
		find_input(system);
	all = tool_realloc(all, system->num, sizeof(*all));
	for (size_t i = 0; i < system->num; i++)
		all[i] = (struct shown){ .fds = { -1, -1 } };
	for (size_t i = 0; i < system->num; i++) {
		for (int stream = 0; stream < 2; stream++) {
			const int flags = O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC;
			char *path = tool_printf("%s/%zu.%d", system->folder, i, stream + 1);

			all[i].fds[stream] = open(path, flags, 0600);
			if (all[i].fds[stream] < 0) {
				tool_error("run: %s: %m", path);
				return EXIT_FAILURE;
			}
			free(path);
		}
	}
	return 0;
}

struct turn_files system_output_files(size_t program)
{
	struct turn_files files = { .program = (uint32_t)program };
	struct stat st;

	for (int stream = 0; stream < 2; stream++) {
		if (fstat(all[program].fds[stream], &st))
			continue;
		files.streams[stream].device = st.st_dev;
		files.streams[stream].inode = st.st_ino;
	}
	return files;
}

/* Again in each run. */
static bool take_input(void)
{
	int from = input >= 0 ? input : open("/dev/null", O_RDONLY | O_CLOEXEC);

	return from >= 0 && dup2(from, STDIN_FILENO) >= 0 &&
	       (input < 0 || lseek(STDIN_FILENO, input_at, SEEK_SET) == input_at);
}

int system_output_take(size_t program)
{
	if (take_input() && dup2(all[program].fds[0], STDOUT_FILENO) >= 0 &&
	    dup2(all[program].fds[1], STDERR_FILENO) >= 0)
		return 0;
	tool_error("run: standard input or output: %m");
	return EXIT_FAILURE;
}

static void print_line(const struct system *system, size_t program, int stream)
{
	struct shown *shown = &all[program];

	/* Both may be one file. */
	if (stream)
		flush();
	if (fprintf(stream ? stderr : stdout, "[%s] %.*s\n", system_name(&system->programs[program]),
		    (int)shown->len[stream], shown->line[stream]) < 0 && !lost)
		lost = errno;
	shown->len[stream] = 0;
}

static void print_piece(int stream, const char *text, size_t len)
{
	if (stream)
		flush();
	if (fwrite(text, 1, len, stream ? stderr : stdout) < len && !lost)
		lost = errno;
}

static void show(const struct system *system, size_t program, int stream, const char *text, size_t len)
{
	struct shown *shown = &all[program];

	if (system->hides)
		return;
	if (!has_label(system, program)) {
		print_piece(stream, text, len);
		return;
	}
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n') {
			print_line(system, program, stream);
			continue;
		}
		if (shown->len[stream] % 256 == 0)
			shown->line[stream] = tool_realloc(shown->line[stream],
							   shown->len[stream] + 256, 1);
		shown->line[stream][shown->len[stream]++] = text[i];
	}
}

static off_t *positions;

/* pread() with the file's own position: the members append with theirs, which they share. */
static void copy(const struct system *system, const struct turn_written *written)
{
	size_t at = written->program * 2 + written->stream;
	uint64_t left = written->len;
	char piece[4096];
	ssize_t num;

	if (!positions)
		positions = calloc(system->num * 2, sizeof(*positions));
	while (left && positions) {
		num = pread(all[written->program].fds[written->stream], piece,
			    left < sizeof(piece) ? left : sizeof(piece), positions[at]);
		if (num <= 0)
			break;
		positions[at] += num;
		left -= (uint64_t)num;
		show(system, written->program, (int)written->stream, piece, (size_t)num);
	}
}

int system_output_file(size_t program, int stream)
{
	return all[program].fds[stream];
}

bool system_output_empty(const struct system *system)
{
	for (size_t i = 0; i < system->num * 2; i++) {
		struct shown *shown = &all[i / 2];

		shown->len[i % 2] = 0;
		if (positions)
			positions[i] = 0;
		/* Members open them again, whatever others did to them. */
		if (ftruncate(shown->fds[i % 2], 0) || fchmod(shown->fds[i % 2], 0600)) {
			tool_error("run: output of %s: %m", system->programs[i / 2].node);
			return false;
		}
	}
	clearerr(stdout);
	clearerr(stderr);
	lost = 0;
	return true;
}

bool system_output_is_closed(void)
{
	return ferror(stdout) || ferror(stderr);
}

/* Who closes a pipe has read what it wants. */
bool system_output_is_lost(void)
{
	/* A message of the launcher's own. */
	if (!lost && ferror(stderr) && (fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY)
		lost = EBADF;
	if (!lost || lost == EPIPE)
		return false;
	errno = lost;
	return true;
}

void system_output_copy(const struct system *system)
{
	struct turn_segment *segment = system->segment;
	uint64_t shown = atomic_load(&segment->num_shown);

	/* As much as there may be; members go on meanwhile. */
	for (unsigned int i = 0; i < TURN_MAX_WRITTEN && shown != atomic_load(&segment->num_written) &&
	     !system_output_is_closed(); i++) {
		const struct turn_written written = segment->written[shown % TURN_MAX_WRITTEN];

		if (written.program < system->num && written.stream < 2)
			copy(system, &written);
		else if (written.stream == TURN_TOLD)
			system_tell(system, written.len);
		atomic_store(&segment->num_shown, ++shown);
	}
	flush();
}

void system_output_end(const struct system *system)
{
	system_output_copy(system);
	for (size_t i = 0; i < system->num * 2; i++) {
		/* What was written in a way that nobody counted. */
		const struct turn_written rest = {
			.program = (uint32_t)i / 2, .stream = i % 2, .len = UINT64_MAX,
		};

		copy(system, &rest);
	}
	for (size_t i = 0; i < system->num; i++)
		for (int stream = 0; stream < 2; stream++)
			if (all[i].len[stream])
				print_line(system, i, stream);
	flush();
}
