/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline_clocks.c - polycm timeline: traces of several hosts get one clock, that of the host of
 * the first trace.
 *
 * Lines of kind clock say by how much two clocks differ, more or less exactly; between two of them
 * the difference changes evenly.  No message comes before it was sent: what contradicts that is
 * corrected, by the same for all lines of a host.  Where nobody has compared two clocks, messages
 * in both directions say how far apart they can be.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "polycm.h"
#include "timeline.h"

#define MAX_TIME ((int64_t)TIMELINE_MAX_TIME)	/* of what is added, so that nothing overflows */
#define APART 500000000		/* ns: of measurements that are closer, the best one counts */

/* What is added to a host's time. */
struct point {
	int64_t time, add, round_trip;
};

struct clock {
	bool aligned;
	struct point *points;
	size_t num_points;
};

/* A packet of which both ends are in traces of different hosts. */
struct flight {
	size_t sent, received;
};

struct clocks {
	struct timeline *timeline;
	struct clock *clocks;		/* one for each host */
	int64_t *times;			/* of items; in the one clock once their host is aligned */
	struct flight *flights;
	size_t num_flights;
};

/* ------------------------------------------------------------------------
 * Both ends of packets.
 */

struct sender {
	long long packet;
	size_t sent, received, times_sent, times_received;
	UT_hash_handle hh;
};

/* A packet that was sent once and came once: of copies nobody knows which is which. */
static void find_flights(struct clocks *c)
{
	const struct timeline *timeline = c->timeline;
	struct sender *senders = NULL, *sender, *next;

	for (size_t i = 0; i < timeline->num_items; i++) {
		const struct item *item = &timeline->items[i];
		long long packet = (long long)item->packet;

		if (!item_is_packet(item) || packet <= 0 || item->writer != item->host)
			continue;
		HASH_FIND(hh, senders, &packet, sizeof(packet), sender);
		if (!sender) {
			sender = tool_realloc(NULL, 1, sizeof(*sender));
			*sender = (struct sender){ .packet = packet };
			HASH_ADD(hh, senders, packet, sizeof(sender->packet), sender);
		}
		if (item->kind == ITEM_SEND) {
			sender->sent = i;
			sender->times_sent++;
		} else {
			sender->received = i;
			sender->times_received++;
		}
	}
	c->flights = tool_realloc(NULL, HASH_COUNT(senders) + 1, sizeof(*c->flights));
	HASH_ITER(hh, senders, sender, next) {
		if (sender->times_sent == 1 && sender->times_received == 1 &&
		    timeline->items[sender->sent].writer != timeline->items[sender->received].writer)
			c->flights[c->num_flights++] = (struct flight){ sender->sent, sender->received };
		HASH_DEL(senders, sender);
		free(sender);
	}
}

/* ------------------------------------------------------------------------
 * Measurements.
 */

static int64_t to_add(const struct clock *clock, int64_t time)
{
	const struct point *a = clock->points, *b;
	size_t low = 0, high = clock->num_points;
	long double part;

	if (!high)
		return 0;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (clock->points[middle].time <= time)
			low = middle;
		else
			high = middle;
	}
	a += low;
	b = low + 1 < clock->num_points ? a + 1 : a;
	if (b == a || time <= a->time)
		return a->add;
	part = (long double)(time - a->time) / (long double)(b->time - a->time);
	return a->add + (int64_t)((long double)(b->add - a->add) * part);
}


static bool is_usable(int64_t time)
{
	return time > -MAX_TIME && time < MAX_TIME;
}

/* A comparison of the host with one whose clock is aligned. */
static bool point_of(const struct clocks *c, size_t i, int host, int than, struct point *ret_point)
{
	const struct item *item = &c->timeline->items[i];
	const json_t *offset = json_object_get(item->json, "offset");
	int64_t ahead = json_integer_value(offset), other;

	if (item->kind != ITEM_CLOCK || !json_is_integer(offset) || !is_usable(ahead))
		return false;
	ret_point->round_trip = item_number(item, "round_trip");
	if (item->writer == than && item->host == host) {
		/* That line has the right time already. */
		ret_point->time = (int64_t)item->time + ahead;
		ret_point->add = c->times[i] - ret_point->time;
	} else if (item->writer == host && item->host == than) {
		other = (int64_t)item->time + ahead;
		ret_point->time = (int64_t)item->time;
		ret_point->add = other + to_add(&c->clocks[than], other) - ret_point->time;
	} else {
		return false;
	}
	return ret_point->round_trip >= 0 && is_usable(ret_point->time) && is_usable(ret_point->add);
}

static int by_point(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

static void measure(struct clocks *c, int host, int than)
{
	struct clock *clock = &c->clocks[host];
	struct point *points = NULL, point;
	size_t num = 0, kept = 0;
	int64_t first = 0;

	for (size_t i = 0; i < c->timeline->num_items; i++) {
		if (!point_of(c, i, host, than, &point))
			continue;
		points = tool_realloc(points, num + 1, sizeof(*points));
		points[num++] = point;
	}
	if (num)
		qsort(points, num, sizeof(*points), by_point);
	for (size_t i = 0; i < num; i++) {
		if (kept && points[i].time - first < APART) {
			if (points[i].round_trip < points[kept - 1].round_trip)
				points[kept - 1] = points[i];
			continue;
		}
		first = points[i].time;
		points[kept++] = points[i];
	}
	clock->points = points;
	clock->num_points = kept;
}

/* ------------------------------------------------------------------------
 * What messages say.
 */

struct limits {
	bool has_low, has_high;
	int64_t low, high;	/* of what is to be added to all times of the host */
};

static struct limits limits_of(const struct clocks *c, int host)
{
	struct limits limits = { .has_low = false };

	for (size_t i = 0; i < c->num_flights; i++) {
		size_t sent = c->flights[i].sent, received = c->flights[i].received;
		int from = c->timeline->items[sent].writer, to = c->timeline->items[received].writer;
		int64_t took = c->times[received] - c->times[sent];

		if (to == host && c->clocks[from].aligned) {
			if (!limits.has_low || 1 - took > limits.low)
				limits.low = 1 - took;
			limits.has_low = true;
		}
		if (from == host && c->clocks[to].aligned) {
			if (!limits.has_high || took - 1 < limits.high)
				limits.high = took - 1;
			limits.has_high = true;
		}
	}
	return limits;
}

/* Where measurements leave it open: the middle, or as early as it can be. */
static int64_t correction(const struct limits *l, bool measured)
{
	if (l->has_low && l->has_high && (!measured || l->low > l->high))
		return l->low + (l->high - l->low) / 2;
	if (l->has_low && (!measured || l->low > 0))
		return l->low;
	if (l->has_high && (!measured || l->high < 0))
		return l->high;
	return 0;
}

/* ------------------------------------------------------------------------
 * All hosts, one by one.
 */

static int64_t first_time(const struct clocks *c, bool (*counts)(const struct clocks *, int), int host)
{
	int64_t first = 0;
	bool any = false;

	for (size_t i = 0; i < c->timeline->num_items; i++) {
		int writer = c->timeline->items[i].writer;

		if ((counts ? !counts(c, writer) : writer != host) || (any && c->times[i] >= first))
			continue;
		any = true;
		first = c->times[i];
	}
	return first;
}

static bool is_aligned(const struct clocks *c, int host)
{
	return c->clocks[host].aligned;
}

static void move(const struct clocks *c, int host, int64_t by)
{
	struct clock *clock = &c->clocks[host];

	if (!is_usable(by))
		by = 0;
	for (size_t i = 0; i < clock->num_points; i++)
		clock->points[i].add += by;
	if (!clock->num_points) {
		clock->points = tool_realloc(clock->points, 1, sizeof(*clock->points));
		clock->points[0] = (struct point){ .add = by };
		clock->num_points = 1;
	}
	for (size_t i = 0; i < c->timeline->num_items; i++)
		if (c->timeline->items[i].writer == host)
			c->times[i] = (int64_t)c->timeline->items[i].time +
				      to_add(clock, (int64_t)c->timeline->items[i].time);
}

static void align(struct clocks *c, int host, int than)
{
	const char *name = c->timeline->hosts[host].name;
	struct limits limits;
	bool measured;

	if (than >= 0)
		measure(c, host, than);
	measured = c->clocks[host].num_points;
	move(c, host, 0);
	limits = limits_of(c, host);
	if (!measured && !limits.has_low && !limits.has_high) {
		tool_error("no line says what %s's clock shows: its first line is drawn beside the "
			   "first one of the other hosts", *name ? name : "the simulated network");
		move(c, host, first_time(c, is_aligned, -1) - first_time(c, NULL, host));
	} else {
		if (limits.has_low && limits.has_high && limits.low > limits.high)
			tool_error("%s's clock is known to %s: what happens within that time here and "
				   "on other hosts may be drawn in the wrong order", name,
				   timeline_time((uint64_t)(limits.low - limits.high) / 2));
		move(c, host, correction(&limits, measured));
	}
	c->clocks[host].aligned = true;
}

/* The best comparison of a host that is aligned with one that is not; false: there is none. */
static bool next_by_comparison(const struct clocks *c, int *ret_host, int *ret_than)
{
	long long best = -1;

	for (size_t i = 0; i < c->timeline->num_items; i++) {
		const struct item *item = &c->timeline->items[i];
		long long round_trip = item_number(item, "round_trip");
		bool here;

		if (item->kind != ITEM_CLOCK || round_trip < 0 || (best >= 0 && round_trip >= best) ||
		    !c->timeline->hosts[item->host].traced)
			continue;
		here = c->clocks[item->writer].aligned;
		if (here == c->clocks[item->host].aligned)
			continue;
		best = round_trip;
		*ret_host = here ? item->host : item->writer;
		*ret_than = here ? item->writer : item->host;
	}
	return best >= 0;
}

static bool next_by_messages(const struct clocks *c, int *ret_host)
{
	for (size_t i = 0; i < c->num_flights; i++) {
		int from = c->timeline->items[c->flights[i].sent].writer;
		int to = c->timeline->items[c->flights[i].received].writer;

		if (c->clocks[from].aligned == c->clocks[to].aligned)
			continue;
		*ret_host = c->clocks[from].aligned ? to : from;
		return true;
	}
	return false;
}

static bool next_of_all(const struct clocks *c, int *ret_host)
{
	for (size_t i = 0; i < c->timeline->num_hosts; i++) {
		*ret_host = (int)i;
		if (c->timeline->hosts[i].traced && !c->clocks[i].aligned)
			return true;
	}
	return false;
}

/* As they are from now on: the first is 0, so that none is negative. */
static void set_times(struct clocks *c)
{
	int64_t first = first_time(c, is_aligned, -1);

	for (size_t i = 0; i < c->timeline->num_items; i++) {
		struct item *item = &c->timeline->items[i];
		uint64_t time = (uint64_t)(c->times[i] - first);
		long long until = item_number(item, "until");

		if (until >= 0 && is_usable(until)) {
			until += (long long)time - (long long)item->time;
			(void)json_object_set_new(item->json, "until", json_integer(until));
		}
		item->time = time;
	}
	/* What the correction has not put right. */
	for (size_t i = 0; i < c->num_flights; i++) {
		struct item *sent = &c->timeline->items[c->flights[i].sent];
		struct item *received = &c->timeline->items[c->flights[i].received];

		if (received->time <= sent->time)
			received->time = sent->time + 1;
	}
}

void timeline_clocks(struct timeline *timeline)
{
	struct clocks c = { .timeline = timeline };
	int host, than = -1, num_traced = 0;

	for (size_t i = 0; i < timeline->num_hosts; i++)
		num_traced += timeline->hosts[i].traced;
	if (num_traced < 2)
		return;
	c.clocks = tool_realloc(NULL, timeline->num_hosts, sizeof(*c.clocks));
	memset(c.clocks, 0, timeline->num_hosts * sizeof(*c.clocks));
	c.times = tool_realloc(NULL, timeline->num_items + 1, sizeof(*c.times));
	for (size_t i = 0; i < timeline->num_items; i++)
		c.times[i] = (int64_t)timeline->items[i].time;
	find_flights(&c);
	c.clocks[timeline->files[0].host].aligned = true;
	while (next_by_comparison(&c, &host, &than))
		align(&c, host, than);
	while (next_by_messages(&c, &host))
		align(&c, host, -1);
	while (next_of_all(&c, &host))
		align(&c, host, -1);
	set_times(&c);
	for (size_t i = 0; i < timeline->num_hosts; i++)
		free(c.clocks[i].points);
	free(c.clocks);
	free(c.times);
	free(c.flights);
}
