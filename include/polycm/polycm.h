/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polycm/polycm.h - questions that a program may ask libpolycm itself: which
 * providers, devices, settings and transport rules there are, what an event's
 * status means, and what is known of an id or a device.  Programs need none of
 * it to run.
 *
 * Threads: any.  Strings are valid until the process ends, unless said
 * otherwise.  Structs are valid during the callback.  A callback must not call
 * polycm_*, rdma_* or ibv_* functions.
 *
 * Structs begin with their size, which libpolycm sets; new members come only at
 * the end.
 */
#ifndef POLYCM_POLYCM_H
#define POLYCM_POLYCM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <rdma/rdma_cma.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" */
const char *polycm_version(void);

/* ------------------------------------------------------------------------
 * Statuses in words: "REJ 8, invalid service id: nobody listens on that port".
 * The string is valid until the thread's next call of either.
 */

/* Of an event from rdma_get_cm_event() that is not acknowledged yet. */
const char *polycm_status_str(const struct rdma_cm_event *event);
/* On a transport ("roce"); NULL or an unknown name: without its own words. */
const char *polycm_status_text(const char *transport, enum rdma_cm_event_type type, int status);

/* ------------------------------------------------------------------------
 * Walks.  They call fn for each thing, in a stable order, until it returns
 * other than 0, and return what it returned last: 0 when all were seen.  An
 * error of the walk itself is -1 with errno.
 */

struct polycm_provider_info {
	size_t size;
	const char *name;
	const char *path;		/* of the file */
	const char *problem;		/* why it cannot be used, or NULL; if set, the rest is unknown */
	const char *version;
	const char *description;
	const char *transport;		/* whose rules it has, or NULL */
	bool on_request;		/* carries connections only where POLYCM_PROVIDER names it */
	bool selected;			/* may carry connections in this process */
	int error;			/* negative errno of one that could not start, or 0 */
	unsigned int num_devices;
	bool layer;			/* goes around providers; selected: around all of them here */
	const char *place;		/* the folder of its shared network, or NULL */
};

/* installed: load and show all that are installed; else only those loaded so far. */
int polycm_providers_walk(bool installed, int (*fn)(void *arg, const struct polycm_provider_info *),
			  void *arg);

struct polycm_device_view {
	size_t size;
	const char *name;		/* as in ibv_devices; during the callback */
	const char *provider;
	const char *transport;
	uint64_t node_guid;		/* network byte order */
	bool simulated;			/* libibverbs does not know it */
	int error;			/* negative errno for which nothing can connect on it, or 0 */
};

/* The devices that can carry connections now. */
int polycm_devices_walk(int (*fn)(void *arg, const struct polycm_device_view *), void *arg);

struct polycm_setting_info {
	size_t size;
	const char *name;		/* of the environment variable */
	const char *owner;		/* provider, or "polycm" */
	const char *value;		/* in force */
	const char *default_value;	/* "": unset means something else */
	const char *choices;		/* "a|b|c", or NULL: free text */
	const char *help;
	bool given;			/* by the environment */
};

/* The settings of the library and of the providers loaded so far. */
int polycm_settings_walk(int (*fn)(void *arg, const struct polycm_setting_info *), void *arg);

/*
 * The rules of a transport as text, one line of a table after the other:
 * rule "rdma_connect data, RDMA_PS_TCP", value "56 bytes, peer sees 56".  The
 * strings are valid during the callback.  ENOENT: no such transport.
 */
int polycm_rules_walk(const char *transport,
		      int (*fn)(void *arg, const char *rule, const char *value), void *arg);

/* ------------------------------------------------------------------------
 * For support: what a provider knows of one id or device.
 */

/*
 * Calls fn for each fact and each counter of an id: name "state", value
 * "CONNECT"; "retries", "2".  First come those of the library, then those of
 * the provider (docs/writing-a-provider.md).  The value of a counter is a
 * decimal number; other texts are for people and may change.  Strings are valid
 * during the callback.  EINVAL: no such id; EBADF: its event channel was destroyed.
 */
int polycm_id_walk(struct rdma_cm_id *id, int (*fn)(void *arg, const char *name, const char *value),
		   void *arg);
/*
 * The same of a device, by its name in ibv_devices.  The value of "health" is
 * "good", "not reported", or the error for which nothing can connect on the
 * device now (polycm_device_view.error).  ENODEV: there is no such device.
 */
int polycm_device_walk(const char *device,
		       int (*fn)(void *arg, const char *name, const char *value), void *arg);
/*
 * Writes what this process has: its ids, event channels, events that are not
 * acknowledged, and devices, each with its facts.  It starts no provider, and
 * does not wait for an id that another thread is in a call with; the text says
 * so.  Not in signal handlers; in a debugger: call polycm_dump(stderr).
 * EINVAL: to is NULL; EIO: it cannot be written.
 */
int polycm_dump(FILE *to);

/*
 * A provider's private functions: the table of this name and version, as the
 * provider's own header declares it.  The name has a dot: "acme.qos".  The
 * table stays valid until the process ends.  NULL and errno ENODEV: the
 * provider is not in use; ENOENT: it has no such table.
 *
 * Beside this, an option of a single id goes to its provider through
 * rdma_set_option(), with a level of the provider's own.
 */
const void *polycm_provider_extension(const char *provider, const char *name, unsigned int version);

#ifdef __cplusplus
}
#endif

#endif /* POLYCM_POLYCM_H */
