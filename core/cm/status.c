/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/status.c - statuses of events in words: REJ reasons, SIDR statuses, errnos.
 *
 * A transport's own words come first.  Answers that are no constants live in
 * a buffer of the calling thread.
 */
#include "config.h"

#include "status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "polycm/polycm.h"

#include "core/device/device.h"
#include "core/base/export.h"
#include "id_internal.h"
#include "core/plugin/registry.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* REJ reasons (IBTA vol. 1, 12.6.7.2); what it is likely to mean follows the name. */
static const char *const reject_reasons[] = {
	[1] = "no QP: the peer cannot have another",
	[2] = "no EEC",
	[3] = "no resources at the peer",
	[4] = "time-out: the peer gave the attempt up",
	[5] = "unsupported request",
	[6] = "invalid communication id",
	[7] = "invalid communication instance",
	[8] = "invalid service id: nobody listens on that port",
	[9] = "invalid transport service type",
	[10] = "stale connection: the peer still has one with this QP number",
	[11] = "RDC does not exist",
	[12] = "primary remote port GID rejected: the peer has no path back",
	[13] = "primary remote port LID rejected",
	[14] = "invalid primary service level",
	[15] = "invalid primary traffic class",
	[16] = "invalid primary hop limit",
	[17] = "invalid primary packet rate",
	[18] = "alternate remote port GID rejected",
	[19] = "alternate remote port LID rejected",
	[20] = "invalid alternate service level",
	[21] = "invalid alternate traffic class",
	[22] = "invalid alternate hop limit",
	[23] = "invalid alternate packet rate",
	[24] = "redirected to another port and CM",
	[25] = "redirected to another port",
	[26] = "invalid path MTU",
	[27] = "too few responder resources",
	[28] = "consumer defined: the peer's program rejected it, or nobody listens on that address",
	[29] = "invalid RNR retry count",
	[30] = "duplicate local communication id",
	[31] = "invalid class version",
	[32] = "invalid primary flow label",
	[33] = "invalid alternate flow label",
	[35] = "vendor option not supported",
};

/* SIDR_REP statuses (IBTA vol. 1, 12.11.2.2). */
static const char *const sidr_statuses[] = {
	[1] = "service id not supported: nobody listens on that port",
	[2] = "rejected by the service provider",
	[3] = "no QP available",
	[4] = "redirected",
	[5] = "unsupported version",
};

/* Errnos that mean more in one event than strerror() says. */
static const struct {
	enum rdma_cm_event_type type;
	int error;
	const char *words;
} causes[] = {
	{ RDMA_CM_EVENT_ADDR_ERROR, ETIMEDOUT, "no answer for that address" },
	{ RDMA_CM_EVENT_ADDR_ERROR, ENODEV, "no RDMA device leads to that address" },
	{ RDMA_CM_EVENT_ADDR_ERROR, EINVAL, "the Q_Keys do not agree" },
	{ RDMA_CM_EVENT_ROUTE_ERROR, ETIMEDOUT, "the subnet administrator does not answer" },
	{ RDMA_CM_EVENT_ROUTE_ERROR, EINVAL, "the subnet administrator knows no path" },
	{ RDMA_CM_EVENT_UNREACHABLE, ETIMEDOUT, "the peer does not answer" },
	{ RDMA_CM_EVENT_REJECTED, ECONNREFUSED, "refused by the peer" },
	{ RDMA_CM_EVENT_REJECTED, ECONNRESET, "rejected or reset by the peer" },
	{ RDMA_CM_EVENT_DISCONNECTED, ETIMEDOUT, "the peer does not answer to the disconnect" },
	{ RDMA_CM_EVENT_DISCONNECTED, ECONNRESET, "reset by the peer" },
	{ RDMA_CM_EVENT_MULTICAST_ERROR, ENETRESET, "the group is gone" },
};

/* Like strerror()'s: each thread may keep the text until its next call. */
static __thread char buffer[160];

static const char *of_code(const char *what, int code, const char *const *table, size_t num)
{
	const char *words = (size_t)code < num ? table[code] : NULL;

	snprintf(buffer, sizeof(buffer), "%s %d, %s", what, code, words ? words : "unknown");
	return buffer;
}

/* Made on this side, after the fact, so that all there is is "it failed". */
static bool is_local_failure(enum rdma_cm_event_type type, int status)
{
	return status == -1 &&
	       (type == RDMA_CM_EVENT_ADDR_ERROR || type == RDMA_CM_EVENT_ROUTE_ERROR ||
		type == RDMA_CM_EVENT_CONNECT_ERROR || type == RDMA_CM_EVENT_MULTICAST_ERROR);
}

static const char *of_errno(enum rdma_cm_event_type type, int error)
{
	const char *name = strerrorname_np(error);
	const char *words = strerrordesc_np(error);

	for (size_t i = 0; i < COUNT(causes); i++)
		if (causes[i].type == type && causes[i].error == error)
			words = causes[i].words;
	if (name)
		snprintf(buffer, sizeof(buffer), "%s, %s", name, words);
	else
		snprintf(buffer, sizeof(buffer), "error %d", error);
	return buffer;
}

const char *polycm_status_words(const struct polycm_transport *transport,
				enum rdma_cm_event_type type, int status)
{
	const char *words = transport ? transport->status_str(type, status) : NULL;

	if (words)
		return words;
	if (!status)
		return "success";
	if (status > 0 && type == RDMA_CM_EVENT_REJECTED)
		return of_code("REJ", status, reject_reasons, COUNT(reject_reasons));
	if (status > 0 && type == RDMA_CM_EVENT_UNREACHABLE)
		return of_code("SIDR status", status, sidr_statuses, COUNT(sidr_statuses));
	if (is_local_failure(type, status))
		return "failed on this side";
	if (status == INT32_MIN)
		return "error -2147483648";
	return of_errno(type, status < 0 ? -status : status);
}

POLYCM_EXPORT const char *polycm_status_str(const struct rdma_cm_event *event)
{
	const struct polycm_ev *ev = (const struct polycm_ev *)(const void *)event;
	struct polycm_device *device = NULL;

	if (!event)
		return "no event";
	if (polycm_live(&polycm_live_events, ev) && ev->why)
		return ev->why;
	if (event->id)
		device = polycm_device_of_verbs(event->id->verbs);
	return polycm_status_words(device ? device->transport : NULL, event->event, event->status);
}

POLYCM_EXPORT const char *polycm_status_text(const char *transport, enum rdma_cm_event_type type,
					     int status)
{
	return polycm_status_words(polycm_registry_transport(transport), type, status);
}
