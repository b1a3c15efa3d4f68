/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline_words.c - polycm timeline: what a line of the trace is called in a
 * row, and how times and characters are shown.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "polycm.h"
#include "timeline.h"

#define MAX_DATA 24u		/* of private data */

const char *timeline_time(uint64_t ns)
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = {
		{ 1000000000u, "s" }, { 1000000u, "ms" }, { 1000u, "\302\265s" }, { 1u, "ns" },
	};
	static char buffers[4][64];
	static unsigned int next;
	char *text = buffers[next++ % 4], digits[24];
	size_t i = 0, len;

	while (i < 3 && ns < units[i].ns)
		i++;
	(void)snprintf(digits, sizeof(digits), "%06" PRIu64,
		       units[i].ns >= 1000000u ? ns % units[i].ns / (units[i].ns / 1000000u) :
		       ns % units[i].ns * (1000000u / units[i].ns));
	/* Six digits or three behind the point, or none: they stand below each other. */
	len = !strcmp(digits, "000000") ? 0 : i == 0 || strcmp(digits + 3, "000") ? 6 : 3;
	digits[len] = '\0';
	(void)snprintf(text, sizeof(buffers[0]), "%" PRIu64 "%s%s %s", ns / units[i].ns,
		       len ? "." : "", digits, units[i].name);
	return text;
}

uint32_t timeline_character(const char **text)
{
	const unsigned char *at = (const unsigned char *)*text;
	unsigned int more = *at >= 0xf0 ? 3 : *at >= 0xe0 ? 2 : *at >= 0xc0 ? 1 : 0;
	uint32_t c = more ? *at & (0x3fu >> more) : *at;

	for (at++; more && *at; more--)
		c = c << 6 | (*at++ & 0x3f);
	*text = (const char *)at;
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c > 0xffff ? '?' : c;
}

int timeline_length(const char *text)
{
	int n = 0;

	while (*text) {
		timeline_character(&text);
		n++;
	}
	return n;
}

/* ------------------------------------------------------------------------
 * Words.
 */

static const char *reject_reason(long long reason)
{
	static const char *const reasons[] = {
		[1] = "no QP", [3] = "no resources", [4] = "time-out", [6] = "invalid comm ID",
		[8] = "nobody listens", [10] = "stale connection", [12] = "invalid GID",
		[26] = "invalid MTU", [27] = "too few responder resources",
		[28] = "by the program", [30] = "duplicate comm ID",
		[35] = "vendor option not supported",
	};

	return reason > 0 && reason < (long long)(sizeof(reasons) / sizeof(reasons[0])) ?
	       reasons[reason] : NULL;
}

/* Private data that is text: " "hello"", else what length it has. */
static char *private_data(const struct item *item)
{
	const char *hex = item_text(item, "private_data");
	char text[MAX_DATA + 1];
	size_t len = strlen(hex) / 2, i;

	if (!len)
		return tool_strdup("");
	for (i = 0; i < len && i < MAX_DATA; i++) {
		unsigned int byte;

		if (sscanf(hex + 2 * i, "%2x", &byte) != 1 || byte < 0x20 || byte > 0x7e)
			return tool_printf(" %zu B of data", len);
		text[i] = (char)byte;
	}
	text[i] = '\0';
	return tool_printf(" \"%s%s\"", text, len > MAX_DATA ? "\342\200\246" : "");
}

char *timeline_message_text(const struct item *item)
{
	long long reason = item_number(item, "reason"), len = item_number(item, "len");
	char *data = private_data(item), *text;
	const char *why = reject_reason(reason);

	if (!strcmp(item->text, "REJ") && why)
		text = tool_printf("REJ %lld, %s%s", reason, why, data);
	else if (!strcmp(item->text, "REJ"))
		text = tool_printf("REJ %lld%s", reason, data);
	else if (!strcmp(item->text, "MRA"))
		text = tool_printf("MRA of the %s", item_text(item, "answers"));
	else if (!strcmp(item->text, "SIDR_REP") && item_number(item, "status") > 0)
		text = tool_printf("SIDR_REP, status %lld%s", item_number(item, "status"), data);
	else if (len >= 0)
		text = tool_printf("%s %lld B", item->text, len);
	else if (*item_text(item, "reason"))
		text = tool_printf("%s, %s", item->text, item_text(item, "reason"));
	else
		text = tool_printf("%s%s", item->text, data);
	free(data);
	return text;
}

char *timeline_event_text(const struct item *item, bool tagged)
{
	long long status = item_number(item, "status"), child = item_number(item, "child");
	const json_t *value = json_object_get(item->json, "status");
	char *tag = tagged ? tool_printf("id %lld: ", item_number(item, "id")) : tool_strdup("");
	char *extra, *text;

	if (json_is_integer(value))
		status = json_integer_value(value);
	if (child > 0)
		extra = tool_printf(" \342\206\222 id %lld", child);
	else if (status && !strcmp(item->text, "REJECTED") && reject_reason(status))
		extra = tool_printf(", %s", reject_reason(status));
	else if (status < 0 && status > -4096)
		extra = tool_printf(", %s", strerror((int)-status));
	else if (status)
		extra = tool_printf(", status %lld", status);
	else
		extra = tool_strdup("");
	text = tool_printf("%s%s%s", tag, item->text, extra);
	free(tag);
	free(extra);
	return text;
}

char *timeline_fault_text(const struct item *item)
{
	const char *what = item_text(item, "what");
	long long rule = item_number(item, "rule");
	char *who = rule > 0 ? tool_printf(" (rule %lld)", rule) : tool_strdup(" (the link)");
	char *text = tool_printf("%s%s%s%s", item->text, *what ? " " : "", what, who);

	free(who);
	return text;
}

char *timeline_world_text(const struct item *item)
{
	const char *kind = item_text(item, "kind"), *what = item_text(item, "what");
	char *text;

	if (!strcmp(kind, "port"))
		text = tool_printf("port %s: %s", item_text(item, "port"), item_text(item, "state"));
	else if (!strcmp(kind, "device"))
		text = tool_printf("device %s: %s", item_text(item, "device"), what);
	else if (!strcmp(kind, "mac"))
		text = tool_printf("another MAC for %s", item_text(item, "address"));
	else if (!strcmp(what, "freeze") && item_number(item, "for") > 0)
		text = tool_printf("freeze for %s",
				   timeline_time((uint64_t)item_number(item, "for")));
	else
		text = tool_strdup(what);
	return text;
}

char *timeline_label(const struct row *row)
{
	return tool_printf("%s%s", row->copy ? "copy: " : row->again ? "again: " : "", row->text);
}

/* "connect(): Connection refused" */
char *timeline_call_text(const struct item *item, bool tagged)
{
	long long result = json_integer_value(json_object_get(item->json, "result"));
	const char *error = result < 0 && result > -4096 ? strerror((int)-result) : "";
	char *tag = tagged ? tool_printf("id %lld: ", item_number(item, "id")) : tool_strdup("");
	char *text = tool_printf("%s%s()%s%s", tag, item->text, *error ? ": " : "", error);

	free(tag);
	return text;
}

char *timeline_note(const struct rows *rows, unsigned int number)
{
	unsigned int without = rows->without_trace, untraced = rows->untraced, unseen = rows->unseen;

	if (without && !number--)
		return tool_printf("%u message%s with an open end: no trace is of the host there. Trace "
				   "its processes, too, and draw the traces of all hosts together.",
				   without, without > 1 ? "s" : "");
	if (untraced && !number--)
		return tool_printf("%u message%s with an open end: the process there was not traced. "
				   "Give all processes the same file.", untraced,
				   untraced > 1 ? "s" : "");
	if (unseen && !number--)
		return tool_printf("%u message%s with an open end: the process there wrote no line "
				   "about %s.", unseen, unseen > 1 ? "s" : "",
				   unseen > 1 ? "them" : "it");
	return NULL;
}
