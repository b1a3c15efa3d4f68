/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device/device.h - the devices that providers announced, and their verbs contexts.
 *
 * A device lives until it is removed and its last reference is given back.  Its
 * ibv_context is opened on first use, shared by all ids of the process as in librdmacm,
 * and stays open, unless the program closes it.
 */
#ifndef POLYCM_CORE_DEVICE_H
#define POLYCM_CORE_DEVICE_H

#include <pthread.h>
#include "polycm/provider.h"
#include "polycm/verbs.h"

/* When INIT was asked for: with a route; after a REP by which the peer may not read here, or may. */
enum { POLYCM_QP_INIT_ROUTED, POLYCM_QP_INIT_UNREAD, POLYCM_QP_INIT_READ, POLYCM_QP_INITS };

struct polycm_device {
	struct polycm_device *next;
	/* The card that this device is a part of, another provider's device; NULL: it is a card. */
	struct polycm_device *whole;
	struct polycm_module *module;
	const struct polycm_transport *transport;
	char name[64];
	__be64 node_guid;
	struct polycm_verbs_device *vdev;	/* NULL: libibverbs has it */
	void *cookie;
	unsigned int refs;			/* under the device list's lock, and the next two */
	bool removed;
	bool gone;				/* unplugged; ids and contexts on it stay */
	bool busy;				/* a thread opens it or allocates its PD (open.c) */
	/* Set by polycm_device_open(), but for the PD.  NULL again if the program closes the context. */
	struct ibv_context *verbs;		/* atomic */
	struct ibv_pd *pd;			/* the default PD, made when first needed; atomic */
	struct ibv_xrcd *xrcd;			/* the XRC domain of ids (cm/cq.c), the same; atomic */
	uint8_t max_responder_resources;	/* device's max_qp_rd_atom */
	uint8_t max_initiator_depth;		/* device's max_qp_init_rd_atom */
	uint8_t first_port;			/* of those that are its own */
	uint8_t link_layer;			/* of these ports */
	uint64_t qp_init[POLYCM_QP_INITS];	/* what cm/qp.c remembers of it; atomic */
};

/* struct polycm_core members */
int polycm_device_add(struct polycm_module *module, const struct polycm_device_info *info,
		      struct polycm_device **ret_device);
/*
 * The same for a card whose ports differ in their link layer: this provider has
 * those that are as first_port is.  whole: the other provider's device, or NULL.
 */
int polycm_device_add_ports(struct polycm_module *module, const struct polycm_device_info *info,
			    uint8_t first_port, struct polycm_device *whole,
			    struct polycm_device **ret_device);
void polycm_device_remove(struct polycm_device *device);
void polycm_device_gone(struct polycm_device *device);
/* Called for a device that is removed without being unplugged first: core/cm posts events. */
extern void (*polycm_device_removed)(struct polycm_device *device);
void *polycm_device_cookie(const struct polycm_device *device);

/* Open the verbs context (once) and read the limits.  0, -ENODEV, or libibverbs' errno negated. */
int polycm_device_open(struct polycm_device *device);
/* The shared default protection domain of an opened device. */
int polycm_device_pd(struct polycm_device *device, struct ibv_pd **ret_pd);

/* It was removed or unplugged. */
bool polycm_device_lost(const struct polycm_device *device);
/* false: the device was removed, the pointer may be stale. */
bool polycm_device_get(struct polycm_device *device);
void polycm_device_put(struct polycm_device *device);

/* How many devices there are now (selected providers only). */
size_t polycm_device_count(void);
/* How many contexts, PDs and XRC domains of a provider's devices the core itself has open. */
void polycm_device_own_verbs(const struct polycm_module *module, unsigned int *ret_contexts,
			     unsigned int *ret_pds, unsigned int *ret_xrcds);
/* The device whose context or PD this is, or NULL. */
struct polycm_device *polycm_device_of_verbs(const void *handle);
/* The simulated device whose ibdev_path (a path) or dev_name (which has no slash) this is, or NULL. */
struct polycm_verbs_device *polycm_device_simulated(const char *name);
/* Referenced snapshot of all devices, to be given back with polycm_devices_free(). */
int polycm_devices(struct polycm_device ***ret_devices, size_t *ret_num);
void polycm_devices_free(struct polycm_device **devices, size_t num);
/*
 * Do all providers simulate, by these devices?  Then the program sees no hardware, so that it
 * cannot use a real device by accident.
 */
bool polycm_devices_only_simulated(struct polycm_device *const *devices, size_t num);

/*
 * For a call that finds no device: log how to simulate one, once per process, unless the
 * log already has an error of the providers.
 */
void polycm_no_device_hint(void);
/* The registry is loaded and there is a device; else -ENODEV, after that hint. */
int polycm_start(void);

#endif
