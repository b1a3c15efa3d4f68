/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system.h - between the files system*.c: polycm run with several programs, which share one virtual
 * time (turn/).  One thread; the launcher is the parent of all members.
 */
#ifndef TOOLS_SYSTEM_H
#define TOOLS_SYSTEM_H

#include <stdint.h>
#include <sys/types.h>

#include "include/programs.h"
#include "polycm.h"
#include "turn/segment.h"

/* Exit statuses of a system besides its members'. */
#define STATUS_STUCK 75		/* members wait, and nobody can end it */
#define STATUS_DIFFERS 76	/* a second run is not the same */

#define SYSTEM_SEGMENT "turn"	/* file in the folder that members see */

struct system_program {
	const char *node;
	const char *name;	/* or NULL */
	char **command;
	bool is_daemon;		/* it is ended when all others have */
	bool is_carrier;	/* it is ours, and carries TCP (system_carrier.c) */
	bool agree;		/* those with it must have the same result */
	int *expect;		/* statuses that are well; NULL: 0 */
	size_t num_expect;
	const char *after;	/* as it was given; NULL: in order */
	struct programs_begin begin;
	bool is_pending;	/* it is not known yet when it begins */
	bool has_waited;	/* once, with all of its threads */
	bool has_ended;
	uint32_t member, thread;	/* their numbers in the segment */
	pid_t pid;		/* of the process that was started for it */
	int status;		/* as a shell has it, once it has ended; 0: all is well */
};

/* Of a node in the scenario. */
struct system_address {
	char *node, *interface;
	bool is_ipv6;
	unsigned int prefix_len;
	uint8_t bytes[16];		/* IPv4 as ::ffff:a.b.c.d */
};

/* What became of a run, in memory that the launcher shares, and no member. */
struct system_course {
	bool is_whole;	/* it has ended, and not from outside or by a program that is wrong */
};

struct system {
	struct system_program *programs;
	size_t num;
	const char *const *values;	/* options of polycm run */
	bool from_file;			/* the programs are in the scenario file, which was checked */
	uint64_t until;			/* virtual ns */
	const char *killed;		/* the node whose program is killed; NULL: none */
	uint64_t kill_at;		/* before that turn */
	bool has_killed;
	char *folder;			/* of this run alone; members see its folder shm */
	const char *seen;		/* where: the same in each run, if possible */
	bool has_hosts;			/* members may be given a host name */
	bool has_network;		/* of its own */
	struct system_address *addresses;
	size_t num_addresses;
	bool has_own_nodes;		/* the scenario is one that the launcher has written */
	struct turn_segment *segment;
	struct system_course *course;	/* NULL: nobody asks for it */
	bool hides;		/* what programs print is not shown */
	bool records;		/* it is compared with another run */
	uint64_t record_from;	/* turn_record.from */
};

/* --- system_space.c: what of the machine the members see --- */

/* The launcher's process, to which members are all there is: 0 in it; else its pid.  Or -1. */
pid_t system_enter(struct system *system);
/* Before exec: the name of its host, no life without the launcher. */
void system_settle(const struct system *system, const struct system_program *program);

/* --- system_overlay.c: files that members change --- */

/* By polycm explore --own-files: its folder, whose files are the machine's. */
#define SYSTEM_FILES_VARIABLE "POLYCM_RUN_FILES"

bool system_overlay_is_wanted(const struct system *system);
/*
 * With mounts of their own: what the launcher and members change from here on in the working folder,
 * those for temporary files and the user's home, nobody else sees, and it goes with the launcher.
 * False after an error message.
 */
bool system_overlay_enter(const struct system *system);
/* Another run would find something that is not as it was. */
bool system_overlay_is_changed(void);

/* --- system_net.c: its network --- */

/* Into a network namespace with the addresses of all nodes; 0 or a negative errno. */
int system_net_enter(const struct system *system);

/* --- system_tcp.c --- */

/*
 * In such a network, where no process but the launcher uses sockets any more: nothing is left of
 * connections.  False: the kernel cannot do that.
 */
bool system_tcp_forget(void);
/* A process has ended: its peers know it. */
void system_tcp_settle(void);

/* --- system_nodes.c: the nodes as hosts --- */

void system_read_nodes(struct system *system, const char *scenario);
/* The names of its nodes, "server, client", to be freed; NULL: that node is one of them. */
char *system_nodes_without(const char *scenario, const char *node);
/* To the members. */
void system_show_hosts(const struct system *system);
/* A file as /etc/hosts, with the names of nodes; 0, or -1 and errno. */
int system_write_hosts(const struct system *system, const char *path);
/* All of them, in a message; or only if there are several, which are what programs name. */
void system_tell_nodes(const struct system *system);
void system_tell_own_nodes(const struct system *system);
/* 4 or 16 bytes. */
const void *system_address_bytes(const struct system_address *address);

/* --- system.c --- */

/* Can a node be called so? */
bool system_is_name(const char *node);
/* All of one run; its segment stays mapped, and what it printed is in its files. */
int system_run_once(struct system *system);
/* By a signal, which ended the run. */
bool system_is_interrupted(void);
/* 0 or an exit status: the options, with that scenario; NULL: without one. */
int system_check_options(const struct system *system, const char *scenario);

/* --- system_verify.c: two runs, which are to be the same --- */

/* The status of both, or STATUS_DIFFERS. */
int system_verify(struct system *system);

/* --- system_compare.c: the first event in which the records of two runs differ --- */

struct system_difference {
	const struct turn_segment *segments[2];
	const struct turn_event *events[2];	/* NULL: that run has ended before it */
	const struct turn_event *hints[2];	/* before it: another call or result; or NULL */
	bool is_known;		/* in what is kept of events; else between these turns and calls: */
	uint64_t begin, end;
};

/* False: they do not differ. */
bool system_compare(const struct turn_segment *const segments[2], struct system_difference *ret);

/* The calls before it are the same, and the kernel answered one of them with something else. */
bool system_has_cause(const struct system_difference *difference);

/* --- system_difference.c --- */

/* first: a run with all marks of what was compared; why: the turn is not known, after "and". */
void system_tell_difference(const struct system *system, const struct system_difference *difference,
			    const struct turn_segment *first, const char *why);
void system_tell_hint(const struct system *system, const struct system_difference *difference);

/* --- system_files.c: the trace and the capture are of the whole run --- */

#define SYSTEM_NUM_FILES 2u

void system_files_begin(const struct system *system);
void system_files_end(const struct system *system);
/* One without a name, which programs do not inherit; NULL and errno: it cannot be. */
FILE *system_files_new(void);
/* *ret: a copy of it as it is now; NULL: it is none, or no file.  0 or a negative errno. */
int system_files_copy(const struct system *system, size_t i, FILE **ret);
/* As it was then. */
void system_files_restore(const struct system *system, size_t i, FILE *copy);
const char *system_files_name(size_t i);
bool system_files_has_lines(size_t i);

/* --- system_carrier.c --- */

/* If the scenario has tcp = true; 0 or an exit status. */
int system_add_carrier(struct system *system);
bool system_has_carrier(const struct system *system);
/* In the launcher, which knows what network there is. */
void system_check_carrier(const struct system *system);
bool system_carries_tcp(const struct system *system);

/* --- system_folder.c --- */

/* 0 or an exit status; the process that made it holds it. */
int system_folder_make(struct system *system);
void system_folder_remove(const char *folder);
/* Those of launchers that were killed. */
void system_folder_sweep(void);
/* Before the first of several runs: what is in it now is there in each; false: it cannot be. */
bool system_folder_keep(const struct system *system);
/* No member has put something else in place of that. */
bool system_folder_is_whole(const struct system *system);
/* As it was then, but for the segment; false after an error message. */
bool system_folder_empty(const struct system *system);

/* --- system_start.c --- */

/* A folder with the segment and, where no scenario is given, one with the nodes; 0 or a status. */
int system_prepare(struct system *system);
/* As an option or, under polycm explore, in the environment; NULL: not given. */
const char *system_value(const struct system *system, size_t option);
/* Programs are on nodes, and no scenario is given, or one without nodes. */
bool system_needs_nodes(const struct system *system);
/*
 * A scenario file with a node for each name, in their order, and all of the one that is given;
 * transport: NULL: roce.
 */
int system_write_scenario(const struct system *system, const char *transport, const char *path);
/* All programs, each waiting for its first turn; 0 or an exit status. */
int system_start(struct system *system);
/* In the process that becomes the program, whose first thread has that slot. */
_Noreturn void system_become(const struct system *system, const struct system_program *program,
			     uint32_t thread);
/* Its program, or what it was forked from. */
const struct system_program *system_program_of(const struct system *system, uint32_t member);

/* --- system_preempt.c: where threads are held up, by the seed or as a scenario says --- */

/*
 * For polycm explore: the file to which the launcher adds what happened, and the number of points
 * that a run passes before the last programs, over which the seed chooses; without it nothing is
 * chosen.
 */
#define SYSTEM_RECORD_VARIABLE "POLYCM_RUN_RECORD"
#define SYSTEM_POINTS_VARIABLE "POLYCM_RUN_POINTS"
#define SYSTEM_POINTS_LINE "points "

/* scenario: NULL: none.  0 or an exit status. */
int system_preempt_prepare(const struct system *system, const char *scenario, uint64_t seed);
/* The file is opened before programs begin, since no more is to be written to it when the last do. */
int system_preempt_begin_record(void);
/* Before the last programs begin. */
void system_preempt_end_choice(const struct system *system);
int system_preempt_record(const struct system *system);

/* --- system_programs.c: those of a scenario file --- */

/* What the simulator refuses may be among them, or left out. */
void system_read_programs(struct system *system, const char *path);

/* --- system_begin.c --- */

/* The first thread of each program is to wait for its time, or for other programs. */
void system_set_begin(struct system *system);
/* turn_order_next(), before which those begin that can. */
uint32_t system_next(struct system *system);

/* --- system_ends.c: what an end says of a system --- */

/* By name, or by node. */
const char *system_name(const struct system_program *program);
bool system_is_named(const struct system_program *program, const char *name);
/* Is it over but for daemons? */
bool system_is_over(const struct system *system);
/* It has ended, with what waitpid() says. */
void system_ended(struct system *system, struct system_program *program, int status);
/* The limit of virtual time is reached, and it has not begun, but would later. */
bool system_begins_too_late(const struct system *system, const struct system_program *program);
/* Nobody can go on: says who of the programs never began, or is not served. */
void system_report_unserved(const struct system *system);
/* All have ended: the first status that is not well, or what they do not agree on. */
int system_status(const struct system *system);

/* --- system_lines.c: what differs between two files --- */

/*
 * 0 or a negative errno.  Both are read from their beginnings.  The number is of a line or a byte,
 * from 1 on; 0: they do not differ.  ret_lines: how both have the line, "A | B", to be freed, or NULL.
 */
int system_differ(int a, int b, unsigned int *ret_number, char **ret_lines);
int system_differ_bytes(int a, int b, uint64_t *ret_at);

/* --- system_outside.c: programs into which nothing can be preloaded --- */

/* 0 or an exit status: it is to be one of the system. */
int system_check_program(const struct system_program *program);
/* A member becomes such a program; false: it could not, and is to have the turn again. */
bool system_let_out(struct system *system);
/*
 * Nobody can go on now but who is outside: a moment of real time, after which others look again.
 * False: it was longer than the limit of virtual time.
 */
bool system_await_outside(const struct system *system);
/* One that was outside has ended. */
void system_end_outside(struct turn_segment *segment);

/* --- system_traced.c: exec of members whose calls are caught by a filter --- */

/* The member that gave up the turn for it goes on as a program; is to have the turn; or has ended. */
enum system_traced { SYSTEM_RUNS, SYSTEM_NEEDS_TURN, SYSTEM_HAS_ENDED };
enum system_traced system_trace(struct system *system);

/* --- system_sound.c --- */

/* Can what members wrote be used? */
bool system_is_sound(const struct turn_segment *segment);
/* --- system_counter.c --- */

/* In /proc/cpuinfo: how fast the processor's time stamp counter counts. */
void system_show_counter(const struct system *system);
/* If reads of the processor's time stamp counter are real. */
void system_tell_counter(void);

/* --- system_busy.c --- */

/* Of a thread, as the system shows it; false: it is not known. */
bool system_read_name(int32_t pid, int32_t tid, char name[16]);

/* What a thread had of the processor until then. */
struct system_busy {
	uint64_t at;		/* ns of real time; 0: nobody has looked */
	bool is_known;
	uint64_t used, waited;	/* ns: it ran, and it waited to run */
	char state;		/* as ps shows it */
};

void system_look_at_busy(const struct system *system, uint32_t number, uint64_t now,
			 struct system_busy *ret);
/*
 * Why it makes no call, between these two looks, in words that follow "for 10 s of real time"; pause:
 * so long the launcher itself did not run.  To be freed.
 */
char *system_busy_words(const struct system_busy *before, const struct system_busy *after,
			uint64_t pause);
/* Of the thread that has the turn: it made no call for so long, and since before that look. */
void system_tell_busy(const struct system *system, uint32_t number, int seconds,
		      const struct system_busy *before, uint64_t now, uint64_t pause);

/* --- system_asks.c --- */

struct system_asks {
	uint64_t progress;	/* of all members */
	uint64_t since;		/* ns of real time */
	uint64_t wait;
};

/* Often: asks the owner of the turn, if it made no call for long, whether it waits for memory. */
void system_ask(struct system *system, struct system_asks *asks, uint64_t now);

/* --- system_turns.c --- */

/*
 * Those that stop a run.  They are to be blocked until then: the first process of a namespace gets
 * none that it has no handler for.
 */
void system_catch_signals(void);
/* By such a signal, or since nobody reads its output any more. */
bool system_is_stopped(void);
/* Until all have ended; the exit status. */
int system_run(struct system *system);

/* --- system_deaths.c --- */

/* Has it ended?  wait: until it has. */
bool system_has_ended(pid_t pid, bool wait);
/*
 * Whom the turn's owner has killed, or who gave the turn up by ending: at once with that.  False: one
 * of them lives on.
 */
bool system_bury_awaited(struct system *system);
/* Those that were killed; false: there are none. */
bool system_bury_dead(struct system *system);

/* --- system_stops.c --- */

/* A member has sent SIGSTOP or SIGCONT to some, or stops itself: the turn goes on when that is so. */
void system_await_stops(struct system *system);
/* Some that had stopped were continued by the kernel, or from outside; true: there are such. */
bool system_find_continued(struct system *system);
/* What --kill asked for. */
void system_kill_node(struct system *system);

/* --- system_stacks.c: where threads wait --- */

#define SYSTEM_REGISTERS 17u

/* A copy. */
struct system_stack {
	pid_t pid;
	uint64_t registers[SYSTEM_REGISTERS];	/* by their numbers in DWARF; the last: where it is */
	uint64_t begin;		/* the address of the bytes */
	unsigned char *bytes;
	size_t len;		/* 0: it cannot be read */
};

/*
 * Of threads in those slots: lines with a function each, the innermost first, or NULL.  All to be
 * freed.
 */
char **system_stacks(const struct system *system, const uint32_t *slots, size_t num);

/* --- system_unwind.c --- */

/* In a process of its own: "NUMBER\n", the lines and '\0' for each whose stack says something. */
void system_unwind(const struct system_stack *stacks, size_t num, FILE *to);

/* --- system_waits.c --- */

#define SYSTEM_INDENT "    "	/* of lines about a wait: since when, and the stack */

/*
 * "server: rping, process 1, thread 2", by numbers as those of preemptions: a thread's is that in its
 * process.  To be freed.
 */
char *system_who(const struct system *system, uint32_t member, uint32_t thread);
/* Nobody can go on, or not before the limit of virtual time. */
void system_report_waits(const struct system *system);

/* --- system_calls.c: system calls in words --- */

#define SYSTEM_ARGUMENTS 6u

/* NULL: no such call is known. */
const char *system_call_name(uint64_t number);
/* How many arguments it has, at most SYSTEM_ARGUMENTS. */
unsigned int system_call_arguments(uint64_t number);
/* With its arguments; to be freed. */
char *system_call_words(const struct turn_event *event);
/* In quotes; to be freed. */
char *system_call_path(const struct turn_event *event);

/* --- system_told.c --- */

/* What a member cannot do here, which is that number of the segment's. */
void system_tell(const struct system *system, uint64_t number);

/* --- system_output.c: what members print, with names in front --- */

/* Files in the run's folder; 0 or an exit status. */
int system_output_prepare(struct system *system);
struct turn_files system_output_files(size_t program);
/* In the program's process, before exec; 0 or an exit status. */
int system_output_take(size_t program);
void system_output_copy(const struct system *system);
/* The file of what a program printed; the caller leaves it open. */
int system_output_file(size_t program, int stream);
void system_output_end(const struct system *system);
/* For another run; false after an error message. */
bool system_output_empty(const struct system *system);
/* Nobody reads it any more, or it cannot be written. */
bool system_output_is_closed(void);
/* It could not be written, and errno says why. */
bool system_output_is_lost(void);

/* --- system_again.c: several runs of the same programs, for polycm explore --- */

/* Is it polycm explore that asks?  Early: nobody is to inherit its socket. */
void system_again_begin(void);
/* In the launcher's process, before the first run: is it asked for more than one, and can make them? */
void system_again_find_out(const struct system *system);
bool system_again_is_possible(void);
/* All programs are loaded; 0 or an exit status. */
int system_again_load(struct system *system);
/* The process of a program, for this run. */
pid_t system_again_start(struct system *system, size_t program);
/* In a program that is loaded: what runs change has a place in its environment. */
void system_again_set_environment(void);
/* All processes of the run are ended; none is left but the programs that are loaded. */
void system_again_end_all(void);
/* Tells the status; true: there is another run. */
bool system_again(struct system *system, int status);

#endif
