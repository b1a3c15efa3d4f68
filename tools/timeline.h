/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline.h - polycm timeline: traces become items (timeline_read.c), of the same
 * hosts (timeline_hosts.c) and one clock (timeline_clocks.c); those of a packet are
 * brought together (timeline_pairs.c), items that are asked for
 * (timeline_select.c) become rows of a ladder diagram (timeline_rows.c, in the
 * words of timeline_words.c), which are drawn in the terminal (timeline_text.c)
 * or as SVG (timeline_svg.c).
 */
#ifndef TIMELINE_H
#define TIMELINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <uthash.h>

#define TIMELINE_MAX_COLUMNS 64
#define TIMELINE_COPY_BITS 16
#define TIMELINE_LATE 1000000u	/* ns: a message that takes so long is two rows */
#define TIMELINE_NONE SIZE_MAX
#define TIMELINE_MAX_TIME ((uint64_t)1 << 59)	/* ns: 18 years */
#define TIMELINE_HOST_SHIFT 40	/* above the numbers of ids and QPs */

enum item_kind {
	ITEM_EVENT, ITEM_CALL, ITEM_STATE, ITEM_SEND, ITEM_RECV, ITEM_TIMER, ITEM_FAULT,
	ITEM_WORLD,		/* a node, port, device or MAC: what happened to it */
	ITEM_ADDRESS,
	ITEM_HOST, ITEM_CLOCK,	/* whose trace it is, and what another host's clock shows */
};

/* A line of the trace. */
struct item {
	enum item_kind kind;
	uint64_t time;
	uint64_t packet;	/* SEND, RECV; after timeline_pair() with the copy's number */
	size_t file, line;
	int writer, host, far;	/* hosts: of whoever wrote it, of column and of peer; far -1: nobody's */
	long long process;	/* -1: the line has none */
	const char *text;	/* event, state, message, timer or action; in json */
	int column, peer;	/* where it happens; SEND, RECV: the other end, -1: nobody */
	size_t other;		/* the RECV of a SEND, the SEND of a RECV; NONE: not in the trace */
	bool lost;		/* SEND: it never arrives */
	bool selected;
	json_t *json;
};

struct column {
	char *name;		/* of the node, with its process or role */
	char *about;		/* devices and addresses; may be empty */
	long long first_id;	/* whose lines are here; -1: none, -2: several */
	int host;
	long long process;	/* -1: of none, or of several */
	bool untraced;		/* no line is from there */
	bool kernel;		/* another host's process does what is here */
};

/* What a process runs. */
struct program {
	size_t file;
	long long process;
	unsigned int lives;	/* processes that had the number, one after the other */
	char *name;
};

/* A trace. */
struct file {
	const char *path;
	char *node;		/* its own host; NULL: a simulated network */
	int host;
	unsigned int skipped;	/* lines of kinds that we do not know */
	bool truncated;		/* the last line was */
};

struct host {
	char *id, *name;
	bool traced;		/* it has a trace */
};

struct timeline {
	const char *path;	/* for people: of the one trace, or of all of them */
	struct file *files;
	size_t num_files;
	struct host *hosts;
	size_t num_hosts;
	struct item *items;
	size_t num_items, room;
	struct column columns[TIMELINE_MAX_COLUMNS];
	int num_columns;
	struct program *programs;
	size_t num_programs;
	uint64_t start;		/* what times are counted from */
	bool all;		/* every timer, too */
	bool cm;		/* no data */
	uint64_t until;		/* only what happened shortly before; 0: all */
};

/* 0, or a line on standard error was written. */
int timeline_read(struct timeline *timeline, char *const *paths, size_t num);
void timeline_free(struct timeline *timeline);

/* timeline_names.c: "host, process 0" becomes "host, rping", with the number if there are several. */
void timeline_name_columns(struct timeline *timeline);

/* --- timeline_gone.c --- */

/* What others receive for a node whose program has ended. */
void timeline_place_gone(struct timeline *timeline);

/* --- timeline_tcp.c --- */

/* A segment of a TCP connection of programs. */
bool item_is_tcp(const struct item *item);
/* After all others: between the columns of nodes. */
void timeline_place_tcp(struct timeline *timeline);
/* Where who carries the connections tells of what happens to a node, if nobody else does; or -1. */
int timeline_tcp_column(const struct timeline *timeline, const struct item *change);

/* The column of that name, which is taken over; -1 once there are too many. */
int timeline_column(struct timeline *timeline, char *name);

/* A member of a line, or what stands for one that is not there. */
const char *item_text(const struct item *item, const char *name);	/* "" */
long long item_number(const struct item *item, const char *name);	/* -1 */

/* That of another host has another key; what is no number of anything is itself. */
long long timeline_key(int host, long long number);
long long item_key(const struct item *item, const char *name);

static inline bool item_is_packet(const struct item *item)
{
	return item->kind == ITEM_SEND || item->kind == ITEM_RECV;
}

/* Finds the host of each item, and gives each node the name of its host. */
void timeline_hosts(struct timeline *timeline);
/* After it, and when packets are numbered: all times are of one clock. */
void timeline_clocks(struct timeline *timeline);

/* --- timeline_numbers.c --- */

struct number {
	long long key, value;
	UT_hash_handle hh;
};

struct number *number_find(struct number *set, long long key);
/* True: it was not there.  Keys below 1 are left out. */
bool number_add(struct number **set, long long key, long long value);
void number_drop(struct number **set);

/* Of what is selected: messages of data, and timers of QPs. */
void timeline_leave_out_data(struct timeline *timeline);
/* Of what is selected: what happened shortly before `until'. */
void timeline_keep_last(struct timeline *timeline);
/* In traces of several hosts: a packet has the same number at both ends, and no other one has it. */
void timeline_number_packets(struct timeline *timeline);
/* Which lines are of one packet. */
void timeline_pair(struct timeline *timeline);
/* Finds lost packets, and the other end of packets of which the trace has one end. */
void timeline_find_peers(struct timeline *timeline);

/* Marks items; id -1, between NULL: all.  -1: after an error message. */
int timeline_select(struct timeline *timeline, long long id, const char *between);

enum row_kind {
	ROW_MESSAGE,		/* from column to column */
	ROW_DEPART, ROW_ARRIVE,	/* the same in two parts, since something happens in between */
	ROW_NOTE,		/* at a column */
	ROW_GAP,		/* time goes by */
};

enum row_style { STYLE_PLAIN, STYLE_EVENT, STYLE_BAD_EVENT, STYLE_STATE, STYLE_TIMER, STYLE_FAULT,
		 STYLE_DATA };

struct row {
	enum row_kind kind;
	enum row_style style;
	uint64_t time;
	bool shows_time;	/* it is another one than that of the row before */
	int column, peer;
	char *text;
	bool lost;		/* it never arrives */
	bool open;		/* its other end is not in the trace */
	unsigned int again;	/* sent before, so often */
	bool copy;		/* it arrives once more */
	size_t other;		/* DEPART, ARRIVE: the row of the other part */
	unsigned int tag;	/* ... and a number for both */
};

struct rows {
	struct row *rows;
	size_t num, room;
	/*
	 * Messages whose other end is on a host without a trace, in a process that was not traced,
	 * or in one that wrote no line about it.
	 */
	unsigned int without_trace, untraced, unseen;
};

void timeline_rows(const struct timeline *timeline, struct rows *ret_rows);
void timeline_rows_free(struct rows *rows);
/* What stands below the drawing, a line each; NULL: no more.  To be freed. */
char *timeline_note(const struct rows *rows, unsigned int number);

/* "again: SEND 4 B": the text of a message's row; to be freed. */
char *timeline_label(const struct row *row);
/* The columns between which a message's row is drawn.  False: it has no other end, or the same. */
bool timeline_ends(const struct timeline *timeline, const struct row *row, int *ret_from,
		   int *ret_to);

/* What an item is called in a row; to be freed. */
char *timeline_message_text(const struct item *item);
char *timeline_event_text(const struct item *item, bool tagged);
char *timeline_call_text(const struct item *item, bool tagged);
char *timeline_fault_text(const struct item *item);
char *timeline_world_text(const struct item *item);
/* "22 us", "4.608 s": in one of a few static buffers. */
const char *timeline_time(uint64_t ns);

void timeline_text(const struct timeline *timeline, const struct rows *rows, FILE *to,
		   unsigned int width, bool colours);
void timeline_svg(const struct timeline *timeline, const struct rows *rows, FILE *to);

/* The next character of UTF-8; what cannot be shown is a question mark. */
uint32_t timeline_character(const char **text);
/* So many of them. */
int timeline_length(const char *text);

#endif
