/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api/rdma_option.c - rdma_set_option().  The provider checks and keeps options.  Options
 * of an id that may still change its provider are also kept here, and set again there.
 */
#include "config.h"
#include "core/cm/id_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "core/base/export.h"
#include "core/plugin/op.h"
#include "core/cm/ret.h"

/* The options that may come before an id is with a provider. */
static const struct {
	int name;
	size_t len;
	const char *text;
} id_options[] = {
	{ RDMA_OPTION_ID_TOS, sizeof(uint8_t), "type of service" },
	{ RDMA_OPTION_ID_REUSEADDR, sizeof(int), "reuse address" },
	{ RDMA_OPTION_ID_AFONLY, sizeof(int), "address family only" },
	{ RDMA_OPTION_ID_ACK_TIMEOUT, sizeof(uint8_t), "ACK time-out" },
};

/* As a provider would, for an id that is IDLE. */
static int check_unsettled(const struct polycm_id *id, int level, int name, size_t len)
{
	if (level == RDMA_OPTION_IB && name == RDMA_OPTION_IB_PATH)
		return polycm_fail(-EINVAL, "a path before an address was resolved");
	if (level != RDMA_OPTION_ID)
		return polycm_fail(-ENOSYS, "no options of level %d", level);

	for (size_t i = 0; i < sizeof(id_options) / sizeof(id_options[0]); i++) {
		if (id_options[i].name != name)
			continue;
		if (id_options[i].len != len)
			return polycm_fail(-EINVAL, "%s takes %zu bytes, not %zu",
					   id_options[i].text, id_options[i].len, len);
		if (name == RDMA_OPTION_ID_ACK_TIMEOUT && id->pub.qp_type != IBV_QPT_RC &&
		    id->pub.qp_type != IBV_QPT_XRC_SEND)
			return polycm_fail(-EINVAL, "%s is for RC", id_options[i].text);
		return 0;
	}
	return polycm_fail(-ENOSYS, "no option %d", name);
}

static int save(struct polycm_id *id, int level, int name, const void *value, size_t len)
{
	struct polycm_saved_option *option = malloc(sizeof(*option) + len);

	if (!option)
		return -ENOMEM;
	option->level = level;
	option->name = name;
	option->len = len;
	memcpy(option->value, value, len);
	LL_APPEND(id->options, option);
	return 0;
}

static int set_option(struct polycm_id *id, int level, int name, const void *value, size_t len)
{
	int err;

	/* As the kernel, which copies the value before it checks the option. */
	if (!value)
		return polycm_fail(len ? -EFAULT : -EINVAL, "no value");

	if (id->module)
		err = POLYCM_OP(id->module, set_option, id->priv, level, name, value, len);
	else
		err = check_unsettled(id, level, name, len);
	if (!err && polycm_id_is_unplaced(id))
		err = save(id, level, name, value, len);
	return err;
}

POLYCM_EXPORT int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval,
				  size_t optlen)
{
	return POLYCM_CALL(polycm_exit, self, id, set_option(self, level, optname, optval, optlen));
}
