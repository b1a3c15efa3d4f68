/* SPDX-License-Identifier: BSD-2-Clause */
/* scenario_words.c - words that scenario files have for numbers. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <strings.h>

#include "cm_rej.h"
#include "fault_names.h"
#include "scenario_read.h"

#define MAX_WORDS 64u
#define NUM(words) (sizeof(words) / sizeof((words)[0]))

struct word {
	const char *name;
	int value;
};

static const struct word reasons[] = {
#define X(number, name, word, text) { word, number },
	CM_REJ_REASONS(X)
#undef X
};

#define ERRNO(name) { #name, name }

static const struct word errors[] = {
	ERRNO(EACCES), ERRNO(EADDRINUSE), ERRNO(EADDRNOTAVAIL), ERRNO(EAFNOSUPPORT), ERRNO(EAGAIN),
	ERRNO(EALREADY), ERRNO(EBADF), ERRNO(EBUSY), ERRNO(ECONNABORTED), ERRNO(ECONNREFUSED),
	ERRNO(ECONNRESET), ERRNO(EEXIST), ERRNO(EFAULT), ERRNO(EHOSTUNREACH), ERRNO(EINTR),
	ERRNO(EINVAL), ERRNO(EIO), ERRNO(EISCONN), ERRNO(EMFILE), ERRNO(EMSGSIZE),
	ERRNO(ENETDOWN), ERRNO(ENETUNREACH), ERRNO(ENFILE), ERRNO(ENOBUFS), ERRNO(ENODATA),
	ERRNO(ENODEV), ERRNO(ENOENT), ERRNO(ENOMEM), ERRNO(ENOSPC), ERRNO(ENOSYS),
	ERRNO(ENOTCONN), ERRNO(ENXIO), ERRNO(EOPNOTSUPP), ERRNO(EPERM), ERRNO(EPROTO),
	ERRNO(EPROTONOSUPPORT), ERRNO(ETIMEDOUT),
};

_Static_assert(NUM(reasons) <= MAX_WORDS && NUM(errors) <= MAX_WORDS, "room for all");

/* A number, or a word for one. */
static bool read_word(const config_setting_t *setting, const struct word *words, size_t num,
		      int max, int *ret_value)
{
	const char *text = config_setting_get_string(setting);
	long long number;

	if (!text) {
		if (config_setting_type(setting) != CONFIG_TYPE_INT)
			return false;
		number = config_setting_get_int64(setting);
		*ret_value = (int)number;
		return number >= 1 && number <= max;
	}
	for (size_t i = 0; i < num; i++)
		if (words[i].name && !strcasecmp(words[i].name, text)) {
			*ret_value = words[i].value;
			return true;
		}
	return false;
}

/* For a word that is none. */
static const char *hint(const config_setting_t *setting, const struct word *words, size_t num)
{
	const char *names[MAX_WORDS], *word = config_setting_get_string(setting);

	if (!word)
		return "";
	for (size_t i = 0; i < num; i++)
		names[i] = words[i].name;
	return sim_hint(word, names, (unsigned int)num);
}

int scenario_read_reason(const struct scenario *scenario, const config_setting_t *setting,
			 int *ret_reason)
{
	if (read_word(setting, reasons, NUM(reasons), UINT16_MAX, ret_reason))
		return 0;
	return scenario_error(scenario, setting, "%s: expected a REJ's reason, such as 8 or "
			      "\"invalid_service_id\"%s", scenario_show(setting),
			      hint(setting, reasons, NUM(reasons)));
}

int scenario_read_errno(const struct scenario *scenario, const config_setting_t *setting,
			int *ret_errno)
{
	if (read_word(setting, errors, NUM(errors), INT_MAX, ret_errno))
		return 0;
	return scenario_error(scenario, setting, "%s: expected an errno, such as \"ENOMEM\"%s",
			      scenario_show(setting), hint(setting, errors, NUM(errors)));
}
