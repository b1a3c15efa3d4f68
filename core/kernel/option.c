/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel/option.c - options of an id, and those that are set again in a kernel id that is new. */
#include "config.h"
#include "internal.h"

static int set_option(const struct kernel_id *id, int level, int optname, const void *optval,
		      size_t optlen)
{
	KERNEL_MESSAGE(rdma_ucm_set_option) message;

	if (optlen > UINT32_MAX)
		return -EINVAL;
	memset(&message, 0, sizeof(message));
	message.body.optval = (uintptr_t)optval;	/* only read */
	message.body.id = id->number;
	message.body.level = (uint32_t)level;
	message.body.optname = (uint32_t)optname;
	message.body.optlen = (uint32_t)optlen;
	return KERNEL_COMMAND(kernel_fd(id->chan), SET_OPTION, message, 0);
}

int kernel_op_set_option(void *priv, int level, int optname, const void *optval, size_t optlen)
{
	struct kernel_option *option;
	struct kernel_id *id = priv;
	int r;

	r = kernel_id_ready(id);
	if (!r)
		r = set_option(id, level, optname, optval, optlen);
	if (r || level != RDMA_OPTION_ID || optname < 0 || optname >= KERNEL_OPTIONS ||
	    optlen > sizeof(option->value))
		return r;

	option = &id->options[optname];
	option->set = true;
	option->len = (uint8_t)optlen;
	memcpy(option->value, optval, optlen);
	return 0;
}

int kernel_options_replay(struct kernel_id *id)
{
	const struct kernel_option *option;
	int r = 0;

	for (int i = 0; i < KERNEL_OPTIONS && !r; i++) {
		option = &id->options[i];
		if (option->set)
			r = set_option(id, RDMA_OPTION_ID, i, option->value, option->len);
	}
	return r;
}
