/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scene_peer.c - owns what plays beside the scenario: a second thread, a
 * second process, the link's commands.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scene_internal.h"

static pthread_t thread;
static bool thread_runs;
static void (*thread_play)(void);

static pid_t peer;
static FILE *peer_lines;
static int signal_in = -1, signal_out = -1;
static bool link_changed, link_is_down;

/* --- A thread. --- */

static void *thread_main(void *unused)
{
	(void)unused;
	trace_own();
	thread_play();
	return trace_own_ends();
}

void beside(void (*play)(void))
{
	thread_play = play;
	errno = pthread_create(&thread, NULL, thread_main, NULL);
	if (errno)
		end_failed("pthread_create");
	thread_runs = true;
}

void join(void)
{
	void *lines;

	if (!thread_runs)
		return;
	thread_runs = false;
	errno = pthread_join(thread, &lines);
	if (errno)
		end_failed("pthread_join");
	trace_raw(lines);
	free(lines);
}

/* --- A process. --- */

static void peer_main(void (*play)(void), int lines)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(lines, STDOUT_FILENO) < 0)
		_exit(1);
	watchdog(120);
	play();
	scene_end();
	_exit(0);
}

void start_peer(void (*play)(void))
{
	int there[2], back[2], lines[2];

	fflush(NULL);
	if (pipe(there) || pipe(back) || pipe(lines))
		end_failed("pipe");
	peer = fork();
	if (peer < 0)
		end_failed("fork");
	if (!peer) {
		signal_in = there[0];
		signal_out = back[1];
		close(there[1]);
		close(back[0]);
		close(lines[0]);
		peer = -1;
		peer_main(play, lines[1]);
	}
	signal_in = back[0];
	signal_out = there[1];
	close(there[0]);
	close(back[1]);
	close(lines[1]);
	peer_lines = fdopen(lines[0], "r");
}

void tell(void)
{
	if (write(signal_out, "", 1) != 1)
		end_failed("tell");
}

void await(void)
{
	char byte;
	ssize_t len;

	do
		len = read(signal_in, &byte, 1);
	while (len < 0 && errno == EINTR);
	if (len == 1)
		return;
	errno = len ? errno : EPIPE;
	end_failed("await: the other process has ended");
}

static void peer_ended(void)
{
	char line[2048];
	int status;

	while (fgets(line, sizeof(line), peer_lines))
		say("| %.*s", (int)strcspn(line, "\n"), line);
	fclose(peer_lines);
	while (waitpid(peer, &status, 0) < 0 && errno == EINTR)
		;
	peer = 0;
	/* What the kernel has still to tell others about it. */
	pass_ms(100);
	if (WIFSIGNALED(status))
		say("| killed by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status))
		say("| ended with status %d", WEXITSTATUS(status));
	close(signal_in);
	close(signal_out);
}

void peer_joined(void)
{
	if (peer > 0)
		peer_ended();
}

void peer_killed(int signal)
{
	if (peer > 0) {
		kill(peer, signal);
		peer_ended();
	}
}

/* --- The link. --- */

/* SCENARIO_LINK is a command: "cut", "mend", "loss PERCENT" and so on follow. */
static void link_command(const char *what)
{
	const char *command = getenv("SCENARIO_LINK");
	char line[512];

	if (!command || !*command)
		end_skipped("no command for the link");
	snprintf(line, sizeof(line), "%s %s >&2", command, what);
	fflush(NULL);
	if (system(line)) /* NOLINT: the runner's own command */
		end_failed(line);
}

void link_cut(void)
{
	if (!sim_link(1, 0, 0))
		link_command("cut");
	link_changed = true;
}

void link_loses(unsigned int percent)
{
	char what[32];

	snprintf(what, sizeof(what), "loss %u", percent);
	if (!sim_link(percent / 100.0, 0, 0))
		link_command(what);
	link_changed = true;
}

void link_duplicates(void)
{
	if (!sim_link(0, 1, 0))
		link_command("duplicate");
	link_changed = true;
}

void link_delays(unsigned int ms)
{
	char what[32];

	snprintf(what, sizeof(what), "delay %u", ms);
	if (!sim_link(0, 0, ms))
		link_command(what);
	link_changed = true;
}

void link_down(void)
{
	if (!sim_link_carrier(false))
		link_command("down");
	link_is_down = true;
}

void link_up(void)
{
	if (!sim_link_carrier(true))
		link_command("up");
	link_is_down = false;
}

void link_mended(void)
{
	if (!sim_link(0, 0, 0))
		link_command("mend");
	link_changed = false;
}

void peers_end(void)
{
	if (link_is_down)
		link_up();
	if (link_changed)
		link_mended();
	join();
	peer_joined();
}
