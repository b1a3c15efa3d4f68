/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs/table.h - how the shim finds the table of a simulated device.
 */
#ifndef POLYCM_CORE_VERBS_TABLE_H
#define POLYCM_CORE_VERBS_TABLE_H

#include <stdbool.h>

#include "core/base/export.h"
#include "core/base/libibverbs.h"

#include "polycm/verbs.h"

/* Never called; its address marks simulated devices. */
struct ibv_context *polycm_shim_mark(struct ibv_device *device, int cmd_fd);

/* The table of a simulated device, or NULL for a device of libibverbs. */
static inline const struct polycm_verbs *shim_table(const struct ibv_device *device)
{
	if (device->_ops._dummy1 != polycm_shim_mark)
		return NULL;
	return ((const struct polycm_verbs_device *)device)->core;
}

/*
 * A call that no slot of a simulated device is for: errno is EOPNOTSUPP, after a
 * line of log, unless the core itself asked.
 */
void shim_refuse(const char *call) __attribute__((cold));

/*
 * An exported call.  Its device, `owner', is simulated: `simulated', with the device's `table';
 * else libibverbs' function, or `failure' where this libibverbs has none.
 */
#define SHIM_CALL(result, name, version, failure, owner, parameters, arguments, simulated)         \
	POLYCM_EXPORT result name parameters                                                       \
	SHIM_BODY(result, name, version, failure, owner, parameters, arguments, simulated)

#define SHIM_BODY(result, name, version, failure, owner, parameters, arguments, simulated)         \
	{                                                                                          \
		const struct polycm_verbs *table = shim_table(owner);                              \
                                                                                                   \
		if (table)                                                                         \
			return simulated;                                                          \
                                                                                                   \
		REAL_VERB(result, #name, "IBVERBS_" #version, parameters);                         \
		return real ? real arguments : failure;                                            \
	}

#endif
