/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explore_ends.c - polycm explore: how a program ended, and if it did not end, who
 * waits for what.
 *
 * In virtual time a wait that nothing can end fails, and polycm logs it.  If a program
 * does not end for another reason, its threads are examined at the time limit: which
 * ones compute, and in which system calls the others wait.
 */
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "explore.h"

#define WAITS " waits for what can never happen: "
#define WAITS_LONGER " waits longer than the limit of virtual time: "
#define WAITS_FOR_ACK "for ever, since there is no other thread"
#define LISTENS " (listens, and nobody asks)"
#define POLLS "the program polls, but nothing is left that could happen"

/* ------------------------------------------------------------------------
 * What polycm said.
 */

static const char *words_of(const char *line)
{
	static const char *const levels[] = { "polycm: error: ", "polycm: warn: " };

	for (unsigned int i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (!strncmp(line, levels[i], strlen(levels[i])))
			return line + strlen(levels[i]);
	return NULL;
}

const char *explore_find_wait(const char *line, const char **ret_what)
{
	static const char *const waits[] = { WAITS, WAITS_LONGER };
	const char *found = NULL;

	for (unsigned int i = 0; !found && i < sizeof(waits) / sizeof(waits[0]); i++) {
		found = strstr(line, waits[i]);
		*ret_what = found ? found + strlen(waits[i]) : NULL;
	}
	return found;
}

static bool is_about_wait(const char *words, bool polls)
{
	const char *what;

	return explore_find_wait(words, &what) || strstr(words, WAITS_FOR_ACK) ||
	       (polls && strstr(words, POLLS));
}

/*
 * If several threads wait, their order in the log is random.  Prefer one that does not only
 * listen, and of several always the same one.
 */
static bool is_better(const char *wait, const char *than)
{
	bool listens = strstr(wait, LISTENS), other = strstr(than, LISTENS);

	return listens != other ? other : strcmp(wait, than) < 0;
}

/* The best of these lines, except the one that the program has without faults; or NULL. */
static char *find_wait(const char *output, bool polls, const char *usual)
{
	FILE *file = fopen(output, "re");
	char *line = NULL, *found = NULL, *wait;
	const char *words;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0) {
		words = words_of(line);
		if (!words || !is_about_wait(words, polls))
			continue;
		line[strcspn(line, "\n")] = '\0';
		wait = tool_strdup(words);
		explore_blur(wait);
		if ((usual && !strcmp(wait, usual)) || (found && !is_better(wait, found))) {
			free(wait);
			continue;
		}
		free(found);
		found = wait;
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

char *explore_usual_wait(const char *output)
{
	return find_wait(output, false, NULL);
}

static void classify_wait(const struct explore *explore, struct explore_run *run)
{
	struct explore_result *result = &run->result;
	char *wait = find_wait(run->output, result->end == ENDED_BY_TIME, explore->usual_wait);

	if (!wait)
		return;
	if (result->end == ENDED_BADLY)
		result->end = ENDED_WAITING;
	else if (result->end == ENDED_BY_SIGNAL)
		result->end = ENDED_WAITING_BY_SIGNAL;
	snprintf(result->wait, sizeof(result->wait), "%s", wait);
	free(wait);
}

void explore_classify(const struct explore *explore, struct explore_run *run)
{
	if (run->result.end == ENDED_WELL || run->result.end == NOT_STARTED)
		return;
	classify_wait(explore, run);
	if (explore->is_system && run->result.end != ENDED_BY_TIME)
		explore_classify_system(run);
}

/* ------------------------------------------------------------------------
 * What a program does that is still there.
 */

static const struct {
	long number;
	const char *name;
} calls[] = {
#ifdef SYS_poll
	{ SYS_poll, "poll" },
#endif
#ifdef SYS_select
	{ SYS_select, "select" },
#endif
#ifdef SYS_epoll_wait
	{ SYS_epoll_wait, "epoll_wait" },
#endif
#ifdef SYS_pause
	{ SYS_pause, "pause" },
#endif
#ifdef SYS_accept
	{ SYS_accept, "accept" },
#endif
	{ SYS_ppoll, "poll" },
	{ SYS_pselect6, "select" },
	{ SYS_epoll_pwait, "epoll_wait" },
	{ SYS_futex, "futex (a mutex, a condition or a thread's end)" },
	{ SYS_wait4, "wait4 (for a child process)" },
	{ SYS_waitid, "waitid (for a child process)" },
	{ SYS_nanosleep, "sleep" },
	{ SYS_clock_nanosleep, "sleep" },
	{ SYS_rt_sigtimedwait, "sigwait" },
	{ SYS_rt_sigsuspend, "sigsuspend" },
	{ SYS_read, "read" },
	{ SYS_write, "write" },
	{ SYS_recvfrom, "recv" },
	{ SYS_recvmsg, "recvmsg" },
	{ SYS_connect, "connect" },
	{ SYS_flock, "flock" },
};

static bool read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool read = file && fgets(line, (int)size, file);

	if (file)
		fclose(file);
	return read;
}

static const char *call_of(const char *line)
{
	long number;

	if (!isdigit((unsigned char)*line))
		return NULL;
	number = strtol(line, NULL, 10);
	for (unsigned int i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].number == number)
			return calls[i].name;
	return NULL;
}

static void append(char *text, size_t size, const char *more)
{
	size_t len = strlen(text);

	if (!strstr(text, more))
		snprintf(text + len, size - len, "%s%s", len ? ", " : "", more);
}

/* Its name and the letter of its state; false: it is not there any more. */
static bool read_state(const char *folder, const char *thread, char *line, size_t size,
		       const char **ret_name, const char **ret_state)
{
	char *path = tool_printf("%s/%s/stat", folder, thread);
	bool is_read = read_line(path, line, size) && (*ret_name = strchr(line, '(')) &&
		       (*ret_state = strrchr(line, ')'));

	free(path);
	if (!is_read)
		return false;
	*ret_name += 1;
	*ret_state += 2;
	return true;
}

/*
 * "ping computes", "ping waits in futex".  In a system all threads but one wait for their turn, in
 * a futex: then only the others are of interest.  These look each second whether the launcher lives
 * (turn/hand.c), so who runs is looked at again.
 */
static void describe_thread(const char *folder, const char *thread, bool is_member, char *text,
			    size_t size)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	char *path, line[512], words[200];
	const char *name, *state, *call = NULL;
	bool runs, is_there;
	long number = -1;

	for (int look = 0; (is_there = read_state(folder, thread, line, sizeof(line), &name, &state)) &&
			   *state == 'R' && is_member && look < 5; look++)
		nanosleep(&pause, NULL);
	if (!is_there)
		return;

	runs = *state == 'R';
	snprintf(words, sizeof(words), "%.*s", (int)(state - 2 - name), name);
	path = tool_printf("%s/%s/syscall", folder, thread);
	if (!runs && read_line(path, line, sizeof(line))) {
		number = strtol(line, NULL, 10);
		call = call_of(line);
	}
	free(path);
	if (is_member && number == SYS_futex)
		return;
	snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%s",
		 runs ? " computes" : call ? " waits in " : " waits", call ? call : "");
	append(text, size, words);
}

static void describe_process(const char *process, bool is_member, char *text, size_t size)
{
	char *folder = tool_printf("/proc/%s/task", process);
	DIR *threads = opendir(folder);
	struct dirent *thread;

	while (threads && (thread = readdir(threads)))
		if (isdigit((unsigned char)*thread->d_name))
			describe_thread(folder, thread->d_name, is_member, text, size);
	if (threads)
		closedir(threads);
	free(folder);
}

/* Its parent and its process group; false: it is not there any more. */
static bool read_kin(int process, int *ret_parent, int *ret_group)
{
	char *path = tool_printf("/proc/%d/stat", process), line[512];
	const char *state = NULL;

	if (read_line(path, line, sizeof(line)))
		state = strrchr(line, ')');
	free(path);
	return state && sscanf(state + 1, " %*c %d %d", ret_parent, ret_group) == 2;
}

/* Or of another group that one of it has made, as each program of a system is. */
static bool is_of_group(int process, pid_t group, bool *ret_is_member)
{
	int parent, its;

	*ret_is_member = false;
	while (process > 1 && read_kin(process, &parent, &its)) {
		if (its == group)
			return true;
		*ret_is_member = true;
		process = parent;
	}
	return false;
}

/* Processor time of the process so far, in ns. */
static uint64_t used_by(const char *process)
{
	char *path = tool_printf("/proc/%s/stat", process), line[512];
	unsigned long long user, system;
	const char *state = NULL;

	if (read_line(path, line, sizeof(line)))
		state = strrchr(line, ')');
	free(path);
	if (!state || sscanf(state + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
			     &user, &system) != 2)
		return 0;
	return (user + system) * (EXPLORE_SECOND / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Without the launcher of a system, if it is one: it only waits. */
uint64_t explore_describe_group(pid_t group, bool is_system, char *text, size_t size)
{
	DIR *processes = opendir("/proc");
	struct dirent *process;
	uint64_t used = 0;
	bool is_member;

	*text = '\0';
	while (processes && (process = readdir(processes))) {
		if (!isdigit((unsigned char)*process->d_name) ||
		    !is_of_group(atoi(process->d_name), group, &is_member) ||
		    !(is_member || !is_system))
			continue;
		describe_process(process->d_name, is_system, text, size);
		used += used_by(process->d_name);
	}
	if (processes)
		closedir(processes);
	return used;
}

bool explore_is_blocked(const char *text)
{
	return strstr(text, " waits") != NULL;
}

/* ------------------------------------------------------------------------
 * Words.
 */

/* Who waits, not what for: that has more or less in it with other faults. */
static size_t waiter(const char *wait)
{
	const char *end = strstr(wait, " waits ");

	return end ? (size_t)(end - wait) : strlen(wait);
}

bool explore_same(const struct explore_result *a, const struct explore_result *b)
{
	if (a->end != b->end)
		return false;
	switch (a->end) {
	case ENDED_WAITING:
	case ENDED_WAITING_BY_SIGNAL:
		return waiter(a->wait) == waiter(b->wait) &&
		       !strncmp(a->wait, b->wait, waiter(a->wait));
	case ENDED_BY_TIME:
		return true;
	case ENDED_DAEMON:
	case ENDED_UNSERVED:
	case ENDED_PROGRAM:
	case ENDED_APART:
		return explore_same_system(a, b);
	default:
		return a->number == b->number;
	}
}

/* The address of a lock is blurred, so it says nothing. */
static size_t len_without_place(const char *what)
{
	static const char place[] = ", at #";
	const size_t len = strlen(what), end = sizeof(place) - 1;

	return len > end && !strcmp(what + len - end, place) ? len - end : len;
}

/* "poll waits for ever: event channel ..." */
static void wait_words(const char *wait, char *words, size_t size)
{
	const char *what = strstr(wait, WAITS);

	if (what)
		snprintf(words, size, "%.*s waits for ever: %.*s", (int)(what - wait), wait,
			 (int)len_without_place(what + strlen(WAITS)), what + strlen(WAITS));
	else if (strstr(wait, WAITS_LONGER))
		snprintf(words, size, "%s", wait);
	else
		snprintf(words, size, "a wait without end: %s", wait);
}

static void unserved_words(const char *how, char *words, size_t size)
{
	const char *begin = "not served any more: ", *what;

	snprintf(words, size, "%s%s", begin, how);
	if (explore_find_wait(how, &what))
		wait_words(how, words + strlen(begin), size - strlen(begin));
}

const char *explore_words(const struct explore_result *result)
{
	static char words[sizeof(result->wait) + sizeof(result->before) + 100];
	size_t len;

	switch (result->end) {
	case ENDED_WELL:
		return "success";
	case ENDED_BADLY:
		snprintf(words, sizeof(words), "exit status %d", result->number);
		return words;
	case ENDED_BY_SIGNAL:
		snprintf(words, sizeof(words), "signal %d (%s)", result->number,
			 strsignal(result->number));
		return words;
	case ENDED_WAITING:
	case ENDED_WAITING_BY_SIGNAL:
		wait_words(result->wait, words, sizeof(words));
		len = strlen(words);
		if (*result->before)
			snprintf(words + len, sizeof(words) - len, "; before that %s", result->before);
		return words;
	case ENDED_DAEMON:
	case ENDED_PROGRAM:
	case ENDED_APART:
		return result->wait;
	case ENDED_UNSERVED:
		unserved_words(result->wait, words, sizeof(words));
		return words;
	case ENDED_BY_TIME:
		snprintf(words, sizeof(words), "does not end: %s", result->wait);
		return words;
	default:
		snprintf(words, sizeof(words), "not started: %s", strerror(result->number));
		return words;
	}
}
