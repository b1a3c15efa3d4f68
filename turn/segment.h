/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/segment.h - the memory that the members of a system and its launcher share: whose turn it
 * is, the time, and who waits for what.
 *
 * One thread of all members runs at a time: the one that has the turn.  Only it writes here, so
 * there is no lock, and none that a dead process could leave behind.  The launcher has the turn
 * before the first and after the last one, and takes it from a member that died with it.  The
 * only words that others touch are `go', by which the turn is handed over, `wanted',
 * `asks_thread', `num_shown' and `load'.
 */
#ifndef TURN_SEGMENT_H
#define TURN_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TURN_MAX_THREADS 256u
#define TURN_MAX_MEMBERS 64u
#define TURN_MAX_WRITTEN 1024u
#define TURN_MAX_PREEMPTIONS 256u
#define TURN_MAX_CHOSEN 1024u
#define TURN_MAX_TOLD 32u
#define TURN_MAX_ADDRESSES 8u
#define TURN_MAX_NODE_ADDRESSES 512u
#define TURN_MAX_ENVIRONMENT 16384u
#define TURN_MAX_EVENTS 32768u
#define TURN_MAX_MARKS 32768u
#define TURN_MARK_EVERY 8192u
#define TURN_MAX_PATH 64u
#define TURN_MAX_CONNECTS 4096u
#define TURN_PORTS 65536u
#define TURN_MAX_TIMER_FDS 1024u
#define TURN_MAX_TERMINALS 256u
#define TURN_NOBODY UINT32_MAX	/* no thread; as the owner: the launcher */
#define TURN_NEVER UINT64_MAX
#define TURN_SECOND UINT64_C(1000000000)
#define TURN_BEGIN (1000 * TURN_SECOND)	/* the monotonic clock when a system begins */
#define TURN_DATE (UINT64_C(1767225600) * TURN_SECOND)	/* and the date: 2026-01-01 */

#define TURN_MAGIC UINT64_C(0x316e727574637970)	/* "pycturn1" */
#define TURN_VERSION 12u

/* Environment of a member: the segment's file, and the slot of its first thread. */
#define TURN_FILE_VARIABLE "LIBPOLYCM_TURN"
#define TURN_THREAD_VARIABLE "LIBPOLYCM_TURN_THREAD"

/* In place of a system call: a read of the time stamp counter (tsc.h). */
#define TURN_CALL_COUNTER 100001
/*
 * A thread gets this signal, with that value: does it wait for memory (spin.h)?  Nobody else uses it.
 * It must not be one of those that the kernel sends for an instruction, which would be lost where the
 * other is not handled yet.
 */
#define TURN_ASK_SIGNAL SIGSTKFLT
#define TURN_ASK_VALUE 0x706f6c6c
/* And if so, this is what it is in, in place of a system call. */
#define TURN_CALL_SPIN 100002

enum turn_state {
	TURN_FREE,
	TURN_READY,		/* waits for nothing but its turn */
	TURN_RUNS,
	TURN_DESCRIPTORS,	/* asks the kernel again after each change */
	TURN_FUTEX,
	TURN_ASLEEP,
	TURN_GONE,
};

/* What a thread does when its deadline has passed. */
enum turn_then {
	TURN_MOVES,		/* what the program wants */
	TURN_LOOKS,		/* it looks at what others did, and that is all (turn_tells.h) */
	TURN_POLLS,		/* it asks again for what did not come */
	TURN_TICKS,		/* what it has done many times, and nothing has come of it */
};

/* A word that threads wait on: of one member, or of memory that several map. */
struct turn_word {
	uint64_t space;		/* the member's number + 1, or device and inode of the file */
	uint64_t at;		/* the address, or the offset in the file */
};

/*
 * A place in the run of a thread: after so many calls that others can see, and so many locks after
 * the last of these.  Locks that are taken only to write a log do not change what comes later.
 */
struct turn_point {
	uint64_t call, lock;
};

struct turn_thread {
	_Alignas(64) _Atomic uint32_t go;	/* futex; 1: it has the turn */
	uint32_t state;		/* enum turn_state */
	uint32_t member;
	int32_t tid;		/* as the member sees it */
	uint64_t cleared;	/* address of the word that the kernel clears when it has ended */
	uint64_t deadline;	/* TURN_NEVER: none */
	uint64_t looked;	/* turn_segment.changes when it asked the kernel last */
	struct turn_word word;
	uint64_t address;	/* of the word, in its own process */
	uint32_t bitset;
	bool woken;		/* by another thread, not by its deadline */
	bool held;		/* it does not wait, but is held up (preempt.h) */
	bool interrupted;	/* it is to look whether a signal is there */
	bool polls;		/* its calls in a row found nothing */
	bool passed;		/* it let others go on, and waits for nothing */
	bool keeps;		/* the turn, until it has done several things */
	bool writes_own;	/* a log of polycm's, which changes nothing */
	bool serves;		/* it is the simulator's: only what it sends is something that happens */
	uint32_t then;		/* enum turn_then, of its wait */
	uint32_t then_next;	/* and of those of its next call, or of the one it is in */
	uint64_t looked_after;	/* turn_segment.moves at its last such look */
	_Atomic bool can_be_asked;	/* by the launcher, whether it spins (spin.h) */
	uint64_t since;		/* in the order of waiting */
	uint64_t calls;		/* that were trapped; its n-th is a place in its run */
	uint32_t idle;		/* calls in a row that brought nothing */
	uint32_t looks;		/* the last of them, which asked for the time */
	uint32_t idle_told;	/* how often it let others go on for them */
	uint32_t quiet;		/* calls in a row that nobody else sees */
	uint32_t yields;	/* and how often it let others go on for it */
	uint32_t ticks;		/* waits until their time-outs, since a call brought something */
	uint32_t ends;		/* reads in a row that found the end of a stream */
	uint32_t call;		/* what it is in, for people */
	uint64_t since_ns;	/* and since when */
	uint32_t purpose;	/* enum turn_purpose (turn_tells.h), for people */
	uint64_t arguments[6];
	uint64_t context;	/* its registers there: an ucontext_t in its memory; 0: none */
	uint32_t event;		/* its last call in the record, + 1; 0: it is not there */
	uint32_t number;	/* in its member: 1, 2, ... */
	struct turn_point point;	/* the last that it has passed (preempt.h) */
	struct turn_point preempt_at;	/* the next at which it is held up; call: TURN_NEVER: none */
	uint32_t point_of;	/* what it was before: a call */
};

/* A thread was, or is to be, held up at one of its points. */
struct turn_preemption {
	uint32_t process, thread;	/* numbers of its member and of it (turn_member.number) */
	uint32_t program;
	struct turn_point point;
	uint64_t ns;
	uint32_t call;		/* before which it happened, for people */
};

enum turn_life {
	TURN_UNUSED,
	TURN_STARTS,
	TURN_LIVES,
	TURN_OUTSIDE,		/* it has become a program that has no turns */
	TURN_ENDED,
};

/* The files that standard output and standard error of a program are, and of its children. */
struct turn_files {
	uint32_t program;	/* the member that the launcher started */
	struct { uint64_t device, inode; } streams[2];
};

/* One write to them, for who shows all of them in the order of turns. */
struct turn_written {
	uint32_t program;
	uint32_t stream;	/* 0: standard output, 1: standard error; or TURN_TOLD */
	uint64_t len;		/* or the number of what is told */
};

#define TURN_TOLD 2u

/* What a member asked for that it does not get, or not as it expects. */
enum turn_notice {
	TURN_TOO_MANY_MEMBERS,
	TURN_TOO_MANY_THREADS,
	TURN_HANDLES_SIGSYS,
	TURN_FILTERS_CALLS,
	TURN_IS_STATIC,
	TURN_IS_FOREIGN,
	TURN_GAINS_RIGHTS,
	TURN_IS_UNREADABLE,
	TURN_CANNOT_BE_OUTSIDE,
	TURN_CANNOT_BE_TRACED,
	TURN_CANNOT_SEE,
	TURN_WANTS_PIDS,
	TURN_TRACES,
	TURN_ASKS_URING,
	TURN_SETS_CLOCK,
};

/* It is told in the order of what is written. */
struct turn_told {
	uint32_t what;		/* enum turn_notice */
	uint32_t program;	/* whose output it stands in */
	char name[120];		/* of what did it, or its end, for people */
};

struct turn_member {
	uint32_t life;		/* enum turn_life */
	int32_t pid;		/* as members see it */
	bool is_filtered;	/* its calls are caught by a filter, which outlives exec */
	bool stopped;		/* by a signal, until SIGCONT: it has no turn */
	int32_t locked_by;	/* the process whose lock of a file it waits for; 0: none */
	uint32_t parent;	/* the member that forked it; TURN_NOBODY: the launcher */
	uint64_t random;	/* state of what it gets for random numbers */
	struct turn_files files;
	uint64_t alarm, alarm_interval;	/* that goes on over exec; 0: none */
	uint32_t num_threads;	/* that it ever had */
	uint32_t number;	/* of all that ever began: 1, 2, ...; slots are used again */
};

/* The addresses of the node that a program runs on, IPv4 as ::ffff:a.b.c.d. */
struct turn_host {
	uint32_t num;
	uint8_t addresses[TURN_MAX_ADDRESSES][16];
};

/* The launcher reads the pid after this: a new process may just have got the slot. */
static inline bool turn_is_alive(const struct turn_member *member)
{
	const uint32_t life = __atomic_load_n(&member->life, __ATOMIC_ACQUIRE);

	return life == TURN_STARTS || life == TURN_LIVES || life == TURN_OUTSIDE;
}

/* Of exec with a filter (page.h). */
enum turn_traced {
	TURN_NOT_TRACED,
	TURN_ASKS,		/* a member: to be traced */
	TURN_TRACED,
	TURN_REFUSED,		/* it cannot be traced */
	TURN_FAILED,		/* exec failed */
};

enum turn_load { TURN_NOT_LOADED, TURN_LOADS, TURN_LOADED, TURN_FORKS };

/* A program that the launcher runs again and again: it is loaded once, and forks its members. */
struct turn_program {
	_Atomic uint32_t load;	/* enum turn_load; futex */
	int32_t pid;		/* that it forked last, or a negative errno */
};

/* When a timer expires. */
struct turn_timing {
	uint64_t deadline, interval;	/* TURN_NEVER: not set; 0: once */
	int32_t clock;			/* clockid_t */
};

/* A timerfd (timer_fds.h). */
struct turn_timer_fd {
	struct turn_timing timing;
	uint64_t number;	/* that the kernel has for the file, + 1; 0: it has none */
	bool is_shared;		/* other processes have it, too, or had it */
};

/* A connect() over the simulated network (carried.h). */
struct turn_connect {
	uint64_t cookie;	/* of the socket (SO_COOKIE); 0: none */
	uint32_t number;	/* that no other one has */
	int32_t result;		/* 1: it is not known yet; 0 or a negative errno: nobody has taken it */
};

/* For whoever compares two runs: what happened, of which turns and most calls make the order. */
enum turn_event_kind { TURN_GIVEN, TURN_CALL, TURN_QUIET_CALL };

struct turn_event {
	uint32_t kind;		/* enum turn_event_kind */
	uint32_t slot;		/* of the thread */
	uint32_t program, process, thread;	/* numbers, as those of turn_preemption */
	uint32_t call;		/* that it makes; TURN_GIVEN: that it is in */
	uint64_t arguments[6];
	uint64_t turn, now;
	uint32_t returned;	/* so many events were before the call returned; 0: it did not */
	uint32_t has_path;	/* the number of the argument, from 1 on; 0: none is kept */
	int64_t result;
	uint64_t data;		/* a number of what it has read */
	char path[TURN_MAX_PATH];	/* or its end */
};

/* After each TURN_MARK_EVERY turns and calls. */
struct turn_mark {
	uint64_t hash, turns, now;
};

/*
 * A record of a run, of bounded size: marks of all of it, and all events of a part.  Members write it
 * where turn_segment.records says so; it takes no memory elsewhere.
 */
struct turn_record {
	uint64_t from;		/* events are kept behind so many turns and calls */
	uint64_t num_counted;	/* turns and calls among those kept */
	uint32_t num_events;
	int32_t statuses[TURN_MAX_MEMBERS];	/* of programs, from waitpid(); + 1: 0 is none */
	struct turn_mark marks[TURN_MAX_MARKS];
	struct turn_event events[TURN_MAX_EVENTS];
};

struct turn_segment {
	uint64_t magic;
	uint32_t version;
	uint32_t size;
	_Alignas(64) _Atomic uint32_t launcher_go;	/* futex; 1: the launcher has the turn */
	_Atomic uint32_t asks_thread;	/* the launcher is about to ask one */
	_Atomic uint32_t wanted;	/* by the launcher: a member was killed that has not the turn */
	_Atomic uint32_t launcher;	/* its process id, marked by the kernel when it has ended */
	uint32_t owner;		/* thread, or TURN_NOBODY */
	uint32_t num_threads, num_members;
	uint32_t num_begun;	/* members that ever were */
	uint64_t now;		/* ns of the monotonic clock */
	uint64_t until;		/* nobody runs later than that */
	uint32_t outside;	/* members that are: time is not faster than in reality meanwhile */
	uint64_t pace;		/* nor later than that; TURN_NEVER: nobody is outside */
	uint64_t shrunk;	/* calls that may have made a file shorter */
	uint64_t changes;	/* calls that may have made a descriptor ready */
	uint64_t waits;		/* counts, for `since' */
	uint64_t order;		/* state of what chooses among threads */
	uint64_t moves;		/* what happened but for looks and polls */
	uint64_t moved_at;	/* when that was last */
	uint64_t eventful_at;	/* and when it was more than a tick (order.h) */
	bool polls_rarely;	/* some thread does, since nothing happens */
	uint64_t turns;
	uint64_t stop_at;	/* before that turn the launcher has it once; TURN_NEVER: not */
	bool stopped;		/* it has it for that */
	bool asks;		/* it wants the turn before time moves */
	bool asked;		/* it has it for that */
	uint64_t calls;
	uint64_t hash;		/* over all turns: thread, time, call */
	uint64_t points;	/* of all threads */
	uint32_t chosen_program;	/* only its threads are held up; TURN_NOBODY: all */
	uint64_t preempt_at;	/* whoever passes that one of them is held up; TURN_NEVER: nobody */
	uint64_t preempt_seed;	/* state of what chooses for how long */
	uint32_t num_chosen, num_given, num_preempted;
	uint64_t chosen[TURN_MAX_CHOSEN];	/* among points of all threads */
	struct turn_preemption given[TURN_MAX_PREEMPTIONS], preempted[TURN_MAX_PREEMPTIONS];
	int32_t leaving;	/* thread that passed the turn on with its last call; 0: none */
	int32_t leaving_pid;
	uint64_t victims;	/* members that the turn's owner kills, one bit each */
	/* And those that are to be stopped, or go on, when the launcher gives the turn again. */
	uint64_t stopping, continuing;
	_Atomic uint32_t goes_on;	/* who was to stop did not, or has continued */
	bool sends_signals;	/* the kernel may, to any member, with what others do */
	uint32_t ended;		/* member + 1 that gives up the turn by ending; 0: none */
	uint32_t ports, names;	/* of sockets, that were chosen */
	bool chooses_itself;	/* some program, among sockets of one port (reuse.h) */
	bool reads_random;	/* somebody has opened a device of random numbers */
	uint64_t terminals[TURN_MAX_TERMINALS / 64];	/* pseudo ones that were opened, by number */
	uint32_t num_timer_fds;	/* that ever were */
	struct turn_timer_fd timer_fds[TURN_MAX_TIMER_FDS];
	bool watches_files;	/* somebody is told when a file changes */
	bool leaves_traces;	/* in namespaces: there can be no other run in them */
	bool records;
	bool uses_tcp;		/* of whose connections the kernel remembers ports for a while */
	/* Of a member, + 1, that gave up the turn to become a program outside; 0: none. */
	uint32_t becoming, becoming_thread, becoming_told;
	_Atomic uint32_t becomes;	/* futex, marked by the kernel when it is so; 0: it failed */
	/* And one that gave it up to be traced during exec. */
	_Atomic uint32_t traced;	/* enum turn_traced; futex */
	int32_t traced_pid, traced_tid;
	uint32_t traced_thread;	/* that had the turn */
	bool traced_is_spawn;	/* and that is to have it again, not the new program */
	/* A ring: num_written is the members', num_shown the launcher's. */
	_Atomic uint64_t num_written, num_shown;
	struct turn_written written[TURN_MAX_WRITTEN];
	uint32_t num_told;
	struct turn_told told[TURN_MAX_TOLD];
	struct turn_member members[TURN_MAX_MEMBERS];
	struct turn_host hosts[TURN_MAX_MEMBERS];	/* by the number of the program */
	uint32_t num_addresses;	/* of all nodes, as those of hosts */
	uint8_t addresses[TURN_MAX_NODE_ADDRESSES][16];
	bool carries_tcp;	/* over the simulated network */
	uint32_t carrier;	/* the program that does it */
	uint32_t last_connect;	/* the number of the last one */
	uint32_t num_connects;	/* places that were ever looked at: the next one among these */
	uint32_t num_held;	/* of which the result is not known */
	struct turn_connect connects[TURN_MAX_CONNECTS];
	uint16_t ports_for[TURN_PORTS];	/* peers see that port in place of this one; 0: this one */
	struct turn_thread threads[TURN_MAX_THREADS];
	/* Kept from run to run: by the slot of their first threads. */
	struct turn_program programs[TURN_MAX_MEMBERS];
	/* "NAME=VALUE" and "NAME" (it is not set) of this run; an empty line ends them. */
	char environment[TURN_MAX_ENVIRONMENT];
	struct turn_record record;	/* last; only where it is used there is memory for it */
};

#endif
