/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polycm/core.h - what the core offers to providers.  <polycm/provider.h>, which
 * includes this, has the rules that hold for all of it.
 *
 * Unless said otherwise, a provider may call these functions from any thread, at
 * the same time, inside operations and with its own locks held, also in a child
 * after fork().  They do not wait.
 */
#ifndef POLYCM_CORE_H
#define POLYCM_CORE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <polycm/rules.h>

#ifdef __cplusplus
extern "C" {
#endif

struct polycm_id;	/* an rdma_cm_id as the core keeps it */
struct polycm_device;	/* a device as the core keeps it */
struct polycm_module;	/* a loaded provider as the core keeps it */
struct polycm_timer;
struct polycm_event;
struct polycm_device_info;

enum polycm_log_level {
	POLYCM_LOG_ERROR,
	POLYCM_LOG_WARN,
	POLYCM_LOG_INFO,
	POLYCM_LOG_DEBUG,
	POLYCM_LOG_TRACE,
};

/* Valid from the query until the process ends. */
struct polycm_core {
	uint32_t size;
	uint32_t abi_minor;

	/*
	 * Queue an event for the program.  Copies it and runs no code of the
	 * program.  -ECANCELED: the id is closing.  -ENOMEM: no memory (eight events
	 * of an id have it reserved until the program acknowledges them), or for
	 * CONNECT_REQUEST the listener's backlog is full.  -EINVAL: the event is
	 * wrong; a log line says how.  -ETIMEDOUT: the answer comes too late, see
	 * resolve_addr().  If a CONNECT_REQUEST fails, the child is still the
	 * provider's; it must call child_destroy().
	 */
	int (*post_event)(struct polycm_id *id, const struct polycm_event *event);
	/*
	 * Make the id of a connection request that a listener received.  It is the
	 * provider's until the provider has posted CONNECT_REQUEST with it.  From
	 * then on it is the core's, and ends with close(), stop() and free() like
	 * any id.
	 */
	int (*child_create)(struct polycm_id *listener, struct polycm_id **ret_child,
			    void **ret_priv);
	/* Ends a child that was never posted; does not call the operations. */
	void (*child_destroy)(struct polycm_id *child);

	/* Add and remove a device.  -EEXIST: there is a device of that name. */
	int (*device_add)(struct polycm_module *module, const struct polycm_device_info *info,
			  struct polycm_device **ret_device);
	void (*device_remove)(struct polycm_device *device);
	/*
	 * The device was unplugged: no list shows it any more, and nobody can open
	 * it.  Programs that have it open keep it.  The provider posts
	 * DEVICE_REMOVAL to its ids, and calls device_remove() when nothing refers
	 * to the device.  From any thread, also from inside an operation.
	 */
	void (*device_gone)(struct polycm_device *device);
	void *(*device_cookie)(const struct polycm_device *device);

	/* The rules of a transport, from any installed provider, or NULL. */
	const struct polycm_transport *(*transport)(const char *name);
	/* The value of one of this provider's settings: from the environment, else the default. */
	const char *(*setting)(const char *name);
	/* The core's table of a name and version, or NULL: <polycm/kernel.h>, verbs.h, clock.h. */
	const void *(*extension)(const char *name, unsigned int version);

	bool (*log_enabled)(enum polycm_log_level level);
	/* One line; id (may be NULL) adds provider, device and addresses. */
	void (*log)(enum polycm_log_level level, const struct polycm_id *id, const char *format, ...)
		__attribute__((format(printf, 3, 4)));
	/*
	 * Say why the current operation fails, for the log line of the program's
	 * call.  Only in the thread of the operation.  The last text counts.
	 */
	void (*why)(const char *format, ...) __attribute__((format(printf, 1, 2)));

	/* Time: virtual if such a clock is installed.  Timers run fn on a thread of the clock. */
	uint64_t (*now_ns)(void);
	int (*timer_start)(uint64_t deadline_ns, void (*fn)(void *arg), void *arg,
			   struct polycm_timer **ret_timer);
	/*
	 * Give a timer back, once for each, whether it fired or not.  Waits for fn
	 * if it is running: hold no lock that fn takes, and do not call it in fn.
	 * Afterwards fn does not run any more.
	 */
	void (*timer_cancel)(struct polycm_timer *timer);
	/*
	 * Let this time pass.  With a virtual clock that takes no time, otherwise
	 * the thread sleeps.  Only inside an operation; the caller must hold no
	 * lock that a layer's event() or the function of a timer takes.
	 */
	void (*sleep)(uint64_t ns);

	void *(*alloc)(size_t size);	/* zeroed; NULL: no memory */
	void (*free)(void *memory);
};

#ifdef __cplusplus
}
#endif

#endif /* POLYCM_CORE_H */
