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

struct word {
	const char *name;
	int value;
};

static const struct word reasons[] = {
	{ "no_qp", CM_REJ_NO_QP },
	{ "no_resources", CM_REJ_NO_RESOURCES },
	{ "timeout", CM_REJ_TIMEOUT },
	{ "unsupported", CM_REJ_UNSUPPORTED },
	{ "invalid_comm_id", CM_REJ_INVALID_COMM_ID },
	{ "invalid_comm_instance", CM_REJ_INVALID_COMM_INSTANCE },
	{ "invalid_service_id", CM_REJ_INVALID_SERVICE_ID },
	{ "invalid_transport_type", CM_REJ_INVALID_TRANSPORT_TYPE },
	{ "stale_conn", CM_REJ_STALE_CONN },
	{ "invalid_gid", CM_REJ_INVALID_GID },
	{ "invalid_lid", CM_REJ_INVALID_LID },
	{ "invalid_sl", CM_REJ_INVALID_SL },
	{ "invalid_traffic_class", CM_REJ_INVALID_TRAFFIC_CLASS },
	{ "invalid_hop_limit", CM_REJ_INVALID_HOP_LIMIT },
	{ "invalid_packet_rate", CM_REJ_INVALID_PACKET_RATE },
	{ "invalid_alt_gid", CM_REJ_INVALID_ALT_GID },
	{ "invalid_alt_lid", CM_REJ_INVALID_ALT_LID },
	{ "port_redirect", CM_REJ_PORT_REDIRECT },
	{ "invalid_mtu", CM_REJ_INVALID_MTU },
	{ "insufficient_resp_resources", CM_REJ_INSUFFICIENT_RESP_RESOURCES },
	{ "consumer_defined", CM_REJ_CONSUMER_DEFINED },
	{ "invalid_rnr_retry", CM_REJ_INVALID_RNR_RETRY },
	{ "duplicate_local_comm_id", CM_REJ_DUPLICATE_LOCAL_COMM_ID },
	{ "invalid_class_version", CM_REJ_INVALID_CLASS_VERSION },
	{ "invalid_flow_label", CM_REJ_INVALID_FLOW_LABEL },
	{ "vendor_option_not_supported", CM_REJ_VENDOR_OPTION_NOT_SUPPORTED },
	{ NULL, 0 },
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
	ERRNO(EPROTONOSUPPORT), ERRNO(ETIMEDOUT), { NULL, 0 },
};

/* A number, or a word for one. */
static bool read_word(const config_setting_t *setting, const struct word *words, int max,
		      int *ret_value)
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
	for (; words->name; words++) {
		if (!strcasecmp(words->name, text)) {
			*ret_value = words->value;
			return true;
		}
	}
	return false;
}

/* For a word that is none. */
static const char *hint(const config_setting_t *setting, const struct word *words)
{
	const char *names[MAX_WORDS], *word = config_setting_get_string(setting);
	unsigned int num = 0;

	if (!word)
		return "";
	for (; words->name && num < MAX_WORDS; words++)
		names[num++] = words->name;
	return sim_hint(word, names, num);
}

int scenario_read_reason(const struct scenario *scenario, const config_setting_t *setting,
			 int *ret_reason)
{
	if (read_word(setting, reasons, UINT16_MAX, ret_reason))
		return 0;
	return scenario_error(scenario, setting, "%s: expected a REJ's reason, such as 8 or "
			      "\"invalid_service_id\"%s", scenario_show(setting),
			      hint(setting, reasons));
}

int scenario_read_errno(const struct scenario *scenario, const config_setting_t *setting,
			int *ret_errno)
{
	if (read_word(setting, errors, INT_MAX, ret_errno))
		return 0;
	return scenario_error(scenario, setting, "%s: expected an errno, such as \"ENOMEM\"%s",
			      scenario_show(setting), hint(setting, errors));
}
